"""Builders of frames: an IP packet wrapped for each link layer that captures know.

The layouts are those of https://www.tcpdump.org/linktypes.html, IEEE 802.3 and 802.1Q, RFC 1042
(SNAP), RFC 1662 (PPP), RFC 2516 (PPPoE) and RFC 3032 (MPLS).

Examples
--------
>>> from fragtrack.testing.builders import ipv4
>>> ethernet(ipv4(b""), vlans=[10]).hex(" ", 2)[:49]
'0200 0000 0002 0200 0000 0001 8100 000a 0800 4500'
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LINK_C_HDLC",
    "LINK_ETHERNET",
    "LINK_IPV4",
    "LINK_IPV6",
    "LINK_LOOP",
    "LINK_NULL",
    "LINK_PPP",
    "LINK_PPPOE",
    "LINK_PPP_HDLC",
    "LINK_RAW",
    "LINK_SLL",
    "LINK_SLL2",
    "cisco_hdlc",
    "ethernet",
    "ethertype_of",
    "mpls",
    "null",
    "ppp",
    "pppoe",
    "sll",
    "sll2",
]

LINK_NULL = 0
LINK_ETHERNET = 1
LINK_PPP = 9
LINK_PPP_HDLC = 50
LINK_PPPOE = 51
LINK_RAW = 101
LINK_C_HDLC = 104
LINK_LOOP = 108
LINK_SLL = 113
LINK_IPV4 = 228
LINK_IPV6 = 229
LINK_SLL2 = 276

DESTINATION = bytes.fromhex("020000000002")
SOURCE = bytes.fromhex("020000000001")


def _is_ipv6(packet: bytes) -> bool:
    return packet[:1] >= b"\x60"


def ethertype_of(packet: bytes) -> int:
    """Give the ethertype of an IP packet: 0x0800, or 0x86dd if its version is 6.

    >>> hex(ethertype_of(bytes([0x60])))
    '0x86dd'
    """
    return 0x86DD if _is_ipv6(packet) else 0x0800


def mpls(packet: bytes, labels: Sequence[int], *, ttl: int = 64) -> bytes:
    """Put a stack of labels in front of a packet, the bottom bit on the last one.

    >>> mpls(b"", [16, 17]).hex(" ", 4)
    '00010040 00011140'
    """
    last = len(labels) - 1
    stack = [
        struct.pack(">I", label << 12 | (at == last) << 8 | ttl) for at, label in enumerate(labels)
    ]
    return b"".join(stack) + packet


def pppoe(
    packet: bytes,
    session: int = 1,
    *,
    compressed: bool = False,
    length: int | None = None,
    code: int = 0,
) -> bytes:
    """Wrap a packet into a PPPoE session frame, from the PPPoE header on (link type 51).

    Parameters
    ----------
    packet
        An IP packet.
    session
        Session id.
    compressed
        Whether the PPP protocol takes one byte.
    length
        The length field; the true one if not given, at most 65,535.
    code
        0 for a session.

    Examples
    --------
    >>> pppoe(bytes([0x45]), session=7).hex(" ", -2)
    '1100 0007 0003 0021 45'
    """
    inner = _ppp_protocol(packet, compressed=compressed) + packet
    size = min(len(inner), 65535) if length is None else length
    return struct.pack(">BBHH", 0x11, code, session, size) + inner


def _ppp_protocol(packet: bytes, *, compressed: bool) -> bytes:
    number = 0x57 if _is_ipv6(packet) else 0x21
    return bytes([number]) if compressed else bytes([0, number])


def ppp(packet: bytes, *, address: bool = True, compressed: bool = False) -> bytes:
    """Wrap a packet into PPP (link types 9 and 50).

    Parameters
    ----------
    packet
        An IP packet.
    address
        Whether address and control, FF 03, stand in front.
    compressed
        Whether the protocol takes one byte.

    Examples
    --------
    >>> ppp(bytes([0x60])).hex()
    'ff03005760'
    """
    return b"\xff\x03" * address + _ppp_protocol(packet, compressed=compressed) + packet


def ethernet(
    packet: bytes,
    *,
    vlans: Sequence[int] = (),
    tag_types: Sequence[int] = (),
    labels: Sequence[int] = (),
    session: int | None = None,
    snap: bool = False,
    ethertype: int | None = None,
    source: bytes = SOURCE,
    destination: bytes = DESTINATION,
    minimum: int = 0,
    padding: bytes = b"\0",
) -> bytes:
    """Wrap a packet into an Ethernet frame without check sequence (link type 1).

    Parameters
    ----------
    packet
        An IP packet, or anything with `ethertype` given.
    vlans
        Tag control information, outermost first: 12 bits of VLAN id, above them priority.
    tag_types
        Tag protocol identifiers, outermost first; 0x8100 for those not given.
    labels
        MPLS labels between the tags and the packet.
    session
        A PPPoE session id, if the packet goes inside one.
    snap
        IEEE 802.3 length, LLC and SNAP instead of an ethertype.
    ethertype
        The last ethertype; that of the content if not given.
    source, destination
        Six bytes each.
    minimum
        Fill up with `padding` to so many bytes; a real Ethernet has 60.
    padding
        One byte.

    Examples
    --------
    >>> ethernet(bytes([0x45]), vlans=[10, 20], tag_types=[0x88A8]).hex(" ", -2)
    '0200 0000 0002 0200 0000 0001 88a8 000a 8100 0014 0800 45'
    >>> ethernet(bytes([0x45]), snap=True)[12:].hex(" ", 1)
    '00 09 aa aa 03 00 00 00 08 00 45'
    """
    kind = ethertype_of(packet) if ethertype is None else ethertype
    if session is not None:
        packet, kind = pppoe(packet, session), 0x8864
    if labels:
        packet, kind = mpls(packet, labels), 0x8847
    if snap:
        packet = b"\xaa\xaa\x03\0\0\0" + struct.pack(">H", kind) + packet
        kind = len(packet)
    tags = b""
    for at, control in enumerate(vlans):
        tags += struct.pack(">HH", tag_types[at] if at < len(tag_types) else 0x8100, control)
    frame = destination + source + tags + struct.pack(">H", kind) + packet
    return frame + padding * (minimum - len(frame))


def null(packet: bytes, *, order: Literal["little", "big"] = "little", family: int = 0) -> bytes:
    """Put the 4-byte address family of BSD loopback in front (link types 0 and 108).

    Parameters
    ----------
    packet
        An IP packet.
    order
        Byte order: the capturing host's for NULL, big for LOOP.
    family
        The number; 2 or 30 by the version of the packet if 0. BSD systems use 24, 28 or 30 for
        IPv6.

    Examples
    --------
    >>> null(bytes([0x45]), order="big").hex()
    '0000000245'
    """
    number = family or (30 if _is_ipv6(packet) else 2)
    return number.to_bytes(4, order) + packet


def sll(packet: bytes, *, protocol: int | None = None, vlans: Sequence[int] = ()) -> bytes:
    """Build a Linux cooked frame, version 1 (link type 113), with VLAN tags behind the header.

    >>> len(sll(b""))
    16
    """
    kind, tags = _tagged(packet, protocol, vlans)
    return struct.pack(">HHH8sH", 0, 1, 6, SOURCE + b"\0\0", kind) + tags + packet


def sll2(
    packet: bytes, *, protocol: int | None = None, vlans: Sequence[int] = (), interface: int = 1
) -> bytes:
    """Build a Linux cooked frame, version 2 (link type 276), with VLAN tags behind the header.

    >>> sll2(b"", protocol=0x0800).hex(" ", 4)
    '08000000 00000001 00010006 02000000 00010000'
    """
    kind, tags = _tagged(packet, protocol, vlans)
    head = struct.pack(">HHIHBB8s", kind, 0, interface, 1, 0, 6, SOURCE + b"\0\0")
    return head + tags + packet


def _tagged(packet: bytes, protocol: int | None, vlans: Sequence[int]) -> tuple[int, bytes]:
    kinds = [0x8100] * len(vlans) + [ethertype_of(packet) if protocol is None else protocol]
    tags = [struct.pack(">HH", tag, kind) for tag, kind in zip(vlans, kinds[1:], strict=True)]
    return kinds[0], b"".join(tags)


def cisco_hdlc(packet: bytes, *, address: int = 0x0F) -> bytes:
    """Build a Cisco HDLC frame (link type 104).

    >>> cisco_hdlc(bytes([0x45])).hex()
    '0f00080045'
    """
    return struct.pack(">BBH", address, 0, ethertype_of(packet)) + packet
