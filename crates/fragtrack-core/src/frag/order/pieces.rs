//! Pieces: the ordering for policies that share bytes out. A tree of disjoint ranges, each what is left of one
//! fragment; a piece may be cut at either end, split in two, or replaced.

use std::collections::BTreeMap;

use super::Fit;
use crate::config::{Extent, Policy};
use crate::frag::policy::{Arrival, Piece, Winner, winner};

/// Where a held range ends, and which fragment its bytes are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Behind the last byte.
    pub end: u32,
    /// The held fragment (its number in the fragment store).
    pub node: u32,
    /// First byte of the fragment as it came.
    pub first: u32,
    /// Behind its last byte.
    pub last: u32,
}

/// The pieces of one datagram, by first byte.
///
/// Invariant: pieces are not empty and disjoint; each lies within its fragment; `covered` is the sum of their
/// lengths.
#[derive(Default, Clone)]
pub struct Pieces {
    map: BTreeMap<u32, Span>,
    covered: u32,
}

/// What an arriving fragment does: ranges of it that are kept, and what becomes of the pieces it touches.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Ranges of the new fragment that are kept, left to right.
    pub keep: Vec<(u32, u32)>,
    /// Held pieces that lose bytes: first byte, and up to two ranges that stay.
    pub cut: Vec<(u32, [(u32, u32); 2])>,
}

impl Pieces {
    /// Pieces that share a byte with `[start, end)`, left to right.
    fn touched(&self, start: u32, end: u32) -> impl Iterator<Item = (u32, Span)> {
        let from = self.map.range(..=start).next_back().map_or(start, |(first, _)| *first);
        self.map.range(from..end).map(|(s, span)| (*s, *span)).filter(move |(_, span)| span.end > start)
    }

    /// What `[start, end)` is to the pieces; `Inside` only if it is exactly one fragment held whole.
    #[must_use]
    pub fn fit(&self, start: u32, end: u32) -> Fit {
        let mut touched = self.touched(start, end);
        match (touched.next(), touched.next()) {
            (None, _) => Fit::Free,
            (Some((s, span)), None) if s == start && span.end == end => Fit::Inside,
            _ => Fit::Across,
        }
    }

    /// Decides who gets which bytes of `[start, end)`. Changes nothing.
    #[must_use]
    pub fn plan(&self, policy: Policy, extent: Extent, start: u32, end: u32) -> Plan {
        let mut plan = Plan::default();
        let mut cursor = start;
        for (s, span) in self.touched(start, end) {
            let held = Piece { start: s, end: span.end, first: span.first, last: span.last };
            match winner(policy, extent, held, Arrival { start, cursor, end }) {
                Winner::Held => {
                    if cursor < s {
                        plan.keep.push((cursor, s));
                    }
                    cursor = cursor.max(span.end);
                }
                Winner::New => plan.cut.push((s, [(s, cursor.max(s)), (end.min(span.end), span.end)])),
            }
        }
        if cursor < end {
            plan.keep.push((cursor, end));
        }
        plan
    }

    /// Carries out a plan for the fragment `node`, which came as `[first, last)`.
    pub fn commit(&mut self, plan: &Plan, node: u32, first: u32, last: u32) {
        for (start, stay) in &plan.cut {
            if let Some(span) = self.map.remove(start) {
                self.covered -= span.end - start;
                for (s, e) in stay.iter().filter(|(s, e)| s < e) {
                    self.map.insert(*s, Span { end: *e, ..span });
                    self.covered += e - s;
                }
            }
        }
        for (s, e) in &plan.keep {
            self.map.insert(*s, Span { end: *e, node, first, last });
            self.covered += e - s;
        }
    }

    /// Bytes covered.
    #[must_use]
    pub const fn covered(&self) -> u32 {
        self.covered
    }

    /// Every piece, left to right.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Span)> {
        self.map.iter().map(|(s, span)| (*s, *span))
    }

    /// Whether the invariant holds.
    #[must_use]
    pub fn check(&self) -> bool {
        let mut behind = 0;
        let mut covered = 0;
        for (s, span) in self.iter() {
            if s < behind || s >= span.end || s < span.first || span.end > span.last {
                return false;
            }
            behind = span.end;
            covered += span.end - s;
        }
        covered == self.covered
    }
}
