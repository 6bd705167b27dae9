//! What a queue amounts to: its first fragment, its ranges in order, the flags of the result.

use super::held::{Node, Place};
use super::queue::Queue;
use super::table::Table;
use crate::config::Path;

/// A range of a datagram's payload, and where its bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// First byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
    /// Where the record is that has them.
    pub(crate) place: Place,
    /// Where in that record they start.
    pub(crate) inside: u32,
    /// Low 32 bits of the number of its frame.
    pub(crate) frame: u32,
}

impl Slice {
    #[inline(always)]
    fn new(node: &Node, start: u32, end: u32) -> Self {
        // A record is shorter than 2^32, and the range lies in it.
        let before = u32::from(node.ip).wrapping_add(node.header() as u32);
        let inside = before.wrapping_add(start).wrapping_sub(u32::from(node.start));
        Self { start, end, place: node.place, inside, frame: node.frame }
    }

    /// Its length, bytes.
    #[inline(always)]
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.end.wrapping_sub(self.start)
    }

    /// Whether it is empty: never.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Where its bytes start in the segment; `None` if they are a copy.
    #[must_use]
    pub const fn position(&self) -> Option<u64> {
        match self.place.position() {
            Some(start) => Some(start + self.inside as u64),
            None => None,
        }
    }
}

impl Table {
    /// The fragment that owns byte 0.
    #[must_use]
    pub fn first_node(&self, queue: &Queue) -> Option<&Node> {
        if let Some(pieces) = self.pieces(queue) {
            let (start, span) = pieces.iter().next()?;
            return if start == 0 { self.held.node(span.node) } else { None };
        }
        self.held.list(queue.head).map(|(_, node)| node).find(|node| node.start == 0)
    }

    /// Whether the result may not be fragmented: a largest fragment said so (`max_df_size`).
    #[must_use]
    pub fn dont_fragment(&self, at: u32) -> bool {
        if self.max_dist > 0 {
            // These sizes outlive a reset of the queue, as in the kernel.
            let detail = self.detail(at);
            return detail.max_df_size == detail.max_size;
        }
        let Some(queue) = self.queue(at) else { return false };
        let (mut largest, mut largest_df) = (0, 0);
        for (_, node) in self.held.list(queue.head) {
            largest = largest.max(node.size());
            if node.df() {
                largest_df = largest_df.max(node.size());
            }
        }
        largest == largest_df
    }

    /// Whether Linux would tell the sender of a timeout (IPv4): on the netfilter path only for its own addresses.
    #[must_use]
    pub fn may_answer(&self, queue: &Queue) -> bool {
        let (_, destination) = queue.addresses4();
        match (&self.local, self.path) {
            (Some(own), Path::Netfilter) => own.iter().any(|(net, mask)| destination & mask == *net),
            _ => true,
        }
    }

    /// The ranges of a datagram, the last one first: fragments that came in order are found in this order.
    #[inline(always)]
    pub fn slices(&self, queue: &Queue, out: &mut Vec<Slice>) {
        out.clear();
        if let Some(pieces) = self.pieces(queue) {
            out.extend(
                pieces.iter().filter_map(|(start, span)| Some(Slice::new(self.held.node(span.node)?, start, span.end))),
            );
            out.reverse();
            return;
        }
        let mut sorted = true;
        let mut behind = u32::MAX;
        for (_, node) in self.held.list(queue.head) {
            let (start, end) = (u32::from(node.start), node.end());
            sorted &= end <= behind;
            behind = start;
            out.push(Slice::new(node, start, end));
        }
        if !sorted {
            out.sort_unstable_by_key(|slice| core::cmp::Reverse(slice.start));
        }
    }
}
