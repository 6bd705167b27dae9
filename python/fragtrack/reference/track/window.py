"""The window test: whether a segment may be, given what both sides have sent and acknowledged.

After "Real Stateful TCP Packet Filtering in IP Filter" (van Rooij), with what Linux adds
(``tcp_in_window``). Per side:

======== ====================================================
`end`    highest end sent
`maxend` highest end the other side allows: its ack + window
`maxwin` largest window it advertised, scaled; 0: not seen yet
`maxack` highest ack it sent
======== ====================================================

The conditions, s the sender and r the receiver, all modulo 2**32:

==== ================================ ===========================================
I    seq <= s.maxend                  the segment begins in the receiver's window
II   end >= s.end - r.maxwin          it is not old data
III  sack <= r.end                    it acknowledges what was sent
IV   sack >= r.end - max(66000, s.maxwin)  the acknowledgment is not overly delayed
==== ================================ ===========================================
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from fragtrack.reference.track import options
from fragtrack.reference.track.finding import Finding, TrackReason, Way
from fragtrack.reference.track.segment import Kind
from fragtrack.reference.track.sequence import MASK, after, before
from fragtrack.reference.track.tcp_table import State

if TYPE_CHECKING:
    from fragtrack.reference.track.segment import Segment
    from fragtrack.track_config import TrackConfig

ACK_WINDOW: Final = 66_000
"""How far an acknowledgment may lie back (``MAXACKWINCONST``)."""

WINDOW_SCALE: Final = 0x01
SACK_PERMITTED: Final = 0x02
CLOSE_INIT: Final = 0x04
BE_LIBERAL: Final = 0x08
DATA_UNACKNOWLEDGED: Final = 0x10
MAXACK_SET: Final = 0x20
CHALLENGE_ACK: Final = 0x40
"""In the remembered flags: a SYN of the original side was ignored in LAST_ACK."""
SIMULTANEOUS_OPEN: Final = 0x80
"""In the remembered flags: both sides sent a SYN."""


@dataclass(slots=True)
class Side:
    """What is known of one side (``struct ip_ct_tcp_state``)."""

    end: int = 0
    maxend: int = 0
    maxwin: int = 0
    maxack: int = 0
    scale: int = 0
    flags: int = 0


@dataclass(slots=True)
class Last:
    """What is remembered of the latest segment that was accepted or ignored."""

    kind: Kind = Kind.NONE
    way: Way = Way.ORIGINAL
    seq: int = 0
    ack: int = 0
    end: int = 0
    window: int = 0
    scale: int = 0
    flags: int = 0


@dataclass(slots=True)
class Tcp:
    """TCP state of a connection (``struct ip_ct_tcp``)."""

    state: State = State.NONE
    sides: list[Side] = field(default_factory=lambda: [Side(), Side()])
    last: Last = field(default_factory=Last)
    retrans: int = 0

    def inspect(self) -> dict[str, object]:
        """Show the private state."""
        return {
            "win": [
                [side.end, side.maxend, side.maxwin, side.maxack, side.scale, side.flags & 0x3F]
                for side in self.sides
            ],
            "retrans": self.retrans,
            "last": [int(self.last.kind), int(self.last.way)],
        }


class Judgment(NamedTuple):
    """What the window test says: accepted if there is no finding, else ignored or invalid."""

    finding: Finding | None = None
    invalid: bool = False


ACCEPTED: Final = Judgment()


class Numbers(NamedTuple):
    """The numbers of a segment as they are compared."""

    seq: int
    end: int
    ack: int
    sack: int


def first_syn(side: Side, segment: Segment) -> None:
    """Set up the side that sent a SYN (``tcp_init_sender``, ``tcp_new``)."""
    side.end = side.maxend = segment.end
    side.maxwin = max(segment.window, 1)
    if not segment.has_options:
        return  # as it is in the kernel: flags and scale of an earlier incarnation stay
    offered = options.offer(segment.options)
    side.scale = offered.scale or 0
    side.flags &= BE_LIBERAL
    if offered.scale is not None:
        side.flags |= WINDOW_SCALE
    if offered.sack:
        side.flags |= SACK_PERMITTED


def pick_up(segment: Segment) -> Tcp:
    """Set up a connection that is met in the middle (``tcp_new``).

    Scales are unknown, so nothing may be out of the window, and SACK is taken as agreed.
    """
    window = max(segment.window, 1)
    flags = SACK_PERMITTED | BE_LIBERAL
    sender = Side(segment.end, segment.end + window & MASK, window, flags=flags)
    return Tcp(sides=[sender, Side(flags=flags)])


def judge(tcp: Tcp, way: Way, segment: Segment, state: State, config: TrackConfig) -> Judgment:
    """Test a segment, and learn from it if it is accepted (``tcp_in_window``).

    Parameters
    ----------
    tcp, way, segment
        The connection, the direction of the segment, the segment.
    state : State
        The state before the segment.
    config : TrackConfig
        Whether to be liberal.
    """
    sender, receiver = tcp.sides[way], tcp.sides[way.other]
    sack = segment.ack
    if receiver.flags & SACK_PERMITTED:
        sack = options.highest_sack(segment.options, segment.ack)
    if _begins(tcp, way, segment, sack, state):
        return ACCEPTED
    numbers = _numbers(segment, sack, state, sender, receiver)
    failed = _test(numbers, sender, receiver)
    if failed is None:
        _update(tcp, way, segment, numbers)
        return ACCEPTED
    refused = _refuse(failed, numbers, sender, receiver, config)
    # Bytes that overshoot are learned all the same.
    liberal = config.tcp_be_liberal or sender.flags & BE_LIBERAL
    return ACCEPTED if liberal else refused


def _begins(tcp: Tcp, way: Way, segment: Segment, sack: int, state: State) -> bool:
    """Set up a side that was not seen yet, or sends a new SYN; True ends the test: accepted."""
    sender, receiver = tcp.sides[way], tcp.sides[way.other]
    if sender.maxwin == 0:
        if not segment.syn:
            _learn(sender, receiver, segment, sack)
            return False
        _begin(sender, receiver, way, segment)
        return not segment.has_ack  # both sides open
    if segment.syn and after(segment.end, sender.end) and state in (State.SYN_SENT, State.SYN_RECV):
        _begin(sender, receiver, way, segment)
        return way is Way.REPLY and not segment.has_ack
    return False


def _begin(sender: Side, receiver: Side, way: Way, segment: Segment) -> None:
    """Set up the sender of a SYN (``tcp_init_sender``); scaling needs both (RFC 7323 2.2)."""
    first_syn(sender, segment)
    if way is Way.REPLY and not sender.flags & receiver.flags & WINDOW_SCALE:
        sender.scale = receiver.scale = 0


def _learn(sender: Side, receiver: Side, segment: Segment, sack: int) -> None:
    """Set up a side from a segment in the middle of the connection."""
    sender.end = segment.end
    sender.maxwin = max(segment.window << sender.scale, 1)
    sender.maxend = segment.end + sender.maxwin & MASK
    if receiver.maxwin == 0:
        receiver.end = receiver.maxend = sack
    elif sack == receiver.end + 1 & MASK:
        receiver.end = sack  # probably the answer to a keep-alive


def _numbers(segment: Segment, sack: int, state: State, sender: Side, receiver: Side) -> Numbers:
    """Fill in the numbers that a segment does not have."""
    seq, end, ack = segment.seq, segment.end, segment.ack
    if not segment.has_ack or (segment.rst and ack == 0):  # some stacks set ACK in every RST
        ack = sack = receiver.end
    if segment.rst and seq == 0 and state is State.SYN_SENT:  # the answer to a SYN
        seq = end = sender.end
    return Numbers(seq, end, ack, sack)


def _ack_window(sender: Side) -> int:
    return max(ACK_WINDOW, sender.maxwin)


def _test(n: Numbers, s: Side, r: Side) -> Finding | None:
    """Return the first condition that does not hold."""
    if not before(n.seq, s.maxend + 1):
        return Finding(TrackReason.seq_above, n.seq, s.maxend)
    if not before(n.sack, r.end + 1):
        return Finding(TrackReason.ack_above, n.sack, r.end)
    if r.maxwin != 0 and not after(n.end, s.end - r.maxwin - 1):
        return Finding(TrackReason.seq_below, n.end, s.end - r.maxwin & MASK)
    if not after(n.sack, r.end - _ack_window(s) - 1):
        return Finding(TrackReason.ack_below, n.sack, r.end - _ack_window(s) & MASK)
    return None


def _refuse(failed: Finding, n: Numbers, s: Side, r: Side, config: TrackConfig) -> Judgment:
    """Say what a failed condition means, unless the sender is treated liberally."""
    if failed.reason is TrackReason.seq_above:
        over = n.end - s.maxend + 1 & MASK
        if _overshoots(over, n, s, r):
            # An acknowledgment of these bytes will come, and must not fail III then.
            s.end = n.end
            s.flags |= DATA_UNACKNOWLEDGED
            return Judgment(Finding(TrackReason.overshoot, over, r.maxwin))
    above = failed.reason in (TrackReason.seq_above, TrackReason.ack_above)
    return Judgment(failed, invalid=above or config.profile == "pre-6.1")


def _overshoots(over: int, n: Numbers, s: Side, r: Side) -> bool:
    """Tell whether a segment exceeds the window by no more than a window, and else is sound."""
    return (
        r.maxwin != 0
        and over <= r.maxwin
        and after(n.end, s.end - r.maxwin - 1)
        and before(n.sack, r.end + 1)
        and after(n.sack, r.end - _ack_window(s) - 1)
    )


def _update(tcp: Tcp, way: Way, segment: Segment, n: Numbers) -> None:
    """Learn from an accepted segment."""
    s, r = tcp.sides[way], tcp.sides[way.other]
    window = segment.window if segment.syn else segment.window << s.scale
    s.maxwin = max(s.maxwin, window + (n.sack - n.ack) & MASK)
    if after(n.end, s.end):
        s.end = n.end
        s.flags |= DATA_UNACKNOWLEDGED
    if segment.has_ack:
        if not s.flags & MAXACK_SET or after(n.ack, s.maxack):
            s.maxack = n.ack
        s.flags |= MAXACK_SET
    if r.maxwin != 0 and after(n.end, s.maxend):
        r.maxwin = r.maxwin + (n.end - s.maxend) & MASK
    if after(n.sack + window, r.maxend - 1):
        r.maxend = n.sack + window + (window == 0) & MASK  # one byte may probe a closed window
    if n.ack == r.end:
        r.flags &= ~DATA_UNACKNOWLEDGED
    if segment.kind is Kind.ACK:
        _count_repetitions(tcp, way, segment, n)


def _count_repetitions(tcp: Tcp, way: Way, segment: Segment, n: Numbers) -> None:
    """Count identical segments one after the other."""
    last, window = tcp.last, segment.window
    now = replace(last, way=way, seq=n.seq, ack=n.ack, end=n.end, window=window)
    if now == last:
        tcp.retrans += 1
    else:
        tcp.last, tcp.retrans = now, 0
