"""Cases of verdicts with a reason: packets, and what must be told of the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fragtrack.testing import udp
from tests.tracking import UDP, Bench, ends, ip, told

if TYPE_CHECKING:
    from collections.abc import Callable

ANY = object()  # a number that no document fixes


class Case(NamedTuple):
    """Packets, of which the last has the verdict."""

    packets: list[bytes]
    told: str
    got: object = None
    bound: object = None
    detail: str = ""
    config: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Cases(dict[str, "Callable[[], Case]"]):
    """Cases by the names of the functions that make them."""

    def __call__(self, make: Callable[[], Case]) -> Callable[[], Case]:
        """Add a case: a decorator."""
        self[make.__name__] = make
        return make

    def run(self, backend: str, name: str) -> None:
        """Give the packets of a case to a tracker, and judge the last verdict."""
        packets, expected, got, bound, detail, config = self[name]()
        bench = Bench(backend, **config)
        *before, packet = packets
        for earlier in before:
            bench.push(earlier)
        verdict = bench.push(packet)
        assert told(verdict) == expected, verdict
        assert got in {ANY, verdict.got}, verdict
        assert bound in {ANY, verdict.bound}, verdict
        assert verdict.detail is not None, verdict
        assert detail in verdict.detail, verdict
        assert "{" not in verdict.detail, verdict
        assert bench.tracker.reasons[verdict.reason] == 1


def whole(payload: bytes = bytes(20)) -> bytes:
    """Build a UDP packet from the client to the server."""
    return ip(udp(payload, **ends(4)), UDP)
