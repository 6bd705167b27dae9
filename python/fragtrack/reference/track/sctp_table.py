"""The SCTP state table, chunk types and timeouts (``nf_conntrack_proto_sctp.c``)."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from fragtrack.verdicts import SCTP_STATES

if TYPE_CHECKING:
    from fragtrack.reference.track.finding import Way
    from fragtrack.track_config import TrackConfig

DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, SHUTDOWN, SHUTDOWN_ACK = range(9)
ERROR, COOKIE_ECHO, COOKIE_ACK, ECN_ECHO, CWR, SHUTDOWN_COMPLETE = range(9, 15)


class State(IntEnum):
    """State of an association (``enum sctp_conntrack``)."""

    NONE = 0
    CLOSED = 1
    COOKIE_WAIT = 2
    COOKIE_ECHOED = 3
    ESTABLISHED = 4
    SHUTDOWN_SENT = 5
    SHUTDOWN_RECD = 6
    SHUTDOWN_ACK_SENT = 7
    HEARTBEAT_SENT = 8


CLOSING: Final = frozenset((State.SHUTDOWN_SENT, State.SHUTDOWN_RECD, State.SHUTDOWN_ACK_SENT))
"""States that may give way in a full table (``sctp_can_early_drop``)."""

NAMES: Final[dict[str, State | None]] = {
    "NO": State.NONE,
    "CL": State.CLOSED,
    "CW": State.COOKIE_WAIT,
    "CE": State.COOKIE_ECHOED,
    "ES": State.ESTABLISHED,
    "SS": State.SHUTDOWN_SENT,
    "SR": State.SHUTDOWN_RECD,
    "SA": State.SHUTDOWN_ACK_SENT,
    "HS": State.HEARTBEAT_SENT,
    "IV": None,
}

COLUMNS: Final = "                NO CL CW CE ES SS SR SA HS"
ORIGINAL: Final = """
INIT              CL CL CW CE ES CL CL SA CW
INIT_ACK          CL CL CW CE ES SS SR SA CL
ABORT             CL CL CL CL CL CL CL CL CL
SHUTDOWN          CL CL CW CE SS SS SR SA CL
SHUTDOWN_ACK      SA CL CW CE ES SA SA SA SA
ERROR             CL CL CW CE ES SS SR SA CL
COOKIE_ECHO       CL CL CE CE ES SS SR SA CL
COOKIE_ACK        CL CL CW ES ES SS SR SA CL
SHUTDOWN_COMPLETE CL CL CW CE ES SS SR CL CL
HEARTBEAT         HS CL CW CE ES SS SR SA HS
HEARTBEAT_ACK     CL CL CW CE ES SS SR SA HS
"""
REPLY: Final = """
INIT              IV CL CW CE ES SS SR SA IV
INIT_ACK          IV CW CW CE ES SS SR SA IV
ABORT             IV CL CL CL CL CL CL CL IV
SHUTDOWN          IV CL CW CE SR SS SR SA IV
SHUTDOWN_ACK      IV CL CW CE ES SA SA SA IV
ERROR             IV CL CW CL ES SS SR SA IV
COOKIE_ECHO       IV CL CE CE ES SS SR SA IV
COOKIE_ACK        IV CL CW ES ES SS SR SA IV
SHUTDOWN_COMPLETE IV CL CW CE ES SS SR CL IV
HEARTBEAT         IV CL CW CE ES SS SR SA HS
HEARTBEAT_ACK     IV CL CW CE ES SS SR SA ES
"""
"""The state that follows, by chunk (rows) and state (columns): ``sctp_conntracks``."""

TYPES: Final = {
    "INIT": INIT,
    "INIT_ACK": INIT_ACK,
    "ABORT": ABORT,
    "SHUTDOWN": SHUTDOWN,
    "SHUTDOWN_ACK": SHUTDOWN_ACK,
    "ERROR": ERROR,
    "COOKIE_ECHO": COOKIE_ECHO,
    "COOKIE_ACK": COOKIE_ACK,
    "SHUTDOWN_COMPLETE": SHUTDOWN_COMPLETE,
    "HEARTBEAT": HEARTBEAT,
    "HEARTBEAT_ACK": HEARTBEAT_ACK,
}


def _read(table: str) -> dict[int, tuple[State | None, ...]]:
    rows = (line.split() for line in table.split("\n") if line)
    return {TYPES[name]: tuple(NAMES[cell] for cell in cells) for name, *cells in rows}


TABLES: Final = (_read(ORIGINAL), _read(REPLY))


def next_state(way: Way, state: State, chunk: int) -> State | None:
    """Look a chunk up; None if it is not allowed (``sctp_new_state``).

    DATA, SACK and others do not change the state.
    """
    row = TABLES[way].get(chunk)
    return state if row is None else row[state]


def state_timeout(state: State, config: TrackConfig) -> int:
    """Return the timeout of a state, ns."""
    if state is State.NONE:
        return 0
    return config.nanoseconds(f"sctp_timeout_{SCTP_STATES[state].lower()}")
