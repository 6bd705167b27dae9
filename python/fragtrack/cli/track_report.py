"""The summary of tracking that a person reads: what was found, what is odd, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fragtrack.cli.report import MEANING as REASSEMBLY
from fragtrack.cli.values import bytes_text, plural
from fragtrack.events import Reason
from fragtrack.verdicts import RULES, TrackReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fragtrack.conntrack import Comparison
    from fragtrack.track_summary import TrackSummary

MEANING: Final[dict[TrackReason, str]] = {
    TrackReason.header: "its IP header cannot be; corrupt",
    TrackReason.fragment: "a fragment that was not put together; see orphans below",
    TrackReason.extension: "its IPv6 extension headers lead nowhere; corrupt or forged",
    TrackReason.short: "its header is cut short; corrupt, or raise the snap length",
    TrackReason.offset: "its TCP header length cannot be; corrupt or forged",
    TrackReason.checksum: "wrong checksum; corrupt, or left to the network card",
    TrackReason.flags: "TCP flags that do not go together; a port scan, as a rule",
    TrackReason.no_entry: "belongs to none and begins none; it was over, or is older",
    TrackReason.not_loose: "its connection began before; --set tcp_loose=1 picks it up",
    TrackReason.transition: "not allowed in this state; out of order, or forged",
    TrackReason.state: "counts only once the other side has answered; harmless",
    TrackReason.seq_above: "beyond the receiver's window; forged, or packets missing",
    TrackReason.seq_below: "data that was acknowledged before; a repetition, harmless",
    TrackReason.ack_above: "acknowledges data that was not seen; packets missing",
    TrackReason.ack_below: "an acknowledgment that is far too old; late, harmless",
    TrackReason.overshoot: "more bytes than the window has room for; harmless",
    TrackReason.rst_below: "a reset below what is acknowledged; late, or forged",
    TrackReason.rst_inexact: "a reset not quite at the right number; closes nothing yet",
    TrackReason.challenge_ack: "a challenge ACK, which closes nothing; harmless",
    TrackReason.reopened: "a SYN in place of a connection that was over; harmless",
    TrackReason.reset: "a reset before any answer; nobody listens there",
    TrackReason.table_full: "the table is full, a host drops it; see --set max=N",
    TrackReason.chain: "too many connections in one bucket, a host drops it; attack",
    TrackReason.length: "its UDP length cannot be; corrupt",
    TrackReason.coverage: "its UDP-Lite coverage cannot be; corrupt",
    TrackReason.no_checksum: "UDP-Lite without a checksum; corrupt",
    TrackReason.icmp_type: "an ICMP type that is not tracked; a host says INVALID, too",
    TrackReason.unsolicited: "an ICMP reply without its request; forged, or asked earlier",
    TrackReason.inner: "an ICMP error that quotes nothing readable; cut, or forged",
    TrackReason.inner_type: "an ICMP error about a packet that nothing answers",
    TrackReason.inner_unknown: "an ICMP error about no connection; it was over, or is older",
    TrackReason.outer_address: "an ICMP error sent to the wrong host; forged, or NAT",
    TrackReason.discovery: "neighbor or listener discovery; never tracked, harmless",
    TrackReason.vtag: "an SCTP tag that is not the agreed one; late, or forged",
    TrackReason.chunk: "SCTP chunks that cannot stand together; corrupt or forged",
    TrackReason.chunk_state: "an SCTP chunk not allowed in this state; late, or forged",
    TrackReason.gre: "GRE version 1 that carries no PPP; corrupt or forged",
    TrackReason.resynchronized: "behind a gap in the capture; its windows were learned anew",
    TrackReason.invalid_noted: "the second invalid FIN or RST; its connection ends soon",
}
"""What a reason means to whoever reads the summary, and what to do about it."""

ORPHANS: Final[dict[Reason, str]] = {
    **REASSEMBLY,
    Reason.overlap: "shares bytes with another; a host drops the whole datagram",
    Reason.abandoned: "of a datagram dropped for an overlap",
    Reason.timeout: "the rest did not come in time; lost",
    Reason.memory: "no room for it; --limits capture has more",
    Reason.evicted: "gave way to others; too many at once",
}
"""The same for fragments that were not put together; there are fewer options to point to."""

NOTES: Final = {
    (TrackReason.checksum,): (
        "Checksums: the network card fills them in behind a capture on the sender; if so, add",
        "--set checksum=ignore",
    ),
    (TrackReason.ack_above, TrackReason.seq_above): (
        "Windows: if packets are missing from the capture, add --set gap_tolerant=1 to go on",
        "behind each gap",
    ),
}
"""What else to say about reasons, at the end."""

LIMIT: Final = 20
"""Lines of each kind of difference to a dump; ``--json`` tells all."""

PRE_6_1: Final = {TrackReason.seq_below, TrackReason.ack_below}
"""Ignored today, invalid then."""


class Places(NamedTuple):
    """Where things came from and went, as the user wrote it; None where not asked for.

    `form` is the format of the output. `old`: the rules are those before Linux 6.1. `options`
    decide on verdicts, to say in a command that shows more.
    """

    inputs: tuple[str, ...]
    output: str | None
    verdicts: str | None
    events: str | None
    form: str | None = None
    old: bool = False
    options: tuple[str, ...] = ()


def summary_lines(summary: TrackSummary, places: Places) -> Iterator[str]:
    """Give the lines; labels end with two blanks, which is where color stops."""
    first = places.inputs[0]
    name = first if len(places.inputs) == 1 else f"{len(places.inputs)} inputs"
    yield (
        f"{name}  {plural(summary.packets, 'packet')}, {bytes_text(summary.bytes)}"
        f" in {summary.seconds:.2f} s"
    )
    if summary.connections:
        yield f"  connections  {summary.connections:,} ({_counts(summary.protocols)})"
        ends = _counts(_worded(summary.ends))
        yield f"  ended        {ends}; {summary.open:,} still in the table"
    else:
        yield "  connections  none"
    if summary.classes:
        yield f"  packets      {_counts(_ranked(summary.classes))}"
    yield from _reasons(summary, places)
    yield from _fragments(summary)
    yield from _outputs(summary, places)
    yield from _notes(summary, places)


def comparison_lines(comparison: Comparison, dump: str) -> Iterator[str]:
    """Give the lines of a comparison with a dump: the numbers, then what differs."""
    first, *rest = comparison.lines(LIMIT)
    yield f"{dump}  {first}"
    for line in rest:
        yield f"    {line}"


def _reasons(summary: TrackSummary, places: Places) -> Iterator[str]:
    total = sum(summary.reasons.values())
    if not total:
        return
    yield f"  reasons      {plural(total, 'packet')}"
    for name, count in _ranked(summary.reasons).items():
        reason = TrackReason[name]
        effect = "invalid" if places.old and reason in PRE_6_1 else RULES[reason].effect
        yield f"    {name:<15}  {count:>7,}  {effect:<9}  {MEANING[reason]}"


def _fragments(summary: TrackSummary) -> Iterator[str]:
    v4, v6 = summary.fragments.get("ipv4", 0), summary.fragments.get("ipv6", 0)
    if not v4 and not v6:
        return
    complete = summary.datagrams.get("complete", 0)
    incomplete = summary.datagrams.get("incomplete", 0)
    yield f"  fragments    {v4 + v6:,} ({v4:,} IPv4, {v6:,} IPv6)"
    yield f"  datagrams    {complete:,} put together, {incomplete:,} incomplete"
    if summary.orphans:
        total = sum(summary.orphans.values())
        yield f"  orphans      {plural(total, 'fragment')} of none that was put together"
    for name, count in _ranked(summary.orphans).items():
        yield f"    {name:<15}  {count:>7,}  {ORPHANS[Reason[name]]}"


def _outputs(summary: TrackSummary, places: Places) -> Iterator[str]:
    if places.output is not None:
        count = summary.open if places.form == "conntrack" else summary.connections
        what = "Zeek's view" if places.form == "zeek" else plural(count, "connection")
        yield f"  output       {what} in {places.output}"
    if places.verdicts is not None:
        total = sum(summary.classes.values())
        yield f"  verdicts     {plural(total, 'packet')} in {places.verdicts}"
    if places.events is not None:
        yield f"  events       in {places.events}"


def _notes(summary: TrackSummary, places: Places) -> Iterator[str]:
    """Say what may help, and where to see which packets it is about."""
    lines = [
        line
        for reasons, text in NOTES.items()
        if any(reason.name in summary.reasons for reason in reasons)
        for line in text
    ]
    if summary.reasons and places.verdicts is None:
        lines.append(f"To see which: {_command(places)}")
    elif summary.reasons:
        lines.append(f"To see which: 'reason' in {places.verdicts}")
    for number, line in enumerate(lines):
        yield f"  {'' if number else 'note':11}  {line}"


def _command(places: Places) -> str:
    """Give the command that shows them, where the inputs can be read again."""
    from shlex import quote

    if "standard input" in places.inputs:
        return "add --verdicts verdicts.csv"
    names = [quote(name) for name in places.inputs[:3]]
    more = ["..."] if len(places.inputs) > 3 else []
    return " ".join(["fragtrack track", *names, *more, *places.options, "--verdicts verdicts.csv"])


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _worded(counts: Mapping[str, int]) -> dict[str, int]:
    words = {"open": "still open", "early_drop": "dropped early", "timeout": "timed out"}
    return {words.get(name, name): count for name, count in counts.items()}


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(_sorted(counts.items()))


def _sorted(items: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(items, key=lambda item: (-item[1], item[0]))
