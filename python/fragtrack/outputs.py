"""The outputs of one run: all of them appear, or none; maybe with a thread that writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from fragtrack.pipeline import Behind

    Work = tuple[Callable[[Any], object], Any]
    """A method that writes, and what it is to write."""


class Sink(Protocol):
    """What is written to: a capture, a table, a log."""

    def finish(self) -> None:
        """Write what is left, and close; all errors have shown when this returns."""

    def publish(self) -> None:
        """Make it appear under its final name."""

    def discard(self) -> None:
        """Drop what was written; never fails, may be called twice."""


AnySink = TypeVar("AnySink", bound=Sink)


class Outputs:
    """Any number of sinks with one fate; a context manager that drops them when something fails.

    Invariant: once there is a thread (`_behind`), it alone writes, until it has ended.

    Parameters
    ----------
    threads
        Threads of the whole run: with 2 or more, one of them writes.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._sinks: list[Sink] = []
        self._behind: Behind[list[Work]] | None = None

    @property
    def spare(self) -> int:
        """Threads that may help with compressing."""
        return max(0, self._threads - 3)

    def add(self, sink: AnySink) -> AnySink:
        """Take over a sink; they are finished and published in the order they came."""
        self._sinks.append(sink)
        return sink

    def put(self, work: list[Work]) -> None:
        """Write, now or soon; `work` is done in its order."""
        if not work:
            return
        if self._threads > 1 and self._behind is None:
            from fragtrack.pipeline import Behind

            self._behind = Behind(_do)
        if self._behind is None:
            _do(work)
        else:
            self._behind.put(work)

    def finish(self, *, publish: bool) -> None:
        """Wait until all is written, and publish it, or drop it."""
        if self._behind is not None:
            self._behind.finish()
        if not publish:
            self._discard()
            return
        for sink in self._sinks:
            sink.finish()
        for sink in self._sinks:
            sink.publish()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """After an error leave nothing behind; of several errors the earliest is raised."""
        if error is None:
            return
        # What the thread was given before could fail earlier, unless nobody is to wait for it.
        earlier = self._abandon(wait=isinstance(error, Exception))
        if earlier is not None and earlier is not error:
            raise earlier from None

    def _abandon(self, *, wait: bool) -> BaseException | None:
        """Drop everything; give the error of the thread, which was earlier than any other."""
        try:
            return self._behind.stop(drop=not wait) if self._behind is not None else None
        finally:
            self._discard()

    def _discard(self) -> None:
        for sink in self._sinks:
            sink.discard()


def _do(work: list[Work]) -> None:
    for write, what in work:
        write(what)
