//! However packets are cut into batches, and whether their bytes stay or are copied: the same events in the same
//! order.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use common::{Event, Log, Random, SECOND, V4, V6, check, check_empty, config, pattern, push, raw};
use fragtrack_core::config::{Path, Policy};
use fragtrack_core::engine::Batch;
use fragtrack_core::wire::Family;
use fragtrack_core::{Config, Engine, Frame, LinkType, Reason};

type Packets = Vec<(Vec<u8>, i64)>;

/// Sound packets of few datagrams: most fragments follow each other, some come twice, overlap, or come late.
fn packets(count: usize, seed: u64) -> Packets {
    let mut random = Random(seed);
    let mut time = 0;
    (0..count)
        .map(|_| {
            time += if random.below(40) == 0 { 31 * SECOND } else { random.below(1000) as i64 };
            let (id, unit) = (random.below(6) as u32, random.below(4) as u32);
            let length = if random.below(9) == 0 { 16 } else { 8 };
            let payload = pattern(id as u8, unit * 8, length);
            let more = unit < 3;
            let bytes = match random.below(12) {
                0 => V4::new(id as u16, 0, false, &payload).bytes(),
                1 => V6::new(id, 0, false, &payload).bytes(),
                2 => V6::new(id, unit * 8, true, &payload[..7]).bytes(),
                3..7 => V6::new(id, unit * 8, more, &payload).bytes(),
                _ => V4::new(id as u16, unit * 8, more, &payload).bytes(),
            };
            (bytes, time)
        })
        .collect()
}

/// Each packet by itself, its bytes gone before the next one comes.
fn one_by_one(config: &Config, packets: &Packets, first: u64) -> (Vec<Event>, Engine) {
    let (mut engine, mut log) = (Engine::new(config.clone(), true), Log::default());
    for (at, (bytes, time)) in packets.iter().enumerate() {
        push(&mut engine, &mut log, first + at as u64, bytes, *time);
        check(&engine);
    }
    engine.flush(&[], &mut log);
    check_empty(&engine);
    (log.events, engine)
}

/// Packets as records of a segment: `head` before each packet, `tail` behind it.
fn segment(packets: &Packets, head: &[u8], tail: &[u8]) -> (Vec<u8>, Vec<(usize, usize, i64)>) {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for (packet, time) in packets {
        places.push((bytes.len(), packet.len(), *time));
        bytes.extend(head);
        bytes.extend(packet);
        bytes.extend(tail);
    }
    (bytes, places)
}

fn same_books(one: &Engine, other: &Engine) {
    assert_eq!(one.totals(), other.totals());
    for family in [Family::V4, Family::V6] {
        assert_eq!(one.counters(family), other.counters(family));
    }
}

const COUNTS: [usize; 16] = [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 511, 512, 513, 1000];

fn configs() -> Vec<Config> {
    let netfilter = Config { path: Path::Netfilter, max_dist: 4, ..config(Policy::Linux) };
    vec![config(Policy::Linux), netfilter, config(Policy::Rfc5722), config(Policy::Windows)]
}

#[test]
fn a_batch_is_its_packets_one_by_one() {
    for count in COUNTS {
        for config in configs() {
            let packets = packets(count, count as u64);
            let (events, expected) = one_by_one(&config, &packets, 7);
            let (segment, places) = segment(&packets, &[], &[]);
            let frames: Vec<Frame> = places.iter().map(|(start, length, time)| raw(*start, *length, *time)).collect();
            let (mut engine, mut log) = (Engine::new(config, true), Log { first: 7, ..Log::default() });
            let batch = Batch { segment: &segment, frames: &frames, first: 7, origin: 0, transient: false };
            engine.run_packets(batch, 0, &mut log);
            check(&engine);
            engine.flush(&segment, &mut log);
            check_empty(&engine);
            assert_eq!(log.events, events);
            same_books(&engine, &expected);
        }
    }
}

#[test]
fn batches_whose_bytes_go_away_are_as_good() {
    let packets = packets(600, 5);
    for config in configs() {
        let (events, expected) = one_by_one(&config, &packets, 0);
        for size in [1, 2, 15, 16, 17, 33, 599] {
            let (mut engine, mut log) = (Engine::new(config.clone(), true), Log::default());
            for (at, some) in packets.chunks(size).enumerate() {
                let first = (at * size) as u64;
                let (mut segment, places) = segment(&some.to_vec(), &[], &[]);
                let frames: Vec<Frame> =
                    places.iter().map(|(start, length, time)| raw(*start, *length, *time)).collect();
                log.first = first;
                engine.run_packets(
                    Batch { segment: &segment, frames: &frames, first, origin: 0, transient: true },
                    0,
                    &mut log,
                );
                engine.settle(&segment);
                // What the next batch is given instead holds nothing of this one.
                segment.fill(0xee);
                check(&engine);
                for family in [Family::V4, Family::V6] {
                    let (nodes, copies) = engine.table(family).held.used();
                    assert_eq!(nodes, copies);
                }
            }
            engine.flush(&[], &mut log);
            check_empty(&engine);
            assert_eq!(log.events, events);
            same_books(&engine, &expected);
        }
    }
}

#[test]
fn frames_in_records_are_their_packets() {
    let mut link: Vec<u8> = (1..15).collect();
    for count in COUNTS {
        for config in configs() {
            let packets = packets(count, 100 + count as u64);
            let (events, expected) = one_by_one(&config, &packets, 1);
            // A record header, the link header, and Ethernet padding and a trailer behind.
            let mut bytes = Vec::new();
            let mut frames = Vec::new();
            for (packet, time) in &packets {
                let kind: [u8; 2] = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
                link[12..].copy_from_slice(&kind);
                frames.push(Frame {
                    start: bytes.len() as u64,
                    time: *time,
                    record: (16 + 14 + packet.len() + 6 + 4) as u32,
                    captured: (14 + packet.len() + 6) as u32,
                    head: 16,
                    link: LinkType(1),
                });
                bytes.extend([0xaa; 16]);
                bytes.extend(&link);
                bytes.extend(packet);
                bytes.extend([0xbb; 10]);
            }
            let mut log = Log { first: 1, head: 30, tail: 10, ..Log::default() };
            let mut engine = Engine::new(config, true);
            engine.run(Batch { segment: &bytes, frames: &frames, first: 1, origin: 0, transient: false }, &mut log);
            check(&engine);
            engine.flush(&bytes, &mut log);
            check_empty(&engine);
            assert_eq!(log.events, events);
            same_books(&engine, &expected);
            assert!(log.links.iter().all(|written| written[..12] == link[..12]));
        }
    }
}

#[test]
fn one_key_many_times_within_a_block() {
    // Held, completed, opened again: all of it between two look-ups ahead of time.
    for wide in [false, true] {
        let fragment = |unit: u32| {
            let payload = pattern(9, unit * 8, 8);
            if wide {
                V6::new(1, unit * 8, unit < 2, &payload).bytes()
            } else {
                V4::new(1, unit * 8, unit < 2, &payload).bytes()
            }
        };
        let packets: Packets = (0..51).map(|at| (fragment(at % 3), i64::from(at))).collect();
        let (segment, places) = segment(&packets, &[], &[]);
        let frames: Vec<Frame> = places.iter().map(|(start, length, time)| raw(*start, *length, *time)).collect();
        let (mut engine, mut log) = (Engine::new(config(Policy::Linux), true), Log::default());
        let batch = Batch { segment: &segment, frames: &frames, first: 0, origin: 0, transient: false };
        engine.run_packets(batch, 0, &mut log);
        check_empty(&engine);
        let wholes = log.wholes();
        assert_eq!(wholes.len(), 17);
        for (at, whole) in wholes.iter().enumerate() {
            let first = 3 * at as u64;
            assert_eq!(whole.frames, [first, first + 1, first + 2]);
            assert_eq!(whole.payload, pattern(9, 0, 24));
        }
    }
}

/// Runs some packets as one batch of their own segment, which is then left to the caller.
fn batch(engine: &mut Engine, log: &mut Log, packets: &[Vec<u8>], first: u64, origin: u32, transient: bool) -> Vec<u8> {
    let packets: Packets = packets.iter().map(|packet| (packet.clone(), first as i64)).collect();
    let (segment, places) = segment(&packets, &[], &[]);
    let frames: Vec<Frame> = places.iter().map(|(start, length, time)| raw(*start, *length, *time)).collect();
    log.first = first;
    engine.run_packets(Batch { segment: &segment, frames: &frames, first, origin, transient }, 0, log);
    segment
}

fn piece(id: u16, unit: u32, more: bool) -> Vec<u8> {
    V4::new(id, unit * 8, more, &pattern(id as u8, unit * 8, 8)).bytes()
}

#[test]
fn what_is_held_outlives_its_input() {
    for policy in [Policy::Linux, Policy::Last] {
        let (mut engine, mut log) = (Engine::new(config(policy), true), Log::default());
        let used = |engine: &Engine| engine.table(Family::V4).held.used();
        // An input that is mapped: nothing is copied until it is closed.
        let mapped = batch(&mut engine, &mut log, &[piece(1, 0, true), piece(2, 0, true)], 0, 0, false);
        engine.settle(&mapped);
        assert_eq!(used(&engine), (2, 0));
        engine.settle_all(&mapped);
        assert_eq!(used(&engine), (2, 2));
        drop(mapped);
        // One that is streamed: its batches are copied as they go.
        let streamed = batch(&mut engine, &mut log, &[piece(1, 1, true), piece(3, 0, true)], 2, 1, true);
        assert_eq!(used(&engine), (4, 2));
        engine.settle(&streamed);
        assert_eq!(used(&engine), (4, 4));
        drop(streamed);
        check(&engine);
        // Mapped again: the datagram is made of all three.
        let again = batch(&mut engine, &mut log, &[piece(1, 2, false), piece(2, 1, true)], 4, 2, false);
        check(&engine);
        assert_eq!(used(&engine), (3, 2));
        let wholes = log.wholes();
        assert_eq!((wholes.len(), &wholes[0].frames), (1, &vec![0, 2, 4]));
        assert_eq!(wholes[0].payload, pattern(1, 0, 24));
        engine.flush(&again, &mut log);
        check_empty(&engine);
        let lost = log.lost();
        assert_eq!(lost[0].frames, [(1, 0), (5, 8)]);
        assert_eq!(lost[0].origins, [0, 2]);
        assert_eq!(lost[0].packets, [piece(2, 0, true), piece(2, 1, true)]);
        assert_eq!((lost[1].frames.as_slice(), lost[1].origins.as_slice()), (&[(3, 0)][..], &[1][..]));
        assert_eq!(lost[1].packets, [piece(3, 0, true)]);
    }
}

#[test]
fn a_slot_used_twice_in_a_batch_is_copied_once() {
    let (mut engine, mut log) = (Engine::new(config(Policy::Linux), true), Log::default());
    // The slot of the first fragment is free again when the third one comes, and so is the one after it.
    let packets = [
        piece(1, 0, true),
        piece(1, 1, false),
        piece(2, 0, true),
        piece(2, 1, true),
        piece(2, 2, false),
        piece(3, 1, true),
        piece(4, 0, true),
    ];
    let segment = batch(&mut engine, &mut log, &packets, 0, 5, true);
    engine.settle(&segment);
    assert_eq!(engine.table(Family::V4).held.used(), (2, 2));
    assert_eq!(engine.held_origins().collect::<Vec<_>>(), [5, 5]);
    drop(segment);
    // Settled once more, with nothing new, and a copy is given back when its datagram ends.
    engine.settle(&[]);
    let last = batch(&mut engine, &mut log, &[piece(4, 1, false)], 7, 6, true);
    engine.settle(&last);
    assert_eq!(engine.table(Family::V4).held.used(), (1, 1));
    assert_eq!(log.wholes().iter().map(|whole| whole.payload.len()).collect::<Vec<_>>(), [16, 24, 16]);
    engine.flush(&[], &mut log);
    check_empty(&engine);
    assert_eq!(log.lost()[0].packets, [piece(3, 1, true)]);
}

#[test]
fn settling_copies_nothing_that_is_gone() {
    let (mut engine, mut log) = (Engine::new(config(Policy::Linux), true), Log::default());
    // A duplicate; then a datagram killed by an overlap within its batch.
    let segment = batch(&mut engine, &mut log, &[piece(1, 0, true), piece(1, 0, true)], 0, 0, true);
    assert_eq!(engine.totals().lost(Reason::Duplicate), 1);
    engine.settle(&segment);
    let cross = V4::new(1, 0, true, &pattern(1, 0, 16)).bytes();
    let segment = batch(&mut engine, &mut log, &[piece(2, 0, true), cross], 2, 0, true);
    engine.settle(&segment);
    assert_eq!(engine.totals().lost(Reason::Overlap), 2);
    assert_eq!(engine.table(Family::V4).held.used(), (1, 1));
    check(&engine);
    // A fragment that has the slot of one that was copied, but lies in a segment that stays.
    let (mut engine, mut log) = (Engine::new(config(Policy::Linux), true), Log::default());
    let segment = batch(&mut engine, &mut log, &[piece(1, 0, true)], 0, 0, true);
    engine.settle(&segment);
    let stays = batch(&mut engine, &mut log, &[piece(1, 1, false), piece(2, 0, true)], 1, 0, false);
    engine.settle(&[]);
    assert_eq!(engine.table(Family::V4).held.used(), (1, 0));
    engine.flush(&stays, &mut log);
    assert_eq!(log.lost()[0].packets, [piece(2, 0, true)]);
    check_empty(&engine);
}
