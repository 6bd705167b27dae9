//! One datagram being put together: everything that an arriving fragment needs, in one cache line.

use super::index::NIL;

/// The fragment at offset 0 is held.
pub const FIRST: u8 = 1;
/// A last fragment was seen: `len` is the datagram's length.
pub const LAST: u8 = 2;
/// Discarded for an overlap, and kept only to swallow what still comes (RFC 5722).
pub const POISONED: u8 = 4;
/// The bits of a context that are the domain; above them is the IPv4 protocol.
pub const DOMAIN: u64 = (1 << 56) - 1;
/// The ECN code points seen, a bit each, start at this bit.
const ECN_SHIFT: u8 = 4;

/// The flag for an ECN code point.
#[inline(always)]
#[must_use]
pub const fn seen(ecn: u8) -> u8 {
    (1 << ECN_SHIFT) << (ecn & 3)
}

/// A fragment queue (`struct inet_frag_queue`).
///
/// The order of the fields matters: one that is read soon after the queue was made must lie within one of the stores
/// that made it. Where zeros are written by stores that overlap, a read waits for the cache line instead.
///
/// Invariant, while it is live: `meat` is the number of payload bytes held; `run_start..run_end` is the run
/// with the highest offset, and `runs` has the others (linux), or `runs` numbers its pieces (other policies);
/// no held byte lies at or beyond `len`; `cost` is what the table's memory counts for it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// See [`crate::wire::Fragment::addr`].
    pub addr: u64,
    /// See [`crate::wire::Fragment::context`].
    pub context: u64,
    /// Time of the packet that made it, nanoseconds.
    pub created: i64,
    /// Highest end seen.
    pub len: u32,
    /// Bytes held.
    pub meat: u32,
    /// Identification.
    pub id: u32,
    /// Hash of its key.
    pub hash: u32,
    /// The fragment that came last, or [`NIL`].
    pub head: u32,
    /// Handle of the earlier runs, or number of the pieces, or [`NIL`].
    pub runs: u32,
    /// End of the run with the highest offset; 0 if nothing is held.
    pub run_end: u32,
    /// What it costs, bytes by the cost model.
    pub cost: u32,
    /// Which creation this is, from 1; 0 once it has ended.
    pub seq: u32,
    /// Start of the run with the highest offset.
    pub run_start: u16,
    /// [`FIRST`], [`LAST`], [`POISONED`], and the ECN bits.
    pub flags: u8,
    /// IPv6: next header of the fragment that made it (IPv4 has the protocol in `context`).
    pub opener: u8,
}

impl Queue {
    /// Forgets what was held, and all that was learned from it.
    pub const fn reset(&mut self) {
        self.head = NIL;
        self.runs = NIL;
        self.run_start = 0;
        self.run_end = 0;
        self.len = 0;
        self.meat = 0;
        self.flags = 0;
    }

    /// Whether every byte is there.
    #[inline(always)]
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.flags & (FIRST | LAST) == FIRST | LAST && self.meat == self.len
    }

    /// Whether it holds any fragment.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.head != NIL
    }

    /// The ECN code points seen: bit 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.flags >> ECN_SHIFT
    }

    /// Source and destination, IPv4.
    #[must_use]
    pub const fn addresses4(&self) -> (u32, u32) {
        ((self.addr >> 32) as u32, self.addr as u32)
    }

    /// The domain, without the protocol.
    #[must_use]
    pub const fn domain(&self) -> u64 {
        self.context & DOMAIN
    }

    /// The IPv4 protocol.
    #[must_use]
    pub const fn protocol4(&self) -> u8 {
        (self.context >> 56) as u8
    }
}

/// What only some configurations ask for, beside the queue and not in its line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail {
    /// Times of the first and the last accepted fragment, nanoseconds.
    pub first_time: i64,
    /// See `first_time`.
    pub last_time: i64,
    /// Number of the last event of the queue: its creation, or an accepted fragment.
    pub last_seq: u64,
    /// Value of the source's fragment counter at the last fragment (`ipq.rid`).
    pub rid: u32,
    /// Largest fragment, header and payload (`ipq.q.max_size`).
    pub max_size: u16,
    /// Largest fragment with DF (`ipq.max_df_size`).
    pub max_df_size: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_one_cache_line() {
        assert_eq!(size_of::<Queue>(), 64);
        assert_eq!(core::mem::offset_of!(Queue, flags), 62);
    }
}
