"""The Rust benchmark of the engine: built by cargo, run once for every workload and round."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

FLOOD_MEMORY = 4 << 20
"""Bytes the engine may use in the flood: what a Linux host has by default."""


HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Environment that makes glibc ask for huge pages, as the drivers of the peers do themselves.

It takes several starts at times: glibc 2.36 compares the system's answer beyond its end.
"""

STARTS = 12
TRY_AGAIN = 75
"""Exit status of the benchmark where its memory is not in huge pages."""


def build(name: str = "engine") -> Path:
    """Build a benchmark and say where it is.

    Raises
    ------
    RuntimeError
        If cargo fails.
    """
    command = ["cargo", "bench", "--locked", "--package", "fragtrack-capture"]
    command += ["--bench", name, "--no-run", "--message-format", "json"]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    for line in result.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message.get("target", {}).get("name") == name:
            return Path(message["executable"])
    raise RuntimeError("cargo did not build the benchmark")


def measure(
    program: Path, pcap: Path, truth: dict[str, Any], rounds: int, *, huge: bool = True
) -> list[dict[str, Any]]:
    """Run every measurement of the program on one capture.

    Parameters
    ----------
    huge
        Put the capture and the tables into huge pages, where the system grants them.

    Returns
    -------
    list
        One sample a measurement and round: `what`, `cpu_ns`, `wall_ns`, `drain_ns`, `records`,
        `datagrams`, `bytes`, `huge`.

    Raises
    ------
    RuntimeError
        If a pass found other datagrams or bytes than the truth.
    """
    command = [str(program), str(pcap), "--rounds", str(rounds)]
    command += ["--datagrams", str(truth["datagrams"]), "--bytes", str(truth["ip_payload_bytes"])]
    if truth["name"] == "flood":  # how many survive is what is measured
        command += ["--memory", str(FLOOD_MEMORY), "--percent", "0"]
    return start(program, command[1:], huge=huge)


def start(program: Path, arguments: list[str], *, huge: bool) -> list[dict[str, Any]]:
    """Start a benchmark, in huge pages if they are wanted and granted; gives its samples.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    command = [str(program), *arguments]
    for _ in range(STARTS if huge else 0):
        told, status = _start([*command, "--huge"], {**os.environ, **HUGE})
        if status != TRY_AGAIN:
            return [{**sample, "huge": True} for sample in told]
    told, _ = _start(command, dict(os.environ))
    return [{**sample, "huge": False} for sample in told]


def _start(command: list[str], environment: dict[str, str]) -> tuple[list[dict[str, Any]], int]:
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if result.returncode not in (0, TRY_AGAIN):
        raise RuntimeError(f"{command[1]}: {result.stderr.strip()}")
    return [json.loads(line) for line in result.stdout.splitlines()], result.returncode
