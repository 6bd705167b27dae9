//! Where one side's TCP payload has gaps: bytes acknowledged that the capture does not hold.
//!
//! Offsets are relative to the initial sequence number: the first byte of payload is 1.

use super::config::PIECES_LIMIT;

/// Bytes without any acknowledgment of the other side, after which none is expected.
const UNACKED: u64 = 16_384;
/// Bytes unacknowledged or beyond a hole, after which the search is given up.
const HELD: u64 = 10 * 1024 * 1024;

/// The bytes of one direction, without their content.
///
/// Invariant: pieces are not empty, in order, do not touch, and start above `next`; there are at most
/// [`PIECES_LIMIT`], of `beyond` bytes together; none while skipping.
#[derive(Debug)]
pub(super) struct Stream {
    /// All before was seen, or given up as a gap.
    pub(super) next: u64,
    /// All before was acknowledged, or is no longer waited for.
    pub(super) acked: u64,
    /// Pieces beyond a hole: start and end.
    above: Vec<(u64, u64)>,
    beyond: u64,
    /// The search was given up.
    pub(super) skipping: bool,
    /// The end of the stream was noticed.
    pub(super) ended: bool,
}

impl Stream {
    pub(super) const fn new() -> Self {
        Self { next: 1, acked: 1, above: Vec::new(), beyond: 0, skipping: false, ended: false }
    }

    /// Whether anything is unacknowledged or beyond a hole.
    pub(super) const fn holds(&self) -> bool {
        !self.skipping && (self.next > self.acked || !self.above.is_empty())
    }

    /// Takes note of bytes; whether there are too many pieces now. `unacked`: nothing of this side was acknowledged
    /// yet, of which `size` bytes came so far.
    #[inline]
    pub(super) fn sent(&mut self, start: u64, end: u64, size: u64, unacked: bool) -> bool {
        let start = start.max(self.acked);
        if self.skipping || end <= start {
            return false;
        }
        if start <= self.next {
            self.next = self.next.max(end);
            if !self.above.is_empty() {
                self.absorb();
            }
            if unacked && size > UNACKED {
                self.acked = self.acked.max(self.next);
            }
        } else {
            self.insert(start, end);
        }
        let furthest = self.above.last().map_or(0, |piece| piece.1.saturating_sub(self.next));
        let held = self.next.saturating_sub(self.acked).saturating_add(self.beyond);
        let crowded = self.above.len() > PIECES_LIMIT;
        if (unacked && furthest > UNACKED) || held > HELD || crowded {
            self.above = Vec::new();
            self.beyond = 0;
            self.skipping = true;
        }
        crowded
    }

    /// Takes note of an acknowledgment, beyond `acked`, of all before `upto`; tells the lengths of gaps it shows.
    /// `partial`: the start of the connection was not seen, so that 1 or 2 bytes mean nothing.
    #[inline]
    pub(super) fn acknowledged(&mut self, upto: u64, partial: bool, mut gap: impl FnMut(u64)) {
        if upto > self.next && !(partial && upto <= 2) {
            let passed = self.above.iter().take_while(|piece| piece.0 < upto).count();
            for (start, end) in self.above.drain(..passed) {
                gap(start.saturating_sub(self.next));
                self.beyond = self.beyond.saturating_sub(end.saturating_sub(start));
                self.next = end;
            }
            if upto > self.next {
                if !self.skipping {
                    gap(upto.saturating_sub(self.next));
                }
                self.next = upto;
            }
        }
        self.acked = upto;
        if !self.above.is_empty() {
            self.absorb();
        }
    }

    /// Takes pieces that `next` has come to.
    fn absorb(&mut self) {
        let reached = self.above.iter().scan(self.next, |next, piece| {
            let touched = piece.0 <= *next;
            *next = piece.1.max(*next);
            touched.then_some(())
        });
        let reached = reached.count();
        for (start, end) in self.above.drain(..reached) {
            self.beyond = self.beyond.saturating_sub(end.saturating_sub(start));
            self.next = self.next.max(end);
        }
    }

    /// Puts in a piece, joined with those it touches.
    fn insert(&mut self, mut start: u64, mut end: u64) {
        let from = self.above.partition_point(|piece| piece.1 < start);
        let to = self.above.partition_point(|piece| piece.0 <= end).max(from);
        for piece in self.above.get(from..to).unwrap_or_default() {
            start = start.min(piece.0);
            end = end.max(piece.1);
            self.beyond = self.beyond.saturating_sub(piece.1.saturating_sub(piece.0));
        }
        self.beyond = self.beyond.saturating_add(end.saturating_sub(start));
        self.above.splice(from..to, core::iter::once((start, end)));
    }

    /// Whether the invariant holds.
    pub(super) fn check(&self) -> bool {
        let mut last = self.next;
        let ordered = self.above.iter().all(|&(start, end)| {
            let fits = last < start && start < end;
            last = end;
            fits
        });
        let beyond = self.above.iter().map(|piece| piece.1.saturating_sub(piece.0)).sum::<u64>();
        ordered
            && beyond == self.beyond
            && self.above.len() <= PIECES_LIMIT
            && (!self.skipping || self.above.is_empty())
    }
}
