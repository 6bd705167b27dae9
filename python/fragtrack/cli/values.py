"""Values of options: how they are written, and how numbers are shown."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def size(text: str) -> int:
    """Read a size in bytes: ``4194304``, ``512M``, ``1G``, ``1.5GiB``; units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ArgumentTypeError(f"{text!r} is no size; write bytes, or for example 512M or 1G")
    number, unit = match.groups()
    factor = 1 << _POWERS[unit.lower()]
    return int(float(number) * factor) if "." in number else int(number) * factor


def threads(text: str) -> int:
    """Read a number of threads: 1 or more."""
    if not re.fullmatch(r"0*[1-9]\d{0,3}", text):
        raise ArgumentTypeError(f"{text!r} is no number of threads; write 1 or more")
    return int(text)


def usual_threads() -> int:
    """Give the number of threads where none is asked for: 2, if there are as many processors."""
    return min(2, os.cpu_count() or 1)


def bytes_text(count: int) -> str:
    """Show a number of bytes with the unit that fits."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count:,} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def plural(count: int, noun: str) -> str:
    """Show a count with its noun: ``1 packet``, ``2,000 packets``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
