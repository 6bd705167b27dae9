//! A frame as the capture layer hands it over: where it is, how long, when, on what kind of link.

/// Link-layer type numbers, as pcap and pcapng write them: 16 bits, and one more value for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u32);

impl LinkType {
    /// Not a frame at all: a record that belongs to the file format (a pcapng block without a packet).
    pub const NONE: Self = Self(u32::MAX);
}

/// One record of a capture, by position; the bytes stay where they are.
///
/// Invariant (kept by the capture layer): `start + record` bytes exist in the segment and
/// `head + captured <= record`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Position of the record (its header, not the frame) in the segment.
    pub start: u64,
    /// Time stamp, nanoseconds since the epoch.
    pub time: i64,
    /// Length of the whole record in bytes: header, frame, padding, trailer.
    pub record: u32,
    /// Captured bytes of the frame.
    pub captured: u32,
    /// Bytes of the record before the frame's own.
    pub head: u16,
    /// How to read the frame's first bytes.
    pub link: LinkType,
}

/// Bytes around a frame in its record that cost nothing to hold.
const FREE: u32 = 128;

impl Frame {
    /// Bytes that holding the record is charged for: the captured ones, and what is unusually much around them
    /// (options of a pcapng block).
    #[inline(always)]
    #[must_use]
    pub const fn charge(&self) -> u32 {
        let around = self.record.saturating_sub(self.captured);
        self.captured.saturating_add(around.saturating_sub(FREE))
    }
}
