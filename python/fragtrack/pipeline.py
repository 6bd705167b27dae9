"""Threads around the engine: one behind it that writes, one ahead of it that reads.

The engine itself stays in the caller's thread, and so do signals and exceptions. What comes out is
what would come out without threads: pieces keep their order, and of several errors the one that
stands first in that order is raised.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Generic, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEPTH = 4
"""Pieces that may wait between two threads; one is a megabyte or so."""

GRACE = 1.0
"""Seconds that a thread gets to end when nobody wants its results any more. One that is still stuck
then, in a pipe that nobody reads or fills, ends with the process."""

KEPT = 16 << 20
"""Bytes of freed memory that the C library may keep for the pieces to come."""

Piece = TypeVar("Piece")


class Behind(Generic[Piece]):
    """Does one kind of work on piece after piece, in a thread behind the caller.

    Invariant: pieces are worked on one at a time, in the order of `put`. At most `DEPTH` wait, so
    with the one under work and the one at hand ``DEPTH + 2`` exist. After the first error nothing
    is worked on any more.

    Parameters
    ----------
    work
        Called with each piece, always from the same thread.
    """

    def __init__(self, work: Callable[[Piece], object]) -> None:
        self._work = work
        self._waiting: queue.Queue[Piece | None] = queue.Queue(DEPTH)
        self._dropping = False
        self._error: BaseException | None = None
        _keep_freed_memory()
        self._thread = threading.Thread(target=self._run, name="fragtrack-behind", daemon=True)
        self._thread.start()

    def put(self, piece: Piece) -> None:
        """Hand over a piece; waits while too many do.

        Raises
        ------
        BaseException
            Whatever the work on an earlier piece has raised.
        """
        if self._error is not None:
            raise self._error
        self._waiting.put(piece)

    def finish(self) -> None:
        """Wait until all is done.

        Raises
        ------
        BaseException
            Whatever the work on a piece has raised.
        """
        if (error := self.stop(drop=False)) is not None:
            raise error

    def stop(self, *, drop: bool) -> BaseException | None:
        """End the thread, and give the error that the work has raised.

        Parameters
        ----------
        drop
            Forget the pieces that wait, and wait no longer than `GRACE` for the one under work.
        """
        self._dropping = drop
        if drop:
            _empty(self._waiting)
        if self._thread.is_alive():
            self._waiting.put(None)
        self._thread.join(GRACE if drop else None)
        return self._error

    def _run(self) -> None:
        while (piece := self._waiting.get()) is not None:
            if self._error is None and not self._dropping:
                try:
                    self._work(piece)
                except BaseException as error:  # noqa: BLE001  raised again where it is waited for
                    self._error = error


class Ahead(Generic[Piece]):
    """Takes pieces from an iterator ahead of who asks for them, in a thread of its own.

    Before `begin` it only passes on.

    Invariant: pieces come in their order, and an error in its place behind them. One thread alone
    uses the iterator: the caller's before `begin`, its own from there on. At most `DEPTH` wait.

    Parameters
    ----------
    pieces
        What to take from.
    """

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._ready: queue.Queue[Piece | _End] = queue.Queue(DEPTH)
        self._end: _End | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread."""
        _keep_freed_memory()
        self._thread = threading.Thread(target=self._run, name="fragtrack-ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> Self:
        """Give itself."""
        return self

    def __next__(self) -> Piece:
        """Give the next piece, or raise what the iterator has raised."""
        if self._thread is None:
            return next(self._pieces)
        if self._end is None:
            piece = self._ready.get()
            if not isinstance(piece, _End):
                return piece
            self._end = piece
        raise self._end.error

    def stop(self) -> None:
        """End the thread, but wait no longer than `GRACE`; nothing is to be asked for any more."""
        self._stopping = True
        if self._thread is not None:
            _empty(self._ready)  # now there is room for what the thread has at hand
            self._thread.join(GRACE)

    def _run(self) -> None:
        try:
            for piece in self._pieces:
                self._ready.put(piece)
                if self._stopping:
                    return
            end = _End(StopIteration())
        except BaseException as error:  # noqa: BLE001  raised again where the pieces are asked for
            end = _End(error)
        self._ready.put(end)


class _End:
    """Stands behind the last piece."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _keep_freed_memory() -> None:
    """Let pieces reuse the memory of those before them.

    When several have been freed, glibc returns their pages to the system, and each is cleared and
    mapped again for the next: as much work as writing it to a file. Once a block has been freed, it
    keeps twice as much (mallopt(3), dynamic threshold); this one is never touched.
    """
    bytes(KEPT)


def _empty(waiting: queue.Queue[Piece]) -> None:
    try:
        while True:
            waiting.get_nowait()
    except queue.Empty:
        pass
