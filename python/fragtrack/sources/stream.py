"""Captures that come byte after byte: pipes, standard input, small files, whatever has ``read``."""

from __future__ import annotations

import os
import select
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from fragtrack.sources.base import CHUNK, RECORD_LIMIT, Damage, Source, Window, offer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fragtrack.pipeline import Ahead
    from fragtrack.sources.base import Stopped

WAIT = 0.2
"""Seconds between two looks at whether to stop, while a pipe has nothing to give."""


class Readable(Protocol):
    """A binary file object: ``read(n)`` gives at most n bytes, and none at the end."""

    def read(self, size: int, /) -> bytes:
        """Give up to `size` bytes."""


class BrokenInputError(Exception):
    """A decoder can go no further; what it could read has been given out.

    Parameters
    ----------
    offset
        Byte offset in the stored file.
    why
        One clause.
    """

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(offset, why)
        self.offset = offset
        self.why = why


class Reader:
    """Bytes of a descriptor or a file object as stored, with a look ahead.

    Invariant: ``position`` counts the bytes given out by `read`; those looked at and not yet read
    are in ``_seen``. Nothing more is read once `stop` was called.
    """

    def __init__(
        self, origin: int | Readable, *, owned: bool, stopped: Stopped | None = None
    ) -> None:
        self.position = 0
        self._origin = origin
        self._owned = owned
        self._stopped = stopped
        self._seen = b""
        self._stopping = False

    def peek(self, count: int) -> bytes:
        """Give the next bytes without consuming them; fewer than `count` only at the end."""
        while len(self._seen) < count:
            more = self._more(count - len(self._seen))
            if not more:
                break
            self._seen += more
        return self._seen[:count]

    def read(self, count: int) -> bytes:
        """Give up to `count` bytes as soon as there are any; none at the end or when to stop.

        Raises
        ------
        OSError
            If the descriptor cannot be read.
        """
        if self._stopping:
            return b""
        if self._seen:
            data, self._seen = self._seen[:count], self._seen[count:]
        else:
            data = self._more(count)
        self.position += len(data)
        return data

    def stop(self) -> None:
        """Let a thread that waits for bytes see the end."""
        self._stopping = True

    def close(self) -> None:
        """Close the descriptor, if it is ours."""
        if self._owned and isinstance(self._origin, int):
            os.close(self._origin)
            self._owned = False

    def _more(self, count: int) -> bytes:
        origin = self._origin
        if not isinstance(origin, int):
            # read1 gives what is there; read would wait for all of it
            read: Callable[[int], bytes] = getattr(origin, "read1", None) or origin.read
            return read(count) or b""
        if self._stopped is not None:
            # A handler for signals that only notes them does not end a blocked read (PEP 475).
            while not select.select([origin], [], [], WAIT)[0]:
                if self._stopping or self._stopped():
                    return b""
        return os.read(origin, count)


class Stream(Source):
    """Content that can be read once, from the front.

    At most one chunk is held besides the record that is not complete yet.

    Parameters
    ----------
    reader
        The stored bytes.
    name
        As the user gave it.
    size
        Bytes as stored, or None where that is not known.
    decode
        Turns the stored bytes into chunks of content; None where they are the content.
    ahead
        Whether a thread reads and inflates ahead of who takes the windows.
    """

    def __init__(
        self,
        reader: Reader,
        name: str,
        *,
        size: int | None = None,
        decode: Callable[[Reader], Iterator[bytes]] | None = None,
        ahead: bool = False,
    ) -> None:
        self.name = name
        self.size = size
        self.damage = None
        self.inflated = decode is not None
        self._reader = reader
        chunks = plain(reader) if decode is None else decode(reader)
        self._ahead = _ahead(chunks) if ahead else None
        self._chunks = self._guarded(chunks if self._ahead is None else self._ahead)

    @property
    def position(self) -> int:
        """Bytes of the stored file read so far."""
        return self._reader.position

    def head(self, count: int) -> bytes:
        """Give the first bytes of the content; whole chunks are read for it and kept."""
        seen: list[bytes] = []
        have = 0
        for chunk in self._chunks:
            seen.append(chunk)
            have += len(chunk)
            if have >= count:
                break
        self._chunks = chain(seen, self._chunks)
        return b"".join(seen)[:count]

    def windows(self) -> Iterator[Window]:
        """Hand out the content; what is left of one window stands at the front of the next."""
        window = Window(b"", 0, 0, 0, final=False, stable=False)
        waiting: list[bytes] = []
        arrived = 0
        if self._ahead is not None:
            self._ahead.begin()
        for chunk in self._chunks:
            waiting.append(chunk)
            arrived += len(chunk)
            rest = window.stop - window.start
            if rest > CHUNK and arrived < rest // 2:
                continue  # a giant record: join in steps that grow, not with every small chunk
            refill(window, waiting)
            waiting.clear()
            arrived = 0
            yield from offer(window)
            if window.stop - window.start > RECORD_LIMIT:
                offset = window.base + window.start
                why = f"a record is not complete within {RECORD_LIMIT >> 20} MiB"
                self.damage = Damage(self.name, offset, why)
                return
        refill(window, waiting)
        window.final = True
        yield from offer(window)

    def close(self) -> None:
        """Close the file."""
        self._reader.stop()
        if self._ahead is not None:
            self._ahead.stop()
        self._reader.close()

    def _guarded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Pass chunks on; a decoder that breaks, or a read that fails, ends them as damage."""
        try:
            yield from chunks
        except BrokenInputError as broken:
            self.damage = Damage(self.name, broken.offset, broken.why)
        except OSError as error:
            if self.position == 0:
                raise OSError(error.errno, error.strerror, self.name) from error
            why = f"reading failed: {error.strerror or error}"
            self.damage = Damage(self.name, self.position, why)


def _ahead(chunks: Iterator[bytes]) -> Ahead[bytes]:
    from fragtrack.pipeline import Ahead

    return Ahead(chunks)


def plain(reader: Reader) -> Iterator[bytes]:
    """Give the stored bytes as they are."""
    while data := reader.read(CHUNK):
        yield data


def refill(window: Window, chunks: list[bytes]) -> None:
    """Put new bytes behind those that were not used, and forget those that were."""
    rest = window.buffer[window.start : window.stop]
    window.base += window.start
    window.buffer = b"".join((rest, *chunks)) if rest or len(chunks) != 1 else chunks[0]
    window.start = 0
    window.stop = len(window.buffer)
