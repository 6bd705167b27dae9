"""The summary a person reads: what was found, what became of it, and what to do about the rest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from fragtrack.cli.values import bytes_text, plural
from fragtrack.events import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from fragtrack.summary import Summary

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

COSTS: dict[str, tuple[Reason, ...]] = {
    "The policy": (Reason.overlap, Reason.abandoned),
    "The limits": (Reason.too_far, Reason.evicted, Reason.memory, Reason.checksum),
    "What a host refuses": (
        Reason.last_conflict,
        Reason.past_last,
        Reason.empty,
        Reason.ecn,
        Reason.oversize,
        Reason.nested,
    ),
}
"""Who gave up, or refused, what might have come together: and for which reasons."""

ANOMALIES = {
    "bad_checksum": (
        "fragment",
        "used in spite of a wrong IPv4 header checksum; --limits kernel drops such",
    ),
}


class Places(NamedTuple):
    """Where things came from and went, as the user wrote it; None where not asked for.

    `options` are those that decide what comes together, to say in a command that shows more.
    """

    inputs: tuple[str, ...]
    output: str | None
    table: str | None
    keep: bool
    options: tuple[str, ...] = ()


def print_summary(summary: Summary, places: Places, stream: TextIO) -> None:
    """Print the summary, in color if the stream is a terminal that likes it."""
    print_lines(summary_lines(summary, places), stream)


def print_lines(lines: Iterable[str], stream: TextIO) -> None:
    """Print lines as `summary_lines` gives them, in color if the stream likes it."""
    paint = _color if _colorful(stream) else _plain
    stream.writelines(paint(line) + "\n" for line in lines)


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
    """Say what was given up on purpose, in datagrams, and where to see which."""
    costs = [line for who, reasons in COSTS.items() if (line := _cost_line(who, reasons, summary))]
    if not costs:
        return
    if places.table is None:
        costs.append(f"To see which: {_table_command(places)}")
    else:
        costs.append(f"To see which: 'outcome' in {places.table}")
    for number, line in enumerate(costs):
        yield f"  {'' if number else 'note':9}  {line}"


def _cost_line(who: str, reasons: Iterable[Reason], summary: Summary) -> str | None:
    """Say how many datagrams, or how many fragments where they were refused before."""
    lost = {r.name: n for r in reasons if (n := summary.given_up.get(r.name, 0))}
    alone = {
        r.name: n for r in reasons if r.name not in lost and (n := summary.reasons.get(r.name, 0))
    }
    parts = []
    if lost:
        parts.append(f"cost {plural(sum(lost.values()), 'datagram')} ({_counts(lost)})")
    if alone:
        parts.append(f"kept out {plural(sum(alone.values()), 'fragment')} ({_counts(alone)})")
    return f"{who} {' and '.join(parts)}." if parts else None


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _table_command(places: Places) -> str:
    """Give the command that shows them, where the inputs can be read again."""
    from shlex import quote

    if "standard input" in places.inputs:
        return "add --datagrams lost.jsonl"
    names = [quote(name) for name in places.inputs[:3]]
    more = ["..."] if len(places.inputs) > 3 else []
    options = [*places.options, "--datagrams lost.jsonl"]
    return " ".join(["fragtrack reassemble", *names, *more, *options])


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
