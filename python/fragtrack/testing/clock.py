"""A clock that moves only when told."""

from __future__ import annotations

__all__ = ["VirtualClock"]

NANOSECONDS = 1_000_000_000


class VirtualClock:
    """Time as a number that the test moves.

    Calling the clock gives the time in nanoseconds, as `time.time_ns` does, so it can stand in
    wherever a clock function is accepted.

    Parameters
    ----------
    start_ns
        Nanoseconds since the epoch.

    Examples
    --------
    >>> clock = VirtualClock(start_ns=1_000_000_000)
    >>> clock()
    1000000000
    >>> clock.advance(30)
    31000000000
    >>> clock.advance(ns=5)
    31000000005
    """

    __slots__ = ("_now",)

    def __init__(self, start_ns: int = 0) -> None:
        self._now = start_ns

    def __call__(self) -> int:
        """Give the time in nanoseconds."""
        return self._now

    def __repr__(self) -> str:
        return f"VirtualClock(start_ns={self._now})"

    def advance(self, seconds: float = 0, *, ns: int = 0) -> int:
        """Move the clock forward, or back if negative, and give the new time.

        Parameters
        ----------
        seconds
            Seconds to add, rounded to whole nanoseconds.
        ns
            Nanoseconds to add besides.

        Returns
        -------
        int
            Nanoseconds since the epoch.
        """
        self._now += round(seconds * NANOSECONDS) + ns
        return self._now

    def set(self, time_ns: int) -> int:
        """Put the clock to `time_ns`, earlier or later, and give it back."""
        self._now = time_ns
        return self._now
