"""Protocols without a state machine: GRE, and all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragtrack.reference.track.finding import Handled

if TYPE_CHECKING:
    from fragtrack.reference.track.flow import Flow
    from fragtrack.track_config import TrackConfig


def handle_gre(flow: Flow, config: TrackConfig) -> Handled:
    """Take a GRE packet (``nf_conntrack_gre_packet``)."""
    if not flow.seen_reply:
        return Handled("accept", timeout=config.nanoseconds("gre_timeout"))
    changed, flow.assured = not flow.assured, True
    return Handled("accept", None, config.nanoseconds("gre_timeout_stream"), changed)


def handle_other(config: TrackConfig) -> Handled:
    """Take a packet of another protocol (``generic_packet``)."""
    return Handled("accept", timeout=config.nanoseconds("generic_timeout"))
