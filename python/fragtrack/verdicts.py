"""What comes out of a tracker: verdicts with their reasons, connections, events.

Plain data, shared by both backends. Times are nanoseconds, lengths bytes, frame numbers 1-based.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final, Literal, NamedTuple

CtClass = Literal["new", "established", "related", "invalid", "untracked", "held", "dropped"]
Direction = Literal["original", "reply"]
End = Literal["open", "closed", "reset", "timeout", "early_drop"]

CLASSES: Final = ("new", "established", "related", "invalid", "untracked", "held", "dropped")
"""By their code: the first five are the kernel's; ``held`` and ``dropped`` are fragments that did
not get as far as tracking (the datagram has its verdict at the frame that completes it)."""
DIRECTIONS: Final = ("original", "reply")
ENDS: Final = ("open", "closed", "reset", "timeout", "early_drop")
EVENTS: Final = ("new", "update", "destroy")

VerdictRow = tuple[int, int | None, str, str | None, str | None, str | None, int | None, int | None]
"""A row of the verdict table: the columns of `VERDICT_COLUMNS`."""
VERDICT_COLUMNS: Final = (
    "frame",
    "connection",
    "class",
    "direction",
    "state",
    "reason",
    "got",
    "bound",
)

TCP_STATES: Final = (
    "NONE",
    "SYN_SENT",
    "SYN_RECV",
    "ESTABLISHED",
    "FIN_WAIT",
    "CLOSE_WAIT",
    "LAST_ACK",
    "TIME_WAIT",
    "CLOSE",
    "SYN_SENT2",
)
SCTP_STATES: Final = (
    "NONE",
    "CLOSED",
    "COOKIE_WAIT",
    "COOKIE_ECHOED",
    "ESTABLISHED",
    "SHUTDOWN_SENT",
    "SHUTDOWN_RECD",
    "SHUTDOWN_ACK_SENT",
    "HEARTBEAT_SENT",
)


@unique
class TrackReason(IntEnum):
    """Why a packet is invalid, is ignored, ends a connection; or what is odd about an accepted one.

    The value is the code in verdict columns and never changes its meaning.
    """

    header = 1
    fragment = 2
    extension = 3
    short = 4
    offset = 5
    checksum = 6
    flags = 7
    no_entry = 8
    not_loose = 9
    transition = 10
    state = 11
    seq_above = 12
    seq_below = 13
    ack_above = 14
    ack_below = 15
    overshoot = 16
    rst_below = 17
    rst_inexact = 18
    challenge_ack = 19
    reopened = 20
    reset = 21
    table_full = 22
    chain = 23
    length = 24
    coverage = 25
    no_checksum = 26
    icmp_type = 27
    unsolicited = 28
    inner = 29
    inner_type = 30
    inner_unknown = 31
    outer_address = 32
    discovery = 33
    vtag = 34
    chunk = 35
    chunk_state = 36
    gre = 37
    resynchronized = 38
    invalid_noted = 39

    @property
    def description(self) -> str:
        """The rule in a sentence fragment fit for a table or a message."""
        return RULES[self].description


class Rule(NamedTuple):
    """A reason in words.

    Attributes
    ----------
    effect
        ``invalid``, ``ignored`` (keeps its class, changes nothing), ``killed`` (the connection
        ended, the packet keeps its class), ``untracked``, or ``accepted`` (worth a remark). A
        profile or switch may turn ``ignored`` into ``invalid``.
    description
        The rule.
    text
        How it is told of a packet, from its two numbers `got` and `bound`.
    """

    effect: Literal["invalid", "ignored", "killed", "untracked", "accepted"]
    description: str
    text: str


RULES: Final[dict[TrackReason, Rule]] = {
    TrackReason.header: Rule(
        "invalid",
        "no sound IP header",
        "the IP header cannot be, or is cut short ({got} bytes captured, {bound} needed)",
    ),
    TrackReason.fragment: Rule(
        "invalid",
        "a fragment that reassembly let pass, so no transport header to look at",
        "a fragment at offset {got} that could not be reassembled",
    ),
    TrackReason.extension: Rule(
        "invalid",
        "the chain of IPv6 extension headers leads to no transport header",
        "the extension headers break off at byte {got} of {bound}, or say that nothing follows",
    ),
    TrackReason.short: Rule(
        "invalid", "the transport header is cut short", "{got} bytes where {bound} are needed"
    ),
    TrackReason.offset: Rule(
        "invalid",
        "the TCP data offset is below 20 bytes or behind the end of the segment",
        "data offset of {got} bytes in a segment of {bound}",
    ),
    TrackReason.checksum: Rule(
        "invalid", "wrong checksum", "checksum 0x{got:04x} where 0x{bound:04x} is right"
    ),
    TrackReason.flags: Rule("invalid", "TCP flags that do not go together", "flags {got_flags}"),
    TrackReason.no_entry: Rule(
        "invalid",
        "no connection is known, and this is no packet to begin one",
        "no connection is known, and {got_kind} does not begin one",
    ),
    TrackReason.not_loose: Rule(
        "invalid",
        "no connection is known, and picking one up in the middle is switched off (tcp_loose)",
        "no connection is known, and tcp_loose is off",
    ),
    TrackReason.transition: Rule(
        "invalid",
        "the state table forbids this packet",
        "{got_kind} is not allowed in state {bound_state}",
    ),
    TrackReason.state: Rule(
        "ignored",
        "the state table says to ignore this packet until the other side has answered",
        "{got_kind} in state {bound_state} is ignored",
    ),
    TrackReason.seq_above: Rule(
        "invalid",
        "sequence number above the window of the receiver",
        "SEQ {got} is over the upper bound {bound} (over the window of the receiver)",
    ),
    TrackReason.seq_below: Rule(
        "ignored",
        "sequence number below the window: data that was acknowledged before",
        "the segment ends at {got}, under the lower bound {bound} (already acknowledged data)",
    ),
    TrackReason.ack_above: Rule(
        "invalid",
        "acknowledges data that was not seen yet",
        "ACK {got} is over the upper bound {bound} (acknowledged data not seen yet)",
    ),
    TrackReason.ack_below: Rule(
        "ignored",
        "acknowledgment far below what is acknowledged already",
        "ACK {got} is under the lower bound {bound} (possibly overly delayed)",
    ),
    TrackReason.overshoot: Rule(
        "ignored",
        "more bytes than the window has room for, but no more than a window",
        "{got} bytes more than expected, of at most {bound}",
    ),
    TrackReason.rst_below: Rule(
        "invalid",
        "a reset below what the other side has acknowledged",
        "RST with SEQ {got}, below the acknowledged {bound}",
    ),
    TrackReason.rst_inexact: Rule(
        "accepted",
        "a reset whose number is not exactly the expected one: the connection stays, for a while",
        "RST with SEQ {got} where {bound} would close; the connection stays ESTABLISHED for now",
    ),
    TrackReason.challenge_ack: Rule(
        "ignored",
        "a challenge ACK (RFC 5961), not the acknowledgment of the FIN",
        "a challenge ACK {got}, not the acknowledgment of the FIN",
    ),
    TrackReason.reopened: Rule(
        "killed",
        "a SYN replaced a connection that was over",
        "the connection in state {bound_state} was over; this SYN begins a new one",
    ),
    TrackReason.reset: Rule(
        "killed",
        "a reset before any answer ended the connection at once",
        "reset in state {bound_state} before any answer: the entry is deleted",
    ),
    TrackReason.table_full: Rule(
        "invalid",
        "the table is full, and nothing near could be dropped",
        "the table holds {got} connections, {bound} are allowed; the kernel drops this packet",
    ),
    TrackReason.chain: Rule(
        "invalid",
        "too many connections in the same bucket",
        "{got} connections in the bucket, {bound} are allowed; the kernel drops this packet",
    ),
    TrackReason.length: Rule(
        "invalid",
        "UDP length below 8 or behind the end of the packet",
        "UDP length {got} in {bound} bytes",
    ),
    TrackReason.coverage: Rule(
        "invalid",
        "UDP-Lite checksum coverage of 1 to 7 or more than there is",
        "checksum coverage {got} of {bound} bytes",
    ),
    TrackReason.no_checksum: Rule(
        "invalid", "UDP-Lite without a checksum", "no checksum, which UDP-Lite must have"
    ),
    TrackReason.icmp_type: Rule(
        "invalid",
        "an ICMP type that cannot be tracked",
        "ICMP type {got}; it belongs to no query that is tracked",
    ),
    TrackReason.unsolicited: Rule(
        "invalid", "an ICMP reply without a request", "ICMP type {got} without a request before it"
    ),
    TrackReason.inner: Rule(
        "invalid",
        "the packet quoted in an ICMP error cannot be read",
        "the quoted packet cannot be read ({got} bytes of it are there)",
    ),
    TrackReason.inner_type: Rule(
        "invalid",
        "the packet quoted in an ICMP error is one that nothing answers",
        "the quoted packet (ICMP type {got}) is one that nothing answers",
    ),
    TrackReason.inner_unknown: Rule(
        "invalid",
        "the packet quoted in an ICMP error belongs to no known connection",
        "the quoted packet belongs to no known connection",
    ),
    TrackReason.outer_address: Rule(
        "invalid",
        "an ICMP error sent to another host than the one it is about",
        "the error is not sent to the host that it is about",
    ),
    TrackReason.discovery: Rule(
        "untracked",
        "neighbor or router discovery, or multicast listener discovery",
        "ICMPv6 type {got} is not tracked",
    ),
    TrackReason.vtag: Rule(
        "invalid",
        "an SCTP verification tag that is not the one agreed on",
        "verification tag 0x{got:08x} where 0x{bound:08x} is right",
    ),
    TrackReason.chunk: Rule(
        "invalid",
        "SCTP chunks that cannot stand together, or a length that cannot be",
        "chunk type {got} at byte {bound} cannot stand there",
    ),
    TrackReason.chunk_state: Rule(
        "invalid",
        "the SCTP state table forbids this chunk",
        "chunk type {got} is not allowed in state {bound_sctp}",
    ),
    TrackReason.gre: Rule(
        "invalid", "GRE version 1 that carries no PPP", "GRE version 1 with protocol 0x{got:04x}"
    ),
    TrackReason.resynchronized: Rule(
        "accepted",
        "packets are missing from the capture here; windows were learned anew (gap_tolerant)",
        "resynchronized after a gap (compared: {got} and {bound})",
    ),
    TrackReason.invalid_noted: Rule(
        "invalid",
        "the second invalid FIN or RST, one from each side: the timeout is cut",
        "SEQ or ACK {got} is not within {bound}; the second of both sides, so the timeout is cut",
    ),
}
"""Every reason in words, by code."""

KINDS: Final = ("a SYN", "a SYN/ACK", "a FIN", "an ACK", "a RST", "a packet without such flags")
"""Classes of TCP packets, by the number that `got` holds for some reasons."""

_FLAGS: Final = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")


def explain(reason: str, got: int | None, bound: int | None) -> str:
    """Tell what was compared, in one line.

    Parameters
    ----------
    reason
        Name of a `TrackReason`.
    got, bound
        Its two numbers, as in a verdict.

    Examples
    --------
    >>> explain("seq_above", 5000, 4000)
    'SEQ 5000 is over the upper bound 4000 (over the window of the receiver)'
    >>> explain("flags", 0x03, None)
    'flags FIN SYN'
    """
    a, b = got or 0, bound or 0
    flags = [name for bit, name in enumerate(_FLAGS) if a >> bit & 1]
    return RULES[TrackReason[reason]].text.format(
        got=a,
        bound=b,
        got_flags=" ".join(flags) or "none",
        got_kind=_at(KINDS, a),
        bound_state=_at(TCP_STATES, b),
        bound_sctp=_at(SCTP_STATES, b),
    )


def _at(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else str(number)


@dataclass(slots=True)
class Verdict:
    """What connection tracking makes of one packet.

    Attributes
    ----------
    ct_class : str
        One of `CLASSES`. Decided before the protocol looks at the packet, as in the kernel.
    direction : str or None
        ``original`` or ``reply``; None where no connection is attached.
    connection : int or None
        Number of the connection the packet belongs to, also if it is invalid there; of one that
        it ended, too.
    state : str or None
        State of that connection afterwards, for TCP and SCTP; None if it is gone.
    timeout : int or None
        Whole seconds left afterwards, as the kernel shows them; None if it is gone.
    assured, seen_reply : bool
        Flags of that connection afterwards (``[UNREPLIED]`` is the absence of `seen_reply`).
    reason : str or None
        Name of a `TrackReason`; None where there is nothing to say. For ``held`` and ``dropped``
        the name of a `fragtrack.Reason`, or None.
    got, bound : int or None
        The numbers that were compared.
    events : tuple of str
        Events that the packet caused, in order: ``new``, ``update``, ``destroy``.
    """

    ct_class: CtClass
    direction: Direction | None = None
    connection: int | None = None
    state: str | None = None
    timeout: int | None = None
    assured: bool = False
    seen_reply: bool = False
    reason: str | None = None
    got: int | None = None
    bound: int | None = None
    events: tuple[str, ...] = ()

    @property
    def detail(self) -> str | None:
        """What was compared, in one line; None where there is nothing to say."""
        if self.reason is None or self.ct_class in {"held", "dropped"}:
            return None
        return explain(self.reason, self.got, self.bound)


@dataclass(slots=True)
class Connection:
    """One connection: a row of the connection table.

    Attributes
    ----------
    id : int
        Number in the order of creation, from 1.
    time_first, time_last : int
        Time stamps of its first and its latest packet, ns. Every packet that found it counts,
        also an ignored or invalid one.
    ip_version, protocol : int
        4 or 6; IP protocol number.
    src, dst : str
        Addresses of the original direction.
    sport, dport : int or None
        Ports of the original direction; None for protocols without.
    vlan : str or None
        VLAN identifiers, outermost first, joined by dots.
    state : str or None
        TCP or SCTP state.
    assured, reply_seen : bool
        Flags.
    packets_orig, bytes_orig, packets_reply, bytes_reply : int
        As the kernel counts: bytes are IP lengths, ignored and invalid packets do not count.
    fragments : int
        Packets of it that came in fragments, ignored and invalid ones included.
    invalid : int
        Packets that found it and were invalid.
    end : str
        ``open`` (still in the table at the end of the input), ``closed`` (both sides finished),
        ``reset``, ``timeout``, ``early_drop`` (gave way in a full table).
    timeout : int or None
        Whole seconds left, where it is still in the table.
    zone : int
        Zone it was given; 0 without.
    icmp_type, icmp_code, icmp_id : int or None
        Of the original direction.
    gre_key : tuple of int or None
        Keys of the original direction (``srckey``, ``dstkey``).
    """

    id: int
    time_first: int
    time_last: int
    ip_version: int
    protocol: int
    src: str
    sport: int | None
    dst: str
    dport: int | None
    vlan: str | None
    state: str | None
    assured: bool
    reply_seen: bool
    packets_orig: int
    bytes_orig: int
    packets_reply: int
    bytes_reply: int
    fragments: int
    invalid: int
    end: End
    timeout: int | None = None
    zone: int = 0
    icmp_type: int | None = None
    icmp_code: int | None = None
    icmp_id: int | None = None
    gre_key: tuple[int, int] | None = None


@dataclass(slots=True)
class Event:
    """Something that happened to a connection, as the kernel announces it.

    Attributes
    ----------
    kind : str
        ``new``, ``update`` or ``destroy``.
    time : int
        When, ns: of the packet, or when its time ran out.
    frame : int or None
        Frame that caused it; None for what time did.
    connection : Connection
        As it was right then; `timeout` is None in a ``destroy`` by time.
    """

    kind: Literal["new", "update", "destroy"]
    time: int
    frame: int | None
    connection: Connection
