"""Which bytes of a datagram are held, and by which fragment."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragtrack.reference.policy import Piece, Placement


class Coverage:
    """The held pieces of one datagram (under policy ``linux``: its runs).

    Invariant: pieces are not empty, sorted, and share no byte; each lies inside the range its
    fragment came with; `covered` is the sum of their lengths.
    """

    __slots__ = ("covered", "pieces")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.covered = 0

    def apply(self, placement: Placement) -> None:
        """Carry out what a policy decided."""
        gone = self.pieces[placement.low : placement.high]
        self.pieces[placement.low : placement.high] = placement.pieces
        self.covered += sum(p.end - p.start for p in placement.pieces)
        self.covered -= sum(p.end - p.start for p in gone)

    def check(self) -> None:
        """Assert the invariant."""
        for piece in self.pieces:
            assert 0 <= piece.first <= piece.start < piece.end <= piece.last
        for left, right in pairwise(self.pieces):
            assert left.end <= right.start
        assert self.covered == sum(p.end - p.start for p in self.pieces)
