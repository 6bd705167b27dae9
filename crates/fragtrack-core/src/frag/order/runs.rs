//! Runs (`inet_frag_queue_insert`, Linux since 5.0): ranges of bytes that arrived in order. Only the run with
//! the highest offset can grow; runs are never merged, even when they touch.
//!
//! The last run lives in the queue itself, so that traffic in order never comes here. The earlier runs of a
//! queue are kept here: up to seven in one cache line, more of them by bits. A run starts at a multiple of
//! 8 bytes below 65,536, so 8,192 bits say where runs start, and finding a neighbour is a handful of
//! instructions, whatever the number of runs (FragmentSmack, CVE-2018-5391, made a list of them).

use super::Fit;
use crate::frag::index::NIL;

const FEW: usize = 7;
const MANY: u32 = 1 << 31;
const CHUNKS: usize = 128;

/// Up to seven runs, sorted, in bytes.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Few {
    count: u32,
    starts: [u16; FEW],
    ends: [u32; FEW],
}

/// Any number of runs: 128 chunks of 64 units of 8 bytes.
///
/// Invariant: bit `c` of `used` is set exactly if chunk `c` exists, and then a run starts in it.
#[derive(Clone)]
struct Many {
    used: u128,
    chunks: [u32; CHUNKS],
}

/// The runs that start within 512 bytes.
#[derive(Clone, Copy)]
struct Chunk {
    /// Bit `u`: a run starts at unit `u`.
    starts: u64,
    /// Its end, in units.
    ends: [u16; 64],
}

/// The runs of all queues of a table; a queue has a handle, [`NIL`] while it has no run but its last.
///
/// Invariant: the runs of a handle are disjoint and not empty; a slot is either in use by one handle or
/// in its free list.
#[derive(Default)]
pub struct Runs {
    few: Vec<Few>,
    many: Vec<Many>,
    chunks: Vec<Chunk>,
    free_few: Vec<u32>,
    free_many: Vec<u32>,
    free_chunks: Vec<u32>,
}

fn take<T>(slots: &mut Vec<T>, free: &mut Vec<u32>, value: T) -> u32 {
    if let Some(at) = free.pop() {
        if let Some(slot) = slots.get_mut(at as usize) {
            *slot = value;
        }
        at
    } else {
        slots.push(value);
        (slots.len() - 1) as u32
    }
}

impl Runs {
    /// What `[start, end)` is to the runs of `handle`.
    #[must_use]
    pub fn fit(&self, handle: u32, start: u32, end: u32) -> Fit {
        if handle == NIL {
            return Fit::Free;
        }
        let (before, after) = if handle & MANY == 0 {
            self.few.get(handle as usize).map_or((None, None), |few| few.neighbours(start))
        } else {
            self.many_neighbours(handle & !MANY, start)
        };
        if let Some((_, held_end)) = before
            && held_end > start
        {
            return if end <= held_end { Fit::Inside } else { Fit::Across };
        }
        match after {
            Some(next) if next < end => Fit::Across,
            _ => Fit::Free,
        }
    }

    /// Adds a run that is free; gives the new handle.
    #[must_use]
    pub fn insert(&mut self, handle: u32, start: u32, end: u32) -> u32 {
        if handle == NIL {
            let mut few = Few { count: 0, starts: [0; FEW], ends: [0; FEW] };
            few.insert(start, end);
            return take(&mut self.few, &mut self.free_few, few);
        }
        if handle & MANY == 0 {
            let Some(few) = self.few.get_mut(handle as usize) else { return handle };
            if few.insert(start, end) {
                return handle;
            }
            let full = *few;
            self.free_few.push(handle);
            let many = take(&mut self.many, &mut self.free_many, Many { used: 0, chunks: [NIL; CHUNKS] });
            for (s, e) in full.starts.iter().zip(full.ends) {
                self.many_insert(many, u32::from(*s), e);
            }
            self.many_insert(many, start, end);
            return many | MANY;
        }
        self.many_insert(handle & !MANY, start, end);
        handle
    }

    /// Gives everything back.
    pub fn release(&mut self, handle: u32) {
        if handle == NIL {
            return;
        }
        if handle & MANY == 0 {
            self.free_few.push(handle);
            return;
        }
        let at = handle & !MANY;
        if let Some(many) = self.many.get(at as usize) {
            let mut used = many.used;
            while used != 0 {
                let chunk = many.chunks.get(used.trailing_zeros() as usize).copied().unwrap_or(NIL);
                self.free_chunks.push(chunk);
                used &= used - 1;
            }
        }
        self.free_many.push(at);
    }

    fn chunk(&self, many: &Many, at: u32) -> Option<&Chunk> {
        self.chunks.get(*many.chunks.get(at as usize)? as usize)
    }

    /// The run that starts at or before `start`, and the start of the next one.
    fn many_neighbours(&self, many: u32, start: u32) -> (Option<(u32, u32)>, Option<u32>) {
        let Some(many) = self.many.get(many as usize) else { return (None, None) };
        let unit = start / 8;
        let (home, bit) = (unit / 64, unit % 64);
        let here = self.chunk(many, home).map_or(0, |chunk| chunk.starts);
        let up_to = u64::MAX >> (63 - bit);
        let run = |chunk: u32, starts: u64| {
            let bit = 63 - starts.leading_zeros();
            let end = *self.chunk(many, chunk)?.ends.get(bit as usize)?;
            Some(((chunk * 64 + bit) * 8, u32::from(end) * 8))
        };
        let before = if here & up_to != 0 {
            run(home, here & up_to)
        } else {
            let lower = many.used & ((1u128 << home) - 1);
            (lower != 0)
                .then(|| 127 - lower.leading_zeros())
                .and_then(|chunk| run(chunk, self.chunk(many, chunk).map_or(0, |c| c.starts)))
        };
        let after = if here & !up_to != 0 {
            Some((home * 64 + (here & !up_to).trailing_zeros()) * 8)
        } else {
            let higher = many.used & (u128::MAX << home << 1);
            (higher != 0).then(|| higher.trailing_zeros()).map(|chunk| {
                let starts = self.chunk(many, chunk).map_or(0, |c| c.starts);
                (chunk * 64 + starts.trailing_zeros()) * 8
            })
        };
        (before, after)
    }

    fn many_insert(&mut self, many: u32, start: u32, end: u32) {
        let unit = start / 8;
        let (home, bit) = (unit / 64, unit % 64);
        let Some(many) = self.many.get_mut(many as usize) else { return };
        let Some(slot) = many.chunks.get_mut(home as usize) else { return };
        if many.used & (1 << home) == 0 {
            many.used |= 1 << home;
            *slot = take(&mut self.chunks, &mut self.free_chunks, Chunk { starts: 0, ends: [0; 64] });
        }
        if let Some(chunk) = self.chunks.get_mut(*slot as usize)
            && let Some(held) = chunk.ends.get_mut(bit as usize)
        {
            chunk.starts |= 1 << bit;
            *held = (end / 8) as u16;
        }
    }

    /// Every run of `handle`, sorted.
    #[must_use]
    pub fn list(&self, handle: u32) -> Vec<(u32, u32)> {
        if handle == NIL {
            return Vec::new();
        }
        if handle & MANY == 0 {
            return self.few.get(handle as usize).map_or_else(Vec::new, |few| {
                few.starts.iter().map(|s| u32::from(*s)).zip(few.ends).take(few.count as usize).collect()
            });
        }
        let mut list = Vec::new();
        let mut at = 0;
        while let (before, after) = self.many_neighbours(handle & !MANY, at)
            && (before.is_some_and(|(start, _)| start == at) || after.is_some())
        {
            list.extend(before.filter(|(start, _)| *start == at));
            let Some(next) = after else { break };
            at = next;
        }
        list
    }

    /// Slots in use: lines of seven, tables of bits, chunks.
    #[must_use]
    pub const fn used(&self) -> (usize, usize, usize) {
        (
            self.few.len() - self.free_few.len(),
            self.many.len() - self.free_many.len(),
            self.chunks.len() - self.free_chunks.len(),
        )
    }
}

impl Few {
    fn neighbours(&self, start: u32) -> (Option<(u32, u32)>, Option<u32>) {
        let (mut before, mut after) = (None, None);
        for (s, e) in self.starts.iter().zip(self.ends).take(self.count as usize) {
            let s = u32::from(*s);
            if s <= start {
                before = Some((s, e));
            } else {
                after = Some(s);
                break;
            }
        }
        (before, after)
    }

    /// Whether there was room.
    fn insert(&mut self, start: u32, end: u32) -> bool {
        let count = self.count as usize;
        if count == FEW {
            return false;
        }
        let at = self.starts.iter().take(count).filter(|s| u32::from(**s) < start).count();
        if let (Some(starts), Some(ends)) = (self.starts.get_mut(at..=count), self.ends.get_mut(at..=count)) {
            starts.rotate_right(1);
            ends.rotate_right(1);
            if let (Some(s), Some(e)) = (starts.first_mut(), ends.first_mut()) {
                (*s, *e) = (start as u16, end);
            }
        }
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn fits_like_a_plain_list(ranges in proptest::collection::vec((0u32..8191, 1u32..40), 1..300)) {
            let mut runs = Runs::default();
            let mut handle = NIL;
            let mut plain: BTreeMap<u32, u32> = BTreeMap::new();
            for (unit, units) in ranges {
                let (start, end) = (unit * 8, (unit + units) * 8);
                let expected = if plain.iter().any(|(s, e)| *s <= start && end <= *e) {
                    Fit::Inside
                } else if plain.iter().any(|(s, e)| *s < end && start < *e) {
                    Fit::Across
                } else {
                    Fit::Free
                };
                prop_assert_eq!(runs.fit(handle, start, end), expected);
                if expected == Fit::Free {
                    handle = runs.insert(handle, start, end);
                    plain.insert(start, end);
                }
                prop_assert_eq!(runs.list(handle), plain.iter().map(|(s, e)| (*s, *e)).collect::<Vec<_>>());
            }
            runs.release(handle);
            prop_assert_eq!(runs.used(), (0, 0, 0));
        }
    }
}
