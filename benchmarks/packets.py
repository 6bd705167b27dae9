"""The packets of a workload, made one by one: Ethernet, IPv4 or IPv6, UDP, right checksums."""

from __future__ import annotations

import random
import struct
from array import array
from itertools import accumulate, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapes import Shape

SEED = 2013
ETHERNET4 = bytes.fromhex("020000000002 020000000001 0800")
ETHERNET6 = bytes.fromhex("020000000002 020000000001 86dd")
HEADERS4 = struct.Struct(">14sBBHHHBBHII")
HEADERS6 = struct.Struct(">14sIHBB16s16sBBHI")
DESTINATION4 = 10 << 24 | 99 << 16 | 2  # 10.99.0.2
DESTINATION6 = bytes.fromhex("fd000099000000000000000000000002")
UDP, PORT = 17, 5001
MORE4, MORE6 = 0x2000, 1


def fold(total: int) -> int:
    """Fold a sum of 16-bit words to 16 bits, carries added back (RFC 1071)."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Source:
    """The datagrams of a workload, made when asked for.

    Payloads are windows of one random pool with the datagram's number in front; sums over the
    pool's words, added up once, give a window's UDP checksum without reading it.
    """

    def __init__(self, shape: Shape, rng: random.Random) -> None:
        self.shape = shape
        self.pool = rng.randbytes(2 * 65_536)
        words = struct.unpack(f">{len(self.pool) // 2}H", self.pool)
        self.sums = list(accumulate(words, initial=0))
        n = shape.datagrams
        self.flow = array("B", (d % shape.flows for d in range(n)))
        if not shape.in_turn:
            self.flow = array("B", (rng.randrange(shape.flows) for _ in range(n)))
        self.starts = array("H", (rng.getrandbits(15) for _ in range(n)))
        self.ids = array("L")
        used = [0] * shape.flows
        for flow in self.flow:
            seq, used[flow] = used[flow], used[flow] + 1
            if shape.family == 4:
                self.ids.append(seq + 1000 * flow & 0xFFFF)
            else:
                self.ids.append(seq * 2_654_435_761 + flow * 40_503 & 0xFFFF_FFFF)
        if shape.family == 4:
            self.sources = [10 << 24 | 99 << 16 | 1 << 8 | 1 + f for f in range(shape.flows)]
            self.pseudo = [fold(divide(s) + divide(DESTINATION4)) for s in self.sources]
        else:
            self.sources6 = [
                DESTINATION6[:12] + struct.pack(">HH", 1, 1 + f) for f in range(shape.flows)
            ]
            self.pseudo = [
                fold(sum(struct.unpack(">16H", s + DESTINATION6))) for s in self.sources6
            ]

    def whole(self, d: int) -> bytes:
        """Build datagram `d` from its UDP header on."""
        size, length, start = self.shape.size, self.shape.length, 2 * self.starts[d]
        total = self.pseudo[self.flow[d]] + UDP + length
        sport = 20_000 + self.flow[d]
        total += sport + PORT + length + (d >> 16) + (d & 0xFFFF)
        end = start + size
        total += self.sums[end >> 1] - self.sums[(start >> 1) + 2]
        if size & 1:
            total += self.pool[end - 1] << 8
        checksum = 0xFFFF - fold(total) or 0xFFFF
        head = struct.pack(">HHHHI", sport, PORT, length, checksum, d)
        return head + self.pool[start + 4 : end]

    def headers(self, d: int, low: int, high: int) -> bytes:
        """Build the headers of the fragment that carries bytes `low` to `high` of datagram `d`."""
        more = high < self.shape.length
        if self.shape.family == 4:
            word = (MORE4 if more else 0) | low >> 3
            return headers4(self.sources[self.flow[d]], self.ids[d], UDP, word, high - low)
        source = self.sources6[self.flow[d]]
        length = 8 + high - low
        word = low | (MORE6 if more else 0)
        return HEADERS6.pack(
            ETHERNET6, 6 << 28, length, 44, 64, source, DESTINATION6, UDP, 0, word, self.ids[d]
        )


def divide(address: int) -> int:
    """Add the two halves of an IPv4 address."""
    return (address >> 16) + (address & 0xFFFF)


def headers4(source: int, ident: int, protocol: int, word: int, length: int) -> bytes:
    """Build Ethernet and IPv4 headers, checksum right (RFC 791)."""
    total = 0x4500 + 20 + length + ident + word + (64 << 8 | protocol)
    checksum = 0xFFFF - fold(total + divide(source) + divide(DESTINATION4))
    return HEADERS4.pack(
        ETHERNET4, 0x45, 0, 20 + length, ident, word, 64, protocol, checksum, source, DESTINATION4
    )


def junk(rng: random.Random, *, one_source: bool) -> Iterator[tuple[bytes, bytes]]:
    """Yield headers and payloads of first and middle fragments, each with a key of its own."""
    number = 0
    while True:
        size = 8 * rng.randrange(1, 4)
        offset = 0 if rng.getrandbits(1) else rng.randrange(1, 8100)
        if one_source:  # 65,536 identifications, then the next protocol number
            source, ident = 100 << 24 | 64 << 16 | 1, number & 0xFFFF
            protocol = UDP + (number >> 16)
        else:
            source = 100 << 24 | 64 << 16 | rng.randrange(1, 1 << 22)
            ident, protocol = rng.getrandbits(16), UDP
        number += 1
        yield headers4(source, ident, protocol, MORE4 | offset, size), rng.randbytes(size)


def packets(shape: Shape) -> Iterator[tuple[bytes, bytes, bool]]:
    """Yield headers, payload, and whether the packet completes a datagram, in order."""
    rng = random.Random(f"{SEED}:{shape.name}")
    source = Source(shape, rng)
    k, step, length = shape.fragments, shape.step, shape.length
    good_left = shape.datagrams * k
    junk_left = good_left * shape.junk
    attack = junk(random.Random(f"{SEED}:{shape.name}:junk"), one_source=shape.one_source)
    opened: dict[int, tuple[bytes, list[int]]] = {}
    chance = random.Random(f"{SEED}:{shape.name}:merge").random
    for d, f in shape.order(rng, shape):
        # draws without replacement: both kinds are spread evenly and used up together
        while junk_left and chance() * (good_left + junk_left) >= good_left:
            junk_left -= 1
            head, body = next(attack)
            yield head, body, False
        good_left -= 1
        entry = opened.get(d)
        if entry is None:
            entry = opened[d] = (source.whole(d), [k])
        whole, left = entry
        left[0] -= 1
        if not left[0]:
            del opened[d]
        low = f * step
        high = min(low + step, length)
        yield source.headers(d, low, high), whole[low:high], not left[0]
    for head, body in islice(attack, junk_left):
        yield head, body, False
