"""Both trackers, the same packets: the same verdicts, events, rows, windows, counts after each."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragtrack.config import ReassemblyConfig
from fragtrack.reference.track import Tracker
from fragtrack.testing import fragment
from fragtrack.track_config import TrackConfig
from fragtrack.verdicts import Verdict
from tests.property.conversations import packets

VERDICT = [field.name for field in fields(Verdict)]
START = 1_700_000_000_000_000_000
WAITS = (0, 0, 0, 1, 500_000_000, 2_500_000_000, 11_000_000_000, 130_000_000_000, -5)
FRAGMENTED, CUT, ADVANCED = range(3)

steps = st.lists(
    st.tuples(packets(), st.sampled_from(WAITS), st.sampled_from([0, 0, 0, 7]), st.integers(0, 19)),
    max_size=40,
)
configs = st.builds(
    TrackConfig,
    profile=st.sampled_from(["linux-6.18", "linux-6.18", "pre-6.1"]),
    checksum=st.sampled_from(["offload", "verify", "ignore"]),
    tcp_loose=st.booleans(),
    tcp_be_liberal=st.sampled_from([False, False, True]),
    tcp_ignore_invalid_rst=st.sampled_from([False, False, True]),
    gap_tolerant=st.booleans(),
    rst_inexact_timeout=st.sampled_from(["close", "unacknowledged"]),
    max=st.sampled_from([1, 3, 6, 262_144, 262_144]),
    udp_timeout=st.sampled_from([30, 0.5, 2]),
    hash_key=st.integers(0, 3),
)


def state_of(tracker: Tracker) -> dict[str, Any]:
    """Everything that shows of a tracker."""
    rows = tracker.connections().rows()
    return {
        "rows": rows,
        "ended": tracker.take_ended().rows(),
        "events": tracker.take_events(),
        "counters": tracker.counters,
        "reasons": tracker.reasons,
        "windows": {row.id: tracker.inspect(row.id) for row in rows},
        "fragments": tracker.fragments,
        "orphans": tracker.orphans,
    }


@pytest.mark.skipif(
    importlib.util.find_spec("fragtrack._core") is None, reason="fragtrack._core is not built"
)
@given(config=configs, steps=steps)
def test_both_backends_agree(config: TrackConfig, steps: list[tuple[bytes, int, int, int]]) -> None:
    reassembly = ReassemblyConfig(path="netfilter", hash_key=1)
    native = importlib.import_module("fragtrack._core").Tracker(config, reassembly)
    reference = Tracker(config, reassembly)
    now = START
    for packet, wait, zone, special in steps:
        now += wait
        pieces = [packet]
        if special == FRAGMENTED and len(packet) > 60:
            pieces = list(fragment(packet, sizes=[16]))
        elif special == CUT:
            pieces = [packet[: len(packet) // 2]]
        for piece in pieces:
            told = [tracker.push(piece, now, zone) for tracker in (reference, native)]
            one, other = [{name: getattr(it, name) for name in VERDICT} for it in told]
            assert one == other
        if special == ADVANCED:
            for tracker in (reference, native):
                tracker.advance(now + 500_000_000)
        assert state_of(reference) == state_of(native)
        reference.check()
        native.check()
