"""Who gets the bytes: the published test vector, the pairwise table, and what kills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fragtrack.config import POLICIES, ReassemblyConfig
from fragtrack.reference import policy
from fragtrack.reference.coverage import Coverage
from fragtrack.reference.policy import Options, Piece, Verdict
from tests.backends import reassembler_class
from tests.fragments import UNIT, fragment

if TYPE_CHECKING:
    from collections.abc import Sequence

# Shankar and Paxson's test, extended by Novak: letter, first unit, units of 8 bytes; Q is last.
TRAIN = [
    ("A", 0, 3),
    ("B", 4, 2),
    ("C", 6, 3),
    ("D", 10, 1),
    ("E", 13, 2),
    ("F", 15, 3),
    ("G", 18, 2),
    ("H", 20, 2),
    ("I", 22, 1),
    ("J", 1, 4),
    ("K", 6, 3),
    ("L", 9, 3),
    ("M", 12, 3),
    ("N", 16, 1),
    ("O", 19, 1),
    ("P", 20, 1),
    ("Q", 22, 2),
]
GOLDEN = {
    "first": "AAAJBBCCCLDLMEEFFFGGHHIQ",
    "last": "AJJJJBKKKLLLMMMFNFGOPHQQ",
    "bsd": "AAAJJBCCCLLLMMMFFFGGHHIQ",
    "bsd-right": "AJJJBBKKKLDLMEEFNFGOPHQQ",
    "linux-old": "AAAJJBKKKLLLMMMFFFGGPHQQ",
    "windows": "AAAJBBCCCLLLMEEFFFGGHHIQ",
    "solaris": "AAAJBBCCCLLLMMMFFFGGHHIQ",
}
KILLERS = sorted(set(POLICIES) - set(GOLDEN))

# One held piece and a new fragment, by relation of the held one to the new one.
RELATIONS = {
    "O": ((0, 2), (1, 3)),
    "Oi": ((1, 3), (0, 2)),
    "Eq": ((0, 2), (0, 2)),
    "D": ((1, 2), (0, 3)),
    "Di": ((0, 3), (1, 2)),
    "F": ((1, 3), (0, 3)),
    "Fi": ((0, 3), (1, 3)),
    "S": ((0, 2), (0, 3)),
    "Si": ((0, 3), (0, 2)),
}
# Who wins the common bytes, in the order of RELATIONS: o the held piece, n the new fragment.
WINNERS = {
    "first": "ooooooooo",
    "last": "nnnnnnnnn",
    "bsd": "onononooo",
    "bsd-right": "nonononnn",
    "linux-old": "onnnononn",
    "windows": "ooonooooo",
    "solaris": "ooononooo",
}


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_golden_vector(backend: str, name: str, version: int) -> None:
    reassembler = reassembler_class(backend)(ReassemblyConfig(policy=name))
    outcomes = [
        reassembler.push(
            fragment(version, start * UNIT, letter.encode() * count * UNIT, more=letter != "Q"), 0
        )
        for letter, start, count in TRAIN
    ]
    whole = outcomes[-1].datagram
    assert whole is not None
    assert whole.payload.decode() == "".join(letter * UNIT for letter in GOLDEN[name])
    letters = [letter for letter, _, _ in TRAIN]
    supplying = dict.fromkeys(GOLDEN[name])
    assert tuple(whole.frames) == tuple(letters.index(letter) + 1 for letter in supplying)
    assert (reassembler.queues, reassembler.memory) == (0, 0)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", KILLERS)
def test_golden_vector_kills(backend: str, name: str, version: int) -> None:
    reassembler = reassembler_class(backend)(ReassemblyConfig(policy=name))
    for letter, start, count in TRAIN:
        packet = fragment(version, start * UNIT, bytes(count * UNIT), more=letter != "Q")
        assert reassembler.push(packet, 0).kind in {"held", "dropped"}
    assert reassembler.counters["ReasmFails"] == 1
    assert reassembler.counters["ReasmOverlaps"] == (1 if version == 4 else 0)
    # J overlaps A: with it the first ten go. linux opens a second queue for the rest; RFC 5722
    # has later fragments of the datagram discarded too.
    assert reassembler.reasons["overlap"] == 10
    assert reassembler.reasons.get("abandoned", 0) == (7 if name == "rfc5722" else 0)
    assert reassembler.queues == 1


def place(name: str, held: Sequence[tuple[int, int]], new: tuple[int, int]) -> Coverage | Verdict:
    """Place ranges one after the other; the new one comes last."""
    coverage = Coverage()
    for index, (start, end) in enumerate([*held, new]):
        piece = Piece(start, end, start, end, index)
        answer = policy.POLICIES[name](coverage.pieces, piece, Options())
        if answer.verdict is not Verdict.ACCEPT:
            return answer.verdict
        coverage.apply(answer)
        coverage.check()
    return coverage


@pytest.mark.parametrize("name", sorted(WINNERS))
def test_pairwise_table(name: str) -> None:
    found = ""
    for old, new in RELATIONS.values():
        result = place(name, [old], new)
        common = max(old[0], new[0])
        if isinstance(result, Coverage):
            owner = next(p.fragment for p in result.pieces if p.start <= common < p.end)
            found += "on"[owner]
        else:
            assert result is Verdict.DUPLICATE
            found += "o"
    assert found == WINNERS[name]


def test_linux_run_decides_about_duplicates() -> None:
    """The same bytes are a duplicate inside one run, an overlap across two."""
    assert place("linux", [(0, 2), (2, 4)], (1, 3)) is Verdict.DUPLICATE
    assert place("linux", [(2, 4), (0, 2)], (1, 3)) is Verdict.OVERLAP
    # Only the run with the highest offset grows, and runs are never merged.
    assert place("linux", [(4, 6), (0, 2), (2, 4)], (1, 3)) is Verdict.OVERLAP


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ((0, 2), (0, 2), Verdict.DUPLICATE),
        ((0, 4), (1, 3), Verdict.OVERLAP),
        ((0, 4), (0, 2), Verdict.OVERLAP),
        ((1, 3), (0, 4), Verdict.OVERLAP),
    ],
)
def test_rfc5722_ignores_exact_duplicates_only(
    old: tuple[int, int], new: tuple[int, int], verdict: Verdict
) -> None:
    assert place("rfc5722", [old], new) is verdict


def test_rfc5722_may_discard_duplicates(backend: str) -> None:
    config = ReassemblyConfig(policy="rfc5722", duplicates="discard")
    reassembler = reassembler_class(backend)(config)
    packet = fragment(4, 0, b"A" * 16, more=True)
    assert reassembler.push(packet, 0).kind == "held"
    assert reassembler.push(packet, 0).reason == "overlap"


def test_extent_matters() -> None:
    """windows and bsd-right may look at what is left of a fragment, or at how it came."""
    held = [Piece(2, 3, 1, 3, 0)]  # its first byte went to somebody else
    new = Piece(1, 4, 1, 4, 1)
    kept = policy.windows(held, new, Options()).pieces
    assert [(p.start, p.end, p.fragment) for p in kept] == [(1, 4, 1)]
    kept = policy.windows(held, new, Options(original=True)).pieces
    assert [(p.start, p.end, p.fragment) for p in kept] == [(1, 2, 1), (2, 3, 0), (3, 4, 1)]
    kept = policy.bsd_right(held, new, Options()).pieces
    assert [(p.start, p.end, p.fragment) for p in kept] == [(1, 2, 1), (2, 3, 0), (3, 4, 1)]
    kept = policy.bsd_right(held, new, Options(original=True)).pieces
    assert [(p.start, p.end, p.fragment) for p in kept] == [(1, 4, 1)]


def test_a_piece_may_be_split() -> None:
    result = place("last", [(0, 6)], (2, 4))
    assert isinstance(result, Coverage)
    assert [(p.start, p.end, p.fragment) for p in result.pieces] == [
        (0, 2, 0),
        (2, 4, 1),
        (4, 6, 0),
    ]
    assert result.covered == 6
