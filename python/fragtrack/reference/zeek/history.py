"""The history of a connection: a letter for each thing that happened, in order."""

from __future__ import annotations

from typing import Final

from fragtrack.zeek import HISTORY_LIMIT

ORIG: Final = 0
RESP: Final = 1


class History:
    """Letters, in upper case for what the originator did, in lower case for the responder.

    Invariant: at most `HISTORY_LIMIT` letters, and behind them at most one ``x`` or ``X``; with it
    nothing is added any more.
    """

    __slots__ = ("_letters", "_seen")

    def __init__(self) -> None:
        self._letters: list[str] = []
        self._seen: tuple[set[str], set[str]] = (set(), set())

    def add(self, side: int, letter: str) -> None:
        """Add a letter, given in upper case."""
        if len(self._letters) > HISTORY_LIMIT:
            return
        if len(self._letters) == HISTORY_LIMIT:
            letter = "X"
        self._letters.append(letter.lower() if side == RESP else letter)

    def once(self, side: int, kind: str, letter: str) -> bool:
        """Add a letter unless this side did such a thing before; say whether it did."""
        if kind in self._seen[side]:
            return True
        self._seen[side].add(kind)
        self.add(side, letter)
        return False

    def flip(self) -> None:
        """Note that the roles are swapped; letters that stand there keep their case."""
        self.add(ORIG, "^")
        self._seen = (self._seen[RESP], self._seen[ORIG])

    def retell(self) -> None:
        """Tell it anew as if the roles had been swapped from the start."""
        letters = [letter.swapcase() for letter in self._letters]
        self._letters = ["^", *letters][: HISTORY_LIMIT + 1]
        self._seen = (self._seen[RESP], self._seen[ORIG])

    def __str__(self) -> str:
        return "".join(self._letters)

    def check(self) -> None:
        """Assert the invariant."""
        assert len(self._letters) <= HISTORY_LIMIT + 1
        if len(self._letters) > HISTORY_LIMIT:
            assert self._letters[-1] in "xX^"


class Tally:
    """Counts what is noted at the 1st, 10th, 100th... time only."""

    __slots__ = ("_count", "_next")

    def __init__(self) -> None:
        self._count = 0
        self._next = 1

    def more(self) -> bool:
        """Count one more; say whether it is to be noted."""
        self._count += 1
        if self._count != self._next:
            return False
        self._next *= 10
        return True
