"""A record as Markdown: one table for each group of measurements."""

from __future__ import annotations

from typing import Any

import machine
import tracking
from figures import CHAIN, DPDK, FLAT, GATHER, GATHERED, WALK, Figure, Figures, Verdict
from shapes import CLASSIC, FRAGMENTS, QUEUES

Rows = list[list[str]]
LOUD = 1.5


def table(head: list[str], rows: Rows) -> str:
    """Draw a Markdown table; every column but the first is to the right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def ns(figure: Figure | None) -> str:
    """Give nanoseconds, with the extremes."""
    if figure is None:
        return "-"
    digits = 0 if figure.ns >= 20 else 1
    return f"{figure.ns:,.{digits}f} ({figure.low:,.{digits}f}-{figure.high:,.{digits}f})"


def times(value: float | None, limit: float | None = None, *, least: bool = False) -> str:
    """Give a ratio, bold where it misses its limit."""
    if value is None:
        return "-"
    text = f"{value:,.2f}" if value < 20 else f"{value:,.0f}"
    if limit is None:
        return text
    met = value >= limit if least else value <= limit
    return f"{text} met" if met else f"**{text}** not met"


def engine(figures: Figures, names: list[str]) -> str:
    """Draw the engine beside the floors and DPDK, a row for each workload."""
    head = ["ns a record", "walk", "ahead", "keyed", "gather", "reader", "engine", "/ walk"]
    head += ["drain", "engine, gathered", "/ gather", "DPDK", "DPDK / engine"]
    rows: Rows = []
    for name in names:
        chain = figures.find(name, CHAIN)
        if not figures.find(name, WALK):
            continue
        row = [name, *(_short(figures.find(name, f"floor-{f}")) for f in ("walk", "ahead"))]
        row += [_short(figures.find(name, f"floor-{f}")) for f in ("keyed", "gather")]
        row += [_short(figures.find(name, "reader")), ns(chain)]
        row += [times(figures.ratio(name, CHAIN, WALK), 0.75)]
        row += [f"{chain.drain:.1f}" if chain and chain.drain is not None else "-"]
        row += [ns(figures.find(name, GATHER))]
        row += [times(figures.ratio(name, GATHER, GATHERED), 1.3), ns(figures.find(name, DPDK))]
        row += [times(figures.ratio(name, DPDK, CHAIN), 2.0, least=True)]
        rows.append(row)
    return table(head, rows) if rows else ""


def peers(figures: Figures, names: list[str]) -> str:
    """Draw everything measured on the ordinary workloads, a row for each program."""
    names = [name for name in names if figures.of(name)]
    whats = list(dict.fromkeys(figure.what for name in names for figure in figures.of(name)))
    rows = [
        [what, *(_cell(figures.find(name, what), floors=True) for name in names)] for what in whats
    ]
    return table(["ns a record (/ walk, / gather)", *names], rows) if rows else ""


def series(figures: Figures, stem: str, sizes: tuple[int, ...]) -> str:
    """Draw the cost over a size, in order and shuffled, as multiples of the first in order."""
    base = figures.find(f"{stem}-{sizes[0]}", CHAIN)
    head = [stem, "walk", "keyed", "gather", "engine", "/ walk", "/ first", "engine, gathered"]
    head += ["/ gather", "shuffled", "/ walk", "/ first in order"]
    rows: Rows = []
    for size in sizes:
        name, other = f"{stem}-{size}", f"{stem}-{size}-shuffled"
        chain, mixed = figures.find(name, CHAIN), figures.find(other, CHAIN)
        if base is None or chain is None:
            continue
        row = [f"{size:,}", _short(figures.find(name, WALK))]
        row += [_short(figures.find(name, "floor-keyed")), _short(figures.find(name, GATHERED))]
        row += [ns(chain), times(chain.walk), times(chain.ns / base.ns, FLAT)]
        row += [ns(figures.find(name, GATHER)), times(figures.ratio(name, GATHER, GATHERED))]
        row += [ns(mixed), times(mixed.walk if mixed else None)]
        row += [times(mixed.ns / base.ns if mixed else None, FLAT)]
        rows.append(row)
    return table(head, rows) if rows else ""


def whole(figures: Figures, samples: list[dict[str, Any]]) -> str:
    """Draw the Python interfaces and the command."""
    drawn = []
    rows = [[f.what, ns(f), f"{f.wall:,.0f}", str(f.rounds)] for f in figures.of("python")]
    if rows:
        drawn.append(table(["Python, 3f", "ns a packet", "wall", "rounds"], rows))
    rows = [
        [f.what, f"{f.wall / 1e9:.3f} s", f"{f.ns / 1e9:.3f} s", str(f.rounds)]
        for group in ("command", "start-up")
        for f in figures.of(group)
    ]
    if rows:
        drawn.append(table(["command", "wall", "CPU", "rounds"], rows))
    rows = [[s["what"], f"{s['peak_kb'] / 1024:,.1f} MiB"] for s in samples if "peak_kb" in s]
    if rows:
        drawn.append(table(["command", "peak anonymous memory"], rows))
    return "\n".join(drawn)


def judged(verdicts: list[Verdict]) -> str:
    """Draw the targets."""
    rows = [
        [v.target, v.workload, v.limit, f"{v.value:,.2f}", "met" if v.met else "**not met**"]
        for v in verdicts
    ]
    return table(["target", "workload", "limit", "measured", ""], rows) if rows else ""


def heading(record: dict[str, Any]) -> str:
    """Say what was measured where."""
    noise = max(record["machine"][key]["p95"] for key in ("noise", "noise_after"))
    loud = "" if noise < LOUD else " **Others used the machine: look at the ratios only.**"
    return (
        f"{machine.summary(record['machine'])}. {record['when'][:10]}, scale {record['scale']:g}. "
        f"Noise: 95 % of equal pieces of work took at most {noise:.2f} of their median.{loud}\n"
    )


def draw(record: dict[str, Any], figures: Figures, verdicts: list[Verdict]) -> str:
    """Draw a whole record."""
    parts = {
        "Engine beside the floors": engine(figures, [*CLASSIC, "flood"]),
        "Fragments a datagram": series(figures, "frags", FRAGMENTS),
        "Tiny fragments": engine(figures, ["tiny-8191", "tiny-8191-shuffled"]),
        "Open queues": series(figures, "queues", QUEUES),
        "Every program": peers(figures, list(CLASSIC)),
        "Python and the command": whole(figures, record["samples"]),
        "Connection tracking": tracking.tables(figures, record["samples"], table),
        "Targets": judged(verdicts),
    }
    drawn = (f"### {title}\n\n{text}" for title, text in parts.items() if text)
    return "\n".join([heading(record), *drawn])


def short(record: dict[str, Any], figures: Figures) -> str:
    """Draw what a reader of the README wants to know."""
    head = ["CPU ns a packet", "serial walk", "gather floor", "fragtrack", "/ walk"]
    head += ["contiguous", "/ gather", "DPDK's table", "plain Python", "scapy"]
    rows: Rows = []
    for name in [*CLASSIC, "flood"]:
        if not figures.find(name, CHAIN):
            continue
        row = [name, _short(figures.find(name, WALK)), _short(figures.find(name, GATHERED))]
        row += [_short(figures.find(name, CHAIN)), times(figures.ratio(name, CHAIN, WALK))]
        row += [_short(figures.find(name, GATHER)), times(figures.ratio(name, GATHER, GATHERED))]
        row += [_cell(figures.find(name, what)) for what in (DPDK, "plain Python", "scapy")]
        rows.append(row)
    parts = [heading(record), table(head, rows) if rows else ""]
    return "\n".join([*parts, whole(figures, record["samples"])])


def short_tracking(record: dict[str, Any], figures: Figures) -> str:
    """Draw the same of connection tracking."""
    drawn = tracking.tables(figures, record["samples"], table, short=True)
    return f"{heading(record)}\n{drawn}"


def _short(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return f"{figure.ns:,.0f}" if figure.ns >= 20 else f"{figure.ns:.1f}"


def _cell(figure: Figure | None, *, floors: bool = False) -> str:
    """Give nanoseconds, on demand the ratios to the floors, and what was lost."""
    if figure is None:
        return "-"
    text = _short(figure)
    if floors and figure.walk is not None and figure.gather is not None:
        text += f" ({times(figure.walk)}, {times(figure.gather)})"
    return text + (f" loses {figure.lost:,}" if figure.lost else "")
