#!/usr/bin/env python3
"""Measure everything, print the tables, keep a record.

``python benchmarks/run.py`` (or ``make bench``) makes the workloads, builds the benchmark of the
engine, and measures it in turns with the floors and with whatever other programs are installed;
then the Python interfaces and the command. ``--quick`` does a small part in seconds.
``--show RECORD`` prints the tables of an earlier run, ``--readme FILE`` puts the short ones between
the marks ``<!-- figures: begin`` and ``<!-- figures: end`` of a file, those of tracking between
``<!-- tracking: begin`` and ``<!-- tracking: end``.

Every sample goes into one new file under ``benchmarks/records/``, with the machine. Records are
never changed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import command
import figures
import machine
import native
import peers
import tables
import tracking
import workloads
from shapes import CLASSIC, FRAGMENTS, QUEUES, shapes

HERE = Path(__file__).resolve().parent
GROUPS = ("engine", "fragments", "queues", "python", "command", "track")
INNER = 2  # passes of the native benchmark in each round

Sample = dict[str, Any]


def names_of(group: str, *, quick: bool) -> list[str]:
    """List the workloads of a group."""
    both = ("", "-shuffled")
    sizes: tuple[int, ...]
    if group == "engine":
        return ["3f", "3f+dos"] if quick else [*CLASSIC, "flood"]
    if group == "fragments":
        sizes = (2, 64) if quick else FRAGMENTS
        tiny = [] if quick else [f"tiny-8191{end}" for end in both]
        return [f"frags-{size}{end}" for size in sizes for end in both] + tiny
    sizes = (1, 10_000) if quick else QUEUES
    return [f"queues-{size}{end}" for size in sizes for end in both if size > 1 or not end]


class Run:
    """One run: options in, samples out."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder: Path = options.data
        self.folder.mkdir(parents=True, exist_ok=True)
        self.samples: list[Sample] = []
        self.machine = machine.describe()
        self.began = dt.datetime.now(dt.UTC)

    def everything(self) -> None:
        """Measure the groups that were asked for."""
        todo = [group for group in GROUPS if group in self.options.groups]
        if {"engine", "fragments", "queues"} & set(todo):
            program = native.build()
            others = []
            if not self.options.no_peers:
                built = peers.drivers(self.folder / "build", self.options.dpdk_source)
                others = peers.installed(built, self.options.peer_python)
            for group in (name for name in todo if name in ("engine", "fragments", "queues")):
                for name in names_of(group, quick=self.options.quick):
                    if not self.options.workloads or name in self.options.workloads:
                        self.engine(name, program, others)
        if "python" in todo:
            self.python()
        if "command" in todo:
            self.command()
        if "track" in todo:
            self.track()

    def engine(self, name: str, program: Path, others: list[peers.Peer]) -> None:
        """Measure the floors, the engine and the peers in turns on one workload."""
        pcap, truth = self.make(name)
        shape = shapes(self.options.scale)[name]
        others = [peer for peer in others if peer.accepts(shape)]
        huge = not self.options.small_pages
        for number in range(self.options.rounds):
            self.say(f"{name}, round {number + 1} of {self.options.rounds}")
            for sample in native.measure(program, pcap, truth, INNER, huge=huge):
                self.keep(name, {**sample, "round": number, "expected": truth["datagrams"]})
            for peer in others:
                if number >= peer.rounds:
                    continue
                path = pcap.with_suffix(".cut.pcap") if peer.cut else pcap
                known = json.loads(path.with_suffix(".json").read_text())
                found = peers.measure(peer, shape, path, known)
                if found is not None:
                    self.keep(name, {**found, "round": number})

    def python(self) -> None:
        """Measure the Python interfaces, in a process of their own."""
        pcap, _ = self.make("3f")
        self.say("Python interfaces")
        arguments = [sys.executable, str(HERE / "python_api.py"), str(pcap)]
        arguments += ["--rounds", str(self.options.rounds * INNER)]
        result = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
        for line in result.stdout.splitlines():
            self.keep("python", json.loads(line))

    def command(self) -> None:
        """Measure the command as users start it."""
        pcap, truth = self.make("3f")
        rounds = self.options.rounds * INNER
        self.say("the command against cp")
        for sample in command.against_copy(pcap, truth, self.folder, rounds):
            self.keep("command", sample)
        self.say("start-up")
        for sample in command.start_up(self.folder, rounds):
            self.keep("start-up", sample)
        self.say("memory")
        scales = [0.01, 0.1] if self.options.quick else [0.1, 1.0, 3.3]
        for sample in command.memory(self.folder, scales):
            self.keep("memory", sample)

    def track(self) -> None:
        """Measure connection tracking."""
        options = self.options
        wanted = options.workloads or tracking.NAMES
        plan = tracking.Plan(
            folder=self.folder,
            scale=options.scale,
            rounds=options.rounds,
            huge=not options.small_pages,
            names=tuple(name for name in tracking.NAMES if name in wanted),
            build=None if options.no_peers else self.folder / "build",
            python=options.peer_python,
        )
        for name, sample in tracking.measure(plan):
            self.say(f"tracking: {name}, {sample['what']}")
            self.keep(name, sample)

    def make(self, name: str) -> tuple[Path, dict[str, Any]]:
        """Make a workload; returns its file and the truth about it."""
        truth = workloads.make(name, self.folder, self.options.scale)
        return self.folder / truth["file"], truth

    def keep(self, workload: str, sample: Sample) -> None:
        """Add a sample."""
        self.samples.append({"workload": workload, **sample})

    def say(self, what: str) -> None:
        """Tell a person at a terminal what goes on."""
        if sys.stderr.isatty():
            columns = shutil.get_terminal_size().columns - 1
            print(f"\r{what[:columns]:{columns}}", end="", file=sys.stderr, flush=True)

    def record(self) -> dict[str, Any]:
        """Put together what is kept of the run."""
        found = figures.Figures(self.samples)
        return {
            "version": 1,
            "when": self.began.isoformat(timespec="seconds"),
            "seconds": round((dt.datetime.now(dt.UTC) - self.began).total_seconds(), 1),
            "scale": self.options.scale,
            "rounds": self.options.rounds,
            "machine": {**self.machine, "noise_after": machine.noise()},
            "figures": [figures.plain(figure) for figure in found.all.values()],
            "samples": [lean(sample) for sample in self.samples],
        }


def lean(sample: Sample) -> Sample:
    """Leave out what no table needs."""
    return {key: value for key, value in sample.items() if key not in ("sum", "bytes")}


def save(record: dict[str, Any], folder: Path) -> Path:
    """Write a record under a new name, and take away the right to write to it."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = record["when"].replace("-", "").replace(":", "")[:15]
    commit = (record["machine"]["commit"] or "no-commit")[:9]
    path = folder / f"{stamp}Z-{commit}.json"
    with path.open("x") as file:
        lines = [f"  {json.dumps(sample)}" for sample in record.pop("samples")]
        head = json.dumps(record, indent=1, ensure_ascii=False).removesuffix("\n}")
        file.write(head + ',\n "samples": [\n' + ",\n".join(lines) + "\n ]\n}\n")
    path.chmod(0o444)
    return path


def show(path: Path, readme: Path | None) -> None:
    """Print the tables of a record, and put the short ones into a file if there is one."""
    record = json.loads(path.read_text())
    samples = record["samples"]
    found = figures.Figures(samples)
    verdicts = figures.verdicts(found, samples)
    print(tables.draw(record, found, verdicts))
    if readme:
        text = readme.read_text()
        if found.of("tcp-mix"):
            text = between(text, "tracking", tables.short_tracking(record, found))
        if found.of("3f"):
            text = between(text, "figures", tables.short(record, found))
        readme.write_text(text)


def between(text: str, mark: str, part: str) -> str:
    """Put a part between its marks."""
    begin = text.index("\n", text.index(f"<!-- {mark}: begin")) + 1
    end = text.index(f"<!-- {mark}: end")
    return f"{text[:begin]}\n{part}\n{text[end:]}"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(tempfile.gettempdir()) / "fragtrack-bench"
    add = parser.add_argument
    add("--quick", action="store_true", help="a small part, in seconds; nothing is recorded")
    add("--groups", nargs="*", default=list(GROUPS), choices=GROUPS, help="what to measure")
    add("--workloads", nargs="*", help="of these groups, only the workloads named")
    add("--rounds", type=int, help=f"rounds of {INNER} passes (default: 4)")
    add("--scale", type=float, help="of the workloads (default: 1, 450 MB files)")
    add(
        "--data", type=Path, default=default, help="where workloads are kept (default: %(default)s)"
    )
    records = HERE / "records"
    add("--records", type=Path, default=records, help="for records (default: %(default)s)")
    add("--small-pages", action="store_true", help="the engine's memory not in huge pages")
    add("--no-peers", action="store_true", help="leave out other programs")
    add("--dpdk-source", help="DPDK's source tree: builds its table for 64 fragments a datagram")
    add("--peer-python", default=sys.executable, help="the one with scapy, dpkt, NFStream")
    add("--show", type=Path, metavar="RECORD", help="measure nothing, print an earlier record")
    add("--readme", type=Path, metavar="FILE", help="put the short tables between its marks")
    options = parser.parse_args()
    if options.quick:
        options.no_peers = True
        options.data /= "quick"
    options.rounds = options.rounds or (2 if options.quick else 4)
    options.scale = options.scale or (0.05 if options.quick else 1.0)
    return options


def main() -> int:
    """Run."""
    options = arguments()
    if options.show:
        show(options.show, options.readme)
        return 0
    begin = time.perf_counter()
    run = Run(options)
    run.everything()
    run.say("")
    record = run.record()
    if options.quick:
        found = figures.Figures(run.samples)
        print(tables.draw(record, found, []))
        print("A quick run shows that all of it works; files this small say nothing about targets.")
        return 0
    path = save(record, options.records)
    show(path, options.readme)
    print(f"{path}, {time.perf_counter() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
