"""Identifiers of connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fragtrack.reference.siphash import siphash13

if TYPE_CHECKING:
    from fragtrack.reference.zeek.flow import Flow

DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MASK: Final = (1 << 64) - 1


def uid(flow: Flow, secret: int) -> str:
    """Give a ``C`` and 17 digits of base 62.

    A keyed hash of what is known when a flow opens: its number, the time, the endpoints as the
    first packet names them, protocol and zone. The first ten digits come from the hash of these
    words and a 0, the other seven from that with a 1.
    """
    source, destination = flow.opener
    words = [flow.number, flow.first & _MASK]
    for side in (source, destination):
        words += [side.address >> 64, side.address & _MASK]
    ports = source.port << 48 | destination.port << 32
    words += [ports | flow.protocol << 8 | flow.version, flow.key.zone]
    first = siphash13(secret, [*words, 0])
    second = siphash13(secret, [*words, 1])
    return "C" + _digits(first, 10) + _digits(second, 7)


def _digits(number: int, count: int) -> str:
    """Write the lowest digits of a number, the highest first."""
    text = ""
    for _ in range(count):
        number, digit = divmod(number, 62)
        text = DIGITS[digit] + text
    return text
