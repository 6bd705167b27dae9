#!/usr/bin/env python3
"""Workloads of connections: ``python benchmarks/flows.py NAME... --out DIR [--scale F]``.

=========== ========================================================================================
tcp-mix     50,000 TCP connections from handshake to FIN (90 %) or RST, no loss, 5,000 new a second
tcp-one     one connection of a million segments
syn-flood   a million SYNs of as many connections, and 5,000 whole lives among them
udp-dns     300,000 queries, most of them answered, 5,000 new a second: each for itself, soon over
=========== ========================================================================================

Each is a classic pcap on Ethernet with the truth beside it, as those of `workloads`: `packets`,
`connections` (a tracker whose table is large enough makes just so many), `invalid` (packets that it
must find to be so), `resets` (connections that end by one), `ip_bytes`.
"""

from __future__ import annotations

import heapq
import random
import struct
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import workloads
from packets import fold
from workloads import MIN_FRAME, RECORD, START, Writer, known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SYN, ACK, FIN, RST, PSH = 2, 16, 1, 4, 8
TCP, UDP = 6, 17
CONNECTIONS = 50_000
QUERIES = 300_000
MOST = 1_000_000
SERVICE = 10_053
NEW_A_SECOND = 5_000
WINDOW = 64_240
HEAD, REST = struct.Struct(">BBHHHBBHIIHH"), struct.Struct(">IIBBHHH")
ETHERNET = bytes.fromhex("020000000002 020000000001 0800")
POOL = random.Random(2013).randbytes(1 << 16)
WORDS = struct.unpack(f">{len(POOL) // 2}H", POOL)
SUMS = [0]
for _word in WORDS:
    SUMS.append(SUMS[-1] + _word)


class Segment(NamedTuple):
    """One segment, or with no flags and numbers one datagram; `side` 0 is the client."""

    time: float
    side: int
    flags: int
    seq: int
    ack: int
    payload: int


class Ends(NamedTuple):
    """Addresses and ports: client, server."""

    addresses: tuple[int, int]
    ports: tuple[int, int]
    protocol: int = TCP


def life(rng: random.Random, start: float) -> Iterator[Segment]:
    """Handshake, requests and answers, close."""
    time, rtt, numbers = start, rng.uniform(0.001, 0.05), [rng.getrandbits(32), rng.getrandbits(32)]

    def put(side: int, flags: int, payload: int = 0) -> Segment:
        ack = numbers[1 - side] if flags & ACK else 0
        made = Segment(time, side, flags, numbers[side], ack, payload)
        taken = payload + bool(flags & (SYN | FIN))
        numbers[side] = (numbers[side] + taken) & 0xFFFF_FFFF
        return made

    for side, flags in ((0, SYN), (1, SYN | ACK), (0, ACK)):
        yield put(side, flags)
        time += rtt
    rounds = 1
    while rounds < 12 and rng.random() > 0.34:
        rounds += 1
    for _ in range(rounds):
        time += rtt / 2
        yield put(0, PSH | ACK, rng.randrange(80, 700))
        time += rtt
        answers = rng.randrange(1, 5)
        for number in range(answers):
            last = number == answers - 1
            yield put(1, PSH | ACK if last else ACK, rng.randrange(1, 1449) if last else 1448)
            time += 0.00002
        time += rtt / 2
        yield put(0, ACK)
    time += rtt
    close = rng.random()
    ends: tuple[tuple[int, int], ...] = ((0, FIN | ACK), (1, FIN | ACK), (0, ACK))
    if close >= 0.9:
        ends = ((1, RST | ACK),)
    elif close >= 0.8:
        ends = ((1, FIN | ACK), (0, ACK), (0, FIN | ACK), (1, ACK))
    for side, flags in ends:
        yield put(side, flags)
        time += rtt


def lives(rng: random.Random, count: int) -> Iterator[tuple[Segment, int]]:
    """Give the segments of many lives in the order of time, each with the number of its life."""
    return in_turn(rng, count, life)


def in_turn(
    rng: random.Random, count: int, begin_one: Callable[[random.Random, float], Iterator[Segment]]
) -> Iterator[tuple[Segment, int]]:
    """Give what begins at random times in the order of time, each with its number."""
    open_: list[tuple[Segment, int, Iterator[Segment]]] = []
    seconds = count / NEW_A_SECOND
    for number, begin in enumerate(sorted(rng.random() * seconds for _ in range(count))):
        while open_ and open_[0][0].time <= begin:
            yield from _next(open_)
        segments = begin_one(rng, begin)
        heapq.heappush(open_, (next(segments), number, segments))
    while open_:
        yield from _next(open_)


def _next(open_: list[tuple[Segment, int, Iterator[Segment]]]) -> Iterator[tuple[Segment, int]]:
    segment, number, rest = open_[0]
    yield segment, number
    following = next(rest, None)
    if following is None:
        heapq.heappop(open_)
    else:
        heapq.heapreplace(open_, (following, number, rest))


def ends_of(number: int) -> Ends:
    """Give addresses and ports of a life; no two have the same."""
    client = 0x0A01_0001 + number % 20_000
    server = 0x0A02_0001 + number * 7 % 200
    port = 1024 + number // 20_000 * 16_000 + number * 7919 % 15_999
    return Ends((client, server), (port, (80, 443, 8080)[number % 3]))


def mix(rng: random.Random, scale: float) -> Iterator[tuple[Segment, Ends]]:
    """Give the segments of tcp-mix."""
    count = max(100, int(CONNECTIONS * scale))
    return ((segment, ends_of(number)) for segment, number in lives(rng, count))


def one(_: random.Random, scale: float) -> Iterator[tuple[Segment, Ends]]:
    """Give the segments of tcp-one: data and acknowledgments in turn."""
    ends, numbers = ends_of(0), [1000, 2000]
    for side, flags in ((0, SYN), (1, SYN | ACK)):
        yield Segment(0.0, side, flags, numbers[side], numbers[1 - side] * side, 0), ends
        numbers[side] += 1
    for number in range(max(1000, int(MOST * scale))):
        side, payload = (0, 100) if number & 1 else (1, 0)
        made = Segment(number / 1e5, side, ACK, numbers[side], numbers[1 - side], payload)
        yield made, ends
        numbers[side] = (numbers[side] + payload) & 0xFFFF_FFFF


def flood(rng: random.Random, scale: float) -> Iterator[tuple[Segment, Ends]]:
    """Give the segments of syn-flood: 200 SYNs for each whole life that begins."""
    honest = lives(rng, max(10, int(CONNECTIONS * scale / 10)))
    waiting = next(honest, None)
    for number in range(max(1000, int(MOST * scale))):
        time = number / 1e6
        while waiting is not None and waiting[0].time <= time:
            yield waiting[0], ends_of(waiting[1])
            waiting = next(honest, None)
        source = 0x0B00_0000 + number
        made = Segment(time, 0, SYN, rng.getrandbits(32), 0, 0)
        yield made, Ends((source, 0x0A02_0001), (1024 + (number & 0x7FFF), 80))
    while waiting is not None:
        yield waiting[0], ends_of(waiting[1])
        waiting = next(honest, None)


def query(rng: random.Random, start: float) -> Iterator[Segment]:
    """Give a query, now and then a second one, and most often an answer."""
    size, luck, rtt = rng.randrange(30, 60), rng.random(), rng.uniform(0.0005, 0.05)
    yield Segment(start, 0, 0, 0, 0, size)
    if luck < 0.1:
        yield Segment(start + 1, 0, 0, 0, 0, size)
        rtt += 1
    if luck > 0.03:
        yield Segment(start + rtt, 1, 0, 0, 0, size + rng.randrange(16, 400))


def dns(rng: random.Random, scale: float) -> Iterator[tuple[Segment, Ends]]:
    """Give the datagrams of udp-dns: 5,000 clients, eight servers.

    They look like DNS but for what is in them and the port: programs that look into DNS tell
    queries apart by what they find there.
    """
    for datagram, number in in_turn(rng, max(100, int(QUERIES * scale)), query):
        addresses = (0x0A01_0001 + number % 5_000, 0x0A02_0001 + number % 8)
        yield datagram, Ends(addresses, (1024 + number // 5_000 * 997 % 64_000, SERVICE), UDP)


SHAPES = {"tcp-mix": mix, "tcp-one": one, "syn-flood": flood, "udp-dns": dns}


def packet(segment: Segment, ends: Ends, number: int) -> tuple[bytes, bytes]:
    """Build the headers of a packet, Ethernet first, and its payload; both checksums are right."""
    side, size, protocol = segment.side, segment.payload, ends.protocol
    source, destination = ends.addresses[side], ends.addresses[1 - side]
    sport, dport = ends.ports[side], ends.ports[1 - side]
    start = number * 2 & 0x7FFE
    payload = POOL[start : start + size]
    length = size + (20 if protocol == TCP else 8)
    halves = (source >> 16) + (source & 0xFFFF) + (destination >> 16) + (destination & 0xFFFF)
    ip = fold(0x4500 + 20 + length + (number & 0xFFFF) + 0x4000 + 0x4000 + protocol + halves)
    summed = SUMS[(start + size) // 2] - SUMS[start // 2] + (payload[-1] << 8 if size & 1 else 0)
    summed += halves + protocol + length + sport + dport
    head = HEAD.pack(
        *(0x45, 0, 20 + length, number & 0xFFFF, 0x4000, 64, protocol, 0xFFFF - ip),
        *(source, destination, sport, dport),
    )
    if protocol == UDP:
        checksum = 0xFFFF - fold(summed + length) or 0xFFFF
        return ETHERNET + head + struct.pack(">HH", length, checksum), payload
    _, _, flags, seq, ack, _ = segment
    summed += (seq >> 16) + (seq & 0xFFFF) + (ack >> 16) + (ack & 0xFFFF) + 0x5000 + flags + WINDOW
    rest = REST.pack(seq, ack, 0x50, flags, WINDOW, 0xFFFF - fold(summed), 0)
    return ETHERNET + head + rest, payload


def make(name: str, folder: Path, scale: float = 1.0) -> dict[str, Any]:
    """Write a workload, unless it is there already; returns the truth about it."""
    path = folder / f"{name}.pcap"
    truth = known(path, scale)
    if truth is not None and "invalid" in truth:
        return truth
    writer, seen = Writer(path), set()
    parts: list[bytes] = []
    octets = resets = 0
    for number, (segment, ends) in enumerate(SHAPES[name](random.Random(name), scale)):
        head, payload = packet(segment, ends, number)
        used = len(head) + len(payload)
        length = max(used, MIN_FRAME)
        seconds, micros = divmod(int(segment.time * 1e6), 1_000_000)
        parts += (RECORD.pack(START + seconds, micros, length, length), head, payload)
        parts.append(bytes(length - used))
        seen.add(ends)
        octets += used - len(ETHERNET)
        resets += bool(segment.flags & RST)
        writer.packets = number + 1
        if not number & 0xFFF:
            writer.write(b"".join(parts))
            parts.clear()
    writer.write(b"".join(parts))
    more = {"connections": len(seen), "invalid": 0, "resets": resets, "ip_bytes": octets}
    return writer.finish(scale, kind="flows", **more)


if __name__ == "__main__":
    sys.exit(workloads.main(list(SHAPES), make))
