"""A walk over the table in pages, while packets go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import fragtrack
from fragtrack.testing import ipv4, udp
from tests.tracking import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 1_000_000_000


def query(number: int) -> bytes:
    return ipv4(udp(b"q", sport=1000 + number), protocol=17)


def pages(tracker: fragtrack.Tracker, limit: int) -> Iterator[list[int]]:
    for page in tracker.pages(limit):
        yield [row.id for row in page.rows()]


def test_pages_hold_every_connection_once(backend: str) -> None:
    tracker = Bench(backend).tracker
    for number in range(10):
        tracker.push(query(number), 0)
    cursor, seen = 0, []
    while cursor is not None:
        page, cursor = tracker.page(cursor, 3)
        assert len(page) <= 3
        seen += [row.id for row in page.rows()]
    assert sorted(seen) == list(range(1, 11))


def test_an_empty_table_has_one_empty_page() -> None:
    assert list(pages(fragtrack.Tracker(), 5)) == [[]]


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([0, 0, 1, 31])), max_size=60))
def test_what_stays_comes_once_whatever_comes_and_goes(steps: list[tuple[int, int]]) -> None:
    tracker, now = fragtrack.Tracker(hash_key=1), 0
    for number in range(20):
        tracker.push(query(number), now)
    stay = {row.id for row in tracker.connections().rows()}
    seen: list[int] = []
    walk = pages(tracker, 4)
    for number, wait in steps:
        seen += next(walk, [])
        now += wait * SECOND
        tracker.push(query(number), now)
        stay &= {row.id for row in tracker.connections().rows()}
    for page in walk:
        seen += page
    assert len(seen) == len(set(seen))
    assert stay <= set(seen)
