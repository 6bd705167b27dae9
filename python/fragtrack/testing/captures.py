"""Builders of capture files: pcap in every variant, pcapng block by block.

The layouts are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Nothing is checked:
a length that lies is written as asked.

Examples
--------
>>> data = pcap([(1_000_000_000, b"frame")])
>>> len(data)
45
>>> file = Pcapng().section().interface(link=1).packet(b"frame", time_ns=1_500_000_000)
>>> len(file.data)
88
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ByteOrder",
    "Option",
    "Pcapng",
    "Resolution",
    "comment",
    "pcap",
    "pcap_header",
    "pcap_record",
]

ByteOrder = Literal["little", "big"]
Resolution = Literal["us", "ns"]

MICROSECONDS, NANOSECONDS, MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34
ENDIAN: dict[ByteOrder, Literal["<", ">"]] = {"little": "<", "big": ">"}


# --------------------------------------------------------------------------------------- pcap


def pcap_header(
    *,
    link: int = 1,
    order: ByteOrder = "little",
    resolution: Resolution = "us",
    modified: bool = False,
    snaplen: int = 262144,
    version: tuple[int, int] = (2, 4),
) -> bytes:
    """Build the header of a pcap file.

    Parameters
    ----------
    link
        The whole 32-bit field: link type in the low 16 bits, check sequence length above.
    order
        Byte order.
    resolution
        Microseconds or nanoseconds.
    modified
        The variant with 24-byte record headers, microseconds only.
    snaplen
        In bytes.
    version
        Major and minor.

    Examples
    --------
    >>> pcap_header(order="big", snaplen=65535).hex(" ", 4)
    'a1b2c3d4 00020004 00000000 00000000 0000ffff 00000001'
    """
    magic = NANOSECONDS if resolution == "ns" else MICROSECONDS
    if modified:
        magic = MODIFIED
    return struct.pack(f"{ENDIAN[order]}IHHiIII", magic, *version, 0, 0, snaplen, link)


def pcap_record(
    frame: bytes,
    *,
    time_ns: int = 0,
    order: ByteOrder = "little",
    resolution: Resolution = "us",
    modified: bool = False,
    wire: int | None = None,
    captured: int | None = None,
    seconds: int | None = None,
    fraction: int | None = None,
) -> bytes:
    """Build one record of a pcap file.

    Parameters
    ----------
    frame
        The captured bytes.
    time_ns
        Nanoseconds since the epoch.
    order, resolution, modified
        As in the file's header.
    wire
        Length on the wire; as captured if not given.
    captured
        The captured-length field, if it shall lie.
    seconds, fraction
        The two fields of the time stamp, if not those of `time_ns`.

    Examples
    --------
    >>> pcap_record(b"abc", time_ns=1_000_002_000, order="big").hex(" ", -4)
    '00000001 00000002 00000003 00000003 616263'
    """
    if seconds is None:
        seconds = time_ns // 1_000_000_000
    if fraction is None:
        fraction = time_ns % 1_000_000_000 // (1 if resolution == "ns" else 1000)
    size = len(frame) if captured is None else captured
    head = struct.pack(
        f"{ENDIAN[order]}IIII", seconds, fraction, size, size if wire is None else wire
    )
    return head + bytes(8) * modified + frame


def pcap(
    frames: Iterable[tuple[int, bytes]],
    *,
    link: int = 1,
    order: ByteOrder = "little",
    resolution: Resolution = "us",
    modified: bool = False,
    snaplen: int = 262144,
) -> bytes:
    """Build a pcap file of (nanoseconds, frame) pairs; the options are those of `pcap_header`.

    >>> pcap([], link=101)[-4:].hex()
    '65000000'
    """
    head = pcap_header(
        link=link, order=order, resolution=resolution, modified=modified, snaplen=snaplen
    )
    records = [
        pcap_record(frame, time_ns=time, order=order, resolution=resolution, modified=modified)
        for time, frame in frames
    ]
    return head + b"".join(records)


# ------------------------------------------------------------------------------------- pcapng


class Option(NamedTuple):
    """An option of a pcapng block: code, value, and the length field if it shall lie."""

    code: int
    value: bytes
    length: int | None = None


def comment(text: str) -> Option:
    """Build a comment (opt_comment).

    >>> comment("seen twice")
    Option(code=1, value=b'seen twice', length=None)
    """
    return Option(1, text.encode())


class Pcapng:
    """A pcapng file, built block by block; every method gives the object back.

    A section's byte order holds until the next section; time stamps are put into the units of the
    interface they name.

    Attributes
    ----------
    data : bytes
        The file so far.

    Examples
    --------
    >>> file = Pcapng().section("big").interface(tsresol=9).packet(b"abcd", time_ns=5)
    >>> file.data[-36:].hex(" ", 4)
    '00000006 00000024 00000000 00000000 00000005 00000004 00000004 61626364 00000024'
    """

    __slots__ = ("_blocks", "_endian", "_units")

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._endian: Literal["<", ">"] = "<"
        self._units: list[tuple[int, int]] = []

    @property
    def data(self) -> bytes:
        """The file so far."""
        return b"".join(self._blocks)

    @property
    def blocks(self) -> tuple[bytes, ...]:
        """The blocks so far."""
        return tuple(self._blocks)

    def options(self, options: Iterable[Option], *, end: bool = True) -> bytes:
        """Encode options in the byte order of the section, with opt_endofopt if there are any."""
        encoded = b""
        for option in options:
            size = len(option.value) if option.length is None else option.length
            encoded += struct.pack(f"{self._endian}HH", option.code, size)
            encoded += option.value + bytes(-len(option.value) % 4)
        return encoded + bytes(4) if encoded and end else encoded

    def raw(self, data: bytes) -> Self:
        """Add bytes as they are."""
        self._blocks.append(data)
        return self

    def block(
        self, kind: int, body: bytes, *, length: int | None = None, trailer: int | None = None
    ) -> Self:
        """Add a block of any type.

        Parameters
        ----------
        kind
            Block type.
        body
            Padded here to a multiple of 4 bytes.
        length, trailer
            The total length at the head and at the end, if they shall lie.
        """
        body += bytes(-len(body) % 4)
        size = 12 + len(body) if length is None else length
        end = size if trailer is None else trailer
        head = struct.pack(f"{self._endian}II", kind, size)
        return self.raw(head + body + struct.pack(f"{self._endian}I", end))

    def section(
        self,
        order: ByteOrder = "little",
        *,
        length: int = -1,
        version: tuple[int, int] = (1, 0),
        options: Iterable[Option] = (),
    ) -> Self:
        """Begin a section: a section header block.

        Parameters
        ----------
        order
            Byte order of all that follows.
        length
            Section length in bytes; -1 for unknown.
        version
            Major and minor.
        options
            Such as hardware (2), operating system (3), application (4).
        """
        self._endian, self._units = ENDIAN[order], []
        body = struct.pack(f"{self._endian}IHHq", 0x1A2B3C4D, *version, length)
        return self.block(0x0A0D0D0A, body + self.options(options))

    def interface(
        self,
        *,
        link: int = 1,
        snaplen: int = 262144,
        tsresol: int | None = None,
        tsoffset: int | None = None,
        options: Iterable[Option] = (),
    ) -> Self:
        """Describe the next interface.

        Parameters
        ----------
        link
            Link type.
        snaplen
            In bytes; 0 for no limit.
        tsresol
            The byte of if_tsresol: a power of ten, or of two with the high bit set; absent (then
            microseconds) if not given.
        tsoffset
            Seconds that are added to every time stamp; absent if not given.
        options
            Further options.
        """
        extra: list[Option] = []
        if tsresol is not None:
            extra.append(Option(9, bytes([tsresol])))
        if tsoffset is not None:
            extra.append(Option(14, struct.pack(f"{self._endian}q", tsoffset)))
        resolution = 6 if tsresol is None else tsresol
        base = 2 if resolution & 0x80 else 10
        self._units.append((base ** (resolution & 0x7F), tsoffset or 0))
        body = struct.pack(f"{self._endian}HHI", link, 0, snaplen)
        return self.block(1, body + self.options([*extra, *options]))

    def ticks(self, time_ns: int, interface: int = 0) -> int:
        """Give a time in the units of an interface; microseconds if there is none."""
        units = self._units[interface : interface + 1] or [(1_000_000, 0)]
        per_second, offset = units[0]
        return (time_ns - offset * 1_000_000_000) * per_second // 1_000_000_000

    def packet(
        self,
        frame: bytes,
        *,
        time_ns: int = 0,
        interface: int = 0,
        wire: int | None = None,
        captured: int | None = None,
        ticks: int | None = None,
        options: Iterable[Option] = (),
    ) -> Self:
        """Add an enhanced packet block.

        Parameters
        ----------
        frame
            The captured bytes.
        time_ns
            Nanoseconds since the epoch.
        interface
            Its number in the section.
        wire
            Length on the wire; as captured if not given.
        captured
            The captured-length field, if it shall lie.
        ticks
            The time stamp in units of the interface, instead of `time_ns`.
        options
            Such as a comment (1), flags (2), a hash (3).
        """
        stamp = self.ticks(time_ns, interface) if ticks is None else ticks
        size = len(frame) if captured is None else captured
        head = struct.pack(
            f"{self._endian}IIIII",
            interface,
            stamp >> 32,
            stamp & 0xFFFFFFFF,
            size,
            size if wire is None else wire,
        )
        return self.block(6, head + frame + bytes(-len(frame) % 4) + self.options(options))

    def obsolete(
        self,
        frame: bytes,
        *,
        time_ns: int = 0,
        interface: int = 0,
        drops: int = 0xFFFF,
        wire: int | None = None,
        options: Iterable[Option] = (),
    ) -> Self:
        """Add an obsolete packet block; `drops` 65,535 means unknown."""
        stamp = self.ticks(time_ns, interface)
        head = struct.pack(
            f"{self._endian}HHIIII",
            interface,
            drops,
            stamp >> 32,
            stamp & 0xFFFFFFFF,
            len(frame),
            len(frame) if wire is None else wire,
        )
        return self.block(2, head + frame + bytes(-len(frame) % 4) + self.options(options))

    def simple(self, frame: bytes, *, wire: int | None = None) -> Self:
        """Add a simple packet block, of interface 0 and without time."""
        head = struct.pack(f"{self._endian}I", len(frame) if wire is None else wire)
        return self.block(3, head + frame)

    def statistics(self, interface: int = 0, *, options: Iterable[Option] = ()) -> Self:
        """Add an interface statistics block at time 0."""
        head = struct.pack(f"{self._endian}III", interface, 0, 0)
        return self.block(5, head + self.options(options))
