#!/usr/bin/env python3
"""Follow connections the ways that Python programs do today; prints one line of JSON.

``python_flow_peers.py "plain Python"|dpkt|NFStream FILE.pcap MOST``

plain Python and dpkt count packets and bytes of each connection in a dictionary, without states;
the file is in memory before the clock starts. NFStream reads the file itself, in processes of its
own: reading is in its time. At most MOST packets are looked at.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
import time
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from python_peers import records

if TYPE_CHECKING:
    from collections.abc import Callable

Found = tuple[int, int]
"""Packets, connections."""
TCP, UDP = 6, 17


class Flows:
    """A dictionary of connections, whoever sends."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], list[int]] = {}

    def see(self, one: object, other: object, key: tuple[object, ...], octets: int) -> None:
        """Count a packet from `one` to `other`."""
        entry = self.known.get((one, other, *key))
        if entry is None:
            entry = self.known.get((other, one, *key))
            if entry is None:
                entry = self.known[(one, other, *key)] = [0, 0]
        entry[0] += 1
        entry[1] += octets


def plain(path: str, most: int) -> Callable[[], Found]:
    """Prepare what one writes with nothing but the standard library."""
    data = Path(path).read_bytes()

    def work() -> Found:
        flows, packets, unpack = Flows(), 0, struct.unpack_from
        for start, _ in islice(records(data), most):
            packets += 1
            ip = start + 14
            if data[ip] >> 4 == 4 and data[ip + 9] in (TCP, UDP):
                transport = ip + (data[ip] & 15) * 4
                one = data[ip + 12 : ip + 16] + data[transport : transport + 2]
                other = data[ip + 16 : ip + 20] + data[transport + 2 : transport + 4]
                flows.see(one, other, (data[ip + 9],), unpack(">H", data, ip + 2)[0])
        return packets, len(flows.known)

    return work


def dpkt(path: str, most: int) -> Callable[[], Found]:
    """Prepare dpkt, which dissects; the connections are ours."""
    ethernet = import_module("dpkt.ethernet").Ethernet
    transports = (import_module("dpkt.tcp").TCP, import_module("dpkt.udp").UDP)
    data = Path(path).read_bytes()

    def work() -> Found:
        flows, packets = Flows(), 0
        for start, end in islice(records(data), most):
            packets += 1
            ip = ethernet(data[start:end]).data
            inner = ip.data
            if isinstance(inner, transports):
                flows.see((ip.src, inner.sport), (ip.dst, inner.dport), (ip.p,), ip.len)
        return packets, len(flows.known)

    return work


def nfstream(path: str, _: int) -> Callable[[], Found]:
    """Prepare NFStream with one meter and without a look at the contents."""
    streamer = import_module("nfstream").NFStreamer

    def work() -> Found:
        packets = flows = 0
        for flow in streamer(source=path, n_meters=1, n_dissections=0, statistical_analysis=False):
            flows += 1
            packets += flow.bidirectional_packets
        return packets, flows

    return work


WAYS = {"plain Python": plain, "dpkt": dpkt, "NFStream": nfstream}


def cpu() -> float:
    """Give seconds of this process and of those that it waited for."""
    mine, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return mine.ru_utime + mine.ru_stime + others.ru_utime + others.ru_stime


def main() -> None:
    """Run the way that was asked for."""
    way, path, most = sys.argv[1:4]
    work = WAYS[way](path, int(most))
    begun, began = cpu(), time.perf_counter()
    packets, connections = work()
    took = {"loop_cpu": cpu() - begun, "loop_wall": time.perf_counter() - began}
    print(json.dumps({"packets": packets, "connections": connections, **took}))


if __name__ == "__main__":
    main()
