//! Held fragments: one half cache line each, and copies of frames whose bytes do not stay put.

use crate::prefetch;

/// Where the record of a held fragment is: in the current segment, or copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place(u64);

const COPIED: u64 = 1 << 63;
const FREE: u64 = u64::MAX;

impl Place {
    /// At this byte of the current segment.
    #[must_use]
    pub const fn segment(at: u64) -> Self {
        Self(at & !COPIED)
    }

    const fn copy(slot: u32) -> Self {
        Self(COPIED | slot as u64)
    }

    /// The place in the current segment, unless it is a copy.
    #[must_use]
    pub const fn position(self) -> Option<u64> {
        if self.is_borrowed() { Some(self.0) } else { None }
    }

    /// Whether its bytes are in the current segment.
    #[must_use]
    pub const fn is_borrowed(self) -> bool {
        self.0 & COPIED == 0
    }
}

/// One held fragment.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The fragment of the same queue that came before it, or [`NIL`].
    pub next: u32,
    /// Low 32 bits of its frame number.
    pub frame: u32,
    /// Where its record is.
    pub place: Place,
    /// Length of the record, bytes.
    pub record: u32,
    /// Which section or input the record is of.
    pub origin: u32,
    /// First byte of its payload within the datagram.
    pub start: u16,
    /// Payload bytes.
    pub length: u16,
    /// Bytes of the record before the IP header.
    pub ip: u16,
    /// Bytes from the IP header to the payload, divided by 4; top bit: don't fragment.
    header: u16,
}

const DF: u16 = 1 << 15;

/// What a node is made of, besides its place in a queue.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Where the record starts in the current segment.
    pub start: u64,
    /// Its length, bytes.
    pub length: u32,
    /// Bytes of it before the IP header.
    pub ip: u16,
    /// Which section or input it is of.
    pub origin: u32,
    /// Number of the frame.
    pub frame: u64,
    /// Bytes that holding it is charged for, besides a fixed cost.
    pub charged: u32,
    /// Captured bytes from the IP header on.
    pub packet: u32,
}

impl Node {
    /// A node for `record`, carrying payload bytes `[start, start + length)`.
    #[must_use]
    #[inline(always)]
    pub const fn new(record: &Record, start: u32, length: u32, header: u32, df: bool, next: u32) -> Self {
        Self {
            next,
            frame: record.frame as u32,
            place: Place::segment(record.start),
            record: record.length,
            origin: record.origin,
            start: start as u16,
            length: length as u16,
            ip: record.ip,
            header: (header / 4) as u16 | if df { DF } else { 0 },
        }
    }

    /// Bytes from the IP header to the payload.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> usize {
        (self.header & !DF) as usize * 4
    }

    /// Whether it may not be fragmented.
    #[must_use]
    pub const fn df(&self) -> bool {
        self.header & DF != 0
    }

    /// Behind its last payload byte.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.start as u32 + self.length as u32
    }

    /// Bytes of the packet that are in use: header and payload.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.header() as u32 + self.length as u32
    }
}

/// All held fragments of a table, and the copies.
///
/// Invariant: a slot is in one queue's list or in the free list (`place` says which); a copy belongs to
/// exactly one node.
#[derive(Default)]
pub struct Held {
    nodes: Vec<Node>,
    free: Vec<u32>,
    copies: Vec<Option<Box<[u8]>>>,
    free_copies: Vec<u32>,
    /// Nodes put in since the last [`Held::settle`], while the segment is one that will go away.
    fresh: Vec<u32>,
    latest: u32,
}

impl Held {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the lines that the next nodes will be put in.
    #[inline(always)]
    pub fn prefetch_free(&self, ahead: usize) {
        if let Some(node) =
            self.free.len().checked_sub(ahead).and_then(|at| self.nodes.get(*self.free.get(at)? as usize))
        {
            prefetch::line(node);
        }
    }

    /// Adds a node.
    #[inline(always)]
    pub fn add(&mut self, node: Node) -> u32 {
        if let Some(at) = self.free.pop()
            && let Some(slot) = self.nodes.get_mut(at as usize)
        {
            *slot = node;
            self.latest = at;
            return at;
        }
        prefetch::push(&mut self.nodes, node);
        self.latest = (self.nodes.len() - 1) as u32;
        self.latest
    }

    /// Notes that the bytes of the node put in last will go away with the segment.
    pub fn note_fresh(&mut self) {
        self.fresh.push(self.latest);
    }

    /// The node at `at`.
    #[inline(always)]
    #[must_use]
    pub fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    /// Gives the list that starts at `first` back; how many nodes it had.
    #[inline]
    pub fn release(&mut self, first: u32) -> u64 {
        let (mut at, mut count) = (first, 0);
        while let Some(node) = self.nodes.get_mut(at as usize) {
            let (place, next) = (node.place, node.next);
            node.place = Place(FREE);
            self.free.push(at);
            if !place.is_borrowed() {
                self.drop_copy(place);
            }
            count += 1;
            at = next;
        }
        count
    }

    #[inline(never)]
    fn drop_copy(&mut self, place: Place) {
        let slot = (place.0 & !COPIED) as u32;
        if let Some(copy) = self.copies.get_mut(slot as usize) {
            *copy = None;
            self.free_copies.push(slot);
        }
    }

    /// The list that starts at `first`: newest first.
    pub fn list(&self, first: u32) -> impl Iterator<Item = (u32, &Node)> {
        let mut at = first;
        core::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            let this = at;
            at = node.next;
            Some((this, node))
        })
    }

    /// Bytes of a record that start `inside` it.
    #[inline(always)]
    #[must_use]
    pub fn bytes<'a>(&'a self, segment: &'a [u8], place: Place, inside: usize, length: usize) -> &'a [u8] {
        let (from, start) = if place.is_borrowed() {
            (segment, (place.0 as usize).wrapping_add(inside))
        } else {
            (self.copied(place), inside)
        };
        from.get(start..start.wrapping_add(length)).unwrap_or(&[])
    }

    #[inline(never)]
    fn copied(&self, place: Place) -> &[u8] {
        let slot = (place.0 & !COPIED) as usize;
        self.copies.get(slot).and_then(Option::as_deref).unwrap_or(&[])
    }

    /// The record of a node.
    #[inline]
    #[must_use]
    pub fn record<'a>(&'a self, segment: &'a [u8], node: &Node) -> &'a [u8] {
        self.bytes(segment, node.place, 0, node.record as usize)
    }

    /// Copies what is still held of the nodes noted as fresh.
    pub fn settle(&mut self, segment: &[u8]) {
        let fresh = core::mem::take(&mut self.fresh);
        for at in &fresh {
            self.keep(*at, segment);
        }
        self.fresh = fresh;
        self.fresh.clear();
    }

    /// Copies every record that is still in the segment.
    pub fn settle_all(&mut self, segment: &[u8]) {
        for at in 0..self.nodes.len() {
            self.keep(at as u32, segment);
        }
        self.fresh.clear();
    }

    fn keep(&mut self, at: u32, segment: &[u8]) {
        let Some(node) = self.nodes.get(at as usize).copied().filter(|node| node.place.is_borrowed()) else {
            return;
        };
        let bytes: Box<[u8]> = self.record(segment, &node).into();
        let slot = if let Some(slot) = self.free_copies.pop() {
            slot
        } else {
            self.copies.push(None);
            (self.copies.len() - 1) as u32
        };
        if let (Some(copy), Some(node)) = (self.copies.get_mut(slot as usize), self.nodes.get_mut(at as usize)) {
            *copy = Some(bytes);
            node.place = Place::copy(slot);
        }
    }

    /// Which sections or inputs the held records are of.
    pub fn origins(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().filter(|node| node.place != Place(FREE)).map(|node| node.origin)
    }

    /// Fragments held, and frames copied.
    #[must_use]
    pub const fn used(&self) -> (usize, usize) {
        (self.nodes.len() - self.free.len(), self.copies.len() - self.free_copies.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_half_a_cache_line() {
        assert_eq!(size_of::<Node>(), 32);
    }
}
