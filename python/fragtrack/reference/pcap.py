"""The pcap format, read and written (draft-ietf-opsawg-pcap).

Variants: both byte orders, microseconds and nanoseconds, and the "modified" one whose record
headers have 24 bytes (interface index, protocol and packet type behind the four usual fields;
microseconds). The link type is the low 16 bits of the network field; what stands above it
describes the frame check sequence and is carried along.

Damage ends the reading: a record that says more than `LARGEST_CAPTURED` bytes and more than the
file's snapshot length, or in any case more than `LARGEST_BLOCK`; or a record that the file does not
hold whole.

Times: seconds are unsigned, and a fraction of a second or more is added to them as it is.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fragtrack.errors import OutputError
from fragtrack.reference.record import (
    LARGEST_BLOCK,
    NANOSECONDS,
    PCAP_HEADER,
    PCAP_RECORD,
    DamagedError,
    Record,
)

if TYPE_CHECKING:
    from fragtrack.reference.pcapng import Section
    from fragtrack.reference.record import Endian

__all__ = ["LARGEST_CAPTURED", "PcapFile", "PcapOutput", "PcapReader"]

HEADER = 24
LARGEST_CAPTURED = 262_144
MICROSECONDS, NANO, MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34


@dataclass(slots=True, frozen=True, eq=False)
class PcapFile:
    """A pcap file: all that its records depend on.

    Attributes
    ----------
    endian
        ``<`` or ``>``.
    magic
        One of the three numbers that say variant and resolution.
    snaplen
        In bytes.
    network
        Link type and, above 16 bits, what is known of the check sequence.
    """

    endian: Endian
    magic: int
    snaplen: int
    network: int

    @property
    def link(self) -> int:
        """The link type of every frame."""
        return self.network & 0xFFFF

    @property
    def unit(self) -> int:
        """Nanoseconds in one unit of the fraction."""
        return 1 if self.magic == NANO else 1000

    @property
    def digits(self) -> int:
        """Decimal digits of the fraction."""
        return 9 if self.magic == NANO else 6

    @property
    def head(self) -> int:
        """Bytes of a record header."""
        return 24 if self.magic == MODIFIED else 16

    @property
    def largest(self) -> int:
        """The most captured bytes that are believed."""
        return min(max(self.snaplen, LARGEST_CAPTURED), LARGEST_BLOCK)

    def writes_like(self, other: PcapFile) -> bool:
        """Tell whether a record of one file is a record of the other as it stands."""
        return (self.endian, self.magic) == (other.endian, other.magic)

    def record(self, time: int, frame: bytes, wire: int) -> bytes:
        """Write a record.

        A time before the epoch becomes the epoch, one that seconds of 32 bits cannot hold the last
        moment that they can.
        """
        seconds, rest = divmod(time, NANOSECONDS)
        fraction = rest // self.unit
        if seconds < 0:
            seconds, fraction = 0, 0
        elif seconds >= 1 << 32:
            seconds, fraction = (1 << 32) - 1, NANOSECONDS // self.unit - 1
        head = struct.pack(f"{self.endian}IIII", seconds, fraction, len(frame), wire)
        return head + bytes(self.head - 16) + frame


class PcapReader:
    """Cuts a pcap file into records.

    The first record is the file's header; everything behind it holds a packet.
    """

    def __init__(self) -> None:
        self.file: PcapFile | None = None

    @staticmethod
    def recognizes(magic: bytes) -> bool:
        """Tell by the first four bytes whether this is a pcap file."""
        known = (MICROSECONDS, NANO, MODIFIED)
        return int.from_bytes(magic, "big") in known or int.from_bytes(magic, "little") in known

    def read(self, data: memoryview) -> Record | None:
        """Read the record at the start of `data`; None if it is not whole.

        Raises
        ------
        DamagedError
            If its length cannot be.
        """
        if self.file is None:
            return self._header(data)
        file = self.file
        if len(data) < file.head:
            return None
        seconds, fraction, captured, wire = struct.unpack_from(f"{file.endian}IIII", data)
        if captured > file.largest:
            raise DamagedError(
                f"record says {captured} bytes were captured, at most {file.largest} are possible"
            )
        size = file.head + captured
        if len(data) < size:
            return None
        return Record(
            data=bytes(data[:size]),
            kind=PCAP_RECORD,
            owner=file,
            link=file.link,
            head=file.head,
            captured=captured,
            wire=wire,
            time=seconds * NANOSECONDS + fraction * file.unit,
        )

    def needs(self, data: memoryview) -> int:
        """Tell how many bytes must be there of a record that is not whole."""
        if self.file is None:
            return HEADER
        if len(data) < self.file.head:
            return self.file.head
        (captured,) = struct.unpack_from(f"{self.file.endian}I", data, 8)
        return self.file.head + int(captured)

    def _header(self, data: memoryview) -> Record | None:
        if len(data) < HEADER:
            return None
        little = int.from_bytes(data[:4], "little")
        endian: Endian = "<" if little in (MICROSECONDS, NANO, MODIFIED) else ">"
        magic, snaplen, network = struct.unpack_from(f"{endian}I12xII", data)
        self.file = PcapFile(endian, magic, snaplen, network)
        return Record(data=bytes(data[:HEADER]), kind=PCAP_HEADER, owner=self.file)


class PcapOutput:
    """Writes one pcap file from whatever is read.

    The first input decides. A pcap file: its own header is written, with the snapshot length
    raised to `LARGEST_CAPTURED`. A pcapng file: the header is written at its first packet, in the
    byte order of that section, with the link type of that packet, version 2.4, the largest
    snapshot length among `LARGEST_CAPTURED` and the section's interfaces, and nanoseconds if one of
    these interfaces, as known by then, is finer than a microsecond. Without any packet it is
    written at the end, with the link type of the last section's first interface, or Ethernet.

    A record is copied as it is if it comes from a file of the same byte order and variant.
    Otherwise it is written anew: time cut to the resolution, both lengths kept.
    """

    def __init__(self) -> None:
        self.file: PcapFile | None = None
        self.chunks: list[bytes] = []
        self.written = 0
        self._last_section: Section | None = None

    def other(self, record: Record) -> None:
        """Take a record that holds no packet: a header, or a block that pcap cannot hold."""
        if isinstance(record.owner, PcapFile):
            if self.file is None:
                self._start(record.owner, record.data)
        else:
            self._last_section = record.owner

    def admit(self, record: Record, place: str) -> None:
        """Look at every packet when it is read; `place` names it.

        Raises
        ------
        OutputError
            If its link type is not that of the file.
        """
        if self.file is None and not isinstance(record.owner, PcapFile):
            self._start_from_section(record.owner, record.link)
        if self.file is not None and record.link != self.file.link:
            raise OutputError(
                f"{place} has link type {record.link}, those before it have {self.file.link}, "
                "and a pcap file holds one: write .pcapng instead"
            )

    def packet(self, record: Record) -> None:
        """Write a packet as it was read."""
        self._write(record, record.frame, record.wire, record.data)

    def datagram(self, record: Record, frame: bytes) -> None:
        """Write a whole datagram in place of the packet that completed it."""
        owner = record.owner
        head = b""
        if isinstance(owner, PcapFile):
            lengths = struct.pack(f"{owner.endian}II", len(frame), len(frame))
            head = record.data[:8] + lengths + record.data[16 : record.head]
        self._write(record, frame, len(frame), head + frame)

    def finish(self) -> None:
        """Complete the output: a file without packets gets its header now."""
        if self.file is not None or self._last_section is None:
            return
        interfaces = self._last_section.interfaces
        link = interfaces[0].link if interfaces else 1
        self._start_from_section(self._last_section, link)

    def _write(self, record: Record, frame: bytes, wire: int, as_is: bytes) -> None:
        if self.file is None:
            return
        owner = record.owner
        same = isinstance(owner, PcapFile) and self.file.writes_like(owner)
        self.chunks.append(as_is if same else self.file.record(record.time, frame, wire))
        self.written += 1

    def _start(self, file: PcapFile, header: bytes) -> None:
        snaplen = struct.pack(f"{file.endian}I", max(file.snaplen, LARGEST_CAPTURED))
        self.chunks.append(header[:16] + snaplen + header[20:])
        self.file = file

    def _start_from_section(self, section: Section, link: int) -> None:
        fine = any(interface.units.finer_than_microseconds for interface in section.interfaces)
        snaplen = max([LARGEST_CAPTURED, *(each.snaplen for each in section.interfaces)])
        file = PcapFile(section.endian, NANO if fine else MICROSECONDS, snaplen, link)
        header = struct.pack(f"{file.endian}IHHiIII", file.magic, 2, 4, 0, 0, snaplen, link)
        self._start(file, header)
