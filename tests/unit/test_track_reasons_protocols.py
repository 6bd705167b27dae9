"""Reasons for verdicts: protocols other than TCP; and that none is left out."""

from __future__ import annotations

from typing import Any

import pytest

from fragtrack.testing import (
    fragment,
    gre,
    icmp_error,
    icmp_query,
    icmpv6_query,
    ipv4,
    ipv6_fragment,
    sctp,
    sctp_chunk,
    sctp_cookie_ack,
    sctp_cookie_echo,
    sctp_data,
    sctp_heartbeat,
    sctp_init,
    sctp_init_ack,
    udp,
    udplite,
)
from fragtrack.verdicts import RULES, TrackReason
from tests.reasons import ANY, Case, Cases, whole
from tests.tracking import (
    CLIENT,
    GRE,
    ICMP,
    ICMPV6,
    ROUTER,
    SCTP,
    SERVER,
    UDP,
    UDPLITE,
    Bench,
    ends,
    ip,
    talk_of,
    told,
)
from tests.unit import test_track_reasons as earlier

cases = Cases()


# ------------------------------------------------------------------------------ other protocols


@cases
def length_below_eight() -> Case:
    return Case([ip(udp(b"", **ends(4), length=7), UDP)], "invalid - - length", 7, 8)


@cases
def length_beyond_the_packet() -> Case:
    packet = ip(udp(b"data", **ends(4), length=13), UDP)
    return Case([packet], "invalid - - length", 13, 12, "UDP length 13 in 12 bytes")


@cases
def coverage_below_eight() -> Case:
    return Case([ip(udplite(b"", **ends(4), coverage=7), UDPLITE)], "invalid - - coverage", 7, 8)


@cases
def coverage_beyond_the_packet() -> Case:
    packet = ip(udplite(b"data", **ends(4), coverage=13), UDPLITE)
    return Case([packet], "invalid - - coverage", 13, 12, "coverage 13 of 12 bytes")


@cases
def no_checksum() -> Case:
    packet = ip(udplite(b"", **ends(4), checksum_value=0), UDPLITE)
    return Case([packet], "invalid - - no_checksum", None, None, "UDP-Lite must have")


@cases
def icmp_type_without_query() -> Case:
    return Case([ip(icmp_query(10), ICMP)], "invalid - - icmp_type", 10, None, "ICMP type 10")


@cases
def icmp_type_above_18() -> Case:
    return Case([ip(icmp_query(19), ICMP)], "invalid - - icmp_type", 19, None)


@cases
def icmp_type_of_ipv6() -> Case:
    packet = ip(icmpv6_query(200, **ends(6)), ICMPV6, 6)
    return Case([packet], "invalid - - icmp_type", 200, None)


@cases
def unsolicited() -> Case:
    return Case([ip(icmp_query(0), ICMP)], "invalid - - unsolicited", 0, None, "without a request")


def error_about(quote: bytes, **fields: Any) -> bytes:
    message = icmp_error(3, 1, quote)
    return ip(message, ICMP, **{"src": ROUTER[4], "dst": CLIENT[4], **fields})


@cases
def inner() -> Case:
    return Case([error_about(whole()[:19])], "invalid - - inner", 19, None, "19 bytes of it")


@cases
def inner_ports_cut() -> Case:
    return Case([whole(), error_about(whole()[:22])], "invalid - - inner", 22, None)


@cases
def inner_later_fragment() -> Case:
    piece = fragment(whole(bytes(100)), [48])[1]
    return Case([error_about(piece)], "invalid - - inner", len(piece), None)


@cases
def inner_type() -> Case:
    quote = ip(icmp_error(3, 1, whole()), ICMP)
    return Case([error_about(quote)], "invalid - - inner_type", 3, None, "ICMP type 3")


@cases
def inner_unknown() -> Case:
    return Case([error_about(whole())], "invalid - - inner_unknown", None, None, "no known")


@cases
def outer_address() -> Case:
    packet = error_about(whole(), dst=SERVER[4])
    return Case([whole(), packet], "invalid - - outer_address", None, None, "not sent to the host")


@cases
def discovery() -> Case:
    packet = ip(icmpv6_query(135, bytes(16), **ends(6)), ICMPV6, 6)
    return Case([packet], "untracked - - discovery", 135, None, "ICMPv6 type 135")


def association() -> list[bytes]:
    return [
        ip(sctp(sctp_init(0xAA), sport=1, dport=2), SCTP),
        ip(sctp(sctp_init_ack(0xBB), vtag=0xAA, sport=2, dport=1), SCTP, reply=True),
        ip(sctp(sctp_cookie_echo(), vtag=0xBB, sport=1, dport=2), SCTP),
        ip(sctp(sctp_cookie_ack(), vtag=0xAA, sport=2, dport=1), SCTP, reply=True),
    ]


@cases
def vtag() -> Case:
    packet = ip(sctp(sctp_data(b"x"), vtag=0xBC, sport=1, dport=2), SCTP)
    return Case(
        [*association(), packet],
        "invalid - ESTABLISHED vtag",
        0xBC,
        0xBB,
        "verification tag 0x000000bc where 0x000000bb is right",
    )


@cases
def chunk_beside_init() -> Case:
    packet = ip(sctp([sctp_init(7), sctp_data(b"x")]), SCTP)
    return Case([packet], "invalid - - chunk", ANY, ANY, "cannot stand there")


@cases
def chunk_of_no_length() -> Case:
    packet = ip(sctp([sctp_chunk(0, length=0)]), SCTP)
    return Case([packet], "invalid - - chunk", 0, ANY, "chunk type 0")


@cases
def chunk_state_first() -> Case:
    packet = ip(sctp(sctp_cookie_ack(), vtag=7), SCTP)
    return Case([packet], "invalid - - chunk_state", 11, 0, "chunk type 11 is not allowed in state")


@cases
def chunk_state_of_the_table() -> Case:
    packets = [
        ip(sctp(sctp_heartbeat(), vtag=7, sport=1, dport=2), SCTP),
        ip(sctp(sctp_init(9), sport=2, dport=1), SCTP, reply=True),
    ]
    return Case(packets, "invalid - HEARTBEAT_SENT chunk_state", 1, 8, "state HEARTBEAT_SENT")


@cases
def gre_without_ppp() -> Case:
    packet = ip(gre(b"", version=1, call_id=7, protocol=0x0800), GRE)
    return Case([packet], "invalid - - gre", 0x0800, None, "protocol 0x0800")


@pytest.mark.parametrize("name", cases)
def test_reason(backend: str, name: str) -> None:
    cases.run(backend, name)


def told_of_all() -> list[list[str]]:
    return [make().told.split() for make in (*cases.values(), *earlier.cases.values())]


def test_every_reason_is_produced_here_or_in_the_flood() -> None:
    produced = {words[-1] for words in told_of_all()}
    assert {reason.name for reason in TrackReason} - produced == {"table_full", "chain"}


def test_classes_are_those_of_the_rules() -> None:
    for words in told_of_all():
        effect = RULES[TrackReason[words[-1]]].effect
        assert (words[0] == "invalid") == (effect == "invalid"), words
        assert (words[0] == "untracked") == (effect == "untracked"), words


# ------------------------------------------------------------------------- checksums as settings


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(
    ("setting", "offloaded", "bad"),
    [("offload", "new", "invalid"), ("verify", "invalid", "invalid"), ("ignore", "new", "new")],
)
def test_checksums_left_to_the_network_card(
    backend: str, version: int, setting: str, offloaded: str, bad: str
) -> None:
    talk = talk_of(version)
    for value, expected in (("offload", offloaded), ("bad", bad)):
        bench = Bench(backend, checksum=setting)
        assert bench.push(talk.client("S", checksum_value=value)).ct_class == expected


def test_no_udp_checksum_is_fine(backend: str) -> None:
    for version in (4, 6):
        packet = ip(udp(b"x", **ends(version), checksum_value=0), UDP, version)
        assert told(Bench(backend).push(packet)) == "new original -"


def test_a_cut_capture_is_not_summed(backend: str) -> None:
    packet = talk_of().client("S", b"payload that was not captured", checksum_value="bad")
    assert told(Bench(backend).push(packet[:40])) == "new original SYN_SENT"
    assert told(Bench(backend).push(packet)) == "invalid - - checksum"


def test_padding_is_not_summed(backend: str) -> None:
    packet = talk_of().client("S") + b"\xff" * 6
    assert told(Bench(backend).push(packet)) == "new original SYN_SENT"


def test_the_ip_checksum_only_counts_where_it_is_verified(backend: str) -> None:
    packet = ipv4(udp(b"x", **ends(4)), **ends(4), header_checksum="bad")
    assert told(Bench(backend).push(packet)) == "new original -"
    bench = Bench(backend, reassembly={"checksum": "verify"})
    assert told(bench.push(packet)) == "invalid - - header"


def test_a_first_fragment_that_passes_is_judged_by_its_transport_header(backend: str) -> None:
    # As `fragment_passed_on`, but at offset 0: the kernel goes on to the header, which is there.
    for length, expected in ((None, "new original -"), (100, "invalid - - length")):
        piece = udp(b"12345", **ends(6), length=length)
        packet = ipv6_fragment(piece, **ends(6), offset=0, more=True)
        assert told(Bench(backend).push(packet)) == expected
