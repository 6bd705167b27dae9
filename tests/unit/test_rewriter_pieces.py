"""Damaged inputs, and inputs that come in pieces: both backends."""

from __future__ import annotations

import pytest

from fragtrack.config import ReassemblyConfig
from fragtrack.errors import CaptureError
from fragtrack.testing import (
    Pcapng,
    comment,
    ethernet,
    ipv4,
    ipv6_fragment,
    pattern,
    pcap,
    pcap_record,
    sll,
)
from tests.backends import rewriter_class
from tests.rewriting import (
    ARP,
    FIRST,
    LAST,
    OTHER,
    PIECES,
    SECOND,
    SECOND_PIECE,
    WHOLE,
    Run,
    frames,
)

# -------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty file"),
        (b"what is this, and why?", "not a capture"),
        (b"\xd4\xc3", "not a capture"),
    ],
)
@pytest.mark.parametrize("chunk", [0, 5])
def test_not_a_capture(run: Run, data: bytes, why: str, chunk: int) -> None:
    run.chunk = chunk
    with pytest.raises(CaptureError) as raised:
        run(data)
    assert (raised.value.file, raised.value.offset) == ("file0", 0)
    assert raised.value.why.startswith(why)


@pytest.mark.parametrize("chunk", [0, 1, 1000])
def test_all_in_front_of_the_damage_is_processed(run: Run, chunk: int) -> None:
    run.chunk = chunk
    good = pcap(frames(FIRST, SECOND_PIECE, LAST, ARP))
    for bad, why in (
        (b"\1\2\3", "cut off record: 3 of 16 bytes"),
        (pcap_record(OTHER)[:-1], f"cut off record: {15 + len(OTHER)} of {16 + len(OTHER)} bytes"),
        (
            pcap_record(b"", captured=262145) + pcap_record(OTHER),
            "record says 262145 bytes were captured, at most 262144 are possible",
        ),
    ):
        result = run(good + bad)
        assert result.output == pcap([(2_000_000, ethernet(WHOLE)), (3_000_000, ARP)])
        assert result.damaged == ("file0", len(good), why)
        assert result.summary["bytes"] == len(good)
        assert result.summary["packets"] == 4


def test_the_first_damage_is_told_and_the_next_input_is_read(run: Run) -> None:
    bad = pcap(frames(ARP)) + b"\0"
    result = run(pcap(frames(FIRST)), bad, bad, pcap(frames(SECOND_PIECE, LAST)))
    assert result.damaged == ("file1", len(bad) - 1, "cut off record: 1 of 16 bytes")
    assert result.summary["packets"] == 5
    assert result.outcomes == ["complete"]


@pytest.mark.parametrize("chunk", [0, 13])
def test_damage_to_one_packet_passes_with_its_block(run: Run, chunk: int) -> None:
    run.chunk, run.output = chunk, "pcapng"
    file = Pcapng().section().packet(ARP, interface=0).interface().packet(FIRST)
    file.packet(ARP, interface=5).packet(SECOND_PIECE, captured=90).packet(SECOND_PIECE)
    file.packet(LAST)
    result = run(file.data)
    expected = Pcapng().section().packet(ARP, interface=0).interface()
    expected.packet(ARP, interface=5).packet(SECOND_PIECE, captured=90).packet(ethernet(WHOLE))
    assert result.output == expected.data
    assert result.damaged == ("file0", 28, "packet of interface 0, but only 0 are described")
    assert result.summary["packets"] == 3
    assert result.rows[0].frames == (1, 2, 3)


def test_damage_in_pcapng_offsets(run: Run) -> None:
    run.output = "pcapng"
    file = Pcapng().section().interface().packet(FIRST).packet(SECOND_PIECE).packet(LAST)
    good = len(file.data)
    result = run(file.block(0xBAD, b"", length=13).packet(ARP).data)
    assert result.damaged == (
        "file0",
        good,
        "block says it is 13 bytes long, must be a multiple of 4 from 12 up",
    )
    assert result.output == Pcapng().section().interface().packet(ethernet(WHOLE)).data


# ---------------------------------------------------------------------------------- chunks


def mixed() -> bytes:
    """A pcapng file of three sections with everything in it."""
    file = Pcapng().section("big").interface(tsresol=9).interface(link=113)
    file.packet(FIRST, time_ns=1).packet(sll(PIECES[0], vlans=[3]), interface=1, time_ns=2)
    file.section("little").interface().packet(SECOND_PIECE, time_ns=SECOND)
    file.block(0xBAD, b"between").packet(LAST, time_ns=SECOND, options=[comment("!")])
    file.packet(ethernet(ipv4(pattern(8), id=50, mf=True)), time_ns=2 * SECOND)
    file.section("big").interface(tsoffset=3).packet(ARP, time_ns=40 * SECOND)
    file.packet(ethernet(ipv6_fragment(pattern(16), more=True)), time_ns=41 * SECOND)
    return file.interface(link=101).packet(WHOLE, interface=1, time_ns=42 * SECOND).data


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000, 100_000])
@pytest.mark.parametrize("budget", [None, 1, 100])
def test_pieces_make_no_difference(run: Run, chunk: int, budget: int | None) -> None:
    run.output = "pcapng"
    whole = run(mixed(), mixed())
    run.chunk, run.budget = chunk, budget
    pieces = run(mixed(), mixed())
    assert pieces == whole
    assert whole.summary["bytes"] == 2 * len(mixed())


def test_the_budget_makes_a_call_return_early(run: Run) -> None:
    data = pcap(frames(*[OTHER] * 100))
    run.budget, run.stable = 1, False
    assert run(data).output == data


def test_feed_says_how_far_it_came(run: Run) -> None:
    rewriter = rewriter_class(run.backend)(
        ReassemblyConfig(), output="pcap", keep_incomplete=True, rows=False, payloads=False
    )
    data = pcap(frames(OTHER, OTHER))
    end = 24 + 16 + len(OTHER)
    rewriter.begin("file")
    assert rewriter.feed(data, 0, 10, final=False, stable=True) == 0
    assert rewriter.feed(data, 0, end + 5, final=False, stable=True) == end
    assert rewriter.feed(data, end, end + 5, final=False, stable=True) == end
    assert rewriter.feed(data, end, len(data), final=True, stable=True) == len(data)
    rewriter.end()
    rewriter.finish()
    assert rewriter.take() == data
    assert rewriter.take() == b""
    assert rewriter.take_rows() == []
