//! Overlap policies: who gets the bytes that a held piece and an arriving fragment have in common.
//!
//! A policy is one pure function over intervals. `linux` and `rfc5722` never share bytes out: they drop, or
//! kill; their rule is in [`super::table`]. The others differ only here. The definitions are those of the
//! systems' own list algorithms (Shankar and Paxson 2003; Novak 2005), which compare with the pieces as they
//! are held *now*: pairwise tables over the fragments as they came do not compose.

use crate::config::{Extent, Policy};

/// Who keeps the common bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Winner {
    /// The piece that is held.
    Held,
    /// The fragment that arrives.
    New,
}

/// A held piece, and the fragment it is what is left of; bytes, half-open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// First byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
    /// First byte of the fragment as it came.
    pub first: u32,
    /// Behind its last byte.
    pub last: u32,
}

/// The fragment that arrives; bytes, half-open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// First byte as it came.
    pub start: u32,
    /// First byte not yet lost to a piece further left.
    pub cursor: u32,
    /// Behind the last byte.
    pub end: u32,
}

/// Decides about one held piece that shares bytes with the arriving fragment; pieces are asked from left to right.
#[must_use]
pub fn winner(policy: Policy, extent: Extent, held: Piece, new: Arrival) -> Winner {
    let (old_start, old_end) = match extent {
        Extent::Piece => (held.start, held.end),
        Extent::Original => (held.first, held.last),
    };
    let new_wins = match policy {
        // Never asked: they do not share bytes out.
        Policy::Linux | Policy::Rfc5722 | Policy::First => false,
        Policy::Last => true,
        Policy::Bsd => held.start > new.start,
        Policy::LinuxOld => held.start >= new.start,
        Policy::BsdRight => old_start <= new.start,
        Policy::Windows => new.start < old_start && old_end < new.end,
        Policy::Solaris => held.start > new.cursor && held.end <= new.end,
    };
    if new_wins { Winner::New } else { Winner::Held }
}
