//! What holds of an engine after every step, whatever comes and however it is set up.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use common::{Event, Log, SECOND, V4, V6, check, check_empty, config, pattern, push_in};
use fragtrack_core::Engine;
use fragtrack_core::config::{Checksum, Config, CostModel, Duplicates, Extent, Path, Policy, Reclaim};
use fragtrack_core::frag::rules::kernel_cost;
use fragtrack_core::wire::Family;
use proptest::prelude::*;
use proptest::sample::select;

/// What happens at one step.
#[derive(Clone, Debug)]
enum Step {
    Packet { bytes: Vec<u8>, domain: u64 },
    Advance,
    Flush,
}

/// How time goes on.
#[derive(Clone, Copy, Debug)]
enum Clock {
    By(i64),
    To(i64),
}

fn calm() -> impl Strategy<Value = Clock> {
    select(vec![0i64, 0, 0, 1, 1000, -1, SECOND / 64]).prop_map(Clock::By)
}

fn wild() -> impl Strategy<Value = Clock> {
    let near = [0, 0, 0, 0, 1, 1, SECOND, SECOND, -1, -SECOND];
    let far = [2 * SECOND - 1, 2 * SECOND, 3 * SECOND, 3 * SECOND + 1, -2 * SECOND, -2 * SECOND - 1, -4 * SECOND];
    prop_oneof![
        12 => select(near.to_vec()).prop_map(Clock::By),
        3 => select(far.to_vec()).prop_map(Clock::By),
        1 => select(vec![i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX]).prop_map(Clock::To),
    ]
}

/// Offset and length: most overlap or meet, some are at the end of what there may be.
fn range() -> impl Strategy<Value = (u32, usize)> {
    prop_oneof![
        10 => (0u32..8).prop_flat_map(|unit| (Just(unit * 8), select(vec![8, 8, 16, 16, 24, 40, 12, 3, 0]))),
        1 => (select(vec![8190u32, 8191, 8189]), select(vec![8usize, 16, 7, 20])).prop_map(|(unit, length)| (unit * 8, length)),
        1 => Just((0, 65_512)),
        1 => Just((16, 65_480)),
    ]
}

fn packet() -> impl Strategy<Value = Step> {
    let key = (
        select(vec![0u32, 0, 0, 0, 1, 2]),
        select(vec![0u32, 0, 0, 0, 1]),
        select(vec![0u64, 0, 0, 0, 0, 1 << 48 | 7]),
    );
    let flags = (prop::bool::weighted(0.75), any::<bool>(), select(vec![0u8, 0, 0, 0, 0, 0, 2, 3]));
    let odd = (0u8..60, select(vec![253u8, 253, 253, 253, 17, 6, 58, 0, 60, 59, 44]));
    (any::<bool>(), key, range(), flags, odd).prop_map(|(wide, key, (offset, length), (more, df, ecn), (odd, next))| {
        let (source, id, domain) = key;
        let payload = pattern(source as u8, offset, length as u32);
        let mut bytes = if wide {
            let before = if odd == 7 { vec![44, 0, 1, 4, 0, 0, 0, 0] } else { Vec::new() };
            let first = if before.is_empty() { 44 } else { 60 };
            let mut packet = V6 { next, ecn, first, before, ..V6::new(id, offset, more, &payload) };
            packet.source |= u128::from(source) << 72;
            packet.bytes()
        } else {
            let options = if odd == 7 { vec![1; 8] } else { Vec::new() };
            let mut packet = V4 { df, ecn, options, ..V4::new(id as u16, offset, more, &payload) };
            packet.source += source << 8;
            packet.bytes()
        };
        match odd {
            // Padding; a packet cut short; a wrong checksum or payload length; no IP at all; nothing.
            0 => bytes.extend([0; 5]),
            1 => bytes.truncate(bytes.len() / 2),
            2 => bytes[10] ^= 1,
            3 => bytes[4..6].fill(0),
            4 => bytes[0] = 0x50,
            5 => bytes.clear(),
            6 => bytes.truncate(bytes.len() - bytes.len().min(3)),
            _ => {}
        }
        Step::Packet { bytes, domain }
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![60 => packet(), 2 => Just(Step::Advance), 1 => Just(Step::Flush)]
}

fn steps() -> impl Strategy<Value = Vec<(Step, Clock)>> {
    let some = |clock| prop::collection::vec((step(), clock), 1..100);
    prop_oneof![some(calm().boxed()), some(wild().boxed())]
}

fn settings() -> impl Strategy<Value = (Config, bool)> {
    let policies = Policy::ALL.map(|(_, policy)| policy).to_vec();
    let memory = vec![
        512u64 << 20,
        512 << 20,
        512 << 20,
        512 << 20,
        512 << 20,
        512 << 20,
        512 << 20,
        0,
        1,
        300,
        600,
        1500,
        3000,
        5000,
        80_000,
    ];
    let reclaims = vec![Reclaim::Refuse, Reclaim::Lru, Reclaim::BucketOldest, Reclaim::Fair];
    let sizes = (select(memory), select(vec![0u32, 0, 1, 2, 64, u32::MAX]), select(reclaims));
    let bits = (any::<[bool; 7]>(), any::<u64>());
    (select(policies), sizes, bits).prop_map(|(policy, (memory, max_dist, reclaim), (bits, key))| {
        let [netfilter, kernel, verify, discard, original, own, detailed] = bits;
        let config = Config {
            path: if netfilter { Path::Netfilter } else { Path::Local },
            timeout4: 2 * SECOND,
            timeout6: 3 * SECOND,
            memory,
            cost: if kernel { CostModel::Kernel } else { CostModel::Capture },
            max_dist,
            reclaim,
            checksum: if verify { Checksum::Verify } else { Checksum::Ignore },
            duplicates: if discard { Duplicates::Discard } else { Duplicates::Ignore },
            extent: if original { Extent::Original } else { Extent::Piece },
            local: own.then(|| vec![(0xc0a8_0000, 0xffff_0000)]),
            hash_key: (key, 3),
            ..config(policy)
        };
        (config, detailed)
    })
}

/// Most that a packet may cost, with a queue for it.
fn cost(packet: &[u8]) -> u64 {
    200 + u64::from(kernel_cost(packet.len() as u32)).max(192 + packet.len() as u64)
}

/// What came of each packet: one answer, and whether it was the right kind of answer.
fn answers(events: &[Event]) -> usize {
    events.iter().filter(|event| !matches!(event, Event::Problem(..) | Event::GivenUp(_))).count()
}

/// What does not depend on whether details are kept: everything but times.
fn outcome(log: &Log) -> Vec<Event> {
    let mut events = log.events.clone();
    for event in &mut events {
        match event {
            Event::Complete(_, whole) => whole.times = (0, 0),
            Event::GivenUp(lost) => lost.times = (0, 0),
            _ => {}
        }
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_step_keeps_the_books((config, detailed) in settings(), steps in steps()) {
        let mut engine = Engine::new(config.clone(), detailed);
        let mut other = Engine::new(config.clone(), !detailed);
        let (mut log, mut other_log) = (Log::default(), Log::default());
        let (mut now, mut largest) = (0i64, 0);
        for (number, (step, clock)) in steps.into_iter().enumerate() {
            now = match clock {
                Clock::By(step) => now.saturating_add(step),
                Clock::To(time) => time,
            };
            let before = answers(&log.events);
            for (engine, log) in [(&mut engine, &mut log), (&mut other, &mut other_log)] {
                match &step {
                    Step::Packet { bytes, domain } => push_in(engine, log, number as u64, bytes, now, *domain),
                    Step::Advance => engine.advance(&[], now, log),
                    Step::Flush => engine.flush(&[], log),
                }
                check(engine);
            }
            if let Step::Packet { bytes, .. } = &step {
                prop_assert_eq!(answers(&log.events), before + 1);
                largest = largest.max(cost(bytes));
            }
            if matches!(step, Step::Flush) {
                check_empty(&engine);
            }
            for family in [Family::V4, Family::V6] {
                prop_assert!(engine.table(family).memory() <= config.memory + largest);
            }
        }
        for (engine, log) in [(&mut engine, &mut log), (&mut other, &mut other_log)] {
            engine.flush(&[], log);
            check_empty(engine);
        }
        prop_assert_eq!(log.lost().len() as u64, engine.totals().incomplete);
        let atomic = log.events.iter().filter(|event| matches!(event, Event::Atomic(..))).count();
        prop_assert_eq!((log.wholes().len() + atomic) as u64, engine.totals().complete);
        prop_assert_eq!(engine.totals(), other.totals());
        for family in [Family::V4, Family::V6] {
            prop_assert_eq!(engine.counters(family), other.counters(family));
        }
        prop_assert_eq!(outcome(&log), outcome(&other_log));
    }
}
