"""Protocols other than TCP and SCTP: keys, timeouts, when a connection is assured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fragtrack.testing import (
    gre,
    icmp_error,
    icmp_query,
    icmpv6_query,
    icmpv6_redirect,
    udp,
    udplite,
)
from tests.tracking import (
    CLIENT,
    GRE,
    ICMP,
    ICMPV6,
    ROUTER,
    SERVER,
    UDP,
    UDPLITE,
    VERSIONS,
    Bench,
    ends,
    ip,
    talk_of,
    told,
)

if TYPE_CHECKING:
    from fragtrack.verdicts import Verdict

both_versions = pytest.mark.parametrize("version", VERSIONS)


def flags(verdict: Verdict) -> tuple[int | None, bool, bool]:
    return verdict.timeout, verdict.seen_reply, verdict.assured


def dns(version: int, *, reply: bool = False) -> bytes:
    ports = {"sport": 53, "dport": 999} if reply else {"sport": 999, "dport": 53}
    return ip(udp(b"dns", **ends(version, reply=reply), **ports), UDP, version, reply=reply)


# ------------------------------------------------------------------------------------------ UDP


@both_versions
def test_udp_is_assured_when_traffic_is_still_seen_after_two_seconds(
    backend: str, version: int
) -> None:
    bench = Bench(backend)
    assert flags(bench.push(dns(version))) == (30, False, False)
    assert flags(bench.push(dns(version, reply=True))) == (30, True, False)
    bench.wait(1.9)
    assert flags(bench.push(dns(version))) == (30, True, False)
    bench.wait(0.2)
    verdict = bench.push(dns(version))
    assert flags(verdict) == (120, True, True)
    assert verdict.events == ("update",)
    row = bench.only
    assert (row.packets_orig, row.packets_reply, row.state) == (3, 1, None)
    bench.advance(120)
    assert [row.end for row in bench.ended()] == ["timeout"]


@both_versions
def test_udp_without_an_answer_stays_at_30_seconds(backend: str, version: int) -> None:
    bench = Bench(backend)
    for _ in range(10):
        verdict = bench.push(dns(version))
        assert (told(verdict), *flags(verdict)) == ("new original -", 30, False, False)
        bench.wait(10)
    assert bench.only.packets_orig == 10


def test_an_answer_to_another_port_is_a_connection_of_its_own(backend: str) -> None:
    bench = Bench(backend)
    bench.push(dns(4))
    other = udp(b"dns", **ends(4, reply=True), sport=53, dport=1000)
    assert told(bench.push(ip(other, UDP, reply=True))) == "new original -"
    assert [(row.sport, row.dport) for row in bench.open_rows] == [(999, 53), (53, 1000)]


# ------------------------------------------------------------------- assured after the first answer


@pytest.mark.parametrize(("version", "key"), [(0, None), (0, 7), (1, None)])
def test_gre_is_assured_with_the_next_packet_after_an_answer(
    backend: str, version: int, key: int | None
) -> None:
    call = 9 if version == 1 else None
    payload = gre(b"data", version=version, key=key, call_id=call)
    bench = Bench(backend)
    assert flags(bench.push(ip(payload, GRE))) == (30, False, False)
    back = ip(payload if version == 0 else gre(b"", version=1, call_id=0), GRE, reply=True)
    verdict = bench.push(back)
    if version == 1:  # without PPTP's control connection nobody knows which calls belong together
        assert told(verdict) == "new original -"
        assert sorted(row.gre_key or () for row in bench.open_rows) == [(0, 0), (0, 9)]
        return
    assert flags(verdict) == (30, True, False)
    assert flags(bench.push(ip(payload, GRE))) == (180, True, True)
    assert bench.only.gre_key == (0, 0)


def test_udplite_is_assured_with_the_next_packet_after_an_answer(backend: str) -> None:
    bench = Bench(backend, checksum="ignore")

    def packet(*, reply: bool) -> bytes:
        ports = {"sport": 2, "dport": 1} if reply else {"sport": 1, "dport": 2}
        return ip(udplite(b"data", **ends(4, reply=reply), **ports), UDPLITE, reply=reply)

    assert flags(bench.push(packet(reply=False))) == (30, False, False)
    assert flags(bench.push(packet(reply=True))) == (30, True, False)
    assert flags(bench.push(packet(reply=False))) == (120, True, True)


@both_versions
def test_any_other_protocol_is_tracked_by_its_addresses(backend: str, version: int) -> None:
    bench = Bench(backend)
    for _ in range(2):
        assert flags(bench.push(ip(b"there", 253, version)))[0] == 600
        verdict = bench.push(ip(b"back", 253, version, reply=True))
        assert (told(verdict), *flags(verdict)) == ("established reply -", 600, True, False)
    row = bench.only
    assert (row.protocol, row.sport, row.dport) == (253, None, None)
    assert told(bench.push(ip(b"", 254, version))) == "new original -"


# ----------------------------------------------------------------------------------------- ICMP


def query(kind: int, version: int = 4, *, reply: bool = False, **fields: Any) -> bytes:
    if version == 4:
        return ip(icmp_query(kind, **fields), ICMP, reply=reply)
    message = icmpv6_query(kind, **fields, **ends(6, reply=reply))
    return ip(message, ICMPV6, 6, reply=reply)


PAIRS = [(4, 8, 0), (4, 13, 14), (4, 15, 16), (4, 17, 18), (6, 128, 129), (6, 139, 140)]


@pytest.mark.parametrize(("version", "asked", "answered"), PAIRS)
def test_a_query_and_its_answer(backend: str, version: int, asked: int, answered: int) -> None:
    bench = Bench(backend)
    request = query(asked, version, ident=7, sequence=1)
    answer = query(answered, version, ident=7, sequence=1, reply=True)
    assert told(bench.push(answer)) == "invalid - - unsolicited"
    assert told(bench.push(request)) == "new original -"
    for _ in range(3):
        verdict = bench.push(answer)
        assert (told(verdict), *flags(verdict)) == ("established reply -", 30, True, False)
        assert told(bench.push(request)) == "established original -"
    wrong = [
        query(answered, version, ident=8, reply=True),
        query(answered, version, ident=7, code=1, reply=True),
        query(answered, version, ident=7),
    ]
    for packet in wrong:
        assert told(bench.push(packet)) == "invalid - - unsolicited"
    row = bench.only
    assert (row.icmp_type, row.icmp_code, row.icmp_id) == (asked, 0, 7)
    assert (row.sport, row.dport, row.packets_orig, row.packets_reply) == (None, None, 4, 3)


def test_both_hosts_may_ask_with_the_same_identifier(backend: str) -> None:
    bench = Bench(backend)
    bench.tell(
        (query(8, ident=7), "new original -"),
        (query(8, ident=7, reply=True), "new original -"),
        (query(0, ident=7), "established reply -"),
        (query(0, ident=7, reply=True), "established reply -"),
    )
    assert len(bench.open_rows) == 2


@pytest.mark.parametrize("kind", [*range(130, 137), 143, 151, 152])
def test_discovery_is_untracked(backend: str, kind: int) -> None:
    bench = Bench(backend)
    verdict = bench.push(query(kind, 6, payload=bytes(16)))
    assert told(verdict) == "untracked - - discovery"
    assert bench.open_rows == []


@pytest.mark.parametrize("kind", [3, 4, 5, 11, 12])
def test_every_error_about_a_connection_is_related(backend: str, kind: int) -> None:
    bench, talk = Bench(backend), talk_of()
    bench.open(talk)
    quote = talk.client("PA", b"data")[:28]
    packet = ip(icmp_error(kind, 1, quote), ICMP, src=ROUTER[4], dst=CLIENT[4])
    assert told(bench.push(packet)) == "related reply ESTABLISHED"


def test_an_error_about_a_query_is_related_to_it(backend: str) -> None:
    bench = Bench(backend)
    request = query(8, ident=7)
    bench.push(request)
    packet = ip(icmp_error(11, 0, request[:28]), ICMP, src=ROUTER[4], dst=CLIENT[4])
    assert told(bench.push(packet)) == "related reply -"


@pytest.mark.parametrize(
    ("changes", "option", "expected"),
    [
        ({}, True, "related reply -"),
        ({"hop_limit": 254}, True, "invalid"),
        ({"src": SERVER[6]}, True, "invalid"),
        ({}, False, "invalid"),
    ],
)
def test_an_ipv6_redirect_must_come_from_a_router_of_the_link(
    backend: str, changes: dict[str, Any], option: bool, expected: str
) -> None:
    bench = Bench(backend)
    bench.push(dns(6))
    fields = {"src": "fe80::1", "dst": CLIENT[6], "hop_limit": 255, **changes}
    message = icmpv6_redirect(dns(6), src=fields["src"], dst=fields["dst"], header_option=option)
    assert told(bench.push(ip(message, ICMPV6, 6, **fields))).startswith(expected)


# --------------------------------------------------------------------------------------- events


def test_the_events_of_a_connection(backend: str) -> None:
    bench, talk = Bench(backend), talk_of()
    bench.open(talk)
    bench.push_all([talk.client("PA", b"data"), talk.server("A"), *talk.goodbye()])
    bench.advance(120)
    events = bench.tracker.take_events()
    assert [(event.kind, event.connection.state) for event in events] == [
        ("new", "SYN_SENT"),
        ("update", "SYN_RECV"),
        ("update", "ESTABLISHED"),
        ("update", "FIN_WAIT"),
        ("update", "LAST_ACK"),
        ("update", "TIME_WAIT"),
        ("destroy", "TIME_WAIT"),
    ]
    assert [event.connection.timeout for event in events] == [120, 60, 432_000, 120, 30, 120, None]
    assert [event.connection.assured for event in events] == [False] * 2 + [True] * 5
    assert bench.tracker.take_events() == []


def test_a_quoted_fragment_header_must_show_its_offset(backend: str) -> None:
    """As the running kernel: of a quoted fragment header the first four bytes are needed."""
    bench = Bench(backend)
    known = bytes.fromhex(
        "6000000000082f4020010db8000a00000000000000002a4020010db8000b00000000000000002a40"
        "0000080064617461"
    )
    error = bytes.fromhex(
        "6000000000333a4020010db8000b00000000000000002a4120010db8000a00000000000000002a40"
        "01022aa40000b88b6000000000102c4020010db8000a00000000000000002a40"
        "20010db8000b00000000000000002a402f0000"
    )
    assert bench.push(known).ct_class == "new"
    verdict = bench.push(error)
    assert (verdict.ct_class, verdict.reason) == ("invalid", "inner")
