"""A packet from its IP header on: addresses, and where its transport header is.

Lengths are those that the IP header claims. What a snap length cut off is missing in `data` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fragtrack.reference import ipv4
from fragtrack.reference.track.finding import Finding, TrackReason

IPV4_HEADER: Final = 20
IPV6_HEADER: Final = 40
HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, NONE, DESTINATION = 0, 43, 44, 51, 59, 60
EXTENSIONS: Final = frozenset((HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION))


@dataclass(frozen=True, slots=True)
class Packet:
    """An IP packet, read.

    Attributes
    ----------
    family : int
        4 or 6.
    src, dst : int
        Addresses.
    protocol : int
        That of the transport header.
    hops : int
        Time to live, or hop limit.
    length : int
        Bytes from the IP header on, as that says.
    data : bytes
        Those that were captured; at most `length`.
    at : int
        Where the transport header starts; perhaps behind the packet.
    """

    family: int
    src: int
    dst: int
    protocol: int
    hops: int
    length: int
    data: bytes
    at: int

    @property
    def size(self) -> int:
        """Bytes of the transport part, as claimed."""
        return max(0, self.length - self.at)

    @property
    def transport(self) -> bytes:
        """The transport part, as far as it was captured."""
        return self.data[self.at :]

    @property
    def complete(self) -> bool:
        """Whether all of it was captured."""
        return len(self.data) >= self.length

    def short(self, needed: int) -> Finding | None:
        """Tell if fewer than `needed` bytes of the transport header are there."""
        there = len(self.transport)
        return Finding(TrackReason.short, there, needed) if there < needed else None


def decode(data: bytes, *, verify: bool) -> Packet | Finding:
    """Read a packet; what follows it is cut off (``get_l4proto``).

    Parameters
    ----------
    data : bytes
        From the IP header on.
    verify : bool
        Whether a wrong IPv4 header checksum counts.
    """
    version = data[0] >> 4 if data else 0
    if version == 4:
        return _decode4(data, verify=verify)
    if version == 6:
        return _decode6(data)
    return Finding(TrackReason.header, len(data), IPV4_HEADER)


def _decode4(data: bytes, *, verify: bool) -> Packet | Finding:
    """Read an IPv4 header (``ip_rcv_core``); its fragments never come this far."""
    if len(data) < IPV4_HEADER:
        return Finding(TrackReason.header, len(data), IPV4_HEADER)
    header = (data[0] & 15) * 4
    length = int.from_bytes(data[2:4], "big")
    sound = IPV4_HEADER <= header <= min(length, len(data))
    if not sound or (verify and ipv4.checksum(data[:header]) != 0):
        return Finding(TrackReason.header, len(data), max(header, IPV4_HEADER))
    src, dst = int.from_bytes(data[12:16], "big"), int.from_bytes(data[16:20], "big")
    return Packet(4, src, dst, data[9], data[8], length, data[:length], header)


def _decode6(data: bytes) -> Packet | Finding:
    """Read an IPv6 header and what follows up to the transport header (``ip6_rcv_core``).

    Payload length 0 with a hop-by-hop header may be a jumbogram: it is as long as it came.
    """
    if len(data) < IPV6_HEADER:
        return Finding(TrackReason.header, len(data), IPV6_HEADER)
    payload = int.from_bytes(data[4:6], "big")
    jumbo = payload == 0 and data[6] == HOP_BY_HOP
    length = len(data) if jumbo else IPV6_HEADER + payload
    walked = walk(data[:length], length, data[6])
    if isinstance(walked, Finding):
        return walked
    protocol, at = walked
    src, dst = int.from_bytes(data[8:24], "big"), int.from_bytes(data[24:40], "big")
    return Packet(6, src, dst, protocol, data[7], length, data[:length], at)


def walk(data: bytes, length: int, header: int) -> tuple[int, int] | Finding:
    """Walk the extension headers of an IPv6 packet (``ipv6_skip_exthdr``).

    Parameters
    ----------
    data : bytes
        From the IPv6 header on.
    length : int
        Bytes that it should have.
    header : int
        The first next header.

    Returns
    -------
    protocol, at : int
        Transport protocol, and where its header starts; perhaps behind the packet.
    """
    at = IPV6_HEADER
    while header in EXTENSIONS:
        if header == FRAGMENT:
            if len(data) < at + 4:  # the offset is looked at before the rest of the header
                return Finding(TrackReason.extension, at, length)
            offset = int.from_bytes(data[at + 2 : at + 4], "big") & 0xFFF8
            if offset:
                return Finding(TrackReason.fragment, offset)
        if len(data) < at + 2:
            return Finding(TrackReason.extension, at, length)
        header, at = data[at], at + _length(header, data[at + 1])
    if header == NONE:
        return Finding(TrackReason.extension, at, length)
    return header, at


def _length(header: int, field: int) -> int:
    """Return the bytes of an extension header (``ipv6_optlen``, ``ipv6_authlen``)."""
    if header == FRAGMENT:
        return 8
    return (field + 2) * 4 if header == AUTHENTICATION else (field + 1) * 8
