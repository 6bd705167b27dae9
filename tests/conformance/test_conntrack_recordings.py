"""Answers of a Linux 6.18 kernel to flows of our own, reproduced: every protocol, time included.

`tests/live/record.py` made the file, and says what is in it. After every packet the class, the
direction, the events, the entry (state, timeout, flags, tuple, packets and bytes), the private
window state of TCP, and the reason, where the kernel logged one, must be the kernel's. Timeouts may
be a second off: the kernel's clock went on between a packet and the look at it. At every pause all
that ran out must be gone, and announced, and all else must be there.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fragtrack.verdicts import SCTP_STATES, TCP_STATES
from tests.backends import tracker_class
from tests.live.flow import Step
from tests.live.judge import compare

RECORDING = Path(__file__).parent.parent / "data" / "conntrack_618.jsonl.gz"


@cache
def recording() -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Read the header, and the flows by kind."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(RECORDING, "rt") as lines:
        header: dict[str, Any] = json.loads(next(lines))
        for line in lines:
            flow = json.loads(line)
            kinds.setdefault(flow["kind"], []).append(flow)
    return header, kinds


def steps_of(flow: dict[str, Any]) -> list[Step]:
    steps, now = [], 0
    for line in flow["steps"]:
        now = line.get("t", now)
        packet = bytes.fromhex(line["p"]) if "p" in line else None
        steps.append(Step(line["s"], packet, line["n"], now))
    return steps


@pytest.mark.parametrize("kind", sorted(recording()[1]))
def test_as_recorded(backend: str, kind: str) -> None:
    make = tracker_class(backend)
    for number, flow in enumerate(recording()[1][kind]):
        answers = [line["a"] for line in flow["steps"]]
        found = compare(make, flow.get("settings", {}), steps_of(flow), answers, strict=True)
        assert found is None, f"flow {number}, {flow['steps'][found.step]['n']}: {found}"


def test_the_recording_is_whole() -> None:
    header, kinds = recording()
    flows = [flow for group in kinds.values() for flow in group]
    assert header["kernel"].startswith("6.18.")
    assert len(flows) == header["flows"]
    assert sum(len(flow["steps"]) for flow in flows) == header["steps"]


def test_the_recording_shows_everything() -> None:
    seen: Counter[object] = Counter()
    for group in recording()[1].values():
        for flow in group:
            for line in flow["steps"]:
                answer = line["a"]
                seen[answer.get("v")] += 1
                for entry in [answer.get("ct"), *answer.get("all", [])]:
                    if entry is not None:
                        seen[entry["orig"][2], entry.get("state")] += 1
                seen.update((event, "p" in line) for event in answer.get("ev", []))
    assert {"new", "established", "related", "invalid", "untracked", "-"} <= seen.keys()
    assert {(6, state) for state in TCP_STATES[1:]} <= seen.keys()
    assert {(132, state) for state in SCTP_STATES[1:]} <= seen.keys()
    assert {(protocol, None) for protocol in (1, 17, 47, 58, 99, 136)} <= seen.keys()
    assert {("new", True), ("update", True), ("destroy", True), ("destroy", False)} <= seen.keys()
