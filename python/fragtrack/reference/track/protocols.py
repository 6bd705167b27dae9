"""Which handler takes a packet (``nf_conntrack_handle_packet``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragtrack.reference.track import icmp, sctp, segment, simple, tcp, udp
from fragtrack.reference.track.finding import Finding, Handled, Way
from fragtrack.reference.track.key import GRE, ICMP, ICMPV6, SCTP, TCP, UDP, UDPLITE

if TYPE_CHECKING:
    from fragtrack.reference.track.flow import Flow
    from fragtrack.reference.track.packet import Packet
    from fragtrack.track_config import TrackConfig


def handle(flow: Flow, way: Way, packet: Packet, config: TrackConfig, now: int) -> Handled:
    """Hand a packet to its protocol; a connection without a number is not in the table yet."""
    fresh = flow.id == 0
    match packet.protocol:
        case protocol if protocol == TCP:
            return _tcp(flow, way, packet, config, now)
        case protocol if protocol == UDP:
            return udp.handle(flow, packet, config, now)
        case protocol if protocol == UDPLITE:
            return udp.handle_lite(flow, packet, config)
        case protocol if protocol in {ICMP, ICMPV6}:
            return icmp.handle(packet, config, fresh=fresh)
        case protocol if protocol == SCTP:
            return sctp.handle(flow, way, packet, config)
        case protocol if protocol == GRE:
            return simple.handle_gre(flow, config)
        case _:
            return simple.handle_other(config)


def _tcp(flow: Flow, way: Way, packet: Packet, config: TrackConfig, now: int) -> Handled:
    read = segment.read(packet, config)
    if isinstance(read, Finding):
        return Handled("invalid", read)
    if flow.tcp is None:
        opened = tcp.open_connection(read, config)
        if isinstance(opened, Finding):
            return Handled("invalid", opened)
        flow.tcp = opened
    return tcp.handle(flow, flow.tcp, way, read, config, now=now)
