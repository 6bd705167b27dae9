//! One connection, in two cache lines: what every packet looks at in the first, counts and times in the second.

use super::packet::Key;
use super::segment::Kind;
use super::states::State;
use super::verdict::{Direction, End};
use crate::wire::Family;

/// What is known of the numbers that one side sends. Bounds as in "Real Stateful TCP Packet Filtering in IP Filter"
/// (van Rooij 2000), which the kernel follows:
///
/// 1. upper bound for data: `seq <= maxend`
/// 2. lower bound for data: `end >= self.end - other.maxwin`
/// 3. upper bound for acknowledgments: `sack <= other.end`
/// 4. lower bound for acknowledgments: `sack >= other.end - max(66000, self.maxwin)`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Side {
    /// Behind the highest byte it sent.
    pub end: u32,
    /// Highest number the other side allows.
    pub maxend: u32,
    /// Largest window it offered, scaled; 0: it was not seen yet.
    pub maxwin: u32,
    /// Highest number it acknowledged.
    pub maxack: u32,
}

/// Flags of a side: bits as in the kernel (`IP_CT_TCP_FLAG_*`).
pub mod flag {
    /// Its SYN had a window scale.
    pub const WINDOW_SCALE: u8 = 0x01;
    /// Its SYN permitted SACK.
    pub const SACK_PERMITTED: u8 = 0x02;
    /// It closed first.
    pub const CLOSE_INIT: u8 = 0x04;
    /// What is outside of the window is let through.
    pub const BE_LIBERAL: u8 = 0x08;
    /// It sent data that is not acknowledged.
    pub const DATA_UNACKNOWLEDGED: u8 = 0x10;
    /// `maxack` holds a number.
    pub const MAXACK_SET: u8 = 0x20;
    /// In `last_flags`: a SYN was ignored in LAST_ACK; what comes may be a challenge ACK.
    pub const CHALLENGE_ACK: u8 = 0x40;
    /// In `last_flags`: both sides opened.
    pub const SIMULTANEOUS_OPEN: u8 = 0x80;
}

/// Bits of [`Flow::bits`].
pub mod bit {
    /// It is in the table.
    pub const LIVE: u8 = 0x01;
    /// It was answered.
    pub const SEEN_REPLY: u8 = 0x02;
    /// It is not dropped early.
    pub const ASSURED: u8 = 0x04;
    /// The upper endpoint sent the first packet.
    pub const SWAPPED: u8 = 0x08;
    /// IPv6.
    pub const V6: u8 = 0x10;
    /// SCTP: a packet changed the state before it turned out invalid; the next one announces that.
    pub const UNANNOUNCED: u8 = 0x20;
}

/// One connection. Other protocols than TCP keep what they need in the places that TCP uses: see the methods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C, align(64))]
pub struct Flow {
    /// See [`Key::addr`].
    pub addr: u64,
    /// When its time runs out, nanoseconds.
    pub deadline: i64,
    /// Original and reply.
    sides: [Side; 2],
    /// See [`Key::ports`].
    pub ports: u32,
    /// `end` of the last segment remembered.
    pub last_end: u32,
    /// Protocol.
    pub protocol: u8,
    /// See [`bit`].
    pub bits: u8,
    /// TCP or SCTP state.
    pub state: u8,
    /// Identical segments in a row.
    pub retrans: u8,
    /// Window scales: original in the low half.
    scales: u8,
    flags: [u8; 2],
    /// Kind of the last segment, and its direction.
    last: u8,

    bytes: [u64; 2],
    /// Time of the first packet.
    pub first: i64,
    /// Highest time of a packet.
    pub latest: i64,
    packets: [u32; 2],
    /// `seq` of the last segment remembered.
    pub last_seq: u32,
    /// `ack` of the last segment remembered.
    pub last_ack: u32,
    /// Window of the last segment remembered, as it stood there.
    pub last_window: u16,
    /// Window scale of an ignored SYN.
    pub last_scale: u8,
    /// Flags of an ignored SYN.
    pub last_flags: u8,
    /// Packets that came in fragments.
    pub fragments: u32,
    /// Packets that were invalid.
    pub invalid: u32,
    /// Low half of its number.
    pub number: u32,
}

/// Both sides with their flags, to look at and to change.
pub struct Ends<'a> {
    /// Who sends.
    pub sender: &'a mut Side,
    /// The other one.
    pub receiver: &'a mut Side,
    /// Flags of the sender.
    pub sent: &'a mut u8,
    /// Flags of the receiver.
    pub received: &'a mut u8,
}

/// A pair as (the one of `direction`, the other one).
#[inline(always)]
const fn ordered<T: Copy>([original, reply]: [T; 2], direction: Direction) -> (T, T) {
    match direction {
        Direction::Original => (original, reply),
        Direction::Reply => (reply, original),
    }
}

impl Flow {
    /// A connection whose first packet has this key.
    #[inline(always)]
    #[must_use]
    pub fn new(key: &Key, swapped: bool, time: i64) -> Self {
        let v6 = if key.family == Family::V6 { bit::V6 } else { 0 };
        let swapped = if swapped { bit::SWAPPED } else { 0 };
        Self {
            addr: key.addr,
            ports: key.ports,
            protocol: key.protocol,
            bits: bit::LIVE | v6 | swapped,
            first: time,
            latest: time,
            last: Kind::None as u8,
            ..Self::default()
        }
    }

    /// Whether a bit is set.
    #[inline(always)]
    #[must_use]
    pub const fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    /// Family.
    #[must_use]
    pub const fn family(&self) -> Family {
        if self.has(bit::V6) { Family::V6 } else { Family::V4 }
    }

    /// Who sent a packet that is `swapped`.
    #[inline(always)]
    #[must_use]
    pub const fn direction(&self, swapped: bool) -> Direction {
        if self.has(bit::SWAPPED) == swapped { Direction::Original } else { Direction::Reply }
    }

    /// The sides: sender, receiver.
    #[inline(always)]
    #[must_use]
    pub const fn sides(&self, sender: Direction) -> (Side, Side) {
        ordered(self.sides, sender)
    }

    /// Stores both.
    #[inline(always)]
    pub const fn set_sides(&mut self, sender: Direction, sides: (Side, Side)) {
        self.sides = match sender {
            Direction::Original => [sides.0, sides.1],
            Direction::Reply => [sides.1, sides.0],
        };
    }

    /// Both sides, seen from who sends.
    #[inline(always)]
    pub const fn ends(&mut self, sender: Direction) -> Ends<'_> {
        let ([a, b], [x, y]) = (&mut self.sides, &mut self.flags);
        match sender {
            Direction::Original => Ends { sender: a, receiver: b, sent: x, received: y },
            Direction::Reply => Ends { sender: b, receiver: a, sent: y, received: x },
        }
    }

    /// The flags: sender, receiver.
    #[inline(always)]
    #[must_use]
    pub const fn flags(&self, sender: Direction) -> (u8, u8) {
        ordered(self.flags, sender)
    }

    /// Stores both.
    #[inline(always)]
    pub const fn set_flags(&mut self, sender: Direction, flags: (u8, u8)) {
        self.flags = match sender {
            Direction::Original => [flags.0, flags.1],
            Direction::Reply => [flags.1, flags.0],
        };
    }

    /// Window scale of a side, at most 14.
    #[inline(always)]
    #[must_use]
    pub const fn scale(&self, side: Direction) -> u8 {
        match side {
            Direction::Original => self.scales & 15,
            Direction::Reply => self.scales >> 4,
        }
    }

    /// Stores it.
    #[inline(always)]
    pub const fn set_scale(&mut self, side: Direction, scale: u8) {
        let scale = scale & 15;
        self.scales = match side {
            Direction::Original => self.scales & 0xf0 | scale,
            Direction::Reply => self.scales & 0x0f | scale << 4,
        };
    }

    /// Kind and direction of the last segment remembered.
    #[inline(always)]
    #[must_use]
    pub const fn last(&self) -> (Kind, Direction) {
        let direction = if self.last & 0x80 == 0 { Direction::Original } else { Direction::Reply };
        (Kind::from_number(self.last & 0x7f), direction)
    }

    /// Remembers them.
    #[inline(always)]
    pub const fn set_last(&mut self, kind: Kind, direction: Direction) {
        self.last = kind as u8 | (direction as u8) << 7;
    }

    /// TCP: forgets all that was remembered of segments.
    pub const fn forget_last(&mut self) {
        self.last = Kind::None as u8;
        (self.last_seq, self.last_ack, self.last_end) = (0, 0, 0);
        (self.last_window, self.last_scale, self.last_flags, self.retrans) = (0, 0, 0, 0);
    }

    /// Remembers the direction only.
    #[inline(always)]
    pub const fn set_last_direction(&mut self, direction: Direction) {
        self.last = self.last & 0x7f | (direction as u8) << 7;
    }

    /// TCP state.
    #[inline(always)]
    #[must_use]
    pub const fn tcp(&self) -> State {
        State::from_number(self.state)
    }

    /// Counts a packet.
    #[inline(always)]
    pub const fn count(&mut self, direction: Direction, bytes: u32) {
        let (packets, total) = match direction {
            Direction::Original => (&mut self.packets[0], &mut self.bytes[0]),
            Direction::Reply => (&mut self.packets[1], &mut self.bytes[1]),
        };
        *packets = packets.saturating_add(1);
        *total = total.wrapping_add(bytes as u64);
    }

    /// Packets and bytes counted of a side.
    #[must_use]
    pub const fn counted(&self, side: Direction) -> (u32, u64) {
        (ordered(self.packets, side).0, ordered(self.bytes, side).0)
    }

    /// UDP: from when on it is a stream, nanoseconds.
    #[inline(always)]
    #[must_use]
    pub const fn stream_from(&self) -> i64 {
        let [Side { end, maxend, .. }, _] = self.sides;
        ((end as u64) << 32 | maxend as u64) as i64
    }

    /// Stores it.
    #[inline(always)]
    pub const fn set_stream_from(&mut self, time: i64) {
        let [side, _] = &mut self.sides;
        (side.end, side.maxend) = ((time as u64 >> 32) as u32, time as u32);
    }

    /// SCTP: verification tag that this side sends.
    #[must_use]
    pub const fn vtag(&self, side: Direction) -> u32 {
        ordered(self.sides, side).0.end
    }

    /// Stores it.
    pub const fn set_vtag(&mut self, side: Direction, vtag: u32) {
        match side {
            Direction::Original => self.sides[0].end = vtag,
            Direction::Reply => self.sides[1].end = vtag,
        }
    }

    /// SCTP: this side sent an INIT that was not answered by a cookie yet.
    #[must_use]
    pub const fn init(&self, side: Direction) -> bool {
        ordered(self.sides, side).0.maxend != 0
    }

    /// Stores it.
    pub const fn set_init(&mut self, side: Direction, init: bool) {
        match side {
            Direction::Original => self.sides[0].maxend = init as u32,
            Direction::Reply => self.sides[1].maxend = init as u32,
        }
    }

    /// How it stands, or how it ended if its time ran out.
    #[must_use]
    pub const fn end(&self, over: bool) -> End {
        const SCTP_CLOSED: u8 = 1;
        match (self.protocol, self.state) {
            (super::packet::TCP, state) if state == State::TimeWait as u8 => End::Closed,
            (super::packet::TCP, state) if state == State::Close as u8 => End::Reset,
            (super::packet::SCTP, SCTP_CLOSED) if self.has(bit::ASSURED) => End::Closed,
            _ if over => End::Timeout,
            _ => End::Open,
        }
    }

    /// Whether it is nearly over, so that it may go when room is needed (`tcp_can_early_drop`, `sctp_can_early_drop`).
    #[must_use]
    pub const fn closing(&self) -> bool {
        match self.protocol {
            super::packet::TCP => self.tcp().closing(),
            super::packet::SCTP => matches!(self.state, 5..=7),
            _ => false,
        }
    }

    /// Whether it may give way where there is no room.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn may_go(&self) -> bool {
        !self.has(bit::ASSURED) || self.closing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn two_cache_lines() {
        assert_eq!(size_of::<Flow>(), 128);
        assert_eq!(offset_of!(Flow, bytes), 64);
    }
}
