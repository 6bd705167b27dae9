"""One pass over inputs: open, check, feed a rewriter window by window, notice what breaks.

The pass knows nothing of where results go: after every step its caller takes them.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, cast

from fragtrack import engine
from fragtrack.config import ReassemblyConfig
from fragtrack.errors import CaptureError
from fragtrack.sources import Damage, capture_format, describe, name_of, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fragtrack.reference.capture import Format
    from fragtrack.reference.rewriter import Rewriter
    from fragtrack.sources import Source, Window
    from fragtrack.sources.base import Stopped
    from fragtrack.sources.stream import Readable

    Input = str | os.PathLike[str] | Readable
    Progress = Callable[[int, int | None], object]

STABLE_INPUTS = 16
"""With more inputs than this, held fragments are copied instead of keeping every file open."""

BUDGET = 1 << 18
"""Bytes of input for one call of the rewriter. What comes of them is copied twice, by the rewriter
and by the system; like this it is still in the processor's second cache then."""

HEAD = 32
"""Bytes looked at to tell a capture from something else."""


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
        self._stable = len(origins) <= STABLE_INPUTS
        self._opened: dict[int, Source] = {}
        self._kept: dict[int, Source] = {}
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

    def steps(self, rewriter: Rewriter, progress: Progress | None = None) -> Iterator[Rewriter]:
        """Do the work; after every step the caller takes what the rewriter has to give.

        `progress` is called with the stored bytes read so far, and all of them or None.
        """
        for index, origin in enumerate(self._origins):
            if self._stop():
                break
            source = self._opened.pop(index, None) or self._open(origin)
            self._kept[index] = source
            # A rewriter tells of the first damage in all its inputs. Those behind that one are
            # read by a second rewriter as well, which puts nothing together.
            witness = rewriter if rewriter.damaged is None else _reader()
            for _ in self._windows(source, rewriter, witness):
                yield rewriter
                if progress is not None:
                    progress(self._done + source.position, self.total)
            self._done += source.position
            self._note(index, source, witness)
            if not source.stable:
                del self._kept[index]
                source.close()
            if self._lost:
                return
        if self.began and not self._is_lost():
            rewriter.finish()
            yield rewriter

    def close(self) -> None:
        """Close what is open; bytes that the rewriter refers to stay until it is gone."""
        for source in (*self._kept.values(), *self._opened.values()):
            source.close()
        self._kept.clear()
        self._opened.clear()

    def _windows(self, source: Source, rewriter: Rewriter, witness: Rewriter) -> Iterator[Window]:
        """Feed one input; each window comes out after it was fed."""
        began = ended = False
        window = None
        for window in source.windows():
            if self._is_lost():
                return
            if self._stop():
                if window.base + window.start == 0:
                    return  # nothing of it was taken, not even its header
                window.stop = window.start
                window.final = True
            if not began:
                rewriter.begin(source.name)
                began = True
            _feed(rewriter, witness, source, window)
            self.began = self.began or window.base + window.start > 0
            ended = window.final and window.start == window.stop
            yield window
            if self.interrupted:
                break
        if window is None or not began or self._is_lost():
            return
        if not ended:
            window.stop = window.start
            window.final = True
            _feed(rewriter, witness, source, window)
        rewriter.end()
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
        return open_source(origin, stable=self._stable, stopped=self._stopped, ahead=self._ahead)

    def _stop(self) -> bool:
        if self._stopped is not None and self._stopped():
            self.interrupted = True
        return self.interrupted

    def _is_lost(self) -> bool:
        """Notice a mapped file that was cut: what the rewriter holds of it must not be touched."""
        for index, source in self._kept.items():
            damage = source.lost() if source.stable else None
            if damage is not None:
                self._lost = True
                self._damages.setdefault(index, damage)
        return self._lost

    def _note(self, index: int, source: Source, witness: Rewriter) -> None:
        """Record damage of an input that has ended: what the source says explains more."""
        if self.interrupted:
            return
        found = source.damage
        if found is None and witness.damaged is not None:
            _, offset, why = witness.damaged
            if source.inflated:
                why = f"{why} (the offset counts uncompressed bytes)"
            found = Damage(source.name, offset, why)
        if found is not None:
            self._damages.setdefault(index, found)


def _reader() -> Rewriter:
    return engine.new_rewriter(ReassemblyConfig(memory=0), output=None)


def _feed(rewriter: Rewriter, witness: Rewriter, source: Source, window: Window) -> None:
    buffer = cast("bytes", window.buffer)  # a mapping serves as well
    start = window.start
    try:
        window.start = rewriter.feed(
            buffer,
            start,
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
    if witness is not rewriter:
        witness.feed(
            buffer,
            start,
            window.stop,
            final=window.final,
            stable=False,
            base=window.base,
            budget=BUDGET,
        )


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
