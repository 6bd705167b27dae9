"""A capture file that is mapped into memory: its bytes are referenced, never copied."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from fragtrack.sources.base import Damage, Source, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALLEST = 1 << 20
"""Bytes. Below this, reading costs less than mapping, and one file descriptor less is held."""


class MappedFile(Source):
    """A regular, uncompressed file.

    Touching a page of a mapping behind the end of a file that was cut in the meantime kills the
    process (SIGBUS). The size is therefore looked up before each window, and a file that has become
    shorter is damage. Between that look and the use there remain microseconds.

    Parameters
    ----------
    descriptor
        An open file; the source owns it from here on, if `owned`.
    name
        As the user gave it.
    size
        Bytes, as found at the opening. What is appended later is not read.
    stable
        Whether held fragments may refer to the mapping after the input has ended.

    Raises
    ------
    OSError
        If the file cannot be mapped.
    """

    inflated = False

    def __init__(
        self,
        descriptor: int,
        name: str,
        size: int,
        *,
        stable: bool,
        owned: bool = True,
    ) -> None:
        self.name = name
        self.size: int = size
        self.damage = None
        self._map = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        self._map.madvise(mmap.MADV_SEQUENTIAL)
        self._descriptor = descriptor
        self._owned = owned
        self._window = Window(self._map, 0, size, 0, final=True, stable=stable)

    @property
    def position(self) -> int:
        """Bytes processed so far."""
        return self._window.start

    @property
    def stable(self) -> bool:
        """Whether the mapping may be referenced until the rewriter is gone."""
        return self._window.stable

    def lost(self) -> Damage | None:
        """Tell whether the file is shorter now than when it was mapped."""
        now = os.fstat(self._descriptor).st_size
        if now >= self.size:
            return None
        why = f"the file shrank from {self.size} to {now} bytes while it was read"
        return Damage(self.name, min(now, self.position), why)

    def head(self, count: int) -> bytes:
        """Give the first bytes, by a read: no page is touched."""
        return os.pread(self._descriptor, count, 0)

    def windows(self) -> Iterator[Window]:
        """Hand out the rest of the file until it is used up."""
        window = self._window
        while (damage := self.lost()) is None:
            before = window.start
            yield window
            if window.start in (before, window.stop):
                return
        self.damage = damage

    def close(self) -> None:
        """Release the descriptor, and the mapping unless somebody still refers to it."""
        if self._owned and self._descriptor >= 0:
            os.close(self._descriptor)
            self._owned = False
        with suppress(BufferError):  # the rewriter holds it; it goes with its last user
            self._map.close()
