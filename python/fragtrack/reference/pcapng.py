"""The pcapng format, read (draft-ietf-opsawg-pcapng).

A file is a list of sections, each with a byte order and interfaces of its own; a section is a list
of blocks. Blocks that hold packets: enhanced (type 6), simple (3), obsolete (2).

Damage that ends the reading, looked for in this order as soon as the bytes are there:

1. a section header whose byte-order magic is unknown;
2. a total length below 12 or no multiple of 4;
3. a total length above `LARGEST_BLOCK`;
4. a block that the file does not hold whole;
5. a trailing length that differs;
6. a section header too short for its fields, or of another major version than 1.

Damage to one block, which is passed on as it is, and counts as no packet:

1. an interface description too short for its fields: it takes its number, but has no link type, and
   packets that name it are none that can be read;
2. an interface beyond `MOST_INTERFACES` of a section, or beyond as many bytes of descriptions as a
   block may have: it stays unknown, and all behind it;
3. a packet block too short for its fields;
4. a packet of an interface that is not known (a simple packet block belongs to interface 0);
5. more captured bytes than the block has room for. A simple packet block holds the original
   length or, if that is less, the interface's snapshot length (0: no limit).

The section length is not believed and not needed. A simple packet block has no time: it is given
that of the packet before it in this input, or 0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from fragtrack.reference.record import (
    LARGEST_BLOCK,
    NANOSECONDS,
    NO_PACKET,
    DamagedError,
    Record,
    clamp,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fragtrack.reference.record import Endian

__all__ = [
    "BYTE_ORDER_MAGIC",
    "ENHANCED",
    "IF_TSRESOL",
    "INTERFACE",
    "INTERFACE_CODES",
    "MOST_INTERFACES",
    "OBSOLETE",
    "PACKET_CODES",
    "SECTION",
    "SIMPLE",
    "STATISTICS",
    "Interface",
    "PcapngReader",
    "Section",
    "Units",
    "encode_options",
    "parse_options",
    "reorder_options",
]

SECTION = 0x0A0D0D0A
INTERFACE, OBSOLETE, SIMPLE, STATISTICS, ENHANCED = 1, 2, 3, 5, 6
MOST_INTERFACES = 65_536
BYTE_ORDER_MAGIC = 0x1A2B3C4D
IF_TSRESOL, IF_TSOFFSET = 9, 14


#: Options whose values are numbers, and so depend on the byte order: code -> bytes of a number.
#: Custom options begin with one number of 4 bytes; the rest of them is opaque.
CUSTOM_CODES = frozenset({2988, 2989, 19372, 19373})
PACKET_CODES: Mapping[int, int] = {2: 4, 4: 8, 5: 8, 6: 4, 8: 4}
INTERFACE_CODES: Mapping[int, int] = {8: 8, 10: 4, 14: 8, 16: 8, 17: 8}


class Units(NamedTuple):
    """The unit of an interface's time stamps: `base` ** -`exponent` seconds, and what to add.

    >>> Units(10, 6, 0).to_ns(5), Units(2, 1, 10).to_ns(3), Units(10, 9, 0).from_ns(7)
    (5000, 11500000000, 7)
    """

    base: Literal[2, 10]
    exponent: int
    offset: int

    @property
    def finer_than_microseconds(self) -> bool:
        """Whether pcap needs its nanosecond variant for them."""
        return self.exponent > (6 if self.base == 10 else 19)

    def to_ns(self, ticks: int) -> int:
        """Give nanoseconds since the epoch, rounded down, within 64 signed bits."""
        scaled = ticks * NANOSECONDS // self.base**self.exponent
        return clamp(scaled + self.offset * NANOSECONDS, 64, signed=True)

    def from_ns(self, time: int) -> int:
        """Give the time stamp of a time, rounded down, within 64 unsigned bits."""
        since = time - self.offset * NANOSECONDS
        return clamp(since * self.base**self.exponent // NANOSECONDS, 64)


MICROSECONDS = Units(10, 6, 0)


@dataclass(slots=True, frozen=True)
class Interface:
    """An interface of a section: link type, snapshot length, time units, its whole block."""

    link: int
    snaplen: int
    units: Units
    block: bytes


@dataclass(slots=True, eq=False)
class Section:
    """A section: byte order, and the interfaces described so far.

    `descriptions` counts their blocks, also those beyond the limits: from the first of these on no
    interface is known. `remembered` counts the bytes of the others.
    """

    endian: Endian
    interfaces: list[Interface] = field(default_factory=list)
    descriptions: int = 0
    remembered: int = 0

    def remember(self, block: bytes) -> str | None:
        """Note the interface that a block describes, or tell what is wrong with the block."""
        known = len(self.interfaces)
        beyond = self.descriptions > known or known == MOST_INTERFACES
        self.descriptions += 1
        if beyond or self.remembered + len(block) > LARGEST_BLOCK:
            return f"more than {MOST_INTERFACES} interfaces in one section"
        self.remembered += len(block)
        if len(block) < 20:
            self.interfaces.append(Interface(NO_PACKET, 0, MICROSECONDS, block))
            return _too_short(INTERFACE, block, 20)
        link, snaplen = struct.unpack_from(f"{self.endian}HxxI", block, 8)
        units = _units(parse_options(block[16:-4], self.endian), self.endian)
        self.interfaces.append(Interface(link, snaplen, units, block))
        return None


# ------------------------------------------------------------------------------------- options


def parse_options(data: bytes, endian: Endian) -> list[tuple[int, bytes]]:
    """Read options up to opt_endofopt, or up to one that does not fit."""
    options = []
    at = 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from(f"{endian}HH", data, at)
        if code == 0 or at + 4 + length > len(data):
            break
        options.append((code, data[at + 4 : at + 4 + length]))
        at += 4 + length + -length % 4
    return options


def encode_options(options: Iterable[tuple[int, bytes]], endian: Endian) -> bytes:
    """Write options, padded with zeros, and opt_endofopt behind them; nothing if there is none."""
    data = b"".join(
        struct.pack(f"{endian}HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in options
    )
    return data + bytes(4) if data else data


def reorder_options(
    options: Iterable[tuple[int, bytes]], numbers: Mapping[int, int]
) -> list[tuple[int, bytes]]:
    """Give the options of a section in the other byte order.

    `numbers` says which options are numbers, and how long one is; what is left behind the last
    whole number of a value stays as it is.
    """
    turned = []
    for code, value in options:
        width = numbers.get(code, 1)
        end = len(value) - len(value) % width
        if code in CUSTOM_CODES:
            width = end = 4 if len(value) >= 4 else 1
        parts = [value[at : at + width][::-1] for at in range(0, end, width)]
        turned.append((code, b"".join(parts) + value[end:]))
    return turned


# ------------------------------------------------------------------------------------- reading


def _units(options: list[tuple[int, bytes]], endian: Endian) -> Units:
    """Find if_tsresol and if_tsoffset: the last of each that has its size."""
    base: Literal[2, 10] = 10
    exponent, offset = 6, 0
    for code, value in options:
        if code == IF_TSRESOL and len(value) == 1:
            base, exponent = 2 if value[0] & 0x80 else 10, value[0] & 0x7F
        elif code == IF_TSOFFSET and len(value) == 8:
            (offset,) = struct.unpack(f"{endian}q", value)
    return Units(base, exponent, offset)


class PcapngReader:
    """Cuts a pcapng file into blocks."""

    def __init__(self) -> None:
        self.section: Section | None = None
        self._time = 0

    @staticmethod
    def recognizes(magic: bytes) -> bool:
        """Tell by the first four bytes whether this is a pcapng file."""
        return magic == SECTION.to_bytes(4)

    def read(self, data: memoryview) -> Record | None:
        """Read the block at the start of `data`; None if it is not whole.

        Raises
        ------
        DamagedError
            If nothing behind its start can be read.
        """
        framing = self._framing(data)
        if framing is None:
            return None
        endian, size = framing
        if len(data) < size:
            return None
        block = bytes(data[:size])
        (trailing,) = struct.unpack_from(f"{endian}I", block, size - 4)
        if trailing != size:
            raise DamagedError(
                f"block says it is {size} bytes long at its start and {trailing} at its end"
            )
        return self._interpret(block, endian)

    def needs(self, data: memoryview) -> int:
        """Tell how many bytes must be there of a block that is not whole."""
        framing = self._framing(data)
        if framing is not None:
            return framing[1]
        return 12 if _is_section(data) else 8

    def _framing(self, data: memoryview) -> tuple[Endian, int] | None:
        """Find byte order and total length of the block; None if that is not there yet."""
        if len(data) < (12 if _is_section(data) else 8):
            return None
        endian = self.section.endian if self.section else "<"
        if _is_section(data):
            endian = self._byte_order(bytes(data[8:12]))
        (size,) = struct.unpack_from(f"{endian}I", data, 4)
        if size < 12 or size % 4:
            raise DamagedError(
                f"block says it is {size} bytes long, must be a multiple of 4 from 12 up"
            )
        if size > LARGEST_BLOCK:
            raise DamagedError(
                f"block says it is {size} bytes long, at most {LARGEST_BLOCK} are read"
            )
        return endian, size

    @staticmethod
    def _byte_order(magic: bytes) -> Endian:
        if int.from_bytes(magic, "little") == BYTE_ORDER_MAGIC:
            return "<"
        if int.from_bytes(magic, "big") == BYTE_ORDER_MAGIC:
            return ">"
        raise DamagedError(f"section header with byte-order magic {magic.hex(' ')}")

    def _interpret(self, block: bytes, endian: Endian) -> Record:
        (kind,) = struct.unpack_from(f"{endian}I", block)
        if kind == SECTION:
            if len(block) < 28:
                raise DamagedError(_too_short(kind, block, 28))
            major, minor = struct.unpack_from(f"{endian}HH", block, 12)
            if major != 1:
                raise DamagedError(f"section of version {major}.{minor}, known is 1.0")
            self.section = Section(endian)
        section = self.section or Section(endian)
        record = Record(data=block, kind=kind, owner=section)
        if kind == INTERFACE:
            record.interface = section.descriptions
            record.damage = section.remember(block)
        elif kind == STATISTICS and len(block) >= 16:
            (record.interface,) = struct.unpack_from(f"{endian}I", block, 8)
        elif kind in (ENHANCED, OBSOLETE, SIMPLE):
            record.damage = self._packet(record, section)
        return record

    def _packet(self, record: Record, section: Section) -> str | None:
        """Fill in what a packet block says, or tell why it says nothing."""
        block, endian = record.data, section.endian
        head = 12 if record.kind == SIMPLE else 28
        if len(block) < head + 4:
            return _too_short(record.kind, block, head + 4)
        number, high, low, captured, wire = 0, 0, 0, 0, 0
        if record.kind == SIMPLE:
            (wire,) = struct.unpack_from(f"{endian}I", block, 8)
        else:
            layout = "IIIII" if record.kind == ENHANCED else "HxxIIII"
            number, high, low, captured, wire = struct.unpack_from(endian + layout, block, 8)
        if number >= len(section.interfaces):
            known = len(section.interfaces)
            return f"packet of interface {number}, but only {known} are described"
        interface = section.interfaces[number]
        if record.kind == SIMPLE:
            captured = min(wire, interface.snaplen) if interface.snaplen else wire
        room = len(block) - head - 4
        if captured > room:
            return f"packet says {captured} bytes were captured, its block has {room}"
        if record.kind != SIMPLE:
            self._time = interface.units.to_ns(high << 32 | low)
        record.link, record.interface, record.time = interface.link, number, self._time
        record.head, record.captured, record.wire = head, captured, wire
        return None


def _is_section(data: memoryview) -> bool:
    return data[:4] == SECTION.to_bytes(4)


def _too_short(kind: int, block: bytes, needs: int) -> str:
    return f"block of type {kind} is {len(block)} bytes long, must be at least {needs}"
