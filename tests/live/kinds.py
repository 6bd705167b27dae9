"""Every kind of flow by name, with the settings that matter to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tests.live import icmp, pieces, sctp, simple, tcp
from tests.live.flow import Flow
from tests.live.tuples import GRE, UDP, UDPLITE

if TYPE_CHECKING:
    import random
    from collections.abc import Callable


class Kind(NamedTuple):
    """How flows of a kind are made.

    Attributes
    ----------
    draw
        Fills a flow.
    settings
        Sysctls, of which one choice is set for some flows.
    weight
        Share of the time.
    """

    draw: Callable[[random.Random, Flow], None]
    settings: tuple[dict[str, int], ...]
    weight: int


KINDS: Final[dict[str, Kind]] = {
    "tcp": Kind(tcp.draw, tcp.SETTINGS, 10),
    "udp": Kind(simple.draw_udp, simple.STREAMS[UDP], 2),
    "udplite": Kind(simple.draw_udplite, simple.STREAMS[UDPLITE], 2),
    "icmp": Kind(icmp.draw, icmp.SETTINGS, 3),
    "sctp": Kind(sctp.draw, sctp.SETTINGS, 4),
    "gre": Kind(simple.draw_gre, simple.STREAMS[GRE], 2),
    "other": Kind(simple.draw_other, ({"generic_timeout": 66},), 1),
    "pieces": Kind(pieces.draw, pieces.SETTINGS, 3),
}


def draw(kind: str, rng: random.Random, number: int) -> Flow:
    """Make a flow; some have settings of their own, some have a packet in fragments."""
    made = Flow(kind, rng.choice((4, 4, 6)), number)
    if rng.random() < 0.3:
        made.settings = dict(rng.choice(KINDS[kind].settings))
    KINDS[kind].draw(rng, made)
    if rng.random() < 0.1 and made.steps:
        made.cut(rng)
    if rng.random() < 0.05 and made.steps:
        made.pad(rng)
    return made
