"""Other programs that put fragments together, on the same files, as far as they are installed.

Nothing here is required. Drivers in C, C++ and Go are taken from ``../shared/bench`` where that
folder lies beside the checkout, and built there into a folder of our own; a library that is missing
leaves its peer out. Each runs in a process of its own and makes one pass.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapes import CLASSIC, Shape

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "bench"
TIMEOUT = 200  # seconds a pass

Accepts = Callable[[Shape], bool]


@dataclass(frozen=True, slots=True)
class Peer:
    """A program and when to run it.

    Attributes
    ----------
    command
        Makes the arguments from the shape and the file.
    accepts
        Which workloads it can do.
    cut
        It is so slow that it gets the head of the file.
    whole
        It has no timed loop inside: the whole process is timed.
    rounds
        How often at most.
    """

    name: str
    command: Callable[[Shape, Path], list[str]]
    accepts: Accepts
    cut: bool = False
    whole: bool = False
    rounds: int = 99


def classic(shape: Shape) -> bool:
    """Tell the workloads of ordinary packet size."""
    return shape.name in CLASSIC


def classic4(shape: Shape) -> bool:
    """Tell those without IPv6."""
    return classic(shape) and shape.family == 4


def drivers(folder: Path, dpdk_source: str | None) -> dict[str, Path]:
    """Build the C, C++ and Go drivers that can be built; returns their paths by name."""
    script = SHARED / "run_peers.py"
    if not script.exists():
        print("no ../shared/bench: peers in C, C++ and Go are left out", file=sys.stderr)
        return {}
    command = [sys.executable, str(script), "--only-build", "--build", str(folder)]
    if dpdk_source:
        command += ["--dpdk-src", dpdk_source]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in result.stdout.splitlines():
        if line.startswith("skip"):
            print(line, file=sys.stderr)
    names = ("floor", "sketch", "dpdk", "dpdk64", "libnids", "libtins", "gopacket")
    return {name: folder / name for name in names if (folder / name).exists()}


def installed(built: dict[str, Path], python: str = sys.executable) -> list[Peer]:
    """List the peers that can run here; `python` is the interpreter that has scapy and dpkt."""
    peers = []

    def add(name: str, program: str, *arguments: str, accepts: Accepts = classic) -> None:
        if program in built:
            path = str(built[program])
            peers.append(Peer(name, lambda _, pcap: [path, str(pcap), *arguments], accepts))

    add("floor-walk (C)", "floor", "walk")
    add("floor-gather (C)", "floor", "gather")
    add("sketch, chain (C)", "sketch", "chain")
    add("sketch, gathered (C)", "sketch", "gather")
    peers += _dpdk(built)
    add("libnids", "libnids", accepts=classic4)
    add("libtins", "libtins", accepts=classic4)
    add("gopacket", "gopacket", accepts=classic4)
    if tshark := shutil.which("tshark"):
        peers.append(_tshark(tshark))
    for name in ("scapy", "dpkt"):
        if has(python, name):
            peers.append(_python(python, name, cut=True))
    peers.append(_python(python, "plain Python", cut=False))
    peers.append(_python(python, "one bytes a datagram", cut=False))
    return peers


def has(python: str, module: str) -> bool:
    """Tell whether an interpreter can import a module."""
    result = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    return result.returncode == 0


def _tshark(program: str) -> Peer:
    """tshark, one line for each datagram that it put together."""
    fields = ("ip.reassembled.length", "ipv6.reassembled.length")
    options = ["-Y", " or ".join(fields), "-T", "fields"]
    for field in fields:
        options += ["-e", field]

    def command(_: Shape, pcap: Path) -> list[str]:
        return [program, "-n", "-r", str(pcap), *options]

    return Peer("tshark", command, classic, whole=True, rounds=1)


def _python(python: str, name: str, *, cut: bool) -> Peer:
    driver = str(Path(__file__).with_name("python_peers.py"))

    def command(_: Shape, pcap: Path) -> list[str]:
        return [python, driver, name, str(pcap)]

    return Peer(name, command, classic, cut=cut, rounds=2 if cut else 99)


def _dpdk(built: dict[str, Path]) -> list[Peer]:
    """DPDK's table, 64 fragments a datagram if that was built, else 8.

    Table size, lifetime and prefetch distance are those that served it best: nothing is lost, and
    a larger or longer-lived table costs it more.
    """
    program, most = ("dpdk64", 64) if "dpdk64" in built else ("dpdk", 8)
    if program not in built:
        return []

    def accepts(shape: Shape) -> bool:
        small = shape.fragments <= most and shape.open <= 10_000
        return (small and shape.family == 4) or shape.name == "v6-3f"

    def peer(mode: str, name: str) -> Peer:
        def command(shape: Shape, pcap: Path) -> list[str]:
            lifetime = "10" if shape.junk else "100"  # milliseconds
            return [str(built[program]), str(pcap), mode, "32768", lifetime, "8"]

        return Peer(name, command, accepts)

    return [peer("chain", "DPDK, chain"), peer("gather", "DPDK, gathered")]


def measure(peer: Peer, shape: Shape, pcap: Path, truth: dict[str, Any]) -> dict[str, Any] | None:
    """Make one pass; None if the program failed.

    Returns
    -------
    dict
        A sample as those of `native.measure`, with `lost`: datagrams that it should have completed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter_ns()
    try:
        result = subprocess.run(
            peer.command(shape, pcap), capture_output=True, text=True, timeout=TIMEOUT, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{peer.name} on {shape.name}: {error}", file=sys.stderr)
        return None
    wall = time.perf_counter_ns() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sample = {"what": peer.name, "records": truth["packets"], "cut": peer.cut}
    if peer.whole:
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        sample["lost"] = truth["datagrams"] - len(result.stdout.splitlines())
        return {**sample, "cpu_ns": round(cpu * 1e9), "wall_ns": wall, "whole": True}
    told = json.loads(result.stdout.splitlines()[-1])
    if "floor" not in told["driver"]:
        sample["lost"] = truth["datagrams"] - told["datagrams"]
    cpu_ns, wall_ns = round(told["loop_cpu"] * 1e9), round(told["loop_wall"] * 1e9)
    return {**sample, "cpu_ns": cpu_ns, "wall_ns": wall_ns}
