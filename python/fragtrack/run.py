"""One pass over inputs: open, check, feed a consumer window by window, notice what breaks.

The consumer is a rewriter or a follower of a backend. The pass knows nothing of where results go:
after every step its caller takes them.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from fragtrack.errors import CaptureError
from fragtrack.sources import Damage, capture_format, describe, name_of, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fragtrack.reference.capture import Format
    from fragtrack.sources import Source, Window
    from fragtrack.sources.base import Stopped
    from fragtrack.sources.stream import Readable

    Input = str | os.PathLike[str] | Readable
    Progress = Callable[[int, int | None], object]

BUDGET = 1 << 18
"""Bytes of input for one call of the consumer. What comes of them is copied twice, by the consumer
and by the system; like this it is still in the processor's second cache then."""

HEAD = 32
"""Bytes looked at to tell a capture from something else."""


class Consumer(Protocol):
    """What captures are fed to; `fragtrack.reference.rewriter` says what the methods do."""

    def begin(self, name: str) -> None:
        """Begin an input."""

    def feed(
        self,
        buffer: bytes,
        start: int,
        stop: int,
        *,
        final: bool,
        stable: bool,
        base: int = 0,
        budget: int = ...,
    ) -> int:
        """Process the whole records in ``buffer[start:stop]``."""

    def end(self) -> None:
        """End the input."""

    def finish(self) -> None:
        """End everything."""

    @property
    def damaged(self) -> tuple[str, int, str] | None:
        """The first damage in the last input begun."""


AnyConsumer = TypeVar("AnyConsumer", bound=Consumer)


class Pass:
    """All inputs of one run, in order.

    Parameters
    ----------
    origins
        Paths, ``"-"``, or binary file objects. Every regular file is opened and looked at here, so
        that a wrong one among many shows before the work begins; of the others only the first:
        a second pipe may have no writer before the first one is read.
    stopped
        Asked between windows; when it says yes the pass ends in good order.
    ahead
        Whether a thread reads and inflates ahead, where an input is not mapped.

    Raises
    ------
    CaptureError
        If an input is no capture.
    OSError
        If one cannot be opened.
    """

    def __init__(
        self, origins: Sequence[Input], *, stopped: Stopped | None = None, ahead: bool = False
    ) -> None:
        self.interrupted = False
        self.began = False
        self.format: Format | None = None
        self.total: int | None = 0
        self._origins = origins
        self._stopped = stopped
        self._ahead = ahead
        self._opened: dict[int, Source] = {}
        self._current: Source | None = None
        self._damages: dict[int, Damage] = {}
        self._done = 0
        self._lost = False
        try:
            for index, origin in enumerate(origins):
                self._look(index, origin)
        except BaseException:
            self.close()
            raise

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Where inputs broke, as far as is known by now, in the order of the inputs."""
        return tuple(damage for _, damage in sorted(self._damages.items()))

    def steps(
        self, consumer: AnyConsumer, progress: Progress | None = None
    ) -> Iterator[AnyConsumer]:
        """Do the work; after every step the caller takes what the consumer has to give.

        `progress` is called with the stored bytes read so far, and all of them or None.
        """
        for index, origin in enumerate(self._origins):
            if self._stop():
                break
            source = self._opened.pop(index, None) or self._open(origin)
            self._current = source
            for _ in self._windows(source, consumer):
                yield consumer
                if progress is not None:
                    progress(self._done + source.position, self.total)
            self._done += source.position
            self._note(index, source, consumer)
            self._current = None
            source.close()  # what the consumer holds of it is its own by now
            if self._lost:
                return
        if self.began:
            consumer.finish()
            yield consumer

    def close(self) -> None:
        """Close what is open; bytes that the consumer refers to stay until it is gone."""
        for source in (self._current, *self._opened.values()):
            if source is not None:
                source.close()
        self._current = None
        self._opened.clear()

    def _windows(self, source: Source, consumer: Consumer) -> Iterator[Window]:
        """Feed one input; each window comes out after it was fed."""
        began = ended = False
        window = None
        for window in source.windows():
            if self._is_lost(source):
                return
            if self._stop():
                if window.base + window.start == 0:
                    return  # nothing of it was taken, not even its header
                window.stop = window.start
                window.final = True
            if not began:
                consumer.begin(source.name)
                began = True
            _feed(consumer, source, window)
            self.began = self.began or window.base + window.start > 0
            ended = window.final and window.start == window.stop
            yield window
            if self.interrupted:
                break
        if window is None or not began or self._is_lost(source):
            return
        if not ended:
            window.stop = window.start
            window.final = True
            _feed(consumer, source, window)
        consumer.end()
        yield window

    def _look(self, index: int, origin: Input) -> None:
        """Check one input before the work, as far as that is possible without waiting."""
        regular = isinstance(origin, (str, os.PathLike)) and _is_regular(os.fspath(origin))
        if not regular and index:
            self.total = None
            return
        source = self._open(origin)
        self._opened[index] = source
        head = source.head(HEAD)
        if self._stop():
            return
        form = capture_format(head)
        if form is None:
            raise _no_capture(source, head)
        if index == 0:
            self.format = form
        if source.size is None or self.total is None:
            self.total = None
        else:
            self.total += source.size
        if regular and index:
            source.close()
            del self._opened[index]

    def _open(self, origin: Input) -> Source:
        return open_source(origin, stopped=self._stopped, ahead=self._ahead)

    def _stop(self) -> bool:
        if self._stopped is not None and self._stopped():
            self.interrupted = True
        return self.interrupted

    def _is_lost(self, source: Source) -> bool:
        """Notice a mapped file that was cut: what the consumer holds of it must not be touched."""
        self._lost = source.stable and source.lost() is not None
        return self._lost

    def _note(self, index: int, source: Source, consumer: Consumer) -> None:
        """Record damage of an input that has ended: what the source says explains more."""
        found = source.lost() if self._lost else source.damage
        if found is None and not self.interrupted and consumer.damaged is not None:
            _, offset, why = consumer.damaged
            if source.inflated:
                why = f"{why} (the offset counts uncompressed bytes)"
            found = Damage(source.name, offset, why)
        if found is not None and (self._lost or not self.interrupted):
            self._damages[index] = found


def _feed(consumer: Consumer, source: Source, window: Window) -> None:
    try:
        window.start = consumer.feed(
            cast("bytes", window.buffer),  # a mapping serves as well
            window.start,
            window.stop,
            final=window.final,
            stable=window.stable,
            base=window.base,
            budget=BUDGET,
        )
    except CaptureError as error:
        # An input that broke before its first record did so for the reason the source knows.
        if source.damage is not None:
            raise CaptureError(*source.damage) from error
        raise


def _no_capture(source: Source, head: bytes) -> CaptureError:
    if source.damage is not None and len(head) < HEAD:
        return CaptureError(*source.damage)
    return CaptureError(source.name, 0, describe(head))


def _is_regular(path: str) -> bool:
    if path == "-":
        return False
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name_of(path)) from error
