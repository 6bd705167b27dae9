"""ICMP and ICMPv6: queries are connections, errors belong to one, discovery is not tracked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fragtrack.reference.track import checksums
from fragtrack.reference.track.finding import Finding, Handled, TrackReason
from fragtrack.reference.track.key import ANSWERS, ICMP, ICMPV6, REQUESTS, Tuple, inverse, tuple_of
from fragtrack.reference.track.packet import IPV4_HEADER, IPV6_HEADER, Packet, walk

if TYPE_CHECKING:
    from fragtrack.track_config import TrackConfig

HEADER: Final = 8
HIGHEST: Final = 18
ERRORS4: Final = frozenset((3, 4, 5, 11, 12))
FIRST_INFORMATIONAL6: Final = 128
UNTRACKED: Final = frozenset((130, 131, 132, 133, 134, 135, 136, 143, 151, 152))
"""Multicast listener discovery, neighbor and router discovery, multicast router discovery."""

REDIRECT: Final = 137
REDIRECT_HEADER: Final = 40
REDIRECTED_HEADER: Final = 4
"""The option that quotes the redirected packet; it begins 8 bytes behind the option's start."""
LINK_LOCAL: Final = 0xFE80 >> 6


class Error(NamedTuple):
    """An ICMP error about a packet; the tuple is that of the answer to that packet."""

    about: Tuple


def examine(packet: Packet, config: TrackConfig, zone: int) -> Finding | Error | None:
    """Look at an ICMP packet before any look-up (``nf_conntrack_handle_icmp``).

    Returns
    -------
    Finding or Error or None
        Why it is invalid (or, if the reason is ``discovery``, untracked); whose error it is; None
        for a query or an answer to one.
    """
    short = packet.short(HEADER)
    if short:
        return short
    kind = packet.transport[0]
    if (packet.protocol == ICMP) != (packet.family == 4):
        return Finding(TrackReason.icmp_type, kind)
    wrong = checksums.internet(
        packet, config, field=2, protocol=None if packet.family == 4 else ICMPV6
    )
    if wrong:
        return wrong
    examined = _examine4(packet, zone) if packet.family == 4 else _examine6(packet, zone)
    if examined is not None:
        return examined
    if kind in ANSWERS[packet.protocol] or kind in REQUESTS[packet.protocol]:
        return None
    return Finding(TrackReason.icmp_type, kind)


def _examine4(packet: Packet, zone: int) -> Finding | Error | None:
    """Look for an error (``nf_conntrack_icmpv4_error``)."""
    kind = packet.transport[0]
    if kind > HIGHEST:
        return Finding(TrackReason.icmp_type, kind)
    return _about(packet, HEADER, zone) if kind in ERRORS4 else None


def _examine6(packet: Packet, zone: int) -> Finding | Error | None:
    """Look for discovery or an error (``nf_conntrack_icmpv6_error``)."""
    kind = packet.transport[0]
    if kind in UNTRACKED:
        return Finding(TrackReason.discovery, kind)
    if kind == REDIRECT:
        return _redirect(packet, zone)
    return _about(packet, HEADER, zone) if kind < FIRST_INFORMATIONAL6 else None


def _redirect(packet: Packet, zone: int) -> Finding | Error | None:
    """Look into a redirect (``nf_conntrack_icmpv6_redirect``); None: it is not looked into."""
    data = packet.transport
    short = packet.short(REDIRECT_HEADER)
    if short:
        return short
    if data[1] != 0:
        return None
    if packet.hops != 255 or packet.src >> 118 != LINK_LOCAL:
        return Finding(TrackReason.inner, 0)
    option = data[REDIRECT_HEADER : REDIRECT_HEADER + 2]
    if len(option) < 2 or option[1] == 0:
        return Finding(TrackReason.inner, 0)
    if option[0] != REDIRECTED_HEADER:
        return None
    return _about(packet, REDIRECT_HEADER + 8, zone)


def _about(packet: Packet, at: int, zone: int) -> Finding | Error:
    """Find out whom an error is about, from the packet quoted at byte `at`.

    This is ``nf_conntrack_inet_error``: of the quoted packet only addresses and the first bytes of
    its transport header matter, not its version, lengths or checksums.
    """
    data = packet.transport[at:]
    lost = Finding(TrackReason.inner, len(data))
    length = max(0, packet.size - at)
    quoted = _quoted4(data, length) if packet.family == 4 else _quoted6(data, length)
    sent = None if quoted is None else tuple_of(quoted, zone)
    if sent is None or isinstance(sent, Finding):
        return lost
    answer = inverse(sent)
    if answer is None:
        return Finding(TrackReason.inner_type, sent.dst.port >> 8)
    return Error(answer)


def _quoted4(data: bytes, length: int) -> Packet | None:
    if len(data) < IPV4_HEADER:
        return None
    at = (data[0] & 15) * 4
    offset = int.from_bytes(data[6:8], "big") & 0x1FFF
    if offset or at > length:
        return None
    src, dst = int.from_bytes(data[12:16], "big"), int.from_bytes(data[16:20], "big")
    return Packet(4, src, dst, data[9], 0, length, data, at)


def _quoted6(data: bytes, length: int) -> Packet | None:
    if len(data) < IPV6_HEADER:
        return None
    walked = walk(data, length, data[6])
    if isinstance(walked, Finding):
        return None
    src, dst = int.from_bytes(data[8:24], "big"), int.from_bytes(data[24:40], "big")
    return Packet(6, src, dst, walked[0], 0, length, data, walked[1])


def handle(packet: Packet, config: TrackConfig, *, fresh: bool) -> Handled:
    """Take a query or an answer (``nf_conntrack_icmp_packet``, ``nf_conntrack_icmpv6_packet``)."""
    kind = packet.transport[0]
    if fresh and kind not in ANSWERS[packet.protocol]:
        return Handled("invalid", Finding(TrackReason.unsolicited, kind))
    name = "icmp_timeout" if packet.protocol == ICMP else "icmpv6_timeout"
    return Handled("accept", timeout=config.nanoseconds(name))
