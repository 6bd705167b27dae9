"""IPv6 header and chain of extension headers: where the fragment header is, what is inside."""

from __future__ import annotations

from dataclasses import dataclass

from fragtrack.events import Reason
from fragtrack.reference.fragment import Fragment, Plain, Rejected, View

FIXED_HEADER = 40
FRAGMENT_HEADER = 8
MAX_PAYLOAD = 65_535

HOP_BY_HOP = 0
TCP = 6
UDP = 17
ROUTING = 43
FRAGMENT = 44
AUTHENTICATION = 51
ICMPV6 = 58
NO_NEXT_HEADER = 59
DESTINATION = 60

# ipv6_ext_hdr(): the headers a chain walk steps over, "no next header" aside
_EXTENSIONS = frozenset((HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION))
# RFC 7112: bytes of the upper-layer header the first fragment must hold
_UPPER_LAYER = {TCP: 20, UDP: 8, ICMPV6: 8}


@dataclass(frozen=True, slots=True)
class Located:
    """A packet that has a fragment header, perhaps cut short.

    `packet` is cut at its IP length, `at` is where the fragment header starts,
    `next_header` where the field is that announces it, `payload` the payload
    length field.
    """

    packet: View
    payload: int
    at: int
    next_header: int

    @property
    def cut(self) -> bool:
        """Whether the fragment header ends behind the packet."""
        return len(self.packet) < self.at + FRAGMENT_HEADER


def is_fragment(packet: View) -> bool:
    """Tell whether the chain of headers that was captured leads to a fragment header."""
    return isinstance(found := locate(packet), Located) or (
        isinstance(found, Rejected) and found.fragment
    )


def locate(packet: View) -> Located | Plain | Rejected:
    """Read a packet whose version nibble is 6 (``ip6_rcv_core``, ``find_prev_fhdr``).

    Parameters
    ----------
    packet : bytes or memoryview
        From the IP header on; may be followed by link padding.
    """
    if len(packet) < FIXED_HEADER:
        return Rejected(Reason.truncated, ("InHdrErrors",), fragment=False)
    length = _claimed_length(packet)
    packet_cut = packet[:length]
    found = _walk(packet_cut, FIXED_HEADER, packet[6], 6)
    if length > len(packet):
        return Rejected(Reason.truncated, ("InTruncatedPkts",), fragment=found is not None)
    if found is None:
        return Plain(length)
    at, next_header = found
    return Located(packet_cut, _payload_length(packet), at, next_header)


def read(located: Located) -> Fragment:
    """Read the fragment header of a packet that holds all of it (``ip6_frag_queue``)."""
    packet, at = located.packet, located.at
    field = int.from_bytes(packet[at + 2 : at + 4], "big")
    start = field & 0xFFF8
    data = at + FRAGMENT_HEADER
    return Fragment(
        version=6,
        src=bytes(packet[8:24]),
        dst=bytes(packet[24:40]),
        protocol=packet[at],
        ident=int.from_bytes(packet[at + 4 : at + 8], "big"),
        start=start,
        end=start + FIXED_HEADER + located.payload - data,
        more=bool(field & 1),
        ecn=packet[1] >> 4 & 3,
        dont_fragment=False,
        packet=packet,
        header=at,
        data=data,
        next_header=located.next_header,
    )


def chain_incomplete(packet: View, at: int) -> bool:
    """Tell whether a first fragment lacks part of its header chain (RFC 7112).

    This is ``ipv6frag_thdr_truncated``, walking from the fragment header at `at`.  Not judged:
    a fragment with an offset, anything behind "no next header", and a chain that breaks off
    within the first two bytes of a header (or, in a fragment header, before its offset field).
    """
    header, start = skip_extensions(packet, at, FRAGMENT)
    if start is None or header == FRAGMENT:
        return False
    return start + _UPPER_LAYER.get(header, 1) > len(packet)


def skip_extensions(packet: View, at: int, header: int) -> tuple[int, int | None]:
    """Walk to the upper-layer header (``ipv6_skip_exthdr``).

    Returns
    -------
    header : int
        The upper-layer protocol; :data:`FRAGMENT` where the walk stopped at a fragment header
        with an offset, behind which no header follows.
    at : int or None
        Where it starts, perhaps behind the packet; None if the walk broke off.
    """
    while True:
        if header == NO_NEXT_HEADER:
            return header, None
        if header not in _EXTENSIONS:
            return header, at
        if len(packet) < at + 2:
            return header, None
        if header == FRAGMENT:
            if len(packet) < at + 4:
                return header, None
            if int.from_bytes(packet[at + 2 : at + 4], "big") & 0xFFF8:
                return header, at
        header, at = packet[at], at + _length(packet, at, header)


def nested_header(packet: View, at: int, header: int) -> int | None:
    """Return where a second fragment header stands behind the first one, if one does.

    Parameters
    ----------
    packet : bytes or memoryview
        The whole datagram, or an atomic fragment.
    at : int
        Where the fragmentable part starts in it.
    header : int
        Its first header.

    Notes
    -----
    ``ipv6_frag_rcv`` fails when it sees a packet a second time (IP6SKB_FRAGMENTED), before it
    reads anything of the header; so a cut-off second header counts too.
    """
    found = _walk(packet, at, header, 0)
    return None if found is None else found[0]


def _walk(packet: View, at: int, header: int, announced: int) -> tuple[int, int] | None:
    """Return (position, position of the announcing field) of the first fragment header.

    This is ``find_prev_fhdr``: a header must show its first two bytes, and the chain may end
    exactly at the packet's end, not behind it.
    """
    while header != FRAGMENT:
        if header not in _EXTENSIONS or len(packet) < at + 2:
            return None
        announced = at
        header, at = packet[at], at + _length(packet, at, header)
    return (at, announced) if at <= len(packet) else None


def _length(packet: View, at: int, header: int) -> int:
    """Return the length of an extension header in bytes (``ipv6_optlen``, ``ipv6_authlen``)."""
    if header == FRAGMENT:
        return FRAGMENT_HEADER
    if header == AUTHENTICATION:
        return (packet[at + 1] + 2) * 4
    return (packet[at + 1] + 1) * 8


def _payload_length(packet: View) -> int:
    return int.from_bytes(packet[4:6], "big")


def _claimed_length(packet: View) -> int:
    """Return the length of the packet in bytes.

    Payload length 0 with a hop-by-hop header may be a jumbogram: ``ip6_rcv_core`` leaves such
    a packet as long as it came.
    """
    payload = _payload_length(packet)
    if payload == 0 and packet[6] == HOP_BY_HOP:
        return len(packet)
    return FIXED_HEADER + payload
