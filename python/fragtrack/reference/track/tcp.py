"""The TCP state machine (``nf_conntrack_proto_tcp.c``): the tables, and the cases around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from fragtrack.reference.track import options, window
from fragtrack.reference.track.finding import Finding, Handled, TrackReason, Way
from fragtrack.reference.track.segment import Kind, Segment
from fragtrack.reference.track.sequence import before
from fragtrack.reference.track.tcp_table import CLOSING, TABLES, Cell, Mark, State, state_timeout
from fragtrack.reference.track.window import Side, Tcp

if TYPE_CHECKING:
    from collections.abc import Callable

    from fragtrack.reference.track.flow import Flow
    from fragtrack.track_config import TrackConfig

LONG: Final = 120 * 1_000_000_000
"""Time left, ns, that two invalid FINs or RSTs may cut."""


# ---------------------------------------------------------------------------- a new connection


def open_connection(segment: Segment, config: TrackConfig) -> Tcp | Finding:
    """Set up the entry of a segment without one (``tcp_new``), or say why there is none."""
    first = TABLES[Way.ORIGINAL][segment.kind][State.NONE]
    if first is State.SYN_SENT:
        tcp = Tcp()
        window.first_syn(tcp.sides[Way.ORIGINAL], segment)
        return tcp
    if first is Mark.INVALID:
        return Finding(TrackReason.no_entry, int(segment.kind))
    if not config.tcp_loose:
        return Finding(TrackReason.not_loose)
    return window.pick_up(segment)


# ------------------------------------------------------------------------------ every segment


@dataclass(slots=True)
class Move:
    """A segment on its way through the machine.

    Attributes
    ----------
    flow, tcp, way, segment
        The connection, its TCP state, direction and segment.
    old : State
        State it comes from. The resynchronization by a SYN/ACK makes it SYN_SENT.
    new : Cell
        State it goes to, or that the table ignores it or calls it invalid.
    now : int
        The clock, ns.
    in_window : bool
        No window test is needed.
    remark : Finding or None
        What is to be said if it is accepted.
    """

    flow: Flow
    tcp: Tcp
    way: Way
    segment: Segment
    config: TrackConfig
    now: int
    old: State
    new: Cell
    in_window: bool = False
    remark: Finding | None = None

    @property
    def sender(self) -> Side:
        """What is known of the side that sent the segment."""
        return self.tcp.sides[self.way]

    @property
    def receiver(self) -> Side:
        """What is known of the other side."""
        return self.tcp.sides[self.way.other]

    @property
    def proven(self) -> bool:
        """Whether it is ESTABLISHED and ASSURED (``nf_conntrack_tcp_established``)."""
        return self.tcp.state is State.ESTABLISHED and self.flow.assured

    def last_was(self, kind: Kind, way: Way) -> bool:
        """Tell whether the last segment remembered was of this class and direction."""
        return self.tcp.last.kind is kind and self.tcp.last.way is way


def handle(
    flow: Flow, tcp: Tcp, way: Way, segment: Segment, config: TrackConfig, *, now: int
) -> Handled:
    """Take a segment of a connection (``nf_conntrack_tcp_packet``)."""
    old = tcp.state
    move = Move(flow, tcp, way, segment, config, now, old, TABLES[way][segment.kind][old])
    for case in CASES:
        if case.new is move.new:
            handled = case.rule(move)
            if handled is not None:
                return handled
    if not move.in_window:
        refused = _window(move)
        if refused is not None:
            return refused
    return _accept(move)


# ------------------------------------------------------------------ cases before the window test


def reopen(move: Move) -> Handled | None:
    """Let a SYN begin a new connection where one is over."""
    if move.old < State.TIME_WAIT or move.old is State.SYN_SENT2:
        return None
    closed = (move.sender.flags | move.receiver.flags) & window.CLOSE_INIT
    if closed or move.last_was(Kind.RST, move.way):
        return Handled("repeat", Finding(TrackReason.reopened, bound=int(move.old)))
    move.new = Mark.IGNORE
    return None


def resynchronize(move: Move) -> Handled | None:
    """Start over with a SYN/ACK that acknowledges an ignored SYN: both sides know better."""
    last, segment = move.tcp.last, move.segment
    answers = segment.kind is Kind.SYNACK and move.last_was(Kind.SYN, move.way.other)
    if not answers or segment.ack != last.end:
        return None
    last.flags &= ~window.CHALLENGE_ACK
    move.old, move.new = State.SYN_SENT, State.SYN_RECV
    opener = move.receiver
    move.tcp.sides[last.way] = Side(
        last.end, last.end, max(last.window, 1), opener.maxack, last.scale, last.flags
    )
    move.tcp.sides[move.way] = Side(flags=move.sender.flags & window.BE_LIBERAL)
    return None


def ignore(move: Move) -> Handled | None:
    """Let it pass and remember it: the other side will say whether it means anything."""
    last, segment = move.tcp.last, move.segment
    last.kind, last.way = segment.kind, move.way
    last.seq, last.end, last.window = segment.seq, segment.end, segment.window
    if segment.kind is Kind.SYN and move.way is Way.ORIGINAL:
        offered = options.offer(segment.options)
        last.scale, last.flags = offered.scale or 0, 0
        if offered.scale is not None:
            last.flags |= window.WINDOW_SCALE
        if offered.sack:
            last.flags |= window.SACK_PERMITTED
        if move.old is State.LAST_ACK:
            last.flags |= window.CHALLENGE_ACK
    if segment.kind is Kind.ACK and move.way is Way.REPLY and move.old is State.SYN_SENT:
        last.ack = segment.ack
    return Handled("ignore", _of_table(TrackReason.state, move))


def bridge(move: Move) -> Handled | None:
    """Take an ACK behind a SYN whose SYN/ACK was not captured, if `gap_tolerant`."""
    third = move.way is Way.ORIGINAL and move.segment.kind is Kind.ACK
    if not (move.config.gap_tolerant and third and move.old is State.SYN_SENT):
        return None
    if move.segment.seq != move.sender.end:
        return None
    move.remark = _of_table(TrackReason.resynchronized, move)
    fresh = window.pick_up(move.segment)
    move.tcp.sides, move.tcp.last, move.tcp.retrans = fresh.sides, fresh.last, fresh.retrans
    move.new = State.ESTABLISHED
    return None


def forbidden(move: Move) -> Handled | None:
    """Refuse what the table does not allow."""
    return Handled("invalid", _of_table(TrackReason.transition, move))


def challenge_ack(move: Move) -> Handled | None:
    """Tell the answer to a SYN that was ignored in LAST_ACK from the last ACK (RFC 5961)."""
    last = move.tcp.last
    if (
        move.old is State.LAST_ACK
        and move.segment.kind is Kind.ACK
        and move.last_was(Kind.SYN, move.way.other)
        and last.flags & window.CHALLENGE_ACK
    ):
        last.flags &= ~window.CHALLENGE_ACK
        return Handled("ignore", Finding(TrackReason.challenge_ack, move.segment.ack))
    return None


def both_open(move: Move) -> Handled | None:
    """Remember that the other side sent a SYN while the first one waits."""
    move.tcp.last.flags |= window.SIMULTANEOUS_OPEN
    return None


def both_opened(move: Move) -> Handled | None:
    """Complete the handshake by an ACK of the reply side, if both sides opened."""
    acknowledges = move.way is Way.REPLY and move.segment.kind is Kind.ACK
    if acknowledges and move.tcp.last.flags & window.SIMULTANEOUS_OPEN:
        move.new = State.ESTABLISHED
    return None


def reset(move: Move) -> Handled | None:
    """Look how exact the number of a RST must be, and is."""
    if move.segment.kind is not Kind.RST:
        return None
    if move.old in CLOSING:  # numbers may be those of a connection long gone
        move.in_window = True
        return None
    seq, maxack = move.segment.seq, move.receiver.maxack
    # After a SYN that was let through, maxack may be out of date.
    if move.receiver.flags & window.MAXACK_SET and move.tcp.last.kind is not Kind.SYN:
        if seq == 0 and not move.proven:  # most likely the answer to a SYN that was let through
            return None
        if before(seq, maxack) and not move.config.tcp_ignore_invalid_rst:
            return Handled("invalid", Finding(TrackReason.rst_below, seq, maxack))
        behind_data = move.last_was(Kind.ACK, move.way) and seq == move.tcp.last.end
        if not move.proven or seq == maxack or behind_data:
            return None
        # It may be an attack: stay, so that the other side can answer with a challenge ACK.
        move.new = move.old
        move.remark = Finding(TrackReason.rst_inexact, seq, maxack)
    move.in_window = _answers_ignored(move) or _answers_challenge(move)
    return None


def _answers_ignored(move: Move) -> bool:
    """Tell whether a RST answers a SYN or an ACK that was let through."""
    last, flow = move.tcp.last, move.flow
    syn = flow.seen_reply and move.last_was(Kind.SYN, move.way.other)
    ack = not flow.assured and last.kind is Kind.ACK
    return (syn or ack) and move.segment.ack == last.end


def _answers_challenge(move: Move) -> bool:
    """Tell whether a RST answers a challenge ACK that was let through."""
    challenged = move.old is State.SYN_SENT and move.last_was(Kind.ACK, Way.REPLY)
    return challenged and move.segment.seq == move.tcp.last.ack


class Case(NamedTuple):
    """A rule for segments of which the table says `new`; an answer of it is final."""

    new: Cell
    rule: Callable[[Move], Handled | None]


CASES: Final = (
    Case(State.SYN_SENT, reopen),
    Case(Mark.IGNORE, resynchronize),
    Case(Mark.IGNORE, ignore),
    Case(Mark.INVALID, bridge),
    Case(Mark.INVALID, forbidden),
    Case(State.TIME_WAIT, challenge_ack),
    Case(State.SYN_SENT2, both_open),
    Case(State.SYN_RECV, both_opened),
    Case(State.CLOSE, reset),
)
"""The cases in order; one may change `new`, and later ones look at that."""


def _of_table(reason: TrackReason, move: Move) -> Finding:
    return Finding(reason, int(move.segment.kind), int(move.old))


# ----------------------------------------------------------------------- window test and state


def _window(move: Move) -> Handled | None:
    """Apply the window test; None if the segment is accepted."""
    judgment = window.judge(move.tcp, move.way, move.segment, move.old, move.config)
    finding = judgment.finding
    if finding is None:
        return None
    if not judgment.invalid:
        return Handled("ignore", finding)
    if _tolerates(move, finding):
        move.sender.maxwin = move.receiver.maxwin = 0
        window.judge(move.tcp, move.way, move.segment, move.old, move.config)
        move.remark = finding._replace(reason=TrackReason.resynchronized)
        return None
    return _note_invalid(move, finding)


def _tolerates(move: Move, finding: Finding) -> bool:
    """Tell whether `gap_tolerant` takes a segment over the window for the end of a gap."""
    return (
        move.config.gap_tolerant
        and finding.reason in (TrackReason.seq_above, TrackReason.ack_above)
        and move.segment.kind in (Kind.ACK, Kind.FIN)
        and State.SYN_RECV <= move.tcp.state <= State.TIME_WAIT
    )


def _note_invalid(move: Move, finding: Finding) -> Handled:
    """Note an invalid FIN or RST; one of each side cuts the timeout (``nf_tcp_handle_invalid``)."""
    last, kind = move.tcp.last, move.segment.kind
    closing = (Kind.FIN, Kind.RST)
    if not move.flow.assured or kind not in closing:
        return Handled("invalid", finding)
    if last.way is move.way or last.kind not in closing:
        last.kind, last.way = kind, move.way
        return Handled("invalid", finding)
    left = move.flow.deadline - move.now
    timeout = move.config.nanoseconds("tcp_timeout_unacknowledged")
    if left < LONG or left <= timeout:
        return Handled("invalid", finding)
    move.flow.deadline = move.now + timeout
    return Handled("invalid", finding._replace(reason=TrackReason.invalid_noted))


def _accept(move: Move) -> Handled:
    """Take a segment over: state, timeout, ASSURED."""
    tcp, flow, segment, old = move.tcp, move.flow, move.segment, move.old
    new = move.new
    assert isinstance(new, State)  # the cases leave nothing else
    tcp.last.kind, tcp.last.way = segment.kind, move.way
    tcp.state = new
    if old is not new and new is State.FIN_WAIT:
        move.sender.flags |= window.CLOSE_INIT
    timeout, changed = _timeout(move, new), old is not new
    if not flow.seen_reply:
        if segment.rst:  # nothing but a reset: there never was a connection
            return Handled("kill", Finding(TrackReason.reset, bound=int(old)))
        if segment.kind is Kind.SYN and old is State.SYN_SENT:
            return Handled("pass", move.remark, changed=changed)
        if new is State.ESTABLISHED:
            timeout = min(timeout, move.config.nanoseconds("tcp_timeout_unacknowledged"))
    elif (
        not flow.assured and old in (State.SYN_RECV, State.ESTABLISHED) and new is State.ESTABLISHED
    ):
        flow.assured = changed = True
    return Handled("accept", move.remark, timeout, changed)


def _timeout(move: Move, new: State) -> int:
    """Choose the timeout after an accepted segment: the first rule that applies."""
    tcp, config = move.tcp, move.config
    usual = state_timeout(new, config)
    repeated = config.nanoseconds("tcp_timeout_max_retrans")
    unacknowledged = config.nanoseconds("tcp_timeout_unacknowledged")
    if tcp.retrans >= config.tcp_max_retrans and usual > repeated:
        return repeated
    if move.segment.kind is Kind.RST:
        if new is not State.CLOSE and config.rst_inexact_timeout == "unacknowledged":
            return min(usual, unacknowledged)
        return state_timeout(State.CLOSE, config)
    outstanding = (tcp.sides[0].flags | tcp.sides[1].flags) & window.DATA_UNACKNOWLEDGED
    if outstanding and usual > unacknowledged:
        return unacknowledged
    if tcp.last.window == 0 and usual > repeated:
        return repeated
    return usual
