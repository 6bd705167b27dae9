"""Exit statuses, and the one line that goes with each that is not 0."""

from __future__ import annotations

import sys
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING

from fragtrack.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from fragtrack.errors import FragtrackError
    from fragtrack.sources import Damage

    class Counts(Protocol):
        """What a summary says of the run itself."""

        @property
        def packets(self) -> int:
            """Packets read."""

        @property
        def damages(self) -> tuple[Damage, ...]:
            """Where inputs broke."""

        @property
        def interrupted(self) -> bool:
            """Whether it was stopped."""


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


def end_status(counts: Counts, signal: int | None, targets: Sequence[str | None]) -> int:
    """Say what went wrong in a run that came to its end, and give its exit status.

    Parameters
    ----------
    counts
        Its summary.
    signal
        The signal that stopped it, if one did.
    targets
        Outputs that were asked for.
    """
    for damage in counts.damages:
        complain(f"{damage_line(damage)}; all that could be read was processed")
    if counts.interrupted and signal is not None:
        where = " and ".join(name for name in targets if name not in {None, "-"} and name)
        if not counts.packets:
            complain("interrupted before anything was read; no output is left behind")
        elif where:
            complain(f"interrupted: {where}: valid, with everything up to there")
        else:
            complain("interrupted: the counts are those up to there")
        return Status.SIGNAL + signal
    return Status.DAMAGED if counts.damages else Status.DONE
