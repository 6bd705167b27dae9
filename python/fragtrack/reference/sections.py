"""The pcapng format, written: sections that may hold packets of other sections.

What was read from pcapng is written block by block as it stands, with these exceptions:

- the length in a section header becomes -1, unspecified, since sizes change;
- a whole datagram stands in the block of the packet that completed it: same type, same fields,
  both lengths new, and all options except the hash of the packet (code 3). A simple packet block
  stays one unless the interface's snapshot length is less than the datagram; then it becomes an
  enhanced one, with its packet's time;
- a packet of an *earlier section* (a fragment held since then, and given up now) is written into
  the current one. Its interface is described there first, once, behind the descriptions written so
  far. Later interfaces of the current section move up by that, and blocks that name one (enhanced
  and obsolete packets, statistics) get its number in the output.

A pcap file becomes a section of its own: a section header in its byte order, without options; one
interface with its link type, a snapshot length of 262,144 bytes, and if_tsresol 6 or 9; packets in
enhanced blocks without options.

Blocks in another byte order than the section they go to are encoded anew: fields, and the options
that are numbers (`PACKET_CODES` and `INTERFACE_CODES`). Options that are encoded anew are padded
with zeros and end with opt_endofopt; those behind an option that does not fit its block are lost.
An obsolete packet block has 16 bits for its interface: if they do not suffice it becomes an
enhanced one.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from fragtrack.reference.pcap import LARGEST_CAPTURED, PcapFile
from fragtrack.reference.pcapng import (
    BYTE_ORDER_MAGIC,
    ENHANCED,
    IF_TSRESOL,
    INTERFACE,
    INTERFACE_CODES,
    OBSOLETE,
    PACKET_CODES,
    SECTION,
    SIMPLE,
    STATISTICS,
    Section,
    Units,
    encode_options,
    parse_options,
    reorder_options,
)
from fragtrack.reference.record import PCAP_HEADER

if TYPE_CHECKING:
    from fragtrack.reference.record import Endian, Record

__all__ = ["PcapngOutput"]

HASH = 3
LAST_OBSOLETE_INTERFACE = 0xFFFF
Owner = PcapFile | Section


def encode_block(kind: int, body: bytes, endian: Endian) -> bytes:
    """Write a block whose body is a multiple of 4 bytes."""
    size = struct.pack(f"{endian}I", 12 + len(body))
    return struct.pack(f"{endian}I", kind) + size + body + size


def encode_packet(
    fields: tuple[int, int, int], frame: bytes, wire: int, options: bytes, endian: Endian
) -> bytes:
    """Write an enhanced packet block of (interface, time stamp high, low)."""
    head = struct.pack(f"{endian}IIIII", *fields, len(frame), wire)
    return encode_block(ENHANCED, head + frame + bytes(-len(frame) % 4) + options, endian)


class PcapngOutput:
    """Writes one pcapng file from whatever is read.

    Invariant: `numbers` maps the interfaces described in the current output section, each under
    its owner and its number there, to their numbers in the output: 0, 1, 2, ... as written.
    """

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.written = 0
        self.owner: Owner | None = None
        self.numbers: dict[tuple[Owner, int], int] = {}

    @property
    def endian(self) -> Endian:
        """Byte order of the current section."""
        return self.owner.endian if self.owner else "<"

    def admit(self, record: Record, place: str) -> None:
        """Look at a packet when it is read: this format can hold any."""

    def finish(self) -> None:
        """Complete the output: nothing is left to be written."""

    def other(self, record: Record) -> None:
        """Write a record that holds no packet that could be read."""
        if record.kind in (PCAP_HEADER, SECTION):
            self._begin(record)
        elif record.kind == INTERFACE:
            self.numbers[record.owner, record.interface] = len(self.numbers)
            self.chunks.append(record.data)
        elif record.kind == STATISTICS and len(record.data) >= 16:
            number = self.numbers.get((record.owner, record.interface), record.interface)
            moved = struct.pack(f"{self.endian}I", number)
            self.chunks.append(record.data[:8] + moved + record.data[12:])
        else:
            self.chunks.append(record.data)

    def packet(self, record: Record) -> None:
        """Write a packet as it was read, in whichever section that was."""
        owner = record.owner
        number = self._number(owner, record.interface)
        self.written += 1
        if isinstance(owner, PcapFile):
            self.chunks.append(self._enhanced(record, number, record.frame, record.wire))
        elif owner is self.owner and number == record.interface:
            self.chunks.append(record.data)
        elif record.kind == SIMPLE:
            self.chunks.append(self._enhanced(record, number, record.frame, record.wire))
        elif owner.endian == self.endian and not _too_high(record, number):
            layout = f"{self.endian}{'I' if record.kind == ENHANCED else 'H'}"
            moved = struct.pack(layout, number)
            self.chunks.append(record.data[:8] + moved + record.data[8 + len(moved) :])
        else:
            options = self._options(record, owner)
            self.chunks.append(
                self._again(
                    record, owner, number, frame=record.frame, wire=record.wire, options=options
                )
            )

    def datagram(self, record: Record, frame: bytes) -> None:
        """Write a whole datagram in place of the packet that completed it."""
        owner = record.owner
        number = self._number(owner, record.interface)
        self.written += 1
        if isinstance(owner, PcapFile):
            self.chunks.append(self._enhanced(record, number, frame, len(frame)))
        elif record.kind == SIMPLE:
            snaplen = owner.interfaces[0].snaplen
            if number or 0 < snaplen < len(frame):
                self.chunks.append(self._enhanced(record, number, frame, len(frame)))
            else:
                body = struct.pack(f"{self.endian}I", len(frame)) + frame + bytes(-len(frame) % 4)
                self.chunks.append(encode_block(SIMPLE, body, self.endian))
        else:
            options = [each for each in self._options(record, owner) if each[0] != HASH]
            self.chunks.append(
                self._again(record, owner, number, frame=frame, wire=len(frame), options=options)
            )

    # ---------------------------------------------------------------------------- sections

    def _begin(self, record: Record) -> None:
        """Begin a section: that of a pcapng file, or one for a pcap file."""
        self.owner, self.numbers = record.owner, {}
        if isinstance(record.owner, PcapFile):
            body = struct.pack(f"{self.endian}IHHq", BYTE_ORDER_MAGIC, 1, 0, -1)
            self.chunks.append(encode_block(SECTION, body, self.endian))
            self._number(record.owner, 0)
        else:
            self.chunks.append(record.data[:16] + b"\xff" * 8 + record.data[24:])

    def _number(self, owner: Owner, interface: int) -> int:
        """Give an interface's number in the output section; describe it there if it is new."""
        key = owner, interface
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self.chunks.append(self._description(owner, interface))
        return self.numbers[key]

    def _description(self, owner: Owner, interface: int) -> bytes:
        if isinstance(owner, PcapFile):
            fields = owner.link, LARGEST_CAPTURED
            options = [(IF_TSRESOL, bytes([owner.digits]))]
        else:
            described = owner.interfaces[interface]
            if owner.endian == self.endian:
                return described.block
            fields = described.link, described.snaplen
            options = parse_options(described.block[16:-4], owner.endian)
            options = reorder_options(options, INTERFACE_CODES)
        body = struct.pack(f"{self.endian}HHI", fields[0], 0, fields[1])
        return encode_block(INTERFACE, body + encode_options(options, self.endian), self.endian)

    # ----------------------------------------------------------------------------- packets

    def _enhanced(self, record: Record, number: int, frame: bytes, wire: int) -> bytes:
        """Write a packet that was no enhanced or obsolete block: its time in the units known."""
        owner = record.owner
        if isinstance(owner, PcapFile):
            units = Units(10, owner.digits, 0)
        else:
            units = owner.interfaces[record.interface].units
        ticks = units.from_ns(record.time)
        return encode_packet(
            (number, ticks >> 32, ticks & 0xFFFFFFFF), frame, wire, b"", self.endian
        )

    def _options(self, record: Record, owner: Section) -> list[tuple[int, bytes]]:
        """Read the options of a packet block, in the byte order of the output."""
        at = record.head + record.captured + -record.captured % 4
        options = parse_options(record.data[at:-4], owner.endian)
        if owner.endian != self.endian:
            options = reorder_options(options, PACKET_CODES)
        return options

    def _again(
        self,
        record: Record,
        owner: Section,
        number: int,
        *,
        frame: bytes,
        wire: int,
        options: list[tuple[int, bytes]],
    ) -> bytes:
        """Write an enhanced or obsolete packet block anew: frame, interface, byte order."""
        high, low = struct.unpack_from(f"{owner.endian}II", record.data, 12)
        encoded = encode_options(options, self.endian)
        if record.kind == ENHANCED or _too_high(record, number):
            return encode_packet((number, high, low), frame, wire, encoded, self.endian)
        (drops,) = struct.unpack_from(f"{owner.endian}H", record.data, 10)
        head = struct.pack(f"{self.endian}HHIIII", number, drops, high, low, len(frame), wire)
        body = head + frame + bytes(-len(frame) % 4) + encoded
        return encode_block(OBSOLETE, body, self.endian)


def _too_high(record: Record, number: int) -> bool:
    return record.kind == OBSOLETE and number > LAST_OBSOLETE_INTERFACE
