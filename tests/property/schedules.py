"""Hypothesis strategies: settings of a reassembler, and schedules of packets and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from fragtrack.config import LIMITS, PATHS, POLICIES, RECLAIMS, ReassemblyConfig
from fragtrack.testing import builders
from tests.fragments import PLAIN, fragment

SECOND = 1_000_000_000
EPOCH = 1_700_000_000 * SECOND

# Two sources of one /24 or /48, one elsewhere, and some that nobody answers.
SOURCES = {
    4: ("192.0.2.1", "192.0.2.9", "198.51.100.7", "224.0.0.1", "127.0.0.1"),
    6: ("2001:db8::1", "2001:db8::9", "2001:db8:7::1", "ff02::1"),
}
DESTINATIONS = {4: ("203.0.113.1", "203.0.113.2"), 6: ("2001:db8:ff::1", "2001:db8:ff::2")}
LOCAL = ("203.0.113.1/32", "2001:db8:ff::/48")


@dataclass(frozen=True)
class Push:
    """A packet arrives."""

    packet: bytes
    time: int
    domain: int


@dataclass(frozen=True)
class Advance:
    """Time passes."""

    time: int


@dataclass(frozen=True)
class Flush:
    """The input ends."""


Step = Push | Advance | Flush


def configs(**fixed: Any) -> st.SearchStrategy[ReassemblyConfig]:
    """Draw settings; the limits are small, so that they are met."""
    drawn: dict[str, st.SearchStrategy[Any]] = {
        "policy": st.sampled_from(POLICIES),
        "path": st.sampled_from(PATHS),
        "limits": st.sampled_from(LIMITS),
        "timeout4": st.just(2.0),
        "timeout6": st.just(3.0),
        "memory": st.none() | st.sampled_from([0, 1, 600, 1200, 2500, 5000]),
        "max_dist": st.none() | st.integers(0, 3),
        "reclaim": st.none() | st.sampled_from(RECLAIMS),
        "checksum": st.none() | st.sampled_from(["verify", "ignore"]),
        "duplicates": st.sampled_from(["ignore", "discard"]),
        "extent": st.sampled_from(["piece", "original"]),
        "local": st.none() | st.just(()) | st.just(LOCAL),
        "hash_key": st.integers(0, (1 << 128) - 1),
    }
    drawn.update({name: st.just(value) for name, value in fixed.items()})
    return st.builds(ReassemblyConfig, **drawn)


@st.composite
def fragments(draw: st.DrawFn) -> bytes:
    """Draw one fragment: mostly sound, on few keys, in a small range, so that they meet."""
    version = draw(st.sampled_from([4, 6]))
    start = 8 * draw(st.integers(0, 6) | st.sampled_from([0, 1, 2, 8189, 8190, 8191]))
    length = draw(st.sampled_from([8, 16, 24]) | st.integers(0, 40))
    letter = draw(st.sampled_from([b"\x00", b"\x06", b"\x08", b"A", b"B", b"\x80"]))
    fields: dict[str, Any] = {
        "src": draw(st.sampled_from(SOURCES[version][:1]) | st.sampled_from(SOURCES[version])),
        "dst": draw(st.sampled_from(DESTINATIONS[version])),
        "ecn": draw(st.sampled_from([0, 0, 0, 1, 2, 3])),
    }
    if version == 4:
        fields |= {
            "protocol": draw(st.sampled_from([PLAIN, PLAIN, 1])),
            "df": draw(st.booleans()),
            "options": draw(st.sampled_from([b"", b"", b"\x01" * 4, b"\x01" * 40])),
            "header_checksum": draw(st.sampled_from([None, None, None, "bad"])),
        }
    else:
        before = [builders.hop_by_hop(), builders.destination_options(), builders.routing()]
        fields |= {
            "next_header": draw(st.sampled_from([PLAIN, PLAIN, 6, 17, 58, 59, 60, 44, 0, 43])),
            "before": draw(st.just([]) | st.just(before[1:]) | st.just(before)),
        }
    return fragment(
        version,
        start,
        letter * length,
        more=draw(st.booleans()),
        ident=draw(st.integers(0, 2)),
        **fields,
    )


@st.composite
def packets(draw: st.DrawFn) -> bytes:
    """Draw a packet: a fragment, perhaps damaged, or something else."""
    shape = draw(st.integers(0, 19))
    if shape == 0:
        return draw(st.binary(max_size=60))
    packet = bytearray(draw(fragments()))
    if shape == 1:
        packet = packet[: draw(st.integers(0, len(packet)))]
    elif shape == 2:
        packet += bytes(draw(st.integers(1, 40)))
    elif shape == 3:
        at = draw(st.integers(0, len(packet) - 1))
        packet[at] = draw(st.integers(0, 255))
    elif shape == 4:
        packet[6:8] = b"\0\0"  # no fragment (IPv4)
    return bytes(packet)


@st.composite
def schedules(draw: st.DrawFn, kinds: st.SearchStrategy[bytes] | None = None) -> list[Step]:
    """Draw a schedule: time mostly creeps, sometimes leaps, sometimes runs backward."""
    kind = packets() if kinds is None else kinds
    leaps = st.sampled_from([0, 0, 0, 1, 1000, SECOND // 2, SECOND, 2 * SECOND, 3 * SECOND])
    backward = st.sampled_from([-1, -SECOND, -2 * SECOND, -3 * SECOND, -4 * SECOND])
    steps: list[Step] = []
    time = EPOCH
    for _ in range(draw(st.integers(1, 30))):
        time += draw(leaps | leaps | leaps | leaps | backward)
        match draw(st.integers(0, 24)):
            case 0:
                steps.append(Advance(time))
            case 1:
                steps.append(Flush())
            case _:
                domain = draw(st.sampled_from([0, 0, 0, 1 << 48 | 7]))
                steps.append(Push(draw(kind), time, domain))
    return steps
