//! What a queue amounts to: its first fragment, its ranges in order, the flags of the result.

use super::held::Node;
use super::queue::Queue;
use super::table::Table;
use crate::config::Path;
use crate::event::Slice;

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

    /// The ranges of a datagram in order, each with the fragment that supplies it.
    #[inline(always)]
    pub fn slices(&self, queue: &Queue, out: &mut Vec<Slice>) {
        out.clear();
        if let Some(pieces) = self.pieces(queue) {
            out.extend(pieces.iter().map(|(start, span)| Slice { start, end: span.end, node: span.node }));
            return;
        }
        let mut sorted = true;
        let mut behind = u32::MAX;
        for (at, node) in self.held.list(queue.head) {
            let (start, end) = (u32::from(node.start), node.end());
            sorted &= end <= behind;
            behind = start;
            out.push(Slice { start, end, node: at });
        }
        if sorted {
            out.reverse();
        } else {
            out.sort_unstable_by_key(|slice| slice.start);
        }
    }
}
