"""The summary a person reads: what was found, what became of it, and what to do about the rest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from fragtrack.cli.values import bytes_text, plural
from fragtrack.events import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from fragtrack.files import Summary

BOLD, YELLOW, PLAIN = "\033[1m", "\033[33m", "\033[0m"

MEANING: dict[Reason, str] = {
    Reason.duplicate: "all its bytes were there already; harmless",
    Reason.overlap: "shares bytes with another where the policy forbids it; see --policy",
    Reason.last_conflict: "contradicts where the datagram ends; forged or corrupt",
    Reason.past_last: "lies behind the end of the datagram; forged or corrupt",
    Reason.empty: "carries no usable byte; forged or corrupt",
    Reason.too_far: "too much of the same source in between; --limits capture waits on",
    Reason.ecn: "its congestion marks must not be mixed; a host drops it, too",
    Reason.oversize: "would exceed 65,535 bytes; an attack, as a rule",
    Reason.timeout: "the rest did not come in time; lost, or see --timeout4, --timeout6",
    Reason.memory: "no room for it; raise --memory, or choose another --reclaim",
    Reason.evicted: "gave way to others; raise --memory",
    Reason.truncated: "not fully captured; capture with a larger snap length",
    Reason.header: "its IP header cannot be; corrupt",
    Reason.checksum: "wrong header checksum; --limits capture does not mind",
    Reason.unaligned: "its length is no multiple of 8; a host drops it, too",
    Reason.chain: "lacks a part of the header chain; a host drops it, too",
    Reason.fragment_header: "its fragment header is cut short; corrupt",
    Reason.nested: "a fragment inside a fragment; a host drops it, too",
    Reason.end: "the input ended first; if the capture goes on elsewhere, give both",
    Reason.abandoned: "of a datagram discarded for an overlap; see --policy",
}
"""What a reason means to whoever reads the summary, and what to do about it."""

POLICY_COST = (Reason.overlap, Reason.abandoned)
LIMITS_COST = (Reason.too_far, Reason.memory, Reason.evicted, Reason.checksum)

ANOMALIES = {
    "bad_checksum": (
        "fragment",
        "used in spite of a wrong IPv4 header checksum; --limits kernel drops such",
    ),
}


class Places(NamedTuple):
    """Where things came from and went, as the user wrote it; None where not asked for."""

    inputs: tuple[str, ...]
    output: str | None
    table: str | None
    keep: bool


def print_summary(summary: Summary, places: Places, stream: TextIO) -> None:
    """Print the summary, in color if the stream is a terminal that likes it."""
    paint = _color if _colorful(stream) else _plain
    stream.writelines(paint(line) + "\n" for line in summary_lines(summary, places))


def summary_lines(summary: Summary, places: Places) -> Iterator[str]:
    """Give the lines; labels end with two blanks, which is where color stops."""
    first = places.inputs[0]
    name = first if len(places.inputs) == 1 else f"{len(places.inputs)} inputs"
    yield (
        f"{name}  {plural(summary.packets, 'packet')}, {bytes_text(summary.bytes)}"
        f" in {summary.seconds:.2f} s"
    )
    v4, v6 = summary.fragments.get("ipv4", 0), summary.fragments.get("ipv6", 0)
    if v4 or v6:
        yield f"  fragments  {v4 + v6:,} ({v4:,} IPv4, {v6:,} IPv6)"
        complete = summary.datagrams.get("complete", 0)
        incomplete = summary.datagrams.get("incomplete", 0)
        yield f"  datagrams  {complete:,} put together, {incomplete:,} incomplete"
    else:
        yield "  fragments  none"
    yield from _reasons(summary, places)
    for anomaly, count in sorted(summary.anomalies.items()):
        if count:
            noun, what = ANOMALIES.get(anomaly, ("packet", anomaly.replace("_", " ")))
            yield f"  odd        {plural(count, noun)} {what}"
    yield from _outputs(summary, places)
    yield from _cost(summary, places)


def _reasons(summary: Summary, places: Places) -> Iterator[str]:
    total = sum(summary.reasons.values())
    if not total:
        return
    kept = ""
    if places.output is not None:
        kept = "; written as they were" if places.keep else "; left out"
        if places.keep and summary.reasons.get("duplicate"):
            kept += " (duplicates left out)"
    yield f"  not used   {plural(total, 'fragment')}{kept}"
    ranked = sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0]))
    for name, count in ranked:
        yield f"    {name:<15}  {count:>7,}  {MEANING[Reason[name]]}"


def _outputs(summary: Summary, places: Places) -> Iterator[str]:
    if places.output is not None:
        yield f"  output     {plural(summary.written, 'packet')} in {places.output}"
    if places.table is not None:
        total = sum(summary.datagrams.values())
        yield f"  table      {plural(total, 'datagram')} in {places.table}"


def _cost(summary: Summary, places: Places) -> Iterator[str]:
    """Say what the choices of the user cost, and where to see which datagrams."""
    costs = []
    for what, reasons in (("policy", POLICY_COST), ("limits", LIMITS_COST)):
        hit = {r.name: n for r in reasons if (n := summary.reasons.get(r.name, 0))}
        if hit:
            detail = ", ".join(f"{name} {count:,}" for name, count in hit.items())
            costs.append(f"the {what} cost {plural(sum(hit.values()), 'fragment')} ({detail})")
    if not costs:
        return
    text = "; ".join(costs)
    yield f"  note       {text[0].upper()}{text[1:]}."
    if places.table is None:
        yield f"             To see which datagrams: {_table_command(places)}"
    else:
        yield f"             Which datagrams: see 'outcome' in {places.table}"


def _table_command(places: Places) -> str:
    """Give the command that shows them, where the inputs can be read again."""
    from shlex import quote

    if "standard input" in places.inputs:
        return "add --datagrams lost.jsonl"
    names = " ".join(quote(name) for name in places.inputs[:3])
    more = " ..." if len(places.inputs) > 3 else ""
    return f"fragtrack reassemble {names}{more} --datagrams lost.jsonl"


def _colorful(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _plain(line: str) -> str:
    return line


def _color(line: str) -> str:
    indent = len(line) - len(line.lstrip())
    label, gap, rest = line[indent:].partition("  ")
    if not gap:
        return line
    color = YELLOW if indent == 4 else BOLD
    return f"{line[:indent]}{color}{label}{PLAIN}{gap}{rest}"
