"""The command as a process of its own, and captures to give it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fragtrack
from fragtrack.testing import ethernet, fragment, ipv4, ipv6, pcap, udp

if TYPE_CHECKING:
    from collections.abc import Sequence

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND

PURE = {"reference": "1", "native": "0"}


class Command:
    """Runs ``fragtrack`` with one of the backends, in a folder.

    Attributes
    ----------
    folder
        Where it runs, so that names in messages are short.
    environment
        What it gets; ``COLUMNS`` fixed, as help texts depend on it.
    """

    def __init__(self, folder: Path, backend: str) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(Path(fragtrack.__file__).parents[1]),
            "FRAGTRACK_PURE": PURE[backend],
            "COLUMNS": "100",
        }
        self.environment.pop("FRAGTRACK_DEBUG", None)

    def __call__(
        self, *args: str, stdin: bytes = b"", limit: int = 120
    ) -> subprocess.CompletedProcess[bytes]:
        """Run to the end."""
        return subprocess.run(
            self.line(args),
            input=stdin,
            capture_output=True,
            cwd=self.folder,
            env=self.environment,
            timeout=limit,
            check=False,
        )

    def reassemble(self, *args: str, stdin: bytes = b"") -> tuple[int, str, str]:
        """Run ``fragtrack reassemble``; give status, standard output and standard error."""
        done = self("reassemble", *args, stdin=stdin)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def popen(self, *args: str, **how: Any) -> subprocess.Popen[bytes]:
        """Start; `how` goes to `subprocess.Popen`, the outputs are pipes."""
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        return subprocess.Popen(self.line(args), cwd=self.folder, env=self.environment, **streams)

    def line(self, args: Sequence[str]) -> list[str]:
        """Give the arguments of the process."""
        return [sys.executable, "-m", "fragtrack", *args]

    def names(self) -> list[str]:
        """Give what is in the folder."""
        return sorted(path.name for path in self.folder.iterdir())


def datagram4(number: int, size: int = 40) -> bytes:
    """Build a UDP datagram over IPv4 whose payload tells its number."""
    payload = (b"datagram %06d " % number) * (size // 8)
    return ipv4(udp(payload[:size], src="192.0.2.1", dst="198.51.100.2"), id=number)


def datagram6(size: int = 40) -> bytes:
    """Build a UDP datagram over IPv6."""
    return ipv6(udp(b"6" * size, src="2001:db8::1", dst="2001:db8::2"))


def frames() -> list[tuple[int, bytes]]:
    """Build a capture's frames.

    One plain packet; an IPv4 datagram in three fragments, out of order, with a duplicate; an IPv6
    one in two; one whose fragments overlap; one that never completes; one that the end cuts.
    """
    first = fragment(datagram4(1), sizes=[16, 16])
    other = [ipv4(b"x" * size, id=3, offset=at, mf=True) for at, size in ((0, 24), (16, 24))]
    packets = [
        (0, ipv4(udp(b"plain"), id=77)),
        (1, first[2]),
        (1, first[0]),
        (1, first[0]),
        (1, first[1]),
        (2, ipv6_pieces()[0]),
        (2, ipv6_pieces()[1]),
        (3, other[0]),
        (3, other[1]),
        (4, fragment(datagram4(4), sizes=[16])[0]),
        (60, fragment(datagram4(5), sizes=[16])[1]),
    ]
    return [(START + at * SECOND, ethernet(packet)) for at, packet in packets]


def ipv6_pieces() -> list[bytes]:
    """Build an IPv6 datagram in two fragments."""
    return fragment(datagram6(), sizes=[24])


def capture() -> bytes:
    """Build a pcap file of `frames`."""
    return pcap(frames())


def flood(count: int) -> bytes:
    """Build a pcap file of datagrams in two fragments of 1,000 bytes or so, all complete."""
    return pcap(
        (START + number * 1_000_000, ethernet(piece))
        for number in range(count)
        for piece in fragment(datagram4(number & 0xFFFF, 2000), sizes=[1000])
    )
