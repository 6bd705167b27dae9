"""What became of a TCP connection, in one word of conn.log."""

from __future__ import annotations

import re
from typing import Final

from fragtrack.reference.zeek.endpoint import State

ABORTED: Final = re.compile(r"\^?S[^HAFGIQ]*R.*")
"""Histories of a SYN that its sender gave up, having done nothing else before."""
UNSEEN: Final = frozenset({State.INACTIVE, State.PARTIAL})
OPENING: Final = frozenset({State.SYN_SENT, State.SYN_ACK_SENT})


def conn_state(orig: State, resp: State, history: str, payload: int) -> str:
    """Name the state of a connection.

    Parameters
    ----------
    orig, resp : State
        States of originator and responder.
    history : str
        The letters.
    payload : int
        Bytes of payload, of both sides together.
    """
    match orig, resp:
        case _, State.RESET:
            if orig in OPENING or (orig == State.RESET and not payload):
                return "REJ"
            return "RSTRH" if orig in UNSEEN else "RSTR"
        case State.RESET, _:
            if resp not in UNSEEN:
                return "RSTO"
            return "RSTOS0" if ABORTED.fullmatch(history) else "OTH"
        case State.CLOSED, State.CLOSED:
            return "SF"
        case State.CLOSED, _:
            return "SH" if resp in UNSEEN else "S2"
        case _, State.CLOSED:
            return "SHR" if orig in UNSEEN else "S3"
        case State.SYN_SENT, State.INACTIVE:
            return "S0"
        case State.ESTABLISHED, State.ESTABLISHED:
            return "S1"
        case _:
            return "OTH"
