"""A TCP connection as a passive observer sees it: Zeek's rules.

Two endpoints, each with a state of its own. What a packet does depends on the state of its sender
and, in places, of the other side; numbers are looked at for sizes and gaps, never to refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fragtrack.reference.zeek.conn_state import conn_state
from fragtrack.reference.zeek.endpoint import HANDSHAKE, M32, M64, Endpoint, State
from fragtrack.reference.zeek.flow import INACTIVITY, Flow
from fragtrack.reference.zeek.history import ORIG, RESP
from fragtrack.reference.zeek.segment import ACK, FIN, RST, SYN, Segment

if TYPE_CHECKING:
    from fragtrack.zeek import ZeekConfig

ATTEMPT: Final = "attempt"
EXPIRE: Final = "expire"
PARTIAL: Final = "partial"
RESET: Final = "reset"
CLOSE: Final = "close"

CONTROL: Final = SYN | FIN | RST


class TcpFlow(Flow):
    """A TCP connection.

    Attributes
    ----------
    ends : list of Endpoint
        By role.
    active : bool
        Its end was not decided on yet; timers other than that of the close still matter.
    begun_late : bool
        The start of the connection was not seen.
    """

    def __init__(self, packet: Segment, number: int, time: int, config: ZeekConfig) -> None:
        self.ends = [Endpoint(), Endpoint()]
        self.active = True
        self.begun_late = False
        self._close_waits = False
        super().__init__(packet, number, time, config)
        self.timers[EXPIRE] = time + config.nanoseconds("tcp_syn_timeout")

    def starts_at_server(self, packet: Segment) -> bool:
        """Say whether the first packet, no SYN, comes from what is likely the responder."""
        servers = self.config.tcp_server_ports
        if packet.flags & (SYN | ACK) == SYN or packet.sport not in servers:
            return False
        # With two likely ports a SYN/ACK may be a scan, and the lower port is likelier.
        return packet.dport not in servers or (
            not packet.flags & SYN and packet.sport < packet.dport
        )

    def reused(self, packet: Segment) -> bool:
        """Say whether a packet starts another connection between the same endpoints."""
        if not packet.flags & SYN:
            return False
        orig, resp = self.ends
        starter = orig
        if packet.flags & ACK:
            if orig.state != State.INACTIVE:
                return False
            starter = resp
        if orig.closed or resp.closed:
            return True
        swapped = (  # a SYN behind its SYN/ACK
            not packet.flags & ACK
            and orig.state == State.SYN_ACK_SENT
            and resp.state == State.INACTIVE
            and packet.seq == resp.start
        )
        return packet.seq != starter.start and not swapped

    def deliver(self, packet: Segment, time: int) -> None:
        """Take a packet."""
        role = self.role(packet)
        if packet.bad_checksum:
            if self.ends[role].checksums.more():
                self.history.add(role, "C")
            return
        orig, resp = self.ends
        if (
            orig.state == State.SYN_ACK_SENT
            and resp.state == State.INACTIVE
            and not packet.flags & CONTROL
            and (packet.flags & ACK or packet.payload)
        ):
            # The SYN/ACK was no scan: data flow. Its sender is the responder after all.
            self._swap()
            self.history.retell()
            self._change(RESP, State.ESTABLISHED)
        self._process(self.ends[self.role(packet)], packet, time)
        self.count(self.role(packet), packet)

    def _swap(self) -> None:
        self.orig, self.resp = self.resp, self.orig
        for both in (self.ends, self.packets, self.octets):
            both.reverse()
        self.begun_late = False

    def _role(self, end: Endpoint) -> int:
        return ORIG if end is self.ends[ORIG] else RESP

    def _peer(self, end: Endpoint) -> Endpoint:
        return self.ends[RESP if end is self.ends[ORIG] else ORIG]

    # ------------------------------------------------------------------ one packet

    def _process(self, end: Endpoint, packet: Segment, time: int) -> None:
        peer, flags, payload = self._peer(end), packet.flags, packet.payload
        if not end.started and (end is self.ends[ORIG] or not self.begun_late):
            whole = flags & (SYN | ACK) == SYN if end is self.ends[ORIG] else flags & SYN
            self.begun_late = not whole
        taken = (0 if flags & RST else payload) + bool(flags & SYN) + bool(flags & FIN)
        after = packet.seq + taken & M32
        end.prepare(flags, packet.seq, after)
        offset, early = end.offset_seq(packet.seq)
        self._tell(end, packet, offset)
        self._tell_window(end, peer, packet)
        if not (end.closed and peer.closed):
            self.last = max(self.last, time)
        if flags & FIN:
            end.fin_at = offset + taken & M64
        acked = _acknowledge(peer, packet)
        if end.advance(after, flags, payload) and end.repeats.more():
            self.history.add(self._role(end), "T")
        closing = self._step(end, peer, packet, time)
        if flags & ACK:
            self._acknowledged(peer, acked)
        end.started = True
        if payload and not flags & RST and not early and packet.whole:
            self._sent(end, peer, offset + bool(flags & SYN), payload)
        self._look_for_end(end)
        if closing:
            self._close(end)

    def _tell(self, end: Endpoint, packet: Segment, offset: int) -> None:
        """Write the history."""
        role, control = self._role(end), packet.flags & CONTROL
        tell = self.history
        if control == SYN:
            letter = "H" if packet.flags & ACK else "S"
            if tell.once(role, "S", letter) and offset != end.last_syn:
                tell.add(role, letter)
            end.last_syn = offset
        elif control == FIN:
            after = offset + packet.payload & M64
            if tell.once(role, "F", "F") and after != end.last_fin:
                tell.add(role, "F")
            end.last_fin = after
        elif control == RST:
            if tell.once(role, "R", "R") and offset != end.last_rst:
                tell.add(role, "R")
            end.last_rst = offset
        elif control:
            letter = "I" if control & FIN and control & RST else "Q"
            tell.once(role, letter, letter)
        elif packet.payload:
            tell.once(role, "D", "D")
        elif packet.flags & ACK:
            tell.once(role, "A", "A")

    def _tell_window(self, end: Endpoint, peer: Endpoint, packet: Segment) -> None:
        """Note a window of zero, where it means something."""
        if packet.window or packet.flags & RST:
            return
        meant = peer.state != State.CLOSED and end.state != State.RESET
        if meant and end.zero_windows.more():
            self.history.add(self._role(end), "W")

    def _acknowledged(self, end: Endpoint, upto: int) -> None:
        """Look for gaps in the data of a side of which `upto` is acknowledged."""
        if end.fin_at is not None and upto >= end.fin_at:
            upto = max(end.fin_at - 1, 0)
        if upto <= end.stream.acked:
            return
        for gap in end.stream.acknowledged(upto, partial=self.begun_late):
            # Elsewhere a gap is a number that does not fit, of a RST for example.
            if end.clean() and self._peer(end).clean():
                self.missed += gap
                if end.gaps.more():
                    self.history.add(self._role(end), "G")
        self._look_for_end(end)

    def _sent(self, end: Endpoint, peer: Endpoint, start: int, length: int) -> None:
        """Take payload into the stream."""
        first = max(start, end.acked)
        if first < start + length and end.stream.sent(
            first, start + length, size=end.size(peer), unacked=end.unacked
        ):
            self.history.once(self._role(end), "X", "X")

    # ------------------------------------------------------------------ states

    def _change(self, role: int, state: State) -> None:
        end, peer = self.ends[role], self.ends[1 - role]
        if state == end.state:
            return
        if state not in HANDSHAKE and end.state in HANDSHAKE and peer.state in HANDSHAKE:
            self._rest(self.config.nanoseconds("tcp_inactivity_timeout"))
        end.before, end.state = end.state, state

    def _rest(self, timeout: int) -> None:
        """Set how long the connection may rest."""
        if timeout != self.inactivity:
            self.inactivity = timeout
            self.timers[INACTIVITY] = self.last + timeout

    def _step(self, end: Endpoint, peer: Endpoint, packet: Segment, time: int) -> bool:
        """Let a packet change the states; say whether its sender closes."""
        flags = packet.flags
        match end.state:
            case State.INACTIVE:
                return self._first(end, peer, packet, time)
            case State.SYN_SENT | State.SYN_ACK_SENT:
                return self._opening(end, flags)
            case State.ESTABLISHED | State.PARTIAL:
                return self._established(end, peer, flags)
            case State.CLOSED:
                return self._after_fin(end, peer, flags, time)
            case State.RESET:
                return False

    def _first(self, end: Endpoint, peer: Endpoint, packet: Segment, time: int) -> bool:
        flags = packet.flags
        if flags & SYN and end is self.ends[ORIG]:
            self._change(ORIG, State.SYN_ACK_SENT if flags & ACK else State.SYN_SENT)
            self.timers[ATTEMPT] = time + self.config.nanoseconds("tcp_attempt_delay")
        elif flags & SYN:
            self._answered(end, peer, packet)
        role = self._role(end)
        if flags & FIN:
            self._change(role, State.CLOSED)
        if flags & RST:
            self._change(role, State.RESET)
        if end.state == State.INACTIVE:
            self._unmarked(role, peer, packet)
        return bool(flags & (FIN | RST))

    def _answered(self, end: Endpoint, peer: Endpoint, packet: Segment) -> None:
        """Take the first packet of the responder, with a SYN."""
        if not packet.flags & ACK and peer.state == State.SYN_ACK_SENT:
            # The SYN was captured behind its SYN/ACK.
            self._swap()
            self.history.flip()
            self._change(RESP, State.ESTABLISHED)
        if peer.state == State.SYN_SENT:
            self._change(self._role(peer), State.ESTABLISHED)
        self._change(self._role(end), State.ESTABLISHED)
        if peer.state != State.PARTIAL and self.resp.port in self.config.interactive_ports:
            self._rest(self.config.nanoseconds("interactive_inactivity_timeout"))

    def _unmarked(self, role: int, peer: Endpoint, packet: Segment) -> None:
        """Take the first packet of a side, with none of SYN, FIN, RST."""
        if role == RESP and not packet.payload and peer.state == State.SYN_SENT:
            return  # some acknowledge a SYN before they answer it
        if packet.flags & ACK and peer.state == State.ESTABLISHED:
            self._change(role, State.ESTABLISHED)  # only its SYN was missed
            self.begun_late = False
            self.ends[role].started = True
        else:
            self._change(role, State.PARTIAL)

    def _opening(self, end: Endpoint, flags: int) -> bool:
        role = self._role(end)
        if flags & FIN:
            self._change(role, State.CLOSED)
        if flags & RST:
            self._change(role, State.RESET)
            self.active = False
        return bool(flags & (FIN | RST))

    def _established(self, end: Endpoint, peer: Endpoint, flags: int) -> bool:
        role = self._role(end)
        if (
            flags & (SYN | ACK) == SYN
            and end.state == State.PARTIAL
            and peer.state == State.INACTIVE
        ):
            self._change(role, State.SYN_SENT)
        if flags & RST:
            self._change(role, State.RESET)
            if peer.state != State.RESET or peer.before != State.ESTABLISHED:
                self.active = False
        elif flags & FIN:
            self._change(role, State.CLOSED)
            if peer.state == State.RESET and peer.before == State.CLOSED:
                # A RST behind its FIN, then the FIN of the other side: both finished.
                self._change(1 - role, State.CLOSED)
        return bool(flags & (FIN | RST))

    def _after_fin(self, end: Endpoint, peer: Endpoint, flags: int, time: int) -> bool:
        if not flags & RST or peer.state == State.CLOSED:
            return False
        self._change(self._role(end), State.RESET)
        self.timers[RESET] = time + self.config.nanoseconds("tcp_reset_delay")
        return not end.closed

    # ------------------------------------------------------------------ close

    def _look_for_end(self, end: Endpoint) -> None:
        """Make up for a close that had to wait for data."""
        if end.at_end(self._peer(end)) and self._close_waits:
            self._close(end)
            self._close_waits = False

    def _close(self, end: Endpoint) -> None:
        """Note that a side closed, unless data of it are still to come."""
        peer = self._peer(end)
        self._close_waits = end.pending(peer)
        if self._close_waits or end.closed:
            return
        end.closed = True
        if end.state == State.RESET or peer.closed or peer.state == State.INACTIVE:
            self.active = False
            self.timers = {
                INACTIVITY: self.timers[INACTIVITY],
                CLOSE: self.last + self.config.nanoseconds("tcp_close_delay"),
            }
            return
        self.timers[EXPIRE] = self.last + self.config.nanoseconds("tcp_session_timer")
        if end.before == State.INACTIVE and self.config.partial_close:
            self.timers[PARTIAL] = self.last + self.config.nanoseconds("tcp_partial_close_delay")

    def fire(self, timer: str, now: int) -> bool:
        """Let a timer act that is due; say whether the connection ends."""
        if timer == INACTIVITY:
            return super().fire(timer, now)
        del self.timers[timer]
        orig, resp = self.ends
        states = {orig.state, resp.state}
        if timer == CLOSE:
            return True
        if not self.active:
            return False
        match timer:
            case "attempt":
                opening = orig.state in {State.SYN_SENT, State.SYN_ACK_SENT}
                return opening and resp.state == State.INACTIVE
            case "partial":
                both = orig.closed and resp.closed
                return not both and states.isdisjoint({State.INACTIVE, State.RESET})
            case "expire":
                return self._expire(states, now)
            case _:
                return True

    def _expire(self, states: set[State], now: int) -> bool:
        """Look at a connection of which one side closed, or none did anything."""
        orig, resp = self.ends
        silent = states == {State.INACTIVE}
        if not (silent or orig.closed or resp.closed):
            return False
        if self.last + self.config.nanoseconds("tcp_connection_linger") < now and (
            (orig.closed and resp.closed) or not states.isdisjoint({State.RESET, State.INACTIVE})
        ):
            return True
        self.timers[EXPIRE] = now + self.config.nanoseconds("tcp_session_timer")
        return False

    # ------------------------------------------------------------------ what comes of it

    def payload(self, role: int) -> int:
        """Give the bytes of payload that a role sent."""
        return self.ends[role].size(self.ends[1 - role])

    @property
    def state(self) -> str:
        """The state as conn.log names it."""
        orig, resp = self.ends
        sizes = self.payload(ORIG) + self.payload(RESP)
        return conn_state(orig.state, resp.state, str(self.history), sizes)

    def check(self) -> None:
        """Assert the invariants."""
        super().check()
        for end in self.ends:
            end.check()


def _acknowledge(peer: Endpoint, packet: Segment) -> int:
    """Take the acknowledgment of a packet; give its offset in the data of the peer."""
    if not packet.flags & ACK:
        return 0
    if peer.state == State.INACTIVE:
        before = packet.ack - 1 & M32
        peer.begin(before, before)
        return 1
    offset, early = peer.offset_ack(packet.ack)
    if early:
        return 0
    if not packet.flags & RST:
        peer.acknowledge(packet.ack)
    return offset
