"""Exit statuses, and the one line that goes with each that is not 0."""

from __future__ import annotations

import sys
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING

from fragtrack.errors import CaptureError

if TYPE_CHECKING:
    from fragtrack.errors import FragtrackError
    from fragtrack.sources import Damage


class Status(IntEnum):
    """Exit statuses; a signal adds its number to SIGNAL."""

    DONE = 0
    DAMAGED = 1
    USAGE = 2
    NOTHING = 3
    SIGNAL = 128


def complain(line: str) -> None:
    """Print a line for the user on standard error; if that is closed, nobody is listening."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"fragtrack: {line}\n")
            sys.stderr.flush()


def error_line(error: FragtrackError | OSError) -> str:
    """Say an error in one line: the file, and what is wrong with it."""
    if isinstance(error, CaptureError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        name = error.filename
        return f"{name}: {error.strerror}" if name is not None else error.strerror
    return " ".join(str(error).split())


def damage_line(damage: Damage) -> str:
    """Say where an input broke."""
    return f"{damage.file}: damaged at offset {damage.offset}: {damage.why}"
