"""What users of other trackers reported: times, ends of connections, gaps.

The comment above a test names the report; see also `test_track_reports`.
"""

from __future__ import annotations

import pytest

from fragtrack.testing import udp
from tests.tracking import (
    SECOND,
    UDP,
    VERSIONS,
    Bench,
    ends,
    ip,
    talk_of,
    told,
)

DAY = 86_400
both_versions = pytest.mark.parametrize("version", VERSIONS)


# nfstream/nfstream#125
@both_versions
def test_a_long_connection_stays_one_with_the_same_originator(backend: str, version: int) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    for _ in range(40):
        bench.wait(3600)
        assert bench.push(talk.server("PA", b"tick")).direction == "reply"
        assert bench.push(talk.client("A")).direction == "original"
    row = bench.only
    assert (row.src, row.sport) == (talk.client.address, talk.client.port)
    assert (row.packets_orig, row.packets_reply) == (42, 41)


# nfstream/nfstream#193, #40
@both_versions
def test_a_connection_ends_when_its_time_is_over_with_no_packet_to_tell(
    backend: str, version: int
) -> None:
    bench = Bench(backend)
    first = bench.now
    bench.push(ip(udp(b"ask", **ends(version)), UDP, version))
    bench.advance(29.5)
    assert bench.ended() == []
    bench.advance(0.5)
    (row,) = bench.ended()
    assert (row.end, row.time_first, row.time_last) == ("timeout", first, first)
    destroyed = bench.tracker.take_events()[-1]
    assert (destroyed.kind, destroyed.time) == ("destroy", first + 30 * SECOND)


# The same reports
@both_versions
@pytest.mark.parametrize("end", ["closed", "reset"])
def test_the_end_of_a_connection_says_how_it_ended(backend: str, version: int, end: str) -> None:
    state, seconds = ("TIME_WAIT", 120) if end == "closed" else ("CLOSE", 10)
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    bench.push_all(talk.goodbye() if end == "closed" else [talk.server("R")])
    assert bench.only.state == state
    bench.advance(seconds - 0.001)
    assert bench.ended() == []
    bench.advance(0.001)
    assert [(row.end, row.state) for row in bench.ended()] == [(end, state)]


# ahlashkari/CICFlowMeter#167, #40, #111, #170
@both_versions
def test_one_fin_a_side_is_one_flow_that_ends_after_the_last_ack(
    backend: str, version: int
) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    bench.tell(
        (talk.client("PA", b"request"), "established original ESTABLISHED"),
        (talk.client("FA"), "established original FIN_WAIT"),
        (talk.server("PA", b"a late answer"), "established reply CLOSE_WAIT"),
        (talk.client("A"), "established original CLOSE_WAIT"),
        (talk.server("FA"), "established reply LAST_ACK"),
        (talk.client("A"), "established original TIME_WAIT"),
    )
    bench.advance(121)
    assert [(row.end, row.packets_orig, row.packets_reply) for row in bench.ended()] == [
        ("closed", 6, 3)
    ]


# JarryShaw/PyPCAPKit#435, SkuldNorniern/fluere#17, idlab-discover/RustiFlow#59
@both_versions
def test_the_last_ack_and_repeated_fins_open_no_new_flow(backend: str, version: int) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    bench.push_all([talk.client("FA"), talk.server("A"), talk.server("FA"), talk.client("A")])
    again = talk.server("FA", seq=1)
    bench.tell(
        (again, "established reply TIME_WAIT"),
        (talk.client("A"), "established original TIME_WAIT"),
        (talk.client("FA", seq=1), "established original TIME_WAIT"),
    )
    bench.advance(120)
    assert len(bench.ended()) == 1
    assert bench.open_rows == []


# zeek/zeek#1196, #864
@both_versions
def test_how_long_an_idle_connection_lives_can_be_set(backend: str, version: int) -> None:
    for seconds, connections in ((DAY, 2), (10 * DAY, 1)):
        bench = Bench(backend, tcp_timeout_established=seconds)
        talk = talk_of(version)
        bench.open(talk)
        bench.wait(2 * DAY)
        verdict = bench.push(talk.client("PA", b"still here"))
        assert verdict.connection == connections


# The same reports: captures whose sections overlap in time.
@both_versions
def test_a_clock_that_steps_back_splits_nothing(backend: str, version: int) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    highest = bench.now
    bench.wait(-3600)
    bench.tell(
        (talk.client("PA", b"request"), "established original ESTABLISHED"),
        (talk.server("PA", b"answer"), "established reply ESTABLISHED"),
    )
    bench.advance(-DAY)
    bench.now = 0
    assert told(bench.push(talk.client("A"))) == "established original ESTABLISHED"
    row = bench.only
    assert (row.time_first, row.time_last) == (highest, highest)
    assert row.packets_orig + row.packets_reply == 6


# cloudnativelabs/kube-router#544, kubernetes/kubernetes#81775, moby/moby#35082
@both_versions
@pytest.mark.parametrize("isn", [1, 4_000_000_000])
def test_a_syn_that_uses_a_closed_connection_again_is_new(
    backend: str, version: int, isn: int
) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    bench.push_all(talk.goodbye())
    old = bench.only
    bench.wait(0.5)
    talk.client.restart(isn)
    talk.server.restart(isn)
    (verdict, _, _) = bench.tell(
        (talk.client("S"), "new original SYN_SENT reopened"),
        (talk.server("SA"), "established reply SYN_RECV"),
        (talk.client("A"), "established original ESTABLISHED"),
    )
    assert verdict.connection != old.id
    assert [(row.id, row.end) for row in bench.ended()] == [(old.id, "closed")]


# JuliusBairaktaris/openwrt-nss-edma#20
@both_versions
def test_behind_a_gap_everything_is_invalid_unless_gaps_are_tolerated(
    backend: str, version: int
) -> None:
    for tolerant in (False, True):
        bench, talk = Bench(backend, gap_tolerant=tolerant), talk_of(version)
        bench.open(talk)
        for _ in range(100):
            talk.server("PA", bytes(1460))  # not in the capture
        late = talk.client("A")
        if not tolerant:
            (verdict,) = bench.tell((late, "invalid - ESTABLISHED ack_above"))
            assert (verdict.got, verdict.bound) == (talk.server.at(146_001), talk.server.at(1))
            bench.tell(
                (talk.server("PA", bytes(1460)), "invalid - ESTABLISHED seq_above"),
                (talk.client("A"), "invalid - ESTABLISHED ack_above"),
            )
        else:
            (verdict,) = bench.tell((late, "established original ESTABLISHED resynchronized"))
            assert (verdict.got, verdict.bound) == (talk.server.at(146_001), talk.server.at(1))
            bench.tell(
                (talk.server("PA", bytes(1460)), "established reply ESTABLISHED"),
                (talk.client("A"), "established original ESTABLISHED"),
            )
        assert bench.only.invalid == (0 if tolerant else 3)
