"""Captures to begin with: the example, those of the tests, and whatever lies in ``../shared``.

``python seeds.py FOLDER`` writes them for the engine's fuzzing: 8 bytes of settings in front.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import talks
import wrap

from fragtrack.testing import ethernet, pcap

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (ROOT / "examples", ROOT / "tests" / "data", ROOT.parent / "shared" / "captures")
LONGEST = 16_000  # bytes: what is longer tells no more, and is slow
DRAWN = 60


def captures() -> list[bytes]:
    """Give the captures; the drawn ones are the same on every run."""
    files = [
        path
        for folder in FOLDERS
        if folder.is_dir()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".pcap", ".pcapng") and path.stat().st_size <= LONGEST
    ]
    drawn = [wrap.capture(Random(seed), 6 + seed % 20) for seed in range(DRAWN)]
    told = [conversation(Random(seed)) for seed in range(DRAWN)]
    fitting = [data for data in (*drawn, *told) if len(data) <= LONGEST]
    return [path.read_bytes() for path in files] + fitting


def conversation(random: Random) -> bytes:
    """Give a capture of a few conversations, a frame every ten milliseconds."""
    packets = [packet for packet in talks.packets(random, 30) if packet]
    return pcap([(at * 10_000_000, ethernet(packet)) for at, packet in enumerate(packets)])


def main() -> None:
    """Write the corpus of the engine's fuzzing."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(captures()):
        settings = Random(number).randbytes(8)
        (folder / f"seed-{number:04}").write_bytes(settings + data)


if __name__ == "__main__":
    main()
