"""Other programs that follow connections, on the same files, as far as they are installed.

Nothing here is required. libnids has a loop of ours around it, the driver in ``../shared/bench``;
three run in a Python of their own. Of all others the whole process is timed, its start and its
reading of the file included.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers

Sample = dict[str, Any]
Count = Callable[[str, "Job"], int | None]
"""Reads from the output of a program how many connections it found."""

HEAD = 100_000
"""Packets for what takes ten seconds otherwise."""


@dataclass(frozen=True, slots=True)
class Job:
    """A file to follow, what is in it, and a folder for what a program writes."""

    pcap: Path
    truth: Sample
    scratch: Path

    @property
    def udp(self) -> bool:
        """Whether it is all UDP."""
        return str(self.truth["name"]).startswith("udp")


@dataclass(frozen=True, slots=True)
class Peer:
    """A program and when to run it.

    Attributes
    ----------
    command
        Makes the arguments.
    count
        Reads from the output how many connections it found, if that can be said. Without it the
        program tells what it did in a line of JSON.
    udp
        It follows UDP, too.
    rounds
        How often at most.
    """

    name: str
    command: Callable[[Job], list[str]]
    count: Count | None = None
    udp: bool = True
    rounds: int = 99


def installed(built: Path, python: str = sys.executable) -> list[Peer]:
    """List the peers that can run here; `python` is the interpreter that has dpkt and NFStream."""
    found = []
    driver = built / "libnids"
    if driver.exists():
        found.append(Peer("libnids", lambda job: [str(driver), str(job.pcap), "--tcp"], udp=False))
    for name, make in WHOLE.items():
        program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
        if program is not None:
            found.append(make(program))
    script = str(Path(__file__).with_name("python_flow_peers.py"))
    for name, module, rounds in (("NFStream", "nfstream", 2), ("dpkt", "dpkt", 2)):
        if peers.has(python, module):
            found.append(_python(python, script, name, rounds))
    found.append(_python(python, script, "plain Python", 99))
    return found


def _python(python: str, script: str, name: str, rounds: int) -> Peer:
    most = str(HEAD if name == "dpkt" else sys.maxsize)
    return Peer(name, lambda job: [python, script, name, str(job.pcap), most], rounds=rounds)


def _softflowd(program: str) -> Peer:
    """softflowd, without a control socket: with one it may wait for ever at the end of a file."""

    def command(job: Job) -> list[str]:
        pid = str(job.scratch / "softflowd.pid")
        return [program, "-r", str(job.pcap), "-d", "-m", "2000000", "-c", "none", "-p", pid]

    return Peer("softflowd", command, lambda out, _: _number(r"Flows expired: (\d+)", out))


def _argus(program: str) -> Peer:
    def command(job: Job) -> list[str]:
        return [program, "-r", str(job.pcap), "-w", str(job.scratch / "argus.out")]

    def count(_: str, job: Job) -> int | None:
        reader = shutil.which("ra")
        if reader is None:
            return None
        protocol = "udp" if job.udp else "tcp"
        arguments = [reader, "-r", str(job.scratch / "argus.out"), "-n", "-L", "-1", "-s", "proto"]
        result = subprocess.run(
            [*arguments, "-", protocol], capture_output=True, text=True, check=True
        )
        return result.stdout.split().count(protocol)

    return Peer("argus", command, count)


def _tshark(program: str) -> Peer:
    def command(job: Job) -> list[str]:
        kind = "conv,udp" if job.udp else "conv,tcp"
        return [program, "-n", "-q", "-r", str(job.pcap), "-z", kind]

    return Peer("tshark", command, lambda out, _: out.count("<->"), rounds=2)


def _nfpcapd(program: str) -> Peer:
    """nfpcapd: a flow is one direction, so that connections of two directions are half as many."""

    def command(job: Job) -> list[str]:
        folder = job.scratch / "nfpcapd"
        folder.mkdir(exist_ok=True)
        return [program, "-r", str(job.pcap), "-w", str(folder)]

    def count(out: str, job: Job) -> int | None:
        flows = sum(int(word) for word in re.findall(r"Flows: (\d+)", out))
        return None if job.udp else flows // 2

    return Peer("nfpcapd", command, count)


def _ovstest(program: str) -> Peer:
    """Open vSwitch's tracker, driven by its own test program, which prints each packet."""
    return Peer(
        "Open vSwitch test-conntrack",
        lambda job: [program, "test-conntrack", "pcap", str(job.pcap), "32"],
        lambda _, __: None,
    )


WHOLE: dict[str, Callable[[str], Peer]] = {
    "softflowd": _softflowd,
    "argus": _argus,
    "nfpcapd": _nfpcapd,
    "ovstest": _ovstest,
    "tshark": _tshark,
}


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None


def measure(peer: Peer, job: Job) -> Sample | None:
    """Make one pass; None if the program failed.

    Returns
    -------
    dict
        A sample as those of `native.start`, with `lost`: connections that it should have found, and
        `whole` where the whole process was timed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter_ns()
    try:
        result = subprocess.run(
            peer.command(job),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if peer.count else subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=peers.TIMEOUT,
            check=True,
        )
        wall = time.perf_counter_ns() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if peer.count is None:
            return _told(peer, job, json.loads(result.stdout.splitlines()[-1]))
        found = peer.count(result.stdout, job)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{peer.name} on {job.pcap.name}: {error}", file=sys.stderr)
        return None
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sample = {"what": f"{peer.name} (whole process)", "records": job.truth["packets"]}
    sample |= {"cpu_ns": round(cpu * 1e9), "wall_ns": wall, "whole": True}
    if found is not None:
        sample["lost"] = job.truth["connections"] - found
    return sample


def _told(peer: Peer, job: Job, told: Sample) -> Sample:
    """Make a sample of what a program says about itself."""
    cpu, wall = round(told["loop_cpu"] * 1e9), round(told["loop_wall"] * 1e9)
    packets = told["packets"]
    sample = {"what": peer.name, "records": packets, "cpu_ns": cpu, "wall_ns": wall}
    if packets == job.truth["packets"]:
        return {**sample, "lost": job.truth["connections"] - told["connections"]}
    return {**sample, "cut": True}
