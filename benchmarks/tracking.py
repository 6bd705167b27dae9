"""Connection tracking: beside its floors, by itself, from Python, as a command; other programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import command
import flows
import native
import peers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from figures import Figures, Judge

Sample = dict[str, Any]

FLOOR, WALK = "floor-flow", "floor-walk"
TRACK, NOSUM = "track", "track-nosum"
NAMES = ("tcp-mix", "tcp-one", "syn-flood")
LIMIT = 3.5
MICRO = "tracker"


def measure(
    folder: Path, scale: float, rounds: int, *, huge: bool, with_peers: bool, built: Path
) -> Iterator[tuple[str, Sample]]:
    """Measure everything; gives samples with the workload they are of."""
    program = native.build("track")
    for name in NAMES:
        truth = flows.make(name, folder, scale)
        pcap = folder / truth["file"]
        for number in range(rounds):
            for sample in native.start(program, [str(pcap), "--rounds", "2"], huge=huge):
                yield name, {**sample, "round": number}
            if name == "tcp-mix" and with_peers:
                for found in others(pcap, truth, built):
                    yield name, {**found, "round": number}
    for sample in native.start(program, ["--made", "--rounds", str(rounds)], huge=huge):
        yield MICRO, sample
    pcap = folder / "tcp-mix.pcap"
    truth = flows.make("tcp-mix", folder, scale)
    for sample in from_python(pcap, rounds):
        yield "python, tracking", sample
    for sample in whole_command(pcap, truth, folder, rounds):
        yield "command, tracking", sample


def others(pcap: Path, truth: Sample, built: Path) -> Iterator[Sample]:
    """Run other programs once each, as far as they are installed; all but one are timed whole."""
    driver = built / "libnids"
    if driver.exists():
        told = json.loads(
            subprocess.check_output([driver, pcap, "--tcp"], text=True).splitlines()[-1]
        )
        cpu, wall = round(told["loop_cpu"] * 1e9), round(told["loop_wall"] * 1e9)
        yield {"what": "libnids", "cpu_ns": cpu, "wall_ns": wall, "records": truth["packets"]}
    scratch = str(pcap.with_name("peer.out"))
    programs: dict[str, tuple[str, list[str]]] = {
        "softflowd": ("softflowd", ["-r", str(pcap), "-m", "200000", "-n", "127.0.0.1:9"]),
        "argus": ("argus", ["-r", str(pcap), "-w", scratch]),
        "tshark": ("tshark", ["-n", "-r", str(pcap), "-q", "-z", "conv,tcp"]),
    }
    for name, (program, arguments) in programs.items():
        found = shutil.which(program) or shutil.which(program, path="/usr/sbin")
        if found is None:
            continue
        try:
            sample = whole([found, *arguments])
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        yield {**sample, "what": f"{name} (whole process)", "records": truth["packets"]}
    Path(scratch).unlink(missing_ok=True)


def whole(arguments: list[str]) -> Sample:
    """Run a program; gives its times."""
    begin = time.perf_counter_ns()
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    cpu = round((usage.ru_utime + usage.ru_stime) * 1e9)
    return {"cpu_ns": cpu, "wall_ns": time.perf_counter_ns() - begin}


def from_python(pcap: Path, rounds: int) -> Iterator[Sample]:
    """Time `Tracker.push` and `fragtrack.track`, in a process of their own."""
    arguments = [sys.executable, str(Path(__file__).with_name("track_api.py")), str(pcap)]
    arguments += ["--rounds", str(rounds * 2)]
    result = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, result.stdout.splitlines())


def whole_command(pcap: Path, truth: Sample, folder: Path, rounds: int) -> Iterator[Sample]:
    """Time the command, with a table and without."""
    out = folder / "connections.parquet"
    ways = {
        "fragtrack track": command.command("track", str(pcap), "--json"),
        "fragtrack track -o FILE.parquet": command.command(
            "track", str(pcap), "-o", str(out), "--json"
        ),
    }
    for number in range(2 * rounds + 1):
        for what, arguments in ways.items():
            sample, told = command.timed(arguments)
            found = json.loads(told)
            assert found["connections"]["total"] == truth["connections"]
            assert found["classes"].get("invalid", 0) == 0
            if number:  # the first round warms up
                yield {**sample, "what": what, "round": number}
    out.unlink(missing_ok=True)


def tables(
    found: Figures, draw: Callable[[list[str], list[list[str]]], str], *, short: bool = False
) -> str:
    """Draw what was measured; `short`: of the workloads only the first one."""
    rows = []
    for name in NAMES[: 1 if short else None]:
        if found.find(name, FLOOR) is None:
            continue
        for figure in found.of(name):
            ratio = found.ratio(name, figure.what, FLOOR)
            spread = f"{figure.ns:,.0f} ({figure.low:,.0f}-{figure.high:,.0f})"
            rows.append([name, figure.what, spread, f"{ratio:.2f}" if ratio else "-"])
    if not rows:
        return ""
    parts = [draw(["workload", "what", "ns a packet", "/ floor-flow"], rows)]
    by_itself = [
        [f.what, f"{f.ns:,.0f}", f"{1e3 / f.ns:.1f}"] for f in found.of(MICRO) if f.what != "dump"
    ]
    parts.append(draw(["the tracker by itself", "ns", "million a second"], by_itself))
    timed = [
        [f.what, f"{f.wall:,.0f} ns" if name.startswith("python") else f"{f.wall / 1e9:.3f} s"]
        for name in ("python, tracking", "command, tracking")
        for f in found.of(name)
    ]
    parts.append(draw(["from Python a packet; the command", "wall"], timed))
    return "\n".join(parts)


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
        if "bytes_each" in sample:
            family = str(sample["what"]).removeprefix("memory, ")
            verdicts.most(f"bytes a connection, {family}", "a million", 192, sample["bytes_each"])
    figure = found.find("command, tracking", "fragtrack track -o FILE.parquet")
    value = figure.wall / 1e9 if figure else None
    verdicts.most("command with a Parquet table, seconds", "tcp-mix", 0.35, value)


def drivers(folder: Path, *, wanted: bool) -> Path:
    """Build the drivers of peers that can be built; gives their folder."""
    if wanted:
        peers.drivers(folder, None)
    return folder
