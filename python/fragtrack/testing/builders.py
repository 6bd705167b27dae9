"""Builders of IP packets and fragments, sound or deliberately broken.

Every length, flag and checksum has a knob; what is not said is right. Nothing here knows the
decoder of this package: the numbers are those of RFC 791 for IPv4 and RFC 8200 for IPv6.

Examples
--------
>>> from fragtrack.testing.transport import udp
>>> whole = ipv4(udp(b"A" * 40, src="192.0.2.1", dst="198.51.100.2"), id=7)
>>> [len(piece) for piece in fragment(whole, sizes=[16, 16])]
[36, 36, 36]
"""

from __future__ import annotations

import ipaddress
import struct
from itertools import repeat
from typing import TYPE_CHECKING, Literal, NamedTuple

from fragtrack.testing.transport import (
    DESTINATION4,
    DESTINATION6,
    SOURCE4,
    SOURCE6,
    checksum,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "ATOMIC",
    "DESTINATION_OPTIONS",
    "FRAGMENT",
    "HOP_BY_HOP",
    "ICMP",
    "ICMPV6",
    "NO_NEXT_HEADER",
    "ROUTING",
    "TCP",
    "UDP",
    "Extension",
    "destination_options",
    "fragment",
    "fragment_header",
    "hop_by_hop",
    "ipv4",
    "ipv6",
    "ipv6_fragment",
    "options_header",
    "routing",
]

HOP_BY_HOP = 0
ICMP = 1
TCP = 6
UDP = 17
ROUTING = 43
FRAGMENT = 44
ICMPV6 = 58
NO_NEXT_HEADER = 59
DESTINATION_OPTIONS = 60

#: Sizes for `fragment` that make one IPv6 atomic fragment (RFC 6946).
ATOMIC: tuple[int, ...] = ()


class Extension(NamedTuple):
    """An IPv6 extension header: its number, and its bytes from the third on.

    The first two bytes, next header and length, are filled in where it is placed, except that a
    fragment header's second byte is reserved and comes with the body.
    """

    kind: int
    body: bytes


# --------------------------------------------------------------------------------------- IPv4


def ipv4(
    payload: bytes,
    *,
    src: str = SOURCE4,
    dst: str = DESTINATION4,
    protocol: int = UDP,
    id: int = 1,  # noqa: A002 - the field's own name
    ttl: int = 64,
    tos: int = 0,
    ecn: int = 0,
    df: bool = False,
    mf: bool = False,
    reserved: bool = False,
    offset: int = 0,
    options: bytes = b"",
    total_length: int | None = None,
    header_words: int | None = None,
    version: int = 4,
    header_checksum: int | Literal["bad"] | None = None,
) -> bytes:
    """Build an IPv4 packet or fragment.

    Parameters
    ----------
    payload
        What follows the header.
    src, dst
        Addresses.
    protocol, id, ttl
        Fields of the header.
    tos, ecn
        The type of service byte; `ecn` is OR-ed into its low two bits.
    df, mf, reserved
        The three flags.
    offset
        Of the payload within the datagram, in bytes, a multiple of 8 up to 65,528.
    options
        IP options, padded here with zeros to a multiple of 4 bytes, at most 40 bytes.
    total_length, header_words, version
        Those fields, if they shall lie.
    header_checksum
        ``"bad"`` flips one bit of the right value.

    Raises
    ------
    ValueError
        If the offset or the options cannot be written.

    Examples
    --------
    >>> ipv4(b"12345678", id=0xABCD, mf=True, offset=16).hex(" ", 4)
    '4500001c abcd2002 4011c2ca c0000201 c6336402 31323334 35363738'
    """
    if offset % 8 or not 0 <= offset <= 65528:
        raise ValueError(f"offset {offset} is no multiple of 8 between 0 and 65528")
    options += bytes(-len(options) % 4)
    if len(options) > 40:
        raise ValueError(f"{len(options)} bytes of options, at most 40 fit")
    words = 5 + len(options) // 4 if header_words is None else header_words
    total = 20 + len(options) + len(payload) if total_length is None else total_length
    flags = reserved << 15 | df << 14 | mf << 13 | offset // 8
    addresses = ipaddress.IPv4Address(src).packed + ipaddress.IPv4Address(dst).packed
    head = struct.pack(
        ">BBHHHBBH", version << 4 | words, tos | ecn, total, id, flags, ttl, protocol, 0
    )
    value = checksum(head + addresses + options)
    if header_checksum == "bad":
        value ^= 1
    elif header_checksum is not None:
        value = header_checksum
    return head[:10] + struct.pack(">H", value) + addresses + options + payload


def _fragment4(packet: bytes, sizes: Iterator[int]) -> Iterator[bytes]:
    """Cut an IPv4 packet; later pieces carry the options with the copied flag (RFC 791, 3.1)."""
    header = (packet[0] & 15) * 4
    total = int.from_bytes(packet[2:4])
    payload, fields = packet[header:total], int.from_bytes(packet[6:8])
    first, others = packet[20:header], _copied_options(packet[20:header])
    base = (fields & 0x1FFF) * 8
    for start, stop in _cuts(len(payload), sizes):
        yield ipv4(
            payload[start:stop],
            src=str(ipaddress.IPv4Address(packet[12:16])),
            dst=str(ipaddress.IPv4Address(packet[16:20])),
            protocol=packet[9],
            id=int.from_bytes(packet[4:6]),
            ttl=packet[8],
            tos=packet[1],
            df=bool(fields & 0x4000),
            mf=stop < len(payload) or bool(fields & 0x2000),
            reserved=bool(fields & 0x8000),
            offset=base + start,
            options=others if start else first,
        )


def _copied_options(options: bytes) -> bytes:
    """Keep the options whose copied flag is set."""
    kept, at = b"", 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        length = max(options[at + 1], 2) if at + 1 < len(options) else 1
        if options[at] & 0x80:
            kept += options[at : at + length]
        at += length
    return kept


# --------------------------------------------------------------------------------------- IPv6


def options_header(kind: int, options: bytes = b"") -> Extension:
    """Build an options header of `kind`, padded with Pad1 or PadN to a multiple of 8 bytes.

    >>> options_header(HOP_BY_HOP).body.hex()
    '010400000000'
    """
    gap = -(2 + len(options)) % 8 if options else 6
    pad = b"" if gap == 0 else b"\0" if gap == 1 else bytes([1, gap - 2]) + bytes(gap - 2)
    return Extension(kind, options + pad)


def hop_by_hop(options: bytes = b"") -> Extension:
    """Build a hop-by-hop options header (RFC 8200 section 4.3)."""
    return options_header(HOP_BY_HOP, options)


def destination_options(options: bytes = b"") -> Extension:
    """Build a destination options header (RFC 8200 section 4.6)."""
    return options_header(DESTINATION_OPTIONS, options)


def routing(data: bytes = bytes(4), *, kind: int = 253, left: int = 0) -> Extension:
    """Build a routing header (RFC 8200 section 4.4) whose length is a multiple of 8 bytes.

    >>> routing().body.hex()
    'fd0000000000'
    """
    return Extension(ROUTING, bytes([kind, left]) + data + bytes(-(4 + len(data)) % 8))


def fragment_header(
    *,
    id: int = 1,  # noqa: A002 - the field's own name
    offset: int = 0,
    more: bool = False,
    reserved: int = 0,
    reserved_bits: int = 0,
) -> Extension:
    """Build a fragment header (RFC 8200 section 4.5).

    Parameters
    ----------
    id
        Identification, 32 bits.
    offset
        In bytes, a multiple of 8 up to 65,528.
    more
        The M flag.
    reserved, reserved_bits
        The reserved byte and the two reserved bits.

    Examples
    --------
    >>> fragment_header(id=5, offset=16, more=True).body.hex()
    '00001100000005'
    """
    if offset % 8 or not 0 <= offset <= 65528:
        raise ValueError(f"offset {offset} is no multiple of 8 between 0 and 65528")
    body = struct.pack(">BHI", reserved, offset | reserved_bits << 1 | more, id)
    return Extension(FRAGMENT, body)


def ipv6(
    payload: bytes,
    *,
    src: str = SOURCE6,
    dst: str = DESTINATION6,
    next_header: int = UDP,
    hop_limit: int = 64,
    traffic_class: int = 0,
    ecn: int = 0,
    flow_label: int = 0,
    extensions: Iterable[Extension] = (),
    payload_length: int | None = None,
    version: int = 6,
) -> bytes:
    """Build an IPv6 packet.

    Parameters
    ----------
    payload
        What follows the last extension header.
    src, dst
        Addresses.
    next_header
        Protocol of the payload; the last extension header names it.
    hop_limit, traffic_class, flow_label
        Fields of the header; `ecn` is OR-ed into the low two bits of the traffic class.
    extensions
        Extension headers in order.
    payload_length, version
        Those fields, if they shall lie.

    Examples
    --------
    >>> ipv6(b"12345678", extensions=[fragment_header(id=9)])[:8].hex(" ", 4)
    '60000000 00102c40'
    """
    headers = list(extensions)
    kinds = [extension.kind for extension in headers] + [next_header]
    chained = b""
    for extension, following in zip(headers, kinds[1:], strict=True):
        chained += bytes([following])
        if extension.kind != FRAGMENT:
            chained += bytes([(len(extension.body) + 2) // 8 - 1 & 0xFF])
        chained += extension.body
    length = len(chained) + len(payload) if payload_length is None else payload_length
    words = version << 28 | (traffic_class | ecn) << 20 | flow_label
    addresses = ipaddress.IPv6Address(src).packed + ipaddress.IPv6Address(dst).packed
    return struct.pack(">IHBB", words, length, kinds[0], hop_limit) + addresses + chained + payload


def ipv6_fragment(
    payload: bytes,
    *,
    src: str = SOURCE6,
    dst: str = DESTINATION6,
    id: int = 1,  # noqa: A002 - the field's own name
    offset: int = 0,
    more: bool = False,
    next_header: int = UDP,
    before: Iterable[Extension] = (),
    hop_limit: int = 64,
    ecn: int = 0,
    payload_length: int | None = None,
) -> bytes:
    """Build an IPv6 fragment: `before`, the fragment header, the payload.

    >>> ipv6_fragment(b"12345678", id=5, offset=8, more=True)[40:].hex(" ", 4)
    '11000009 00000005 31323334 35363738'
    """
    return ipv6(
        payload,
        src=src,
        dst=dst,
        next_header=next_header,
        hop_limit=hop_limit,
        ecn=ecn,
        extensions=[*before, fragment_header(id=id, offset=offset, more=more)],
        payload_length=payload_length,
    )


def _unfragmentable(packet: bytes) -> tuple[int, int]:
    """Find where the fragment header goes, and the next-header byte in front of it.

    Behind the hop-by-hop header, or behind the last routing header (RFC 8200 section 4.5).
    """
    end, pointer = 40, 6
    at, kind = 40, packet[6]
    while kind in {HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS}:
        following = at + (packet[at + 1] + 1) * 8
        if kind != DESTINATION_OPTIONS:
            end, pointer = following, at
        kind, at = packet[at], following
    return end, pointer


def _fragment6(packet: bytes, sizes: Iterator[int], ident: int) -> Iterator[bytes]:
    end, pointer = _unfragmentable(packet)
    payload = packet[end : 40 + int.from_bytes(packet[4:6])]
    for start, stop in _cuts(len(payload), sizes):
        head = bytearray(packet[:end])
        header = fragment_header(id=ident, offset=start, more=stop < len(payload))
        piece = bytes([head[pointer]]) + header.body + payload[start:stop]
        head[pointer] = FRAGMENT
        head[4:6] = struct.pack(">H", end - 40 + len(piece))
        yield bytes(head) + piece


# ------------------------------------------------------------------------------- fragmentation


def _cuts(length: int, sizes: Iterator[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for size in sizes:
        if size < 8 or size % 8:
            raise ValueError(f"a fragment that others follow cannot have {size} bytes")
        if start + size >= length:
            break
        yield start, start + size
        start += size
    yield start, length


def fragment(
    packet: bytes,
    sizes: Sequence[int] | None = None,
    *,
    mtu: int | None = None,
    id: int = 1,  # noqa: A002 - the field's own name
) -> list[bytes]:
    """Cut a packet into fragments as a router (IPv4) or the sender (IPv6) would.

    Parameters
    ----------
    packet
        An IPv4 or IPv6 packet. An IPv4 fragment may be cut again.
    sizes
        Payload bytes of each fragment but the last, multiples of 8; the last takes the rest.
        For IPv6 an empty sequence (`ATOMIC`) makes one atomic fragment.
    mtu
        Instead of sizes: the most bytes that a fragment may have, header included.
    id
        IPv6 identification; IPv4 fragments keep that of the packet.

    Returns
    -------
    list of bytes
        In offset order.

    Raises
    ------
    ValueError
        If neither or both of `sizes` and `mtu` are given, or a size is impossible.

    Examples
    --------
    >>> [len(piece) for piece in fragment(ipv4(bytes(3000)), mtu=1500)]
    [1500, 1500, 60]
    >>> [len(piece) for piece in fragment(ipv6(bytes(3000)), mtu=1500)]
    [1496, 1496, 152]
    """
    if (sizes is None) == (mtu is None):
        raise ValueError("give either sizes or mtu")
    version = packet[0] >> 4
    if sizes is not None:
        steps: Iterator[int] = iter(sizes)
    else:
        header = (packet[0] & 15) * 4 if version == 4 else _unfragmentable(packet)[0] + 8
        steps = repeat(((mtu or 0) - header) & ~7)
    if version == 4:
        return list(_fragment4(packet, steps))
    return list(_fragment6(packet, steps, id))
