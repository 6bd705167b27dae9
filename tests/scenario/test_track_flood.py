"""What a tracker does when there is too much, too little, or nonsense.

Floods of new connections against a full table; buckets that an attacker would fill; sequence
numbers that wrap; clocks that jump; captures with gaps, or with one direction only.
"""

from __future__ import annotations

import random
import resource
import struct
from typing import TYPE_CHECKING

import pytest

from fragtrack.reference.siphash import siphash13
from fragtrack.testing import Talk
from tests.tracking import SECOND, START, TCP, VERSIONS, Bench, talk_of, told

if TYPE_CHECKING:
    from collections.abc import Iterator

MASK = (1 << 64) - 1
BUCKETS_TRIED = 8
CHAIN = 64
ASSURED = 10
MIB = 1 << 20


# ---------------------------------------------------------------- a model of the full table


class Model:
    """Which connections a table of some size ends and refuses, after the documents alone.

    Time stands still here, so nothing runs out.
    """

    def __init__(self, most: int, hash_key: int = 0) -> None:
        self.most = most
        self.bits = max(10, (most - 1).bit_length())
        self.secret = [siphash13(hash_key, [word]) for word in range(7)]
        self.buckets: dict[int, dict[int, bool]] = {}
        self.created = self.open = 0

    def bucket(self, source: int, target: int, sport: int, dport: int) -> int:
        """Hash two IPv4 endpoints of TCP: multilinear, over the lower endpoint and the upper."""
        lower, upper = sorted([(source, sport), (target, dport)])
        ports = lower[1] << 48 | upper[1] << 32 | TCP
        total = self.secret[0]
        for index, word in enumerate((lower[0] << 32 | upper[0], ports, 0)):
            total += self.secret[2 * index + 1] * (word & 0xFFFF_FFFF)
            total += self.secret[2 * index + 2] * (word >> 32)
        return (total & MASK) >> 64 - self.bits

    def insert(self, bucket: int, *, assured: bool = False) -> tuple[str | None, list[int]]:
        """Give why a connection is refused, if it is, and which end for it."""
        ended: list[int] = []
        if self.open == self.most:
            for step in range(BUCKETS_TRIED):
                tried = self.buckets.get(bucket + step & (1 << self.bits) - 1, {})
                ended = [number for number, kept in tried.items() if not kept]
                if ended:
                    break
            else:
                return "table_full", []
            for number in ended:
                del tried[number]
            self.open -= len(ended)
        held = self.buckets.setdefault(bucket, {})
        if len(held) >= CHAIN:
            return "chain", ended
        self.created += 1
        self.open += 1
        held[self.created] = assured
        return None, ended


def syns(first: int, count: int) -> Iterator[tuple[bytes, tuple[int, int, int, int]]]:
    """Make SYNs of that many sources, with the endpoints; their checksums are not right."""
    packet = bytearray(Talk("10.0.0.0", "192.0.2.80", dport=80).client("S"))
    target = 0xC000_0250
    for number in range(first, first + count):
        source, port = 0x0A00_0000 + number // 1000, 1024 + number % 1000
        struct.pack_into(">I", packet, 12, source)
        struct.pack_into(">H", packet, 20, port)
        yield bytes(packet), (source, target, port, 80)


# ----------------------------------------------------------------------------------- SYN floods


@pytest.mark.slow
def test_a_syn_flood_ends_what_the_model_says_and_nothing_assured(backend: str) -> None:
    most, count = (1000, 20_000) if backend == "reference" else (65_536, 1_000_000)
    bench = Bench(backend, check=False, max=most, checksum="ignore")
    model = Model(most)
    kept = [Talk("10.255.0.1", "192.0.2.80", sport=7000 + number) for number in range(ASSURED)]
    for talk in kept:
        bench.open(talk)
        model.insert(model.bucket(0x0AFF_0001, 0xC000_0250, talk.client.port, 80), assured=True)
    refused, dropped, memory, used = 0, 0, 0, 0
    expected: list[int] = []
    for number, (packet, ends) in enumerate(syns(0, count)):
        verdict = bench.tracker.push(packet, bench.now, 0)
        reason, gone = model.insert(model.bucket(*ends))
        assert verdict.reason == reason
        refused += reason is not None
        expected += gone
        if number % 10_000 == 9_999:
            assert len(bench.tracker.connections()) == model.open <= most
            assert [row.id for row in bench.ended()] == expected
            dropped += len(expected)
            expected.clear()
            bench.tracker.take_events()
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            if number < count // 2:
                memory = used
    assert used - memory < 64 * MIB  # what half of the flood needs is what it needs
    bench.tracker.check()
    counters = bench.tracker.counters
    assert counters["insert"] == ASSURED + count - refused
    assert counters["early_drop"] == dropped
    assert counters["drop"] == refused
    for talk in kept:
        assert told(bench.push(talk.client("PA", b"x"))) == "established original ESTABLISHED"


@pytest.mark.parametrize("most", [1, 2, 7, 100])
def test_a_small_table_never_holds_more(backend: str, most: int) -> None:
    bench, model = Bench(backend, max=most, checksum="ignore"), Model(most)
    for packet, ends in syns(0, 300):
        reason, _ = model.insert(model.bucket(*ends))
        assert bench.push(packet).reason == reason
        assert len(bench.open_rows) == model.open <= most


def test_a_table_full_of_assured_connections_refuses_the_new_one(backend: str) -> None:
    bench = Bench(backend, max=20)
    for number in range(20):
        bench.open(talk_of(sport=100 + number))
    verdict = bench.push(talk_of(sport=999).client("S"))
    assert told(verdict) == "invalid - - table_full"
    assert (verdict.got, verdict.bound) == (20, 20)
    assert "the table holds 20 connections, 20 are allowed" in (verdict.detail or "")
    counters = bench.tracker.counters
    assert (counters["drop"], counters["early_drop"], counters["insert"]) == (1, 0, 20)
    assert len(bench.open_rows) == 20


def test_the_next_sweep_makes_room_among_the_closing(backend: str) -> None:
    bench = Bench(backend, max=100)
    talks = [talk_of(sport=100 + number) for number in range(100)]
    for talk in talks:
        bench.open(talk)
    for talk in talks[::9]:
        bench.push_all(talk.goodbye())  # assured, and in TIME_WAIT
    bench.wait(0.5)
    newcomer = talk_of(sport=999)
    assert bench.push(newcomer.client("S")).reason == "table_full"
    assert len(bench.open_rows) == 100
    bench.advance(1)
    # Those that close end in the order of their creation, until no more than 95 % are left.
    assert [(row.sport, row.end) for row in bench.ended()] == [
        (100 + 9 * number, "early_drop") for number in range(5)
    ]
    assert bench.tracker.counters["early_drop"] == 5
    assert told(bench.push(newcomer.client("S"))) == "new original SYN_SENT"
    bench.advance(1)  # it was for once
    assert bench.ended() == []


def test_where_nothing_could_go_the_sweep_finds_what_closes_later(backend: str) -> None:
    bench = Bench(backend, max=100)
    talks = [talk_of(sport=100 + number) for number in range(100)]
    for talk in talks:
        bench.open(talk)
    newcomer = talk_of(sport=999)
    for _ in range(3):  # each sweep looks for room, and there is none
        assert bench.push(newcomer.client("S")).reason == "table_full"
        bench.advance(1)
        assert bench.ended() == []
    bench.push_all(talks[50].goodbye())
    assert bench.push(newcomer.client("S")).reason == "table_full"
    bench.advance(1)
    assert [(row.sport, row.end) for row in bench.ended()] == [(150, "early_drop")]
    assert told(bench.push(newcomer.client("S"))) == "new original SYN_SENT"
    # The newcomer is not assured: with the table full again, it is what may go.
    assert bench.push(talk_of(sport=998).client("S")).reason in {None, "table_full"}
    bench.advance(1)
    assert [(row.sport, row.end) for row in bench.ended()] == [(999, "early_drop")]


def test_what_ran_out_is_not_dropped_but_its_room_is_there_for_the_next(backend: str) -> None:
    # As in the kernel: the search finds only one that is over, removes it, and drops nothing; so
    # this packet is refused all the same.
    over, newcomer = colliding(2, 0)
    bench = Bench(backend, max=10, tcp_timeout_syn_sent=0.4)
    bench.push(over.client("S"))
    for number in range(9):
        bench.open(talk_of(sport=100 + number))
    bench.wait(0.4)  # within the same second: no sweep in between
    assert told(bench.push(newcomer.client("S"))) == "invalid - - table_full"
    assert [(row.sport, row.end) for row in bench.ended()] == [(over.client.port, "timeout")]
    assert bench.tracker.counters["early_drop"] == 0
    assert told(bench.push(newcomer.client("S"))) == "new original SYN_SENT"


# --------------------------------------------------------------------------------------- chains


def colliding(count: int, hash_key: int) -> list[Talk]:
    """Find connections of one bucket, as an attacker who knows the key would."""
    model = Model(1024, hash_key)
    found: dict[int, list[Talk]] = {}
    for dport in (80, 81, 82):
        for sport in range(1024, 65_536):
            bucket = model.bucket(0xC000_0201, 0xC633_6402, sport, dport)
            same = found.setdefault(bucket, [])
            same.append(talk_of(sport=sport, dport=dport))
            if len(same) == count:
                return same
    raise AssertionError("no bucket has so many")


@pytest.mark.parametrize("hash_key", [0, 0x0F0E_0D0C_0B0A_0908_0706_0504_0302_0100])
def test_a_bucket_holds_64_connections_and_no_more(backend: str, hash_key: int) -> None:
    talks = colliding(66, hash_key)
    bench = Bench(backend, max=1024, hash_key=hash_key)
    for talk in talks[:64]:
        assert told(bench.push(talk.client("S"))) == "new original SYN_SENT"
    for talk in talks[64:]:
        verdict = bench.push(talk.client("S"))
        assert told(verdict) == "invalid - - chain"
        assert (verdict.got, verdict.bound) == (64, 64)
        assert "64 connections in the bucket, 64 are allowed" in (verdict.detail or "")
    counters = bench.tracker.counters
    assert (counters["insert"], counters["insert_failed"], counters["drop"]) == (64, 2, 2)
    assert len(bench.open_rows) == 64
    assert bench.push(talks[0].client("R")).reason == "reset"
    assert told(bench.push(talks[64].client("S"))) == "new original SYN_SENT"
    assert bench.push(talks[65].client("S")).reason == "chain"


def test_another_key_spreads_what_collided(backend: str) -> None:
    bench = Bench(backend, max=1024, hash_key=1)
    for talk in colliding(66, 0):
        assert told(bench.push(talk.client("S"))) == "new original SYN_SENT"


# ------------------------------------------------------------------------------ sequence numbers


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("before", [0, 1, 2, 700, 70_000])
def test_sequence_numbers_may_wrap(backend: str, version: int, before: int) -> None:
    isn = (1 << 32) - 1 - before
    bench, talk = Bench(backend), talk_of(version, client_isn=isn, server_isn=isn)
    bench.open(talk)
    for number in range(150):
        there, back = talk.client("PA", bytes(1400)), talk.server("PA", bytes(700))
        assert told(bench.push(there)) == "established original ESTABLISHED", number
        assert told(bench.push(back)) == "established reply ESTABLISHED", number
    bench.tell(
        (talk.client("PA", bytes(1400), seq=1), "established original ESTABLISHED seq_below"),
        (talk.client("R", seq=1), "invalid - ESTABLISHED rst_below"),
        (talk.server("A", ack=1), "established reply ESTABLISHED ack_below"),
        (talk.client("A", ack=talk.server.next + 1), "invalid - ESTABLISHED ack_above"),
        (talk.client("FA"), "established original FIN_WAIT"),
        (talk.server("FA"), "established reply LAST_ACK"),
        (talk.client("A"), "established original TIME_WAIT"),
    )
    assert bench.only.invalid == 2


# ---------------------------------------------------------------------------------------- clocks


def test_jumping_clocks_neither_split_nor_crash(backend: str) -> None:
    jump = random.Random(7)
    bench, talks = Bench(backend), [talk_of(sport=100 + number) for number in range(20)]
    for talk in talks:
        bench.open(talk)
    for _ in range(2000):
        bench.now = START + jump.choice([-1, 1]) * jump.randrange(100 * SECOND)
        talk = jump.choice(talks)
        verdict = bench.push(talk.client("PA", b"tick"))
        assert told(verdict) == "established original ESTABLISHED"
        verdict = bench.push(talk.server("A"))
        assert told(verdict) == "established reply ESTABLISHED"
    assert len(bench.open_rows) == 20
    assert bench.ended() == []


def test_a_step_back_does_not_bring_back_what_ran_out(backend: str) -> None:
    bench, talk = Bench(backend), talk_of()
    first = bench.push(talk.client("S"))
    bench.advance(120)
    bench.wait(-119)
    verdict = bench.push(talk.server("SA"))
    assert told(verdict) == "invalid - - no_entry"
    second = bench.push(talk.client("S"))
    assert (second.connection, second.timeout) == ((first.connection or 0) + 1, 120)
    bench.wait(119.5)  # no time passes: the highest time seen is what counts
    assert bench.push(talk.client("S")).timeout == 119


@pytest.mark.parametrize("far", [1, (1 << 63) - 1 - START])
def test_a_jump_ahead_ends_everything_once(backend: str, far: int) -> None:
    bench = Bench(backend, check=False)
    talks = [talk_of(sport=100 + number) for number in range(50)]
    bench.push_all([talk.client("S") for talk in talks])
    bench.now += max(far, 10 * 86_400 * SECOND)
    bench.push(talk_of(sport=99).client("S"))
    bench.tracker.check()
    ended = bench.ended()
    assert [row.sport for row in ended] == list(range(100, 150))
    assert {row.end for row in ended} == {"timeout"}
    destroyed = [event for event in bench.tracker.take_events() if event.kind == "destroy"]
    assert {event.time for event in destroyed} == {START + 120 * SECOND}
    assert len(bench.open_rows) == 1


# --------------------------------------------------------------------------- gaps, one direction


@pytest.mark.parametrize("tolerant", [False, True])
@pytest.mark.parametrize("lost", ["client", "server", "both"])
def test_a_gap_in_the_capture(backend: str, lost: str, tolerant: bool) -> None:
    bench, talk = Bench(backend, gap_tolerant=tolerant), talk_of()
    bench.open(talk)
    for _ in range(100):
        if lost != "server":
            talk.client("PA", bytes(1460))
        if lost != "client":
            talk.server("PA", bytes(1460))
    story = []
    for _ in range(20):
        story += [talk.client("PA", bytes(100)), talk.server("PA", bytes(100))]
    verdicts = bench.push_all([*story, *talk.goodbye()])
    reasons = [verdict.reason for verdict in verdicts]
    if not tolerant:
        assert {verdict.ct_class for verdict in verdicts[-3:]} == {"invalid"}
        assert bench.only.invalid >= 3
        assert {"seq_above", "ack_above"} >= set(reasons) - {None, "overshoot", "invalid_noted"}
        return
    assert {verdict.ct_class for verdict in verdicts} == {"established"}
    assert reasons[0] == "resynchronized"
    assert 1 <= reasons.count("resynchronized") <= 2
    assert not any(reasons[2:])
    assert (verdicts[-1].state, bench.only.invalid) == ("TIME_WAIT", 0)


def test_a_reset_behind_a_gap_is_no_reason_to_resynchronize(backend: str) -> None:
    bench, talk = Bench(backend, gap_tolerant=True), talk_of()
    bench.open(talk)
    bench.tell((talk.client("R", seq=500_000), "invalid - ESTABLISHED seq_above"))


def test_a_fin_behind_a_gap_closes(backend: str) -> None:
    for tolerant, expected in (
        (False, "invalid - ESTABLISHED seq_above"),
        (True, "established original FIN_WAIT resynchronized"),
    ):
        bench, talk = Bench(backend, gap_tolerant=tolerant), talk_of()
        bench.open(talk)
        bench.tell((talk.client("FA", seq=500_000), expected))


@pytest.mark.parametrize("version", VERSIONS)
def test_many_one_sided_connections_are_one_entry_each(backend: str, version: int) -> None:
    bench = Bench(backend, check=False, gap_tolerant=True)
    talks = [talk_of(version, sport=100 + number) for number in range(200)]
    for number, talk in enumerate(talks):
        syn, synack, ack = talk.handshake()
        data = [talk.client("PA", bytes(500)), talk.server("PA", bytes(800))]
        last = talk.goodbye()
        client = [syn, ack, data[0], talk.client("A"), last[0], last[2]]
        server = [data[1], talk.server("A"), last[1]]
        if number % 2:
            verdicts = bench.push_all(client)
            assert {verdict.ct_class for verdict in verdicts} == {"new"}
            assert verdicts[-1].state == "CLOSE_WAIT"
        else:
            assert told(bench.push(synack)) == "invalid - - no_entry"
            verdicts = bench.push_all(server)
            assert {verdict.ct_class for verdict in verdicts} == {"new"}
            assert verdicts[-1].state == "FIN_WAIT"
    bench.tracker.check()
    assert len(bench.open_rows) == len(talks)
