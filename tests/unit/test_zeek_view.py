"""The Zeek view: conn_state, history and roles, with golden rows of Zeek's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fragtrack.reference.zeek import Segment
from fragtrack.zeek import HISTORY_LIMIT, PIECES_LIMIT
from tests.zeek_talk import CLIENT, SERVER, UDP, Zeek, counts, icmp, play, udp, watch

if TYPE_CHECKING:
    from pathlib import Path


# ------------------------------------------------------------------ golden rows of Zeek's tests


@pytest.mark.parametrize(
    ("packets", "history", "state"),
    [
        ("R", "R", "OTH"),
        ("SR", "SR", "RSTOS0"),
        ("SaR", "SaR", "RSTOS0"),
        ("SaFR", "SaFR", "OTH"),
    ],
)
def test_golden_resets(packets: str, history: str, state: str) -> None:
    assert play(packets).told() == [(history, state)]


def test_golden_missing_syn() -> None:
    zeek = Zeek()
    zeek.server("SA", length=60)
    zeek.client("A", length=52)
    zeek.client("PA", 98, length=150)
    for payload in (1448, 1448, 1448, 1448, 1448, 1448, 729):
        zeek.server("A", payload, length=52 + payload)
        zeek.client("A", length=52)
    zeek.client("FA", length=52)
    zeek.server("A", length=52)
    zeek.server("FA", length=52)
    zeek.client("A", length=52)
    row = zeek.row()
    assert (row.history, row.conn_state) == ("^hADdFaf", "SF")
    assert counts(row) == (11, 670, 10, 9945)
    assert (row.orig_h, row.orig_p, row.resp_h, row.resp_p) == (
        "192.0.2.1",
        40000,
        "198.51.100.2",
        80,
    )
    assert (row.orig_bytes, row.resp_bytes, row.missed_bytes) == (98, 9417, 0)


def test_golden_retransmission_with_cut_payload() -> None:
    # Payload is claimed but not captured: to Zeek it is missing, and shows so once acknowledged.
    zeek = Zeek()
    zeek.client("S", length=64)
    zeek.server("SA", length=64)
    zeek.client("A", length=52)
    zeek.client("PA", 474, length=526, whole=False)
    zeek.server("A")
    for size in [1448] * 16 + [615]:
        zeek.server("A", size, whole=False)
    for behind in (22_000, 20_000, 16_000, 12_000, 9000, 6000, 3000):
        zeek.client("A", ack=zeek.next[1] - behind)
    zeek.client("A")
    for size in (1448, 1448, 1378):
        zeek.server("A", size, seq=zeek.next[1] - size, whole=False)
    for length in (52, 52, 52, 52, 40):
        zeek.client("A", length=length)
    zeek.client("RA")
    row = zeek.row()
    assert (row.history, row.conn_state) == ("ShADaGdgtR", "RSTO")
    assert counts(row) == (17, 1250, 22, 28961)
    assert (row.orig_bytes, row.resp_bytes, row.missed_bytes) == (474, 23783, 24257)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        (
            "zeek__pppoe-over-qinq.pcap",
            [("ShADdtaTTtFf", "SF", 273_626_833_000, 11352, 4984, 0, (44, 25283, 42, 13001))],
        ),
        (
            "zeek__retransmit-fast009.pcap",
            [("ShADaGdgtR", "RSTO", 60_991_770_000, 474, 23783, 24257, (17, 1250, 22, 28961))],
        ),
        (
            "zeek__syn-then-ack-then-rst.pcap",
            [("SaR", "RSTOS0", 461_000, 0, 0, 0, (2, 80, 1, 40))],
        ),
        (
            "zeek__handshake-reorder.pcap",
            [("^hSADadFf", "SF", 141_744_000, 136, 5007, 0, (7, 512, 7, 5379))],
        ),
    ],
)
def test_captures_with_a_known_conn_log(shared: Path, capture: str, expected: list[Any]) -> None:
    rows = [
        (
            row.history,
            row.conn_state,
            row.duration,
            row.orig_bytes,
            row.resp_bytes,
            row.missed_bytes,
            counts(row),
        )
        for row in watch(shared / "captures" / capture)
    ]
    assert rows == expected


# ------------------------------------------------------------------ states


@pytest.mark.parametrize(
    ("packets", "history", "state"),
    [
        ("S", "S", "S0"),
        ("ShA", "ShA", "S1"),
        ("ShADadFafA", "ShADadFf", "SF"),
        ("Sr", "Sr", "REJ"),
        ("ShAFa", "ShAFa", "S2"),
        ("ShAfA", "ShAf", "S3"),
        ("ShAR", "ShAR", "RSTO"),
        ("ShAr", "ShAr", "RSTR"),
        ("SR", "SR", "RSTOS0"),
        ("hr", "^hr", "RSTRH"),
        ("SF", "SF", "SH"),
        ("hf", "^hf", "SHR"),
        ("Dd", "Dd", "OTH"),
        ("h", "^h", "OTH"),
        ("ShADadFRfr", "ShADadFRfr", "SF"),  # resets behind both FINs
        ("ShAFRf", "ShAFRf", "SF"),
        ("ShAFR", "ShAFR", "RSTO"),
        ("SRr", "SRr", "REJ"),
        ("ShADRr", "ShADRr", "RSTR"),
        ("dR", "^dR", "OTH"),
    ],
)
def test_states(packets: str, history: str, state: str) -> None:
    assert play(packets).told() == [(history, state)]


@pytest.mark.parametrize(
    ("packets", "history", "state"),
    [
        ([(40000, 53, False)], "D", "S0"),
        ([(40000, 53, False), (40000, 53, True)], "Dd", "SF"),
        ([(40000, 53, True)], "^d", "SHR"),
        ([(40000, 53, True), (40000, 53, False)], "^dD", "SF"),
        ([(40000, 50000, True)], "D", "S0"),
    ],
)
def test_udp(packets: list[tuple[int, int, bool]], history: str, state: str) -> None:
    zeek = Zeek()
    for sport, dport, reply in packets:
        zeek.see(udp(sport, dport, reply=reply))
    row = zeek.row()
    assert (row.history, row.conn_state, row.proto) == (history, state, "udp")
    if len(packets) > 1:
        assert (row.orig_bytes, row.resp_bytes) == (10, 10)
    else:
        assert (row.duration, row.orig_bytes, row.resp_bytes) == (None, None, None)


def test_other_protocols() -> None:
    zeek = Zeek()
    zeek.see(Segment(4, CLIENT, SERVER, 132, 100))
    zeek.see(Segment(4, SERVER, CLIENT, 132, 60))
    row = zeek.row()
    assert (row.proto, row.ip_proto, row.orig_p, row.resp_p) == ("unknown_transport", 132, 132, 132)
    assert (row.conn_state, row.history, row.orig_bytes) == ("OTH", None, 0)
    assert counts(row) == (1, 100, 1, 60)


# ------------------------------------------------------------------ history


def test_letters_once_a_side() -> None:
    assert play("ShAADDaadd").told() == [("ShADad", "S1")]


def test_controls_again_only_with_another_number() -> None:
    zeek = play("ShA")
    for seq in (6000, 6000, 6001):
        zeek.server("RA", seq=seq)
    assert zeek.told() == [("ShArr", "RSTR")]
    zeek = play("ShA")
    zeek.client("FA", seq=1001)
    zeek.client("FA", seq=1001)
    zeek.client("FA", 10, seq=1001)
    assert zeek.told() == [("ShAFF", "S2")]


def test_a_syn_ack_again_with_another_number() -> None:
    # Until the close the new number is believed, and is the first one again.
    zeek = play("ShA")
    zeek.server("SA", seq=9000)
    assert zeek.told() == [("ShA", "S1")]
    zeek = play("ShAf")
    zeek.server("SA", seq=9000)
    assert zeek.told() == [("ShAfh", "S3")]
    zeek = Zeek(dport=8443)
    zeek.server("SA", seq=1)
    zeek.server("SA", seq=9000)
    row = zeek.row()
    assert (row.history, row.orig_bytes, row.conn_state) == ("H", 0, "OTH")


def test_impossible_flags() -> None:
    zeek = play("ShA")
    for flags in ("FR", "FR", "FAR"):
        zeek.server(flags)
    assert zeek.told() == [("ShAi", "RSTR")]
    zeek = Zeek()
    for flags in ("SF", "SR"):
        zeek.client(flags)
    assert [history for history, _ in zeek.told()] == ["Q", "Q"]


def test_scaled_letters() -> None:
    zeek = play("ShAD")
    for _ in range(100):
        zeek.client("PA", 100, seq=1001)
        zeek.server("A", window=0)
    # T and w at the 1st, 10th and 100th; "a" once.
    history = zeek.row().history or ""
    assert (history.count("T"), history.count("w"), history.count("a")) == (3, 3, 1)
    zeek = Zeek()
    for _ in range(10):
        zeek.see(udp(40000, 53, bad_checksum=True))
    row = zeek.row()
    assert (row.history, row.conn_state, row.orig_pkts, row.duration) == ("CC", "OTH", 10, None)


def test_a_zero_window_means_nothing_behind_a_reset_or_the_fin_of_the_peer() -> None:
    zeek = play("ShAf")
    zeek.client("A", window=0)
    zeek.client("R", window=0)
    zeek.client("A", window=0)
    assert zeek.told() == [("ShAfR", "RSTO")]


def test_a_gap() -> None:
    zeek = play("ShA")
    zeek.client("PA", 100)
    zeek.next[0] += 500  # never captured
    zeek.client("PA", 100)
    zeek.server("A")
    row = zeek.row()
    assert (row.history, row.missed_bytes, row.orig_bytes) == ("ShADaG", 500, 700)


def test_a_gap_that_a_close_shows() -> None:
    zeek = play("ShAD")
    zeek.next[0] += 30
    zeek.client("FA")  # waits for the data in front of it
    zeek.wait(2)
    zeek.server("FA")
    zeek.client("A")
    row = zeek.row()
    assert (row.history, row.missed_bytes, row.conn_state) == ("ShADFfG", 30, "SF")
    assert (row.orig_bytes, row.resp_bytes) == (130, 0)


def test_a_gap_of_a_connection_begun_late_is_not_told() -> None:
    zeek = play("Dd")
    zeek.next[0] += 30
    zeek.client("PA", 1)
    zeek.server("A")
    row = zeek.row()
    assert (row.history, row.missed_bytes, row.orig_bytes) == ("Dda", 0, 131)


def test_a_one_sided_stream_is_not_held() -> None:
    zeek = play("ShA")
    for _ in range(20):
        zeek.client("PA", 1400)
    zeek.next[0] += 1400
    for _ in range(20):
        zeek.client("PA", 1400)
    zeek.server("A")
    row = zeek.row()
    # Too much lies beyond the hole, and nothing was acknowledged: no gap is looked for.
    assert (row.history, row.missed_bytes) == ("ShADa", 0)


def test_a_bad_checksum_counts_nothing_of_tcp() -> None:
    zeek = Zeek()
    zeek.client("S", bad_checksum=True)
    row = zeek.row()
    assert (row.history, row.conn_state, counts(row)) == ("C", "OTH", (0, 0, 0, 0))


def test_history_is_bounded() -> None:
    zeek = Zeek()
    for seq in range(1000):
        zeek.server("R", seq=seq)
    history = zeek.row().history or ""
    assert len(history) == HISTORY_LIMIT + 1
    assert history == "^" + "r" * (HISTORY_LIMIT - 1) + "x"


def test_pieces_beyond_holes_are_bounded() -> None:
    zeek = play("ShAD")
    zeek.server("A")  # so that acknowledgments are to be expected
    for _ in range(PIECES_LIMIT + 1):
        zeek.next[0] += 10
        zeek.client("PA", 10)
    zeek.server("A")
    row = zeek.row()
    assert (row.history, row.missed_bytes) == ("ShADaX", 0)


# ------------------------------------------------------------------ roles


def test_syn_ack_first_then_data_on_ports_that_tell_nothing() -> None:
    zeek = Zeek(dport=8443)
    zeek.server("SA")
    zeek.client("A")
    zeek.client("PA", 100)
    zeek.server("PA", 50)
    row = zeek.row()
    assert (row.history, row.conn_state) == ("^hADd", "S1")
    assert (row.orig_p, row.resp_p, counts(row)) == (40000, 8443, (2, 180, 2, 130))
    assert (row.orig_bytes, row.resp_bytes) == (100, 50)


def test_only_the_server_is_captured() -> None:
    zeek = Zeek(dport=1433)
    zeek.server("SA", length=60)
    zeek.server("A")
    zeek.server("FA")
    row = zeek.row()
    assert (row.history, row.conn_state) == ("^haf", "SHR")
    assert (row.orig_p, row.resp_p, counts(row)) == (40000, 1433, (0, 0, 3, 140))


def test_a_lone_syn_ack_may_be_a_scan() -> None:
    assert play("h", dport=8443).row().orig_p == 8443
    assert play("hR", dport=8443).told() == [("Hr", "REJ")]


def test_syn_behind_its_syn_ack() -> None:
    zeek = Zeek(dport=8443)
    zeek.server("SA", ack=1001)
    zeek.client("S")
    zeek.client("A")
    zeek.client("PA", 100)
    zeek.server("A")
    row = zeek.row()
    # As in Zeek, letters in front of the ^ stand in the case of the roles they had.
    assert (row.history, row.conn_state, row.orig_p) == ("Hs^ADa", "S1", 40000)
    assert counts(row) == (3, 220, 2, 80)


@pytest.mark.parametrize(
    ("sport", "dport", "flags", "flipped"),
    [
        (40000, 80, "A", False),
        (80, 40000, "A", True),
        (80, 40000, "S", False),
        (80, 40000, "R", True),
        (80, 443, "A", True),  # both likely: the lower port is the server's
        (443, 80, "A", False),
        (80, 443, "SA", False),
    ],
)
def test_likely_ports(sport: int, dport: int, flags: str, *, flipped: bool) -> None:
    zeek = Zeek(sport=sport, dport=dport)
    zeek.client(flags)
    row = zeek.row()
    assert (row.orig_p, row.resp_p) == ((dport, sport) if flipped else (sport, dport))
    assert (row.history or "").startswith("^") == flipped
    assert counts(row) == ((0, 0, 1, 40) if flipped else (1, 40, 0, 0))


def test_a_broadcast_is_no_originator() -> None:
    zeek = Zeek()
    zeek.see(Segment(4, CLIENT, 0xFFFF_FFFF, UDP, 328, sport=67, dport=60000, payload=300))
    assert zeek.told() == [("D", "S0")]


def test_ports_are_a_setting() -> None:
    assert play("d", tcp_server_ports=frozenset()).told() == [("D", "OTH")]
    assert play("d", dport=8443, tcp_server_ports=frozenset({8443})).told() == [("^d", "OTH")]


# ------------------------------------------------------------------ ICMP


def test_icmp_request_and_reply() -> None:
    zeek = Zeek()
    zeek.see(icmp(8))
    zeek.see(icmp(0, reply=True))
    row = zeek.row()
    assert (row.proto, row.orig_p, row.resp_p, row.conn_state) == ("icmp", 8, 0, "OTH")
    assert (row.history, row.orig_bytes, row.resp_bytes) == (None, 56, 56)
    assert counts(row) == (1, 84, 1, 84)


@pytest.mark.parametrize(("version", "ask", "answer"), [(4, 8, 0), (4, 13, 14), (6, 128, 129)])
def test_icmp_reply_first(version: int, ask: int, answer: int) -> None:
    zeek = Zeek()
    zeek.see(icmp(answer, reply=True, version=version))
    zeek.see(icmp(ask, version=version))
    row = zeek.row()
    assert (row.orig_p, row.resp_p, row.history) == (ask, answer, "^")
    assert row.orig_h == ("192.0.2.1" if version == 4 else "::c000:201")
    assert counts(row) == (1, 84, 1, 84)


def test_icmp_reply_first_as_zeek_tells_it() -> None:
    zeek = Zeek(icmp_by_type=False)
    zeek.see(icmp(0, reply=True))
    row = zeek.row()
    assert (row.orig_h, row.orig_p, row.resp_p) == ("198.51.100.2", 0, 8)


def test_icmp_errors_both_ways_are_two_flows() -> None:
    zeek = Zeek()
    zeek.see(icmp(3, 1))
    zeek.see(icmp(3, 1, reply=True))
    assert [(row.orig_h, row.orig_p, row.resp_p) for row in zeek.rows()] == [
        ("192.0.2.1", 3, 1),
        ("198.51.100.2", 3, 1),
    ]


def test_a_router_advertises_unasked() -> None:
    zeek = Zeek()
    zeek.see(icmp(134, version=6))
    row = zeek.row()
    assert (row.orig_p, row.resp_p, row.history) == (134, 133, None)
