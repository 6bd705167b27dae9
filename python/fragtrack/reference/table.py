"""All incomplete datagrams of one family: keys, clock, timers, memory, fragment distance.

The kernel's ``fqdir`` and ``inet_frag_find``.  The table says which queues end and why; counting
and reporting are the reassembler's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fragtrack.reference.cost import queue_cost
from fragtrack.reference.queue import Decision, Held, Key, Queue
from fragtrack.reference.siphash import siphash13

if TYPE_CHECKING:
    from fragtrack.config import ReassemblyConfig

BUCKETS: Final = 1024
_PREFIX_BYTES: Final = {4: 3, 6: 6}  # fair shares are per /24 and per /48


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one family.

    Attributes
    ----------
    timeout : int
        Nanoseconds.
    memory : int
        Bytes; a fragment is admitted while no more than this is held.
    reclaim : str
        What happens above it.
    max_distance : int
        0 is off.
    queue_cost : int
        Bytes of an empty queue.
    hash_key : int
        128 bits.
    """

    timeout: int
    memory: int
    reclaim: str
    max_distance: int
    queue_cost: int
    hash_key: int

    @classmethod
    def of(cls, config: ReassemblyConfig, version: int) -> Limits:
        """Return the limits of a family; max_dist is IPv4's only."""
        return cls(
            timeout=config.timeout4_ns if version == 4 else config.timeout6_ns,
            memory=config.memory_limit,
            reclaim=config.reclaim_name,
            max_distance=config.max_distance if version == 4 else 0,
            queue_cost=queue_cost(config.limits, version),
            hash_key=config.hash_key or 0,
        )


@dataclass(slots=True)
class Source:
    """Fragment numbering of one source (``inet_peer.rid``), kept while it has open queues.

    Numbers are only compared within the life of a queue, so forgetting them with the source's
    last queue changes nothing and bounds the memory.
    """

    number: int = 0
    queues: int = 0


class Table:
    """The open queues of one family.

    Invariant: `queues` is in creation order (a restart counts as a creation) and deadlines do not
    fall along it; no deadline is at or before `clock`; `memory` is the sum of the queues' costs;
    `sources` has an entry for every source with an open queue, and no other.
    """

    __slots__ = ("clock", "limits", "memory", "queues", "sequence", "sources")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.queues: dict[Key, Queue] = {}
        self.clock: int | None = None
        self.memory = 0
        self.sequence = 0
        self.sources: dict[tuple[bytes, int], Source] = {}

    # -- time ----------------------------------------------------------------

    def advance(self, time: int) -> tuple[list[Queue], list[Queue]]:
        """Move the clock and remove what has expired.

        The clock does not run backward for small steps (captures are not perfectly sorted).  A step
        back by more than the timeout is another epoch: everything open is given up.

        Returns
        -------
        abandoned, expired : list of Queue
            Given up because the clock jumped back, and by their timers; in creation order.
        """
        if self.clock is None or time >= self.clock:
            self.clock = time
            return [], self._remove_expired(time)
        if self.clock - time <= self.limits.timeout:
            return [], []
        self.clock = time
        return self.drain(), []

    def drain(self) -> list[Queue]:
        """Remove every queue; return them in creation order."""
        return self._remove_all(list(self.queues.values()))

    def finish(self) -> list[Queue]:
        """Remove every queue and stop the clock: nothing is open, so time may start anew."""
        self.clock = None
        return self.drain()

    def _remove_expired(self, clock: int) -> list[Queue]:
        expired = []
        for queue in self.queues.values():
            if queue.deadline > clock:
                break  # deadlines do not fall along the creation order
            expired.append(queue)
        return self._remove_all(expired)

    # -- lookup --------------------------------------------------------------

    def find(self, key: Key) -> Queue | None:
        """Return the open queue of a key."""
        return self.queues.get(key)

    def outlived(self, queue: Queue, time: int) -> bool:
        """Tell whether a fragment of `time` comes too late, or much too early, for its queue.

        The clock alone does not say so: it may stand ahead of the packets of an unsorted capture,
        and then both the queue's deadline and the fragment lie behind it.
        """
        timeout = self.limits.timeout
        return time - queue.created >= timeout or queue.created - time > timeout

    def open(self, key: Key, opener: int, time: int) -> Queue:
        """Create a queue (``inet_frag_create``) and start its timer."""
        queue = Queue(key, opener, self.limits.queue_cost)
        self.queues[key] = queue
        self.memory += queue.cost
        if self.limits.max_distance:
            self.sources.setdefault((key.src, key.domain), Source()).queues += 1
        self._start_timer(queue, time)
        self._touch(queue)
        return queue

    def remove(self, queue: Queue) -> None:
        """Take a queue out (``inet_frag_kill``)."""
        del self.queues[queue.key]
        self.memory -= queue.cost
        if self.limits.max_distance:
            source = (queue.key.src, queue.key.domain)
            self.sources[source].queues -= 1
            if not self.sources[source].queues:
                del self.sources[source]

    def accept(self, queue: Queue, held: Held, decision: Decision) -> None:
        """Take a fragment into a queue, as decided."""
        queue.accept(held, decision)
        self.memory += held.cost
        self._touch(queue)

    def restart(self, queue: Queue, time: int) -> None:
        """Empty a queue and restart its timer (``ip_frag_reinit``)."""
        self._empty(queue)
        del self.queues[queue.key]
        self.queues[queue.key] = queue
        self._start_timer(queue, time)

    def poison(self, queue: Queue) -> None:
        """Empty a queue for good: what still comes for it is refused until its timer ends."""
        self._empty(queue)
        queue.poisoned = True

    def _empty(self, queue: Queue) -> None:
        self.memory -= queue.cost
        queue.clear()
        self.memory += queue.cost

    def _start_timer(self, queue: Queue, time: int) -> None:
        assert self.clock is not None
        queue.created = time
        queue.deadline = self.clock + self.limits.timeout

    def _touch(self, queue: Queue) -> None:
        self.sequence += 1
        queue.touched = self.sequence

    def _remove_all(self, queues: list[Queue]) -> list[Queue]:
        for queue in queues:
            self.remove(queue)
        return queues

    # -- fragment distance ---------------------------------------------------

    def too_far(self, queue: Queue) -> bool:
        """Draw the source's next number for a fragment of this queue (``ip_frag_too_far``).

        Returns
        -------
        bool
            Whether the queue holds data and its last number is too far back.
        """
        if not self.limits.max_distance:
            return False
        source = self.sources[queue.key.src, queue.key.domain]
        source.number += 1
        distance = source.number - queue.serial
        queue.serial = source.number
        return bool(queue.held) and distance > self.limits.max_distance

    # -- memory --------------------------------------------------------------

    def admit(self, key: Key) -> tuple[bool, list[Queue]]:
        """Make room before a fragment is looked up (``inet_frag_find``).

        ``lru`` and ``fair`` always make room, with a limit of 0 for one fragment at a time;
        ``bucket-oldest`` may find too little in the fragment's bucket, and refuse.

        Returns
        -------
        admitted : bool
        evicted : list of Queue
            Removed to make room, in order.
        """
        limit = self.limits.memory
        if limit and self.memory <= limit:
            return True, []
        reclaim = self.limits.reclaim
        if reclaim == "refuse":
            return False, []
        if reclaim == "lru":
            return True, self._evict_until(limit * 3 // 4, self._by_last_use())
        if reclaim == "fair":
            return True, self._evict_fair(limit * 3 // 4)
        evicted = self._evict_until(limit, self._bucket(key))
        return bool(limit) and self.memory <= limit, evicted

    def _evict_until(self, low: int, victims: list[Queue]) -> list[Queue]:
        evicted = []
        for queue in victims:
            if self.memory <= low:
                break
            self.remove(queue)
            evicted.append(queue)
        return evicted

    def _by_last_use(self) -> list[Queue]:
        return sorted(self.queues.values(), key=lambda queue: queue.touched)

    def _bucket(self, key: Key) -> list[Queue]:
        own = self._bucket_number(key)
        return [q for q in self.queues.values() if self._bucket_number(q.key) == own]

    def _bucket_number(self, key: Key) -> int:
        return siphash13(self.limits.hash_key, key_words(key)) & (BUCKETS - 1)

    def _evict_fair(self, low: int) -> list[Queue]:
        """Evict from the source prefixes that hold more than an eighth of the limit; then any.

        Both passes go in creation order; a prefix's usage falls as its queues go.
        """
        share = self.limits.memory // 8
        usage: dict[bytes, int] = {}
        for queue in self.queues.values():
            prefix = source_prefix(queue.key)
            usage[prefix] = usage.get(prefix, 0) + queue.cost
        evicted = []
        for queue in list(self.queues.values()):
            if self.memory <= low:
                break
            prefix = source_prefix(queue.key)
            if usage[prefix] > share:
                usage[prefix] -= queue.cost
                self.remove(queue)
                evicted.append(queue)
        return evicted + self._evict_until(low, list(self.queues.values()))

    # -- invariant -----------------------------------------------------------

    def check(self) -> None:
        """Assert the invariant."""
        for key, queue in self.queues.items():
            assert queue.key == key
            queue.check()
            assert self.clock is not None
            assert self.clock < queue.deadline <= self.clock + self.limits.timeout
            assert queue.touched <= self.sequence
        for earlier, later in pairwise(self.queues.values()):
            assert earlier.deadline <= later.deadline
        assert self.memory == sum(queue.cost for queue in self.queues.values())
        counts: dict[tuple[bytes, int], int] = {}
        if self.limits.max_distance:
            for key in self.queues:
                counts[key.src, key.domain] = counts.get((key.src, key.domain), 0) + 1
        assert counts == {source: entry.queues for source, entry in self.sources.items()}


def source_prefix(key: Key) -> bytes:
    """Return the network a source is charged to: /24 (IPv4) or /48 (IPv6)."""
    return key.src[: _PREFIX_BYTES[key.version]]


def key_words(key: Key) -> list[int]:
    """Return a key as the 64-bit words that are hashed."""
    addresses = key.src + key.dst
    words = [int.from_bytes(addresses[at : at + 8], "big") for at in range(0, len(addresses), 8)]
    return [*words, key.domain, key.ident | key.protocol << 32 | key.version << 40]
