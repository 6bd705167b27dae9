"""What every source of captures is: a name, a way to look at the first bytes, and windows.

A source hands out *windows*: a stretch of bytes together with where it lies in the input. The
consumer processes as many complete records as it likes, moves ``window.start`` past them, and asks
for the next window. One window stands for one call of ``Rewriter.feed``; the source decides from
how far ``start`` moved whether to offer the same bytes again, to add more, or to end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from mmap import mmap

    Stopped = Callable[[], bool]

CHUNK = 1 << 20
"""Bytes read, or inflated, at a time."""

RECORD_LIMIT = 16 << 20
"""Bytes. A record that is not complete within this is damage; no real writer makes one."""


class Damage(NamedTuple):
    """Where an input breaks, and why.

    Attributes
    ----------
    file
        Name of the input, as the user gave it.
    offset
        Byte offset within that file where it breaks.
    why
        One clause without a full stop.
    """

    file: str
    offset: int
    why: str


@dataclass(slots=True)
class Window:
    """A stretch of an input, for one call of ``Rewriter.feed``.

    Attributes
    ----------
    buffer
        Holds the bytes; index 0 lies at offset `base` of the (inflated) input.
    start, stop
        The bytes not yet processed are ``buffer[start:stop]``. The consumer moves `start`.
    base
        Offset of ``buffer[0]`` within the input.
    final
        No byte of this input comes after `stop`.
    stable
        The buffer stays alive and unchanged until the rewriter is gone, and is the same object in
        every window of this input.
    """

    buffer: bytes | mmap
    start: int
    stop: int
    base: int
    final: bool
    stable: bool


class Source(ABC):
    """One opened input.

    Invariant: ``0 <= position`` and, where `size` is known and the file does not grow,
    ``position <= size``; both count bytes as stored, thus before any inflating.
    """

    name: str
    size: int | None
    damage: Damage | None
    inflated: bool
    """The bytes in the windows are not those of the file: offsets in them are of other bytes."""

    @property
    @abstractmethod
    def position(self) -> int:
        """Bytes of the file, as stored, that have been taken so far."""

    @property
    def stable(self) -> bool:
        """Whether windows refer to bytes that may be referenced after the input has ended."""
        return False

    def lost(self) -> Damage | None:
        """Tell whether bytes that were handed out are gone by now: touching them would be fatal."""
        return None

    @abstractmethod
    def head(self, count: int) -> bytes:
        """Give the first bytes of the content (inflated) without consuming them.

        Fewer than `count` come back only where the content is shorter. Only before `windows`.
        """

    @abstractmethod
    def windows(self) -> Iterator[Window]:
        """Hand out the content, window by window; the last one is `final`.

        Ends early, with `damage` set, where the input can no longer be read.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the file. Bytes handed out as stable stay alive until their last user goes."""


def offer(window: Window) -> Iterator[Window]:
    """Offer a window again and again until it is used up, or the consumer makes no progress."""
    while True:
        before = window.start
        yield window
        if window.start in (before, window.stop):
            return
