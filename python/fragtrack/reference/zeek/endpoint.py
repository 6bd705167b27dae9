"""One side of a TCP connection, as Zeek sees it from outside."""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Final

from fragtrack.reference.zeek.history import Tally
from fragtrack.reference.zeek.segment import FIN, RST, SYN
from fragtrack.reference.zeek.stream import Stream

M32: Final = (1 << 32) - 1
M64: Final = (1 << 64) - 1
FAR: Final = 1 << 20
"""Sequence numbers of a SYN or RST further away than this are not believed."""


@unique
class State(IntEnum):
    """States of an endpoint; the order is Zeek's."""

    INACTIVE = 0
    SYN_SENT = 1
    SYN_ACK_SENT = 2
    PARTIAL = 3
    ESTABLISHED = 4
    CLOSED = 5
    RESET = 6


HANDSHAKE: Final = (State.INACTIVE, State.SYN_SENT, State.SYN_ACK_SENT)


class Endpoint:
    """One side.

    Sequence numbers are 32 bits; `last` and `ack` (what the side sent up to, what the other side
    acknowledged) count how often they went round since `start`.

    Attributes
    ----------
    state, before : State
        State, and the one before.
    start : int
        Initial sequence number; without a SYN, one less than the first number.
    fin_at : int or None
        Offset behind its latest FIN; None without one.
    closed : bool
        Its close was noticed, with all data before it.
    started : bool
        It sent a packet.
    """

    __slots__ = (
        "ack",
        "ack_wraps",
        "before",
        "checksums",
        "closed",
        "fin_at",
        "gaps",
        "last",
        "last_fin",
        "last_rst",
        "last_syn",
        "last_wraps",
        "repeats",
        "start",
        "started",
        "state",
        "stream",
        "zero_windows",
    )

    def __init__(self) -> None:
        self.state = State.INACTIVE
        self.before = State.INACTIVE
        self.start = self.last = self.ack = 0
        self.last_wraps = self.ack_wraps = 0
        self.fin_at: int | None = None
        self.closed = False
        self.started = False
        self.last_syn = self.last_fin = self.last_rst = 0
        self.checksums, self.gaps, self.repeats, self.zero_windows = (Tally() for _ in range(4))
        self.stream = Stream()

    # ------------------------------------------------------------------ sequence numbers

    def begin(self, start: int, last: int) -> None:
        """Set the numbers for a connection that starts at `start`."""
        self.start, self.ack, self.last = start, start, last
        self.ack_wraps = 0
        self.last_wraps = int(last < start)

    def prepare(self, flags: int, seq: int, end: int) -> None:
        """Set the numbers by a packet of its own, if it is one to start with."""
        if self.state == State.INACTIVE:
            if flags & SYN:
                self.begin(seq, end)
            else:
                # As if there had been a SYN, so that offsets start at 1 here too. Its data count
                # as new only when the packet itself is accounted for.
                self.begin(seq - 1 & M32, seq)
        elif not flags & SYN:
            return
        elif self.state in {State.SYN_SENT, State.SYN_ACK_SENT}:
            if seq != self.start:
                self.begin(seq, end)
        elif self.state in {State.ESTABLISHED, State.PARTIAL} or (
            # A forged RST may have set the numbers; the SYN is the better witness.
            self.state == State.RESET and self.before == State.INACTIVE
        ):
            self.begin(seq, end)

    def offset_seq(self, seq: int) -> tuple[int, bool]:
        """Give the offset of a sequence number of its own, and whether that is before its start."""
        return _offset(self.start, seq, self.last, self.last_wraps)

    def offset_ack(self, ack: int) -> tuple[int, bool]:
        """Give the offset of an acknowledgment of its data, and whether it is before its start."""
        return _offset(self.start, ack, self.ack, self.ack_wraps)

    def acknowledge(self, ack: int) -> None:
        """Take an acknowledgment of its data, if it says more."""
        ahead = signed(ack - self.ack)
        # A jump to just 0 is a broken number rather than a lot of data.
        if ahead > 0 and not (ack == 0 and ahead > FAR):
            self.ack_wraps += int(ack < self.ack)
            self.ack = ack

    def advance(self, end: int, flags: int, payload: int) -> bool:
        """Take the end of a packet of its own; say whether it repeats payload."""
        ahead = signed(end - self.last)
        if flags & (SYN | RST) and abs(ahead) > FAR:
            return False
        if flags & FIN and self.last == (self.start + 1) & M32:
            self._move(end)  # more than 2 GB may lie between the SYN and the FIN
        elif self.state == State.RESET:
            return False
        elif ahead > 0:
            self._move(end)
        else:
            return payload > 0
        return False

    def _move(self, end: int) -> None:
        self.last_wraps += int(end < self.last)
        self.last = end

    @property
    def acked(self) -> int:
        """Offset up to which its data are acknowledged."""
        return (self.ack_wraps << 32) + self.ack - self.start & M64

    @property
    def unacked(self) -> bool:
        """Whether nothing but a SYN of it was acknowledged."""
        return self.acked <= 1

    @property
    def sent(self) -> int:
        """Sequence number it sent up to, with its rounds."""
        return (self.last_wraps << 32) + self.last

    def size(self, peer: Endpoint) -> int:
        """Give the bytes of payload it sent, by the numbers."""
        if (
            self.before == State.SYN_SENT
            and self.state == State.RESET
            and peer.state == State.INACTIVE
            and not self.unacked
        ):
            return 0  # a half-open connection that was found and aborted; nothing was sent
        size = max(self.sent, (self.ack_wraps << 32) + self.ack) - self.start & M64
        size -= int(size > 0)  # the SYN
        return size - int(size > 0 and self.fin_at is not None)

    # ------------------------------------------------------------------ close

    def clean(self) -> bool:
        """Say whether it is established, or closed out of that."""
        return self.state == State.ESTABLISHED or (
            self.state == State.CLOSED and self.before == State.ESTABLISHED
        )

    def pending(self, peer: Endpoint) -> bool:
        """Say whether its close has to wait for data of it, or for acknowledgments by it."""
        if self.stream.skipping:
            return False
        seen = self.start + self.stream.next
        if self.sent < seen:
            return False
        if seen not in {self.sent - 1, self.sent}:
            return True
        return self.state != State.RESET and peer.stream.holds

    def at_end(self, peer: Endpoint) -> bool:
        """Say, once, that it closed and all of its data was seen."""
        stream = self.stream
        closing = self.fin_at is not None or self.state in {State.CLOSED, State.RESET}
        if stream.ended or not closing or self.pending(peer):
            return False
        stream.ended = True
        return True

    def check(self) -> None:
        """Assert that numbers fit, and the invariant of the stream."""
        assert min(self.start, self.last, self.ack) >= 0
        assert max(self.start, self.last, self.ack) <= M32
        self.stream.check()


def signed(value: int) -> int:
    """Give a difference of sequence numbers as a number of 32 bits with sign."""
    return (value + (1 << 31) & M32) - (1 << 31)


def _offset(start: int, number: int, near: int, wraps: int) -> tuple[int, bool]:
    """Give the offset of a number that stands near another one; mod 2**64."""
    delta = signed(number - near)
    if delta < 0 and wraps and number > near:
        wraps -= 1
    elif delta > 0 and number < near:
        wraps += 1
    if wraps:
        return (wraps << 32) + number - start & M64, False
    delta = signed(number - start)
    return delta & M64, delta < 0
