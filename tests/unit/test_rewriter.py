"""Fragments in, whole datagrams out, in pcap files of one kind: both backends."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragtrack.errors import OutputError
from fragtrack.testing import (
    ATOMIC,
    Pcapng,
    ethernet,
    fragment,
    hop_by_hop,
    ipv4,
    ipv6,
    ipv6_fragment,
    null,
    pattern,
    pcap,
    pcap_header,
    pcap_record,
    ppp,
    pppoe,
    sll,
    sll2,
    udp,
)
from tests.rewriting import (
    ARP,
    FIRST,
    LAST,
    ORDERS,
    OTHER,
    PIECES,
    RESOLUTIONS,
    SECOND,
    SECOND_PIECE,
    WHOLE,
    Run,
    frames,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fragtrack.testing.captures import ByteOrder, Resolution


# ---------------------------------------------------------------------------------- passing


@pytest.mark.parametrize("resolution", RESOLUTIONS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("modified", [False, True])
def test_a_pcap_without_fragments_comes_out_as_it_is(
    run: Run, order: ByteOrder, resolution: Resolution, modified: bool
) -> None:
    data = pcap(
        frames(OTHER, ARP, b"", b"\0" * 14, bytes(70), start=5 * SECOND + 123_456_789),
        order=order,
        resolution="us" if modified else resolution,
        modified=modified,
    )
    result = run(data)
    assert result.output == data
    assert result.rows == []
    assert result.damaged is None
    assert result.summary == {
        "packets": 5,
        "bytes": len(data),
        "fragments": {"ipv4": 0, "ipv6": 0},
        "datagrams": {"complete": 0, "incomplete": 0},
        "written": 5,
        "reasons": {},
        "given_up": {},
        "anomalies": {},
    }


def test_pcap_headers_are_kept_but_for_a_small_snaplen(run: Run) -> None:
    head = pcap_header(snaplen=96, link=0xF400_0001, version=(2, 3))
    out = run(head + pcap_record(b"abc")).output
    assert out[:24] == pcap_header(snaplen=262144, link=0xF400_0001, version=(2, 3))
    assert out[24:] == pcap_record(b"abc")
    large = pcap_header(snaplen=1_000_000)
    assert run(large).output == large


def test_records_pass_with_odd_fractions_and_lengths(run: Run) -> None:
    data = pcap_header() + pcap_record(OTHER, seconds=0xFFFFFFFF, fraction=0xFFFFFFFF, wire=3)
    assert run(data).output == data


def test_snapped_packets_that_are_no_fragments_pass(run: Run) -> None:
    data = pcap_header() + pcap_record(OTHER[:40], wire=60) + pcap_record(OTHER[:20], wire=60)
    result = run(data)
    assert result.output == data
    assert result.summary["reasons"] == {}


# -------------------------------------------------------------------------------- completing


@pytest.mark.parametrize("order", ORDERS)
def test_a_datagram_stands_where_it_became_complete(run: Run, order: ByteOrder) -> None:
    data = pcap(frames(ARP, FIRST, OTHER, LAST, ARP, SECOND_PIECE, OTHER), order=order)
    result = run(data)
    expected = [(0, ARP), (2_000_000, OTHER), (4_000_000, ARP), (5_000_000, ethernet(WHOLE))]
    assert result.output == pcap([*expected, (6_000_000, OTHER)], order=order)
    assert result.summary["written"] == 5
    assert result.summary["fragments"] == {"ipv4": 3, "ipv6": 0}
    assert result.summary["datagrams"] == {"complete": 1, "incomplete": 0}
    (row,) = result.rows
    assert (row.time_first, row.time_last) == (1_000_000, 5_000_000)
    assert (row.ip_version, row.src, row.dst) == (4, "192.0.2.1", "198.51.100.2")
    assert (row.protocol, row.id, row.vlan, row.tunnel) == (17, 7, None, None)
    assert (row.fragments, row.frames, row.length) == (3, (2, 6, 4), 98)
    assert (row.outcome, row.policy) == ("complete", "linux")
    assert row.payload == WHOLE[20:]
    assert row.packet == WHOLE


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_any_order_of_fragments(run: Run, order: tuple[int, ...]) -> None:
    items = [ethernet(PIECES[at]) for at in order]
    result = run(pcap(frames(*items)))
    assert result.output == pcap([(2_000_000, ethernet(WHOLE))])


def test_padding_does_not_come_along(run: Run) -> None:
    whole = ipv4(pattern(20), id=3)
    items = [ethernet(piece, minimum=60, padding=b"\xee") for piece in fragment(whole, sizes=[8])]
    assert run(pcap(frames(*items))).output == pcap([(1_000_000, ethernet(whole))])


def test_lengths_of_a_snapped_completing_record_are_those_of_the_datagram(run: Run) -> None:
    # The frame on the wire was longer than what was captured, but the packet is whole.
    record = pcap_record(ethernet(PIECES[2]), wire=1000)
    data = pcap(frames(FIRST, SECOND_PIECE)) + record
    assert run(data).output == pcap([(0, ethernet(WHOLE))])


def test_header_of_the_first_fragment_link_header_of_the_last(run: Run) -> None:
    first = fragment(ipv4(udp(pattern(90)), id=7, ttl=11), sizes=[32, 32])[0]
    late = ethernet(PIECES[2], source=b"\2\0\0\0\0\7")
    result = run(pcap(frames(ethernet(first), SECOND_PIECE, late)))
    expected = ethernet(ipv4(udp(pattern(90)), id=7, ttl=11), source=b"\2\0\0\0\0\7")
    assert result.output == pcap([(2_000_000, expected)])


def test_ipv6_in_any_link_and_with_extension_headers(run: Run) -> None:
    whole = ipv6(pattern(50), extensions=[hop_by_hop()])
    items = [ethernet(piece, vlans=[5]) for piece in fragment(whole, sizes=[16, 16])]
    result = run(pcap(frames(*items)))
    assert result.output == pcap([(2_000_000, ethernet(whole, vlans=[5]))])
    assert result.rows[0].vlan == "5"
    assert result.rows[0].length == 50
    assert result.summary["fragments"] == {"ipv4": 0, "ipv6": 3}


LINKS: list[tuple[int, Callable[[bytes], bytes]]] = [
    (0, null),
    (0, lambda p: null(p, order="big")),
    (1, lambda p: ethernet(p, vlans=[0x6005, 7], tag_types=[0x88A8])),
    (1, lambda p: ethernet(p, labels=[16, 17])),
    (1, lambda p: ethernet(p, session=7)),
    (1, lambda p: ethernet(p, snap=True)),
    (9, ppp),
    (50, lambda p: ppp(p, compressed=True)),
    (51, pppoe),
    (101, bytes),
    (108, lambda p: null(p, order="big", family=2)),
    (113, sll),
    (228, bytes),
    (276, lambda p: sll2(p, vlans=[9])),
]


@pytest.mark.parametrize(("link", "wrap"), LINKS)
def test_every_link_keeps_its_header_and_gets_right_lengths(
    run: Run, link: int, wrap: Callable[[bytes], bytes]
) -> None:
    items = [wrap(piece) for piece in PIECES]
    result = run(pcap(frames(*items), link=link))
    assert result.output == pcap([(2_000_000, wrap(WHOLE))], link=link)


def test_pppoe_length_stops_at_65535(run: Run) -> None:
    whole = ipv4(pattern(65515))
    items = [ethernet(piece, session=1) for piece in fragment(whole, mtu=1492)]
    out = run(pcap(frames(*items, step=1000))).output
    assert out[24 + 16 + 18 : 24 + 16 + 20] == b"\xff\xff"
    assert out.endswith(whole)


def test_vlans_do_not_mix(run: Run) -> None:
    items = [ethernet(PIECES[0], vlans=[1]), ethernet(PIECES[1], vlans=[2])]
    items += [ethernet(PIECES[2], vlans=[1]), ethernet(PIECES[1], vlans=[0xE001])]
    result = run(pcap(frames(*items)))
    complete, incomplete = result.rows
    assert (complete.vlan, complete.frames) == ("1", (1, 4, 3))
    assert (incomplete.vlan, incomplete.outcome) == ("2", "end")


def test_rows_name_stacked_vlans_outermost_first(run: Run) -> None:
    items = [ethernet(piece, vlans=[10, 20]) for piece in PIECES]
    assert run(pcap(frames(*items))).rows[0].vlan == "10.20"


def test_rows_without_payloads_and_no_rows(run: Run) -> None:
    run.payloads = False
    (row,) = run(pcap(frames(FIRST, SECOND_PIECE, LAST))).rows
    assert (row.payload, row.packet) == (None, None)
    run.rows = False
    assert run(pcap(frames(FIRST, SECOND_PIECE, LAST))).rows == []


def test_without_output_nothing_is_written(run: Run) -> None:
    run.output = None
    result = run(pcap(frames(FIRST, SECOND_PIECE, LAST, OTHER)))
    assert result.output == b""
    assert result.summary["written"] == 0
    assert result.outcomes == ["complete"]


def test_a_datagram_may_go_from_one_input_to_the_next(run: Run) -> None:
    result = run(pcap(frames(ARP, FIRST, SECOND_PIECE)), pcap(frames(LAST, start=SECOND)))
    assert result.output == pcap([(0, ARP), (SECOND, ethernet(WHOLE))])
    assert result.rows[0].frames == (2, 3, 1)


# --------------------------------------------------------------------------------- incomplete


def test_duplicates_vanish(run: Run) -> None:
    result = run(pcap(frames(FIRST, FIRST, SECOND_PIECE, LAST)))
    assert result.output == pcap([(3_000_000, ethernet(WHOLE))])
    assert result.summary["reasons"] == {"duplicate": 1}
    assert result.rows[0].frames == (1, 3, 4)


@pytest.mark.parametrize("keep", [True, False])
def test_what_is_open_at_the_end_is_written_at_the_end(run: Run, keep: bool) -> None:
    run.keep = keep
    result = run(pcap(frames(LAST, ARP, FIRST, OTHER)))
    expected = [(1_000_000, ARP), (3_000_000, OTHER)]
    if keep:
        expected += [(0, LAST), (2_000_000, FIRST)]
    assert result.output == pcap(expected)
    assert result.summary["written"] == len(expected)
    assert result.summary["reasons"] == {"end": 2}
    assert result.summary["datagrams"] == {"complete": 0, "incomplete": 1}
    (row,) = result.rows
    assert (row.outcome, row.frames, row.fragments, row.length) == ("end", (3, 1), 2, 98)
    assert (row.time_first, row.time_last, row.payload) == (0, 2_000_000, None)


@pytest.mark.parametrize("passer", [ARP, OTHER, ethernet(ipv4(b"x", id=99, mf=True))])
def test_every_packet_moves_the_clock(run: Run, passer: bytes) -> None:
    result = run(pcap([(0, FIRST), (1, SECOND_PIECE), (30 * SECOND, passer)]))
    out = pcap([(0, FIRST), (1, SECOND_PIECE), (30 * SECOND, passer)])
    assert result.output == out
    assert result.outcomes[0] == "timeout"
    assert result.rows[0].frames == (1, 2)


def test_late_fragments_do_not_complete(run: Run) -> None:
    items = [(0, FIRST), (1000, LAST), (40 * SECOND, SECOND_PIECE)]
    result = run(pcap(items))
    assert result.output == pcap(items)
    assert result.outcomes == ["timeout", "end"]


@pytest.mark.parametrize("keep", [True, False])
def test_an_overlap_ends_the_datagram(run: Run, keep: bool) -> None:
    run.keep = keep
    bad = ethernet(ipv4(pattern(32, "B"), id=7, mf=True, offset=16))
    items = frames(LAST, FIRST, ARP, bad, OTHER)
    result = run(pcap(items))
    order = [2, 0, 1, 3, 4] if keep else [2, 4]
    assert result.output == pcap([items[at] for at in order])
    (row,) = result.rows
    assert (row.outcome, row.fragments) == ("overlap", 3)
    assert row.frames == (2, 4, 1)
    assert result.summary["reasons"] == {"overlap": 3}


@pytest.mark.parametrize("keep", [True, False])
def test_a_fragment_refused_alone_stays_in_its_place(run: Run, keep: bool) -> None:
    run.keep = keep
    cut = pcap_header() + pcap_record(FIRST) + pcap_record(LAST[:-1], wire=len(LAST))
    data = cut + pcap_record(OTHER)
    result = run(data)
    assert result.summary["reasons"] == {"truncated": 1, "end": 1}
    kept = pcap_record(LAST[:-1], wire=len(LAST)) + pcap_record(OTHER) + pcap_record(FIRST)
    assert result.output == pcap_header() + (kept if keep else pcap_record(OTHER))
    assert result.outcomes == ["end"]


def test_rows_of_incomplete_datagrams_are_in_offset_order(run: Run) -> None:
    pieces = fragment(ipv4(pattern(64), id=5), sizes=[16, 16, 16])
    order = [3, 1, 0]
    result = run(pcap(frames(*[ethernet(pieces[at]) for at in order])))
    assert result.rows[0].frames == (3, 2, 1)


def test_checksums_are_counted_but_ignored(run: Run) -> None:
    bad = ipv4(PIECES[1][20:], id=7, mf=True, offset=32, header_checksum="bad")
    items = [FIRST, ethernet(bad), LAST, ethernet(ipv4(b"whole", header_checksum="bad"))]
    result = run(pcap(frames(*items)))
    assert result.outcomes == ["complete"]
    assert result.summary["anomalies"] == {"bad_checksum": 1}
    run.config = {"checksum": "verify"}
    result = run(pcap(frames(*items)))
    assert result.outcomes == ["end"]
    assert result.summary["reasons"] == {"checksum": 1, "end": 2}
    assert result.summary["anomalies"] == {}


def test_fragments_equal_used_plus_reasons(run: Run) -> None:
    items = [FIRST, FIRST, SECOND_PIECE, LAST, FIRST, LAST]
    result = run(pcap(frames(*items)))
    used = sum(row.fragments for row in result.rows if row.outcome == "complete")
    assert sum(result.summary["fragments"].values()) == used + sum(
        result.summary["reasons"].values()
    )


# -------------------------------------------------------------------------------------- atomic


def test_atomic_fragments_pass_as_they_are(run: Run) -> None:
    (piece,) = fragment(ipv6(pattern(20)), sizes=ATOMIC, id=6)
    frame = ethernet(piece, minimum=100)
    result = run(pcap([(5, frame)]))
    assert result.output == pcap([(5, frame)])
    (row,) = result.rows
    assert (row.outcome, row.frames, row.length) == ("complete", (1,), 20)
    assert row.payload == pattern(20)
    assert row.packet == piece
    assert result.summary["datagrams"] == {"complete": 1, "incomplete": 0}


def test_netfilter_takes_the_header_off_atomic_fragments(run: Run) -> None:
    run.config = {"path": "netfilter"}
    (piece,) = fragment(ipv6(pattern(20)), sizes=ATOMIC, id=6)
    result = run(pcap([(5000, ethernet(piece, minimum=100))]))
    assert result.output == pcap([(5000, ethernet(ipv6(pattern(20))))])


def test_netfilter_lets_unaligned_fragments_pass(run: Run) -> None:
    run.config = {"path": "netfilter"}
    odd = ethernet(ipv6_fragment(pattern(13), id=3, more=True))
    result = run(pcap([(0, odd)]))
    assert result.output == pcap([(0, odd)])
    assert result.summary["fragments"] == {"ipv4": 0, "ipv6": 0}


def test_an_ipv6_queue_that_stayed_empty_is_told_of(run: Run) -> None:
    odd = ethernet(ipv6_fragment(pattern(13), id=3, more=True))
    result = run(pcap([(0, odd)]))
    assert result.output == pcap([(0, odd)])
    (row,) = result.rows
    assert (row.outcome, row.id, row.fragments, row.frames) == ("end", 3, 0, ())
    assert result.summary["reasons"] == {"unaligned": 1}
    assert result.summary["datagrams"] == {"complete": 0, "incomplete": 1}


def test_wrong_checksums_of_cut_fragments_are_not_told_of(run: Run) -> None:
    cut = ethernet(ipv4(pattern(16), mf=True, header_checksum="bad"))[:-1]
    result = run(pcap([(0, cut)]))
    assert result.summary["reasons"] == {"truncated": 1}
    assert result.summary["anomalies"] == {}


# ---------------------------------------------------------------------------------------- laws


@st.composite
def shuffled_datagrams(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Packets, and the frames of their fragments in an order of their own."""
    count = draw(st.integers(1, 4))
    wholes, items = [], []
    for number in range(count):
        payload = pattern(draw(st.integers(33, 200)), chr(65 + number))
        sizes = draw(st.lists(st.sampled_from([8, 16, 24]), min_size=1, max_size=8))
        if draw(st.booleans()):
            whole = ipv4(payload, id=number)
            pieces = fragment(whole, sizes=sizes)
        else:
            whole = ipv6(payload, next_header=254)
            pieces = fragment(whole, sizes=sizes, id=number)
        wholes.append(whole)
        items += [ethernet(piece, minimum=60) for piece in pieces]
    return wholes, draw(st.permutations(items))


@pytest.mark.parametrize("output", ["pcap", "pcapng"])
@given(data=shuffled_datagrams())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_every_datagram_comes_out_once(
    run: Run, output: str, data: tuple[list[bytes], list[bytes]]
) -> None:
    wholes, items = data
    run.output = output
    result = run(pcap(frames(*items)))
    assert sorted(row.packet or b"" for row in result.rows) == sorted(wholes)
    hashes = {hashlib.sha256(row.payload or b"").digest() for row in result.rows}
    assert len(hashes) == len(wholes)
    assert result.summary["written"] == len(wholes)
    assert result.summary["reasons"] == {}


@given(st.binary(max_size=300), st.sampled_from(["pcap", "pcapng", None]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_any_bytes_behind_a_header(run: Run, data: bytes, output: str | None) -> None:
    run.output = output
    for head in (pcap_header(link=101), Pcapng().section().interface(link=101).data):
        try:
            result = run(head + data)
        except OutputError:
            continue
        assert result.summary["bytes"] <= len(head + data)
