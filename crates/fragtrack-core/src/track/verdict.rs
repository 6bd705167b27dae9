//! What comes out: the verdict on a packet, its reason, and what the kernel would announce.

/// What a rule set sees as the state of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// Of a connection without an answer so far, in its original direction.
    New = 0,
    /// Of a connection that was answered, or the answer.
    Established = 1,
    /// An ICMP error about a connection.
    Related = 2,
    /// Of no connection.
    Invalid = 3,
    /// Exempt from tracking.
    Untracked = 4,
    /// A fragment that waits for the rest of its datagram.
    Held = 5,
    /// A fragment that reassembly refused.
    Dropped = 6,
}

impl Class {
    /// The names, by code.
    pub const NAMES: [&'static str; 7] = ["new", "established", "related", "invalid", "untracked", "held", "dropped"];

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        let [new, established, related, invalid, untracked, held, dropped] = Self::NAMES;
        match self {
            Self::New => new,
            Self::Established => established,
            Self::Related => related,
            Self::Invalid => invalid,
            Self::Untracked => untracked,
            Self::Held => held,
            Self::Dropped => dropped,
        }
    }
}

/// Who sent a packet, seen from the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Direction {
    /// Who sent the first packet.
    Original = 0,
    /// The other side.
    Reply = 1,
}

impl Direction {
    /// The other one.
    #[inline(always)]
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Original => Self::Reply,
            Self::Reply => Self::Original,
        }
    }

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Reply => "reply",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal;)*) => {
        /// Why a packet is invalid, is ignored, ends a connection; or what is odd about an accepted one. The words are
        /// in `fragtrack.verdicts.RULES`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $variant = $code,)*
        }

        impl Reason {
            /// Every reason, by code.
            pub const ALL: [Self; 39] = [$(Self::$variant,)*];

            /// The name used in tables, counters and messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// No sound IP header: bytes there, bytes needed.
    Header = 1, "header";
    /// A fragment that reassembly let pass: its offset.
    Fragment = 2, "fragment";
    /// The IPv6 extension headers lead nowhere: place, length.
    Extension = 3, "extension";
    /// The transport header is cut short: bytes there, bytes needed.
    Short = 4, "short";
    /// The TCP data offset: offset, length.
    Offset = 5, "offset";
    /// Wrong checksum: found, right.
    Checksum = 6, "checksum";
    /// TCP flags that do not go together.
    Flags = 7, "flags";
    /// No connection, and nothing to begin one: kind.
    NoEntry = 8, "no_entry";
    /// No connection, and picking up is switched off.
    NotLoose = 9, "not_loose";
    /// The state table forbids it: kind, state.
    Transition = 10, "transition";
    /// The state table says ignore: kind, state.
    State = 11, "state";
    /// Sequence number above the window: number, bound.
    SeqAbove = 12, "seq_above";
    /// The segment ends below the window: end, bound.
    SeqBelow = 13, "seq_below";
    /// Acknowledges what was not seen: number, bound.
    AckAbove = 14, "ack_above";
    /// Acknowledgment far below: number, bound.
    AckBelow = 15, "ack_below";
    /// More than the window, but no more than a window: bytes, most.
    Overshoot = 16, "overshoot";
    /// Reset below what is acknowledged: number, bound.
    RstBelow = 17, "rst_below";
    /// Reset with an inexact number: number, the exact one.
    RstInexact = 18, "rst_inexact";
    /// A challenge ACK: its number.
    ChallengeAck = 19, "challenge_ack";
    /// A SYN replaced a connection that was over: old state.
    Reopened = 20, "reopened";
    /// A reset before any answer: old state.
    Reset = 21, "reset";
    /// The table is full: connections, most.
    TableFull = 22, "table_full";
    /// The bucket is full: connections, most.
    Chain = 23, "chain";
    /// UDP length: length, bytes there.
    Length = 24, "length";
    /// UDP-Lite coverage: coverage, bytes there.
    Coverage = 25, "coverage";
    /// UDP-Lite without a checksum.
    NoChecksum = 26, "no_checksum";
    /// An ICMP type that is not tracked: type.
    IcmpType = 27, "icmp_type";
    /// An ICMP reply without a request: type.
    Unsolicited = 28, "unsolicited";
    /// The quoted packet cannot be read: bytes of it.
    Inner = 29, "inner";
    /// The quoted packet is one that nothing answers: ICMP type.
    InnerType = 30, "inner_type";
    /// The quoted packet belongs to no connection.
    InnerUnknown = 31, "inner_unknown";
    /// The error goes to another host than it is about.
    OuterAddress = 32, "outer_address";
    /// Neighbor or listener discovery: type.
    Discovery = 33, "discovery";
    /// SCTP verification tag: found, right.
    Vtag = 34, "vtag";
    /// SCTP chunk: type, place.
    Chunk = 35, "chunk";
    /// The SCTP state table forbids it: chunk type, state.
    ChunkState = 36, "chunk_state";
    /// GRE version 1 without PPP: protocol.
    Gre = 37, "gre";
    /// Windows learned anew after a gap: number, bound.
    Resynchronized = 38, "resynchronized";
    /// The second invalid FIN or RST, which cuts the timeout: number, bound.
    InvalidNoted = 39, "invalid_noted";
}

/// A reason with the numbers that were compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Why {
    /// The rule.
    pub reason: Reason,
    /// What the packet has.
    pub got: Option<u32>,
    /// What it was held against.
    pub bound: Option<u32>,
}

impl Why {
    /// With both numbers.
    #[must_use]
    pub const fn new(reason: Reason, got: u32, bound: u32) -> Self {
        Self { reason, got: Some(got), bound: Some(bound) }
    }

    /// With what the packet has only.
    #[must_use]
    pub const fn got(reason: Reason, got: u32) -> Self {
        Self { reason, got: Some(got), bound: None }
    }

    /// With what it was held against only.
    #[must_use]
    pub const fn bound(reason: Reason, bound: u32) -> Self {
        Self { reason, got: None, bound: Some(bound) }
    }

    /// Without numbers.
    #[must_use]
    pub const fn bare(reason: Reason) -> Self {
        Self { reason, got: None, bound: None }
    }
}

/// What a packet caused to be announced, as bits: destroy comes first, then new, then update.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events(pub u8);

impl Events {
    /// The connection, or the one that stood in its place, is gone.
    pub const DESTROY: u8 = 1;
    /// It is new.
    pub const NEW: u8 = 2;
    /// Its state, or a flag, changed.
    pub const UPDATE: u8 = 4;

    /// Adds one.
    #[inline(always)]
    pub const fn add(&mut self, event: u8) {
        self.0 |= event;
    }

    /// Whether it is there.
    #[must_use]
    pub const fn has(self, event: u8) -> bool {
        self.0 & event != 0
    }
}

/// What tracking makes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The class, fixed before the protocol looks at the packet.
    pub class: Class,
    /// Seen from the connection; `None` where none is attached.
    pub direction: Option<Direction>,
    /// Number of the connection, also of one that the packet ended or is invalid in; 0 is none.
    pub connection: u64,
    /// Where the connection is kept, if it is still there.
    pub slot: Option<u32>,
    /// Why, where there is something to say.
    pub why: Option<Why>,
    /// What it caused.
    pub events: Events,
}

impl Verdict {
    /// Without a connection.
    #[must_use]
    pub const fn alone(class: Class, why: Option<Why>) -> Self {
        Self { class, direction: None, connection: 0, slot: None, why, events: Events(0) }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum End {
    /// It has not: it is in the table.
    Open = 0,
    /// Both sides finished.
    Closed = 1,
    /// By a reset.
    Reset = 2,
    /// Its time ran out.
    Timeout = 3,
    /// It gave way in a full table.
    EarlyDrop = 4,
}

impl End {
    /// Every one, by code.
    pub const ALL: [Self; 5] = [Self::Open, Self::Closed, Self::Reset, Self::Timeout, Self::EarlyDrop];

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::EarlyDrop => "early_drop",
        }
    }
}
