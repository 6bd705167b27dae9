"""Every recorded answer of a Linux 6.18 kernel's connection tracking, reproduced.

The recording holds 2,000 sequences (`kernel_oracle/README.md` beside it says how it was made).
After every packet the verdict, its direction, the events, the entry (state, flags, window scales,
timeout, status, orientation) and the private window state must be the kernel's, and the reason what
the kernel logged, with the number it named. No sequence is left out. Three things need saying:

* In sequences with pauses the kernel's entries age between a packet and the look at them: one
  second is allowed there.
* The kernel names the first number that is wrong; a `bound` is the last one that is right.
* Some reasons the kernel does not log. Which ones, and that no other, is asserted as well.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from fragtrack.config import ReassemblyConfig
from fragtrack.track_config import TrackConfig
from fragtrack.verdicts import TCP_STATES
from tests.backends import tracker_class
from tests.conftest import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable

    from fragtrack.verdicts import Connection, Verdict

pytestmark = pytest.mark.shared

VECTORS = SHARED / "kernel_oracle" / "vectors" / "conntrack_linux618.jsonl.gz"
START = 1_700_000_000_000_000_000  # any epoch will do
MILLISECOND = 1_000_000
WORD = 1 << 32
DIRECTIONS = {"original": 0, "reply": 1, None: None}

UNLOGGED = {
    "inner_unknown",
    "not_loose",
    "reopened",
    "reset",
    "rst_inexact",
    "short",  # before there is a tuple
    "unsolicited",
}

Told = tuple[set[str], int | None, int | None]
"""Reasons that a logged text stands for; `got` and `bound`, where it names them."""

TEXTS: list[tuple[str, Callable[[re.Match[str]], Told]]] = [
    (
        r"packet \(index (\d+)\) in dir \d invalid, state (\w+)",
        lambda text: ({"transition"}, int(text[1]), TCP_STATES.index(text[2])),
    ),
    (
        r"packet \(index (\d+)\) in dir \d ignored, state (\w+)",
        lambda text: ({"state"}, int(text[1]), TCP_STATES.index(text[2])),
    ),
    (
        r"ACK is over upper bound (\d+)",
        lambda text: ({"ack_above"}, None, (int(text[1]) - 1) % WORD),
    ),
    (
        r"SEQ is over upper bound (\d+)",
        lambda text: ({"seq_above"}, None, (int(text[1]) - 1) % WORD),
    ),
    (
        r"SEQ is under lower bound (\d+)",
        lambda text: ({"seq_below"}, None, (int(text[1]) + 1) % WORD),
    ),
    (
        r"ignored ACK under lower bound (\d+)",
        lambda text: ({"ack_below"}, None, (int(text[1]) + 1) % WORD),
    ),
    (r"(\d+) bytes more than expected", lambda text: ({"overshoot"}, int(text[1]), None)),
    (r"invalid rst", lambda _: ({"rst_below"}, None, None)),
    (r"invalid new", lambda _: ({"no_entry"}, None, None)),
    (r"challenge-ack ignored", lambda _: ({"challenge_ack"}, None, None)),
    (r"invalid tcp flag combination", lambda _: ({"flags"}, None, None)),
    (r"bad (hw icmp )?checksum", lambda _: ({"checksum"}, None, None)),
    (r"truncated packet", lambda _: ({"short", "offset"}, None, None)),
    (r"truncated/malformed packet", lambda _: ({"length"}, None, None)),
]


@cache
def sequences() -> dict[str, list[dict[str, Any]]]:
    """Read the recording, by kind."""
    groups: dict[str, list[dict[str, Any]]] = {}
    if VECTORS.is_file():
        with gzip.open(VECTORS, "rt") as lines:
            next(lines)
            for line in lines:
                sequence = json.loads(line)
                groups.setdefault(sequence["kind"], []).append(sequence)
    return groups


def cases() -> list[Any]:
    """List the kinds, or one that says why there are none."""
    missing = pytest.mark.skip(reason="no ../shared: the kernel's answers are not here")
    return sorted(sequences()) or [pytest.param("fuzz", marks=missing)]


def config_of(sequence: dict[str, Any]) -> TrackConfig:
    settings = {name: str(value) for name, value in sequence.get("sysctl", {}).items()}
    return TrackConfig(checksum="verify").set(settings)


def told_of(text: str) -> Told:
    """Translate what the kernel logged."""
    for pattern, tell in TEXTS:
        found = re.search(pattern, text)
        if found:
            return tell(found)
    raise AssertionError(text)


def agrees(recorded: dict[str, Any], verdict: Verdict) -> bool:
    """Tell whether a reason is what was logged, and the numbers are those that it named."""
    if "why" not in recorded:
        return verdict.reason is None or verdict.reason in UNLOGGED
    reasons, got, bound = told_of(recorded["why"][-1])
    return (
        verdict.reason in reasons and got in (None, verdict.got) and bound in (None, verdict.bound)
    )


def tuple_text(row: Connection) -> str:
    """Write the original tuple as the recording does."""
    if row.icmp_type is not None:
        return f"{row.protocol} {row.src} {row.dst} {row.icmp_id} {row.icmp_type} {row.icmp_code}"
    return f"{row.protocol} {row.src} {row.dst} {row.sport} {row.dport}"


def entry_of(tracker: Any, recorded: dict[str, Any] | None) -> dict[str, Any] | None:  # noqa: ANN401
    """Show the connection of the recorded tuple as the recording does."""
    if recorded is None:
        return None
    row = next(
        (it for it in tracker.connections().rows() if tuple_text(it) == recorded["orig"]), None
    )
    if row is None:
        return None
    flags = {"SEEN_REPLY": row.reply_seen, "ASSURED": row.assured}
    entry = {
        "timeout": row.timeout,
        "status": [name for name, there in flags.items() if there],
        "orig": recorded["orig"],
    }
    inspected = tracker.inspect(row.id)
    if inspected is not None:
        entry["state"] = row.state
        entry["flags"] = [side[5] for side in inspected["win"]]
        entry["wscale"] = [side[4] for side in inspected["win"]]
    return entry


def same_entry(entry: Any, recorded: Any, *, tolerance: int) -> bool:  # noqa: ANN401
    """Compare entries; the recorded timeout may be older by so many seconds."""
    if entry is None or recorded is None:
        return entry is recorded
    late = abs(entry["timeout"] - recorded["timeout"])
    return late <= tolerance and {**entry, "timeout": 0} == {**recorded, "timeout": 0}


def check_step(tracker: Any, step: dict[str, Any], *, tolerance: int) -> None:  # noqa: ANN401
    """Ask the tracker about one packet, and compare everything."""
    recorded = step["a"]
    time = START + step.get("t", 0) * MILLISECOND
    verdict = tracker.push(bytes.fromhex(step["pkt"]), time)
    shown = "-" if verdict.ct_class in {"held", "dropped"} else verdict.ct_class
    assert (shown, DIRECTIONS[verdict.direction]) == (recorded["v"], recorded.get("dir"))
    events = [event.kind for event in tracker.take_events()]
    assert events == recorded.get("ev", [])
    own = list(verdict.events)  # what time ended before it is not of its doing
    assert events in (own, ["destroy", *own])
    assert agrees(recorded, verdict), (
        recorded.get("why"),
        verdict.reason,
        verdict.got,
        verdict.bound,
    )
    entry = entry_of(tracker, recorded["ct"])
    assert same_entry(entry, recorded["ct"], tolerance=tolerance), (entry, recorded["ct"])
    if recorded["ct"] is None and verdict.ct_class != "related":
        assert verdict.timeout is None
    if "tcp" in recorded:
        assert tracker.inspect(verdict.connection) == recorded["tcp"]
    tracker.check()


@pytest.mark.parametrize("kind", cases())
def test_as_the_kernel(backend: str, kind: str) -> None:
    make = tracker_class(backend)
    for sequence in sequences()[kind]:
        tracker = make(config_of(sequence), ReassemblyConfig(path="netfilter", limits="kernel"))
        timed = any("t" in step for step in sequence["steps"])
        for number, step in enumerate(sequence["steps"]):
            try:
                check_step(tracker, step, tolerance=int(timed))
            except AssertionError as error:
                error.add_note(f"sequence {sequence['i']}, step {number}: {step['n']}")
                raise


def test_the_recording_is_whole() -> None:
    if not VECTORS.is_file():
        pytest.skip("no ../shared: the kernel's answers are not here")
    groups = sequences()
    assert sum(map(len, groups.values())) == 2000
    assert sum(len(sequence["steps"]) for group in groups.values() for sequence in group) == 17922
