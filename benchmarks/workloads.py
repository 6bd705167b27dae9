#!/usr/bin/env python3
"""Write capture files of known content, which every benchmark of this folder reads.

``python benchmarks/workloads.py NAME... --out DIR [--scale F]`` writes ``NAME.pcap`` (classic
pcap, little endian, microseconds, Ethernet) and the truth about it, ``NAME.json``; ``all`` stands
for every name of ``shapes.py``. The same name, scale and version give the same bytes. Only the
standard library is needed; a file is streamed, and it has its final name once it is whole.

Time stamps are those of one 10 Gbit/s link without a pause. Some workloads also get
``NAME.cut.pcap``, the head of the file, for tools a hundred times slower.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from packets import packets
from shapes import Shape, shapes

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = 1  # raised when the bytes of any workload change
START = 1_700_000_000  # seconds since the epoch
NS_PER_BYTE = 0.8  # 10 Gbit/s
WIRE_OVERHEAD = 24  # preamble, check sequence and gap of an Ethernet frame, bytes
MIN_FRAME = 60  # an Ethernet frame without its check sequence
FILE_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
RECORD = struct.Struct("<IIII")


class Writer:
    """A pcap file under construction, and the count of what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self.file: IO[bytes] = self.part.open("wb")
        self.digest = hashlib.sha256()
        self.packets = self.datagrams = self.size = 0
        self.write(FILE_HEADER)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self.file.write(data)
        self.digest.update(data)
        self.size += len(data)

    def close(self, shape: Shape, scale: float) -> dict[str, Any]:
        """Give the file of a shape its name and write the truth beside it."""
        done = self.datagrams
        return self.finish(
            scale,
            kind="frag",
            family=shape.family,
            datagrams=done,
            fragments_per_datagram=shape.fragments,
            udp_payload_bytes=done * shape.size,
            ip_payload_bytes=done * shape.length,
        )

    def finish(self, scale: float, **more: Any) -> dict[str, Any]:
        """Give the file its name and write the truth beside it: what is common, and `more`."""
        self.file.close()
        self.part.replace(self.path)
        truth = {
            "name": self.path.name.removesuffix(".pcap"),
            "file": self.path.name,
            "version": VERSION,
            "scale": scale,
            "packets": self.packets,
            **more,
            "file_bytes": self.size,
            "sha256": self.digest.hexdigest(),
        }
        self.path.with_suffix(".json").write_text(json.dumps(truth, indent=1) + "\n")
        return truth


def known(path: Path, scale: float) -> dict[str, Any] | None:
    """Return the truth about a file that is there already, or None."""
    note = path.with_suffix(".json")
    if not (note.exists() and path.exists()):
        return None
    truth: dict[str, Any] = json.loads(note.read_text())
    same = truth.get("version", VERSION) == VERSION and truth["scale"] == scale
    return truth if same and path.stat().st_size == truth["file_bytes"] else None


def write(shape: Shape, writers: list[Writer], scale: float) -> dict[str, Any]:
    """Write the packets to every writer; those behind the first end where the head file ends."""
    pack, clock, number = RECORD.pack, 0, 0
    parts: list[bytes] = []
    completed = 0
    cut_at = shape.cut * shape.fragments * (1 + shape.junk)

    def spill() -> None:
        nonlocal completed
        data = b"".join(parts)
        for writer in writers:
            writer.write(data)
            writer.packets = number
            writer.datagrams += completed
        parts.clear()
        completed = 0

    for head, body, completes in packets(shape):
        used = len(head) + len(body)
        length = max(used, MIN_FRAME)
        clock += length + WIRE_OVERHEAD
        seconds, micros = divmod(int(clock * NS_PER_BYTE) // 1000, 1_000_000)
        parts += (pack(START + seconds, micros, length, length), head, body)
        if used < MIN_FRAME:
            parts.append(bytes(MIN_FRAME - used))
        completed += completes
        number += 1
        if number & 0xFFF and number != cut_at:
            continue
        spill()
        if number == cut_at:
            writers.pop().close(shape, scale)
    spill()
    truths = [writer.close(shape, scale) for writer in writers]
    return truths[0]


def make(name: str, folder: Path, scale: float = 1.0) -> dict[str, Any]:
    """Write one workload, unless it is there already; returns its truth.

    Raises
    ------
    KeyError
        There is no workload of that name.
    OSError
        The folder cannot be written.
    """
    shape = shapes(scale)[name]
    path = folder / f"{name}.pcap"
    truth = known(path, scale)
    if truth is not None:
        return truth
    writers = [Writer(path)]
    if shape.cut:
        writers.append(Writer(folder / f"{name}.cut.pcap"))
    return write(shape, writers, scale)


def main(everything: list[str], make: Callable[[str, Path, float], dict[str, Any]]) -> int:
    """Write those of `everything` that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="a workload, or all")
    default = Path(tempfile.gettempdir()) / "fragtrack-bench" / "workloads"
    parser.add_argument("--out", type=Path, default=default, help="folder (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="1.0: most have 450 MB")
    options = parser.parse_args()
    names = everything if "all" in options.names else list(dict.fromkeys(options.names))
    if unknown := set(names) - set(everything):
        bad = " ".join(sorted(unknown))
        parser.error(f"no such workload: {bad}; there are: {' '.join(everything)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        begin = time.perf_counter()
        truth = make(name, options.out, options.scale)
        seconds = time.perf_counter() - begin
        kind = "datagrams" if "datagrams" in truth else "connections"
        line = f"{name:26} {truth['packets']:>9,} packets {truth[kind]:>9,} {kind}"
        print(f"{line} {truth['file_bytes'] / 1e6:7.1f} MB {seconds:5.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(list(shapes()), make))
