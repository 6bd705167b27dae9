"""The machine a measurement was made on, and how quiet it was."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def describe() -> dict[str, Any]:
    """Collect what a reader needs to judge the numbers; nothing that names the machine."""
    return {
        "cpu": _cpu_field("model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "mhz": _cpu_field("cpu MHz"),
        "caches": _caches(),
        "memory_mb": _memory_mb(),
        "virtual": "hypervisor" in (_cpu_field("flags") or "").split(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": _chosen(_read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "rustc": _first_line("rustc", "--version"),
        "cc": _first_line("gcc", "--version"),
        "commit": _first_line("git", "rev-parse", "HEAD"),
        "changed": bool(_first_line("git", "status", "--porcelain")),
        "load": list(os.getloadavg()),
        "noise": noise(),
    }


def noise(rounds: int = 200) -> dict[str, float]:
    """Time the same short piece of work again and again.

    Returns
    -------
    dict
        `median_us` of one round; `p95` and `worst` as multiples of it; `stolen`, the part of the
        wall time in which this thread did not run. On a quiet machine: 1.0x, below 1.5, 0.0.
    """
    took = []
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        sum(range(50_000))
        took.append((time.perf_counter_ns() - begin) / 1000)
    wall = time.perf_counter_ns() - wall
    cpu = time.thread_time_ns() - cpu
    took.sort()
    middle = statistics.median(took)
    return {
        "median_us": round(middle, 1),
        "p95": round(took[rounds * 95 // 100] / middle, 3),
        "worst": round(took[-1] / middle, 3),
        "stolen": round(max(0.0, 1 - cpu / wall), 4),
    }


def summary(machine: dict[str, Any]) -> str:
    """Say in one line what the machine is."""
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    kind = "virtual " if machine["virtual"] else ""
    return (
        f"{machine['cores']} {kind}cores of {machine['cpu']} ({caches}), "
        f"{machine['kernel']}, {machine['rustc']}, Python {machine['python']}"
    )


def _cpu_field(name: str) -> str | None:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _caches() -> dict[str, str]:
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = _read(index / "type")
        name = f"L{_read(index / 'level')}" + {"Data": "d", "Instruction": "i"}.get(kind or "", "")
        found[name] = _read(index / "size") or "?"
    return found


def _memory_mb() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (ValueError, OSError):
        return None


def _chosen(modes: str | None) -> str | None:
    """Give the bracketed word of ``always [madvise] never``."""
    return modes.partition("[")[2].partition("]")[0] if modes else None


def _read(path: str | Path) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _first_line(*command: str) -> str | None:
    try:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return next(iter(result.stdout.splitlines()), None)
