//! Why a fragment did not become part of a complete datagram.

/// One reason per fragment that did not make it; the number is the code in result columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// All its bytes are held already; this fragment alone is dropped.
    Duplicate = 1,
    /// It shares bytes with held data where the policy forbids it.
    Overlap = 2,
    /// A last fragment that ends elsewhere than the known last one, or below data held.
    LastConflict = 3,
    /// Data beyond the known end.
    PastLast = 4,
    /// It carries no usable byte.
    Empty = 5,
    /// More than `max_dist` fragments of the same source came in between.
    TooFar = 6,
    /// ECN code points that must not occur together (RFC 3168 section 5.3).
    Ecn = 7,
    /// The datagram would exceed 65,535 bytes.
    Oversize = 8,
    /// The datagram was not complete in time.
    Timeout = 9,
    /// Refused: the memory limit is reached.
    Memory = 10,
    /// Pushed out by reclaim.
    Evicted = 11,
    /// The capture holds fewer bytes than the packet had.
    Truncated = 12,
    /// Version, header length or total length cannot be.
    Header = 13,
    /// The IPv4 header checksum is wrong.
    Checksum = 14,
    /// IPv6: more fragments follow, but the length is no multiple of 8.
    Unaligned = 15,
    /// IPv6: the first fragment lacks part of the header chain (RFC 7112).
    Chain = 16,
    /// IPv6: the fragment header is cut short, or the payload length is 0.
    FragmentHeader = 17,
    /// IPv6: a second fragment header inside the reassembled packet.
    Nested = 18,
    /// The input ended while the datagram was open.
    End = 19,
    /// It belongs to a datagram already discarded for an overlap (RFC 5722).
    Abandoned = 20,
}

impl Reason {
    /// Every reason, by code.
    pub const ALL: [Self; 20] = [
        Self::Duplicate,
        Self::Overlap,
        Self::LastConflict,
        Self::PastLast,
        Self::Empty,
        Self::TooFar,
        Self::Ecn,
        Self::Oversize,
        Self::Timeout,
        Self::Memory,
        Self::Evicted,
        Self::Truncated,
        Self::Header,
        Self::Checksum,
        Self::Unaligned,
        Self::Chain,
        Self::FragmentHeader,
        Self::Nested,
        Self::End,
        Self::Abandoned,
    ];

    /// The name used in tables, counters and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Overlap => "overlap",
            Self::LastConflict => "last_conflict",
            Self::PastLast => "past_last",
            Self::Empty => "empty",
            Self::TooFar => "too_far",
            Self::Ecn => "ecn",
            Self::Oversize => "oversize",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Evicted => "evicted",
            Self::Truncated => "truncated",
            Self::Header => "header",
            Self::Checksum => "checksum",
            Self::Unaligned => "unaligned",
            Self::Chain => "chain",
            Self::FragmentHeader => "fragment_header",
            Self::Nested => "nested",
            Self::End => "end",
            Self::Abandoned => "abandoned",
        }
    }

    /// The code: 1 to 20.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}
