"""Packets of one pcapng section that are written into a later one: both backends."""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragtrack.reference.capture import Input
from fragtrack.reference.pcapng import Section, parse_options
from fragtrack.reference.record import NO_PACKET
from fragtrack.testing import (
    Option,
    Pcapng,
    comment,
    ethernet,
    ipv4,
    pattern,
    sll,
)
from tests.rewriting import (
    ARP,
    FIRST,
    LAST,
    ORDERS,
    SECOND,
    SECOND_PIECE,
    WHOLE,
    Run,
)

if TYPE_CHECKING:
    from collections.abc import Callable


# --------------------------------------------------------------------------- earlier sections


def test_held_from_an_earlier_section_same_byte_order(run: Run) -> None:
    run.output = "pcapng"
    named = [Option(2, b"eth7")]
    file = Pcapng().section().interface(link=113).interface(tsresol=9, options=named)
    file.packet(FIRST, time_ns=11, interface=1, options=[comment("held")])
    file.section().interface(link=101).packet(WHOLE, time_ns=1000)
    expected = Pcapng().section().interface(link=113).interface(tsresol=9, options=named)
    expected.section().interface(link=101).packet(WHOLE, time_ns=1000)
    expected.interface(tsresol=9, options=named)
    expected.packet(FIRST, ticks=11, interface=1, options=[comment("held")])
    assert run(file.data).output == expected.data


def test_interfaces_behind_an_added_one_move_up(run: Run) -> None:
    run.output = "pcapng"
    late = 40 * SECOND
    file = Pcapng().section().interface(tsresol=9).packet(FIRST, time_ns=1, wire=77)
    file.packet(SECOND_PIECE, time_ns=2)
    file.section().interface().packet(ARP, time_ns=late)
    file.interface(link=113).packet(sll(WHOLE), time_ns=late, interface=1)
    file.obsolete(sll(WHOLE), time_ns=late, interface=1).statistics(1).statistics(0)
    file.simple(ARP)
    expected = Pcapng().section().interface(tsresol=9).section().interface()
    expected.interface(tsresol=9)
    expected.packet(FIRST, ticks=1, interface=1, wire=77).packet(SECOND_PIECE, ticks=2, interface=1)
    expected.packet(ARP, time_ns=late, interface=0)
    expected.interface(link=113).packet(sll(WHOLE), time_ns=late, interface=2)
    expected.obsolete(sll(WHOLE), time_ns=late, interface=2).statistics(2).statistics(0)
    expected.simple(ARP)
    assert run(file.data).output == expected.data


def test_a_datagram_on_a_moved_interface(run: Run) -> None:
    run.output = "pcapng"
    late = 40 * SECOND
    file = Pcapng().section().interface(tsresol=9).packet(FIRST, time_ns=1)
    file.section().interface().packet(ARP, time_ns=late).interface()
    for frame in (FIRST, SECOND_PIECE, LAST):
        file.packet(frame, time_ns=late, interface=1)
    expected = Pcapng().section().interface(tsresol=9).section().interface()
    expected.interface(tsresol=9).packet(FIRST, ticks=1, interface=1)
    expected.packet(ARP, time_ns=late).interface()
    expected.packet(ethernet(WHOLE), time_ns=late, interface=2)
    assert run(file.data).output == expected.data


def test_held_from_a_section_of_the_other_byte_order(run: Run) -> None:
    run.output = "pcapng"

    def interface(endian: str) -> list[Option]:
        return [
            Option(2, b"eth0"),
            Option(8, struct.pack(f"{endian}Q", 10**9)),
            Option(4, b"\xc0\0\2\1\xff\xff\xff\0"),
            Option(2988, struct.pack(f"{endian}I", 32473) + b"data"),
        ]

    def packet(endian: str) -> list[Option]:
        return [
            comment("held"),
            Option(2, struct.pack(f"{endian}I", 0x01020304)),
            Option(3, b"\2abcd"),
            Option(4, struct.pack(f"{endian}Q", 3)),
            Option(6, b"odd"),
            Option(19372, struct.pack(f"{endian}I", 32473)),
        ]

    file = Pcapng().section("big").interface(tsresol=9, tsoffset=5, options=interface(">"))
    file.packet(FIRST + b"\0", ticks=11 << 32 | 12, wire=500, options=packet(">"))
    file.section("little").interface(link=101)
    expected = Pcapng().section("big")
    expected.interface(tsresol=9, tsoffset=5, options=interface(">"))
    expected.section("little").interface(link=101)
    expected.interface(tsresol=9, tsoffset=5, options=interface("<"))
    expected.packet(FIRST + b"\0", ticks=11 << 32 | 12, wire=500, interface=1, options=packet("<"))
    assert run(file.data).output == expected.data


def test_every_kind_of_packet_block_moves_to_a_section_of_the_other_byte_order(run: Run) -> None:
    run.output = "pcapng"
    time = 10 * SECOND + 5
    file = Pcapng().section("big").interface(tsresol=9, tsoffset=5)
    flags = Option(2, struct.pack(">I", 0x01020304))
    file.packet(FIRST, time_ns=time, wire=500, options=[comment("held"), flags])
    file.obsolete(SECOND_PIECE, time_ns=time, drops=258, options=[flags])
    other = ethernet(ipv4(b"12345678", id=8, mf=True))
    file.simple(other)
    file.section("little").interface(link=101)
    expected = Pcapng().section("big").interface(tsresol=9, tsoffset=5)
    expected.section("little").interface(link=101).interface(tsresol=9, tsoffset=5)
    turned = Option(2, struct.pack("<I", 0x01020304))
    expected.packet(FIRST, time_ns=time, wire=500, interface=1, options=[comment("held"), turned])
    expected.obsolete(SECOND_PIECE, time_ns=time, drops=258, interface=1, options=[turned])
    expected.packet(other, time_ns=time, interface=1)
    assert run(file.data).output == expected.data


def test_a_section_without_interfaces_gets_those_of_held_packets(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section().interface(tsresol=9).packet(FIRST, time_ns=1).section()
    expected = Pcapng().section().interface(tsresol=9)
    expected.section().interface(tsresol=9).packet(FIRST, ticks=1)
    assert run(file.data).output == expected.data


def test_an_obsolete_block_with_too_high_an_interface_becomes_an_enhanced_one(run: Run) -> None:
    run.output = "pcapng"
    described = Pcapng().section().interface().blocks[1]
    first = Pcapng().section().interface(tsresol=9)
    first.obsolete(FIRST, time_ns=1, drops=5, options=[comment("held")])
    for count in (65_535, 65_536):
        file = Pcapng().raw(first.data).section().raw(described * count)
        expected = Pcapng().section().interface(tsresol=9).section().raw(described * count)
        expected.interface(tsresol=9)
        options = [comment("held")]
        if count == 65_535:
            expected.obsolete(FIRST, time_ns=1, interface=0, drops=5, options=options)
            last = bytearray(expected.data)
            at = len(last) - len(expected.blocks[-1]) + 8
            last[at : at + 2] = count.to_bytes(2, "little")
            assert run(file.data).output == bytes(last)
        else:
            expected.packet(FIRST, ticks=1, interface=count, options=options)
            assert run(file.data).output == expected.data


def test_held_from_an_earlier_input(run: Run) -> None:
    run.output = "pcapng"
    first = Pcapng().section().interface(tsresol=9).packet(FIRST, time_ns=1)
    second = Pcapng().section().interface().packet(ARP)
    expected = Pcapng().section().interface(tsresol=9).section().interface().packet(ARP)
    expected.interface(tsresol=9).packet(FIRST, ticks=1, interface=1)
    assert run(first.data, second.data).output == expected.data


# ---------------------------------------------------------------------------------------- laws

WRAPS: dict[int, Callable[[bytes], bytes]] = {1: ethernet, 101: bytes, 113: sll}
UNITS = st.sampled_from([None, 3, 6, 9, 0x8A, 0x9E])


@st.composite
def files(draw: st.DrawFn, number: int = 0) -> bytes:
    """A pcapng file of several sections; its fragments never make a datagram."""
    file, time = Pcapng(), 0
    for _ in range(draw(st.integers(1, 4))):
        file.section(draw(st.sampled_from(ORDERS)))
        links: list[int] = []
        for _ in range(draw(st.integers(0, 6))):
            if not links or draw(st.integers(0, 4)) == 0:
                links.append(draw(st.sampled_from(list(WRAPS))))
                tag = Option(2, f"interface {len(links)}".encode())
                offset = draw(st.sampled_from([None, 7]))
                file.interface(link=links[-1], tsresol=draw(UNITS), tsoffset=offset, options=[tag])
            time += draw(st.sampled_from([0, 1, 10**9, 25 * 10**9]))
            number += 1
            packet = ipv4(pattern(draw(st.integers(8, 30))), id=number, mf=draw(st.booleans()))
            at = draw(st.integers(0, len(links) - 1))
            frame, stamp = WRAPS[links[at]](packet), 100 * 10**9 + time
            kind = draw(st.sampled_from(["packet", "obsolete", "simple", "statistics"]))
            note = [comment(f"packet {number}")]
            if kind == "packet":
                file.packet(frame, time_ns=stamp, interface=at, wire=99, options=note)
            elif kind == "obsolete":
                file.obsolete(frame, time_ns=stamp, interface=at, drops=number, options=note)
            elif kind == "simple" and links[0] == links[at]:
                file.simple(frame)
            else:
                file.statistics(at)
    return file.data


def told(data: bytes) -> Counter[tuple[object, ...]]:
    """Give what a file says of its packets: all but the order, and times that are only guessed."""
    source, at, found = Input("file"), 0, Counter[tuple[object, ...]]()
    while (record := source.read(memoryview(data)[at:], at, final=True)) is not None:
        at += len(record.data)
        assert record.damage is None
        if record.link == NO_PACKET or not isinstance(record.owner, Section):
            continue
        described = record.owner.interfaces[record.interface]
        options = parse_options(described.block[16:-4], record.owner.endian)
        name = [value for code, value in options if code == 2]
        simple = record.kind == 3 or record.data.find(b"packet ") < 0
        time = None if simple else record.time
        found[record.frame, record.wire, record.link, str(name), described.units, time] += 1
    assert source.damage is None
    return found


@given(data=st.tuples(files(), files(1000)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_every_packet_of_every_section_is_told_as_before(
    run: Run, data: tuple[bytes, bytes]
) -> None:
    run.output = "pcapng"
    result = run(*data)
    before = Counter[tuple[object, ...]]()
    for each in data:
        before += told(each)
    assert told(result.output) == before
    assert result.summary["written"] == sum(before.values())
