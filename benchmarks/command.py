"""The whole command: against a copy of the same file, its start-up, its memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import workloads

Sample = dict[str, Any]
POLL = 0.002  # seconds between looks at the memory of a running command


def command(*arguments: str) -> list[str]:
    """Give the command as it is installed beside this interpreter, else as a module."""
    script = Path(sys.executable).with_name("fragtrack")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "fragtrack"]
    return [*start, *arguments]


def timed(arguments: list[str]) -> tuple[Sample, str]:
    """Run a program; returns its times (ns) and what it wrote to standard output.

    Raises
    ------
    subprocess.CalledProcessError
        If it fails.
    """
    begin = time.perf_counter_ns()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    told = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter_ns() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    cpu = round((usage.ru_utime + usage.ru_stime) * 1e9)
    return {"cpu_ns": cpu, "wall_ns": wall, "records": 1}, told


def against_copy(pcap: Path, truth: dict[str, Any], folder: Path, rounds: int) -> list[Sample]:
    """Rewrite a capture and copy it, in turns, all of it in the page cache."""
    out = folder / "out.pcap"
    rewrite = command("reassemble", str(pcap), "-o", str(out), "--json")
    copy = ["cp", str(pcap), str(out)]
    samples = []
    for number in range(rounds + 1):
        for what, arguments in (("cp", copy), ("fragtrack reassemble", rewrite)):
            out.unlink(missing_ok=True)
            os.sync()  # what the run before wrote is not this one's burden
            with pcap.open("rb") as file:
                while file.read(1 << 22):
                    pass
            sample, told = timed(arguments)
            if what != "cp":
                assert json.loads(told)["datagrams"]["complete"] == truth["datagrams"]
            if number:
                samples.append({**sample, "what": what, "round": number})
    out.unlink(missing_ok=True)
    return samples


def start_up(folder: Path, rounds: int) -> list[Sample]:
    """Time the command on nothing, and on a capture of a few packets."""
    small = folder / "small"
    small.mkdir(exist_ok=True)
    workloads.make("3f", small, 0.0001)
    out = str(small / "out.pcap")
    each = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "fragtrack --version": command("--version"),
        "fragtrack reassemble, 192 packets": command(
            "reassemble", str(small / "3f.pcap"), "-o", out
        ),
    }
    samples = []
    for number in range(rounds + 1):
        for what, arguments in each.items():
            sample, _ = timed(arguments)
            if number:  # the first round warms up
                samples.append({**sample, "what": what, "round": number})
    return samples


def peak_anonymous(arguments: list[str]) -> int:
    """Run a program and give the most anonymous memory it had at any look, KiB."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    status, most = Path(f"/proc/{process.pid}/status"), 0
    while process.poll() is None:
        for line in status.read_text().splitlines():
            if line.startswith("RssAnon:"):
                most = max(most, int(line.split()[1]))
        time.sleep(POLL)
    return most


def memory(folder: Path, scales: list[float]) -> list[Sample]:
    """Measure peak anonymous memory for files of growing size, where the disk has room.

    Returns
    -------
    list
        `what`, `file_bytes`, `peak_kb`.
    """
    samples = []
    out = folder / "out.pcap"
    for scale in scales:
        place = folder / f"scale-{scale:g}"
        if shutil.disk_usage(folder).free < scale * 1.5e9 + 2e9:
            print(f"no room on the disk for the file of scale {scale:g}", file=sys.stderr)
            continue
        place.mkdir(exist_ok=True)
        truth = workloads.make("3f", place, scale)
        arguments = command("reassemble", str(place / "3f.pcap"), "-o", str(out))
        size = truth["file_bytes"]
        what = f"fragtrack reassemble, {size / 1e6:,.0f} MB"
        samples.append({"what": what, "file_bytes": size, "peak_kb": peak_anonymous(arguments)})
        out.unlink(missing_ok=True)
        if scale > 1:
            shutil.rmtree(place)
    return samples
