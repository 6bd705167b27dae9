//! From a hash to the queues that have it: one cache line per look-up.
//!
//! A line holds seven entries and a count of those that found it full and went on to the next line, so that a
//! look-up knows when to stop and a removal leaves no mark behind (the scheme of F14). Eight bits of the hash per
//! entry lie in one word, so that all seven are compared at once.

use crate::prefetch;

/// No queue.
pub const NIL: u32 = u32::MAX;

const WAYS: usize = 7;
const SMALLEST: u32 = 6;
/// Bits of the byte that counts the entries passed on.
const PASSED: u32 = 56;
/// A count that is kept for good: it may stand for more.
const MANY_PASSED: u64 = 255;
const EACH: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x0080_8080_8080_8080;

/// Invariant: byte `i < 7` of `tags` is 0 exactly if entry `i` is empty; byte 7 counts the entries that belong to
/// this line or an earlier one and stand in a later one, or is 255.
#[repr(C, align(64))]
#[derive(Clone)]
struct Line {
    tags: u64,
    hashes: [u32; WAYS],
    queues: [u32; WAYS],
}

const EMPTY: Line = Line { tags: 0, hashes: [0; WAYS], queues: [0; WAYS] };

/// A tag is not 0.
#[inline(always)]
const fn tag(hash: u32) -> u64 {
    let low = hash as u64 & 0xff;
    if low == 0 { 1 } else { low }
}

/// Marks, in their top bits, bytes that are zero. The lowest mark is right; a higher one may be wrong, which costs a
/// comparison.
#[inline(always)]
const fn zeros(bytes: u64) -> u64 {
    bytes.wrapping_sub(EACH) & !bytes & TOPS
}

impl Line {
    const fn passed(&self) -> u64 {
        self.tags >> PASSED
    }

    const fn pass(&mut self) {
        if self.passed() != MANY_PASSED {
            self.tags += 1 << PASSED;
        }
    }

    const fn unpass(&mut self) {
        if self.passed() != MANY_PASSED {
            self.tags -= 1 << PASSED;
        }
    }

    /// The queues of the entries that have this hash, with their places.
    #[inline(always)]
    fn with(&self, hash: u32) -> impl Iterator<Item = (usize, u32)> {
        let mut marks = zeros(self.tags ^ tag(hash).wrapping_mul(EACH));
        core::iter::from_fn(move || {
            while marks != 0 {
                let at = (marks.trailing_zeros() / 8) as usize;
                marks &= marks - 1;
                if self.hashes.get(at) == Some(&hash) {
                    return Some((at, *self.queues.get(at)?));
                }
            }
            None
        })
    }

    fn put(&mut self, at: usize, hash: u32, queue: u32) {
        if let (Some(h), Some(q)) = (self.hashes.get_mut(at), self.queues.get_mut(at)) {
            (*h, *q) = (hash, queue);
            self.tags |= tag(hash) << (8 * at);
        }
    }

    fn clear(&mut self, at: usize) {
        self.tags &= !(0xff << (8 * at));
        if let Some(hash) = self.hashes.get_mut(at) {
            *hash = 0;
        }
    }

    /// Every entry: hash and queue.
    fn entries(&self) -> impl Iterator<Item = (u32, u32)> {
        let full = |at: &usize| self.tags >> (8 * at) & 0xff != 0;
        (0..WAYS).filter(full).filter_map(|at| Some((*self.hashes.get(at)?, *self.queues.get(at)?)))
    }
}

/// The index: hash → queue numbers.
///
/// Invariant: every entry stands at its home line or, in order, in one behind it with all lines between
/// counting it; `len` entries in all; at most five per line on average.
pub struct Index {
    lines: Vec<Line>,
    shift: u32,
    len: usize,
}

impl Index {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self { lines: vec![EMPTY; 1 << SMALLEST], shift: 32 - SMALLEST, len: 0 }
    }

    #[inline(always)]
    const fn home(&self, hash: u32) -> usize {
        // At most 31 bits are shifted out: the index never has fewer than two lines.
        hash.wrapping_shr(self.shift) as usize
    }

    #[inline(always)]
    const fn after(&self, line: usize) -> usize {
        line.wrapping_add(1) & self.lines.len().wrapping_sub(1)
    }

    /// Asks for the line that a look-up of `hash` will read.
    #[inline(always)]
    pub fn prefetch(&self, hash: u32) {
        if let Some(line) = self.lines.get(self.home(hash)) {
            prefetch::line(line);
        }
    }

    /// The first queue that has this hash, unchecked: a guess to prefetch by.
    #[inline(always)]
    #[must_use]
    pub fn guess(&self, hash: u32) -> u32 {
        let found = self.lines.get(self.home(hash)).and_then(|line| line.with(hash).next());
        found.map_or(NIL, |(_, queue)| queue)
    }

    /// The queue with this hash for which `same` holds.
    #[inline(always)]
    pub fn find(&self, hash: u32, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let line = self.lines.get(at)?;
            for (_, queue) in line.with(hash) {
                if same(queue) {
                    return Some(queue);
                }
            }
            if line.passed() == 0 {
                return None;
            }
            at = self.after(at);
        }
    }

    /// Whether all entries of the hash's home line are in that line.
    #[inline(always)]
    #[must_use]
    pub fn is_calm(&self, hash: u32) -> bool {
        self.lines.get(self.home(hash)).is_none_or(|line| line.passed() == 0)
    }

    /// The entries whose hash is from `low` to `high`.
    pub fn range(&self, low: u32, high: u32) -> impl Iterator<Item = u32> {
        let (last, mut reached) = (self.home(high), false);
        let (mut next, mut left) = (Some(self.home(low)), self.lines.len());
        let lines = core::iter::from_fn(move || {
            let at = next?;
            let line = self.lines.get(at)?;
            reached |= at == last;
            left = left.saturating_sub(1);
            // Behind the last line, entries that did not fit go on.
            let over = left == 0 || (reached && line.passed() == 0);
            next = (!over).then(|| self.after(at));
            Some(line)
        });
        lines.flat_map(Line::entries).filter(move |(hash, _)| (low..=high).contains(hash)).map(|(_, queue)| queue)
    }

    /// Bytes in use.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }

    /// Adds an entry; two with the same hash are fine.
    #[inline(always)]
    pub fn insert(&mut self, hash: u32, queue: u32) {
        if self.len >= self.lines.len() * 5 {
            self.grow();
        }
        self.len += 1;
        self.place(hash, queue);
    }

    #[inline(always)]
    fn place(&mut self, hash: u32, queue: u32) {
        let mut at = self.home(hash);
        loop {
            let next = self.after(at);
            let Some(line) = self.lines.get_mut(at) else { return };
            let free = zeros(line.tags);
            if free != 0 {
                line.put((free.trailing_zeros() / 8) as usize, hash, queue);
                return;
            }
            line.pass();
            at = next;
        }
    }

    /// Removes an entry that is there.
    #[inline(always)]
    pub fn remove(&mut self, hash: u32, queue: u32) {
        let mut at = self.home(hash);
        for _ in 0..self.lines.len() {
            let next = self.after(at);
            let Some(line) = self.lines.get_mut(at) else { return };
            let place = line.with(hash).find(|(_, q)| *q == queue).map(|(at, _)| at);
            if let Some(place) = place {
                line.clear(place);
                self.len -= 1;
                return;
            }
            line.unpass();
            at = next;
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut doubled = Vec::with_capacity(self.lines.len() * 2);
        prefetch::large_pages(doubled.spare_capacity_mut());
        doubled.resize(self.lines.len() * 2, EMPTY);
        let old = core::mem::replace(&mut self.lines, doubled);
        self.shift -= 1;
        for (hash, queue) in old.iter().flat_map(Line::entries) {
            self.place(hash, queue);
        }
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the invariant holds, and each entry is found.
    #[must_use]
    pub fn check(&self) -> bool {
        let mut count = 0;
        let mut passed = vec![0u64; self.lines.len()];
        for (at, line) in self.lines.iter().enumerate() {
            for (hash, queue) in line.entries() {
                count += 1;
                if self.find(hash, |found| found == queue).is_none() {
                    return false;
                }
                let mut from = self.home(hash);
                while from != at {
                    if let Some(p) = passed.get_mut(from) {
                        *p += 1;
                    }
                    from = self.after(from);
                }
            }
        }
        let counted = |(line, passed): (&Line, u64)| line.passed() == passed || line.passed() == MANY_PASSED;
        count == self.len && self.lines.iter().zip(passed).all(counted)
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn a_line_is_one_cache_line() {
        assert_eq!(size_of::<Line>(), 64);
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(ops in proptest::collection::vec((any::<bool>(), 0u32..40, any::<u32>()), 0..600)) {
            let mut index = Index::new();
            let mut map: HashMap<u32, u32> = HashMap::new();
            for (i, (add, small, wide)) in ops.into_iter().enumerate() {
                let queue = i as u32;
                if add {
                    // Few distinct hashes: lines overflow.
                    let hash = if wide % 3 == 0 { wide } else { small };
                    index.insert(hash, queue);
                    map.insert(queue, hash);
                } else if let Some((&queue, &hash)) = map.iter().next() {
                    index.remove(hash, queue);
                    map.remove(&queue);
                }
                prop_assert!(index.check());
            }
            prop_assert_eq!(index.len(), map.len());
            for (queue, hash) in map {
                prop_assert_eq!(index.find(hash, |q| q == queue), Some(queue));
            }
        }
    }
}
