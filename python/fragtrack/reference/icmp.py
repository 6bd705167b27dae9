"""ICMP errors that Linux sends about fragments, and when it stays silent."""

from __future__ import annotations

from typing import Final

from fragtrack.events import IcmpError
from fragtrack.reference import ipv6
from fragtrack.reference.fragment import Fragment, View, address_text

# icmp_send quotes so much that the whole error fits 576 bytes (RFC 1812, 4.3.2.3): 20 bytes of
# IPv4 and 8 of ICMP go off.  icmp6_send: 1,280 bytes (RFC 4443, 2.4) minus 40 and 8.
QUOTE4: Final = 576 - 20 - 8
QUOTE6: Final = 1280 - 40 - 8

TIME_EXCEEDED4: Final = (11, 1)
TIME_EXCEEDED6: Final = (3, 1)
PARAMETER_PROBLEM6: Final = 4
ERRONEOUS_FIELD: Final = 0
INCOMPLETE_CHAIN: Final = 3

_ICMP: Final = 1
# icmp_pointers[]: the types that are no errors; unknown ones (above 18) count as errors
_ICMP_QUERIES: Final = frozenset((0, 8, 13, 14, 15, 16, 17, 18))


def time_exceeded(head: Fragment) -> IcmpError | None:
    """Return the error for a datagram that timed out, quoting its first fragment."""
    if head.version == 6:
        return _error6(head.quotable, *TIME_EXCEEDED6, 0)
    if not _answerable4(head):
        return None
    kind, code = TIME_EXCEEDED4
    quote = bytes(head.quotable[:QUOTE4])
    return IcmpError(4, kind, code, 0, address_text(head.dst), address_text(head.src), quote)


def parameter_problem(packet: View, code: int, pointer: int) -> IcmpError | None:
    """Return the ICMPv6 parameter problem about a packet, quoting all of it that fits."""
    return _error6(packet, PARAMETER_PROBLEM6, code, pointer)


def _answerable4(head: Fragment) -> bool:
    """Tell whether ``icmp_send`` answers (RFC 1122, 3.2.2).

    Not: about an ICMP error or an unknown ICMP type; to or from a group, the broadcast, a loopback
    or a "this network" address (``ip_expire`` asks for the route first, which refuses those).
    """
    if any(_special4(address) for address in (head.src, head.dst)):
        return False
    return head.protocol != _ICMP or head.packet[head.data] in _ICMP_QUERIES


def _special4(address: bytes) -> bool:
    return address[0] in (0, 127) or 224 <= address[0] < 240 or address == b"\xff" * 4


def _error6(packet: View, kind: int, code: int, pointer: int) -> IcmpError | None:
    if not _answerable6(packet):
        return None
    src, dst = bytes(packet[8:24]), bytes(packet[24:40])
    quote = bytes(packet[:QUOTE6])
    return IcmpError(6, kind, code, pointer, address_text(dst), address_text(src), quote)


def _answerable6(packet: View) -> bool:
    """Tell whether ``icmp6_send`` answers (RFC 4443, 2.4 (e)).

    Not: from the unspecified or a group address, to a group, or about an ICMPv6 error.  The last
    test is ``is_ineligible``: an ICMPv6 packet whose type is missing is answered only if the
    fragment header in front of it has MF or a reserved bit set.
    """
    if packet[8] == 0xFF or not any(packet[8:24]) or packet[24] == 0xFF:
        return False
    header, at = ipv6.skip_extensions(packet, ipv6.FIXED_HEADER, packet[6])
    if at is None or header != ipv6.ICMPV6:
        return True
    if at < len(packet):
        return packet[at] >= 128
    return _fragment_field(packet) != 0


def _fragment_field(packet: View) -> int:
    located = ipv6.locate(packet)
    if not isinstance(located, ipv6.Located) or located.cut:
        return 0
    return int.from_bytes(packet[located.at + 2 : located.at + 4], "big")
