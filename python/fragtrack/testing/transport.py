"""Builders of what goes into an IP packet: UDP (RFC 768), ICMP (RFC 792), ICMPv6 (RFC 4443)."""

from __future__ import annotations

import ipaddress
import struct

__all__ = ["checksum", "icmp_echo", "icmpv6_echo", "pattern", "pseudo_header", "udp"]

UDP, ICMPV6 = 17, 58
SOURCE4, DESTINATION4 = "192.0.2.1", "198.51.100.2"
SOURCE6, DESTINATION6 = "2001:db8::1", "2001:db8::2"


def checksum(data: bytes) -> int:
    """Compute the Internet checksum (RFC 1071) of `data`, an odd last byte padded with zero.

    >>> hex(checksum(bytes.fromhex("0001f203f4f5f6f7")))
    '0x220d'
    """
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pattern(length: int, letter: str = "A") -> bytes:
    """Make bytes that show where they come from: per 8 bytes, a letter and the offset in hex.

    >>> pattern(20, "B")
    b'B000000:B000008:B000'
    """
    return "".join(f"{letter}{at:06x}:" for at in range(0, length, 8)).encode()[:length]


def pseudo_header(src: str, dst: str, length: int, protocol: int) -> bytes:
    """Build the pseudo header that UDP and ICMPv6 sum: RFC 768, RFC 8200 section 8.1."""
    source, destination = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if source.version == 4:
        return source.packed + destination.packed + struct.pack(">BBH", 0, protocol, length)
    return source.packed + destination.packed + struct.pack(">IHBB", length, 0, 0, protocol)


def udp(
    payload: bytes,
    *,
    src: str = SOURCE4,
    dst: str = DESTINATION4,
    sport: int = 1024,
    dport: int = 53,
    length: int | None = None,
    checksum_value: int | None = None,
) -> bytes:
    """Build a UDP datagram.

    Parameters
    ----------
    payload
        The data.
    src, dst
        Addresses for the checksum, IPv4 or IPv6; those of the packet it goes into.
    sport, dport
        Ports.
    length
        Length field in bytes; the true one if not given.
    checksum_value
        Checksum field; the right one if not given.

    Examples
    --------
    >>> udp(b"hi", sport=7, dport=9).hex(" ", 2)
    '0007 0009 000a ab29 6869'
    """
    size = 8 + len(payload) if length is None else length
    head = struct.pack(">HHHH", sport, dport, size, 0)
    if checksum_value is None:
        summed = pseudo_header(src, dst, size & 0xFFFF, UDP) + head + payload
        checksum_value = checksum(summed) or 0xFFFF
    return struct.pack(">HHHH", sport, dport, size, checksum_value) + payload


def icmp_echo(
    payload: bytes, *, reply: bool = False, ident: int = 1, sequence: int = 1, bad: bool = False
) -> bytes:
    """Build an ICMP echo message, its checksum wrong by one bit if `bad`.

    >>> icmp_echo(b"ping").hex(" ", 4)
    '0800192d 00010001 70696e67'
    """
    kind = 0 if reply else 8
    value = checksum(struct.pack(">BBHHH", kind, 0, 0, ident, sequence) + payload) ^ bad
    return struct.pack(">BBHHH", kind, 0, value, ident, sequence) + payload


def icmpv6_echo(
    payload: bytes,
    *,
    src: str = SOURCE6,
    dst: str = DESTINATION6,
    reply: bool = False,
    ident: int = 1,
    sequence: int = 1,
    bad: bool = False,
) -> bytes:
    """Build an ICMPv6 echo message, its checksum wrong by one bit if `bad`.

    >>> icmpv6_echo(b"ping")[:2].hex()
    '8000'
    """
    kind = 129 if reply else 128
    bare = struct.pack(">BBHHH", kind, 0, 0, ident, sequence) + payload
    value = checksum(pseudo_header(src, dst, len(bare), ICMPV6) + bare) ^ bad
    return struct.pack(">BBHHH", kind, 0, value, ident, sequence) + payload
