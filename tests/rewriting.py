"""Running a rewriter of either backend over captures in memory, and frames to run it over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fragtrack.config import ReassemblyConfig
from fragtrack.testing import ethernet, fragment, ipv4, pattern, udp
from tests.backends import rewriter_class

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fragtrack.events import DatagramRow
    from fragtrack.testing.captures import ByteOrder, Resolution


SECOND = 1_000_000_000
WHOLE = ipv4(udp(pattern(90)), id=7)
PIECES = fragment(WHOLE, sizes=[32, 32])
FIRST, SECOND_PIECE, LAST = (ethernet(piece) for piece in PIECES)
OTHER = ethernet(ipv4(udp(b"no fragment"), id=9), minimum=60)
ARP = ethernet(bytes(28), ethertype=0x0806)
ORDERS: tuple[ByteOrder, ...] = ("little", "big")
RESOLUTIONS: tuple[Resolution, ...] = ("us", "ns")


def frames(*items: bytes, start: int = 0, step: int = 1_000_000) -> list[tuple[int, bytes]]:
    """Give frames their times, a millisecond apart."""
    return [(start + step * at, item) for at, item in enumerate(items)]


@dataclass
class Result:
    """What came out of a rewriter."""

    output: bytes
    rows: list[DatagramRow]
    summary: dict[str, Any]
    damaged: tuple[str, int, str] | None

    @property
    def outcomes(self) -> list[str]:
        """The outcome of each row."""
        return [row.outcome for row in self.rows]


@dataclass
class Run:
    """How to run: the arguments of a Rewriter, and how its input comes."""

    backend: str
    output: str | None = "pcap"
    keep: bool = True
    rows: bool = True
    payloads: bool = True
    chunk: int = 0
    stable: bool = True
    budget: int | None = None
    config: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *inputs: bytes) -> Result:
        """Rewrite captures, named file0, file1, ..."""
        rewriter = rewriter_class(self.backend)(
            ReassemblyConfig(**self.config),
            output=self.output,
            keep_incomplete=self.keep,
            rows=self.rows,
            payloads=self.payloads,
        )
        output, rows, damaged = b"", [], None
        for number, data in enumerate(inputs):
            rewriter.begin(f"file{number}")
            for _ in self._feed(rewriter, data):
                output += rewriter.take()
                rows += rewriter.take_rows()
            rewriter.end()
            damaged = damaged or rewriter.damaged
        rewriter.finish()
        output += rewriter.take()
        rows += rewriter.take_rows()
        return Result(output, rows, rewriter.summary(), damaged)

    def _feed(self, rewriter: Any, data: bytes) -> Iterable[None]:  # noqa: ANN401
        options = {} if self.budget is None else {"budget": self.budget}
        if not self.chunk:
            at = 0
            while True:
                at = rewriter.feed(
                    data, at, len(data), final=True, stable=self.stable, base=0, **options
                )
                yield
                if at == len(data):
                    return
        yield from self._in_chunks(rewriter, data, options)

    def _in_chunks(
        self,
        rewriter: Any,  # noqa: ANN401
        data: bytes,
        options: dict[str, int],
    ) -> Iterable[None]:
        """Feed as a stream does: what was consumed goes away, the rest moves to the front."""
        buffer, base, given = bytearray(), 0, 0
        while given < len(data) or not given:
            piece = data[given : given + self.chunk]
            buffer += piece
            given += len(piece)
            final = given >= len(data)
            at = -1
            start = 0
            while at != start and (at < len(buffer) or at < 0):
                start = max(at, 0)
                at = rewriter.feed(
                    buffer, start, len(buffer), final=final, stable=False, base=base, **options
                )
                yield
            del buffer[:at]
            base += at
            if final:
                return
