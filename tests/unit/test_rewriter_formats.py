"""What becomes of blocks, and of one format in another: both backends."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from fragtrack.errors import OutputError
from fragtrack.testing import (
    Option,
    Pcapng,
    comment,
    ethernet,
    pcap,
    pcap_header,
    pcap_record,
    sll,
)
from tests.rewriting import (
    ARP,
    FIRST,
    LAST,
    ORDERS,
    OTHER,
    SECOND,
    SECOND_PIECE,
    WHOLE,
    Run,
    frames,
)

if TYPE_CHECKING:
    from fragtrack.testing.captures import ByteOrder, Resolution


# ---------------------------------------------------------------------------- pcapng to pcapng


def test_blocks_pass_as_they_are(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section("big", options=[Option(3, b"an OS")]).interface(tsresol=9)
    file.block(0xBAD, b"custom").packet(OTHER, time_ns=3, options=[comment("hi"), Option(3, b"h")])
    file.interface(link=113).statistics(1).simple(OTHER).obsolete(OTHER, interface=0, drops=3)
    file.block(4, bytes(8)).block(0x7FFFFFFF, b"unknown")
    result = run(file.data)
    assert result.output == file.data
    assert result.summary["packets"] == 3
    assert result.summary["written"] == 3


def test_section_length_becomes_unknown(run: Run) -> None:
    run.output = "pcapng"
    for order in ORDERS:
        data = Pcapng().section(order, length=1234).interface().data
        assert run(data).output == Pcapng().section(order).interface().data


def test_datagram_keeps_interface_time_and_comments_but_no_hash(run: Run) -> None:
    run.output = "pcapng"
    options = [comment("one"), Option(3, b"\2hash"), Option(2, bytes(4)), comment("two")]
    file = Pcapng().section("big").interface().interface(tsresol=9, snaplen=0)
    file.packet(FIRST, time_ns=5, interface=1).packet(SECOND_PIECE, time_ns=6, interface=0)
    file.packet(LAST + b"padding", time_ns=7, interface=1, wire=999, options=options)
    expected = Pcapng().section("big").interface().interface(tsresol=9, snaplen=0)
    kept = [options[0], options[2], options[3]]
    expected.packet(ethernet(WHOLE), time_ns=7, interface=1, options=kept)
    assert run(file.data).output == expected.data


def test_datagram_whose_only_option_was_a_hash_has_none(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section().interface().packet(FIRST).packet(SECOND_PIECE)
    file.packet(LAST, options=[Option(3, b"\2hash")])
    assert run(file.data).output == Pcapng().section().interface().packet(ethernet(WHOLE)).data


def test_options_without_an_end_get_one(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section().interface().packet(FIRST).packet(SECOND_PIECE)
    stamp = struct.pack("<IIIII", 0, 0, 9, len(LAST), len(LAST))
    body = stamp + LAST + bytes(-len(LAST) % 4) + b"\1\0\3\0abcX"  # the pad byte is no zero
    file.block(6, body)
    expected = Pcapng().section().interface()
    expected.packet(ethernet(WHOLE), ticks=9, options=[comment("abc")])
    assert run(file.data).output == expected.data


def test_datagram_in_an_obsolete_block(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section().interface().obsolete(FIRST).obsolete(SECOND_PIECE)
    file.obsolete(LAST, drops=5, time_ns=9000, options=[Option(2, b"1234"), Option(3, b"hash")])
    expected = Pcapng().section().interface()
    expected.obsolete(ethernet(WHOLE), drops=5, time_ns=9000, options=[Option(2, b"1234")])
    assert run(file.data).output == expected.data


def test_datagram_in_a_simple_block(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section().interface(snaplen=0)
    file.simple(FIRST).simple(SECOND_PIECE).simple(LAST, wire=len(LAST))
    expected = Pcapng().section().interface(snaplen=0).simple(ethernet(WHOLE))
    assert run(file.data).output == expected.data


def test_datagram_too_long_for_a_simple_block(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section("big").interface(snaplen=100, tsresol=3)
    file.packet(FIRST, time_ns=7_000_000).simple(SECOND_PIECE).simple(LAST)
    expected = Pcapng().section("big").interface(snaplen=100, tsresol=3)
    expected.packet(ethernet(WHOLE), time_ns=7_000_000)
    assert run(file.data).output == expected.data


def test_simple_packets_have_the_time_of_the_one_before(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section().interface().packet(FIRST, time_ns=SECOND)
    file.packet(ARP, time_ns=20 * SECOND).simple(SECOND_PIECE).simple(LAST)
    result = run(file.data)
    assert (result.rows[0].time_first, result.rows[0].time_last) == (SECOND, 20 * SECOND)


# -------------------------------------------------------------------------------- conversions


@pytest.mark.parametrize(("resolution", "power"), [("us", 6), ("ns", 9)])
@pytest.mark.parametrize("order", ORDERS)
def test_pcap_to_pcapng(run: Run, order: ByteOrder, resolution: Resolution, power: int) -> None:
    run.output = "pcapng"
    data = pcap(
        frames(ARP, FIRST, SECOND_PIECE, LAST),
        order=order,
        resolution=resolution,
    )
    odd = pcap_record(OTHER, seconds=9, fraction=2_000_000, wire=77, order=order)
    expected = Pcapng().section(order).interface(tsresol=power)
    expected.packet(ARP).packet(ethernet(WHOLE), time_ns=3_000_000)
    expected.packet(OTHER, ticks=9 * 10**power + 2_000_000, wire=77)
    assert run(data + odd).output == expected.data


def test_pcap_to_pcapng_one_section_each(run: Run) -> None:
    run.output = "pcapng"
    expected = Pcapng().section("little").interface(tsresol=6).packet(ARP)
    expected.section("big").interface(link=113, tsresol=9).packet(sll(b""))
    expected.interface(tsresol=6).packet(FIRST, interface=1, time_ns=1000)
    one = pcap([(0, ARP), (1000, FIRST)])
    two = pcap([(0, sll(b""))], link=113, order="big", resolution="ns")
    assert run(one, two).output == expected.data


@pytest.mark.parametrize("order", ORDERS)
def test_pcapng_to_pcap(run: Run, order: ByteOrder) -> None:
    file = Pcapng().section(order).interface().interface(snaplen=1 << 20)
    file.packet(FIRST).packet(SECOND_PIECE, interface=1).packet(LAST, time_ns=2_000_000)
    file.block(0xBAD, b"").simple(OTHER).obsolete(ARP, time_ns=3_000_999, wire=99)
    expected = pcap_header(order=order, snaplen=1 << 20)
    expected += pcap_record(ethernet(WHOLE), time_ns=2_000_000, order=order)
    expected += pcap_record(OTHER, time_ns=2_000_000, order=order)
    expected += pcap_record(ARP, time_ns=3_000_999, wire=99, order=order)
    assert run(file.data).output == expected


@pytest.mark.parametrize(
    ("tsresol", "resolution"),
    [(None, "us"), (3, "us"), (6, "us"), (7, "ns"), (9, "ns"), (0x93, "us"), (0x94, "ns")],
)
def test_pcapng_to_pcap_resolution(run: Run, tsresol: int | None, resolution: Resolution) -> None:
    file = Pcapng().section().interface().interface(tsresol=tsresol).packet(ARP, time_ns=SECOND)
    expected = pcap([(SECOND, ARP)], resolution=resolution)
    assert run(file.data).output == expected


def test_pcapng_to_pcap_times_that_do_not_fit(run: Run) -> None:
    file = Pcapng().section().interface(tsoffset=-10).interface(tsoffset=1 << 32)
    file.packet(ARP, ticks=1).packet(ARP, ticks=1, interface=1)
    expected = pcap_header() + pcap_record(ARP, seconds=0, fraction=0)
    expected += pcap_record(ARP, seconds=0xFFFFFFFF, fraction=999_999)
    assert run(file.data).output == expected


def test_pcapng_without_packets_to_pcap(run: Run) -> None:
    assert run(Pcapng().section().data).output == pcap_header()
    file = Pcapng().section("big").interface(link=113, tsresol=9)
    assert run(file.data).output == pcap_header(order="big", link=113, resolution="ns")


def test_two_link_types_do_not_fit_into_pcap(run: Run) -> None:
    file = Pcapng().section().interface(link=113).interface()
    file.packet(sll(WHOLE)).packet(ARP, interface=1)
    with pytest.raises(OutputError, match=r"write \.pcapng instead"):
        run(file.data)
    with pytest.raises(OutputError, match=r"file1: frame 1 has link type 113"):
        run(pcap(frames(ARP)), pcap(frames(sll(WHOLE)), link=113))
    assert run(pcap(frames(ARP)), pcap([], link=113)).output == pcap(frames(ARP))


def test_later_inputs_are_converted_to_the_first(run: Run) -> None:
    first = pcap([(1000, ARP)], order="big")
    second = pcap([(2_000_999, OTHER)], resolution="ns")
    third = pcap([(3000, FIRST), (4000, SECOND_PIECE), (5000, LAST)], modified=True)
    fourth = Pcapng().section().interface(tsresol=9).packet(ARP, time_ns=6_000_999, wire=70).data
    expected = pcap(
        [(1000, ARP), (2_000_000, OTHER), (5000, ethernet(WHOLE))],
        order="big",
    )
    expected += pcap_record(ARP, time_ns=6_000_000, wire=70, order="big")
    assert run(first, second, third, fourth).output == expected


def test_later_inputs_into_a_modified_file(run: Run) -> None:
    first = pcap([(1000, ARP)], modified=True)
    second = pcap([(2000, OTHER)])
    expected = pcap([(1000, ARP), (2000, OTHER)], modified=True)
    assert run(first, second).output == expected


def test_modified_records_keep_their_extra_fields(run: Run) -> None:
    extra = struct.pack("<IHBB", 3, 8, 4, 0)
    records = [pcap_record(frame, modified=True) for frame in (FIRST, SECOND_PIECE, LAST)]
    marked = [record[:16] + extra + record[24:] for record in records]
    whole = pcap_record(ethernet(WHOLE), modified=True)
    out = run(pcap_header(modified=True) + b"".join(marked)).output
    assert out == pcap_header(modified=True) + whole[:16] + extra + whole[24:]
