"""Changes to the bytes of captures: bits, length fields, whole records, the packets inside."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

NUMBERS = (
    *range(9),
    *(12, 16, 20, 28, 32, 0x7F, 0xFF, 0x1FFF, 0x2000, 0x7FFF, 0xFFFF),
    *(0x40000, 0x40001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF),
)
LONGEST = 1 << 17  # bytes


def mutate(random: Random, data: bytes, other: bytes) -> bytes:
    """Make one to a few changes; `other` is there to take records from."""
    changed = bytearray(data)
    kinds: list[Callable[[Random, bytearray, bytes], None]] = [
        _flip,
        _number,
        _stretch,
        _cut,
        *[_record] * 4,
        *[_packet] * 5,
    ]
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        if changed:
            random.choice(kinds)(random, changed, other)
    return bytes(changed[:LONGEST])


def spans(data: bytes) -> list[tuple[int, int]]:
    """Say where the records of a capture stand, as far as their lengths can be believed."""
    block = data[:4] == b"\n\r\r\n"
    order = ">" if data[:1] == b"\xa1" else "<"
    head = 24 if data[:4] in (b"\x34\xcd\xb2\xa1", b"\xa1\xb2\xcd\x34") else 16
    found, at = [], 0 if block else 24
    while at + 12 <= len(data):
        if block and data[at : at + 4] == b"\n\r\r\n":
            order = ">" if data[at + 8] == 0x1A else "<"
        (length,) = struct.unpack_from(f"{order}I", data, at + (4 if block else 8))
        if not block:
            length += head
        if not 12 <= length <= len(data) - at:
            break
        found.append((at, at + length))
        at += length
    return found


def _flip(random: Random, data: bytearray, _: bytes) -> None:
    at = random.randrange(len(data))
    data[at] = random.choice([0, 255, random.getrandbits(8), data[at] ^ 1 << random.randrange(8)])


def _write(data: bytearray, at: int, value: bytes) -> None:
    if at >= 0 and at + len(value) <= len(data):
        data[at : at + len(value)] = value


def _number(random: Random, data: bytearray, _: bytes) -> None:
    layout = random.choice(["<I", ">I", "<H", ">H"])
    value = random.choice(NUMBERS) & (0xFFFF if layout[1] == "H" else 0xFFFFFFFF)
    _write(
        data, random.randrange(len(data)) & ~random.choice([0, 1, 3]), struct.pack(layout, value)
    )


def _stretch(random: Random, data: bytearray, _: bytes) -> None:
    at, length = random.randrange(len(data) + 1), random.choice([1, 2, 4, 4, 8, 16, 60])
    if random.random() < 0.5:
        del data[at : at + length]
    else:
        data[at:at] = random.choice([b"\0", b"\xff", b"E"]) * length


def _cut(random: Random, data: bytearray, _: bytes) -> None:
    del data[random.randrange(len(data) + 1) :]


def _record(random: Random, data: bytearray, other: bytes) -> None:
    """Remove, repeat, move, bring in, or lie about a record."""
    found = spans(bytes(data))
    if not found:
        _number(random, data, other)
        return
    (start, end), (place, stop) = random.choice(found), random.choice(found)
    match random.randrange(7):
        case 0:
            del data[start:end]
        case 1:
            data[place:place] = data[start:end]
        case 2:
            del data[min(start, place) : max(end, stop)]
        case 3:
            theirs = spans(other)
            if theirs:
                first = random.randrange(len(theirs))
                last = min(len(theirs) - 1, first + random.randrange(12))
                data[place:place] = other[theirs[first][0] : theirs[last][1]]
        case 4:
            _write(
                data,
                start + 4 * random.randrange(8),
                struct.pack(random.choice("<>") + "I", random.choice(NUMBERS)),
            )
        case 5:
            at = start + 4 * random.randrange(8)
            value = int.from_bytes(data[at : at + 4], "little") + random.choice(NUMBERS)
            _write(data, at, struct.pack("<I", value & 0xFFFFFFFF))
        case _:
            _write(data, end - 4, struct.pack("<I", random.choice(NUMBERS)))


def _packet(random: Random, data: bytearray, _: bytes) -> None:
    """Change a field of an IP packet, or of what stands in front of it."""
    start = random.randrange(len(data))
    found = [at for byte in (b"E", b"F", b"`") if (at := data.find(byte, start)) >= 0]
    if not found:
        return
    at = min(found)
    if random.random() < 0.1:
        kind = random.choice([0x0800, 0x86DD, 0x8100, 0x88A8, 0x8847, 0x8864, 0x0021, 0x0057])
        _write(data, at - random.choice([2, 2, 4, 6]), struct.pack(">H", kind))
    elif data[at] == 0x60:
        _packet6(random, data, at)
    else:
        _packet4(random, data, at)


def _field(random: Random) -> int:
    offset = random.choice([0, 0, 1, 2, 3, 4, 6, 8, 8190, 8191])
    return offset | random.choice([0, 0x2000, 0x2000, 0x4000, 0x8000])


def _packet4(random: Random, data: bytearray, at: int) -> None:
    place, value = random.choice(
        [
            (6, struct.pack(">H", _field(random))),
            (6, struct.pack(">H", _field(random))),
            (2, struct.pack(">H", random.choice([0, 19, 20, 21, 28, 36, 44, 1500, 65535]))),
            (4, struct.pack(">H", random.randrange(3))),
            (0, bytes([0x40 | random.randrange(16)])),
            (1, bytes([random.randrange(4)])),
            (9, bytes([random.choice([1, 6, 17, 44])])),
        ]
    )
    _write(data, at + place, value)


def _packet6(random: Random, data: bytearray, at: int) -> None:
    header = 40 + 8 * random.randrange(4)
    kinds = [0, 6, 17, 43, 44, 44, 50, 51, 58, 59, 60, 135, 253]
    field = _field(random)
    place, value = random.choice(
        [
            (6, bytes([random.choice(kinds)])),
            (4, struct.pack(">H", random.choice([0, 1, 7, 8, 16, 24, 1440, 65535]))),
            (header + 2, struct.pack(">H", (field << 3 | field >> 13) & 0xFFFF)),
            (header + 2, struct.pack(">H", (field << 3 | field >> 13) & 0xFFFF)),
            (header, bytes([random.choice(kinds)])),
            (header + 1, bytes([random.choice([0, 1, 2, 255])])),
            (header + 4, struct.pack(">I", random.randrange(3))),
            (1, bytes([random.randrange(4) << 4])),
        ]
    )
    _write(data, at + place, value)
