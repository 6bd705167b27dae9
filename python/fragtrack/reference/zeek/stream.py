"""Where one side's TCP payload has gaps: bytes acknowledged that the capture does not hold.

Offsets are relative to the initial sequence number: the first byte of payload is 1.
"""

from __future__ import annotations

from typing import Final

from fragtrack.zeek import PIECES_LIMIT

UNACKED: Final = 16_384
"""Bytes without any acknowledgment of the other side, after which none is expected."""
HELD: Final = 10 * 1024 * 1024
"""Bytes unacknowledged or beyond a hole, after which the search is given up."""


class Stream:
    """The bytes of one direction, without their content.

    Attributes
    ----------
    next : int
        All before was seen, or given up as a gap.
    acked : int
        All before was acknowledged, or is no longer waited for.
    above : list of list of int
        Pieces beyond a hole: start and end.
    skipping : bool
        The search was given up.
    ended : bool
        The end of the stream was noticed.

    Invariant: pieces are not empty, in order, do not touch, and start above `next`; there are at
    most `PIECES_LIMIT`; none while skipping.
    """

    __slots__ = ("above", "acked", "ended", "next", "skipping")

    def __init__(self) -> None:
        self.next = 1
        self.acked = 1
        self.above: list[list[int]] = []
        self.skipping = False
        self.ended = False

    @property
    def holds(self) -> bool:
        """Whether anything is unacknowledged or beyond a hole."""
        return not self.skipping and (self.next > self.acked or bool(self.above))

    def sent(self, start: int, end: int, *, size: int, unacked: bool) -> bool:
        """Take note of bytes.

        Parameters
        ----------
        start, end : int
            Where they stand.
        size : int
            Bytes of payload of this side so far.
        unacked : bool
            Nothing of this side was acknowledged yet.

        Returns
        -------
        bool
            Whether there are too many pieces now.
        """
        start = max(start, self.acked)
        if self.skipping or end <= start:
            return False
        if start <= self.next:
            self.next = max(self.next, end)
            self._absorb()
            if unacked and size > UNACKED:
                self.acked = max(self.acked, self.next)
        else:
            self._insert(start, end)
        beyond = self.above[-1][1] - self.next if self.above else 0
        held = max(self.next - self.acked, 0) + sum(end - start for start, end in self.above)
        crowded = len(self.above) > PIECES_LIMIT
        if (unacked and beyond > UNACKED) or held > HELD or crowded:
            self.above.clear()
            self.skipping = True
        return crowded

    def acknowledged(self, upto: int, *, partial: bool) -> list[int]:
        """Take note of an acknowledgment, beyond `acked`; give the lengths of gaps it shows.

        Parameters
        ----------
        upto : int
            All before it is acknowledged.
        partial : bool
            The start of the connection was not seen, so that 1 or 2 bytes mean nothing.
        """
        gaps = []
        if upto > self.next and not (partial and upto <= 2):
            while not self.skipping and self.above and self.above[0][0] < upto:
                start, end = self.above.pop(0)
                gaps.append(start - self.next)
                self.next = end
            if upto > self.next:
                if not self.skipping:
                    gaps.append(upto - self.next)
                self.next = upto
        self.acked = upto
        self._absorb()
        return gaps

    def _absorb(self) -> None:
        """Take pieces that `next` has come to."""
        while self.above and self.above[0][0] <= self.next:
            self.next = max(self.next, self.above.pop(0)[1])

    def _insert(self, start: int, end: int) -> None:
        """Put in a piece, joined with those it touches."""
        before = [piece for piece in self.above if piece[1] < start]
        behind = [piece for piece in self.above if piece[0] > end]
        for piece in self.above[len(before) : len(self.above) - len(behind)]:
            start, end = min(start, piece[0]), max(end, piece[1])
        self.above = [*before, [start, end], *behind]

    def check(self) -> None:
        """Assert the invariant."""
        last = self.next
        for start, end in self.above:
            assert last < start < end
            last = end
        assert len(self.above) <= PIECES_LIMIT
        assert not (self.skipping and self.above)
