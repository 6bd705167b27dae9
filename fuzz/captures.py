"""Damaged captures through the rewriters of both backends, whose answers must be the same."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import generate
import harness
import seeds
import wrap
from harness import FindingError, differ
from mutate import mutate, spans

from fragtrack import _core
from fragtrack.config import ReassemblyConfig
from fragtrack.errors import CaptureError, OutputError
from fragtrack.reference.capture import Input
from fragtrack.reference.record import NO_PACKET
from fragtrack.reference.rewriter import Rewriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from fragtrack.events import DatagramRow


@dataclass
class Result:
    """What came out of a rewriter."""

    error: tuple[str, str] | None = None
    output: bytes = b""
    rows: list[DatagramRow] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    damaged: tuple[str, int, str] | None = None


@dataclass(frozen=True)
class Captures:
    """Captures, and how they are rewritten and fed."""

    config: dict[str, Any]
    output: str | None
    keep: bool
    rows: bool
    payloads: bool
    stable: bool
    chunk: int
    budget: int
    inputs: tuple[bytes, ...]

    @classmethod
    def draw(cls, random: Random) -> Self:
        """Draw one to three captures, most of them mutated."""
        inputs = []
        for _ in range(random.choice([1, 1, 1, 1, 1, 2, 3])):
            if random.random() < 0.75:
                data = wrap.capture(random, random.choice([2, 5, 12, 30]))
            else:
                data = random.choice(known())
            if random.random() < 0.7:
                other = random.choice(known())
                data = mutate(random, data, other)
            inputs.append(data)
        return cls(
            config=generate.config(random),
            output=random.choice([None, "pcap", "pcapng", "pcapng"]),
            keep=random.random() < 0.7,
            rows=random.random() < 0.8,
            payloads=random.random() < 0.5,
            stable=random.random() < 0.5,
            chunk=random.choice([1, 7, 24, 28, 60, 100, 333, 1000, 4096, 0, 0, 0]),
            budget=random.choice([1, 64, 500, 1 << 20, 1 << 20]),
            inputs=tuple(inputs),
        )

    @classmethod
    def load(cls, fields: dict[str, Any]) -> Self:
        """Make one of what `fields` gave."""
        inputs = tuple(bytes.fromhex(text) for text in fields["inputs"])
        config = generate.loaded(fields["config"])
        return cls(**{**fields, "inputs": inputs, "config": config})

    def fields(self) -> dict[str, object]:
        """Give what to save."""
        return asdict(self) | {"inputs": [data.hex() for data in self.inputs]}

    def smaller(self) -> Iterator[Self]:
        """Leave out inputs, then runs of records, then single ones; then plainer settings."""
        if len(self.inputs) > 1:
            for at in range(len(self.inputs)):
                yield replace(self, inputs=self.inputs[:at] + self.inputs[at + 1 :])
        for at, data in enumerate(self.inputs):
            for less in _shorter(data):
                yield replace(self, inputs=(*self.inputs[:at], less, *self.inputs[at + 1 :]))
        for name, value in PLAIN.items():
            if getattr(self, name) != value:
                yield replace(self, **{name: value})
        for config in generate.plainer(self.config):
            yield replace(self, config=config)

    def run(self) -> None:
        """Rewrite with both, and compare."""
        first = Result()

        def work() -> None:
            self._rewrite(_core.Rewriter, first, self._feed)

        harness.native(work)
        second = Result()
        self._rewrite(Rewriter, second, _feed_whole)
        differ("error", first.error, second.error)
        if first.error is None:
            # How far an input was read when the output refused a frame is left to the backend.
            differ("damaged", first.damaged, second.damaged)
            differ("summary", first.summary, second.summary)
        differ("rows", first.rows, second.rows)
        differ("output", first.output, second.output)
        if first.error is None and self.output is not None:
            _read_again(first)

    def _rewrite(self, make: Any, result: Result, feed: Any) -> None:  # noqa: ANN401
        rewriter = make(
            ReassemblyConfig(**self.config),
            output=self.output,
            keep_incomplete=self.keep,
            rows=self.rows,
            payloads=self.payloads,
        )

        def take() -> None:
            result.output += rewriter.take()
            result.rows += rewriter.take_rows()

        try:
            for number, data in enumerate(self.inputs):
                rewriter.begin(f"file{number}")
                for _ in feed(rewriter, data):
                    take()
                _check(rewriter)
                rewriter.end()
                result.damaged = result.damaged or rewriter.damaged
                _check(rewriter)
            rewriter.finish()
            _check(rewriter)
        except (CaptureError, OutputError) as error:
            result.error = type(error).__name__, str(error)
            _check(rewriter)
        take()
        result.summary = rewriter.summary()

    def _feed(self, rewriter: Any, data: bytes) -> Iterator[None]:  # noqa: ANN401
        if not self.chunk:
            yield from _feed_whole(rewriter, data, stable=self.stable, budget=self.budget)
            return
        chunk = max(self.chunk, len(data) // 200)
        buffer = data if self.stable else bytearray()
        base = at = given = 0
        final = False
        while not final:
            given = min(len(data), given + chunk)
            final = given == len(data)
            if isinstance(buffer, bytearray):
                del buffer[:at]
                base, at = base + at, 0
                buffer += data[base + len(buffer) : given]
            stop = given - base
            moved = True
            while moved:
                start = at
                at = rewriter.feed(
                    buffer,
                    start,
                    stop,
                    final=final,
                    stable=self.stable,
                    base=base,
                    budget=self.budget,
                )
                yield
                if not start <= at <= stop:
                    raise FindingError(f"feed({start}, {stop}) gives {at}")
                moved = start < at < stop
        if base + at != len(data):
            raise FindingError(f"feed ends at {base + at} of {len(data)}")


PLAIN: dict[str, Any] = {
    "chunk": 0,
    "budget": 1 << 20,
    "stable": True,
    "payloads": False,
    "keep": True,
}


def _shorter(data: bytes) -> Iterator[bytes]:
    """Leave out half of the records, then quarters, and so on."""
    found = spans(data)
    width = len(found) // 2
    while width:
        for first in range(0, len(found), width):
            last = min(len(found), first + width) - 1
            yield data[: found[first][0]] + data[found[last][1] :]
        width //= 2


@functools.cache
def known() -> list[bytes]:
    """Give captures that were not drawn."""
    return seeds.captures()


def _feed_whole(
    rewriter: Any,  # noqa: ANN401
    data: bytes,
    *,
    stable: bool = True,
    budget: int = 1 << 20,
) -> Iterator[None]:
    at, start = 0, -1
    while at != start:
        start = at
        at = rewriter.feed(data, at, len(data), final=True, stable=stable, budget=budget)
        yield
        if at == len(data):
            return
    raise FindingError(f"feed stays at {at} of {len(data)}")


def _check(rewriter: Any) -> None:  # noqa: ANN401
    if isinstance(rewriter, Rewriter):
        rewriter._reassembler.check()  # noqa: SLF001 - there is no other way to it
    else:
        rewriter.check()


def _read_again(result: Result) -> None:
    """Read the output: it is a capture, with as many packets as were written."""
    source, at, count = Input("output"), 0, 0
    view = memoryview(result.output)
    damages = []
    while (record := source.read(view[at:], at, final=True)) is not None:
        count += record.link != NO_PACKET
        at += len(record.data)
        if record.damage is not None:
            damages.append((at, record.damage))
    if source.damage is not None or (damages and result.damaged is None):
        raise FindingError(f"the output is damaged: {source.damage} {damages}")
    # A damaged block goes through as it is: it may name an interface that only the output has.
    written = result.summary["written"]
    if count < written or (count > written and result.damaged is None):
        raise FindingError(f"the output has {count} packets, {written} were written")


if __name__ == "__main__":
    harness.main(Captures)
