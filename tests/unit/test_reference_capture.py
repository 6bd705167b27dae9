"""Record framing of the reference: what is read from bytes written by hand or by the builders."""

from __future__ import annotations

import doctest
import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragtrack.errors import CaptureError
from fragtrack.reference.capture import Input
from fragtrack.reference.record import NO_PACKET, PCAP_HEADER, PCAP_RECORD
from fragtrack.testing import Pcapng, pcap, pcap_header, pcap_record
from tests.reading import damage, hexed, packets, read_all

BILLION = 1_000_000_000
TOO_SHORT = "block of type {} is {} bytes long, must be at least {}"


@pytest.mark.parametrize("name", ["record", "pcapng", "link"])
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"fragtrack.reference.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


# ------------------------------------------------------------------------------- what it is


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty file"),
        (b"\xd4", "not a capture: cut off record: 1 of 24 bytes"),
        (b"\x0a\x0d\x0d", "not a capture: cut off record: 3 of 24 bytes"),
        (b"Not a capture at all", "not a capture: starts with bytes 4e 6f 74 20"),
        (b"\x1f\x8b\x08\x00" + bytes(30), "not a capture: starts with bytes 1f 8b 08 00"),
        (pcap_header()[:23], "not a capture: cut off record: 23 of 24 bytes"),
        (b"\x0a\x0d\x0d\x0a", "not a capture: cut off record: 4 of 12 bytes"),
        (Pcapng().section().data[:27], "not a capture: cut off record: 27 of 28 bytes"),
        (
            Pcapng().section(version=(2, 7)).data,
            "not a capture: section of version 2.7, known is 1.0",
        ),
        (
            Pcapng().section().data[:8] + b"\xff" * 20,
            "not a capture: section header with byte-order magic ff ff ff ff",
        ),
        (
            hexed("0a0d0d0a 18000000 4d3c2b1a 01000000 ffffffff 18000000"),
            "not a capture: block of type 168627466 is 24 bytes long, must be at least 28",
        ),
    ],
)
def test_not_a_capture(data: bytes, why: str) -> None:
    with pytest.raises(CaptureError) as raised:
        read_all(data)
    assert (raised.value.file, raised.value.offset, raised.value.why) == ("file", 0, why)


@pytest.mark.parametrize("whole", [pcap_header(), Pcapng().section().data])
def test_the_header_may_come_in_pieces(whole: bytes) -> None:
    for size in range(len(whole)):
        assert read_all(whole[:size], final=False)[0] == []
    assert len(read_all(whole, final=False)[0]) == 1


# --------------------------------------------------------------------------------------- pcap


def test_pcap_little_endian_by_hand() -> None:
    data = hexed(
        "d4c3b2a1 0200 0400 00000000 00000000 ffff0000 71000000"
        "01000000 02000000 03000000 40000000 aabbcc"
    )
    header, record = read_all(data)[0]
    assert header.kind == PCAP_HEADER
    assert header.link == NO_PACKET
    assert record.kind == PCAP_RECORD
    assert (record.link, record.time, record.captured, record.wire) == (113, BILLION + 2000, 3, 64)
    assert (record.head, record.frame) == (16, hexed("aabbcc"))


def test_pcap_big_endian_nanoseconds_by_hand() -> None:
    data = hexed(
        "a1b23c4d 0002 0004 00000000 00000000 0000ffff 00000001"
        "00000001 00000002 00000001 00000001 aa"
    )
    assert packets(data)[0].time == BILLION + 2


def test_modified_pcap_by_hand() -> None:
    data = hexed(
        "34cdb2a1 0200 0400 00000000 00000000 ffff0000 01000000"
        "01000000 02000000 01000000 01000000 0500 0000 0008 00 00 aa"
    )
    (record,) = packets(data)
    assert (record.head, record.frame, record.time) == (24, b"\xaa", BILLION + 2000)


def test_bits_above_the_link_type_are_ignored() -> None:
    assert packets(pcap([(0, b"a")], link=0xF400_0001))[0].link == 1


def test_times_are_unsigned_and_large_fractions_are_added() -> None:
    head = pcap_header()
    record = pcap_record(b"", seconds=0xFFFF_FFFF, fraction=0xFFFF_FFFF)
    assert packets(head + record)[0].time == 0xFFFF_FFFF * (BILLION + 1000)


def test_pcap_record_larger_than_believed() -> None:
    head = pcap_header(snaplen=65535)
    good = pcap_record(b"abc")
    assert len(packets(head + pcap_record(bytes(262144)))) == 1
    assert damage(head + good + pcap_record(b"", captured=262145)) == (
        24 + 19,
        "record says 262145 bytes were captured, at most 262144 are possible",
    )
    generous = pcap_header(snaplen=300_000)
    assert len(packets(generous + pcap_record(bytes(300_000)))) == 1
    assert damage(generous + pcap_record(b"", captured=300_001)) == (
        24,
        "record says 300001 bytes were captured, at most 300000 are possible",
    )


def test_pcap_cut_off() -> None:
    data = pcap([(0, b"abc"), (1, b"defg")])
    for size in range(43, len(data)):
        records, source = read_all(data[:size])
        assert len(records) == 2
        needs = 20 if size >= 59 else 16
        why = f"cut off record: {size - 43} of {needs} bytes"
        assert source.damage == (None if size == 43 else (43, why))
        assert read_all(data[:size], final=False)[1].damage is None
    assert damage(data) is None


def test_nothing_is_read_behind_damage() -> None:
    data = pcap_header() + pcap_record(b"", captured=1 << 30) + pcap_record(b"fine")
    source = Input("file")
    view = memoryview(data)
    assert source.read(view, 0, final=True) is not None
    assert source.read(view[24:], 24, final=True) is None
    assert source.damage is not None
    assert source.consumed == 24


# --------------------------------------------------------------------------------------- laws


@given(st.binary(max_size=200), st.sampled_from(["pcap", "pcapng", "none"]))
def test_any_bytes_are_read_or_refused(data: bytes, start: str) -> None:
    if start == "pcap":
        data = pcap_header() + data
    elif start == "pcapng":
        data = Pcapng().section().interface().data + data
    try:
        records, source = read_all(data)
    except CaptureError:
        return
    consumed = sum(len(record.data) for record in records)
    assert b"".join(record.data for record in records) == data[:consumed]
    assert consumed == source.consumed
    assert consumed == len(data) or source.damage is not None
    for record in records:
        assert record.head + record.captured <= len(record.data)
