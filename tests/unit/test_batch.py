"""Batches: many packets with one call give what one call per packet gives."""

from __future__ import annotations

from array import array

import pytest

import fragtrack
from fragtrack import engine
from fragtrack.events import Reason
from fragtrack.testing import fragment, ipv4, ipv6, udp
from tests.backends import reassembler_class

KINDS = ("whole", "held", "complete", "dropped")


@pytest.fixture(autouse=True)
def use_backend(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = engine.load()._replace(name=backend, reassembler=reassembler_class(backend))
    monkeypatch.setattr(engine, "_loaded", [chosen])


def packets() -> list[bytes]:
    first = fragment(ipv4(udp(b"a" * 300), id=1), sizes=[100 // 8 * 8, 104])
    second = fragment(ipv6(udp(b"b" * 300)), sizes=[104])
    overlapping = [ipv4(b"x" * 24, id=3, offset=at, mf=True) for at in (0, 16)]
    return [
        ipv4(udp(b"plain"), id=9),
        first[2],
        second[0],
        first[0],
        first[0],
        *overlapping,
        second[1],
        first[1],
        b"",
    ]


def columns(parts: list[bytes]) -> tuple[bytes, array[int], array[int], array[int]]:
    offsets, end = array("Q"), 0
    for part in parts:
        offsets.append(end)
        end += len(part)
    lengths = array("Q", map(len, parts))
    return b"".join(parts), offsets, lengths, array("q", range(len(parts)))


def test_a_batch_is_what_single_pushes_are() -> None:
    parts = packets()
    one, many = fragtrack.Reassembler(), fragtrack.Reassembler()
    outcomes = [one.push(part, time) for time, part in enumerate(parts)]
    batch = many.push_batch(*columns(parts))
    assert [KINDS[kind] for kind in batch.kinds] == [outcome.kind for outcome in outcomes]
    assert [Reason(code).name if code else None for code in batch.reasons] == [
        outcome.reason for outcome in outcomes
    ]
    whole = [at for at, outcome in enumerate(outcomes) if outcome.kind == "complete"]
    assert batch.completed.tolist() == whole == [7, 8]
    assert len(batch) == 2
    assert [batch.packet(i) for i in range(2)] == [outcomes[at].packet for at in whole]
    with pytest.raises(IndexError):
        batch.packet(2)
    lost = [(gone.id, gone.reason, gone.frames) for gone in batch.given_up]
    assert lost == [(3, "overlap", (6, 7))]
    assert (many.counters, many.reasons, many.queues) == (one.counters, one.reasons, one.queues)


def test_slices_lie_where_the_batch_says() -> None:
    parts = packets()
    buffer, *rest = columns(parts)
    batch = fragtrack.Reassembler().push_batch(buffer, *rest)
    start = header = 0
    for i in range(len(batch)):
        packet = batch.headers[header : batch.header_ends[i]]
        header = batch.header_ends[i]
        for at in range(start, batch.slice_ends[i]):
            source = batch.side if batch.slice_sources[at] else buffer
            place = batch.slice_places[at]
            packet += source[place : place + batch.slice_lengths[at]]
        start = batch.slice_ends[i]
        assert packet == batch.packet(i)


def test_packets_lie_one_after_the_other() -> None:
    batch = fragtrack.Reassembler().push_batch(*columns(packets()))
    first, second = batch.packet_ends
    assert batch.packets[:first] == batch.packet(0)
    assert batch.packets[first:second] == batch.packet(1)
    assert second == len(batch.packets)
    assert batch.packets is batch.packets


def test_columns_are_typed_and_cannot_be_written() -> None:
    batch = fragtrack.Reassembler().push_batch(*columns(packets()))
    formats = {
        "kinds": "B",
        "reasons": "B",
        "completed": "I",
        "header_ends": "Q",
        "slice_places": "Q",
        "slice_lengths": "I",
        "slice_sources": "B",
        "slice_ends": "Q",
        "packet_ends": "Q",
    }
    for name, form in formats.items():
        column = getattr(batch, name)
        assert (column.format, column.readonly) == (form, True)
    names = {name for name in dir(batch) if not name.startswith("_")}
    assert names == {*formats, "headers", "side", "packets", "packet", "given_up"}
    assert repr(batch) == "Batch(10 packets, 2 whole datagrams)"


def test_a_batch_without_whole_datagrams_has_empty_columns() -> None:
    batch = fragtrack.Reassembler().push_batch(*columns(packets()[:1]))
    assert (len(batch), batch.packets, batch.headers, batch.side) == (0, b"", b"", b"")
    assert list(batch.packet_ends) == list(batch.slice_ends) == []


def test_fragments_may_come_in_different_batches() -> None:
    pieces = fragment(ipv4(udp(b"a" * 300), id=1), sizes=[104])
    r = fragtrack.Reassembler()
    assert len(r.push_batch(*columns(pieces[:1]), domain=5)) == 0
    assert len(r.push_batch(*columns(pieces[1:]), domain=6)) == 0
    batch = r.push_batch(*columns(pieces[1:]), domain=5)
    assert batch.packet(0) == ipv4(udp(b"a" * 300), id=1)


def test_columns_that_cannot_be_are_refused_before_anything_is_pushed() -> None:
    r = fragtrack.Reassembler()
    buffer, offsets, lengths, times = columns(packets())
    with pytest.raises(ValueError, match="must be equally long, not 10, 9 and 10"):
        r.push_batch(buffer, offsets, lengths[:-1], times)
    with pytest.raises(ValueError, match="packet 9 lies outside the buffer of"):
        r.push_batch(buffer, offsets, array("Q", [*lengths[:-1], 1]), times)
    assert r.counters["ReasmReqds"] == 0
