"""UDP and UDP-Lite (``nf_conntrack_proto_udp.c``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fragtrack.reference.track import checksums
from fragtrack.reference.track.finding import Finding, Handled, TrackReason

if TYPE_CHECKING:
    from fragtrack.reference.track.flow import Flow
    from fragtrack.reference.track.packet import Packet
    from fragtrack.track_config import TrackConfig

HEADER: Final = 8
UDP: Final = 17
STREAM_AFTER: Final = 2 * 1_000_000_000
"""Nanoseconds from the first packet, behind which traffic both ways is a stream."""


def error(packet: Packet, config: TrackConfig) -> Finding | None:
    """Say what is wrong with a UDP header (``udp_error``)."""
    short = packet.short(HEADER)
    if short:
        return short
    length = int.from_bytes(packet.transport[4:6], "big")
    if not HEADER <= length <= packet.size:
        return Finding(TrackReason.length, length, packet.size)
    if packet.transport[6:8] == b"\0\0":
        return None
    return checksums.internet(packet, config, field=6, protocol=UDP, offload=True)


def handle(flow: Flow, packet: Packet, config: TrackConfig, now: int) -> Handled:
    """Take a UDP packet (``nf_conntrack_udp_packet``)."""
    wrong = error(packet, config)
    if wrong:
        return Handled("invalid", wrong)
    if not flow.seen_reply or now <= flow.created + STREAM_AFTER:
        return Handled("accept", timeout=config.nanoseconds("udp_timeout"))
    changed, flow.assured = not flow.assured, True
    return Handled("accept", None, config.nanoseconds("udp_timeout_stream"), changed)


def error_lite(packet: Packet, config: TrackConfig) -> Finding | None:
    """Say what is wrong with a UDP-Lite header (``udplite_error``).

    The kernel takes the protocol of UDP for the pseudo header.
    """
    short = packet.short(HEADER)
    if short:
        return short
    coverage = int.from_bytes(packet.transport[4:6], "big") or packet.size
    if not HEADER <= coverage <= packet.size:
        return Finding(TrackReason.coverage, coverage, packet.size)
    if packet.transport[6:8] == b"\0\0":
        return Finding(TrackReason.no_checksum)
    return checksums.internet(packet, config, field=6, protocol=UDP, covered=coverage, offload=True)


def handle_lite(flow: Flow, packet: Packet, config: TrackConfig) -> Handled:
    """Take a UDP-Lite packet (``nf_conntrack_udplite_packet``): no waiting for a stream."""
    wrong = error_lite(packet, config)
    if wrong:
        return Handled("invalid", wrong)
    if not flow.seen_reply:
        return Handled("accept", timeout=config.nanoseconds("udp_timeout"))
    changed, flow.assured = not flow.assured, True
    return Handled("accept", None, config.nanoseconds("udp_timeout_stream"), changed)
