"""The tables about connection tracking, made as those of `tables`."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from tables import Table, described, options_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fragtrack.reference.track.tcp_table import Cell, State


def track_reasons() -> Table:
    """Return every reason of tracking with its code and effect."""
    from fragtrack.verdicts import RULES, TrackReason

    rows = [
        (f"`{reason.name}`", str(int(reason)), RULES[reason].effect, reason.description)
        for reason in TrackReason
    ]
    return Table(("reason", "code", "effect", "the packet"), rows)


# --- settings -------------------------------------------------------------------------------


def track_settings() -> Table:
    """Return every setting, its name in the kernel, and its default."""
    from dataclasses import fields

    from fragtrack.track_config import TrackConfig

    words = {**SETTING_WORDS, **TIMEOUT_WORDS}
    found = {field.name: field.default for field in fields(TrackConfig)}
    rows = [
        (name, f"`nf_conntrack_{setting}`" if setting not in OURS else "-", default(value), meaning)
        for (name, meaning), (setting, value) in zip(
            described(found, words), found.items(), strict=True
        )
    ]
    return Table(("setting", "sysctl", "default", "meaning"), rows)


def default(value: object) -> str:
    """Return a default as it is written in Python."""
    return "a random number" if value is None else f"`{value!r}`"


OURS = {"profile", "zones", "gap_tolerant", "rst_inexact_timeout", "hash_key"}
"""Settings that the kernel does not have."""

SETTING_WORDS = {
    "profile": "`linux-6.18`; or `pre-6.1`: what is below the window is invalid, not ignored",
    "checksum": "`offload`: wrong ones are invalid, those left to a network card are not; "
    "`verify` (sysctl 1): no exception; `ignore` (sysctl 0): none is looked at",
    "zones": "`vlan`: connections of different VLANs never mix; `none`: tags do not matter",
    "max": "connections in the table",
    "gap_tolerant": "learn the windows anew where the capture lacks packets",
    "tcp_loose": "pick up connections in the middle, by an ACK",
    "tcp_be_liberal": "accept segments that are out of the window",
    "tcp_ignore_invalid_rst": "do not call a reset invalid that is below the acknowledged",
    "tcp_max_retrans": "identical segments in a row after which the timeout is cut",
    "rst_inexact_timeout": "timeout that a reset with an inexact number leaves: that of `close`, "
    "or, as in 6.12, `unacknowledged`",
    "hash_key": "128-bit key of the hash that spreads connections over buckets",
}

TIMEOUT_WORDS = {
    "tcp_timeout_syn_sent": "TCP in SYN_SENT",
    "tcp_timeout_syn_recv": "TCP in SYN_RECV",
    "tcp_timeout_established": "TCP in ESTABLISHED",
    "tcp_timeout_fin_wait": "TCP in FIN_WAIT",
    "tcp_timeout_close_wait": "TCP in CLOSE_WAIT",
    "tcp_timeout_last_ack": "TCP in LAST_ACK",
    "tcp_timeout_time_wait": "TCP in TIME_WAIT",
    "tcp_timeout_close": "TCP in CLOSE, and after any reset",
    "tcp_timeout_max_retrans": "TCP at most, after `tcp_max_retrans` identical segments, or if "
    "the last window was 0",
    "tcp_timeout_unacknowledged": "TCP at most, while data is not acknowledged, and before the "
    "first answer to a connection that was picked up",
    "udp_timeout": "UDP and UDP-Lite",
    "udp_timeout_stream": "UDP, answered and alive for more than 2 s; UDP-Lite, answered",
    "icmp_timeout": "ICMP queries",
    "icmpv6_timeout": "ICMPv6 queries",
    "sctp_timeout_closed": "SCTP in CLOSED",
    "sctp_timeout_cookie_wait": "SCTP in COOKIE_WAIT",
    "sctp_timeout_cookie_echoed": "SCTP in COOKIE_ECHOED",
    "sctp_timeout_established": "SCTP in ESTABLISHED",
    "sctp_timeout_shutdown_sent": "SCTP in SHUTDOWN_SENT",
    "sctp_timeout_shutdown_recd": "SCTP in SHUTDOWN_RECD",
    "sctp_timeout_shutdown_ack_sent": "SCTP in SHUTDOWN_ACK_SENT",
    "sctp_timeout_heartbeat_sent": "SCTP in HEARTBEAT_SENT",
    "gre_timeout": "GRE",
    "gre_timeout_stream": "GRE, answered",
    "generic_timeout": "all other protocols",
}


def timeouts() -> Table:
    """Return the timeouts in seconds, with the one that is no setting."""
    from fragtrack.reference.track.tcp_table import State, state_timeout
    from fragtrack.track_config import TrackConfig

    config = TrackConfig()
    second = state_timeout(State.SYN_SENT2, config) // 1_000_000_000
    rows = [
        (words, f"{getattr(config, name):,}", f"`{name}`") for name, words in TIMEOUT_WORDS.items()
    ]
    rows.insert(8, ("TCP in SYN_SENT2", str(second), "fixed"))
    return Table(("when", "seconds", "setting"), rows)


# --- states ---------------------------------------------------------------------------------


def tcp_states_original() -> Table:
    """Return what follows a segment of the original direction."""
    return _transitions(0, first=0)


def tcp_states_reply() -> Table:
    """Return what follows a segment of the reply direction; without an entry there is none."""
    return _transitions(1, first=1)


def _transitions(way: int, *, first: int) -> Table:
    from states import CLASSES

    from fragtrack.reference.track.tcp_table import TABLES, State

    columns = list(State)[first:]
    rows = [
        (kind, *(follows(old, row[old]) for old in columns))
        for kind, row in zip(CLASSES, TABLES[way], strict=True)
    ]
    return Table(("segment", *(state.name for state in columns)), rows)


def follows(old: State, cell: Cell) -> str:
    """Return a cell in words."""
    from fragtrack.reference.track.tcp_table import Mark

    if isinstance(cell, Mark):
        return {Mark.IGNORE: "ignored", Mark.INVALID: "*invalid*"}[cell]
    return "=" if cell is old else f"**{cell.name}**"


# --- columns --------------------------------------------------------------------------------


def connection_columns() -> Table:
    """Return the columns of a connection table."""
    from fragtrack.sinks.track_rows import CONNECTIONS

    return Table(("column", "holds"), described(CONNECTIONS.columns, CONNECTION_WORDS))


CONNECTION_WORDS = {
    "id": "number, in the order of creation, from 1",
    "time_first": "time stamp of its first packet, nanoseconds since the epoch",
    "time_last": "highest time stamp of a packet that found it, ignored and invalid ones included",
    "ip_version": "4 or 6",
    "protocol": "IP protocol number",
    "src": "source address of the original direction",
    "sport": "source port of it; empty for protocols without ports",
    "dst": "destination address of it",
    "dport": "destination port of it",
    "vlan": "VLAN identifiers, outermost first, joined by dots; empty without tags",
    "state": "TCP or SCTP state at the end",
    "assured": "whether it was safe from being dropped in a full table",
    "reply_seen": "whether it was answered",
    "packets_orig": "packets of the original direction; ignored and invalid ones do not count",
    "bytes_orig": "their lengths by the IP header",
    "packets_reply": "packets of the reply direction",
    "bytes_reply": "their lengths by the IP header",
    "fragments": "packets of it that came in fragments",
    "invalid": "packets that found it and were invalid",
    "end": "`open`: still in the table at the end; `closed`: both sides finished; `reset`; "
    "`timeout`; `early_drop`: gave way in a full table",
    "timeout": "seconds left, if it is still in the table",
    "zone": "zone that `Tracker.push` was given; 0 in captures",
    "icmp_type": "ICMP type of the original direction",
    "icmp_code": "ICMP code of it",
    "icmp_id": "ICMP identifier",
    "gre_srckey": "GRE key of the original direction, source",
    "gre_dstkey": "GRE key of it, destination: the call of PPTP",
}


def verdict_columns() -> Table:
    """Return the columns of a verdict table."""
    from fragtrack.sinks.track_rows import VERDICTS

    return Table(("column", "holds"), described(VERDICTS.columns, VERDICT_WORDS))


VERDICT_WORDS = {
    "frame": "frame number, from 1 in each input",
    "connection": "`id` of the connection, also if the packet is invalid there",
    "class": "`new`, `established`, `related`, `invalid`, `untracked`; or `held`, a fragment whose "
    "datagram has its verdict at a later frame, or `dropped`, one that reassembly refused",
    "direction": "`original` or `reply`; empty if the packet is invalid",
    "state": "TCP or SCTP state afterwards; empty if the connection is gone",
    "reason": "a reason of tracking, or of reassembly for `held` and `dropped`; mostly empty",
    "got": "the number of the packet that was compared",
    "bound": "what it was compared with",
    "detail": "both in a sentence; JSON lines and CSV only",
}

STATE_WORDS = {
    "S0": "a SYN without an answer; a UDP request without one",
    "S1": "established, not closed",
    "SF": "established and closed by both sides; UDP with packets both ways",
    "REJ": "the SYN was answered by a RST",
    "S2": "the originator closed, the responder did not",
    "S3": "the responder closed, the originator did not",
    "RSTO": "established, then reset by the originator",
    "RSTR": "reset by the responder",
    "RSTOS0": "a SYN, then a RST of the same side, and never an answer",
    "RSTRH": "a SYN/ACK, then a RST of the same side; the originator was not seen",
    "SH": "a SYN, then a FIN of the same side; the responder was not seen",
    "SHR": "a SYN/ACK, then a FIN of the same side; the originator was not seen",
    "OTH": "anything else, as a connection that began before the capture",
}


def conn_states() -> Table:
    """Return Zeek's words for what became of a connection."""
    from fragtrack.reference.zeek import conn_state

    source = inspect.getsource(conn_state.conn_state)
    known = set(re.findall(r'"([A-Z][A-Z0-9]+)"', source))
    return Table(("`conn_state`", "meaning"), described(sorted(known), STATE_WORDS))


def track_options() -> Table:
    """Return the options of ``fragtrack track``, as its parser has them."""
    return options_of("track")


TABLES: dict[str, Callable[[], Table]] = {
    "conn-states": conn_states,
    "connection-columns": connection_columns,
    "tcp-states-original": tcp_states_original,
    "tcp-states-reply": tcp_states_reply,
    "timeouts": timeouts,
    "track-options": track_options,
    "track-reasons": track_reasons,
    "track-settings": track_settings,
    "verdict-columns": verdict_columns,
}
