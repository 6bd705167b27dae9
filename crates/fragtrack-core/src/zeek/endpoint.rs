//! One side of a TCP connection, as Zeek sees it from outside.

use super::history::Tally;
use super::segment::{FIN, RST, SYN};
use super::stream::Stream;

/// Sequence numbers of a SYN or RST further away than this are not believed.
const FAR: u32 = 1 << 20;

/// States of an endpoint; the order is Zeek's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    Inactive,
    SynSent,
    SynAckSent,
    Partial,
    Established,
    Closed,
    Reset,
}

impl State {
    pub(super) fn is_handshake(self) -> bool {
        self <= Self::SynAckSent
    }

    pub(super) const fn is_unseen(self) -> bool {
        matches!(self, Self::Inactive | Self::Partial)
    }

    pub(super) const fn is_opening(self) -> bool {
        matches!(self, Self::SynSent | Self::SynAckSent)
    }
}

/// One side.
///
/// Sequence numbers are 32 bits; `last` and `ack` (what the side sent up to, what the other side acknowledged) count
/// how often they went round since `start`.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) stream: Stream,
    /// Offset behind its latest FIN.
    pub(super) fin_at: Option<u64>,
    pub(super) last_syn: u64,
    pub(super) last_fin: u64,
    pub(super) last_rst: u64,
    /// Initial sequence number; without a SYN, one less than the first number.
    pub(super) start: u32,
    last: u32,
    last_wraps: u32,
    ack: u32,
    ack_wraps: u32,
    pub(super) checksums: Tally,
    pub(super) gaps: Tally,
    pub(super) repeats: Tally,
    pub(super) zero_windows: Tally,
    pub(super) state: State,
    pub(super) before: State,
    /// Its close was noticed, with all data before it.
    pub(super) closed: bool,
    /// It sent a packet.
    pub(super) started: bool,
}

const fn full(number: u32, wraps: u32) -> u64 {
    (wraps as u64) << 32 | number as u64
}

/// The offset of a number that stands near another one, and whether it is before the start.
const fn offset(start: u32, number: u32, near: u32, mut wraps: u32) -> (u64, bool) {
    let delta = number.wrapping_sub(near) as i32;
    if delta < 0 && wraps > 0 && number > near {
        wraps -= 1;
    } else if delta > 0 && number < near {
        wraps = wraps.wrapping_add(1);
    }
    if wraps > 0 {
        return (full(number, wraps).wrapping_sub(start as u64), false);
    }
    let delta = number.wrapping_sub(start) as i32;
    (delta as i64 as u64, delta < 0)
}

impl Endpoint {
    pub(super) const fn new() -> Self {
        Self {
            stream: Stream::new(),
            fin_at: None,
            last_syn: 0,
            last_fin: 0,
            last_rst: 0,
            start: 0,
            last: 0,
            last_wraps: 0,
            ack: 0,
            ack_wraps: 0,
            checksums: Tally::new(),
            gaps: Tally::new(),
            repeats: Tally::new(),
            zero_windows: Tally::new(),
            state: State::Inactive,
            before: State::Inactive,
            closed: false,
            started: false,
        }
    }

    /// Sets the numbers for a connection that starts at `start`.
    pub(super) const fn begin(&mut self, start: u32, last: u32) {
        (self.start, self.ack, self.last) = (start, start, last);
        self.ack_wraps = 0;
        self.last_wraps = (last < start) as u32;
    }

    /// Sets the numbers by a packet of its own, if it is one to start with.
    #[inline(always)]
    pub(super) const fn prepare(&mut self, flags: u8, seq: u32, end: u32) {
        if matches!(self.state, State::Inactive) {
            if flags & SYN != 0 {
                self.begin(seq, end);
            } else {
                // As if there had been a SYN, so that offsets start at 1 here too. Its data count as new only when
                // the packet itself is accounted for.
                self.begin(seq.wrapping_sub(1), seq);
            }
        } else if flags & SYN != 0 {
            let believed = match self.state {
                State::SynSent | State::SynAckSent => seq != self.start,
                State::Established | State::Partial => true,
                // A forged RST may have set the numbers; the SYN is the better witness.
                State::Reset => matches!(self.before, State::Inactive),
                State::Inactive | State::Closed => false,
            };
            if believed {
                self.begin(seq, end);
            }
        }
    }

    /// The offset of a sequence number of its own, and whether that is before its start.
    #[inline(always)]
    pub(super) const fn offset_seq(&self, seq: u32) -> (u64, bool) {
        offset(self.start, seq, self.last, self.last_wraps)
    }

    /// The offset of an acknowledgment of its data, and whether that is before its start.
    #[inline(always)]
    pub(super) const fn offset_ack(&self, ack: u32) -> (u64, bool) {
        offset(self.start, ack, self.ack, self.ack_wraps)
    }

    /// Takes an acknowledgment of its data, if it says more.
    #[inline(always)]
    pub(super) const fn acknowledge(&mut self, ack: u32) {
        let ahead = ack.wrapping_sub(self.ack) as i32;
        // A jump to just 0 is a broken number rather than a lot of data.
        if ahead > 0 && !(ack == 0 && ahead as u32 > FAR) {
            self.ack_wraps = self.ack_wraps.wrapping_add((ack < self.ack) as u32);
            self.ack = ack;
        }
    }

    /// Takes the end of a packet of its own; whether it repeats payload.
    #[inline(always)]
    pub(super) const fn advance(&mut self, end: u32, flags: u8, payload: u32) -> bool {
        let ahead = end.wrapping_sub(self.last) as i32;
        if flags & (SYN | RST) != 0 && ahead.unsigned_abs() > FAR {
            return false;
        }
        if flags & FIN != 0 && self.last == self.start.wrapping_add(1) {
            self.advance_to(end); // more than 2 GB may lie between the SYN and the FIN
        } else if matches!(self.state, State::Reset) {
        } else if ahead > 0 {
            self.advance_to(end);
        } else {
            return payload > 0;
        }
        false
    }

    const fn advance_to(&mut self, end: u32) {
        self.last_wraps = self.last_wraps.wrapping_add((end < self.last) as u32);
        self.last = end;
    }

    /// Offset up to which its data are acknowledged.
    pub(super) const fn acked(&self) -> u64 {
        full(self.ack, self.ack_wraps).wrapping_sub(self.start as u64)
    }

    /// Whether nothing but a SYN of it was acknowledged.
    pub(super) const fn is_unacked(&self) -> bool {
        self.acked() <= 1
    }

    /// Bytes of payload it sent, by the numbers.
    pub(super) fn size(&self, peer: State) -> u64 {
        if self.before == State::SynSent && self.state == State::Reset && peer == State::Inactive && !self.is_unacked()
        {
            return 0; // a half-open connection that was found and aborted; nothing was sent
        }
        let furthest = full(self.last, self.last_wraps).max(full(self.ack, self.ack_wraps));
        let controls = 1 + u64::from(self.fin_at.is_some());
        furthest.wrapping_sub(self.start.into()).saturating_sub(controls)
    }

    /// Whether it is established, or closed out of that.
    pub(super) fn is_clean(&self) -> bool {
        self.state == State::Established || (self.state == State::Closed && self.before == State::Established)
    }

    /// Whether its close has to wait for data of it, or for acknowledgments by it.
    pub(super) fn is_pending(&self, peer: &Stream) -> bool {
        if self.stream.skipping {
            return false;
        }
        let seen = u64::from(self.start).saturating_add(self.stream.next);
        let sent = full(self.last, self.last_wraps);
        if sent < seen {
            return false;
        }
        if sent - seen > 1 {
            return true;
        }
        self.state != State::Reset && peer.holds()
    }

    /// Says, once, that it closed and all of its data was seen.
    #[inline(always)]
    pub(super) fn comes_to_end(&mut self, peer: &Stream) -> bool {
        let closing = self.fin_at.is_some() || matches!(self.state, State::Closed | State::Reset);
        if !closing || self.stream.ended || self.is_pending(peer) {
            return false;
        }
        self.stream.ended = true;
        true
    }

    /// Whether the invariants hold.
    pub(super) fn check(&self) -> bool {
        self.stream.check()
    }
}
