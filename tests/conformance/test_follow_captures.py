"""Both followers over captures: the same connections, verdicts, events, Zeek rows and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fragtrack.config import ReassemblyConfig
from fragtrack.errors import FragtrackError
from fragtrack.run import Pass
from fragtrack.track_config import TrackConfig
from tests.backends import follower_class

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "narrow": {"checksum": "verify", "zones": "none", "max": 20},
}


def everything(backend: str, path: Path, settings: dict[str, Any]) -> dict[str, Any] | str:
    """What a pass over a capture gives; the error where it is none."""
    config = TrackConfig(hash_key=3, **settings)
    reassembly = ReassemblyConfig(path="netfilter", hash_key=1)
    follower = follower_class(backend)(config, reassembly, verdicts=True, events=True, zeek=True)
    told: dict[str, Any] = {"connections": [], "verdicts": [], "events": [], "zeek": []}
    try:
        work = Pass([str(path)])
        for step in work.steps(follower):
            told["connections"] += step.take_connections().rows()
            told["verdicts"] += map(tuple, step.take_verdicts().rows())
            told["events"] += step.take_events()
            told["zeek"] += step.take_zeek()
    except FragtrackError as error:
        return str(error)
    work.close()
    follower.check()
    return {**told, "summary": follower.summary(), "damaged": follower.damaged}


@pytest.mark.shared
@pytest.mark.parametrize("settings", SETTINGS)
def test_both_backends_agree_on_captures(shared: Path, settings: str) -> None:
    captures = sorted(shared.glob("captures/**/*.pcap*"))
    assert len(captures) > 100
    seen = 0
    for path in captures:
        reference = everything("reference", path, SETTINGS[settings])
        native = everything("native", path, SETTINGS[settings])
        assert reference == native, path.name
        seen += isinstance(native, dict) and len(native["verdicts"])
    assert seen > 5000
