"""Hypothesis strategies: settings of a reassembler, and schedules of packets and times.

A schedule is made by a seeded generator, since blind draws hardly ever give fragments that meet: a
few datagrams are cut up legally, then their fragments are shuffled, repeated, shifted, stretched
and damaged. The first n steps of a seed are the same for every n, so a failure shrinks to a prefix.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fragtrack.config import LIMITS, PATHS, POLICIES, RECLAIMS, ReassemblyConfig
from fragtrack.testing import builders
from tests.fragments import PLAIN, fragment

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 1_000_000_000
EPOCH = 1_700_000_000 * SECOND

# Two sources of one /24 or /48, one elsewhere, and some that nobody answers.
SOURCES = {
    4: ("192.0.2.1", "192.0.2.9", "198.51.100.7", "224.0.0.1", "127.0.0.1"),
    6: ("2001:db8::1", "2001:db8::9", "2001:db8:7::1", "ff02::1", "::"),
}
DESTINATIONS = {4: ("203.0.113.1", "203.0.113.2"), 6: ("2001:db8:ff::1", "2001:db8:ff::2")}
LOCAL = ("203.0.113.1/32", "2001:db8:ff::/48")

BEFORE = (
    [builders.hop_by_hop()],
    [builders.destination_options(), builders.routing()],
    [builders.hop_by_hop(), builders.destination_options(), builders.routing()],
)


@dataclass(frozen=True)
class Push:
    """A packet arrives."""

    packet: bytes
    time: int
    domain: int


@dataclass(frozen=True)
class Advance:
    """Time passes."""

    time: int


@dataclass(frozen=True)
class Flush:
    """The input ends."""


Step = Push | Advance | Flush


def configs(**fixed: Any) -> st.SearchStrategy[ReassemblyConfig]:
    """Draw settings; the limits are small, so that they are met."""
    drawn: dict[str, st.SearchStrategy[Any]] = {
        "policy": st.sampled_from(POLICIES),
        "path": st.sampled_from(PATHS),
        "limits": st.sampled_from(LIMITS),
        "timeout4": st.just(2.0),
        "timeout6": st.just(3.0),
        "memory": st.sampled_from([None, None, None, None, 0, 1, 1200, 2500, 5000]),
        "max_dist": st.none() | st.integers(0, 3),
        "reclaim": st.none() | st.sampled_from(RECLAIMS),
        "checksum": st.sampled_from([None, "verify", "ignore"]),
        "duplicates": st.sampled_from(["ignore", "discard"]),
        "extent": st.sampled_from(["piece", "original"]),
        "local": st.sampled_from([None, (), LOCAL]),
        "hash_key": st.integers(0, (1 << 128) - 1),
    }
    drawn.update({name: st.just(value) for name, value in fixed.items()})
    return st.builds(ReassemblyConfig, **drawn)


def schedules(*, sound: bool = False, longest: int = 60) -> st.SearchStrategy[list[Step]]:
    """Draw a schedule.

    Parameters
    ----------
    sound
        Headers are in order and time runs forward slowly; only ranges are tampered with.
    longest
        Steps at most.
    """
    seeds = st.integers(0, (1 << 32) - 1)
    return st.builds(
        lambda seed, length: list(islice(_steps(random.Random(seed), sound=sound), length)),
        seeds,
        st.integers(1, longest),
    )


# ----------------------------------------------------------------------------- the generator


@dataclass
class Train:
    """A datagram on its way: its key, and the ranges that are still to be sent."""

    version: int
    fields: dict[str, Any]
    ident: int
    domain: int
    ranges: list[tuple[int, int, bool]]
    left: list[tuple[int, int, bool]] = field(default_factory=list)


def _steps(rng: random.Random, *, sound: bool) -> Iterator[Step]:
    time = EPOCH
    trains = [_train(rng) for _ in range(rng.randint(1, 3))]
    while True:
        time += _leap(rng, sound=sound)
        chance = rng.random()
        if chance < 0.03:
            yield Advance(time)
        elif chance < 0.04:
            yield Flush()
        elif chance < 0.06 and not sound:
            yield Push(rng.randbytes(rng.randint(0, 60)), time, 0)
        else:
            at = rng.randrange(len(trains))
            if not trains[at].left:
                trains[at] = _train(rng)
            packet = _next(rng, trains[at])
            yield Push(packet if sound else _damaged(rng, packet), time, trains[at].domain)


def _leap(rng: random.Random, *, sound: bool) -> int:
    chance = rng.random()
    if chance < 0.9:
        return rng.choice((0, 0, 1, 1000))
    if chance < 0.96 or sound:
        return rng.choice((SECOND // 2, SECOND))
    if chance < 0.98:
        return rng.choice((2 * SECOND - 1, 2 * SECOND, 3 * SECOND))
    return -rng.choice((1, SECOND, 2 * SECOND, 2 * SECOND + 1, 3 * SECOND, 4 * SECOND))


def _train(rng: random.Random) -> Train:
    version = rng.choice((4, 6))
    total = rng.randint(9, 70)
    blocks = (total - 1) // 8
    cuts = sorted(rng.sample(range(1, blocks + 1), min(blocks, rng.randint(1, 5))))
    edges = [0, *(cut * 8 for cut in cuts), total]
    ranges = [(a, b, b != total) for a, b in pairwise(edges)]
    left = ranges.copy()
    if rng.random() < 0.6:
        rng.shuffle(left)
    if rng.random() < 0.15:
        left.pop()
    fields: dict[str, Any] = {
        "src": SOURCES[version][0 if rng.random() < 0.7 else rng.randrange(5)],
        "dst": DESTINATIONS[version][rng.random() < 0.2],
        "ecn": rng.choice((0, 0, 0, 1, 2, 3)),
    }
    if version == 4:
        fields["protocol"] = rng.choice((PLAIN, PLAIN, 1))
    else:
        fields["next_header"] = rng.choice((PLAIN, PLAIN, PLAIN, 6, 17, 58, 58, 59, 60, 44, 43, 0))
        fields["before"] = rng.choice(BEFORE) if rng.random() < 0.3 else []
    domain = 1 << 48 | 7 if rng.random() < 0.1 else 0
    return Train(version, fields, rng.randint(1, 2), domain, ranges, left)


def _next(rng: random.Random, train: Train) -> bytes:
    if rng.random() < 0.2:
        start, end, more = rng.choice(train.ranges)
    else:
        start, end, more = train.left.pop()
    if rng.random() < 0.2:
        start, end, more = _moved(rng, start, end, more=more)
    fields = dict(train.fields)
    if rng.random() < 0.05:
        fields["ecn"] = rng.randrange(4)
    if train.version == 4:
        fields["df"] = rng.random() < 0.3
        fields["options"] = rng.choice((b"\x01" * 4, b"\x01" * 40)) if rng.random() < 0.1 else b""
    letter = rng.choice((b"\x00", b"\x06", b"\x08", b"A", b"B", b"C", b"\x80"))
    data = letter * (end - start)
    return fragment(train.version, start, data, more=more, ident=train.ident, **fields)


def _moved(rng: random.Random, start: int, end: int, *, more: bool) -> tuple[int, int, bool]:
    match rng.randrange(7):
        case 0:
            shift = 8 * rng.randint(-2, 2)
            start, end = max(0, start + shift), max(0, end + shift)
        case 1:
            end = max(start, end + 8 * rng.randint(-2, 3))
        case 2:
            end = max(start, end + rng.randint(-9, 9))
        case 3:
            start = max(0, start - 8 * rng.randint(1, 2))
        case 4:
            more = not more
        case 5:
            start, end = (65_528, 65_528 + end - start) if rng.random() < 0.5 else (start, start)
        case _:
            start, end = 0, 65_400
    return start, max(start, end), more


def _damaged(rng: random.Random, packet: bytes) -> bytes:
    chance = rng.random()
    if chance > 0.12:
        return packet
    if chance < 0.03:
        return packet[: rng.randint(0, len(packet))]
    if chance < 0.06:
        return packet + bytes(rng.randint(1, 40))
    at = rng.randrange(min(len(packet), 80))
    return packet[:at] + rng.randbytes(1) + packet[at + 1 :]
