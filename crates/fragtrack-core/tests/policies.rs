//! The trimming policies: against a model that knows only bytes and their owners, and by the published test vector.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Event, Log, V4, V6, check, check_empty, config, push};
use fragtrack_core::config::{Config, Duplicates, Extent, Policy};
use fragtrack_core::frag::order::Fit;
use fragtrack_core::frag::order::pieces::Pieces;
use fragtrack_core::{Engine, Reason};
use proptest::prelude::*;
use proptest::sample::select;

const TRIMMING: [Policy; 7] =
    [Policy::First, Policy::Last, Policy::Bsd, Policy::BsdRight, Policy::LinuxOld, Policy::Windows, Policy::Solaris];

/// Bytes of a model datagram.
const SIZE: usize = 24;

/// Who owns each byte, and what each fragment was when it came.
#[derive(Clone, Default)]
struct Model {
    owners: [Option<usize>; SIZE],
    came: Vec<(usize, usize)>,
}

impl Model {
    /// The bytes around `at` that are of the same fragment and hang together.
    fn run(&self, at: usize) -> (usize, usize) {
        let owner = self.owners[at];
        let start = (0..at).rev().take_while(|i| self.owners[*i] == owner).last().unwrap_or(at);
        let end = (at..SIZE).take_while(|i| self.owners[*i] == owner).last().unwrap_or(at) + 1;
        (start, end)
    }

    /// Whether the fragment `[start, end)` takes a byte that is owned, by the rules between two extents.
    fn takes(&self, policy: Policy, extent: Extent, at: usize, (start, end): (usize, usize)) -> bool {
        let now = self.run(at);
        let (from, to) = match (extent, self.owners[at]) {
            (Extent::Original, Some(owner)) => self.came[owner],
            _ => now,
        };
        match policy {
            Policy::First => false,
            Policy::Last => true,
            // The old one wins exactly if it starts no later; if it starts earlier.
            Policy::Bsd => now.0 > start,
            Policy::LinuxOld => now.0 >= start,
            Policy::BsdRight => from <= start,
            Policy::Windows => start < from && to < end,
            Policy::Linux | Policy::Rfc5722 | Policy::Solaris => unreachable!("has no such rule"),
        }
    }

    /// The bytes that a fragment takes.
    fn taken(&self, policy: Policy, extent: Extent, (start, end): (usize, usize)) -> Vec<usize> {
        if policy == Policy::Solaris {
            // Its head is cut as long as it stands on something; its tail, if it ends within a piece.
            let from = (start..end).find(|at| self.owners[*at].is_none()).unwrap_or(end);
            let last = (end < SIZE && from < end && self.owners[end - 1].is_some()).then(|| self.run(end - 1));
            let to = last.filter(|(_, to)| *to > end).map_or(end, |(from, _)| from);
            return (from..to).collect();
        }
        (start..end).filter(|at| self.owners[*at].is_none() || self.takes(policy, extent, *at, (start, end))).collect()
    }
}

fn ranges() -> impl Strategy<Value = Vec<(usize, usize)>> {
    let range = (0..SIZE - 1).prop_flat_map(|start| (Just(start), start + 1..=SIZE.min(start + 12)));
    prop::collection::vec(range, 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_are_owned_bytes(
        policy in select(TRIMMING.to_vec()),
        extent in select(vec![Extent::Piece, Extent::Original]),
        ranges in ranges(),
    ) {
        let (mut pieces, mut model) = (Pieces::default(), Model::default());
        for (node, (start, end)) in ranges.into_iter().enumerate() {
            let taken = model.taken(policy, extent, (start, end));
            let touched = (start..end).any(|at| model.owners[at].is_some());
            let exact = model.run(start) == (start, end);
            let fit = match (touched, exact) {
                (false, _) => Fit::Free,
                (true, true) => Fit::Inside,
                (true, false) => Fit::Across,
            };
            prop_assert_eq!(pieces.fit(start as u32, end as u32), fit);

            let plan = pieces.plan(policy, extent, start as u32, end as u32);
            // A fragment that nothing is kept of changes nothing.
            prop_assert_eq!(plan.keep.is_empty() && plan.cut.is_empty(), taken.is_empty());
            pieces.commit(&plan, node as u32, start as u32, end as u32);
            for at in taken {
                model.owners[at] = Some(node);
            }
            model.came.push((start, end));

            prop_assert!(pieces.check());
            let mut owners = [None; SIZE];
            for (from, span) in pieces.iter() {
                owners[from as usize..span.end as usize].fill(Some(span.node as usize));
                let (first, last) = model.came[span.node as usize];
                prop_assert_eq!((span.first, span.last), (first as u32, last as u32));
            }
            prop_assert_eq!(owners, model.owners);
            prop_assert_eq!(pieces.covered() as usize, owners.iter().flatten().count());
        }
    }
}

/// Shankar and Paxson's fragments, extended by Novak: offset and length in octets of 8 bytes, as they arrive.
const VECTOR: [(&str, u32, usize); 17] = [
    ("1", 0, 3),
    ("2", 4, 2),
    ("3", 6, 3),
    ("3.1", 10, 1),
    ("3.2", 13, 2),
    ("3.3", 15, 3),
    ("3.4", 18, 2),
    ("3.5", 20, 2),
    ("3.6", 22, 1),
    ("4", 1, 4),
    ("5", 6, 3),
    ("6", 9, 3),
    ("7", 12, 3),
    ("8", 16, 1),
    ("9", 19, 1),
    ("10", 20, 1),
    ("11", 22, 2),
];

/// Who owns each octet in the end.
const OWNERS: [(Policy, &str); 7] = [
    (Policy::Bsd, "1 1 1 4 4 2 3 3 3 6 6 6 7 7 7 3.3 3.3 3.3 3.4 3.4 3.5 3.5 3.6 11"),
    (Policy::LinuxOld, "1 1 1 4 4 2 5 5 5 6 6 6 7 7 7 3.3 3.3 3.3 3.4 3.4 10 3.5 11 11"),
    (Policy::Windows, "1 1 1 4 2 2 3 3 3 6 6 6 7 3.2 3.2 3.3 3.3 3.3 3.4 3.4 3.5 3.5 3.6 11"),
    (Policy::Solaris, "1 1 1 4 2 2 3 3 3 6 6 6 7 7 7 3.3 3.3 3.3 3.4 3.4 3.5 3.5 3.6 11"),
    (Policy::First, "1 1 1 4 2 2 3 3 3 6 3.1 6 7 3.2 3.2 3.3 3.3 3.3 3.4 3.4 3.5 3.5 3.6 11"),
    (Policy::Last, "1 4 4 4 4 2 5 5 5 6 6 6 7 7 7 3.3 8 3.3 3.4 9 10 3.5 11 11"),
    (Policy::BsdRight, "1 4 4 4 2 2 5 5 5 6 3.1 6 7 3.2 3.2 3.3 8 3.3 3.4 9 10 3.5 11 11"),
];

/// The packets of the vector; the bytes of each are its number in it.
fn vector(wide: bool) -> Vec<Vec<u8>> {
    (VECTOR.iter().enumerate())
        .map(|(number, (name, octet, octets))| {
            let (payload, more) = (vec![number as u8; octets * 8], *name != "11");
            if wide {
                V6::new(1, octet * 8, more, &payload).bytes()
            } else {
                V4::new(1, octet * 8, more, &payload).bytes()
            }
        })
        .collect()
}

fn run(config: Config, wide: bool) -> (Engine, Log) {
    let (mut engine, mut log) = (Engine::new(config, true), Log::default());
    for (number, packet) in vector(wide).iter().enumerate() {
        push(&mut engine, &mut log, number as u64, packet, number as i64);
        check(&engine);
    }
    (engine, log)
}

#[test]
fn the_published_vector() {
    for (policy, owners) in OWNERS {
        let owners: Vec<u8> = (owners.split(' '))
            .map(|owner| VECTOR.iter().position(|(name, ..)| *name == owner).expect("a name") as u8)
            .collect();
        for wide in [false, true] {
            let (engine, log) = run(config(policy), wide);
            check_empty(&engine);
            let wholes = log.wholes();
            let [whole] = wholes.as_slice() else { panic!("one datagram comes of it") };
            let octets: Vec<u8> = whole.payload.chunks(8).map(|octet| octet[0]).collect();
            assert!(whole.payload.chunks(8).all(|octet| octet.iter().all(|byte| *byte == octet[0])));
            assert_eq!(octets, owners, "{policy:?}");
            // Each frame that supplies a byte, once, in the order of offsets.
            let mut frames: Vec<u64> = Vec::new();
            for owner in &owners {
                if !frames.contains(&u64::from(*owner)) {
                    frames.push(u64::from(*owner));
                }
            }
            assert_eq!(whole.frames, frames, "{policy:?}");
            // Fragments that nothing is kept of are duplicates; those overwritten later were used.
            let duplicates = log.events.iter().filter(|event| matches!(event, Event::Dropped(_, Reason::Duplicate)));
            assert_eq!(duplicates.count() as u64 + engine.totals().used, 17);
        }
    }
}

#[test]
fn the_published_vector_where_overlaps_are_forbidden() {
    for wide in [false, true] {
        // The first overlap, fragment 4, ends the datagram; what follows opens another one that is never whole.
        let (mut engine, mut log) = run(config(Policy::Linux), wide);
        engine.flush(&[], &mut log);
        let lost: Vec<(Reason, usize)> = log.lost().iter().map(|lost| (lost.reason, lost.frames.len())).collect();
        assert_eq!(lost, [(Reason::Overlap, 10), (Reason::End, 7)]);
        assert_eq!(log.wholes().len(), 0);
        check_empty(&engine);
        // Or what follows is swallowed.
        for duplicates in [Duplicates::Ignore, Duplicates::Discard] {
            let (mut engine, mut log) = run(Config { duplicates, ..config(Policy::Rfc5722) }, wide);
            engine.flush(&[], &mut log);
            let lost: Vec<(Reason, usize)> = log.lost().iter().map(|lost| (lost.reason, lost.frames.len())).collect();
            assert_eq!(lost, [(Reason::Overlap, 10)]);
            assert_eq!(engine.totals().lost(Reason::Abandoned), 7);
            check_empty(&engine);
        }
    }
}

#[test]
fn a_trimmed_fragment_keeps_its_place_in_its_record() {
    // One fragment supplies both ends, another the middle: bytes must come from the right places.
    let outer: Vec<u8> = (0..24).collect();
    let (mut engine, mut log) = (Engine::new(config(Policy::Last), true), Log::default());
    push(&mut engine, &mut log, 0, &V4::new(1, 8, true, &outer).bytes(), 0);
    push(&mut engine, &mut log, 1, &V4 { options: vec![1; 12], ..V4::new(1, 16, true, &[99; 8]) }.bytes(), 0);
    push(&mut engine, &mut log, 2, &V4::new(1, 32, false, &[77; 3]).bytes(), 0);
    push(&mut engine, &mut log, 3, &V4::new(1, 0, true, &[55; 8]).bytes(), 0);
    let expected = [vec![55; 8], (0..8).collect(), vec![99; 8], (16..24).collect(), vec![77; 3]].concat();
    assert_eq!(log.wholes()[0].payload, expected);
    assert_eq!(log.wholes()[0].frames, [3, 0, 1, 2]);
    check_empty(&engine);
}

#[test]
fn extents_differ_once_a_piece_was_trimmed() {
    // What is left of a fragment starts at 16; the fragment itself started at 8, or at 0.
    let windows = [(0, 16), (8, 16), (8, 24)];
    let bsd_right = [(0, 24), (8, 8), (8, 24)];
    for (policy, extent, fragments, owner) in [
        (Policy::Windows, Extent::Piece, windows, 2),
        (Policy::Windows, Extent::Original, windows, 1),
        (Policy::BsdRight, Extent::Piece, bsd_right, 0),
        (Policy::BsdRight, Extent::Original, bsd_right, 2),
    ] {
        let (mut engine, mut log) = (Engine::new(Config { extent, ..config(policy) }, true), Log::default());
        for (number, (offset, length)) in fragments.into_iter().enumerate() {
            let packet = V4::new(1, offset, number < 2, &vec![number as u8; length]).bytes();
            push(&mut engine, &mut log, number as u64, &packet, 0);
        }
        check_empty(&engine);
        assert_eq!(log.wholes()[0].payload[16..24], [owner; 8], "{policy:?} {extent:?}");
    }
}
