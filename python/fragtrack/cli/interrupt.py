"""Signals that end a run in good order: the first is noted, the second ends it at once."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType
    from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupt:
    """Notes SIGINT, SIGTERM and SIGHUP while the context is open.

    Calling it tells whether one has come. A signal that was ignored when the command started stays
    ignored: ``nohup`` and shells ask for that.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, object] = {}

    def __call__(self) -> bool:
        """Tell whether a signal has come."""
        return self.signal is not None

    def __enter__(self) -> Self:
        """Install the handlers."""
        for number in SIGNALS:
            before = signal.getsignal(number)
            if before is signal.SIG_IGN:
                continue
            try:
                signal.signal(number, self._note)
            except ValueError:
                return self  # not the main thread: the program around it handles signals
            self._before[number] = before
        return self

    def __exit__(self, *_: object) -> None:
        """Put back what was there."""
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
