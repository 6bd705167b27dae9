"""Every cell of the TCP state table: a connection is driven into the state by packets, then asked.

The table below is that of the Linux kernel, as recorded on 6.18.44. It is data of this test; the
implementations have their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tracking import Bench, talk_of, told

if TYPE_CHECKING:
    from fragtrack.testing import Talk

STATES = {
    "NO": "NONE",
    "SS": "SYN_SENT",
    "SR": "SYN_RECV",
    "ES": "ESTABLISHED",
    "FW": "FIN_WAIT",
    "CW": "CLOSE_WAIT",
    "LA": "LAST_ACK",
    "TW": "TIME_WAIT",
    "CL": "CLOSE",
    "S2": "SYN_SENT2",
}
COLUMNS = "NO SS SR ES FW CW LA TW CL S2"
ORIGINAL = """
syn     SS  SS  IG  IG  IG  IG  IG  SS  SS  S2
synack  IV  IV  SR  IV  IV  IV  IV  IV  IV  SR
fin     IV  IV  FW  FW  LA  LA  LA  TW  CL  IV
ack     ES  IV  ES  ES  CW  CW  TW  TW  CL  IV
rst     IV  CL  CL  CL  CL  CL  CL  CL  CL  CL
none    IV  IV  IV  IV  IV  IV  IV  IV  IV  IV
"""
# Without an entry every packet is in the original direction: those cells are that table's.
REPLY = """
syn     SS  S2  IV  IV  IV  IV  IV  SS  IV  S2
synack  IV  SR  IG  IG  IG  IG  IG  IG  IG  SR
fin     IV  IV  FW  FW  LA  LA  LA  TW  CL  IV
ack     ES  IG  SR  ES  CW  CW  TW  TW  CL  IG
rst     IV  CL  CL  CL  CL  CL  CL  CL  CL  CL
none    IV  IV  IV  IV  IV  IV  IV  IV  IV  IV
"""
FLAGS = {"syn": "S", "synack": "SA", "fin": "FA", "ack": "A", "rst": "R", "none": "U"}
KINDS = {"syn": 0, "synack": 1, "fin": 2, "ack": 3, "rst": 4}
NUMBERS = {state: number for number, state in enumerate(STATES)}

# Side and flags of each packet on the way into a state.
HANDSHAKE = "c:S s:SA c:A"
ROADS = {
    "NO": "",
    "SS": "c:S",
    "SR": "c:S s:SA",
    "ES": HANDSHAKE,
    "FW": f"{HANDSHAKE} c:FA",
    "CW": f"{HANDSHAKE} c:FA s:A",
    "LA": f"{HANDSHAKE} c:FA s:A s:FA",
    "TW": f"{HANDSHAKE} c:FA s:A s:FA c:A",
    "CL": f"{HANDSHAKE} c:FA c:R",
    "S2": "c:S s:S",
}


def cells() -> list[tuple[str, str, str, str]]:
    found = []
    for side, table in (("c", ORIGINAL), ("s", REPLY)):
        for line in table.split("\n")[1:-1]:
            kind, *values = line.split()
            for state, value in zip(COLUMNS.split(), values, strict=True):
                found.append((side, kind, state, value))
    assert len(found) == 120
    return found


def send(talk: Talk, step: str) -> bytes:
    side, flags = step.split(":")
    return (talk.client if side == "c" else talk.server)(flags)


def drive(bench: Bench, talk: Talk, state: str) -> None:
    verdict = None
    for step in ROADS[state].split():
        verdict = bench.push(send(talk, step))
    if verdict is not None:
        assert verdict.state == STATES[state]


def reply_seen(state: str) -> bool:
    return state not in {"NO", "SS"}


def expected(side: str, kind: str, state: str, value: str) -> str:
    """Say what must be `told`, after the rules that the documents give for each sort of cell."""
    direction = "reply" if side == "s" and state != "NO" else "original"
    ct_class = "established" if direction == "reply" or reply_seen(state) else "new"
    held = "-" if state == "NO" else STATES[state]
    if kind == "none":
        return f"invalid - {held} flags"  # no packet of this sort gets past the look at the flags
    if value == "IV":
        return f"invalid - {held} {'no_entry' if state == 'NO' else 'transition'}"
    if value == "IG":
        return f"{ct_class} {direction} {held} state"
    if value == "SS" and state in {"TW", "CL"}:
        return "new original SYN_SENT reopened"  # in a new connection, which may be turned round
    if kind == "rst" and not reply_seen(state):
        return f"{ct_class} {direction} - reset"  # deleted at once
    return f"{ct_class} {direction} {STATES[value]}"


@pytest.mark.parametrize(("side", "kind", "state", "value"), cells())
def test_cell(backend: str, side: str, kind: str, state: str, value: str) -> None:
    bench, talk = Bench(backend), talk_of()
    drive(bench, talk, state)
    verdict = bench.push(send(talk, f"{side}:{FLAGS[kind]}"))
    assert told(verdict) == expected(side, kind, state, value)
    if verdict.reason in {"no_entry", "transition", "state"}:
        bound = None if state == "NO" else NUMBERS[state]
        assert (verdict.got, verdict.bound) == (KINDS[kind], bound)
    if verdict.reason in {"reopened", "reset"}:
        assert verdict.bound == NUMBERS[state]


@pytest.mark.parametrize("state", [state for state in STATES if state != "NO"])
def test_a_refused_or_ignored_packet_changes_neither_state_nor_timeout(
    backend: str, state: str
) -> None:
    for side, kind, where, value in cells():
        if where != state or (value not in {"IV", "IG"} and kind != "none"):
            continue
        bench, talk = Bench(backend), talk_of()
        drive(bench, talk, state)
        before = bench.only
        verdict = bench.push(send(talk, f"{side}:{FLAGS[kind]}"))
        after = bench.only
        assert (after.state, after.timeout) == (before.state, before.timeout)
        assert (verdict.state, verdict.timeout) == (before.state, before.timeout)
        assert (after.packets_orig, after.packets_reply) == (
            before.packets_orig,
            before.packets_reply,
        )
        assert after.assured == before.assured
        # An ignored answer still was one.
        assert after.reply_seen == (before.reply_seen or (value == "IG" and side == "s"))


TIMEOUTS = {
    "SS": 120,
    "SR": 60,
    "ES": 432_000,
    "FW": 120,
    "CW": 60,
    "LA": 30,
    "TW": 120,
    "CL": 10,
    "S2": 120,
}


@pytest.mark.parametrize("state", TIMEOUTS)
def test_timeout_of_a_state(backend: str, state: str) -> None:
    bench, talk = Bench(backend), talk_of()
    drive(bench, talk, state)
    assert bench.only.timeout == TIMEOUTS[state]


def test_the_simultaneous_open_ends_established(backend: str) -> None:
    # The hidden flag: after SYN_SENT2 an ACK of the other side completes what else stays SYN_RECV.
    talk = talk_of()
    Bench(backend).tell(
        (talk.client("S"), "new original SYN_SENT"),
        (talk.server("S"), "established reply SYN_SENT2"),
        (talk.server("SA"), "established reply SYN_RECV"),
        (talk.server("A"), "established reply ESTABLISHED"),
    )
    talk = talk_of()
    Bench(backend).tell(
        (talk.client("S"), "new original SYN_SENT"),
        (talk.server("SA"), "established reply SYN_RECV"),
        (talk.server("A"), "established reply SYN_RECV"),
    )


def test_a_syn_is_ignored_where_the_other_side_reset_the_connection(backend: str) -> None:
    talk = talk_of()
    bench = Bench(backend)
    bench.open(talk)
    bench.tell(
        (talk.server("R"), "established reply CLOSE"),
        (talk.client("S"), "established original CLOSE state"),
    )


def test_a_syn_reopens_where_its_own_side_reset_the_connection(backend: str) -> None:
    talk = talk_of()
    bench = Bench(backend)
    bench.open(talk)
    first = bench.push(talk.client("R"))
    assert told(first) == "established original CLOSE"
    second = bench.push(talk.client("S"))
    assert told(second) == "new original SYN_SENT reopened"
    assert second.connection != first.connection
    assert second.events == ("destroy", "new")


def test_the_server_turns_the_connection_round_when_it_reopens(backend: str) -> None:
    bench, talk = Bench(backend), talk_of()
    drive(bench, talk, "TW")
    bench.push(talk.server("S"))
    row = bench.only
    assert (row.src, row.sport, row.dst, row.dport) == (
        talk.server.address,
        talk.server.port,
        talk.client.address,
        talk.client.port,
    )


def test_a_synack_that_answers_an_ignored_syn_starts_over(backend: str) -> None:
    bench, talk = Bench(backend), talk_of()
    bench.open(talk)
    talk.client.restart(9_000_000)
    talk.server.restart(77_000_000)
    bench.tell(
        (talk.client("S"), "established original ESTABLISHED state"),
        (talk.server("SA"), "established reply SYN_RECV"),
        (talk.client("A"), "established original ESTABLISHED"),
    )
    assert bench.only.assured


def test_the_challenge_ack_is_not_the_ack_of_the_fin(backend: str) -> None:
    bench, talk = Bench(backend), talk_of()
    drive(bench, talk, "LA")
    challenge = talk.server("A", seq=2, ack=2)
    bench.tell(
        (talk.client("S", seq=500), "established original LAST_ACK state"),
        (challenge, "established reply LAST_ACK challenge_ack"),
        (challenge, "established reply TIME_WAIT"),
    )
