#!/usr/bin/env python3
"""Time what a Python program calls; prints a line of JSON for each thing and round.

``python_api.py FILE.pcap [--rounds N] [--packets N]``

====================  ==========================================================================
call                  calling a built-in function with two arguments: the least a packet can cost
push                  ``Reassembler.push``, a packet a call
push_batch            ``Reassembler.push_batch``, 8,192 packets a call; datagrams as slices
push_batch, packets   the same, and the whole packets of each batch as contiguous bytes
count                 ``reassemble(path)``: the whole file, only counted
datagrams             ``datagrams(path)``: walked over, the length of each read
payloads              the same, the payload bytes of each asked for
one bytes a datagram  no reassembly: one object for each datagram, of its size
====================  ==========================================================================

The times are CPU time of the thread and wall time; packets lie in memory as bytes objects before.
"""

from __future__ import annotations

import argparse
import json
import operator
import struct
import sys
import time
from array import array
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import fragtrack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ETHERNET = 14
BATCH = 8192


class Input(NamedTuple):
    """A capture and what is known of it."""

    path: Path
    data: bytes
    packets: list[bytes]
    offsets: array[int]
    lengths: array[int]
    times: array[int]
    total: int
    datagrams: int
    payload: int


class Work(NamedTuple):
    """One thing to time: `run` gives the datagrams it completed, if it did."""

    name: str
    packets: int
    run: Callable[[], int | None]
    expect: int | None


def load(path: Path, limit: int) -> Input:
    """Read a little-endian Ethernet pcap file; the packets of its head one by one."""
    data = path.read_bytes()
    truth = json.loads(path.with_suffix(".json").read_text())
    offsets, lengths, times = array("Q"), array("I"), array("q")
    at = 24
    while at < len(data):
        seconds, micros, length = struct.unpack_from("<III", data, at)
        offsets.append(at + 16 + ETHERNET)
        lengths.append(length - ETHERNET)
        times.append((seconds * 1_000_000 + micros) * 1000)
        at += 16 + length
    ends = zip(offsets[:limit], lengths, strict=False)
    packets = [data[start : start + length] for start, length in ends]
    whole = truth["datagrams"], truth["ip_payload_bytes"] // max(truth["datagrams"], 1)
    return Input(path, data, packets, offsets, lengths, times, truth["packets"], *whole)


def exhaust(items: Iterable[object]) -> None:
    """Run an iterator to its end as fast as can be."""
    deque(items, maxlen=0)


def push_batch(given: Input, *, ask: bool) -> int:
    """Push the whole capture in batches; `ask` also for the packets."""
    take, found = fragtrack.Reassembler().push_batch, 0
    for low in range(0, given.total, BATCH):
        part = slice(low, low + BATCH)
        batch = take(given.data, given.offsets[part], given.lengths[part], given.times[part])
        found += len(batch)
        if ask:
            assert batch.packets  # asking for them makes them
    return found


def works(given: Input) -> list[Work]:
    """List what can be timed with the installed package."""
    packets = given.packets
    count, times = len(packets), given.times[: len(packets)].tolist()
    done = count // (given.total // given.datagrams)  # datagrams lie one after the other

    def call() -> None:
        exhaust(map(operator.is_, packets, times))

    def push() -> int:
        reassembler = fragtrack.Reassembler()
        take = reassembler.push
        for packet, moment in zip(packets, times, strict=True):
            take(packet, moment)
        return reassembler.counters["ReasmOKs"]

    def whole() -> int:
        return fragtrack.reassemble(given.path).datagrams["complete"]

    def datagrams() -> int:
        return sum(datagram.length > 0 for datagram in fragtrack.datagrams(given.path))

    def payloads() -> int:
        found = (datagram.payload for datagram in fragtrack.datagrams(given.path))
        return sum(payload is not None for payload in found)

    def copies() -> None:
        view, size, step = memoryview(given.data), given.payload, len(given.data) // given.datagrams
        starts = range(0, given.datagrams * step - size, step)
        exhaust(bytes(view[start : start + size]) for start in starts)

    return [
        Work("call", count, call, None),
        Work("push", count, push, done),
        Work("push_batch", given.total, partial(push_batch, given, ask=False), given.datagrams),
        Work(
            "push_batch, packets",
            given.total,
            partial(push_batch, given, ask=True),
            given.datagrams,
        ),
        Work("count", given.total, whole, given.datagrams),
        Work("datagrams", given.total, datagrams, given.datagrams),
        Work("payloads", given.total, payloads, given.datagrams),
        Work("one bytes a datagram", given.total, copies, None),
    ]


def main() -> int:
    """Time everything in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--packets", type=int, default=99_999, help="packets given one by one")
    options = parser.parse_args()
    given = load(options.file, options.packets)
    todo = works(given)
    for number in range(options.rounds + 1):
        for work in todo:
            cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
            found = work.run()
            cpu, wall = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
            assert found == work.expect, (work.name, found, work.expect)
            if number:  # the first round warms up
                sample = {"what": work.name, "round": number, "cpu_ns": cpu, "wall_ns": wall}
                backend = fragtrack.backend_name()
                print(json.dumps({**sample, "records": work.packets, "backend": backend}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
