//! The TCP states and the table that leads from one to the next, as the kernel has them (`nf_conntrack_proto_tcp.c`).

use super::segment::Kind;
use super::verdict::Direction;

/// States by the kernel's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Nothing was seen.
    None = 0,
    /// SYN seen.
    SynSent = 1,
    /// SYN/ACK seen.
    SynRecv = 2,
    /// ACK of the SYN/ACK seen, or picked up in the middle.
    Established = 3,
    /// First FIN seen.
    FinWait = 4,
    /// ACK after the first FIN seen.
    CloseWait = 5,
    /// Second FIN seen.
    LastAck = 6,
    /// ACK of the second FIN seen.
    TimeWait = 7,
    /// RST seen.
    Close = 8,
    /// SYNs of both sides seen.
    SynSent2 = 9,
}

impl State {
    /// The names, by number.
    pub const NAMES: [&'static str; 10] = [
        "NONE",
        "SYN_SENT",
        "SYN_RECV",
        "ESTABLISHED",
        "FIN_WAIT",
        "CLOSE_WAIT",
        "LAST_ACK",
        "TIME_WAIT",
        "CLOSE",
        "SYN_SENT2",
    ];

    /// From its number.
    #[inline(always)]
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::SynSent,
            2 => Self::SynRecv,
            3 => Self::Established,
            4 => Self::FinWait,
            5 => Self::CloseWait,
            6 => Self::LastAck,
            7 => Self::TimeWait,
            8 => Self::Close,
            9 => Self::SynSent2,
            _ => Self::None,
        }
    }

    /// Whether the connection is nearly over (`tcp_can_early_drop`).
    #[inline(always)]
    #[must_use]
    pub const fn closing(self) -> bool {
        matches!(self, Self::FinWait | Self::CloseWait | Self::LastAck | Self::TimeWait | Self::Close)
    }
}

/// What the table says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// Go to a state.
    To(State),
    /// Let it through, change nothing.
    Ignore,
    /// The packet cannot be.
    Invalid,
}

const SS: Cell = Cell::To(State::SynSent);
const SR: Cell = Cell::To(State::SynRecv);
const ES: Cell = Cell::To(State::Established);
const FW: Cell = Cell::To(State::FinWait);
const CW: Cell = Cell::To(State::CloseWait);
const LA: Cell = Cell::To(State::LastAck);
const TW: Cell = Cell::To(State::TimeWait);
const CL: Cell = Cell::To(State::Close);
const S2: Cell = Cell::To(State::SynSent2);
const IG: Cell = Cell::Ignore;
const IV: Cell = Cell::Invalid;

/// From direction, kind and state to what follows (`tcp_conntracks`). Columns: no entry, SYN_SENT, SYN_RECV, ESTABLISHED,
/// FIN_WAIT, CLOSE_WAIT, LAST_ACK, TIME_WAIT, CLOSE, SYN_SENT2.
#[rustfmt::skip]
pub const TABLE: [[[Cell; 10]; 6]; 2] = [
    [ // original
        // A SYN opens, or opens again what is over; elsewhere the other side has to say whether it means anything.
        [SS, SS, IG, IG, IG, IG, IG, SS, SS, S2],
        // A SYN/ACK from who sent the SYN: only where both opened.
        [IV, IV, SR, IV, IV, IV, IV, IV, IV, SR],
        // The first FIN, the second one; repeated ones stay.
        [IV, IV, FW, FW, LA, LA, LA, TW, CL, IV],
        // An ACK without an entry is picked up; it completes the handshake, and follows FINs.
        [ES, IV, ES, ES, CW, CW, TW, TW, CL, IV],
        // A RST closes.
        [IV, CL, CL, CL, CL, CL, CL, CL, CL, CL],
        [IV, IV, IV, IV, IV, IV, IV, IV, IV, IV],
    ],
    [ // reply
        // A SYN of the other side: both open; or it opens again, the other way round.
        [IV, S2, IV, IV, IV, IV, IV, SS, IV, S2],
        // The answer to the SYN. Elsewhere it may answer a SYN that was ignored.
        [IV, SR, IG, IG, IG, IG, IG, IG, IG, SR],
        [IV, IV, FW, FW, LA, LA, LA, TW, CL, IV],
        // An ACK in answer to a SYN may be a challenge (RFC 5961).
        [IV, IG, SR, ES, CW, CW, TW, TW, CL, IG],
        [IV, CL, CL, CL, CL, CL, CL, CL, CL, CL],
        [IV, IV, IV, IV, IV, IV, IV, IV, IV, IV],
    ],
];

/// What the table says.
#[inline(always)]
pub(super) fn look(direction: Direction, kind: Kind, state: State) -> Cell {
    let row = TABLE.get(direction as usize).and_then(|rows| rows.get(kind as usize));
    row.and_then(|row| row.get(state as usize)).copied().unwrap_or(Cell::Invalid)
}
