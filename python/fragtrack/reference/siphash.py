"""SipHash-1-3 over 64-bit words (Aumasson and Bernstein, 2012).

Only ``reclaim="bucket-oldest"`` depends on it: it says which bucket of the table
a datagram lives in, as the kernel's fixed hash of 1024 buckets did before 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_MASK = (1 << 64) - 1


def siphash13(key: int, words: Sequence[int]) -> int:
    """Return the 64-bit hash of a message of whole 64-bit words.

    Parameters
    ----------
    key : int
        128 bits; the low 64 bits are the first key word (k0), the high ones k1.
    words : sequence of int
        Message words, each below 2**64.
    """
    k0, k1 = key & _MASK, key >> 64 & _MASK
    state = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    length = (8 * len(words) & 0xFF) << 56
    for word in (*words, length):
        v0, v1, v2, v3 = state
        v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
        state = (v0 ^ word, v1, v2, v3)
    v0, v1, v2, v3 = state
    v2 ^= 0xFF
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


def _round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = v0 + v1 & _MASK
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 = v2 + v3 & _MASK
    v3 = _rotate(v3, 16) ^ v2
    v0 = v0 + v3 & _MASK
    v3 = _rotate(v3, 21) ^ v0
    v2 = v2 + v1 & _MASK
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK
