"""Who wins where fragments overlap: each policy is one pure function over intervals.

A policy looks at the held pieces and the new one and says what becomes of them; it changes
nothing.  Held pieces are sorted and share no byte.  The answer is a :class:`Placement`: a verdict
and, for an accepted fragment, which slice of the held pieces is replaced by which pieces.

Four shapes cover all nine policies:

* ``linux``: pieces are *runs*; overlap kills, a repetition inside one run is a duplicate;
* ``rfc5722``: pieces are fragments; overlap kills, an exact repetition is a duplicate;
* ``first last bsd bsd-right linux-old windows``: every piece the new fragment touches is
  contested on its own, by one comparison; the loser gives up the shared bytes;
* ``solaris``: the new fragment is trimmed while it walks over the pieces.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from operator import attrgetter
from typing import Final, NamedTuple


class Verdict(Enum):
    """What becomes of a new fragment."""

    ACCEPT = auto()
    DUPLICATE = auto()
    OVERLAP = auto()


class Piece(NamedTuple):
    """Bytes ``[start, end)`` of the datagram and the fragment they came from.

    `first` and `last` are the range that fragment had when it came; `fragment` is its index in
    the queue (of a run: of the fragment that opened it).
    """

    start: int
    end: int
    first: int
    last: int
    fragment: int


class Placement(NamedTuple):
    """The answer of a policy: ``held[low:high]`` becomes `pieces`, if accepted."""

    verdict: Verdict
    low: int = 0
    high: int = 0
    pieces: tuple[Piece, ...] = ()


DUPLICATE: Final = Placement(Verdict.DUPLICATE)
OVERLAP: Final = Placement(Verdict.OVERLAP)


@dataclass(frozen=True, slots=True)
class Options:
    """Sub-options of some policies.

    `original`: windows and bsd-right compare the new fragment with the range a piece came
    in, not with what is left of it.  `discard_duplicates`: rfc5722 takes an exact duplicate
    for an overlap.
    """

    original: bool = False
    discard_duplicates: bool = False


Policy = Callable[[Sequence[Piece], Piece, Options], Placement]


def linux(runs: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Place a fragment as ``inet_frag_queue_insert`` does (Linux 5.0 and later).

    Only the run with the highest offset grows, and only by a fragment that starts exactly at its
    end.  Runs are never merged, so the order of arrival decides what counts as a duplicate.
    """
    del options
    if not runs:
        return Placement(Verdict.ACCEPT, 0, 0, (new,))
    count, tail = len(runs), runs[-1]
    if new.end > tail.end:  # compared with the last run only
        if new.start < tail.end:
            return OVERLAP
        if new.start == tail.end:
            grown = tail._replace(end=new.end, last=new.end)
            return Placement(Verdict.ACCEPT, count - 1, count, (grown,))
        return Placement(Verdict.ACCEPT, count, count, (new,))
    low, high = touching(runs, new.start, new.end)
    if low == high:
        return Placement(Verdict.ACCEPT, low, low, (new,))
    inside = runs[low].start <= new.start and new.end <= runs[low].end
    return DUPLICATE if inside else OVERLAP


def rfc5722(held: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Discard the datagram at any overlap (RFC 5722, 4; RFC 8200, 4.5).

    Erratum 3089 allows to ignore an exact duplicate: the same range as one fragment held.
    """
    low, high = touching(held, new.start, new.end)
    if low == high:
        return Placement(Verdict.ACCEPT, low, low, (new,))
    exact = (held[low].start, held[low].end) == (new.start, new.end)
    return DUPLICATE if exact and not options.discard_duplicates else OVERLAP


def first(held: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Keep what came first; the new fragment only fills gaps."""
    del options
    return contest(held, new, lambda _: True)


def last(held: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Let the new fragment win everywhere (RFC 791)."""
    del options
    return contest(held, new, lambda _: False)


def bsd(held: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Keep old bytes where the old piece starts before the new fragment or with it.

    The same as ``ip_reass`` of 4.4BSD: the new fragment loses its head to the piece that starts
    at or before it; pieces that start later lose their heads to the new fragment.
    """
    del options
    return contest(held, new, lambda old: old.start <= new.start)


def bsd_right(held: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Let the new fragment win where the old one starts before it or with it."""
    if options.original:
        return contest(held, new, lambda old: old.first > new.start)
    return contest(held, new, lambda old: old.start > new.start)


def linux_old(held: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Keep old bytes where the old piece starts strictly before the new fragment.

    ``ip_frag_queue`` of Linux before 4.19: a sorted list like 4.4BSD's, but a piece with the same
    start counts as a follower.
    """
    del options
    return contest(held, new, lambda old: old.start < new.start)


def windows(held: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Keep old bytes, but replace a piece that lies strictly inside the new fragment."""
    if options.original:
        return contest(held, new, lambda old: not (new.start < old.first and old.last < new.end))
    return contest(held, new, lambda old: not (new.start < old.start and old.end < new.end))


def solaris(held: Sequence[Piece], new: Piece, options: Options) -> Placement:
    """Trim the new fragment while it walks over the pieces (``ip_reassemble`` of illumos).

    Its head is cut at the end of every piece it starts in.  Of the pieces that follow, those
    wholly covered are deleted; at one it ends inside, the tail of the *new* fragment is cut.
    """
    del options
    low, high = touching(held, new.start, new.end)
    start, end, at = new.start, new.end, low
    while at < high and held[at].start <= start:
        if end <= held[at].end:
            return DUPLICATE
        start = held[at].end
        at += 1
    kept = at
    while at < high and held[at].end <= end:
        at += 1
    if at < high:
        end = held[at].start
    return Placement(Verdict.ACCEPT, kept, at, (new._replace(start=start, end=end),))


POLICIES: Final[dict[str, Policy]] = {
    "linux": linux,
    "rfc5722": rfc5722,
    "first": first,
    "last": last,
    "bsd": bsd,
    "bsd-right": bsd_right,
    "linux-old": linux_old,
    "windows": windows,
    "solaris": solaris,
}


def contest(held: Sequence[Piece], new: Piece, old_wins: Callable[[Piece], bool]) -> Placement:
    """Decide about each touched piece on its own, then give the new fragment all that is left.

    A losing piece keeps what lies outside the new fragment: nothing, one side, or both sides.  The
    new fragment becomes one piece per gap between the winners, however many losers lay there.
    """
    low, high = touching(held, new.start, new.end)
    pieces: list[Piece] = []
    at, fresh = new.start, 0
    for old in held[low:high]:
        if old_wins(old):
            if at < old.start:
                pieces.append(new._replace(start=at, end=old.start))
                fresh += 1
            pieces.append(old)
            at = old.end
            continue
        if old.start < new.start:
            pieces.append(old._replace(end=new.start))
    if at < new.end:
        pieces.append(new._replace(start=at))
        fresh += 1
    if not fresh:
        return DUPLICATE
    if high > low and held[high - 1].end > new.end and not old_wins(held[high - 1]):
        pieces.append(held[high - 1]._replace(start=new.end))
    return Placement(Verdict.ACCEPT, low, high, tuple(pieces))


def touching(held: Sequence[Piece], start: int, end: int) -> tuple[int, int]:
    """Return the slice of the pieces that share a byte with ``[start, end)``.

    If none does, both ends are the place where such a piece belongs.
    """
    low = bisect_right(held, start, key=attrgetter("end"))
    return low, bisect_left(held, end, lo=low, key=attrgetter("start"))
