"""Settings are checked when they are made, and their defaults follow `limits`."""

from __future__ import annotations

import pytest

from fragtrack.config import ReassemblyConfig
from fragtrack.errors import CaptureError, ConfigError, FragtrackError, OutputError
from fragtrack.events import Reason, describe


def test_defaults_follow_the_limits() -> None:
    capture, kernel = ReassemblyConfig(), ReassemblyConfig(limits="kernel")
    assert (capture.memory_limit, kernel.memory_limit) == (512 << 20, 4 << 20)
    assert (capture.max_distance, kernel.max_distance) == (0, 64)
    assert (capture.reclaim_name, kernel.reclaim_name) == ("fair", "refuse")
    assert (capture.verify_checksum, kernel.verify_checksum) == (False, True)
    assert (capture.timeout4_ns, capture.timeout6_ns) == (30 * 10**9, 60 * 10**9)


def test_explicit_settings_win() -> None:
    config = ReassemblyConfig(
        limits="kernel", memory=0, max_dist=0, reclaim="lru", checksum="ignore", timeout4=0.25
    )
    assert (config.memory_limit, config.max_distance, config.reclaim_name) == (0, 0, "lru")
    assert not config.verify_checksum
    assert config.timeout4_ns == 250_000_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", "linux-6"),
        ("path", "forward"),
        ("limits", None),
        ("reclaim", "random"),
        ("checksum", True),
        ("duplicates", "keep"),
        ("extent", ""),
        ("timeout4", 0),
        ("timeout6", -1.0),
        ("timeout4", float("nan")),
        ("timeout6", float("inf")),
        ("timeout4", "30"),
        ("timeout4", True),
        ("memory", -1),
        ("memory", 1.5),
        ("memory", True),
        ("max_dist", -1),
        ("hash_key", 1 << 128),
        ("local", "10.0.0.0/8"),
        ("local", ("10.0.0.1/8",)),
        ("local", ("somewhere",)),
    ],
)
def test_what_cannot_work_is_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        ReassemblyConfig(**{name: value})  # type: ignore[arg-type]


def test_errors_form_one_tree() -> None:
    assert issubclass(ConfigError, FragtrackError)
    assert issubclass(ConfigError, ValueError)
    assert issubclass(OutputError, FragtrackError)
    assert issubclass(OutputError, OSError)
    error = CaptureError("in.pcap", 24, "the record says 70000 bytes")
    assert str(error) == "in.pcap: offset 24: the record says 70000 bytes"
    assert (error.file, error.offset, error.why) == ("in.pcap", 24, "the record says 70000 bytes")
    assert str(OutputError("out.pcap: no space")) == "out.pcap: no space"


def test_every_reason_is_described() -> None:
    assert [reason.value for reason in Reason] == list(range(1, 21))
    assert set(describe) == set(Reason)
    assert Reason(12).name == "truncated"
    assert all(reason.description == describe[reason] for reason in Reason)
    assert all(reason.name == reason.name.lower() for reason in Reason)
