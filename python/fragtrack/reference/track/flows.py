"""The connection table: look-up by key, buckets, and what runs out when."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from fragtrack.reference.track.key import Hasher, Key, bucket_bits, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fragtrack.reference.track.flow import Flow
    from fragtrack.track_config import TrackConfig

CHAIN: Final = 64
"""Connections that fit a bucket (the kernel draws from 50 to 79 at each insertion)."""

NEIGHBORS: Final = 8
"""Buckets that are searched for something to drop (``NF_CT_EVICTION_RANGE``)."""


class Flows:
    """All connections.

    Invariant: `by_id` and `by_key` hold the same connections, `by_id` in the order of creation, and
    each stands in the bucket that its key hashes to; no bucket holds more than 64 and there are no
    empty ones; the agenda has an entry for every connection at its `scheduled` time, which is not
    behind its deadline.
    """

    def __init__(self, config: TrackConfig) -> None:
        self._hasher = Hasher(config.hash_key or 0)
        self._bits = bucket_bits(config.max)
        self.by_id: dict[int, Flow] = {}
        self._by_key: dict[Key, Flow] = {}
        self._buckets: dict[int, dict[int, Flow]] = {}
        self._agenda: list[tuple[int, int]] = []
        self._made = 0

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Flow]:
        return iter(self.by_id.values())

    @property
    def made(self) -> int:
        """Connections made so far."""
        return self._made

    def bucket_of(self, key: Key) -> int:
        """Return the bucket of a key: the upper bits of its hash."""
        return self._hasher.hash(key) >> 32 - self._bits

    def find(self, key: Key) -> Flow | None:
        """Return the connection of a key, expired or not (``__nf_conntrack_find_get``)."""
        return self._by_key.get(key)

    def has_room(self, bucket: int) -> bool:
        """Tell whether a bucket can take one more."""
        return len(self._buckets.get(bucket, ())) < CHAIN

    def insert(self, flow: Flow) -> None:
        """Put a connection in (``__nf_conntrack_confirm``), and give it its number."""
        self._made += 1
        flow.id = self._made
        self.by_id[flow.id] = flow
        self._by_key[flow.key] = flow
        self._buckets.setdefault(flow.bucket, {})[flow.id] = flow
        self._schedule(flow)

    def remove(self, flow: Flow) -> None:
        """Take a connection out (``nf_ct_delete``)."""
        del self.by_id[flow.id]
        del self._by_key[flow.key]
        bucket = self._buckets[flow.bucket]
        del bucket[flow.id]
        if not bucket:
            del self._buckets[flow.bucket]

    def refreshed(self, flow: Flow) -> None:
        """Note that a deadline moved; only a nearer one must be looked at earlier."""
        if flow.deadline < flow.scheduled:
            self._schedule(flow)

    def expired(self, now: int) -> list[Flow]:
        """Return the connections whose time is over, in the order of deadline and number."""
        over: dict[int, Flow] = {}
        while self._agenda and self._agenda[0][0] <= now:
            time, number = heapq.heappop(self._agenda)
            flow = self.by_id.get(number)
            if flow is None or time != flow.scheduled or number in over:
                continue  # it is gone, or stands elsewhere, too
            if flow.deadline <= now:
                over[number] = flow
            else:
                self._schedule(flow)
        for flow in over.values():
            self._schedule(flow)
        return sorted(over.values(), key=lambda flow: (flow.deadline, flow.id))

    def near(self, bucket: int) -> Iterator[list[Flow]]:
        """Yield the connections of a bucket and of those behind it (``early_drop``)."""
        for number in range(bucket, bucket + NEIGHBORS):
            held = self._buckets.get(number & (1 << self._bits) - 1, {})
            yield sorted(held.values(), key=lambda flow: flow.id)

    def _schedule(self, flow: Flow) -> None:
        flow.scheduled = flow.deadline
        heapq.heappush(self._agenda, (flow.scheduled, flow.id))

    def check(self) -> None:
        """Assert the invariant."""
        assert list(self.by_id) == sorted(self.by_id)
        assert {id(flow) for flow in self.by_id.values()} == {
            id(flow) for flow in self._by_key.values()
        }
        assert len(self._by_key) == len(self.by_id) == sum(map(len, self._buckets.values()))
        agenda = set(self._agenda)
        for number, flow in self.by_id.items():
            assert flow.id == number <= self._made
            key = key_of(flow.original)
            assert self._by_key[key] is flow
            assert self._buckets[flow.bucket][number] is flow
            assert flow.bucket == self.bucket_of(key)
            assert flow.scheduled <= flow.deadline
            assert (flow.scheduled, number) in agenda
        assert all(0 < len(held) <= CHAIN for held in self._buckets.values())
