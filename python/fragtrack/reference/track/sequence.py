"""Arithmetic of 32-bit sequence numbers (RFC 9293 section 3.4; ``before``, ``after``)."""

from __future__ import annotations

from typing import Final

MASK: Final = (1 << 32) - 1


def before(one: int, other: int) -> bool:
    """Tell whether `one` comes before `other`, modulo 2**32."""
    return one - other & MASK > MASK >> 1


def after(one: int, other: int) -> bool:
    """Tell whether `one` comes after `other`, modulo 2**32."""
    return before(other, one)
