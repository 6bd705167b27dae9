"""Random fragments: whole datagrams of any protocol, cut, lost, repeated, and impossible ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragtrack.testing import ATOMIC, fragment, ipv4, ipv6_fragment
from tests.live import icmp, sctp, simple, tcp
from tests.live.flow import Step

if TYPE_CHECKING:
    import random

    from tests.live.flow import Flow

SETTINGS: tuple[dict[str, int], ...] = ({"checksum": 0},)
DRAWS = (tcp.draw, simple.draw_udp, simple.draw_udplite, simple.draw_gre, icmp.draw, sctp.draw)


def draw(rng: random.Random, flow: Flow) -> None:
    """Fill a flow with packets of one protocol, most of them in fragments."""
    rng.choice(DRAWS)(rng, flow)
    del flow.steps[12:]
    whole, flow.steps = flow.steps, []
    for number, step in enumerate(whole):
        if step.packet is None or rng.random() < 0.3:
            flow.steps.append(step)
            continue
        pieces = cut(rng, step.packet, 1000 * flow.number + number)
        names = f"{step.note} in {len(pieces)} pieces"
        flow.steps += [Step(step.side, it, names, whole=step.packet) for it in pieces]
        if rng.random() < 0.1:
            flow.steps.append(Step(step.side, odd(rng, flow, step.side, number), "odd piece"))


def cut(rng: random.Random, packet: bytes, ident: int) -> list[bytes]:
    """Cut a packet; lose, repeat or shuffle some of its pieces now and then."""
    if packet[0] >> 4 == 6 and rng.random() < 0.1:
        return fragment(packet, ATOMIC, id=ident)
    sizes = [rng.choice((8, 16, 24, 40, 64)) for _ in range(rng.randint(1, 3))]
    pieces = fragment(packet, sizes, id=ident)
    chance = rng.random()
    if chance < 0.25:
        rng.shuffle(pieces)
    elif chance < 0.35:
        pieces.pop(rng.randrange(len(pieces)))
    elif chance < 0.45:
        pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(pieces))
    return pieces


def odd(rng: random.Random, flow: Flow, side: int, number: int) -> bytes:
    """Build a fragment that nothing follows: of any length, at any offset."""
    ident = 1000 * flow.number + 500 + number
    data = rng.randbytes(rng.choice((0, 1, 4, 7, 8, 12, 20, 24)))
    more, offset = rng.random() < 0.7, rng.choice((0, 0, 8, 1480, 65528))
    ends = flow.between(side)
    protocol = rng.choice((6, 17, 132, 47, 99))
    if flow.version == 4:
        ident &= 0xFFFF
        return ipv4(data, protocol=protocol, id=ident, mf=more, offset=offset, **ends)
    named: dict[str, Any] = {"next_header": protocol, "id": ident, "offset": offset, "more": more}
    return ipv6_fragment(data, **named, **ends)
