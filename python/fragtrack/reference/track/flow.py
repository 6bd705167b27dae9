"""One connection, as the table holds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fragtrack.reference.fragment import address_text
from fragtrack.reference.link import vlan_ids
from fragtrack.reference.track import sctp_table, tcp_table
from fragtrack.reference.track.finding import Way
from fragtrack.reference.track.key import GRE, HEADERS, Key, Tuple, key_of
from fragtrack.reference.track.tcp_table import State
from fragtrack.verdicts import SCTP_STATES, TCP_STATES, Connection, End

if TYPE_CHECKING:
    from fragtrack.reference.track.sctp import Sctp
    from fragtrack.reference.track.window import Tcp

SECOND = 1_000_000_000


@dataclass(slots=True, eq=False)
class Flow:
    """An entry (``struct nf_conn``).

    Attributes
    ----------
    id : int
        Number in the order of creation; 0 until it is in the table.
    original : Tuple
        Of the direction that its first packet had.
    bucket : int
    created : int
        The clock at its first packet, ns.
    deadline : int
        When it ends, ns.
    scheduled : int
        When the table looks at it at the latest, ns; never behind the deadline.
    time_first, time_last : int
        Time stamps of packets, ns.
    assured, seen_reply : bool
    packets, bytes : list of int
        Counted per direction.
    fragments, invalid : int
        As in `fragtrack.verdicts.Connection`.
    unannounced : bool
        An invalid packet changed something (SCTP): the next packet that is not announces it.
    tcp, sctp
        What the protocol remembers.
    """

    original: Tuple
    bucket: int
    created: int
    time_first: int
    time_last: int
    id: int = 0
    deadline: int = 0
    scheduled: int = 0
    assured: bool = False
    seen_reply: bool = False
    packets: list[int] = field(default_factory=lambda: [0, 0])
    bytes: list[int] = field(default_factory=lambda: [0, 0])
    fragments: int = 0
    invalid: int = 0
    unannounced: bool = False
    tcp: Tcp | None = None
    sctp: Sctp | None = None

    @property
    def key(self) -> Key:
        """What both directions have in common."""
        return key_of(self.original)

    @property
    def state(self) -> str | None:
        """Name of the state, of protocols that have one."""
        if self.tcp is not None:
            return TCP_STATES[self.tcp.state]
        return None if self.sctp is None else SCTP_STATES[self.sctp.state]

    @property
    def may_go(self) -> bool:
        """Whether it may give way in a full table (``gc_worker_can_early_drop``)."""
        if not self.assured:
            return True
        if self.tcp is not None:
            return self.tcp.state in tcp_table.CLOSING
        return self.sctp is not None and self.sctp.state in sctp_table.CLOSING

    def way(self, given: Tuple) -> Way:
        """Return the direction of a packet that belongs to it."""
        return Way.ORIGINAL if given == self.original else Way.REPLY

    def count(self, way: Way, length: int) -> None:
        """Count a packet (``nf_ct_acct_update``)."""
        self.packets[way] += 1
        self.bytes[way] += length

    def left(self, now: int) -> int:
        """Return the whole seconds left."""
        return max(0, (self.deadline - now) // SECOND)

    def end(self, *, ran_out: bool) -> End:
        """Say how it ends if nothing but time ends it, or how it stands."""
        if self.tcp is not None:
            if self.tcp.state is State.TIME_WAIT:
                return "closed"
            if self.tcp.state is State.CLOSE:
                return "reset"
        if self.sctp is not None and self.sctp.state is sctp_table.State.CLOSED and self.assured:
            return "closed"
        return "timeout" if ran_out else "open"

    def row(self, end: End, timeout: int | None, *, vlans: bool) -> Connection:
        """Describe it as it is now.

        Parameters
        ----------
        end, timeout
            As in the row.
        vlans : bool
            Its zone is the VLAN tags of a frame.
        """
        original = self.original
        size = 4 if original.family == 4 else 16
        ports = original.protocol in HEADERS
        gre = (original.src.port, original.dst.port) if original.protocol == GRE else None
        kind, code, ident = original.icmp or (None, None, None)
        tags = vlan_ids(original.zone) if vlans else ()
        return Connection(
            id=self.id,
            time_first=self.time_first,
            time_last=self.time_last,
            ip_version=original.family,
            protocol=original.protocol,
            src=address_text(original.src.address.to_bytes(size, "big")),
            sport=original.src.port if ports else None,
            dst=address_text(original.dst.address.to_bytes(size, "big")),
            dport=original.dst.port if ports else None,
            vlan=".".join(map(str, tags)) or None,
            state=self.state,
            assured=self.assured,
            reply_seen=self.seen_reply,
            packets_orig=self.packets[Way.ORIGINAL],
            bytes_orig=self.bytes[Way.ORIGINAL],
            packets_reply=self.packets[Way.REPLY],
            bytes_reply=self.bytes[Way.REPLY],
            fragments=self.fragments,
            invalid=self.invalid,
            end=end,
            timeout=timeout,
            zone=0 if vlans else original.zone,
            icmp_type=kind,
            icmp_code=code,
            icmp_id=ident,
            gre_key=gre,
        )
