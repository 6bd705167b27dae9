"""TCP options, as far as connection tracking reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fragtrack.reference.track.sequence import after

if TYPE_CHECKING:
    from collections.abc import Iterator

END, NOP, SCALE, SACK_PERMITTED, SACK = 0, 1, 3, 4, 5
MOST_SCALE: Final = 14


class Option(NamedTuple):
    """An option with its value."""

    kind: int
    value: bytes


class Offer(NamedTuple):
    """What a SYN offers: window scale, None if it does not; selective acknowledgment."""

    scale: int | None
    sack: bool


def read(options: bytes) -> Iterator[Option]:
    """Yield the options in order; a length that cannot be ends them silently."""
    at = 0
    while at < len(options) and options[at] != END:
        if options[at] == NOP:
            at += 1
            continue
        size = options[at + 1] if at + 1 < len(options) else 0
        if size < 2 or at + size > len(options):
            return
        yield Option(options[at], options[at + 2 : at + size])
        at += size


def offer(options: bytes) -> Offer:
    """Read what a SYN offers (``tcp_options``); the last window scale counts."""
    scale, sack = None, False
    for kind, value in read(options):
        if kind == SACK_PERMITTED and not value:
            sack = True
        elif kind == SCALE and len(value) == 1:
            scale = min(value[0], MOST_SCALE)
    return Offer(scale, sack)


def highest_sack(options: bytes, ack: int) -> int:
    """Return the highest right edge of the first SACK option, or `ack` (``tcp_sack``)."""
    for kind, value in read(options):
        if kind == SACK and value and len(value) % 8 == 0:
            for at in range(4, len(value), 8):
                edge = int.from_bytes(value[at : at + 4], "big")
                ack = edge if after(edge, ack) else ack
            break
    return ack
