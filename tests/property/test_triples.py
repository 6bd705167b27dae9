"""Every way in which three fragments can lie to each other, under every policy.

Pairs do not predict triples, so the triples are enumerated: ordered, without a hole, up to the
relations between their ends (Allen's). Each is sent in contexts: with a neutral first fragment
before it, behind it or not at all, and with the last fragment before or behind. A model that
keeps an owner per unit of 8 bytes, and knows nothing of lists or trees, says what must come out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest

from fragtrack.config import ReassemblyConfig
from tests.backends import reassembler_class
from tests.fragments import UNIT, fragment, outcome_row, state_row

UNITS = 7

Interval = tuple[int, int]
Triple = tuple[Interval, Interval, Interval]

VARIANTS: dict[str, dict[str, str]] = {
    "linux": {},
    "rfc5722": {},
    "rfc5722-discard": {"duplicates": "discard"},
    "first": {},
    "last": {},
    "bsd": {},
    "bsd-right": {},
    "bsd-right-original": {"extent": "original"},
    "linux-old": {},
    "windows": {},
    "windows-original": {"extent": "original"},
    "solaris": {},
}


def policy_of(variant: str) -> str:
    return variant.removesuffix("-discard").removesuffix("-original")


def config_of(variant: str) -> ReassemblyConfig:
    return ReassemblyConfig(policy=policy_of(variant), **VARIANTS[variant])


# ------------------------------------------------------------------------------- the triples


def relation(a: Interval, b: Interval) -> tuple[int, ...]:
    return tuple((x > y) - (x < y) for x in a for y in b)


def relations(triple: Triple) -> tuple[tuple[int, ...], ...]:
    return tuple(relation(a, b) for a, b in combinations(triple, 2))


def overlaps(triple: Triple) -> bool:
    return any(max(a[0], b[0]) < min(a[1], b[1]) for a, b in combinations(triple, 2))


def is_gap_free(triple: Triple) -> bool:
    covered = {unit for start, end in triple for unit in range(start, end)}
    return covered == set(range(min(covered), max(covered) + 1))


@cache
def triples() -> list[Triple]:
    """Give one representative of each class, the smallest, starting at 0."""
    intervals = list(combinations(range(UNITS + 1), 2))
    found: dict[tuple[tuple[int, ...], ...], Triple] = {}
    for a, b, c in product(intervals, repeat=3):
        triple = (a, b, c)
        size = max(a[1], b[1], c[1])
        if min(a[0], b[0], c[0]) or not is_gap_free(triple):
            continue
        known = found.get(relations(triple))
        if known is None or size < max(end for _, end in known):
            found[relations(triple)] = triple
    return list(found.values())


class Sent(NamedTuple):
    start: int
    end: int
    more: bool


@cache
def schedules() -> list[tuple[Sent, ...]]:
    """Put every triple into every context."""
    result = []
    for triple in triples():
        for head, tail in product(("none", "first", "last"), ("first", "last")):
            shift = 0 if head == "none" else 1
            end = max(end for _, end in triple) + shift
            around = {
                "first": [Sent(0, 1, more=True)] if head == "first" else [],
                "last": [Sent(0, 1, more=True)] if head == "last" else [],
            }
            around[tail].append(Sent(end, end + 1, more=False))
            middle = [Sent(start + shift, stop + shift, more=True) for start, stop in triple]
            result.append((*around["first"], *middle, *around["last"]))
    return result


def test_how_many_there_are() -> None:
    intervals = list(combinations(range(6), 2))
    assert len({relations((a, b, c)) for a, b, c in product(intervals, repeat=3)}) == 409
    assert len(triples()) == 337
    assert sum(map(overlaps, triples())) == 331


# ------------------------------------------------------------------------------- the model


@dataclass
class Model:
    """One datagram, as an owner per unit."""

    variant: str
    owner: list[int | None] = field(default_factory=lambda: [None] * (UNITS + 3))
    run: list[int | None] = field(default_factory=lambda: [None] * (UNITS + 3))
    came: dict[int, Interval] = field(default_factory=dict)
    length: int = 0
    last_seen: bool = False
    poisoned: bool = False

    def push(self, number: int, sent: Sent) -> tuple[str, str | None, tuple[int | None, ...]]:
        """Give kind, reason, and the owner of every unit delivered."""
        if self.poisoned:
            return "dropped", "abandoned", ()
        assert not (self.last_seen and sent.end > self.length)
        self.length = max(self.length, sent.end)
        self.last_seen |= not sent.more
        won = self.units_won(sent)
        if isinstance(won, str):
            if won == "overlap":
                self.__init__(self.variant)  # type: ignore[misc]
                self.poisoned = policy_of(self.variant) == "rfc5722"
            return "dropped", won, ()
        for unit in won:
            self.owner[unit] = number
        self.came[number] = (sent.start, sent.end)
        delivered = tuple(self.owner[: self.length])
        if not self.last_seen or None in delivered:
            return "held", None, ()
        self.__init__(self.variant)  # type: ignore[misc]
        return "complete", None, delivered

    def units_won(self, sent: Sent) -> list[int] | str:
        units = range(sent.start, sent.end)
        held = [unit for unit in units if self.owner[unit] is not None]
        policy = policy_of(self.variant)
        if policy == "linux":
            return self.in_runs(sent, held)
        if policy == "rfc5722":
            exact = (sent.start, sent.end) in self.came.values()
            if held and exact and self.variant == "rfc5722":
                return "duplicate"
            return "overlap" if held else list(units)
        if policy == "solaris":
            won = self.after_the_walk(sent)
        else:
            won = [unit for unit in units if unit not in held or self.new_wins(sent, unit)]
        return won or "duplicate"

    def in_runs(self, sent: Sent, held: list[int]) -> list[int] | str:
        units = range(sent.start, sent.end)
        top = max((unit for unit, run in enumerate(self.run) if run is not None), default=-1)
        if held:
            inside = len(held) == len(units) and len({self.run[unit] for unit in units}) == 1
            return "duplicate" if inside else "overlap"
        mine = self.run[top] if top >= 0 and sent.start == top + 1 else object()
        for unit in units:
            self.run[unit] = mine  # type: ignore[call-overload]
        return list(units)

    def piece(self, unit: int) -> Interval:
        start = end = unit
        while start > 0 and self.owner[start - 1] == self.owner[unit]:
            start -= 1
        while self.owner[end] == self.owner[unit]:
            end += 1
        return start, end

    def new_wins(self, sent: Sent, unit: int) -> bool:
        owner = self.owner[unit]
        assert owner is not None
        start, end = self.came[owner] if self.variant.endswith("-original") else self.piece(unit)
        return {
            "first": False,
            "last": True,
            "bsd": start > sent.start,
            "bsd-right": start <= sent.start,
            "linux-old": start >= sent.start,
            "windows": sent.start < start and end < sent.end,
        }[policy_of(self.variant)]

    def after_the_walk(self, sent: Sent) -> list[int]:
        start = sent.start
        while start < sent.end and self.owner[start] is not None:
            start = self.piece(start)[1]
        end = sent.end
        for unit in range(start, sent.end):
            if self.owner[unit] is not None and self.piece(unit)[1] > sent.end:
                end = unit
                break
        return list(range(start, end))


# ------------------------------------------------------------------------------- the tests


@cache
def packet(version: int, number: int, sent: Sent) -> bytes:
    data = chr(65 + number).encode() * UNIT * (sent.end - sent.start)
    return fragment(version, sent.start * UNIT, data, more=sent.more)


@pytest.mark.parametrize("variant", VARIANTS)
def test_as_the_model(backend: str, variant: str) -> None:
    make = reassembler_class(backend)
    config = config_of(variant)
    for schedule in schedules():
        reassembler, model = make(config), Model(variant)
        for number, sent in enumerate(schedule):
            outcome = reassembler.push(packet(4, number, sent), 0)
            kind, reason, owners = model.push(number, sent)
            assert (outcome.kind, outcome.reason) == (kind, reason), (schedule, number)
            if kind == "complete":
                letters = "".join(chr(65 + owner) * UNIT for owner in owners if owner is not None)
                assert outcome.datagram.payload.decode() == letters, schedule
                supplying = tuple(owner + 1 for owner in dict.fromkeys(owners) if owner is not None)
                assert tuple(outcome.datagram.frames) == supplying, schedule
        reassembler.check()


def everything(make: Any, variant: str, schedule: tuple[Sent, ...]) -> list[Any]:  # noqa: ANN401
    reassembler = make(config_of(variant))
    rows: list[Any] = []
    for version in (4, 6):
        for number, sent in enumerate(schedule):
            rows.append(outcome_row(reassembler.push(packet(version, number, sent), number)))
            rows.append(state_row(reassembler))
    rows.append([outcome.frames for outcome in reassembler.flush()])
    return rows


@pytest.mark.parametrize("variant", VARIANTS)
def test_backends_agree(variant: str) -> None:
    native, reference = reassembler_class("native"), reassembler_class("reference")
    for schedule in schedules():
        assert everything(native, variant, schedule) == everything(reference, variant, schedule)
