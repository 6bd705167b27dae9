"""Connections from Python: one call for captures, a tracker for packets."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fragtrack
from fragtrack import engine, tracking
from fragtrack.engine import Backend
from fragtrack.testing import (
    Talk,
    ethernet,
    fragment,
    icmp_echo,
    icmpv6_echo,
    ipv4,
    ipv6,
    pcap,
    udp,
)
from tests.backends import follower_class, reassembler_class, rewriter_class, tracker_class

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


@pytest.fixture(autouse=True)
def use_backend(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker_class(backend)
    follower_class(backend)
    chosen = Backend(backend, reassembler_class(backend), rewriter_class(backend))
    monkeypatch.setattr(engine, "_loaded", [chosen])


def talk(port: int = 40_000) -> list[bytes]:
    one = Talk(sport=port)
    return [*one.handshake(), one.client("PA", b"GET /"), one.server("PA", b"200"), *one.goodbye()]


def save(path: Path, packets: Iterable[bytes], step: int = SECOND // 1000) -> Path:
    path.write_bytes(pcap((START + at * step, ethernet(p)) for at, p in enumerate(packets)))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write a connection that is over, one that was refused, datagrams, a stray acknowledgment."""
    refused = Talk(sport=50_000, dport=81)
    packets = [
        *talk(),
        refused.client("S"),
        refused.server("RA"),
        *fragment(ipv4(udp(b"x" * 64), id=5), sizes=[24]),
        ipv6(icmpv6_echo(b"ping"), next_header=58),
        Talk(sport=1).client("RA"),
    ]
    return save(tmp_path / "in.pcap", packets)


SUMMARY = {
    "packets": 14,
    "bytes": 0,
    "connections": {
        "total": 4,
        "open": 3,
        "protocols": {"tcp": 2, "icmpv6": 1, "udp": 1},
        "ends": {"open": 2, "closed": 1, "reset": 1},
    },
    "classes": {"new": 4, "established": 8, "invalid": 1, "held": 1},
    "reasons": {"reset": 1, "no_entry": 1},
    "fragments": {"ipv4": 2, "ipv6": 0},
    "datagrams": {"complete": 1, "incomplete": 0},
    "orphans": {},
    "counters": {
        "packets": 13,
        "found": 8,
        "new": 4,
        "invalid": 1,
        "ignore": 0,
        "delete": 1,
        "insert": 4,
        "insert_failed": 0,
        "drop": 0,
        "early_drop": 0,
        "icmp_error": 0,
        "entries": 3,
    },
    "damaged": None,
}


# ------------------------------------------------------------------------------------- captures


def test_one_call_gives_connections_and_counts(source: Path) -> None:
    found = fragtrack.track(source)
    told = found.summary.as_dict()
    assert told.pop("seconds") > 0
    assert told == {**SUMMARY, "bytes": source.stat().st_size}
    assert list(told) == list(SUMMARY)
    assert len(found) == 4
    assert [(row.id, row.end) for row in found.rows()] == [
        (2, "reset"),
        (1, "closed"),
        (3, "open"),
        (4, "open"),
    ]
    assert found.comparison is None
    assert repr(found) == "<fragtrack.Tracked packets=14 connections=4>"


def test_the_result_is_an_arrow_table(source: Path) -> None:
    found = fragtrack.track(source)
    table = pa.table(found)
    assert table["id"].to_pylist() == [2, 1, 3, 4]
    assert table["src"].to_pylist() == [row.src for row in found.rows()]
    assert pa.schema(found) == table.schema
    assert pa.table(found) == table  # once more


def test_a_capture_without_connections(tmp_path: Path) -> None:
    found = fragtrack.track(save(tmp_path / "none.pcap", []))
    assert found
    assert (len(found), found.rows(), pa.table(found).num_rows) == (0, [], 0)


def test_inputs_are_one_capture(tmp_path: Path) -> None:
    packets = talk()
    whole = fragtrack.track(save(tmp_path / "whole.pcap", packets))
    parts = [save(tmp_path / "a.pcap", packets[:3]), save(tmp_path / "b.pcap", packets[3:])]
    found = fragtrack.track(parts)
    assert found.summary.classes == whole.summary.classes
    assert len(found) == 1


def test_file_objects_and_many_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fragtrack.run.BUDGET", 256)
    monkeypatch.setattr(tracking, "TURN", 1)
    packets = [packet for port in range(1, 60) for packet in talk(port)]
    data = save(tmp_path / "in.pcap", packets, SECOND).read_bytes()
    found = fragtrack.track(io.BytesIO(data))
    output, verdicts = tmp_path / "c.parquet", tmp_path / "v.parquet"
    streamed = fragtrack.track(io.BytesIO(data), output, verdicts=verdicts)
    assert streamed.summary.ends == found.summary.ends == {"closed": 59}
    assert pq.read_table(output)["id"].to_pylist() == [row.id for row in found.rows()]
    assert pq.read_table(output).equals(pa.table(found).cast(pq.read_schema(output)))
    assert pq.read_table(verdicts)["frame"].to_pylist() == list(range(1, len(packets) + 1))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_outputs_with_threads(source: Path, tmp_path: Path, threads: int) -> None:
    names = [tmp_path / name for name in ("c.csv", "v.csv.gz", "e.txt")]
    found = fragtrack.track(source, names[0], verdicts=names[1], events=names[2], threads=threads)
    assert names[0].read_text().count("\n") == 5
    assert names[2].read_text().count("[NEW]") == 4
    assert names[1].stat().st_size
    assert found.summary.ends == SUMMARY["connections"]["ends"]  # type: ignore[index]
    with pytest.raises(fragtrack.FragtrackError, match="keep=True"):
        found.rows()
    kept = fragtrack.track(source, names[0], keep=True, threads=threads)
    assert [row.id for row in kept.rows()] == [2, 1, 3, 4]


def test_settings_as_text_and_as_values(source: Path) -> None:
    strict = fragtrack.track(source, settings={"net.netfilter.nf_conntrack_tcp_loose": "0"})
    assert strict.summary.reasons == fragtrack.track(source, tcp_loose=False).summary.reasons
    rows = fragtrack.track(source, udp_timeout=1, settings={"udp_timeout": "9"}).rows()
    assert rows[-2].timeout == 8
    old = fragtrack.track(source, profile="pre-6.1", limits="kernel")
    assert old.summary.packets == 14


def test_a_dump_to_compare_with(source: Path, tmp_path: Path) -> None:
    dump = tmp_path / "table.txt"
    fragtrack.track(source, dump, format="conntrack")
    found = fragtrack.track(source, compare=dump)
    assert found.comparison is not None
    assert found.comparison.agrees
    assert len(found.comparison.same) == 3
    dump.write_text("no entry\n")
    with pytest.raises(fragtrack.FragtrackError, match=r"table\.txt: line 1: expected "):
        fragtrack.track(source, compare=dump)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"settings": {"foo": "1"}}, "foo: no such setting; there are profile, "),
        ({"settings": {"tcp_loose": "x"}}, "tcp_loose is 'x'; it must be 0 or 1"),
        ({"profile": "bsd"}, "profile is 'bsd'; it must be one of linux-6.18, pre-6.1"),
        ({"threads": 0}, "threads=0: it must be a whole number, at least 1"),
        ({"format": "zeek"}, "format='zeek' is that of an output, which is not asked for"),
        ({"limits": "none"}, "limits is 'none'; "),
        ({"output": "a.csv", "verdicts": "a.csv", "events": "e.csv"}, "a.csv: is named for two"),
        ({"verdicts": "v.txt"}, "v.txt: the name does not tell the format; "),
    ],
)
def test_what_cannot_be_is_refused(source: Path, given: dict[str, Any], complaint: str) -> None:
    before = sorted(source.parent.iterdir())
    with pytest.raises(fragtrack.ConfigError) as caught:
        fragtrack.track(source, **given)
    assert str(caught.value).startswith(complaint)
    assert sorted(source.parent.iterdir()) == before


def test_an_error_leaves_no_output(tmp_path: Path) -> None:
    broken = tmp_path / "text.pcap"
    broken.write_text("no capture at all, whatever its name says")
    good = save(tmp_path / "good.pcap", talk())
    with pytest.raises(fragtrack.CaptureError):
        fragtrack.track([good, broken], tmp_path / "c.csv", verdicts=tmp_path / "v.parquet")
    with pytest.raises(OSError, match="cannot write"):
        fragtrack.track(good, tmp_path / "c.csv", events=tmp_path / "missing" / "e.csv")
    with pytest.raises(OSError, match="cannot write: No space left"):
        fragtrack.track(good, "/dev/full", verdicts=tmp_path / "v.csv", threads=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.pcap", "text.pcap"]


def test_damage_and_a_stop_are_told(tmp_path: Path, source: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(source.read_bytes()[:-5])
    summary = fragtrack.track(cut).summary
    assert summary.damaged is not None
    assert summary.packets == 13
    assert list(summary.as_dict()["damaged"]) == ["file", "offset", "why"]
    stopped = fragtrack.track(source, tmp_path / "c.csv", stopped=lambda: True)
    assert stopped.summary.interrupted
    assert not (tmp_path / "c.csv").exists()


# -------------------------------------------------------------------------------------- tracker


def test_packets_get_verdicts() -> None:
    tracker = fragtrack.Tracker()
    one = Talk()
    told = [tracker.push(packet, at * SECOND) for at, packet in enumerate(one.handshake())]
    assert [verdict.ct_class for verdict in told] == ["new", "established", "established"]
    assert [verdict.state for verdict in told] == ["SYN_SENT", "SYN_RECV", "ESTABLISHED"]
    assert told[-1].assured
    assert told[-1].timeout == 432_000
    bad = tracker.push(one.client("A", seq=10_000_000), 3 * SECOND)
    assert (bad.ct_class, bad.reason) == ("invalid", "seq_above")
    assert bad.detail is not None
    assert bad.detail.startswith("SEQ 10001000 is over the upper bound ")
    assert tracker.reasons == {"seq_above": 1}
    assert tracker.counters["found"] == 3
    assert (len(tracker), len(tracker.connections())) == (1, 1)
    inside = tracker.inspect(1)
    assert inside is not None
    assert len(inside["win"]) == 2
    assert [event.kind for event in tracker.events()] == ["new", "update", "update"]
    assert tracker.events() == []
    assert pa.table(tracker.connections())["invalid"].to_pylist() == [1]
    tracker.check()
    assert repr(tracker) == "<fragtrack.Tracker profile=linux-6.18 connections=1>"


def test_what_nobody_will_ask_for_is_not_kept() -> None:
    for keep_events, keep_ended in ((True, False), (False, True), (False, False)):
        tracker = fragtrack.Tracker(keep_events=keep_events, keep_ended=keep_ended)
        tracker.push(ipv4(udp(b"hello")), 0)
        tracker.advance(60 * SECOND)
        assert [event.kind for event in tracker.events()] == ["new", "destroy"] * keep_events
        assert [row.end for row in tracker.ended().rows()] == ["timeout"] * keep_ended
        assert tracker.counters["delete"] == 1
        tracker.check()


def test_wrong_values_are_named_with_what_they_must_be(tmp_path: Path) -> None:
    tracker = fragtrack.Tracker()
    with pytest.raises(fragtrack.ConfigError, match="limit is 0; it must be from 1"):
        next(tracker.pages(0))
    with pytest.raises(fragtrack.ConfigError, match="form is 'event'; it must be one of list, ext"):
        tracker.dump("event")
    for value, wanted in (("1e3", "a whole number"), ([], "a whole number"), (0, "from 1")):
        with pytest.raises(fragtrack.ConfigError, match=f"max is .*; it must be {wanted}"):
            fragtrack.TrackConfig().set({"max": value})
    assert fragtrack.TrackConfig().set({"max": 5, "tcp_loose": 0}).tcp_loose is False
    for threads in (0, 1.5, "2"):
        with pytest.raises(fragtrack.ConfigError, match=r"threads=.*: it must be a whole number"):
            fragtrack.track(tmp_path / "none.pcap", threads=threads)


def test_time_ends_connections_and_zones_part_them() -> None:
    tracker = fragtrack.Tracker(udp_timeout=5)
    packet = ipv4(udp(b"hello"))
    assert tracker.push(packet, 0).ct_class == "new"
    assert tracker.push(packet, 0, zone=7).connection == 2
    tracker.advance(6 * SECOND)
    assert [row.end for row in tracker.ended().rows()] == ["timeout", "timeout"]
    assert len(tracker.ended()) == 0
    with pytest.raises(ValueError, match="zone"):
        tracker.push(packet, 0, zone=1 << 56)


def test_fragments_are_put_together_first() -> None:
    tracker = fragtrack.Tracker(limits="kernel")
    first, last = fragment(ipv4(udp(b"x" * 64), id=3), sizes=[24])
    assert tracker.push(first, 0).ct_class == "held"
    assert tracker.push(last, 1).ct_class == "new"
    assert tracker.push(fragment(ipv4(udp(b"x" * 64), id=4), sizes=[24])[0], 2).ct_class == "held"
    tracker.flush()
    assert tracker.fragments == {"seen": 3, "complete": 1, "incomplete": 1}
    assert tracker.orphans == {"end": 1}


def test_the_table_as_text() -> None:
    tracker = fragtrack.Tracker()
    tracker.push(ipv4(icmp_echo(b"ping", ident=9), protocol=1), 0)
    assert tracker.dump() == (
        "icmp     1 30 src=192.0.2.1 dst=198.51.100.2 type=8 code=0 id=9 packets=1 bytes=32 "
        "[UNREPLIED] src=198.51.100.2 dst=192.0.2.1 type=0 code=0 id=9 packets=0 bytes=0 "
        "mark=0 use=1\n"
    )
    assert tracker.dump("procfs").startswith("ipv4     2 icmp     1 30 src=192.0.2.1 ")
    assert fragtrack.Tracker().dump() == ""


def test_settings_of_a_tracker_are_checked_and_its_hash_key_is_drawn() -> None:
    tracker = fragtrack.Tracker("pre-6.1", tcp_loose=False)
    assert tracker.config.profile == "pre-6.1"
    assert not tracker.config.tcp_loose
    assert tracker.config.hash_key is not None
    assert tracker.config.hash_key != fragtrack.Tracker().config.hash_key
    assert fragtrack.Tracker(hash_key=5).config.hash_key == 5
    with pytest.raises(fragtrack.ConfigError, match="max is 0"):
        fragtrack.Tracker(max=0)
