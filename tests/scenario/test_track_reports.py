"""What users of other trackers reported, each with the right answer.

The comment above a test names the report. What is left out: the view of flows that other tools
have, text formats, and helpers, which this tracker does not have.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from fragtrack.testing import fragment, icmp_query, icmpv6_query, pattern, tcp_options, udp
from tests.tracking import (
    ICMP,
    ICMPV6,
    UDP,
    VERSIONS,
    Bench,
    ends,
    ip,
    talk_of,
    told,
)

DAY = 86_400
both_versions = pytest.mark.parametrize("version", VERSIONS)


# ---------------------------------------------------------- late segments, one-sided captures


# kubernetes/kubernetes#74839, #117924, #74840
@both_versions
@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("linux-6.18", "established original ESTABLISHED seq_below"),
        ("pre-6.1", "invalid - ESTABLISHED seq_below"),
    ],
)
def test_a_late_retransmission_is_established_since_6_1(
    backend: str, version: int, profile: str, expected: str
) -> None:
    bench, talk = Bench(backend, profile=profile), talk_of(version, window=1000)
    bench.open(talk)
    for _ in range(3):
        bench.push(talk.client("PA", bytes(900)))
        bench.push(talk.server("A"))
    before = bench.only
    (verdict,) = bench.tell((talk.client("PA", bytes(900), seq=1), expected))
    assert verdict.got == talk.client.at(901)
    assert verdict.bound == talk.client.at(2701 - 1000)
    assert "under the lower bound" in (verdict.detail or "")
    row = bench.only
    assert row.packets_orig == before.packets_orig
    assert row.invalid == int(profile == "pre-6.1")
    # Exactly the lower bound is fine.
    exact = talk.client("PA", bytes(900), seq=801)
    assert told(bench.push(exact)) == "established original ESTABLISHED"


# The same reports: acknowledgments that come late.
@both_versions
@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("linux-6.18", "established reply ESTABLISHED ack_below"),
        ("pre-6.1", "invalid - ESTABLISHED ack_below"),
    ],
)
def test_an_acknowledgment_more_than_66000_bytes_late_is_established_since_6_1(
    backend: str, version: int, profile: str, expected: str
) -> None:
    bench, talk = Bench(backend, profile=profile), talk_of(version, window=50_000)
    bench.open(talk)
    for _ in range(2):
        bench.push(talk.client("PA", bytes(40_000)))
        bench.push(talk.server("A"))
    edge = 80_001 - 66_000
    (verdict,) = bench.tell(
        (talk.server("A", ack=edge), "established reply ESTABLISHED"),
        (talk.server("A", ack=edge - 1), expected),
    )[1:]
    assert (verdict.got, verdict.bound) == (talk.client.at(edge - 1), talk.client.at(edge))


# kubernetes/kubernetes#94861, #120412
@both_versions
@pytest.mark.parametrize("side", ["client", "server"])
def test_one_direction_alone_is_new_and_never_invalid(
    backend: str, version: int, side: str
) -> None:
    bench, talk = Bench(backend), talk_of(version)
    talk.handshake()
    sender, receiver = (talk.client, talk.server)[:: 1 if side == "client" else -1]
    for number in range(1000):
        verdict = bench.push(sender("PA", bytes(700)))
        receiver("PA", bytes(900))  # is sent, but takes another way
        assert told(verdict) == "new original ESTABLISHED", number
        assert verdict.timeout == 300
    row = bench.only
    assert (row.src, row.packets_orig, row.reply_seen) == (sender.address, 1000, False)


# The same reports, where the SYN was seen.
def test_one_direction_with_its_syn_needs_gap_tolerance(backend: str) -> None:
    talk = talk_of()
    syn, _, ack = talk.handshake()
    Bench(backend).tell(
        (syn, "new original SYN_SENT"),
        (ack, "invalid - SYN_SENT transition"),
    )
    bench = Bench(backend, gap_tolerant=True)
    bench.tell((syn, "new original SYN_SENT"), (ack, "new original ESTABLISHED resynchronized"))
    for _ in range(1000):
        verdict = bench.push(talk.client("PA", bytes(700)))
        talk.server("PA", bytes(900))
        assert told(verdict) == "new original ESTABLISHED"
    assert len(bench.open_rows) == 1


# ----------------------------------------------------------------------------- the full table


# kubernetes/kubernetes#18604, NixOS/nixpkgs#12987, hackerschoice/segfault#50
@both_versions
def test_assured_connections_survive_a_scan_that_fills_the_table(
    backend: str, version: int
) -> None:
    bench = Bench(backend, max=1000, check=False)
    kept = [talk_of(version, sport=port) for port in range(10)]
    for talk in kept:
        bench.open(talk)
    scan = [talk_of(version, sport=1000 + number).client("S") for number in range(5000)]
    classes = [bench.push(packet).ct_class for packet in scan]
    bench.tracker.check()
    rows, counters = bench.open_rows, bench.tracker.counters
    assert len(rows) <= 1000
    assert [row.sport for row in rows if row.assured] == list(range(10))
    ended = bench.ended()
    assert {row.end for row in ended} == {"early_drop"}
    assert not any(row.assured for row in ended)
    inserted, refused = classes.count("new"), classes.count("invalid")
    assert inserted + refused == 5000
    assert counters["insert"] == 10 + inserted
    assert counters["drop"] == bench.tracker.reasons.get("table_full", 0) == refused
    assert counters["early_drop"] == len(ended) == 10 + inserted - len(rows)
    assert len(ended) >= 4000  # the table was never above 1000
    for talk in kept:
        assert told(bench.push(talk.client("PA", b"x"))) == "established original ESTABLISHED"


# ------------------------------------------------------------------------------ opening, closing


# cilium/cilium#11742
@both_versions
def test_a_syn_answered_by_a_reset_leaves_nothing(backend: str, version: int) -> None:
    bench, talk = Bench(backend), talk_of(version)
    (syn, reset) = bench.tell(
        (talk.client("S"), "new original SYN_SENT"),
        (talk.server("RA", seq=0, ack=1), "established reply - reset"),
    )
    assert (syn.events, reset.events) == (("new",), ("destroy",))
    assert reset.connection == syn.connection
    assert reset.timeout is None
    assert bench.open_rows == []
    assert [row.end for row in bench.ended()] == ["reset"]
    assert [event.kind for event in bench.tracker.take_events()] == ["new", "destroy"]


# cilium/cilium#1165
@both_versions
def test_every_packet_of_a_whole_connection_is_valid(backend: str, version: int) -> None:
    bench, talk = Bench(backend), talk_of(version)
    packets = talk.handshake()
    for _ in range(6):
        packets += [talk.client("PA", b"request"), talk.server("PA", bytes(1400))]
    packets.append(talk.client("A"))
    packets += [talk.client("FA"), talk.server("A"), talk.server("FA"), talk.client("A")]
    assert len(packets) == 20
    verdicts = bench.push_all(packets)
    assert [verdict.ct_class for verdict in verdicts] == ["new"] + ["established"] * 19
    assert [verdict.reason for verdict in verdicts] == [None] * 20
    assert [verdict.state for verdict in verdicts[-5:]] == [
        "ESTABLISHED",
        "FIN_WAIT",
        "CLOSE_WAIT",
        "LAST_ACK",
        "TIME_WAIT",
    ]
    assert bench.only.timeout == 120


# cilium/cilium#45863
@both_versions
def test_a_challenge_ack_after_reuse_does_not_stall_the_connection(
    backend: str, version: int
) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.tell(
        (talk.client("S"), "new original SYN_SENT"),
        (talk.server("A", seq=70_000, ack=3_000_000), "established reply SYN_SENT state"),
        (talk.client("R", seq=3_000_000), "established original CLOSE"),
        (talk.client("S"), "new original SYN_SENT reopened"),
        (talk.server("SA"), "established reply SYN_RECV"),
        (talk.client("A"), "established original ESTABLISHED"),
    )
    assert bench.only.assured


# projectcalico/calico#9605, #13880
@both_versions
def test_a_forged_reset_does_not_end_a_connection(backend: str, version: int) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    bench.push(talk.client("PA", bytes(1000)))
    bench.push(talk.server("A"))
    below, above, inexact = bench.tell(
        (talk.client("R", seq=1000), "invalid - ESTABLISHED rst_below"),
        (talk.client("R", seq=200_000), "invalid - ESTABLISHED seq_above"),
        (talk.client("R", seq=1001 + 500), "established original ESTABLISHED rst_inexact"),
    )
    assert (below.got, below.bound) == (talk.client.at(1000), talk.client.at(1001))
    assert (above.got, above.bound) == (talk.client.at(200_000), talk.client.at(66_536))
    assert (inexact.got, inexact.bound) == (talk.client.at(1501), talk.client.at(1001))
    assert bench.only.timeout == 10
    # The next packet ends that; 300 because the number of the RST counts as data on its way.
    assert bench.push(talk.client("A")).timeout == 300
    assert bench.only.invalid == 2


# The same reports: no more than a window above it is let through, and changes nothing.
@both_versions
def test_a_reset_just_above_the_window_is_ignored(backend: str, version: int) -> None:
    bench, talk = Bench(backend), talk_of(version)
    bench.open(talk)
    (verdict,) = bench.tell(
        (talk.client("R", seq=1 + 65_536), "established original ESTABLISHED overshoot")
    )
    assert (verdict.got, verdict.bound, verdict.timeout) == (2, 65_535, 432_000)
    assert bench.only.packets_orig == 2


# The same reports: which timeout such a reset leaves differs between kernels.
def test_an_inexact_reset_leaves_300_s_in_6_12(backend: str) -> None:
    bench, talk = Bench(backend, rst_inexact_timeout="unacknowledged"), talk_of()
    bench.open(talk)
    verdict = bench.push(talk.client("R", seq=500))
    assert (told(verdict), verdict.timeout) == (
        "established original ESTABLISHED rst_inexact",
        300,
    )


# ------------------------------------------------------------------------------- window scaling


# google/gvisor#6734, opnsense/core#10346
@both_versions
def test_scaled_windows_let_100_kb_be_in_flight(backend: str, version: int) -> None:
    scale = tcp_options(mss=1460, wscale=7)
    bench, talk = Bench(backend), talk_of(version, window=1000)  # that is 128,000 bytes
    bench.open(talk, client=scale, server=scale)
    bench.push(talk.server("A"))
    for _ in range(100):
        verdict = bench.push(talk.client("PA", bytes(1000)))
        assert told(verdict) == "established original ESTABLISHED"
    assert told(bench.push(talk.server("A"))) == "established reply ESTABLISHED"


# The same reports
@both_versions
@pytest.mark.parametrize("side", ["client", "server"])
def test_scaling_that_one_side_offers_is_not_used(backend: str, version: int, side: str) -> None:
    bench, talk = Bench(backend), talk_of(version, window=1000)
    bench.open(talk, **{side: tcp_options(wscale=7)})
    bench.push(talk.server("A"))
    bench.tell(
        (talk.client("PA", bytes(1000)), "established original ESTABLISHED"),
        (talk.client("PA", bytes(1000)), "established original ESTABLISHED"),
        (talk.client("PA", bytes(1000)), "invalid - ESTABLISHED seq_above"),
    )


# --------------------------------------------------------------------------- fragments, queries


# CN-TU/go-flows#22, CAIDA/corsaro#12, ntop/ntopng#8744, phaag/nfdump#300, ntop/ntopng#2359
@both_versions
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_fragmented_datagram_is_one_flow_with_its_ports_and_all_its_bytes(
    backend: str, version: int, order: tuple[int, ...]
) -> None:
    bench = Bench(backend)
    datagram = udp(pattern(2000), sport=4000, dport=5000, **ends(version))
    whole = ip(datagram, UDP, version)
    pieces = fragment(whole, [800, 800])
    verdicts = [bench.push(pieces[number]) for number in order]
    assert [verdict.ct_class for verdict in verdicts] == ["held", "held", "new"]
    row = bench.only
    assert (row.protocol, row.sport, row.dport) == (17, 4000, 5000)
    assert (row.packets_orig, row.bytes_orig, row.fragments) == (1, len(whole), 1)


# The same reports
@both_versions
def test_orphaned_fragments_are_no_flow_and_are_told_with_their_reason(
    backend: str, version: int
) -> None:
    bench = Bench(backend)
    for number in range(5):
        datagram = udp(pattern(2000), sport=4000 + number, dport=5000, **ends(version))
        fields = {"id": number} if version == 4 else {}
        pieces = fragment(ip(datagram, UDP, version, **fields), [800, 800], id=number)
        assert bench.push(pieces[1]).ct_class == "held"
    bench.advance(61)
    assert bench.open_rows == []
    assert dict(bench.tracker.orphans) == {"timeout": 5}
    seen = bench.tracker.fragments
    assert (seen["seen"], seen["complete"], seen["incomplete"]) == (5, 0, 5)


# zeek/zeek#5830
@both_versions
def test_an_echo_reply_before_its_request_is_invalid(backend: str, version: int) -> None:
    def echo(*, reply: bool) -> bytes:
        if version == 4:
            return ip(icmp_query(0 if reply else 8), ICMP, reply=reply)
        kind = 129 if reply else 128
        return ip(icmpv6_query(kind, **ends(6, reply=reply)), ICMPV6, 6, reply=reply)

    bench = Bench(backend)
    bench.tell(
        (echo(reply=True), "invalid - - unsolicited"),
        (echo(reply=False), "new original -"),
        (echo(reply=True), "established reply -"),
    )
    row = bench.only
    assert (row.src, row.icmp_type, row.icmp_id) == (
        ends(version)["src"],
        8 if version == 4 else 128,
        1,
    )
