"""Every cell of the SCTP state table, reached by packets; the table is data of this test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fragtrack.testing import (
    sctp,
    sctp_abort,
    sctp_chunk,
    sctp_cookie_ack,
    sctp_cookie_echo,
    sctp_data,
    sctp_heartbeat,
    sctp_init,
    sctp_init_ack,
    sctp_sack,
    sctp_shutdown,
    sctp_shutdown_ack,
    sctp_shutdown_complete,
)
from tests.tracking import SCTP, Bench, ip, told

if TYPE_CHECKING:
    from collections.abc import Callable

STATES = {
    "NO": "NONE",
    "CL": "CLOSED",
    "CW": "COOKIE_WAIT",
    "CE": "COOKIE_ECHOED",
    "ES": "ESTABLISHED",
    "SS": "SHUTDOWN_SENT",
    "SR": "SHUTDOWN_RECD",
    "SA": "SHUTDOWN_ACK_SENT",
    "HS": "HEARTBEAT_SENT",
}
COLUMNS = "NO CL CW CE ES SS SR SA HS"
ORIGINAL = """
init                CL CL CW CE ES CL CL SA CW
init_ack            CL CL CW CE ES SS SR SA CL
abort               IV CL CL CL CL CL CL CL CL
shutdown            CL CL CW CE SS SS SR SA CL
shutdown_ack        SA CL CW CE ES SA SA SA SA
error               CL CL CW CE ES SS SR SA CL
cookie_echo         CL CL CE CE ES SS SR SA CL
cookie_ack          IV CL CW ES ES SS SR SA CL
shutdown_complete   IV CL CW CE ES SS SR CL CL
heartbeat           HS CL CW CE ES SS SR SA HS
heartbeat_ack       CL CL CW CE ES SS SR SA HS
"""
REPLY = """
init                -- CL CW CE ES SS SR SA IV
init_ack            -- CW CW CE ES SS SR SA IV
abort               -- CL CL CL CL CL CL CL IV
shutdown            -- CL CW CE SR SS SR SA IV
shutdown_ack        -- CL CW CE ES SA SA SA IV
error               -- CL CW CL ES SS SR SA IV
cookie_echo         -- CL CE CE ES SS SR SA IV
cookie_ack          -- CL CW ES ES SS SR SA IV
shutdown_complete   -- CL CW CE ES SS SR CL IV
heartbeat           -- CL CW CE ES SS SR SA HS
heartbeat_ack       -- CL CW CE ES SS SR SA ES
"""
CLIENT_TAG, SERVER_TAG = 0xC11E, 0x5E12
CHUNKS: dict[str, Callable[[int], bytes]] = {
    "init": sctp_init,
    "init_ack": sctp_init_ack,
    "abort": lambda _: sctp_abort(),
    "shutdown": lambda _: sctp_shutdown(),
    "shutdown_ack": lambda _: sctp_shutdown_ack(),
    "error": lambda _: sctp_chunk(9, 0, b"\0\x01\0\x08\0\x01\0\0"),
    "cookie_echo": lambda _: sctp_cookie_echo(),
    "cookie_ack": lambda _: sctp_cookie_ack(),
    "shutdown_complete": lambda _: sctp_shutdown_complete(),
    "heartbeat": lambda _: sctp_heartbeat(),
    "heartbeat_ack": lambda _: sctp_heartbeat(ack=True),
    "data": lambda _: sctp_data(b"x"),
    "sack": lambda _: sctp_sack(),
}
HANDSHAKE = "c:init s:init_ack c:cookie_echo s:cookie_ack"
ROADS = {
    "NO": "",
    "CL": f"{HANDSHAKE} c:abort",
    "CW": "c:init s:init_ack",
    "CE": "c:init s:init_ack c:cookie_echo",
    "ES": HANDSHAKE,
    "SS": f"{HANDSHAKE} c:shutdown",
    "SR": f"{HANDSHAKE} s:shutdown",
    "SA": f"{HANDSHAKE} c:shutdown s:shutdown_ack",
    "HS": "c:heartbeat",
}
TIMEOUTS = {"CL": 10, "CW": 3, "CE": 3, "ES": 210, "SS": 3, "SR": 3, "SA": 3, "HS": 30}


def send(step: str, *, tag: int | None = None) -> bytes:
    """Build a chunk of a side, with the tag of the receiver; an INIT has tag 0."""
    side, kind = step.split(":")
    own, other = (CLIENT_TAG, SERVER_TAG)[:: 1 if side == "c" else -1]
    ports = {"sport": 1, "dport": 2} if side == "c" else {"sport": 2, "dport": 1}
    if tag is None:
        tag = 0 if kind == "init" else other
    return ip(sctp(CHUNKS[kind](own), vtag=tag, **ports), SCTP, reply=side == "s")


def unknown_tag(side: str, kind: str, state: str) -> bool:
    """Tell whether nobody has said yet which tag this chunk must have: then it is 0."""
    return state == "NO" or (state == "HS" and side == "s" and not kind.startswith("heartbeat"))


def drive(bench: Bench, state: str) -> None:
    for step in ROADS[state].split():
        verdict = bench.push(send(step))
        assert verdict.ct_class != "invalid"
    if ROADS[state]:
        assert (bench.only.state, bench.only.timeout) == (STATES[state], TIMEOUTS[state])


def cells() -> list[tuple[str, str, str, str]]:
    found = []
    for side, table in (("c", ORIGINAL), ("s", REPLY)):
        for line in table.split("\n")[1:-1]:
            kind, *values = line.split()
            for state, value in zip(COLUMNS.split(), values, strict=True):
                if value != "--":  # without an entry every packet is in the original direction
                    found.append((side, kind, state, value))
    assert len(found) == 11 * 17
    return found


@pytest.mark.parametrize(("side", "kind", "state", "value"), cells())
def test_cell(backend: str, side: str, kind: str, state: str, value: str) -> None:
    bench = Bench(backend)
    drive(bench, state)
    tag = 0 if unknown_tag(side, kind, state) else None
    verdict = bench.push(send(f"{side}:{kind}", tag=tag))
    held = "-" if state == "NO" else STATES[state]
    if value == "IV":
        assert told(verdict) == f"invalid - {held} chunk_state"
        return
    answered = side == "s" or state not in {"NO", "HS"}
    direction = "reply" if side == "s" else "original"
    assert told(verdict) == f"{'established' if answered else 'new'} {direction} {STATES[value]}"


@pytest.mark.parametrize("kind", ["data", "sack"])
def test_what_the_table_does_not_name_changes_no_state(backend: str, kind: str) -> None:
    for state in ("CW", "CE", "ES", "SS", "SR", "SA"):
        bench = Bench(backend)
        drive(bench, state)
        assert told(bench.push(send(f"c:{kind}"))) == f"established original {STATES[state]}"
    assert Bench(backend).push(send(f"c:{kind}")).ct_class == "invalid"


def test_an_association_is_assured_once_it_is_established(backend: str) -> None:
    bench = Bench(backend)
    assured = [bench.push(send(step)).assured for step in HANDSHAKE.split()]
    assert assured == [False, False, False, True]
    drive_down = ["c:shutdown", "s:shutdown_ack", "c:shutdown_complete"]
    assert [bench.push(send(step)).state for step in drive_down] == [
        "SHUTDOWN_SENT",
        "SHUTDOWN_ACK_SENT",
        "CLOSED",
    ]
    bench.advance(10)
    assert [(row.end, row.assured) for row in bench.ended()] == [("closed", True)]


def test_an_association_that_never_was_ends_by_time(backend: str) -> None:
    bench = Bench(backend)
    bench.push(send("c:init"))
    bench.wait(4)
    assert bench.push(send("c:init")).timeout == 6  # a repeated INIT does not renew it
    bench.advance(6)
    assert [(row.end, row.state) for row in bench.ended()] == [("timeout", "CLOSED")]
