"""Random UDP, UDP-Lite, GRE, and protocols that nothing is known about."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from fragtrack.testing import checksum, gre, icmp_error, icmpv6_error
from fragtrack.testing.transport import pseudo_header
from tests.live.tuples import GRE, UDP, UDPLITE

if TYPE_CHECKING:
    import random

    from tests.live.flow import Flow

OTHERS4 = (0, 2, 4, 33, 41, 50, 51, 58, 59, 89, 99, 112, 253, 254, 255)
OTHERS6 = (1, 2, 4, 33, 41, 50, 59, 89, 99, 112, 253, 254, 255)
STREAMS = {
    UDP: ({"udp_timeout": 33, "udp_timeout_stream": 99}, {"checksum": 0}),
    UDPLITE: ({"udp_timeout": 33, "udp_timeout_stream": 99}, {"checksum": 0}),
    GRE: ({"gre_timeout": 44, "gre_timeout_stream": 88},),
}


def ports_of(rng: random.Random) -> tuple[int, int]:
    """Choose ports; now and then equal ones."""
    first = rng.randrange(65536)
    return first, rng.choice((53, 123, 443, first))


def summed(data: bytes, ends: dict[str, Any], *, covered: int, length: int, number: int) -> bytes:
    """Fill in a checksum at byte 6: over so many bytes, a pseudo header with that length."""
    head = pseudo_header(ends["src"], ends["dst"], length, number)
    value = checksum(head + data[:6] + b"\0\0" + data[8:covered]) or 0xFFFF
    return data[:6] + struct.pack(">H", value) + data[8:]


def complain(rng: random.Random, flow: Flow, side: int) -> None:
    """Write an ICMP error about something the other side said."""
    said = [step.packet for step in flow.steps if step.side != side and step.packet]
    if not said:
        return
    head = 20 if flow.version == 4 else 40
    quote = rng.choice(said[-3:])[: head + rng.choice((0, 3, 4, 7, 8, 64))]
    ends = flow.between(side)
    if rng.random() < 0.3:  # a router complains, or the wrong one is told
        ends[rng.choice(("src", "src", "dst"))] = flow.address(side, 1)
        ends["dst"] = ends["dst"] if rng.random() < 0.8 else flow.address(1 - side, 2)
    bad = rng.random() < 0.05
    if flow.version == 4:
        kind = rng.choice((3, 3, 4, 5, 11, 12))
        error = icmp_error(kind, rng.randrange(16), quote, rest=1400, bad=bad)
        flow.send(side, 1, error, f"error {kind} quotes {len(quote)}", **ends)
    else:
        kind = rng.choice((1, 1, 2, 3, 4, 5, 100))
        error = icmpv6_error(kind, rng.randrange(8), quote, rest=1400, bad=bad, **ends)
        flow.send(side, 58, error, f"error {kind} quotes {len(quote)}", **ends)


def draw_udp(rng: random.Random, flow: Flow) -> None:
    """Fill a flow with UDP."""
    ports = ports_of(rng)

    def say(side: int) -> None:
        data = rng.randbytes(rng.choice((0, 1, 8, 30, 31)))
        length = len(data) + 8
        told, covered, pseudo = length, length, length
        if rng.random() < 0.15:
            told = rng.choice((0, 4, 7, 8, length - 1, length + 1, 0xFFFF)) & 0xFFFF
        if rng.random() < 0.1:
            covered, pseudo = rng.choice(((told, told), (length, told), (told, length)))
        built = struct.pack(">HHHH", ports[side], ports[1 - side], told, 0) + data
        if rng.random() < 0.9:
            ends = flow.between(side)
            built = summed(built, ends, covered=covered, length=pseudo, number=UDP)
        elif rng.random() < 0.3:
            built = built[:6] + rng.randbytes(2) + built[8:]
        if rng.random() < 0.04:
            built = built[: rng.randrange(9)]
        flow.send(side, UDP, built, f"udp length {told}", **flow.extras(rng))

    chatter(rng, flow, say)


def draw_udplite(rng: random.Random, flow: Flow) -> None:
    """Fill a flow with UDP-Lite. The kernel sums with the protocol number of UDP."""
    ports = ports_of(rng)

    def say(side: int) -> None:
        data = rng.randbytes(rng.choice((0, 1, 8, 30, 31)))
        length = len(data) + 8
        coverage = rng.choice((0, 0, 8, 9, length, max(8, length - 1)))
        if rng.random() < 0.1:
            coverage = rng.choice((1, 7, length + 1, 0xFFFF))
        built = struct.pack(">HHHH", ports[side], ports[1 - side], coverage, 0) + data
        if rng.random() < 0.95:
            number = UDP if rng.random() < 0.9 else UDPLITE
            pseudo = length if rng.random() < 0.95 else coverage
            built = summed(
                built,
                flow.between(side),
                covered=coverage or length,
                length=pseudo,
                number=number,
            )
        if rng.random() < 0.04:
            built = built[: rng.randrange(9)]
        flow.send(side, UDPLITE, built, f"coverage {coverage}", **flow.extras(rng))

    chatter(rng, flow, say)


def draw_gre(rng: random.Random, flow: Flow) -> None:
    """Fill a flow with GRE of either version."""
    calls = (rng.randrange(65536), rng.randrange(65536))

    def say(side: int) -> None:
        fields: dict[str, Any] = {"sequence": rng.choice((None, 7)), "key": rng.choice((None, 9))}
        version = rng.choice((0, 0, 0, 1, 1, 1, 2, 7))
        if version == 1:
            call = rng.choice((*calls, 0))
            fields = {"sequence": rng.choice((None, 7)), "call_id": call}
            fields["protocol"] = None if rng.random() < 0.9 else 0x0800
        built = gre(b"payload", version=version, **fields)
        if rng.random() < 0.1:
            built = built[: rng.randrange(9)]
        if rng.random() < 0.1 and built:
            built = bytes([rng.getrandbits(8)]) + built[1:]
        flow.send(side, GRE, built, f"gre version {version}", **flow.extras(rng))

    chatter(rng, flow, say)


def draw_other(rng: random.Random, flow: Flow) -> None:
    """Fill a flow with one or two protocols without a tracker."""
    known = OTHERS4 if flow.version == 4 else OTHERS6
    numbers = rng.sample(known, 2)

    def say(side: int) -> None:
        number = rng.choice((numbers[0], numbers[0], numbers[1]))
        built = rng.randbytes(rng.choice((0, 1, 3, 8, 20)))
        flow.send(side, number, built, f"protocol {number}", **flow.extras(rng))

    chatter(rng, flow, say)


def chatter(rng: random.Random, flow: Flow, say: Any) -> None:  # noqa: ANN401
    """Let both sides speak, the client more often at first."""
    for turn in range(rng.randint(2, 9)):
        chance = rng.random()
        side = int(rng.random() < (0.3 if turn < 2 else 0.5))
        if chance < 0.78:
            say(side)
        elif chance < 0.9 and flow.steps:
            complain(rng, flow, side)
        elif flow.steps:
            flow.again(rng)
