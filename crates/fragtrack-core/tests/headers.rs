//! The header of a whole datagram, and what is said about packets whose header cannot be.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use common::{Event, Log, V4, V6, check, check_empty, config, push, raw};
use fragtrack_core::config::{Checksum, Config, Path, Policy};
use fragtrack_core::engine::Batch;
use fragtrack_core::stats::KernelCounters;
use fragtrack_core::wire::{Family, checksum};
use fragtrack_core::{Engine, Reason};

/// Pushes packets into a new engine.
fn pushed(config: Config, packets: &[Vec<u8>]) -> (Engine, Log) {
    let (mut engine, mut log) = (Engine::new(config, true), Log::default());
    for (number, packet) in packets.iter().enumerate() {
        push(&mut engine, &mut log, number as u64, packet, 0);
        check(&engine);
    }
    (engine, log)
}

#[test]
fn may_not_be_fragmented_if_a_largest_fragment_said_so() {
    // Lengths and flags as they arrive, the last one at the end of the datagram; whether the result has the flag.
    let cases: [(&[(u32, bool)], bool); 9] = [
        (&[(16, false), (16, false)], false),
        (&[(16, true), (16, true)], true),
        (&[(16, true), (16, false)], true),
        (&[(16, false), (16, true)], true),
        (&[(24, false), (16, true)], false),
        (&[(16, true), (24, false)], false),
        (&[(24, true), (16, false), (8, true)], true),
        (&[(8, true), (24, true), (16, false)], true),
        (&[(8, true), (24, false), (16, true)], false),
    ];
    for (fragments, expected) in cases {
        for policy in [Policy::Linux, Policy::First] {
            for max_dist in [0, 64] {
                let mut offset = 0;
                let packets: Vec<Vec<u8>> = (fragments.iter().enumerate())
                    .map(|(at, (length, df))| {
                        let start = offset;
                        offset += length;
                        let more = at + 1 < fragments.len();
                        V4 { df: *df, ..V4::new(1, start, more, &vec![0; *length as usize]) }.bytes()
                    })
                    .collect();
                let (engine, log) = pushed(Config { max_dist, ..config(policy) }, &packets);
                check_empty(&engine);
                let flags = log.wholes()[0].packet[6];
                assert_eq!(flags, if expected { 0x40 } else { 0 }, "{fragments:?}");
            }
        }
    }
}

#[test]
fn every_set_of_ecn_code_points() {
    // Not-ECT does not go with anything else; with CE the result is CE; else it is as in the first fragment.
    for first in 0..4u8 {
        for second in 0..4u8 {
            let packets = |wide: bool| {
                [(0, true, first), (8, false, second)].map(|(offset, more, ecn)| {
                    if wide {
                        V6 { ecn, ..V6::new(1, offset, more, &[0; 8]) }.bytes()
                    } else {
                        V4 { ecn, ..V4::new(1, offset, more, &[0; 8]) }.bytes()
                    }
                })
            };
            for wide in [false, true] {
                let (engine, log) = pushed(config(Policy::Linux), &packets(wide));
                check_empty(&engine);
                if (first == 0) != (second == 0) {
                    assert_eq!(log.events.last(), Some(&Event::Dropped(1, Reason::Ecn)));
                    assert_eq!(log.lost()[0].frames, [(0, 0), (1, 8)]);
                    continue;
                }
                let expected = if first == 3 || second == 3 { 3 } else { first };
                let packet = &log.wholes()[0].packet;
                let ecn = if wide { packet[1] >> 4 } else { packet[1] };
                assert_eq!(ecn, expected, "{first} {second}");
            }
        }
    }
}

#[test]
fn the_header_is_that_of_the_first_fragment_made_right() {
    let first = V4 { options: vec![7; 12], id: 0xabcd, ..V4::new(1, 0, true, &[1; 8]) };
    let last = V4 { options: vec![9; 40], id: 0xabcd, ..V4::new(1, 8, false, &[2; 3]) };
    let mut first = first.bytes();
    // The reserved bit, type of service and time to live of the first; another time to live in the last.
    (first[1], first[6], first[8]) = (0xb8, 0xa0, 9);
    let (engine, log) = pushed(config(Policy::Linux), &[last.bytes(), first.clone()]);
    check_empty(&engine);
    assert_eq!(engine.totals().bad_checksum, 1);
    let packet = &log.wholes()[0].packet;
    let mut expected = first[..32].to_vec();
    expected[2..4].copy_from_slice(&43u16.to_be_bytes());
    (expected[6], expected[7], expected[10], expected[11]) = (0, 0, 0, 0);
    let sum = checksum::of(&expected).to_be_bytes();
    expected[10..12].copy_from_slice(&sum);
    expected.extend([[1; 8].as_slice(), &[2; 3]].concat());
    assert_eq!(packet, &expected);
    assert_eq!(checksum::sum(&packet[..32]), 0xffff);
}

#[test]
fn as_long_as_may_be() {
    // Header and payload of exactly 65,535 bytes, and one more.
    for options in [0u32, 4, 40] {
        for (excess, whole) in [(0, true), (1, false)] {
            let length = 65_535 - 20 - options + excess;
            let cut = 40_000;
            let options = vec![1; options as usize];
            let first = V4 { options, ..V4::new(1, 0, true, &vec![1; cut as usize]) };
            let last = V4::new(1, cut, false, &vec![2; (length - cut) as usize]);
            let (engine, log) = pushed(config(Policy::Linux), &[first.bytes(), last.bytes()]);
            check_empty(&engine);
            assert_eq!(
                log.wholes().iter().map(|whole| whole.packet.len()).collect::<Vec<_>>(),
                vec![65_535; whole as usize]
            );
            assert_eq!(engine.totals().lost(Reason::Oversize), if whole { 0 } else { 2 });
        }
    }
    for path in [Path::Local, Path::Netfilter] {
        for (before, excess, whole) in [(0u32, 0, true), (8, 0, true), (8, 1, false), (64, 1, false)] {
            let (length, cut) = (65_535 - before + excess, 40_000);
            let mut options = vec![1; before as usize];
            if let [next, units, ..] = options.as_mut_slice() {
                (*next, *units) = (44, (before / 8 - 1) as u8);
            }
            let first = if before == 0 { 44 } else { 60 };
            let first = V6 { first, before: options, ..V6::new(1, 0, true, &vec![1; cut as usize]) };
            let last = V6::new(1, cut, false, &vec![2; (length - cut) as usize]);
            let (engine, log) = pushed(Config { path, ..config(Policy::Linux) }, &[first.bytes(), last.bytes()]);
            check_empty(&engine);
            assert_eq!(
                log.wholes().iter().map(|whole| whole.packet.len()).collect::<Vec<_>>(),
                vec![65_575; whole as usize]
            );
            assert_eq!(engine.totals().lost(Reason::Oversize), if whole { 0 } else { 2 });
        }
    }
}

/// A packet of 28 bytes, with one byte changed.
fn changed(fragment: bool, at: usize, value: u8) -> Vec<u8> {
    let mut bytes = V4::new(1, 0, fragment, &[0; 8]).bytes();
    bytes[at] = value;
    bytes
}

#[test]
fn what_is_judged_and_counted_of_a_header_that_cannot_be() {
    type Counted = fn(&mut KernelCounters);
    let header: Counted = |c| c.in_hdr_errors = 1;
    let short: Counted = |c| c.in_truncated_pkts = 1;
    let sum: Counted = |c| (c.in_hdr_errors, c.in_csum_errors) = (1, 1);
    let nothing: Counted = |_| {};
    let cut = |length: usize, fragment| changed(fragment, 0, 0x45)[..length].to_vec();
    let cases: [(Vec<u8>, bool, Reason, Counted); 13] = [
        // Header length, total length, checksum; the packet is a fragment, or none.
        (changed(true, 0, 0x44), true, Reason::Header, header),
        (changed(false, 0, 0x44), false, Reason::Header, header),
        (changed(true, 3, 19), true, Reason::Checksum, sum),
        (changed(true, 3, 29), true, Reason::Checksum, sum),
        (changed(true, 8, 9), true, Reason::Checksum, sum),
        (changed(false, 8, 9), false, Reason::Checksum, sum),
        (changed(true, 0, 0x4f), true, Reason::Truncated, header),
        (cut(27, true), true, Reason::Truncated, short),
        (cut(27, false), false, Reason::Truncated, short),
        (cut(19, true), false, Reason::Truncated, header),
        (changed(true, 0, 0x55), false, Reason::Header, nothing),
        (changed(true, 0, 0x05), false, Reason::Header, nothing),
        (Vec::new(), false, Reason::Header, nothing),
    ];
    for (packet, fragment, reason, counted) in cases {
        let verify = Config { checksum: Checksum::Verify, ..config(Policy::Linux) };
        let (engine, log) = pushed(verify.clone(), std::slice::from_ref(&packet));
        assert_eq!(log.events, [Event::Dropped(0, reason)], "{packet:02x?}");
        let mut expected = KernelCounters::default();
        counted(&mut expected);
        assert_eq!(engine.counters(Family::V4), &expected, "{packet:02x?}");
        assert_eq!(engine.counters(Family::V6), &KernelCounters::default());
        assert_eq!(engine.totals().fragments, [u64::from(fragment), 0]);
        assert_eq!(engine.totals().lost(reason), u64::from(fragment));
        // In a capture, what is no fragment passes.
        let (mut engine, mut log) = (Engine::new(verify, true), Log::default());
        let frames = [raw(0, packet.len(), 0)];
        engine.run(Batch { segment: &packet, frames: &frames, first: 0, origin: 0, transient: false }, &mut log);
        let event = if fragment { Event::Dropped(0, reason) } else { Event::Pass(0) };
        assert_eq!(log.events, [event], "{packet:02x?}");
        check_empty(&engine);
    }
}

#[test]
fn checksums_that_are_ignored() {
    // The lengths are looked at all the same, and a wrong sum is noted.
    for (packet, event, noted) in [
        (changed(true, 8, 9), Event::Held(0), 1),
        (changed(false, 8, 9), Event::Pass(0), 0),
        (changed(true, 3, 19), Event::Dropped(0, Reason::Header), 0),
        (changed(true, 3, 29), Event::Dropped(0, Reason::Truncated), 0),
        (changed(true, 3, 20), Event::Dropped(0, Reason::Empty), 1),
    ] {
        let (engine, log) = pushed(config(Policy::Linux), &[packet]);
        assert_eq!((log.events.last(), engine.totals().bad_checksum), (Some(&event), noted));
    }
}
