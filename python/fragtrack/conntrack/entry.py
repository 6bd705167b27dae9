"""What a line of the kernel's connection table holds, in a form that programs like.

One class for every form of the text: a field that a form leaves out is None (or empty). Addresses
are spelled as `conntrack` does (IPv6 compressed), whatever the form; times are nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from fragtrack.errors import FragtrackError

Form = Literal["list", "extended", "procfs", "event", "xml", "save"]
EventKind = Literal["new", "update", "destroy"]

FORMS: Final = ("list", "extended", "procfs", "event", "xml", "save")
"""``conntrack -L``; the same with ``-o extended``; ``/proc/net/nf_conntrack``; ``conntrack -E``;
``-o xml`` (of ``-L`` and ``-E``); ``-o save`` (of both)."""

PROTOCOLS: Final = {
    1: "icmp",
    6: "tcp",
    17: "udp",
    33: "dccp",
    47: "gre",
    58: "icmpv6",
    132: "sctp",
    136: "udplite",
}
"""Protocols that the kernel has a name for; the rest are ``unknown``."""

_REPLIES: Final = {8: 0, 13: 14, 15: 16, 17: 18, 128: 129, 139: 140}


def reply_type(icmp_type: int | None) -> int | None:
    """Tell the ICMP type that answers a query; None for what is none."""
    return None if icmp_type is None else _REPLIES.get(icmp_type)


class DumpError(FragtrackError):
    """A text that is no entry of a connection table.

    Parameters
    ----------
    expected : str
        What should have stood there.
    found : str
        What stands there instead, cut to a short length.
    line : int or None
        Number of the line, from 1, where it was one of several.
    """

    def __init__(self, expected: str, found: str, line: int | None = None) -> None:
        super().__init__(expected, found, line)
        self.expected = expected
        self.found = found
        self.line = line

    def __str__(self) -> str:
        """Return the one line a user reads."""
        where = "" if self.line is None else f"line {self.line}: "
        shown = self.found if len(self.found) <= 60 else f"{self.found[:57]}..."
        return f"{where}expected {self.expected}, found {shown!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One direction of an entry: a tuple with its zone and its counters.

    Attributes
    ----------
    src, dst : str
        Addresses.
    sport, dport : int or None
        Ports.
    icmp_type, icmp_code, icmp_id : int or None
        Of an ICMP query; XML does not tell them.
    srckey, dstkey : int or None
        Keys of GRE.
    zone : int or None
        Zone that holds for this direction only (``zone-orig``, ``zone-reply``).
    packets, bytes : int or None
        Counters, where accounting is on.
    """

    src: str
    dst: str
    sport: int | None = None
    dport: int | None = None
    icmp_type: int | None = None
    icmp_code: int | None = None
    icmp_id: int | None = None
    srckey: int | None = None
    dstkey: int | None = None
    zone: int | None = None
    packets: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One connection, as the kernel's text tells of it.

    Attributes
    ----------
    form : str
        Which of `FORMS` it was read from, or is meant for.
    protocol : int
        IP protocol number.
    original, reply : Side
        The two directions.
    timeout : int or None
        Seconds left; None for an offloaded connection and one that ran out.
    state : str or None
        State of TCP, SCTP or DCCP.
    assured, unreplied : bool
        Flags.
    offload : str or None
        ``OFFLOAD`` or ``HW_OFFLOAD``; such a line does not tell whether it is assured.
    status : tuple of str
        Further words of ``-u`` in ``-o save``, such as ``FIXED_TIMEOUT``.
    mark, zone, use, id : int or None
        The numbers of these names.
    secctx, helper : str or None
        Security context; connection tracking helper.
    labels : tuple of str or None
        Names of connection labels.
    delta_time : int or None
        Age in seconds.
    start, stop : int or None
        When the kernel began and ended it, ns since 1970; the text tells local time without its
        zone, which is read as UTC.
    gre_timeouts : tuple of int or None
        The two timeouts of GRE that procfs shows, seconds.
    vtags : tuple of int or None
        Verification tags of SCTP, original before reply (``-o save`` shows them).
    event : str or None
        ``new``, ``update`` or ``destroy``.
    time : int or None
        When the event was seen, ns since 1970. XML tells local time, which is read as UTC.
    columns : bool
        An event with the columns of ``-o extended``.
    portid : int or None
        Netlink port of the program that caused the event.
    progname : str or None
        Name of that program.
    extras : tuple of str
        Words that are not understood, in order.
    """

    form: Form
    protocol: int
    original: Side
    reply: Side
    timeout: int | None = None
    state: str | None = None
    assured: bool = False
    unreplied: bool = False
    offload: str | None = None
    status: tuple[str, ...] = ()
    mark: int | None = None
    secctx: str | None = None
    zone: int | None = None
    delta_time: int | None = None
    start: int | None = None
    stop: int | None = None
    helper: str | None = None
    use: int | None = None
    id: int | None = None
    labels: tuple[str, ...] | None = None
    gre_timeouts: tuple[int, int] | None = None
    vtags: tuple[int, int] | None = None
    event: EventKind | None = None
    time: int | None = None
    columns: bool = False
    portid: int | None = None
    progname: str | None = None
    extras: tuple[str, ...] = ()
    # The text this was read from, after the text that the fields alone would give: it is given
    # back for as long as the fields still say the same. None where the two are equal.
    written: tuple[str, str] | None = field(default=None, repr=False, compare=False)

    @property
    def ip_version(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.original.src else 4

    @property
    def protocol_name(self) -> str:
        """Name of the protocol, as the kernel knows it; ``unknown`` for the rest."""
        return PROTOCOLS.get(self.protocol, "unknown")

    @property
    def translated(self) -> bool:
        """Whether addresses or ports are translated: the reply is not the original turned round."""
        a, b = self.original, self.reply
        return (a.src, a.dst, a.sport, a.dport, a.srckey, a.dstkey) != (
            b.dst,
            b.src,
            b.dport,
            b.sport,
            b.dstkey,
            b.srckey,
        )
