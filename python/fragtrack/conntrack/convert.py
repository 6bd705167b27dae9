"""From what a tracker tells to entries of the kernel's text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fragtrack.conntrack.draft import address
from fragtrack.conntrack.entry import Entry, Side, reply_type

if TYPE_CHECKING:
    from fragtrack.verdicts import Connection, Event

_GRE: Final = 47
_GRE_TIMEOUTS: Final = (30, 180)


def from_connection(
    connection: Connection,
    *,
    accounting: bool = True,
    gre_timeouts: tuple[int, int] = _GRE_TIMEOUTS,
) -> Entry:
    """Make the entry that the kernel would show for a connection.

    Parameters
    ----------
    connection
        A connection of a tracker. Nothing is translated, so the reply is the original turned
        round. Its zone is the zone; where that is 0, the innermost VLAN identifier.
    accounting
        Whether packets and bytes are shown (``nf_conntrack_acct``).
    gre_timeouts
        The timeouts that procfs shows for GRE, whole seconds.

    Examples
    --------
    >>> from fragtrack.conntrack import format_entry
    >>> from fragtrack.verdicts import Connection
    >>> row = Connection(1, 0, 0, 4, 17, "192.0.2.1", 5, "192.0.2.2", 7, None, None, False, False,
    ...     1, 29, 0, 0, 0, 0, "open", timeout=30)
    >>> text = format_entry(from_connection(row, accounting=False))
    >>> text.partition("src=")[0]
    'udp      17 30 '
    >>> text.partition("[UNREPLIED] ")[2]
    'src=192.0.2.2 dst=192.0.2.1 sport=7 dport=5 mark=0 use=1'
    """
    c = connection
    original = Side(
        src=address(c.src),
        dst=address(c.dst),
        sport=c.sport,
        dport=c.dport,
        icmp_type=c.icmp_type,
        icmp_code=c.icmp_code,
        icmp_id=c.icmp_id,
        srckey=None if c.gre_key is None else c.gre_key[0],
        dstkey=None if c.gre_key is None else c.gre_key[1],
        packets=c.packets_orig if accounting else None,
        bytes=c.bytes_orig if accounting else None,
    )
    reply = replace(
        turned(original),
        packets=c.packets_reply if accounting else None,
        bytes=c.bytes_reply if accounting else None,
    )
    return Entry(
        form="list",
        protocol=c.protocol,
        original=original,
        reply=reply,
        timeout=c.timeout,
        state=c.state,
        assured=c.assured,
        unreplied=not c.reply_seen,
        mark=0,
        zone=zone_of(c) or None,
        use=1,
        gre_timeouts=gre_timeouts if c.protocol == _GRE else None,
    )


def from_event(event: Event) -> Entry:
    """Make the line that ``conntrack -E -o timestamp`` would print for an event.

    Counters are shown in ``destroy`` only, as the kernel does.
    """
    entry = from_connection(event.connection, accounting=event.kind == "destroy")
    return replace(entry, form="event", event=event.kind, time=event.time, mark=None, use=None)


def zone_of(connection: Connection) -> int:
    """Tell the zone of a connection; without, the innermost VLAN identifier; 0 without either."""
    if connection.zone or not connection.vlan:
        return connection.zone
    innermost = connection.vlan.rpartition(".")[2]
    return int(innermost) if innermost.isdecimal() else 0


def turned(side: Side) -> Side:
    """Turn a tuple round, as the kernel does where nothing is translated."""
    answer = reply_type(side.icmp_type)
    return replace(
        side,
        src=side.dst,
        dst=side.src,
        sport=side.dport,
        dport=side.sport,
        srckey=side.dstkey,
        dstkey=side.srckey,
        icmp_type=side.icmp_type if answer is None else answer,
        zone=None,
        packets=None,
        bytes=None,
    )
