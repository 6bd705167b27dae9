"""Bytes that are no packets, packets that break off: nothing raises, and everything is counted."""

from __future__ import annotations

import random

import pytest

from fragtrack.events import Reason
from fragtrack.testing import (
    destination_options,
    fragment,
    gre,
    hop_by_hop,
    icmp_error,
    icmp_query,
    icmpv6_error,
    icmpv6_query,
    icmpv6_redirect,
    ipv6,
    sctp,
    sctp_data,
    sctp_heartbeat,
    sctp_init,
    sctp_init_ack,
    tcp,
    tcp_options,
    udp,
    udplite,
)
from fragtrack.verdicts import CLASSES, TrackReason
from tests.tracking import (
    CLIENT,
    GRE,
    ICMP,
    ICMPV6,
    ROUTER,
    SCTP,
    TCP,
    UDP,
    UDPLITE,
    Bench,
    ends,
    ip,
    talk_of,
)

REASONS = {reason.name for reason in TrackReason}
FRAGMENT_REASONS = {reason.name for reason in Reason}
OPTIONS = tcp_options(mss=1460, wscale=7, sack_permitted=True, sack=[(1, 2)])


def judge_all(bench: Bench, packets: list[bytes]) -> None:
    """Push packets: each must have a verdict, and the counters must tell the same story."""
    invalid, told, kept_back = 0, 0, 0
    for packet in packets:
        verdict = bench.push(packet)
        assert verdict.ct_class in CLASSES
        fragment_only = verdict.ct_class in {"held", "dropped"}
        reasons = FRAGMENT_REASONS if fragment_only else REASONS
        assert verdict.reason is None or verdict.reason in reasons
        if verdict.ct_class == "invalid":
            invalid += 1
            assert verdict.detail
        kept_back += fragment_only
        told += not fragment_only and verdict.reason is not None
    counters = bench.tracker.counters
    assert counters["packets"] + kept_back == len(packets)
    assert bench.tracker.fragments["seen"] >= kept_back
    assert counters["invalid"] == invalid
    assert sum(bench.tracker.reasons.values()) == told


@pytest.mark.parametrize("first", [0x00, 0x40, 0x45, 0x4F, 0x60, 0x6F, 0xFF])
def test_garbage_of_every_length_has_a_verdict(backend: str, first: int) -> None:
    random_bytes = random.Random(first)
    packets = []
    for length in range(65):
        bodies = (bytes(length), b"\xff" * length, random_bytes.randbytes(length))
        packets += [(bytes([first]) + body)[:length] for body in bodies]
    judge_all(Bench(backend), packets)


def packets_of_all_protocols() -> dict[str, bytes]:
    inner = ip(udp(b"inner", **ends(4)), UDP)
    inner6 = ip(udp(b"inner", **ends(6)), UDP, 6)
    back, back6 = ({"src": ROUTER[v], "dst": CLIENT[v]} for v in (4, 6))
    found = {
        "udp": inner,
        "tcp": ip(tcp(b"data", options=OPTIONS, **ends(4)), TCP),
        "udplite": ip(udplite(b"data", **ends(4)), UDPLITE),
        "icmp": ip(icmp_query(8, b"data"), ICMP),
        "icmp error": ip(icmp_error(3, 4, inner), ICMP, **back),
        "icmp error in error": ip(
            icmp_error(3, 4, ip(icmp_error(3, 1, inner), ICMP)), ICMP, **back
        ),
        "sctp": ip(sctp([sctp_data(b"x"), sctp_heartbeat()], vtag=7), SCTP),
        "sctp init": ip(sctp(sctp_init(7)), SCTP),
        "sctp init ack": ip(sctp(sctp_init_ack(7), vtag=9), SCTP),
        "gre": ip(gre(b"data", key=7, sequence=8), GRE),
        "gre 1": ip(gre(b"data", version=1, call_id=7, sequence=8, acknowledgment=9), GRE),
        "other": ip(b"twelve bytes", 253),
        "options": ip(udp(b"data", **ends(4)), UDP, options=b"\x07\x07\x04" + bytes(4)),
        "udp 6": inner6,
        "tcp 6": ip(tcp(b"data", options=OPTIONS, **ends(6)), TCP, 6),
        "icmp 6": ip(icmpv6_query(128, b"data", **ends(6)), ICMPV6, 6),
        "discovery": ip(icmpv6_query(135, bytes(16), **ends(6)), ICMPV6, 6),
        "icmp error 6": ip(icmpv6_error(2, 0, inner6, **back6), ICMPV6, 6, **back6),
        "redirect": ip(
            icmpv6_redirect(inner6, dst=CLIENT[6]),
            ICMPV6,
            6,
            src="fe80::1",
            dst=CLIENT[6],
            hop_limit=255,
        ),
        "extensions": ipv6(
            udp(b"data", **ends(6)),
            **ends(6),
            extensions=[hop_by_hop(b"\x01\x04" + bytes(4)), destination_options(bytes(9))],
        ),
    }
    for name in ("udp", "udp 6"):
        for number, piece in enumerate(fragment(found[name], [8])):
            found[f"{name} fragment {number}"] = piece
    return found


@pytest.mark.parametrize("name", packets_of_all_protocols())
def test_a_packet_that_breaks_off_anywhere_has_a_verdict(backend: str, name: str) -> None:
    packet = packets_of_all_protocols()[name]
    judge_all(Bench(backend), [packet[:length] for length in range(len(packet) + 1)])


@pytest.mark.parametrize("name", packets_of_all_protocols())
def test_a_packet_that_is_shorter_than_it_should_be_has_a_verdict(backend: str, name: str) -> None:
    # As above, but the length field tells the truth, so that nothing is "not captured".
    packet = packets_of_all_protocols()[name]
    at, fixed, start = (2, 0, 20) if packet[0] >> 4 == 4 else (4, 40, 40)
    packets = []
    for length in range(start, len(packet) + 1):
        cut = bytearray(packet[:length])
        cut[at : at + 2] = (length - fixed).to_bytes(2)
        packets.append(bytes(cut))
    judge_all(Bench(backend, checksum="ignore"), packets)


@pytest.mark.parametrize("name", packets_of_all_protocols())
def test_a_packet_with_any_byte_changed_has_a_verdict(backend: str, name: str) -> None:
    packet = packets_of_all_protocols()[name]
    packets = []
    for position in range(len(packet)):
        for change in (0x01, 0x80, 0xFF):
            changed = bytearray(packet)
            changed[position] ^= change
            packets.append(bytes(changed))
    judge_all(Bench(backend, checksum="ignore", check=False), packets)


def test_broken_tcp_options_do_not_matter(backend: str) -> None:
    for options in (
        b"\x03",
        b"\x03\x00",
        b"\x03\x01\x02",
        b"\x03\xff",
        b"\x05\x02",
        b"\x00\x03\x03",
    ):
        bench, talk = Bench(backend), talk_of()
        assert bench.push(talk.client("S", options=options)).ct_class == "new"
        assert bench.push(talk.server("SA", options=options)).ct_class == "established"
        assert bench.push(talk.client("A", options=options)).state == "ESTABLISHED"
