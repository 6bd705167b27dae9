"""Builders of TCP (RFC 9293), UDP-Lite (RFC 3828), ICMP errors and queries, and GRE (RFC 2784).

As everywhere in `fragtrack.testing`, what is not said is right, and every length, flag and
checksum has a knob. SCTP stands in `fragtrack.testing.chunks`, UDP in
`fragtrack.testing.transport`.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import TYPE_CHECKING, Final, Literal

from fragtrack.testing.transport import (
    DESTINATION4,
    DESTINATION6,
    ICMPV6,
    SOURCE4,
    SOURCE6,
    checksum,
    pseudo_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "gre",
    "icmp_error",
    "icmp_query",
    "icmpv6_error",
    "icmpv6_query",
    "icmpv6_redirect",
    "tcp",
    "tcp_flags",
    "tcp_options",
    "udplite",
]

TCP, UDPLITE = 6, 136
FLAG_LETTERS: Final = "FSRPAUEC"
"""FIN, SYN, RST, PSH, ACK, URG, ECE, CWR: the bits of the flag byte from the lowest on."""

_WORD: Final = 0xFFFF_FFFF
_PPP: Final = 0x880B


# ---------------------------------------------------------------------------------------- TCP


def tcp_flags(flags: str | int) -> int:
    """Give the flag byte that letters stand for; a number stands for itself.

    Raises
    ------
    ValueError
        If a letter is none of ``FSRPAUEC``.

    Examples
    --------
    >>> tcp_flags("SA"), tcp_flags(""), tcp_flags(0xFF)
    (18, 0, 255)
    """
    if isinstance(flags, int):
        return flags
    value = 0
    for letter in flags:
        if letter not in FLAG_LETTERS:
            raise ValueError(f"flag {letter!r} is none of {FLAG_LETTERS}")
        value |= 1 << FLAG_LETTERS.index(letter)
    return value


def tcp_options(
    *,
    mss: int | None = None,
    wscale: int | None = None,
    sack_permitted: bool = False,
    timestamps: tuple[int, int] | None = None,
    sack: Iterable[tuple[int, int]] = (),
) -> bytes:
    """Build TCP options, in this order, padded with no-operations to a multiple of 4 bytes.

    Parameters
    ----------
    mss
        Maximum segment size (kind 2).
    wscale
        Shift of the window (kind 3).
    sack_permitted
        Whether selective acknowledgments may be sent (kind 4).
    timestamps
        Value and echoed value (kind 8).
    sack
        Blocks of a selective acknowledgment: left and right edge (kind 5).

    Examples
    --------
    >>> tcp_options(mss=1460, wscale=7, sack_permitted=True).hex(" ", 4)
    '020405b4 03030704 02010101'
    >>> tcp_options(sack=[(1000, 2000)]).hex(" ", 4)
    '050a0000 03e80000 07d00101'
    """
    built = b""
    if mss is not None:
        built += struct.pack(">BBH", 2, 4, mss)
    if wscale is not None:
        built += struct.pack(">BBB", 3, 3, wscale)
    if sack_permitted:
        built += b"\x04\x02"
    if timestamps is not None:
        built += struct.pack(">BBII", 8, 10, timestamps[0] & _WORD, timestamps[1] & _WORD)
    blocks = b"".join(struct.pack(">II", left & _WORD, right & _WORD) for left, right in sack)
    if blocks:
        built += struct.pack(">BB", 5, 2 + len(blocks)) + blocks
    return built + b"\x01" * (-len(built) % 4)


def tcp(
    payload: bytes = b"",
    *,
    src: str = SOURCE4,
    dst: str = DESTINATION4,
    sport: int = 1024,
    dport: int = 80,
    seq: int = 0,
    ack: int = 0,
    flags: str | int = "A",
    window: int = 65535,
    options: bytes = b"",
    urgent: int = 0,
    checksum_value: int | Literal["bad", "offload"] | None = None,
    data_offset: int | None = None,
) -> bytes:
    """Build a TCP segment.

    Parameters
    ----------
    payload
        The data.
    src, dst
        Addresses for the checksum, IPv4 or IPv6; those of the packet it goes into.
    sport, dport
        Ports.
    seq, ack
        Numbers, taken modulo 2**32.
    flags
        Letters out of ``FSRPAUEC`` (E is ECE, C is CWR), ``"SA"`` for example; or the byte.
    window
        Window field, unscaled.
    options
        As `tcp_options` builds them; padded here with no-operations to a multiple of 4 bytes.
    urgent
        Urgent pointer.
    checksum_value
        Checksum field; ``"bad"`` flips one bit of the right one, ``"offload"`` is what a sender
        leaves whose network card is to finish it: the folded sum of the pseudo header.
    data_offset
        Header length field in 32-bit words, if it shall lie.

    Examples
    --------
    >>> tcp(b"hi", sport=7, dport=9, seq=1, ack=2, flags="PA").hex(" ", -4)
    '00070009 00000001 00000002 5018ffff 5b170000 6869'
    """
    options += b"\x01" * (-len(options) % 4)
    words = 5 + len(options) // 4 if data_offset is None else data_offset
    head = struct.pack(
        ">HHIIBBH", sport, dport, seq & _WORD, ack & _WORD, words << 4, tcp_flags(flags), window
    )
    tail = struct.pack(">H", urgent) + options + payload
    length = len(head) + 2 + len(tail)
    sums = pseudo_header(src, dst, length, TCP)
    if checksum_value == "offload":
        value = ~checksum(sums) & 0xFFFF
    elif checksum_value is None or checksum_value == "bad":
        value = checksum(sums + head + b"\0\0" + tail) ^ (checksum_value == "bad")
    else:
        value = checksum_value
    return head + struct.pack(">H", value) + tail


# ----------------------------------------------------------------------------------- UDP-Lite


def udplite(
    payload: bytes,
    *,
    src: str = SOURCE4,
    dst: str = DESTINATION4,
    sport: int = 1024,
    dport: int = 53,
    coverage: int = 0,
    checksum_value: int | None = None,
) -> bytes:
    """Build a UDP-Lite datagram (protocol 136).

    Parameters
    ----------
    payload
        The data.
    src, dst
        Addresses for the checksum, IPv4 or IPv6; those of the packet it goes into.
    sport, dport
        Ports.
    coverage
        Bytes that the checksum covers, from the header on; 0 is all.
    checksum_value
        Checksum field; the right one if not given, for the coverage that there can be.

    Examples
    --------
    >>> udplite(b"hi", sport=7, dport=9, coverage=8).hex(" ", 2)
    '0007 0009 0008 131e 6869'
    """
    whole = struct.pack(">HHHH", sport, dport, coverage, 0) + payload
    if checksum_value is None:
        covered = whole if coverage == 0 else whole[:coverage]
        sums = pseudo_header(src, dst, len(whole), UDPLITE)
        checksum_value = checksum(sums + covered) or 0xFFFF
    return whole[:6] + struct.pack(">H", checksum_value) + payload


# --------------------------------------------------------------------------------------- ICMP


def icmp_query(
    kind: int,
    payload: bytes = b"",
    *,
    code: int = 0,
    ident: int = 1,
    sequence: int = 1,
    bad: bool = False,
) -> bytes:
    """Build an ICMP message with identifier and sequence number: echo 8/0, timestamp 13/14 ...

    The checksum is wrong by one bit if `bad`.

    >>> icmp_query(13, bytes(12), ident=9)[:8].hex(" ", 4)
    '0d00f2f5 00090001'
    """
    rest = (ident << 16 | sequence) & _WORD
    return _icmp(b"", kind, code, struct.pack(">I", rest) + payload, bad=bad)


def icmp_error(
    kind: int, code: int = 0, quote: bytes = b"", *, rest: int = 0, bad: bool = False
) -> bytes:
    """Build an ICMP error (RFC 792).

    Parameters
    ----------
    kind, code
        3 destination unreachable, 4 source quench, 5 redirect, 11 time exceeded, 12 parameter
        problem; 3 with code 4 is "fragmentation needed".
    quote
        The packet it is about, from its IP header on; as much of it as shall be quoted.
    rest
        The 32 bits in between: next-hop MTU, gateway or pointer.
    bad
        Flip one bit of the checksum.

    Examples
    --------
    >>> icmp_error(3, 4, b"quoted packet", rest=1400)[:8].hex(" ", 4)
    '03044ffc 00000578'
    """
    return _icmp(b"", kind, code, struct.pack(">I", rest) + quote, bad=bad)


def icmpv6_query(
    kind: int,
    payload: bytes = b"",
    *,
    src: str = SOURCE6,
    dst: str = DESTINATION6,
    code: int = 0,
    ident: int = 1,
    sequence: int = 1,
    bad: bool = False,
) -> bytes:
    """Build an ICMPv6 message whose first 32 bits are an identifier and a sequence number.

    That is an echo (128, 129); or, with those bits as whatever else they mean, node information
    (139, 140), neighbor discovery (133 to 137), multicast listener discovery (130 to 132, 143).

    >>> icmpv6_query(139, ident=2)[:2].hex()
    '8b00'
    """
    rest = (ident << 16 | sequence) & _WORD
    sums = (src, dst)
    return _icmpv6(sums, kind, code, struct.pack(">I", rest) + payload, bad=bad)


def icmpv6_error(
    kind: int,
    code: int = 0,
    quote: bytes = b"",
    *,
    src: str = SOURCE6,
    dst: str = DESTINATION6,
    rest: int = 0,
    bad: bool = False,
) -> bytes:
    """Build an ICMPv6 error (RFC 4443): 1 unreachable, 2 too big, 3 time exceeded, 4 parameter.

    `src` and `dst` are those of the error itself; the other parameters are those of `icmp_error`.

    >>> icmpv6_error(2, 0, b"quoted packet", rest=1280)[4:8].hex()
    '00000500'
    """
    return _icmpv6((src, dst), kind, code, struct.pack(">I", rest) + quote, bad=bad)


def icmpv6_redirect(
    quote: bytes,
    *,
    src: str = "fe80::1",
    dst: str = SOURCE6,
    target: str = "fe80::2",
    destination: str = DESTINATION6,
    header_option: bool = True,
) -> bytes:
    """Build an ICMPv6 redirect (RFC 4861 section 4.5).

    Parameters
    ----------
    quote
        The packet it is about; padded here with zeros to a multiple of 8 bytes.
    src, dst
        Addresses of the redirect itself; `src` must be the link-local one of a router.
    target, destination
        The better first hop, and for which destination.
    header_option
        Whether the quote is there, in a redirected header option (type 4).

    Examples
    --------
    >>> icmpv6_redirect(bytes(40))[40:44].hex()
    '04060000'
    """
    body = bytes(4) + ipaddress.IPv6Address(target).packed
    body += ipaddress.IPv6Address(destination).packed
    if header_option:
        quote += bytes(-len(quote) % 8)
        body += struct.pack(">BB6x", 4, 1 + len(quote) // 8) + quote
    return _icmpv6((src, dst), 137, 0, body, bad=False)


def _icmp(sums: bytes, kind: int, code: int, rest: bytes, *, bad: bool) -> bytes:
    value = checksum(sums + struct.pack(">BBH", kind, code, 0) + rest) ^ bad
    return struct.pack(">BBH", kind, code, value) + rest


def _icmpv6(ends: tuple[str, str], kind: int, code: int, rest: bytes, *, bad: bool) -> bytes:
    return _icmp(pseudo_header(*ends, 4 + len(rest), ICMPV6), kind, code, rest, bad=bad)


# ---------------------------------------------------------------------------------------- GRE


def gre(
    payload: bytes = b"",
    *,
    protocol: int | None = None,
    version: int = 0,
    key: int | None = None,
    sequence: int | None = None,
    acknowledgment: int | None = None,
    call_id: int | None = None,
) -> bytes:
    """Build a GRE packet (protocol 47): version 0 of RFC 2784 and 2890, or PPTP's version 1.

    Parameters
    ----------
    payload
        What it carries.
    protocol
        Ethernet type of the payload; if not given 0x0800, or 0x880b (PPP) for version 1.
    version
        0, or 1 for PPTP (RFC 2637).
    key, sequence, acknowledgment
        Those fields, with their flags, where given.
    call_id
        Version 1: the key field holds the length of the payload and this call.

    Examples
    --------
    >>> gre(b"data", key=7).hex(" ", 4)
    '20000800 00000007 64617461'
    >>> gre(b"data", version=1, call_id=5, sequence=0).hex(" ", 4)
    '3001880b 00040005 00000000 64617461'
    """
    if protocol is None:
        protocol = _PPP if version == 1 else 0x0800
    if call_id is not None:
        key = len(payload) << 16 | call_id
    flags = (key is not None) << 13 | (sequence is not None) << 12
    flags |= (acknowledgment is not None) << 7 | version
    fields = (word for word in (key, sequence, acknowledgment) if word is not None)
    head = struct.pack(">HH", flags, protocol)
    return head + b"".join(struct.pack(">I", word & _WORD) for word in fields) + payload
