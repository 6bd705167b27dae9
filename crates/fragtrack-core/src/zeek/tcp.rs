//! A TCP connection as a passive observer sees it: Zeek's rules.
//!
//! Two endpoints, each with a state of its own. What a packet does depends on the state of its sender and, in places,
//! of the other side; numbers are looked at for sizes and gaps, never to refuse.

use super::config::Config;
use super::endpoint::{Endpoint, State};
use super::flow::{Base, NEVER, Sides, Timer};
use super::history::{History, Once};
use super::row::ConnState;
use super::segment::{ACK, FIN, RST, SYN, Segment};
use super::{Pair, Role};

pub(super) const CONTROL: u8 = SYN | FIN | RST;

/// What a connection has besides what all flows have.
#[derive(Debug)]
pub(super) struct Tcp {
    pub(super) ends: Pair<Endpoint>,
    /// Its end was not decided on yet; timers other than that of the close still matter.
    pub(super) active: bool,
    /// The start of the connection was not seen.
    pub(super) begun_late: bool,
    close_waits: bool,
}

impl Tcp {
    pub(super) const fn new() -> Self {
        let ends = Pair { orig: Endpoint::new(), resp: Endpoint::new() };
        Self { ends, active: true, begun_late: false, close_waits: false }
    }

    /// Whether a packet starts another connection between the same endpoints.
    #[inline(always)]
    pub(super) fn is_reused(&self, packet: &Segment) -> bool {
        if !packet.has(SYN) {
            return false;
        }
        let Pair { orig, resp } = &self.ends;
        let asks = !packet.has(ACK);
        if !asks && orig.state != State::Inactive {
            return false;
        }
        if orig.closed || resp.closed {
            return true;
        }
        // A SYN behind its SYN/ACK.
        let swapped =
            asks && orig.state == State::SynAckSent && resp.state == State::Inactive && packet.seq == resp.start;
        let starter = if asks { orig } else { resp };
        packet.seq != starter.start && !swapped
    }

    /// Takes a packet.
    #[inline]
    pub(super) fn deliver(&mut self, base: &mut Base, packet: &Segment, sides: &Sides, time: i64, config: &Config) {
        let role = base.role(&sides.source);
        if packet.bad_checksum {
            if self.ends.of_mut(role).checksums.more() {
                base.history.add(role, b'C');
            }
            return;
        }
        if self.ends.orig.state == State::SynAckSent
            && self.ends.resp.state == State::Inactive
            && !packet.has(CONTROL)
            && (packet.has(ACK) || packet.payload > 0)
        {
            // The SYN/ACK was no scan: data flow. Its sender is the responder after all.
            self.swap(base);
            base.history.retell();
            self.change(base, Role::Resp, State::Established, config);
        }
        self.process(base, base.role(&sides.source), packet, time, config);
        base.count(base.role(&sides.source), packet);
    }

    pub(super) const fn swap(&mut self, base: &mut Base) {
        base.swap();
        self.ends.swap();
        self.begun_late = false;
    }

    // ------------------------------------------------------------------ one packet

    fn process(&mut self, base: &mut Base, mut role: Role, packet: &Segment, time: i64, config: &Config) {
        let flags = packet.flags;
        let (end, peer) = self.ends.both_mut(role);
        if !end.started && (role == Role::Orig || !self.begun_late) {
            let whole = if role == Role::Orig { packet.asks() } else { packet.has(SYN) };
            self.begun_late = !whole;
        }
        let controls = u32::from(packet.has(SYN)) + u32::from(packet.has(FIN));
        let taken = if packet.has(RST) { controls } else { packet.payload.wrapping_add(controls) };
        let after = packet.seq.wrapping_add(taken);
        end.prepare(flags, packet.seq, after);
        let (offset, early) = end.offset_seq(packet.seq);
        tell(&mut base.history, end, role, packet, offset);
        if packet.window == 0
            && !packet.has(RST)
            && peer.state != State::Closed
            && end.state != State::Reset
            && end.zero_windows.more()
        {
            base.history.add(role, b'W');
        }
        if !(end.closed && peer.closed) {
            base.last = base.last.max(time);
        }
        if packet.has(FIN) {
            end.fin_at = Some(offset.wrapping_add(taken.into()));
        }
        let acked = acknowledge(peer, packet);
        if end.advance(after, flags, packet.payload) && end.repeats.more() {
            base.history.add(role, b'T');
        }
        let closing = self.step(base, &mut role, packet, time, config);
        if packet.has(ACK) {
            self.acknowledged(base, role.other(), acked, config);
        }
        let (end, peer) = self.ends.both_mut(role);
        end.started = true;
        if packet.payload > 0 && !packet.has(RST) && !early && packet.whole {
            let start = offset.wrapping_add(packet.has(SYN).into());
            let stop = start.saturating_add(packet.payload.into());
            let first = start.max(end.acked());
            if first < stop {
                let (size, unacked) = (end.size(peer.state), end.is_unacked());
                if end.stream.sent(first, stop, size, unacked) {
                    base.history.once(role, Once::Partial, b'X');
                }
            }
        }
        self.look_for_end(base, role, config);
        if closing {
            self.close(base, role, config);
        }
    }

    /// Looks for gaps in the data of a side of which `upto` is acknowledged.
    #[inline(always)]
    fn acknowledged(&mut self, base: &mut Base, role: Role, mut upto: u64, config: &Config) {
        let (end, peer) = self.ends.both_mut(role);
        if let Some(fin) = end.fin_at
            && upto >= fin
        {
            upto = fin.saturating_sub(1);
        }
        if upto <= end.stream.acked {
            return;
        }
        // Elsewhere a gap is a number that does not fit, of a RST for example.
        let clean = end.is_clean() && peer.is_clean();
        let (gaps, history, missed) = (&mut end.gaps, &mut base.history, &mut base.missed);
        end.stream.acknowledged(upto, self.begun_late, |gap| {
            if clean {
                *missed = missed.saturating_add(gap);
                if gaps.more() {
                    history.add(role, b'G');
                }
            }
        });
        self.look_for_end(base, role, config);
    }

    // ------------------------------------------------------------------ close

    /// Makes up for a close that had to wait for data.
    #[inline(always)]
    fn look_for_end(&mut self, base: &mut Base, role: Role, config: &Config) {
        let (end, peer) = self.ends.both_mut(role);
        if end.comes_to_end(&peer.stream) && self.close_waits {
            self.close(base, role, config);
            self.close_waits = false;
        }
    }

    /// Notes that a side closed, unless data of it are still to come.
    fn close(&mut self, base: &mut Base, role: Role, config: &Config) {
        let (end, peer) = self.ends.both_mut(role);
        self.close_waits = end.is_pending(&peer.stream);
        if self.close_waits || end.closed {
            return;
        }
        end.closed = true;
        if end.state == State::Reset || peer.closed || peer.state == State::Inactive {
            self.active = false;
            base.timers = base.timers.closing(base.last.saturating_add(config.tcp_close_delay));
            return;
        }
        base.timers.expire = base.last.saturating_add(config.tcp_session_timer);
        if end.before == State::Inactive && config.partial_close {
            base.timers.partial = base.last.saturating_add(config.tcp_partial_close_delay);
        }
    }

    /// Lets a timer act that is due; whether the connection ends.
    pub(super) fn fire(&mut self, base: &mut Base, timer: Timer, now: i64, config: &Config) -> bool {
        *base.timers.of_mut(timer) = NEVER;
        let Pair { orig, resp } = &self.ends;
        let gone = |end: &Endpoint| matches!(end.state, State::Inactive | State::Reset);
        let one_gone = gone(orig) || gone(resp);
        let both_closed = orig.closed && resp.closed;
        match timer {
            Timer::Close => true,
            _ if !self.active => false,
            Timer::Attempt => orig.state.is_opening() && resp.state == State::Inactive,
            Timer::Partial => !one_gone && !both_closed,
            Timer::Expire => {
                let silent = orig.state == State::Inactive && resp.state == State::Inactive;
                if !(silent || orig.closed || resp.closed) {
                    return false;
                }
                let rested = base.last.saturating_add(config.tcp_connection_linger) < now;
                if rested && (both_closed || one_gone) {
                    return true;
                }
                base.timers.expire = now.saturating_add(config.tcp_session_timer);
                false
            }
            Timer::Reset | Timer::Inactivity => true,
        }
    }

    // ------------------------------------------------------------------ what comes of it

    /// Bytes of payload that each side sent.
    pub(super) fn sizes(&self) -> Pair<u64> {
        let Pair { orig, resp } = &self.ends;
        Pair { orig: orig.size(resp.state), resp: resp.size(orig.state) }
    }

    /// The state as conn.log names it.
    pub(super) fn state(&self, history: &History) -> ConnState {
        let (orig, resp) = (self.ends.orig.state, self.ends.resp.state);
        match (orig, resp) {
            (_, State::Reset) => {
                let sizes = self.sizes();
                if orig.is_opening() || (orig == State::Reset && sizes.orig == 0 && sizes.resp == 0) {
                    ConnState::REJ
                } else if orig.is_unseen() {
                    ConnState::RSTRH
                } else {
                    ConnState::RSTR
                }
            }
            (State::Reset, _) if !resp.is_unseen() => ConnState::RSTO,
            (State::Reset, _) if history.is_aborted() => ConnState::RSTOS0,
            (State::Reset, _) => ConnState::OTH,
            (State::Closed, State::Closed) => ConnState::SF,
            (State::Closed, _) if resp.is_unseen() => ConnState::SH,
            (State::Closed, _) => ConnState::S2,
            (_, State::Closed) if orig.is_unseen() => ConnState::SHR,
            (_, State::Closed) => ConnState::S3,
            (State::SynSent, State::Inactive) => ConnState::S0,
            (State::Established, State::Established) => ConnState::S1,
            _ => ConnState::OTH,
        }
    }

    /// Whether the invariants hold.
    pub(super) fn check(&self) -> bool {
        self.ends.orig.check() && self.ends.resp.check()
    }
}

/// Writes the history.
#[inline(always)]
fn tell(history: &mut History, end: &mut Endpoint, role: Role, packet: &Segment, offset: u64) {
    match packet.flags & CONTROL {
        0 => {
            if packet.payload > 0 {
                history.once(role, Once::Data, b'D');
            } else if packet.has(ACK) {
                history.once(role, Once::Ack, b'A');
            }
        }
        SYN => {
            let letter = if packet.has(ACK) { b'H' } else { b'S' };
            if history.once(role, Once::Syn, letter) && offset != end.last_syn {
                history.add(role, letter);
            }
            end.last_syn = offset;
        }
        FIN => {
            let after = offset.wrapping_add(packet.payload.into());
            if history.once(role, Once::Fin, b'F') && after != end.last_fin {
                history.add(role, b'F');
            }
            end.last_fin = after;
        }
        RST => {
            if history.once(role, Once::Rst, b'R') && offset != end.last_rst {
                history.add(role, b'R');
            }
            end.last_rst = offset;
        }
        both if both & FIN != 0 && both & RST != 0 => {
            history.once(role, Once::Inconsistent, b'I');
        }
        _ => {
            history.once(role, Once::Multiple, b'Q');
        }
    }
}

/// Takes the acknowledgment of a packet; its offset in the data of the peer.
#[inline(always)]
fn acknowledge(peer: &mut Endpoint, packet: &Segment) -> u64 {
    if !packet.has(ACK) {
        return 0;
    }
    if peer.state == State::Inactive {
        let before = packet.ack.wrapping_sub(1);
        peer.begin(before, before);
        return 1;
    }
    let (offset, early) = peer.offset_ack(packet.ack);
    if early {
        return 0;
    }
    if !packet.has(RST) {
        peer.acknowledge(packet.ack);
    }
    offset
}
