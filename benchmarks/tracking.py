"""Connection tracking: beside its floors, by itself, from Python, as a command; other programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import command
import flow_peers
import flows
import native
import peers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from figures import Figure, Figures, Judge

Sample = dict[str, Any]
Draw = Callable[[list[str], list[list[str]]], str]

FLOOR = "floor-flow"
TRACK, NOSUM = "track", "track-nosum"
NAMES = tuple(flows.SHAPES)
BESIDE = ("tcp-mix", "udp-dns")
"""Workloads that other programs get, too."""
FLOOD = "syn-flood"
LIMIT = 3.5
MICRO, PYTHON, COMMAND = "tracker", "python, tracking", "command, tracking"
PARQUET = "fragtrack track -o FILE.parquet"
INNER = 2  # passes of the native benchmark in each round


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and where.

    Attributes
    ----------
    names
        Workloads.
    build
        Where drivers of other programs are built; None leaves other programs out.
    python
        The interpreter that has dpkt and NFStream.
    """

    folder: Path
    scale: float
    rounds: int
    huge: bool
    names: tuple[str, ...] = NAMES
    build: Path | None = None
    python: str = sys.executable


def measure(plan: Plan) -> Iterator[tuple[str, Sample]]:
    """Measure everything; gives samples with the workload they are of."""
    program = native.build("track")
    others = []
    if plan.build is not None:
        peers.drivers(plan.build, None)
        others = flow_peers.installed(plan.build, plan.python)
    for name in plan.names:
        for sample in in_turns(plan, name, program, others if name in BESIDE else []):
            yield name, sample
    for kind in ("hot", "ipv4", "ipv6"):  # each in a process of its own: memory is weighed
        arguments = ["--made", "--only", kind, "--rounds", str(plan.rounds)]
        for sample in native.start(program, arguments, huge=plan.huge):
            yield MICRO, sample
    truth = flows.make("tcp-mix", plan.folder, plan.scale)
    pcap = plan.folder / truth["file"]
    for sample in from_python(pcap, truth, plan.rounds):
        yield PYTHON, sample
    for sample in whole_command(pcap, truth, plan.folder, plan.rounds):
        yield COMMAND, sample


def in_turns(
    plan: Plan, name: str, program: Path, others: list[flow_peers.Peer]
) -> Iterator[Sample]:
    """Measure the floors, the tracker and other programs in turns on one workload."""
    truth = flows.make(name, plan.folder, plan.scale)
    pcap = plan.folder / truth["file"]
    arguments = [str(pcap), "--rounds", str(INNER)]
    arguments += ["--connections", str(truth["connections"]), "--invalid", str(truth["invalid"])]
    if name == FLOOD:
        arguments.append("--room")
    for number in range(plan.rounds):
        for sample in native.start(program, arguments, huge=plan.huge):
            yield {**sample, "round": number}
        for peer in others:
            if number >= peer.rounds:
                continue
            with tempfile.TemporaryDirectory(dir=plan.folder) as scratch:
                job = flow_peers.Job(pcap, truth, Path(scratch))
                found = flow_peers.measure(peer, job) if peer.udp or not job.udp else None
            if found is not None:
                yield {**found, "round": number}


def from_python(pcap: Path, truth: Sample, rounds: int) -> Iterator[Sample]:
    """Time `Tracker.push` and `fragtrack.track`, in a process of their own."""
    arguments = [sys.executable, str(Path(__file__).with_name("track_api.py")), str(pcap)]
    arguments += ["--rounds", str(rounds * INNER), "--connections", str(truth["connections"])]
    result = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, result.stdout.splitlines())


def whole_command(pcap: Path, truth: Sample, folder: Path, rounds: int) -> Iterator[Sample]:
    """Time the command, with a table and without, beside a copy of the capture, in turns."""
    copy, table = folder / "copy.pcap", folder / "connections.parquet"
    ways = {
        "cp": ["cp", str(pcap), str(copy)],
        "fragtrack track": command.command("track", str(pcap), "--json"),
        PARQUET: command.command("track", str(pcap), "-o", str(table), "--json"),
    }
    for number in range(rounds * INNER + 1):
        for what, arguments in ways.items():
            for written in (copy, table):
                written.unlink(missing_ok=True)
            os.sync()  # what the run before wrote is not this one's burden
            with pcap.open("rb") as file:
                while file.read(1 << 22):
                    pass
            sample, told = command.timed(arguments)
            if what != "cp":
                right(json.loads(told), truth)
            if number:  # the first round warms up
                yield {**sample, "what": what, "round": number}
    copy.unlink(missing_ok=True)
    table.unlink(missing_ok=True)


def right(found: Sample, truth: Sample) -> None:
    """Assert that what the command tells of a capture is true."""
    connections, resets = truth["connections"], truth["resets"]
    assert found["packets"] == truth["packets"]
    assert found["connections"]["total"] == connections
    assert found["connections"]["ends"] == {"closed": connections - resets, "reset": resets}
    assert found["classes"].get("invalid", 0) == truth["invalid"]


def tables(found: Figures, samples: list[Sample], draw: Draw, *, short: bool = False) -> str:
    """Draw what was measured; `short`: of the workloads only the first one."""
    rows = []
    for name in NAMES[: 1 if short else None]:
        if found.find(name, FLOOR) is not None:
            rows += [_row(found, name, figure) for figure in found.of(name)]
    parts = []
    if rows:
        head = [
            "workload",
            "what",
            "ns a packet",
            "/ floor-flow",
            "/ track",
            "drain",
        ]
        parts.append(draw([*head, "connections"], rows))
    if found.of(MICRO):
        rows = [[f.what, f"{f.ns:,.0f}", f"{1e3 / f.ns:.1f}"] for f in found.of(MICRO)]
        parts += [
            draw(["the tracker by itself", "ns", "million a second"], rows),
            *_made(samples, draw),
        ]
    rows = [[f.what, f"{f.wall:,.0f} ns", f"{f.ns:,.0f} ns"] for f in found.of(PYTHON)]
    rows += [[f.what, f"{f.wall / 1e9:.3f} s", f"{f.ns / 1e9:.3f} s"] for f in found.of(COMMAND)]
    if rows:
        parts.append(draw(["from Python a packet; the command on tcp-mix", "wall", "CPU"], rows))
    return "\n".join(parts)


def _row(found: Figures, name: str, figure: Figure) -> list[str]:
    what = figure.what
    ratios = [found.ratio(name, what, base) for base in (FLOOR, TRACK)]
    row = [name, what, f"{figure.ns:,.0f} ({figure.low:,.0f}-{figure.high:,.0f})"]
    row += [f"{ratio:.2f}" if ratio else "-" for ratio in ratios]
    row.append(f"{figure.drain:.1f}" if figure.drain and figure.drain >= 0.5 else "-")
    lost = figure.lost
    return [
        *row,
        "-"
        if lost is None
        else f"{lost:,} missing"
        if lost > 0
        else f"{-lost:,} too many"
        if lost
        else "all",
    ]


def _made(samples: list[Sample], draw: Draw) -> Iterator[str]:
    """Draw what a connection takes and how long a dump stops the tracker."""
    weighed = [sample for sample in samples if "bytes_each" in sample and sample["round"] == 1]
    rows = [
        [s["what"], str(s["bytes_each"]), str(s["used_each"]), str(s["resident_each"])]
        for s in weighed
    ]
    if rows:
        yield draw(["bytes a connection", "table", "of it in use", "resident set"], rows)
    stops: dict[str, list[Sample]] = {}
    for sample in samples:
        if "page_ns" in sample:
            stops.setdefault(sample["what"], []).append(sample)
    rows = [
        [what, *(f"{median(s[key] for s in each) / 1e6:,.2f}" for key in ("all_ns", "page_ns"))]
        for what, each in stops.items()
    ]
    if rows:
        yield draw(["a dump of a million, ms", "all at once", "longest page of 1,024"], rows)


def judge(found: Figures, samples: list[Sample], verdicts: Judge) -> None:
    """Hold the figures against the targets."""
    for what in (TRACK, NOSUM):
        verdicts.most(f"{what} / floor-flow", "tcp-mix", LIMIT, found.ratio("tcp-mix", what, FLOOR))
    for what, limit in (
        ("one flow", 8.0),
        ("new flows, IPv4", 2.0),
        ("new flows, IPv6", 2.0),
        ("look-ups, IPv4", 5.0),
        ("look-ups, IPv6", 5.0),
    ):
        figure = found.find(MICRO, what)
        value = 1e3 / figure.ns if figure else None
        verdicts.least(f"{what}, million a second", "a million connections", limit, value)
    for sample in samples:
        if "bytes_each" in sample and sample["round"] == 1:
            family = str(sample["what"]).removeprefix("memory, ")
            verdicts.most(f"bytes a connection, {family}", "a million", 192, sample["bytes_each"])
    figure = found.find(COMMAND, PARQUET)
    value = figure.wall / 1e9 if figure else None
    verdicts.most("command with a Parquet table, seconds", "tcp-mix", 0.35, value)
