"""The TCP states, what follows them, and their timeouts (``nf_conntrack_proto_tcp.c``)."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final

from fragtrack.verdicts import TCP_STATES

if TYPE_CHECKING:
    from fragtrack.track_config import TrackConfig


class State(IntEnum):
    """State of a connection (``enum tcp_conntrack``)."""

    NONE = 0
    SYN_SENT = 1
    SYN_RECV = 2
    ESTABLISHED = 3
    FIN_WAIT = 4
    CLOSE_WAIT = 5
    LAST_ACK = 6
    TIME_WAIT = 7
    CLOSE = 8
    SYN_SENT2 = 9


class Mark(Enum):
    """What the table says of a segment that leads to no state."""

    IGNORE = "ignore"
    INVALID = "invalid"


Cell = State | Mark

NAMES: Final[dict[str, Cell]] = {
    "SS": State.SYN_SENT,
    "SR": State.SYN_RECV,
    "ES": State.ESTABLISHED,
    "FW": State.FIN_WAIT,
    "CW": State.CLOSE_WAIT,
    "LA": State.LAST_ACK,
    "TW": State.TIME_WAIT,
    "CL": State.CLOSE,
    "S2": State.SYN_SENT2,
    "IG": Mark.IGNORE,
    "IV": Mark.INVALID,
}

COLUMNS: Final = "        NO SS SR ES FW CW LA TW CL S2"
ORIGINAL: Final = """
SYN     SS SS IG IG IG IG IG SS SS S2
SYNACK  IV IV SR IV IV IV IV IV IV SR
FIN     IV IV FW FW LA LA LA TW CL IV
ACK     ES IV ES ES CW CW TW TW CL IV
RST     IV CL CL CL CL CL CL CL CL CL
NONE    IV IV IV IV IV IV IV IV IV IV
"""
REPLY: Final = """
SYN     IV S2 IV IV IV IV IV SS IV S2
SYNACK  IV SR IG IG IG IG IG IG IG SR
FIN     IV IV FW FW LA LA LA TW CL IV
ACK     IV IG SR ES CW CW TW TW CL IG
RST     IV CL CL CL CL CL CL CL CL CL
NONE    IV IV IV IV IV IV IV IV IV IV
"""
"""The state that follows, by class of segment (rows) and state (columns): ``tcp_conntracks``."""


def _read(table: str) -> tuple[tuple[Cell, ...], ...]:
    rows = (line.split()[1:] for line in table.split("\n") if line)
    return tuple(tuple(NAMES[name] for name in row) for row in rows)


TABLES: Final = (_read(ORIGINAL), _read(REPLY))

CLOSING: Final = frozenset(
    (State.FIN_WAIT, State.CLOSE_WAIT, State.LAST_ACK, State.TIME_WAIT, State.CLOSE)
)
"""States that may give way in a full table; any RST closes them (``tcp_can_early_drop``)."""

SYN_SENT2_TIMEOUT: Final = 120 * 1_000_000_000
"""Nanoseconds; no setting changes it."""


def state_timeout(state: State, config: TrackConfig) -> int:
    """Return the timeout of a state, ns; SYN_SENT2 follows no setting."""
    if state is State.SYN_SENT2:
        return SYN_SENT2_TIMEOUT
    return config.nanoseconds(f"tcp_timeout_{TCP_STATES[state].lower()}")
