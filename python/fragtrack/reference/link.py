"""From a captured frame to its IP packet: link layers, VLAN tags, PPPoE, MPLS.

Numbers and layouts: https://www.tcpdump.org/linktypes.html (link types), IEEE 802.3 and 802.1Q,
RFC 1042 (SNAP), RFC 1661 and 1662 (PPP), RFC 2516 (PPPoE), RFC 3032 (MPLS).

What is decided here and nowhere else:

- The *domain* of a packet is its VLAN tags: the number of tags in bits 48 and up, below it the
  12-bit VLAN ids, the outermost in the lowest bits; 0 without tags. Priority, MPLS labels and
  PPPoE session do not belong to it.
- The version nibble of the packet decides between IPv4 and IPv6, whichever of the two the link
  layer announced; only link types that are one of them throughout (228, 229) and BSD loopback must
  agree with it. Any other nibble is not IP.
- At most 4 VLAN tags and 16 MPLS labels; a frame with more is not IP.
- An ethertype of 1,500 or less directly behind Ethernet addresses or a VLAN tag is an IEEE 802.3
  length; then LLC/SNAP with the organization 00-00-00 must follow (AA AA 03 00 00 00), and IP.
  Elsewhere (Linux cooked, Cisco HDLC) so small a value is no length, and not IP.
- Behind PPP and PPPoE comes IP or MPLS. The protocol may be compressed to one byte (RFC 1661
  section 6.5), and FF 03 may stand in front of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Decoded", "LengthField", "NotIpError", "decode", "patch_lengths", "vlan_ids"]

VLAN_TYPES = frozenset({0x8100, 0x88A8, 0x9100, 0x9200, 0x9300})
MPLS_TYPES = frozenset({0x8847, 0x8848})
IP_TYPES = frozenset({0x0800, 0x86DD})
PPPOE_TYPE = 0x8864
MOST_TAGS, MOST_LABELS = 4, 16
LARGEST_802_3 = 1500
SNAP = bytes.fromhex("aaaa03000000")
ADDRESS_AND_CONTROL = bytes.fromhex("ff03")

#: Address families of BSD loopback: one number for IPv4, one per system for IPv6.
FAMILIES = {2: 4, 10: 6, 24: 6, 28: 6, 30: 6}
PPP_IPV4, PPP_IPV6, PPP_MPLS = 0x21, 0x57, 0x281


class LengthField(NamedTuple):
    """A 16-bit big-endian length in the link header that grows with the packet.

    It counts the bytes from `counted` to the end of the frame.
    """

    kind: Literal["pppoe", "802.3"]
    at: int
    counted: int


class Decoded(NamedTuple):
    """Where the IP packet is.

    Attributes
    ----------
    offset
        Bytes in front of the IP header.
    version
        4 or 6: the packet's version nibble.
    domain
        VLAN tags, packed; see the module.
    lengths
        Length fields in front of the packet, outermost first.
    """

    offset: int
    version: int
    domain: int
    lengths: tuple[LengthField, ...]


class NotIpError(Exception):
    """The frame holds no IP packet that can be found; the argument says why."""


class _Frame:
    """A frame being read: what was met on the way to the packet."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.vlans: list[int] = []
        self.lengths: list[LengthField] = []

    def number(self, at: int, size: int = 2) -> int:
        if at + size > len(self.data):
            raise NotIpError(f"cut short at byte {len(self.data)}")
        return int.from_bytes(self.data[at : at + size])

    def packet(self, at: int, announced: int | None = None) -> Decoded:
        """End: the packet begins here."""
        version = self.number(at, 1) >> 4
        if version not in (4, 6) or announced not in (None, version):
            raise NotIpError(f"IP version {version}")
        domain = len(self.vlans) << 48
        for level, vlan in enumerate(self.vlans):
            domain |= vlan << 12 * level
        return Decoded(at, version, domain, tuple(self.lengths))

    def content(self, kind: int, at: int) -> Decoded:
        """Read what ethertype `kind` announced."""
        if kind in IP_TYPES:
            return self.packet(at)
        if kind in VLAN_TYPES:
            return self.tag(at)
        if kind in MPLS_TYPES:
            return self.labels(at)
        if kind == PPPOE_TYPE:
            return self.pppoe(at)
        raise NotIpError(f"ethertype 0x{kind:04x}")

    def type_or_length(self, at: int) -> Decoded:
        """Read an ethertype, or an IEEE 802.3 length with LLC and SNAP behind it."""
        kind = self.number(at)
        if kind > LARGEST_802_3:
            return self.content(kind, at + 2)
        if self.data[at + 2 : at + 8] != SNAP or self.number(at + 8) not in IP_TYPES:
            raise NotIpError(f"IEEE 802.3 length {kind} without SNAP and IP")
        self.lengths.append(LengthField("802.3", at, at + 2))
        return self.packet(at + 10)

    def tag(self, at: int) -> Decoded:
        """Read a VLAN tag behind its type: priority and 12 bits of id; then a type or length."""
        if len(self.vlans) == MOST_TAGS:
            raise NotIpError(f"more than {MOST_TAGS} VLAN tags")
        self.vlans.append(self.number(at) & 0xFFF)
        return self.type_or_length(at + 2)

    def labels(self, at: int) -> Decoded:
        """Skip MPLS labels of 4 bytes, the last one marked by bit 8; no protocol field."""
        for _ in range(MOST_LABELS):
            label = self.number(at, 4)
            at += 4
            if label & 0x100:
                return self.packet(at)
        raise NotIpError(f"more than {MOST_LABELS} MPLS labels")

    def pppoe(self, at: int) -> Decoded:
        """Read version and type, code, session, length; then PPP."""
        if self.number(at) != 0x1100:
            raise NotIpError(f"PPPoE version, type and code 0x{self.number(at):04x}")
        self.lengths.append(LengthField("pppoe", at + 4, at + 6))
        return self.ppp(at + 6)

    def ppp(self, at: int) -> Decoded:
        """Read a protocol: the low bit of its last byte is set, that of its first one is not."""
        if self.data[at : at + 2] == ADDRESS_AND_CONTROL:
            at += 2
        protocol, size = self.number(at, 1), 1
        if protocol % 2 == 0:
            protocol, size = self.number(at), 2
        if protocol == PPP_MPLS:
            return self.labels(at + size)
        if protocol not in (PPP_IPV4, PPP_IPV6):
            raise NotIpError(f"PPP protocol 0x{protocol:04x}")
        return self.packet(at + size)


def _null(frame: _Frame) -> Decoded:
    # Host byte order, and the host is not known: a family is a small number in one of the two.
    orders: tuple[Literal["big", "little"], ...] = ("big", "little")
    for order in orders:
        version = FAMILIES.get(int.from_bytes(frame.data[:4], order))
        if version is not None:
            return frame.packet(4, version)
    raise NotIpError(f"address family 0x{frame.number(0, 4):08x}")


def _cisco_hdlc(frame: _Frame) -> Decoded:
    if frame.number(0) not in (0x0F00, 0x8F00):
        raise NotIpError(f"Cisco HDLC address 0x{frame.number(0):04x}")
    return frame.content(frame.number(2), 4)


#: Link types as pcap and pcapng number them, and how their frames begin.
LINKS: dict[int, Callable[[_Frame], Decoded]] = {
    0: _null,
    1: lambda frame: frame.type_or_length(12),
    9: lambda frame: frame.ppp(0),
    12: lambda frame: frame.packet(0),
    14: lambda frame: frame.packet(0),
    50: lambda frame: frame.ppp(0),
    51: lambda frame: frame.pppoe(0),
    101: lambda frame: frame.packet(0),
    104: _cisco_hdlc,
    108: _null,
    113: lambda frame: frame.content(frame.number(14), 16),
    228: lambda frame: frame.packet(0, 4),
    229: lambda frame: frame.packet(0, 6),
    276: lambda frame: frame.content(frame.number(0), 20),
}


def decode(link_type: int, frame: bytes) -> Decoded:
    """Find the IP packet in a frame.

    Parameters
    ----------
    link_type
        As pcap and pcapng number it.
    frame
        The captured bytes.

    Returns
    -------
    Decoded
        At least one byte of the packet is captured.

    Raises
    ------
    NotIpError
        If there is none, or the frame is cut short in front of it.

    Examples
    --------
    >>> decode(101, bytes([0x45]))
    Decoded(offset=0, version=4, domain=0, lengths=())
    """
    reader = LINKS.get(link_type)
    if reader is None:
        raise NotIpError(f"link type {link_type}")
    return reader(_Frame(frame))


def patch_lengths(header: bytes, lengths: tuple[LengthField, ...], packet: int) -> bytes:
    """Give the link header of a frame whose IP packet now has `packet` bytes.

    A PPPoE length stops at 65,535. An IEEE 802.3 length above 1,500 would be read as an ethertype,
    so the old one stays.

    >>> field = LengthField("pppoe", at=4, counted=6)
    >>> patch_lengths(bytes.fromhex("1100000100020021"), (field,), 1000).hex()
    '1100000103ea0021'
    """
    patched = bytearray(header)
    for field in lengths:
        size = len(header) - field.counted + packet
        if field.kind == "pppoe":
            size = min(size, 65535)
        elif size > LARGEST_802_3:
            continue
        patched[field.at : field.at + 2] = size.to_bytes(2)
    return bytes(patched)


def vlan_ids(domain: int) -> tuple[int, ...]:
    """Unpack the VLAN ids of a domain, outermost first.

    >>> vlan_ids(2 << 48 | 20 << 12 | 10)
    (10, 20)
    """
    return tuple(domain >> 12 * level & 0xFFF for level in range(domain >> 48))
