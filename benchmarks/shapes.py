"""What the workloads are made of: sizes, orders of sending, and their names.

====================  ==========================================================================
64k                   65,507-byte UDP datagrams, 45 fragments, 4 flows, bursts of 1 to 16
3f                    4,416-byte UDP datagrams, 3 fragments, 8 flows, in order
64k+dos, 3f+dos       the same, and as many fragments that never complete, each with its own key
3f-reordered          3f with fragments displaced by up to 16 places, across datagrams
3f-interleaved-10k    3f, always 10,000 datagrams open, 64 flows
v6-3f                 4,320-byte UDP datagrams over IPv6, 3 fragments
tiny-8191             IPv6, 8,191 fragments of 8 bytes a datagram (IPv4 has room for 8,190)
frags-N               N fragments of 8 bytes a datagram, as many fragments for every N
queues-N              N datagrams open at once: all first fragments, then all last ones
flood                 3f, and ten times as many junk fragments, all from one source
NAME-shuffled         fragments of a datagram (queues: last fragments) in random order
====================  ==========================================================================
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypedDict, Unpack

Order = Callable[[random.Random, "Shape"], Iterator[tuple[int, int]]]
"""Datagram number and fragment number, in sending order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a workload is made of.

    Attributes
    ----------
    size
        UDP payload of a datagram, bytes, at least 4.
    step
        IP payload of every fragment but the last, bytes, a multiple of 8.
    junk
        Fragments that never complete, for each good one.
    cut
        Datagrams in the head file for slow tools; 0: no such file.
    """

    name: str
    datagrams: int
    size: int
    step: int
    order: Order
    family: int = 4
    flows: int = 8
    in_turn: bool = False
    junk: int = 0
    one_source: bool = False
    open: int = 1
    cut: int = 0

    @property
    def length(self) -> int:
        """IP payload of a whole datagram, bytes."""
        return 8 + self.size

    @property
    def fragments(self) -> int:
        """Fragments a datagram."""
        return -(-self.length // self.step)


class Extras(TypedDict, total=False):
    """The fields of a `Shape` that most workloads leave alone."""

    family: int
    flows: int
    in_turn: bool
    junk: int
    one_source: bool
    open: int
    cut: int


def in_order(_rng: random.Random, shape: Shape) -> Iterator[tuple[int, int]]:
    """Send datagram after datagram."""
    return ((d, f) for d in range(shape.datagrams) for f in range(shape.fragments))


def shuffled_within(rng: random.Random, shape: Shape) -> Iterator[tuple[int, int]]:
    """Send datagram after datagram, the fragments of each in random order."""
    places = list(range(shape.fragments))
    for d in range(shape.datagrams):
        rng.shuffle(places)
        for f in places:
            yield d, f


def bursts(rng: random.Random, shape: Shape) -> Iterator[tuple[int, int]]:
    """Let flows take turns in bursts of 1 to 16 fragments, each flow in order."""
    k = shape.fragments
    flows = [
        ((d, f) for d in range(flow, shape.datagrams, shape.flows) for f in range(k))
        for flow in range(shape.flows)
    ]
    while flows:
        for flow in list(flows):
            want = 1 + rng.getrandbits(4)
            burst = list(islice(flow, want))
            yield from burst
            if len(burst) < want:
                flows.remove(flow)


def displaced(rng: random.Random, shape: Shape) -> Iterator[tuple[int, int]]:
    """Send every fragment up to 16 places late, across datagrams."""
    k = shape.fragments
    keys = [i + rng.getrandbits(4) for i in range(shape.datagrams * k)]
    return (divmod(i, k) for i in sorted(range(len(keys)), key=keys.__getitem__))


def in_flight(_rng: random.Random, shape: Shape) -> Iterator[tuple[int, int]]:
    """Send fragment f of datagram d at step d + f * lag: always `open` datagrams are open."""
    k = shape.fragments
    lag = min(shape.open, shape.datagrams // 2) // (k - 1)
    for step in range(shape.datagrams + lag * (k - 1)):
        for f in range(k):
            d = step - f * lag
            if 0 <= d < shape.datagrams:
                yield d, f


def all_open(_rng: random.Random, shape: Shape) -> Iterator[tuple[int, int]]:
    """Send the first fragments of `open` datagrams, then their last ones in the same order."""
    for low in range(0, shape.datagrams, shape.open):
        block = range(low, min(low + shape.open, shape.datagrams))
        yield from ((d, 0) for d in block)
        yield from ((d, 1) for d in block)


def all_open_shuffled(rng: random.Random, shape: Shape) -> Iterator[tuple[int, int]]:
    """Send the first fragments of `open` datagrams, then their last ones in random order."""
    for low in range(0, shape.datagrams, shape.open):
        block = list(range(low, min(low + shape.open, shape.datagrams)))
        yield from ((d, 0) for d in block)
        rng.shuffle(block)
        yield from ((d, 1) for d in block)


CLASSIC = ("64k", "64k+dos", "3f", "3f+dos", "3f-reordered", "3f-interleaved-10k", "v6-3f")
FRAGMENTS = (2, 4, 8, 16, 64, 512, 2048, 8190)
QUEUES = (1, 100, 10_000, 100_000, 1_000_000)
LARGEST4 = 65_535 - 20  # IP payload of the largest IPv4 datagram, bytes
TINY_TOTAL = 262_144  # fragments in every frags-N and tiny file
QUEUES_TOTAL = 1_000_000  # datagrams in every queues-N file


def shapes(scale: float = 1.0) -> dict[str, Shape]:
    """List every workload by name.

    Parameters
    ----------
    scale
        1.0: 300,000 good fragments (450 MB) in the 1,500-byte workloads; the number of datagrams
        is proportional. Open queues cannot outnumber them; fragments a datagram stay as they are.
    """
    big = max(8, int(6_600 * scale))
    small = max(64, int(100_000 * scale))
    made: list[Shape] = []

    def add(
        name: str, datagrams: int, size: int, step: int, order: Order, **more: Unpack[Extras]
    ) -> None:
        made.append(
            Shape(name=name, datagrams=datagrams, size=size, step=step, order=order, **more)
        )

    add("64k", big, 65_507, 1480, bursts, flows=4, in_turn=True, cut=200)
    add("64k+dos", big, 65_507, 1480, bursts, flows=4, in_turn=True, junk=1, cut=200)
    add("3f", small, 4416, 1480, in_order, cut=2000)
    add("3f+dos", small, 4416, 1480, in_order, junk=1, cut=2000)
    add("3f-reordered", small, 4416, 1480, displaced, cut=2000)
    add("3f-interleaved-10k", small, 4416, 1480, in_flight, flows=64, open=10_000, cut=12_000)
    add("v6-3f", small, 4320, 1448, in_order, family=6, cut=2000)
    for suffix, order in (("", in_order), ("-shuffled", shuffled_within)):
        tiny = max(1, int(TINY_TOTAL * scale) // 8191)
        add("tiny-8191" + suffix, tiny, 8191 * 8 - 8, 8, order, family=6)
        for n in FRAGMENTS:
            count = max(1, int(TINY_TOTAL * scale) // n)
            add(f"frags-{n}{suffix}", count, min(n * 8, LARGEST4) - 8, 8, order)
    total = max(64, int(QUEUES_TOTAL * scale))
    for suffix, order in (("", all_open), ("-shuffled", all_open_shuffled)):
        for n in QUEUES:
            if n == 1 and suffix:
                continue
            add(f"queues-{n}{suffix}", total, 24, 16, order, open=n, flows=251, in_turn=True)
    add("flood", max(64, small // 5), 4416, 1480, in_order, junk=10, one_source=True)
    return {shape.name: shape for shape in made}
