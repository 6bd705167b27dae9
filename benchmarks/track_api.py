"""Times of the Python interfaces of tracking: a line of JSON for each pass."""

from __future__ import annotations

import argparse
import json
import struct
import time
from pathlib import Path

import fragtrack

HEAD = 200_000  # packets pushed one by one


def packets(path: Path) -> list[tuple[bytes, int]]:
    """Give the first packets of a little-endian pcap on Ethernet, with their times."""
    data, at = path.read_bytes(), 24
    found: list[tuple[bytes, int]] = []
    while at < len(data) and len(found) < HEAD:
        seconds, micros, length, _ = struct.unpack_from("<IIII", data, at)
        found.append((data[at + 30 : at + 16 + length], seconds * 10**9 + micros * 1000))
        at += 16 + length
    return found


def main() -> None:
    """Time what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pcap", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--connections", type=int, required=True)
    options = parser.parse_args()
    drawn = packets(options.pcap)
    for number in range(options.rounds + 1):
        tracker = fragtrack.Tracker()
        push = tracker.push
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        for packet, moment in drawn:
            push(packet, moment)
        tell("Tracker.push", number, len(drawn), cpu, wall)
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        found = fragtrack.track(options.pcap)
        tell("fragtrack.track", number, found.summary.packets, cpu, wall)
        assert found.summary.connections == options.connections
        assert not found.summary.reasons


def tell(what: str, number: int, records: int, cpu: int, wall: int) -> None:
    """Print a sample, but for the first round, which warms up."""
    if number:
        took = {"cpu_ns": time.thread_time_ns() - cpu, "wall_ns": time.perf_counter_ns() - wall}
        print(json.dumps({"what": what, "round": number, "records": records, **took}))


if __name__ == "__main__":
    main()
