//! What fragments cost, and what is given up when that is too much.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::collections::{BTreeMap, VecDeque};

use common::{Event, Log, V4, V6, check, check_empty, config, push, raw};
use fragtrack_core::config::{Config, CostModel, Policy, Reclaim};
use fragtrack_core::engine::Batch;
use fragtrack_core::frag::key::SipHash;
use fragtrack_core::frag::rules::kernel_cost;
use fragtrack_core::wire::Family;
use fragtrack_core::{Engine, Frame, LinkType, Reason};
use proptest::prelude::*;
use proptest::sample::select;

const RECLAIMS: [Reclaim; 4] = [Reclaim::Refuse, Reclaim::Lru, Reclaim::BucketOldest, Reclaim::Fair];

#[test]
fn a_record_is_charged_for_what_is_unusual_around_its_frame() {
    let frame = |record, captured| Frame { record, captured, ..raw(0, 0, 0) }.charge();
    for (record, captured, charge) in [
        (0, 0, 0),
        (60, 60, 60),
        (60 + 128, 60, 60),
        (60 + 129, 60, 61),
        (60 + 5000, 60, 60 + 4872),
        (0, 60, 60),
        (u32::MAX, 0, u32::MAX - 128),
        (u32::MAX, 1000, u32::MAX - 128),
        (u32::MAX, u32::MAX, u32::MAX),
    ] {
        assert_eq!(frame(record, captured), charge, "{captured} of {record}");
    }
}

#[test]
fn the_kernel_charges_buffers() {
    for (length, cost) in [
        (0, 832),
        (192, 832),
        (193, 1280),
        (640, 1280),
        (641, 2304),
        (1664, 2304),
        (1665, 4352),
        (3712, 4352),
        (3713, 8448),
        (7808, 8448),
        (7809, 12_544),
        (11_904, 12_544),
        (11_905, 16_640),
        (65_535, 69_888),
    ] {
        assert_eq!(kernel_cost(length), cost, "{length}");
    }
    assert!(kernel_cost(u32::MAX) >= u32::MAX - 8192);
}

#[test]
fn a_queue_and_its_fragments_cost_what_they_cost() {
    let (small, large) = ([1; 8], vec![1; 2000]);
    for (cost, queue4, queue6) in [(CostModel::Capture, 128, 128), (CostModel::Kernel, 200, 184)] {
        let mut engine = Engine::new(Config { cost, ..config(Policy::Linux) }, false);
        let mut log = Log::default();
        let price = |packet: &[u8]| match cost {
            CostModel::Capture => 192 + packet.len() as u64,
            CostModel::Kernel => u64::from(kernel_cost(packet.len() as u32)),
        };
        let (mut four, mut six) = (queue4, queue6);
        for (number, (offset, payload)) in [(0, &small[..]), (8, &large)].into_iter().enumerate() {
            let (v4, v6) = (V4::new(1, offset, true, payload).bytes(), V6::new(1, offset, true, payload).bytes());
            push(&mut engine, &mut log, number as u64, &v4, 0);
            push(&mut engine, &mut log, number as u64, &v6, 0);
            (four, six) = (four + price(&v4), six + price(&v6));
            assert_eq!(engine.table(Family::V4).memory(), four);
            assert_eq!(engine.table(Family::V6).memory(), six);
        }
        // A fragment that is dropped costs nothing.
        push(&mut engine, &mut log, 9, &V4::new(1, 0, true, &small).bytes(), 0);
        assert_eq!(engine.memory(), four + six);
        engine.flush(&[], &mut log);
        check_empty(&engine);
    }
}

#[test]
fn large_records_stay_within_the_limit() {
    const LIMIT: u64 = 100_000;
    // A pcapng block: 28 bytes, the frame, and options of any length.
    let options = [0, 4, 100, 101, 5000, 60_000, 5];
    for reclaim in RECLAIMS {
        let mut engine = Engine::new(Config { memory: LIMIT, reclaim, ..config(Policy::Linux) }, false);
        let (mut lengths, mut largest, mut most) = (Vec::new(), 0, 0);
        for number in 0..400u64 {
            let around = options[number as usize % options.len()];
            let packet = V4 { source: (number as u32 * 77) << 8, ..V4::new(number as u16, 8, true, &[3; 64]) }.bytes();
            let mut record = vec![0xaa; 28];
            record.extend([[2; 12].as_slice(), &[8, 0]].concat());
            record.extend(&packet);
            record.resize(record.len() + around, 0xbb);
            let length = record.len() as u32;
            let captured = packet.len() as u32 + 14;
            let frame = Frame { start: 0, time: 0, record: length, captured, head: 28, link: LinkType(1) };
            // Each record is of an origin of its own, so that it can be told which ones are held.
            let origin = number as u32;
            let batch = Batch { segment: &record, frames: &[frame], first: number, origin, transient: true };
            engine.run(batch, &mut Quiet);
            engine.settle(&record);
            check(&engine);
            lengths.push(u64::from(length));
            largest = largest.max(128 + 192 + u64::from(frame.charge()));
            assert!(engine.memory() <= LIMIT + largest);
            // What is really kept, record by record, is no more than what is charged for it.
            let kept: u64 = engine.held_origins().map(|origin| lengths[origin as usize] + 64).sum();
            assert!(kept <= engine.memory());
            most = most.max(kept);
        }
        assert!(most > LIMIT / 2);
        engine.flush(&[], &mut Quiet);
        check_empty(&engine);
    }
}

/// Looks at nothing but the records of what is given up.
struct Quiet;

impl fragtrack_core::event::Sink for Quiet {
    fn pass(&mut self, _: usize) {}
    fn held(&mut self, _: usize) {}
    fn dropped(&mut self, _: usize, _: Reason) {}
    fn atomic(&mut self, _: usize, _: &fragtrack_core::event::Atomic<'_>) {}
    fn complete(&mut self, _: usize, _: &fragtrack_core::event::Datagram<'_>) {}
    fn given_up(&mut self, datagram: &fragtrack_core::event::GivenUp<'_>) {
        // Every record is whole, however many were copied.
        for held in datagram.held() {
            assert!(held.record.starts_with(&[0xaa; 28]) && held.record.len() >= 28 + 14 + 84);
        }
    }
}

/// An open datagram of the model, in the order of creation.
#[derive(Clone, Debug)]
struct Open {
    key: (u32, u32),
    cost: u64,
    used: u64,
}

/// What happens at the limit, told plainly.
struct Model {
    reclaim: Reclaim,
    limit: u64,
    buckets: BTreeMap<(u32, u32), u64>,
    open: VecDeque<Open>,
    steps: u64,
}

impl Model {
    fn memory(&self) -> u64 {
        self.open.iter().map(|open| open.cost).sum()
    }

    /// Ends the first datagram that is wanted; whether there was one.
    fn evict(&mut self, evicted: &mut Vec<(u32, u32)>, wanted: impl Fn(&Open) -> bool) -> bool {
        let Some(at) = self.open.iter().position(wanted) else { return false };
        evicted.extend(self.open.remove(at).map(|open| open.key));
        true
    }

    fn prefix(key: (u32, u32)) -> u32 {
        key.0 >> 8
    }

    /// Makes room for a fragment of `key`; who went, or `None` if it is refused (those who went, went).
    fn make_room(&mut self, key: (u32, u32), evicted: &mut Vec<(u32, u32)>) -> bool {
        if self.memory() <= self.limit && self.limit != 0 {
            return true;
        }
        let low = self.limit * 3 / 4;
        match self.reclaim {
            Reclaim::Refuse => return false,
            Reclaim::Lru => {
                while self.memory() > low {
                    let oldest = self.open.iter().map(|open| open.used).min();
                    self.evict(evicted, |open| Some(open.used) == oldest);
                }
            }
            Reclaim::BucketOldest => {
                let bucket = self.buckets[&key];
                let buckets = self.buckets.clone();
                while self.memory() > self.limit && self.evict(evicted, |open| buckets[&open.key] == bucket) {}
                return self.memory() <= self.limit && self.limit != 0;
            }
            Reclaim::Fair => {
                let mut usage: BTreeMap<u32, u64> = BTreeMap::new();
                for open in &self.open {
                    *usage.entry(Self::prefix(open.key)).or_default() += open.cost;
                }
                for open in self.open.clone() {
                    let used = usage.get_mut(&Self::prefix(open.key)).expect("it was counted");
                    if self.memory() > low && *used > self.limit / 8 {
                        *used -= open.cost;
                        self.evict(evicted, |other| other.key == open.key);
                    }
                }
                while self.memory() > low {
                    self.evict(evicted, |_| true);
                }
            }
        }
        true
    }

    fn add(&mut self, key: (u32, u32), cost: u64) {
        self.steps += 1;
        let used = self.steps;
        if let Some(open) = self.open.iter_mut().find(|open| open.key == key) {
            open.cost += cost;
            open.used = used;
        } else {
            self.open.push_back(Open { key, cost: 128 + cost, used });
        }
    }
}

fn fragment((source, id): (u32, u32), unit: u32, length: usize, wide: bool) -> Vec<u8> {
    if wide {
        // The prefix of an IPv6 source is its upper 48 bits.
        let source = u128::from(source >> 8) << 80 | u128::from(source & 0xff) | 0x2001 << 112;
        V6 { source, ..V6::new(id, unit * 8, true, &vec![0; length]) }.bytes()
    } else {
        V4 { source, ..V4::new(id as u16, unit * 8, true, &vec![0; length]) }.bytes()
    }
}

/// The bucket of a key, by the published function.
fn bucket((source, id): (u32, u32), wide: bool) -> u64 {
    let hash = SipHash::new((1, 2));
    let packet = fragment((source, id), 0, 8, wide);
    let word = |at: usize| u64::from_be_bytes(packet[at..at + 8].try_into().expect("eight bytes"));
    let hash = if wide {
        hash.hash([word(8), word(16), word(24), word(32), 0, u64::from(id) | 6 << 40])
    } else {
        hash.hash([word(12), 0, u64::from(id) | 17 << 32 | 4 << 40])
    };
    hash & 1023
}

/// Sources of few or many networks; identifications that share few buckets.
fn keys(wide: bool) -> Vec<(u32, u32)> {
    (0..40u32)
        .flat_map(|network| {
            let source = 0x0a00_0000 | network << 8 | (network % 3);
            let mut ids = (0..60_000u32).filter(move |id| bucket((source, *id), wide) < 24);
            ids.by_ref().take(if network < 3 { 12 } else { 1 }).map(move |id| (source, id)).collect::<Vec<_>>()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_goes_is_who_the_rule_says(
        reclaim in select(RECLAIMS.to_vec()),
        wide in any::<bool>(),
        limit in select(vec![0u64, 1, 700, 3000, 9000, 20_000, 40_000]),
        steps in prop::collection::vec((any::<u16>(), 0u8..20), 1..250),
    ) {
        thread_local! {
            static KEYS: [Vec<(u32, u32)>; 2] = [keys(false), keys(true)];
        }
        let keys = KEYS.with(|keys| keys[usize::from(wide)].clone());
        let buckets = keys.iter().map(|key| (*key, bucket(*key, wide))).collect();
        let mut model = Model { reclaim, limit, buckets, open: VecDeque::new(), steps: 0 };
        let mut engine = Engine::new(Config { memory: limit, reclaim, ..config(Policy::Linux) }, false);
        let mut units: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for (number, (key, size)) in steps.into_iter().enumerate() {
            let key = keys[usize::from(key) % keys.len()];
            // Behind everything of its datagram that came before.
            let unit = *units.get(&key).unwrap_or(&0);
            let length = match size {
                0 => 40_000,
                1 | 2 => 1400,
                _ => 8,
            };
            if unit * 8 + length as u32 > 65_000 {
                continue;
            }
            let packet = fragment(key, unit, length, wide);
            let mut log = Log::default();
            push(&mut engine, &mut log, number as u64, &packet, 0);
            let mut evicted = Vec::new();
            let room = model.make_room(key, &mut evicted);
            let last = if room {
                model.add(key, 192 + packet.len() as u64);
                units.insert(key, unit + (length as u32).div_ceil(8));
                Event::Held(number as u64)
            } else {
                Event::Dropped(number as u64, Reason::Memory)
            };
            prop_assert_eq!(log.events.last(), Some(&last));
            prop_assert!(log.lost().iter().all(|lost| lost.reason == Reason::Evicted && lost.icmp.is_none()));
            prop_assert_eq!(log.lost().len(), evicted.len());
            for (lost, key) in log.lost().iter().zip(evicted) {
                // Identification and source, as they stand in the header.
                prop_assert_eq!(lost.key.id, key.1);
                let place = if wide { 8..24 } else { 12..16 };
                prop_assert_eq!(&lost.packets[0][place.clone()], &fragment(key, 0, 8, wide)[place]);
            }
            prop_assert_eq!((engine.memory(), engine.queues()), (model.memory(), model.open.len()));
            check(&engine);
        }
        engine.flush(&[], &mut Log::default());
        check_empty(&engine);
    }
}
