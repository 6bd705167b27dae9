"""The shell scenarios of the Linux selftests (net/netfilter) that concern a tracker, restated."""

from __future__ import annotations

import threading
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from fragtrack.testing import (
    fragment,
    icmp_error,
    icmpv6_error,
    pattern,
    sctp,
    sctp_cookie_ack,
    sctp_cookie_echo,
    sctp_data,
    sctp_heartbeat,
    sctp_init,
    sctp_init_ack,
    udp,
)
from tests.tracking import (
    CLIENT,
    ICMP,
    ICMPV6,
    ROUTER,
    SCTP,
    SERVER,
    UDP,
    VERSIONS,
    Bench,
    ends,
    ip,
    talk_of,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ZONES = 2_000


# ------------------------------------------------------------------- unreplied SYN, kept asking


@pytest.mark.parametrize("version", VERSIONS)
def test_a_syn_without_answer_ends_after_120_s_however_often_it_is_sent(
    backend: str, version: int
) -> None:
    bench, talk = Bench(backend), talk_of(version)
    first = bench.push(talk.client("S"))
    assert told(first) == "new original SYN_SENT"
    for passed in range(10, 120, 10):
        bench.wait(10)
        verdict = bench.push(talk.client("S"))
        assert told(verdict) == "new original SYN_SENT"
        assert (verdict.connection, verdict.timeout) == (first.connection, 120 - passed)
    assert (bench.only.packets_orig, bench.only.reply_seen) == (1, False)
    bench.advance(9.999)
    assert len(bench.open_rows) == 1
    bench.advance(0.001)
    assert bench.open_rows == []
    (row,) = bench.ended()
    assert (row.id, row.end, row.state) == (first.connection, "timeout", "SYN_SENT")
    second = bench.push(talk.client("S"))
    assert second.connection != first.connection


# ----------------------------------------------------------------------------- ICMP, two routers


def error(version: int, quote: bytes, *, dst: str, src: str) -> bytes:
    """Build "fragmentation needed" or "packet too big"."""
    if version == 4:
        return ip(icmp_error(3, 4, quote, rest=1400), ICMP, src=src, dst=dst)
    message = icmpv6_error(2, 0, quote, rest=1400, src=src, dst=dst)
    return ip(message, ICMPV6, 6, src=src, dst=dst)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_too_big_is_related_from_any_router_in_both_directions(
    backend: str, version: int, protocol: str
) -> None:
    bench = Bench(backend)
    if protocol == "tcp":
        talk = talk_of(version)
        bench.open(talk)
        there, back = talk.client("PA", bytes(1400)), talk.server("PA", bytes(1400))
    else:
        there = ip(udp(bytes(1400), **ends(version)), UDP, version)
        reverse = ends(version, reply=True)
        answer = udp(bytes(1400), sport=53, dport=1024, **reverse)
        back = ip(answer, UDP, version, reply=True)
    bench.push(there)
    bench.push(back)
    before = bench.only
    state = before.state or "-"
    for router in (ROUTER[version], SERVER[version]):
        verdict = bench.push(error(version, there[:528], src=router, dst=CLIENT[version]))
        assert told(verdict) == f"related reply {state}"
        assert verdict.connection == before.id
    for router in (ROUTER[version], CLIENT[version]):
        verdict = bench.push(error(version, back[:528], src=router, dst=SERVER[version]))
        assert told(verdict) == f"related original {state}"
    assert bench.only == before  # it is no packet of the connection


@pytest.mark.parametrize("version", VERSIONS)
def test_too_big_about_what_was_never_sent_is_invalid(backend: str, version: int) -> None:
    bench, talk, other = Bench(backend), talk_of(version), talk_of(version, sport=40_001)
    bench.open(talk)
    packet = error(version, other.client("A"), src=ROUTER[version], dst=CLIENT[version])
    assert told(bench.push(packet)) == "invalid - - inner_unknown"
    packet = error(version, talk.client("A"), src=ROUTER[version], dst=SERVER[version])
    verdict = bench.push(packet)
    assert (verdict.ct_class, verdict.reason) == ("invalid", "outer_address")


# -------------------------------------------------------------------------- SCTP, INIT collision


class Association:
    """Two SCTP endpoints that send chunks with a tag."""

    def __init__(self, backend: str) -> None:
        self.bench = Bench(backend)

    def left(self, vtag: int, *chunks: bytes) -> str:
        return told(self.bench.push(ip(sctp(chunks, vtag=vtag, sport=1234, dport=4321), SCTP)))

    def right(self, vtag: int, *chunks: bytes) -> str:
        packet = ip(sctp(chunks, vtag=vtag, sport=4321, dport=1234), SCTP, reply=True)
        return told(self.bench.push(packet))


def test_sctp_collision_with_an_init_ack_after_the_handshake(backend: str) -> None:
    # Both begin; the right side's handshake completes; the INIT ACK that answers the left side's
    # INIT comes last, with a tag that the association does not use. It must not be learned: the
    # kernel calls it invalid, and everything else stays valid.
    both, left_tag, right_tag, late_tag = Association(backend), 0xE9C8A708, 0x898C4D5, 0xE9563B1C
    assert [
        both.left(0, sctp_init(left_tag)),
        both.right(0, sctp_init(right_tag)),
        both.left(right_tag, sctp_init_ack(left_tag)),
        both.right(left_tag, sctp_cookie_echo()),
        both.left(right_tag, sctp_cookie_ack()),
        both.right(left_tag, sctp_init_ack(late_tag)),
        both.left(right_tag, sctp_data(b"left")),
        both.right(left_tag, sctp_data(b"right")),
        both.left(right_tag, sctp_heartbeat()),
        both.right(left_tag, sctp_heartbeat(ack=True)),
    ] == [
        "new original CLOSED",
        "established reply CLOSED",
        "established original CLOSED",
        "established reply CLOSED",
        "established original CLOSED",
        "invalid - CLOSED vtag",
        "established original CLOSED",
        "established reply CLOSED",
        "established original CLOSED",
        "established reply CLOSED",
    ]


def test_sctp_collision_with_an_init_ack_during_the_handshake(backend: str) -> None:
    both, left_tag, right_tag, late_tag = Association(backend), 0x4F29A4B4, 0x544F1A37, 0x625C0C2E
    assert [
        both.left(0, sctp_init(left_tag)),
        both.right(0, sctp_init(right_tag)),
        both.left(right_tag, sctp_init_ack(left_tag)),
        both.right(left_tag, sctp_init_ack(late_tag)),
        both.right(left_tag, sctp_cookie_echo()),
        both.left(right_tag, sctp_cookie_ack()),
        both.left(right_tag, sctp_data(b"left")),
        both.right(left_tag, sctp_data(b"right")),
    ] == [
        "new original CLOSED",
        "established reply CLOSED",
        "established original CLOSED",
        "invalid - CLOSED vtag",
        "established reply CLOSED",
        "established original CLOSED",
        "established original CLOSED",
        "established reply CLOSED",
    ]


# ------------------------------------------------------------------------- UDP from two threads


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_two_threads_that_insert_the_same_tuple_share_one_connection(
    backend: str, version: int, mirrored: bool
) -> None:
    # A tracker is for one thread at a time; the lock is what its user owes it. Whoever comes
    # first, both packets are counted, in one connection, and none is lost.
    rounds, pairs = 200, []
    for number in range(rounds):
        there = ip(udp(b"ask", sport=10_000 + number, **ends(version)), UDP, version)
        reverse = ends(version, reply=True)
        answer = udp(b"ask", sport=53, dport=10_000 + number, **reverse)
        pairs.append((there, ip(answer, UDP, version, reply=True) if mirrored else there))
    bench, lock, barrier = Bench(backend, check=False), threading.Lock(), threading.Barrier(2)
    classes: list[list[str]] = [[], []]

    def insert(thread: int) -> None:
        for pair in pairs:
            barrier.wait()
            with lock:
                classes[thread].append(bench.push(pair[thread]).ct_class)

    threads = [threading.Thread(target=insert, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.tracker.check()
    rows = bench.open_rows
    assert len(rows) == rounds
    assert {row.packets_orig + row.packets_reply for row in rows} == {2}
    assert {row.reply_seen for row in rows} == {mirrored}
    seen = [sorted(both) for both in zip(*classes, strict=True)]
    assert seen == [["established", "new"] if mirrored else ["new", "new"]] * rounds
    assert bench.tracker.counters["insert_failed"] == 0


# ---------------------------------------------------------------------------------------- zones


def test_the_same_tuple_in_many_zones(backend: str) -> None:
    bench, talk = Bench(backend, check=False), talk_of()
    syn, synack = talk.client("S"), talk.server("SA")
    zones = [0, *range(1, ZONES - 1), (1 << 56) - 1]
    ids = [bench.push(syn, zone=zone).connection for zone in zones]
    assert len(set(ids)) == ZONES
    for zone in zones[::7]:
        assert told(bench.push(synack, zone=zone)) == "established reply SYN_RECV"
    bench.tracker.check()
    rows = bench.open_rows
    assert [row.zone for row in rows] == zones
    assert [row.state for row in rows[::7]] == ["SYN_RECV"] * len(zones[::7])
    assert {row.state for number, row in enumerate(rows) if number % 7} == {"SYN_SENT"}


def test_the_table_can_be_read_zone_by_zone(backend: str) -> None:
    bench = Bench(backend)
    for zone in (5, 6):
        for port in (1, 2, 3):
            talk = talk_of(sport=port)
            bench.push(talk.client("S"), zone=zone)
    by_zone = {
        zone: [row.sport for row in bench.open_rows if row.zone == zone] for zone in (0, 5, 6)
    }
    assert by_zone == {0: [], 5: [1, 2, 3], 6: [1, 2, 3]}


@pytest.mark.parametrize("zone", [-1, 1 << 56, 1 << 64])
def test_a_zone_that_cannot_be(backend: str, zone: int) -> None:
    bench = Bench(backend)
    with pytest.raises(ValueError, match="zone"):
        bench.push(talk_of().client("S"), zone=zone)
    assert bench.open_rows == []


def test_fragments_of_different_zones_never_mix(backend: str) -> None:
    bench = Bench(backend)
    whole = ip(udp(pattern(64), **ends(4)), UDP, id=7)
    first, last = fragment(whole, [40])
    assert bench.push(first, zone=1).ct_class == "held"
    assert bench.push(last, zone=2).ct_class == "held"
    assert told(bench.push(last, zone=1)) == "new original -"
    assert [row.zone for row in bench.open_rows] == [1]


# ------------------------------------------------------------------------------------ fragments


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_fragments_in_any_order_are_one_packet_of_the_connection(
    backend: str, version: int, order: Sequence[int]
) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    whole = talk.client("PA", pattern(120))
    pieces = fragment(whole, [40, 40, 40])
    verdicts = [bench.push(pieces[number]) for number in order]
    assert [told(verdict) for verdict in verdicts] == [
        *["held - -"] * 3,
        "established original ESTABLISHED",
    ]
    row = bench.only
    assert (row.packets_orig, row.fragments) == (3, 1)
    bare = 40 if version == 4 else 60
    assert row.bytes_orig == 2 * bare + len(whole)
    assert told(bench.push(talk.server("A"))) == "established reply ESTABLISHED"
    seen = bench.tracker.fragments
    assert (seen["seen"], seen["complete"], seen["incomplete"]) == (4, 1, 0)
