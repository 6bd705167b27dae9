"""The Zeek view: timeouts, a clock that errs, sequence numbers, bounds, identifiers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragtrack.errors import ConfigError
from fragtrack.reference.zeek import Segment, ZeekFlows
from fragtrack.reference.zeek.segment import read
from fragtrack.reference.zeek.stream import Stream
from fragtrack.zeek import ZeekConfig
from tests.zeek_talk import CLIENT, SECOND, SERVER, START, Zeek, icmp, play, udp

# ------------------------------------------------------------------ time


def test_an_attempt_ends_in_five_seconds() -> None:
    zeek = play("S")
    zeek.wait(3)
    zeek.client("S", seq=1000)
    zeek.wait(2)
    zeek.client("S", seq=1000)
    rows = zeek.rows()
    assert [(row.history, row.conn_state, row.orig_pkts) for row in rows] == [
        ("S", "S0", 2),
        ("S", "S0", 1),
    ]


@pytest.mark.parametrize(
    ("packets", "delay"), [("ShAFfA", 5), ("Sr", 5), ("ShAR", 5), ("ShAFR", 5), ("SF", 5)]
)
def test_a_closed_connection_stays_for_a_while(packets: str, delay: float) -> None:
    for wait, expected in ((delay - 0.5, 1), (delay + 1, 2)):
        zeek = play(packets)
        zeek.wait(wait)
        zeek.server("A")
        assert len(zeek.rows()) == expected


def test_packets_behind_both_fins_do_not_prolong() -> None:
    zeek = play("ShAFf")
    zeek.wait(2)
    zeek.client("A")
    row = zeek.row()
    assert (row.duration, row.orig_pkts) == (4_000_000, 4)


@pytest.mark.parametrize("packets", ["ShAD", "D", "ShAF"])
def test_idle_connections_split(packets: str) -> None:
    for timeout in (300, 20):
        for wait, expected in ((timeout - 1, 1), (timeout, 2)):
            zeek = play(packets, tcp_inactivity_timeout=timeout)
            zeek.wait(wait)
            zeek.server("A")
            assert len(zeek.rows()) == expected


@pytest.mark.parametrize(
    ("packet", "setting"),
    [
        (udp(40000, 53), "udp_inactivity_timeout"),
        (icmp(8), "icmp_inactivity_timeout"),
        (Segment(4, CLIENT, SERVER, 132, 100), "unknown_ip_inactivity_timeout"),
    ],
)
def test_idle_flows_split(packet: Segment, setting: str) -> None:
    for timeout in (60, 7):
        for wait, expected in ((timeout - 1, 1), (timeout, 2)):
            zeek = Zeek(**{setting: timeout})
            zeek.see(packet)
            zeek.wait(wait)
            zeek.see(packet)
            rows = zeek.rows()
            assert len(rows) == expected
            assert {row.orig_h for row in rows} == {"192.0.2.1"}


def test_interactive_connections_may_rest_for_an_hour() -> None:
    for wait, expected in ((3599, 1), (3600, 2)):
        zeek = play("ShA", dport=22)
        zeek.wait(wait)
        zeek.server("A")
        assert len(zeek.rows()) == expected


def test_partial_close_is_an_option() -> None:
    for setting, expected in ((False, 1), (True, 2)):
        zeek = play("Df", partial_close=setting)
        zeek.wait(4)
        zeek.client("A")
        assert len(zeek.rows()) == expected


def test_a_clock_that_goes_back() -> None:
    zeek = play("ShAD")
    zeek.wait(-1000)
    zeek.server("A")
    zeek.client("PA", 100)
    zeek.wait(1001)
    zeek.client("FA")
    row = zeek.row()
    assert (row.history, row.orig_pkts, row.ts) == ("ShADaF", 5, START)
    assert row.duration == 1_006_000_000
    zeek = play("S")
    zeek.wait(-1000)
    zeek.ports = (40001, 80)
    zeek.client("S")
    first, second = zeek.rows()
    assert (first.duration, second.duration) == (None, None)
    assert second.ts < first.ts


def test_a_reused_pair_of_ports_is_another_connection() -> None:
    zeek = play("ShAFf")
    zeek.client("S", seq=77)
    assert zeek.told() == [("ShAFf", "SF"), ("S", "S0")]
    zeek = play("ShA")
    zeek.client("S", seq=1000)  # the same SYN again
    zeek.client("S", seq=2000)
    assert zeek.told() == [("ShA", "S1"), ("S", "S0")]


def test_a_syn_ack_reuses_only_what_had_no_syn() -> None:
    zeek = play("h")
    zeek.server("SA", seq=5000)
    zeek.server("SA", seq=9000)
    assert zeek.told() == [("^h", "OTH"), ("^h", "OTH")]


def test_a_syn_behind_its_data() -> None:
    zeek = Zeek()
    zeek.client("PA", 100, seq=1001)
    zeek.client("S", seq=1000)
    assert zeek.told() == [("DS", "S0")]


def test_nothing_but_bad_checksums_ends_soon() -> None:
    for wait, expected in ((4, 1), (6, 2)):
        zeek = Zeek()
        zeek.client("S", bad_checksum=True)
        zeek.wait(wait)
        zeek.client("A")
        assert len(zeek.rows()) == expected


def test_a_reset_behind_a_hole_waits_until_idle() -> None:
    for wait, expected in ((299, 1), (300, 2)):
        zeek = play("ShAD")
        zeek.next[0] += 30
        zeek.client("R")
        zeek.wait(wait)
        zeek.client("A")
        assert len(zeek.rows()) == expected


def test_time_passes_without_packets() -> None:
    zeek = play("S")
    zeek.flows.advance(START + 5 * SECOND - 1)
    assert not zeek.flows.take()
    zeek.flows.advance(START + 5 * SECOND)
    assert [row.conn_state for row in zeek.flows.take()] == ["S0"]
    assert len(zeek.flows) == 0


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize("start", [0, 1, 0x7FFF_FFFF, 0xFFFF_FF00, 0xFFFF_FFFE, 0xFFFF_FFFF])
@pytest.mark.parametrize("syn", [True, False])
def test_sizes_across_the_end_of_numbers(start: int, *, syn: bool) -> None:
    zeek = Zeek()
    zeek.next = [start, start ^ 0x8000_0000]
    if syn:
        zeek.client("S")
        zeek.server("SA")
        zeek.client("A")
    for _ in range(5):
        zeek.client("PA", 100)
        zeek.server("PA", 1000)
    row = zeek.row()
    assert (row.orig_bytes, row.resp_bytes, row.missed_bytes) == (500, 5000, 0)


def test_more_than_a_round_of_numbers() -> None:
    zeek = play("ShA")
    for _ in range(5):
        zeek.client("PA", 1 << 30)
        zeek.server("A")
    zeek.client("FA")
    assert zeek.row().orig_bytes == 5 << 30


def test_a_half_open_connection_that_is_aborted_has_no_size() -> None:
    zeek = play("S")
    zeek.server("A", ack=99_999)
    zeek.client("R", seq=99_999)
    row = zeek.row()
    assert (row.history, row.conn_state, row.orig_bytes) == ("SaR", "RSTOS0", 0)


def test_an_acknowledgment_of_zero_is_no_size() -> None:
    zeek = play("ShAD")
    zeek.next[0] = 0xF000_0000
    zeek.server("A", ack=0)
    zeek.next[0] = 1101
    zeek.server("A")
    assert zeek.row().orig_bytes == 100


def test_a_reset_far_away_is_no_size() -> None:
    zeek = play("ShAD")
    zeek.client("R", seq=0x7000_0000)
    assert zeek.row().orig_bytes == 100


@given(
    st.lists(
        st.tuples(st.integers(1, 300), st.integers(1, 40), st.booleans(), st.integers(0, 60)),
        max_size=40,
    )
)
def test_gaps_are_bytes_acknowledged_and_never_sent(
    steps: list[tuple[int, int, bool, int]],
) -> None:
    stream, sent = Stream(), set[int]()
    for start, length, acks, more in steps:
        stream.sent(start, start + length, size=0, unacked=False)
        sent |= set(range(max(start, stream.acked), start + length))
        stream.check()
        if acks and more:
            upto = stream.acked + more
            expected = set(range(stream.acked, upto)) - sent
            gaps = stream.acknowledged(upto, partial=False)
            stream.check()
            assert sum(gaps) == len(expected)
            assert all(gap > 0 for gap in gaps)


# ------------------------------------------------------------------ bounds and identifiers


def test_the_table_is_bounded() -> None:
    zeek = Zeek(max=3)
    for port in range(40000, 40003):
        zeek.see(udp(port, 53))
    zeek.see(udp(40000, 53))  # not the oldest any more
    zeek.see(udp(40003, 53))
    assert [row.orig_p for row in zeek.flows.take()] == [40001]
    assert zeek.flows.counters == {"packets": 5, "opened": 4, "ended": 1, "evicted": 1}
    assert len(zeek.flows) == 3
    assert [row.orig_p for row in zeek.rows()] == [40000, 40002, 40003]


def test_many_flows_keep_the_queue_small() -> None:
    flows = ZeekFlows(ZeekConfig(max=100))
    for index in range(5000):
        port = 1024 + index
        flows.see(udp(port, 50000), START + index)
        flows.see(Segment(4, index, SERVER, 6, 40, sport=port, dport=80, flags=2), START + index)
    flows.check()
    assert len(flows._queue) <= 2 * 100 + 66
    assert len(flows.take()) == 9900


def test_identifiers() -> None:
    def uids(**config: Any) -> list[str]:
        zeek = play("ShAFf", **config)
        zeek.client("S", seq=77)
        return [row.uid for row in zeek.rows()]

    first, second = uids()
    assert re.fullmatch("C[0-9A-Za-z]{17}", first)
    assert first != second
    assert uids() == [first, second]
    assert not set(uids(uid_key=1)) & {first, second}


@pytest.mark.parametrize(
    "wrong",
    [
        {"max": 0},
        {"max": True},
        {"tcp_close_delay": 0},
        {"udp_inactivity_timeout": float("inf")},
        {"icmp_inactivity_timeout": "60"},
        {"partial_close": 1},
        {"uid_key": -1},
        {"tcp_server_ports": frozenset({70000})},
    ],
)
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ZeekConfig(**wrong)


SEGMENTS = st.builds(
    Segment,
    version=st.just(4),
    src=st.sampled_from([1, 2]),
    dst=st.sampled_from([1, 2]),
    protocol=st.sampled_from([6, 6, 6, 6, 17, 1, 132]),
    length=st.integers(20, 100),
    sport=st.sampled_from([0, 8, 80, 5000]),
    dport=st.sampled_from([0, 8, 80, 5000]),
    payload=st.sampled_from([0, 0, 1, 100]),
    flags=st.sampled_from([2, 18, 16, 17, 4, 20, 24, 0, 255, 3, 5]),
    seq=st.sampled_from([0, 1, 2, 100, 101, 102, 0xFFFF_FFFF, 0x8000_0000]),
    ack=st.sampled_from([0, 1, 2, 100, 101, 102, 0xFFFF_FFFF, 0x8000_0000]),
    window=st.sampled_from([0, 1]),
    whole=st.booleans(),
    bad_checksum=st.sampled_from([False, False, False, True]),
)


@settings(deadline=None)
@given(st.lists(st.tuples(SEGMENTS, st.integers(-SECOND, 8 * SECOND)), max_size=60))
def test_anything_may_come(packets: list[tuple[Segment, int]]) -> None:
    flows, now, rows = ZeekFlows(ZeekConfig(max=4)), 0, []
    for packet, step in packets:
        now += step
        flows.see(packet, now)
        flows.check()
        rows += flows.take()
    flows.finish()
    flows.check()
    rows += flows.take()
    counted = sum(row.orig_pkts + row.resp_pkts for row in rows)
    uncounted = sum(packet.bad_checksum and packet.protocol in {1, 6} for packet, _ in packets)
    assert counted == len(packets) - uncounted
    assert flows.counters["opened"] == flows.counters["ended"] == len(rows)


# ------------------------------------------------------------------ reading headers


def test_headers_that_do_not_fit() -> None:
    def size(protocol: int, transport: bytes, claimed: int) -> Segment | None:
        return read(4, 1, 2, protocol, length=20 + claimed, size=claimed, transport=transport)

    header = bytes(12) + b"\x50" + bytes(7)
    assert size(6, header[:19], 20) is None
    assert size(6, bytes(20), 20) is None  # no header of 0 words
    assert size(6, bytes(12) + b"\x60" + bytes(7), 24) is None  # options cut off
    whole = size(6, header + b"abc", 23)
    assert whole is not None
    assert (whole.payload, whole.whole) == (3, True)
    cut = size(6, header, 23)
    assert cut is not None
    assert (cut.payload, cut.whole) == (3, False)
    assert size(17, bytes(7), 7) is None
    short = size(17, bytes(8), 8)
    assert short is not None
    assert short.payload == 0
    assert size(1, bytes(4), 4) is None
    other = size(132, b"", 0)
    assert other is not None
    assert (other.sport, other.payload) == (0, 0)
