"""Blocks, options and times of pcapng, read by the reference from bytes written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragtrack.reference.pcapng import (
    MICROSECONDS,
    PACKET_CODES,
    PcapngReader,
    Section,
    Units,
    encode_options,
    parse_options,
    reorder_options,
)
from fragtrack.reference.record import NO_PACKET
from fragtrack.testing import Option, Pcapng
from tests.reading import damage, hexed, packets, read_all

BILLION = 1_000_000_000
TOO_SHORT = "block of type {} is {} bytes long, must be at least {}"


# ------------------------------------------------------------------------------------- pcapng


def test_pcapng_by_hand() -> None:
    data = hexed(
        "0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000"
        "01000000 14000000 6500 0000 00000000 14000000"
        "06000000 24000000 00000000 01000000 02000000 02000000 09000000 45aa0000 24000000"
    )
    section, interface, packet = read_all(data)[0]
    assert (section.kind, interface.kind, packet.kind) == (0x0A0D0D0A, 1, 6)
    assert (packet.link, packet.captured, packet.wire) == (101, 2, 9)
    assert packet.time == ((1 << 32) + 2) * 1000
    assert packet.frame == hexed("45aa")


def test_pcapng_big_endian_by_hand() -> None:
    data = hexed(
        "0a0d0d0a 0000001c 1a2b3c4d 0001 0000 ffffffffffffffff 0000001c"
        "00000001 00000020 0001 0000 00000004 0009 0001 09000000 0000 0000 00000020"
        "00000003 00000014 0000000a 01020304 00000014"
        "00000002 00000024 0000 0007 00000000 00000005 00000001 00000001 ff000000 00000024"
        "00000003 00000010 00000000 00000010"
    )
    simple, obsolete, last = packets(data)
    assert (simple.captured, simple.wire, simple.time) == (4, 10, 0)
    assert (obsolete.frame, obsolete.time) == (b"\xff", 5)
    assert (last.captured, last.time) == (0, 5)


def test_every_section_has_its_own_byte_order_and_interfaces() -> None:
    file = Pcapng().section("little").interface(link=1).packet(b"a", time_ns=1000)
    file.section("big").interface(link=113, tsresol=9).packet(b"b", time_ns=7)
    file.section("little").packet(b"c")
    records, source = read_all(file.data)
    found = [record for record in records if record.link != NO_PACKET]
    assert [(record.link, record.time) for record in found] == [(1, 1000), (113, 7)]
    assert source.damage is None
    assert records[-1].damage == "packet of interface 0, but only 0 are described"


@pytest.mark.parametrize(
    ("file", "offset", "why"),
    [
        (
            Pcapng().section().block(0xBAD, b"", length=8),
            28,
            "block says it is 8 bytes long, must be a multiple of 4 from 12 up",
        ),
        (
            Pcapng().section().block(0xBAD, b"", length=14),
            28,
            "block says it is 14 bytes long, must be a multiple of 4 from 12 up",
        ),
        (
            Pcapng().section().block(0xBAD, b"", length=(16 << 20) + 4),
            28,
            "block says it is 16777220 bytes long, at most 16777216 are read",
        ),
        (
            Pcapng().section().block(0xBAD, b"abcd", trailer=20),
            28,
            "block says it is 16 bytes long at its start and 20 at its end",
        ),
        (Pcapng().section().section(version=(3, 1)), 28, "section of version 3.1, known is 1.0"),
        (
            Pcapng().section().block(0x0A0D0D0A, b"\xff" * 16),
            28,
            "section header with byte-order magic ff ff ff ff",
        ),
        (
            Pcapng().section().block(0x0A0D0D0A, hexed("4d3c2b1a 0100 0000 ffffffff")),
            28,
            "block of type 168627466 is 24 bytes long, must be at least 28",
        ),
    ],
)
def test_damage_that_ends_the_reading(file: Pcapng, offset: int, why: str) -> None:
    records, source = read_all(file.interface().packet(b"lost").data)
    assert source.damage == (offset, why)
    assert len(records) == 1


@pytest.mark.parametrize("size", [1, 7, 8, 11, 12, 35])
def test_pcapng_cut_off(size: int) -> None:
    file = Pcapng().section().interface().packet(b"abcd", options=[])
    start = 28 + 20
    data = file.data[: start + size]
    needs = 8 if size < 8 else 36
    assert damage(data) == (start, f"cut off record: {size} of {needs} bytes")
    assert read_all(data, final=False)[1].damage is None


def test_a_block_of_16_mib_is_read() -> None:
    file = Pcapng().section().block(0xBAD, bytes((16 << 20) - 12))
    assert damage(file.data) is None


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda f: f.packet(b"x", interface=7), "packet of interface 7, but only 1 are described"),
        (
            lambda f: f.packet(b"abc", captured=5),
            "packet says 5 bytes were captured, its block has 4",
        ),
        (lambda f: f.block(6, bytes(16)), TOO_SHORT.format(6, 28, 32)),
        (lambda f: f.block(2, bytes(16)), TOO_SHORT.format(2, 28, 32)),
        (lambda f: f.block(3, b""), TOO_SHORT.format(3, 12, 16)),
        (lambda f: f.block(1, b"abcd"), TOO_SHORT.format(1, 16, 20)),
        (lambda f: f.simple(b"abcd", wire=5), "packet says 5 bytes were captured, its block has 4"),
    ],
)
def test_damage_to_one_packet(spoil: object, why: str) -> None:
    assert callable(spoil)
    file = Pcapng().section().interface().packet(b"before")
    spoil(file)
    file.packet(b"behind")
    records, source = read_all(file.data)
    assert source.damage is None
    assert [record.damage for record in records] == [None, None, None, why, None]
    assert [record.frame for record in records if record.link != NO_PACKET] == [
        b"before",
        b"behind",
    ]


def test_a_spoiled_description_takes_its_number() -> None:
    file = Pcapng().section().block(1, b"abcd").interface(link=113, tsresol=9)
    file.packet(b"lost").packet(b"found", interface=1, ticks=7)
    records, source = read_all(file.data)
    assert [record.damage is None for record in records] == [True, False, True, True, True]
    assert [(record.frame, record.time) for record in records if record.link == 113] == [
        (b"found", 7)
    ]
    assert source.damage is None


def test_interfaces_are_remembered_up_to_a_limit() -> None:
    reader = PcapngReader()
    reader.read(memoryview(Pcapng().section().data))
    block = Pcapng().section().interface().blocks[1]
    section = reader.section
    assert section is not None
    wide = Pcapng().section().interface(options=[Option(1, bytes(60_000))]).blocks[1]
    told = [section.remember(wide) for _ in range(280)]
    why = "more than 65536 interfaces in one section"
    assert told == [None] * 279 + [why]
    assert section.remember(block) == why  # small enough, but its number is no longer known
    narrow = Section("<")
    assert [narrow.remember(block) for _ in range(65_537)] == [None] * 65_536 + [why]


def test_snaplen_cuts_simple_packets() -> None:
    file = Pcapng().section().interface(snaplen=3).simple(b"abcd", wire=100)
    assert packets(file.data)[0].frame == b"abc"
    file = Pcapng().section().interface(snaplen=0).simple(b"abcd")
    assert packets(file.data)[0].frame == b"abcd"


@pytest.mark.parametrize(
    ("tsresol", "tsoffset", "ticks", "time"),
    [
        (None, None, 5, 5000),
        (0, None, 5, 5 * BILLION),
        (3, None, 5, 5_000_000),
        (9, None, 5, 5),
        (12, None, 5999, 5),
        (127, None, 2**64 - 1, 0),
        (0x80, None, 5, 5 * BILLION),
        (0x81, None, 3, 1_500_000_000),
        (0xA0, None, 1 << 31, 500_000_000),
        (0xFF, None, 2**64 - 1, 0),
        (6, 10, 1, 10 * BILLION + 1000),
        (6, -10, 1, -10 * BILLION + 1000),
        (0, None, 2**64 - 1, 2**63 - 1),
        (0, -(2**63), 0, -(2**63)),
    ],
)
def test_time_units(tsresol: int | None, tsoffset: int | None, ticks: int, time: int) -> None:
    file = Pcapng().section("big").interface(tsresol=tsresol, tsoffset=tsoffset)
    assert packets(file.packet(b"", ticks=ticks).data)[0].time == time


def test_the_last_option_that_has_its_size_counts() -> None:
    options = [Option(9, b"\x03"), Option(9, b"\x09"), Option(14, b"1234"), Option(9, b"xy")]
    file = Pcapng().section().interface(options=options).packet(b"", ticks=5)
    assert packets(file.data)[0].time == 5


def test_options_behind_the_end_do_not_count() -> None:
    options = [Option(0, b""), Option(9, b"\x09")]
    file = Pcapng().section().interface(options=options).packet(b"", ticks=5)
    assert packets(file.data)[0].time == 5000


# ------------------------------------------------------------------------------------ options


def test_options_by_hand() -> None:
    data = hexed("0100 0300 61626300 0200 0400 01020304 0000 0000 0100 0000")
    assert parse_options(data, "<") == [(1, b"abc"), (2, hexed("01020304"))]
    assert encode_options(parse_options(data, "<"), ">") == hexed(
        "0001 0003 61626300 0002 0004 01020304 0000 0000"
    )
    assert encode_options([], "<") == b""


def test_an_option_that_does_not_fit_ends_the_list() -> None:
    assert parse_options(hexed("0100 0100 61000000 0200 0500 01020304"), "<") == [(1, b"a")]


def test_numbers_are_turned_round() -> None:
    options = [
        (1, b"text"),
        (2, hexed("01020304")),
        (2, hexed("010203")),
        (2, hexed("010203040506")),
        (4, hexed("0102030405060708")),
        (8, hexed("0102030405060708")),
        (2988, hexed("01020304aabb")),
        (2989, b"abc"),
    ]
    assert reorder_options(options, PACKET_CODES) == [
        (1, b"text"),
        (2, hexed("04030201")),
        (2, hexed("010203")),
        (2, hexed("040302010506")),
        (4, hexed("0807060504030201")),
        (8, hexed("0403020108070605")),
        (2988, hexed("04030201aabb")),
        (2989, b"abc"),
    ]


@given(st.lists(st.tuples(st.integers(1, 65535), st.binary(max_size=20))))
def test_options_come_back(options: list[tuple[int, bytes]]) -> None:
    for endian in "<>":
        data = encode_options(options, endian)  # type: ignore[arg-type]
        assert parse_options(data, endian) == options  # type: ignore[arg-type]
    twice = reorder_options(reorder_options(options, PACKET_CODES), PACKET_CODES)
    assert twice == options


# --------------------------------------------------------------------------------------- laws


@given(
    st.sampled_from([2, 10]),
    st.integers(0, 127),
    st.integers(-(2**40), 2**40),
    st.integers(0, 2**64 - 1),
)
def test_units_round_down(base: int, exponent: int, offset: int, ticks: int) -> None:
    units = Units(base, exponent, offset)  # type: ignore[arg-type]
    time = units.to_ns(ticks)
    assert -(2**63) <= time < 2**63
    assert 0 <= units.from_ns(time) < 2**64
    if not units.finer_than_microseconds and abs(time) < 2**62:
        assert units.from_ns(time) in (ticks, ticks - 1)


def test_microseconds_are_the_default() -> None:
    assert MICROSECONDS.to_ns(1) == 1000
    assert not MICROSECONDS.finer_than_microseconds
    assert Units(2, 20, 0).finer_than_microseconds
    assert not Units(2, 19, 0).finer_than_microseconds
    assert Units(10, 7, 0).finer_than_microseconds
