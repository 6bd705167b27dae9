#!/usr/bin/env python3
"""Put fragments together the ways that Python programs do today; prints one line of JSON.

``python_peers.py "plain Python"|"one bytes a datagram"|scapy|dpkt FILE.pcap``

The file is in memory before the clock starts. scapy and dpkt packets are dissected before it starts
as well; dpkt has no reassembly, so its packets go into the same dictionary as in plain Python.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Found = tuple[int, int, int]
"""Packets, datagrams, UDP payload bytes."""
Key = tuple[bytes, int, int]


def records(data: bytes) -> Iterator[tuple[int, int]]:
    """Give start and end of every frame of a little-endian pcap file."""
    at = 24
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        at += 16
        yield at, at + length
        at += length


class Parts:
    """A dictionary of datagrams, each a dictionary of parts: nothing is checked or bounded."""

    def __init__(self) -> None:
        self.open: dict[Key, tuple[dict[int, bytes], list[int]]] = {}
        self.datagrams = self.bytes = 0

    def add(self, key: Key, offset: int, body: bytes, *, more: bool) -> None:
        """Take a fragment; if it was the last one missing, join the parts."""
        entry = self.open.get(key)
        if entry is None:
            entry = self.open[key] = ({}, [0, -1])
        parts, sums = entry
        parts[offset] = body
        sums[0] += len(body)
        if not more:
            sums[1] = offset + len(body)
        if sums[0] == sums[1]:
            del self.open[key]
            whole = b"".join([parts[at] for at in sorted(parts)])
            self.datagrams += 1
            self.bytes += len(whole) - 8


def plain(data: bytes) -> Callable[[], Found]:
    """Prepare what one writes with nothing but the standard library."""

    def work() -> Found:
        parts, packets = Parts(), 0
        for start, end in records(data):
            packets += 1
            ip = start + 14
            if data[ip] >> 4 == 4:
                _, total, ident, word = struct.unpack_from(">HHHH", data, ip)
                body = data[ip + (data[ip] & 15) * 4 : ip + total]
                key = (data[ip + 12 : ip + 20], ident, data[ip + 9])
                parts.add(key, (word & 0x1FFF) * 8, body, more=bool(word & 0x2000))
            elif data[ip + 6] == 44:
                word, ident = struct.unpack_from(">HI", data, ip + 42)
                key = (data[ip + 8 : ip + 40], ident, 0)
                parts.add(key, word & 0xFFF8, data[ip + 48 : end], more=bool(word & 1))
        return packets, parts.datagrams, parts.bytes

    return work


def bytes_only(data: bytes, datagrams: int, payload: int) -> Callable[[], Found]:
    """Prepare making one bytes object of the right size a datagram, and nothing else."""
    view = memoryview(data)
    size, step = payload // max(datagrams, 1), len(data) // max(datagrams, 1)
    starts = range(0, datagrams * step - size, step)

    def work() -> Found:
        for start in starts:
            bytes(view[start : start + size])
        return 0, datagrams, payload

    return work


def scapy(path: Path) -> Callable[[], Found]:
    """Prepare scapy's own functions."""
    names = import_module("scapy.all")
    defragment6 = import_module("scapy.layers.inet6").defragment6
    packets = names.rdpcap(str(path))

    def work() -> Found:
        if names.IPv6 in packets[0]:  # its function for IPv6 takes the fragments of one datagram
            groups: dict[Key, list[object]] = {}
            for packet in packets:
                header = packet[names.IPv6]
                ident = packet[names.IPv6ExtHdrFragment].id
                key = ((header.src + header.dst).encode(), ident, 0)
                groups.setdefault(key, []).append(packet)
            whole = [defragment6(group) for group in groups.values()]
        else:
            whole = names.defragment(packets)
        layers = [packet.getlayer(names.UDP) for packet in whole if hasattr(packet, "getlayer")]
        sizes = [len(layer) - 8 for layer in layers if layer is not None and len(layer) > 1500]
        return len(packets), len(sizes), sum(sizes)

    return work


def dpkt(path: Path) -> Callable[[], Found]:
    """Prepare dpkt's packets and a dictionary."""
    decode = import_module("dpkt.ethernet").Ethernet
    data = path.read_bytes()
    frames = [decode(data[start:end]) for start, end in records(data)]

    def work() -> Found:
        parts = Parts()
        for frame in frames:
            ip = frame.data
            if ip.v == 4:
                key = (ip.src + ip.dst, ip.id, ip.p)
                parts.add(key, ip.offset * 8, bytes(ip.data), more=bool(ip.mf))
            else:
                fragment = ip.extension_hdrs[44]
                key = (ip.src + ip.dst, fragment.id, 0)
                offset = fragment.frag_off * 8
                parts.add(key, offset, bytes(ip.data), more=bool(fragment.m_flag))
        return len(frames), parts.datagrams, parts.bytes

    return work


def main() -> int:
    """Time one pass."""
    name, path = sys.argv[1], Path(sys.argv[2])
    if name == "scapy":
        work = scapy(path)
    elif name == "dpkt":
        work = dpkt(path)
    elif name == "one bytes a datagram":
        truth = json.loads(path.with_suffix(".json").read_text())
        work = bytes_only(path.read_bytes(), truth["datagrams"], truth["udp_payload_bytes"])
    else:
        work = plain(path.read_bytes())
    cpu, wall = time.thread_time(), time.perf_counter()
    packets, datagrams, payload = work()
    cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
    told = {"driver": name, "loop_cpu": cpu, "loop_wall": wall, "packets": packets}
    print(json.dumps({**told, "datagrams": datagrams, "udp_payload_bytes": payload}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
