"""A progress bar on standard error, for a terminal and a run that takes a while."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

    from rich.progress import Progress

PATIENCE = 0.5
"""Seconds without a bar: a run that is over by then needs none, and does not import rich."""

INTERVAL = 0.1
"""Seconds between two drawings."""


class Bar:
    """Shows bytes read of bytes to read; without a terminal it does nothing.

    Parameters
    ----------
    wanted
        False for ``--quiet``.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._next = time.monotonic() + PATIENCE
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """Take note of the progress; `total` is None for a pipe."""
        if not self._wanted:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + INTERVAL
        if self._bar is None:
            self._bar = _new_bar()
            self._bar.add_task("reading", total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done)
        self._bar.refresh()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
    )
