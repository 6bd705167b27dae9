//! Where numbers end, and where two rules meet: times, frame numbers, domains, and RFC 5722 with `max_dist`.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use common::{Event, Log, SECOND, V4, V6, check, check_empty, config, pattern, push, push_in, raw};
use fragtrack_core::config::{Config, Duplicates, Policy};
use fragtrack_core::engine::Batch;
use fragtrack_core::event::Address;
use fragtrack_core::wire::Family;
use fragtrack_core::{Engine, Frame, LinkType, Reason};

fn fresh(config: Config) -> (Engine, Log) {
    (Engine::new(config, true), Log::default())
}

fn piece(id: u16, unit: u32, more: bool) -> Vec<u8> {
    V4::new(id, unit * 8, more, &pattern(id as u8, unit * 8, 8)).bytes()
}

fn wide(id: u32, unit: u32, more: bool) -> Vec<u8> {
    V6::new(id, unit * 8, more, &pattern(id as u8, unit * 8, 8)).bytes()
}

fn long(id: u16, unit: u32) -> Vec<u8> {
    V4::new(id, unit * 8, true, &pattern(id as u8, unit * 8, 16)).bytes()
}

/// RFC 5722, at most two fragments of a source between two of a datagram.
fn near() -> Config {
    Config { max_dist: 2, ..config(Policy::Rfc5722) }
}

#[test]
fn a_discarded_datagram_stays_so_however_far() {
    let (mut engine, mut log) = fresh(near());
    push(&mut engine, &mut log, 0, &piece(1, 0, true), 0);
    push(&mut engine, &mut log, 1, &long(1, 0), 1);
    assert_eq!(log.lost()[0].frames, [(0, 0), (1, 0)]);
    assert_eq!((log.lost()[0].reason, engine.queues()), (Reason::Overlap, 1));
    for number in 2..20 {
        push(&mut engine, &mut log, number, &piece(number as u16, 0, true), 2);
    }
    push(&mut engine, &mut log, 20, &piece(1, 1, false), 3);
    assert_eq!(log.events.last(), Some(&Event::Dropped(20, Reason::Abandoned)));
    assert_eq!(engine.totals().gave_up(Reason::TooFar), 0);
    check(&engine);
    // It ends in silence, by the timer of its first fragment; then the key is free.
    let events = log.events.len();
    engine.advance(&[], 30 * SECOND, &mut log);
    assert_eq!(log.events.len(), events);
    assert_eq!(engine.counters(Family::V4).reasm_timeout, 0);
    push(&mut engine, &mut log, 21, &piece(1, 1, false), 30 * SECOND);
    assert_eq!(log.events.last(), Some(&Event::Held(21)));
    engine.flush(&[], &mut log);
    check_empty(&engine);
}

#[test]
fn the_timer_of_a_discarded_datagram_is_also_that_of_its_fragments() {
    // A time that steps back moves no clock, but the fragment is compared with the queue it finds.
    let (mut engine, mut log) = fresh(near());
    push(&mut engine, &mut log, 0, &piece(9, 0, true), 40 * SECOND);
    push(&mut engine, &mut log, 1, &piece(1, 0, true), 15 * SECOND);
    push(&mut engine, &mut log, 2, &long(1, 0), 15 * SECOND);
    push(&mut engine, &mut log, 3, &piece(1, 0, true), 44 * SECOND);
    assert_eq!(log.events.last(), Some(&Event::Dropped(3, Reason::Abandoned)));
    push(&mut engine, &mut log, 4, &piece(1, 0, true), 45 * SECOND);
    assert_eq!(log.events.last(), Some(&Event::Held(4)));
    assert_eq!((log.lost().len(), engine.queues()), (1, 2));
    check(&engine);
}

#[test]
fn too_far_comes_before_an_overlap() {
    let (mut engine, mut log) = fresh(near());
    push(&mut engine, &mut log, 0, &piece(1, 0, true), 0);
    for number in 1..4 {
        push(&mut engine, &mut log, number, &piece(7, number as u32, true), 1);
    }
    // Of other bytes than the one held, and no overlap with it any more.
    push(&mut engine, &mut log, 4, &long(1, 0), 20 * SECOND);
    assert_eq!((log.lost()[0].reason, log.lost()[0].frames.as_slice()), (Reason::TooFar, &[(0, 0)][..]));
    assert_eq!(log.events.last(), Some(&Event::Held(4)));
    check(&engine);
    // The timer starts anew, at the end of the order.
    engine.advance(&[], 30 * SECOND + 1, &mut log);
    assert_eq!((log.lost().len(), engine.queues()), (2, 1));
    push(&mut engine, &mut log, 5, &V4::new(1, 16, false, &[5; 8]).bytes(), 49 * SECOND);
    assert_eq!(log.wholes()[0].times, (20 * SECOND, 49 * SECOND));
    check_empty(&engine);
}

#[test]
fn just_near_enough() {
    for (between, reason) in [(1, None), (2, Some(Reason::TooFar))] {
        let (mut engine, mut log) = fresh(near());
        push(&mut engine, &mut log, 0, &piece(1, 0, true), 0);
        for number in 0..between {
            push(&mut engine, &mut log, 1, &piece(7, number, true), 0);
        }
        push(&mut engine, &mut log, 2, &piece(1, 1, true), 0);
        assert_eq!(log.lost().first().map(|lost| lost.reason), reason);
        check(&engine);
    }
}

#[test]
fn too_far_and_refused_at_once() {
    let (mut engine, mut log) = fresh(near());
    push(&mut engine, &mut log, 0, &piece(1, 0, true), 0);
    for number in 1..4 {
        push(&mut engine, &mut log, number, &piece(7, number as u32, true), 1);
    }
    push(&mut engine, &mut log, 4, &V4::new(1, 8, true, &[0; 7]).bytes(), 2);
    let lost: Vec<(Reason, Vec<(u64, u32)>)> =
        log.lost().iter().map(|lost| (lost.reason, lost.frames.clone())).collect();
    assert_eq!(lost, [(Reason::TooFar, vec![(0, 0)]), (Reason::Empty, vec![(4, 8)])]);
    assert_eq!(log.lost()[1].times, (2, 2));
    assert_eq!(engine.counters(Family::V4).reasm_fails, 2);
    check(&engine);
}

#[test]
fn distance_is_counted_per_source_and_domain_in_ipv4() {
    let (mut engine, mut log) = fresh(near());
    push(&mut engine, &mut log, 0, &piece(1, 0, true), 0);
    push(&mut engine, &mut log, 1, &wide(1, 0, true), 0);
    for number in 2..12 {
        let other = V4 { source: 77, ..V4::new(number as u16, 0, true, &[0; 8]) };
        push(&mut engine, &mut log, number, &other.bytes(), 0);
        push_in(&mut engine, &mut log, number, &piece(number as u16, 0, true), 0, 1 << 48 | 5);
        push(&mut engine, &mut log, number, &wide(number as u32, 0, true), 0);
    }
    push(&mut engine, &mut log, 12, &piece(1, 1, false), 0);
    push(&mut engine, &mut log, 13, &wide(1, 1, false), 0);
    assert_eq!((log.wholes().len(), log.lost().len()), (2, 0));
    check(&engine);
}

#[test]
fn a_duplicate_may_be_an_overlap_too() {
    for (duplicates, reason, queues) in
        [(Duplicates::Ignore, Reason::Duplicate, 1), (Duplicates::Discard, Reason::Overlap, 1)]
    {
        for packet in [piece(1, 1, true), wide(1, 1, true)] {
            let (mut engine, mut log) = fresh(Config { duplicates, ..config(Policy::Rfc5722) });
            push(&mut engine, &mut log, 0, &packet, 0);
            push(&mut engine, &mut log, 1, &packet, 0);
            assert_eq!(log.events.last(), Some(&Event::Dropped(1, reason)));
            assert_eq!(engine.queues(), queues);
            assert_eq!(common::held(&engine), u64::from(reason == Reason::Duplicate));
            check(&engine);
        }
    }
}

#[test]
fn from_one_end_of_time_to_the_other() {
    let packets = [piece(1, 0, true), piece(1, 1, false)];
    for timeout in [1, 30 * SECOND, i64::MAX - 1] {
        let (mut engine, mut log) = fresh(Config { timeout4: timeout, ..config(Policy::Linux) });
        push(&mut engine, &mut log, 0, &packets[0], i64::MIN);
        push(&mut engine, &mut log, 1, &packets[1], i64::MAX);
        assert_eq!((log.lost()[0].reason, log.lost()[0].icmp.is_some()), (Reason::Timeout, true));
        assert_eq!(log.events.last(), Some(&Event::Held(1)));
        check(&engine);
        // At the end of time nothing expires any more, and what is missing may still come.
        engine.advance(&[], i64::MAX, &mut log);
        assert_eq!(engine.queues(), 1);
        push(&mut engine, &mut log, 2, &packets[0], i64::MAX);
        assert_eq!((log.wholes()[0].times, engine.queues()), ((i64::MAX, i64::MAX), 0));
        // And back: another epoch.
        push(&mut engine, &mut log, 3, &packets[0], i64::MAX);
        push(&mut engine, &mut log, 4, &packets[1], i64::MIN);
        assert_eq!((log.lost()[1].reason, log.lost()[1].icmp.is_some()), (Reason::Timeout, false));
        check(&engine);
        engine.flush(&[], &mut log);
        check_empty(&engine);
    }
}

#[test]
fn a_deadline_beyond_the_end_of_time() {
    let (mut engine, mut log) = fresh(config(Policy::Linux));
    let late = i64::MAX - 30 * SECOND;
    push(&mut engine, &mut log, 0, &piece(1, 0, true), late);
    push(&mut engine, &mut log, 1, &piece(2, 0, true), late + 1);
    engine.advance(&[], i64::MAX - 1, &mut log);
    assert_eq!(engine.queues(), 2);
    engine.advance(&[], i64::MAX, &mut log);
    assert_eq!((engine.queues(), log.lost()[0].frames.as_slice()), (1, &[(0, 0)][..]));
    check(&engine);
}

#[test]
fn a_deadline_is_met_exactly() {
    for (packet, timeout) in [(piece(1, 0, true), 30 * SECOND), (wide(1, 0, true), 60 * SECOND)] {
        let (mut engine, mut log) = fresh(config(Policy::Linux));
        push(&mut engine, &mut log, 0, &packet, -5);
        engine.advance(&[], timeout - 6, &mut log);
        assert_eq!(engine.queues(), 1);
        engine.advance(&[], timeout - 5, &mut log);
        assert_eq!((engine.queues(), log.lost().len()), (0, 1));
    }
}

#[test]
fn a_step_back_by_the_timeout_is_small_enough() {
    for (packet, last, timeout) in
        [(piece(1, 0, true), piece(1, 1, false), 30 * SECOND), (wide(1, 0, true), wide(1, 1, false), 60 * SECOND)]
    {
        for (back, wholes) in [(timeout, 1), (timeout + 1, 0)] {
            let (mut engine, mut log) = fresh(config(Policy::Linux));
            push(&mut engine, &mut log, 0, &packet, 100 * SECOND);
            push(&mut engine, &mut log, 1, &last, 100 * SECOND - back);
            assert_eq!((log.wholes().len(), engine.queues()), (wholes, 1 - wholes));
            assert!(log.lost().iter().all(|lost| lost.reason == Reason::Timeout && lost.icmp.is_none()));
            check(&engine);
        }
    }
}

#[test]
fn time_may_start_anew_behind_a_flush() {
    let (mut engine, mut log) = fresh(config(Policy::Linux));
    push(&mut engine, &mut log, 0, &piece(1, 0, true), 1000 * SECOND);
    engine.flush(&[], &mut log);
    push(&mut engine, &mut log, 1, &piece(1, 0, true), 0);
    push(&mut engine, &mut log, 2, &piece(1, 1, false), 29 * SECOND);
    assert_eq!((log.wholes().len(), log.lost()[0].reason), (1, Reason::End));
    check_empty(&engine);
}

/// Four VLAN tags, all bits of each.
const FULL: u64 = 4 << 48 | 0xffff_ffff_ffff;

#[test]
fn the_largest_domain_is_a_domain_of_its_own() {
    for bit in (0..51).map(|bit| 1u64 << bit) {
        let (mut engine, mut log) = fresh(config(Policy::Linux));
        let v4 = V4 { protocol: 255, ..V4::new(u16::MAX, 0, true, &[1; 8]) };
        let v4_last = V4 { more: false, offset: 8, ..v4.clone() };
        let v6 = V6::new(u32::MAX, 0, true, &[1; 8]);
        let v6_last = V6 { more: false, offset: 8, ..v6.clone() };
        push_in(&mut engine, &mut log, 0, &v4.bytes(), 0, FULL);
        push_in(&mut engine, &mut log, 1, &v6.bytes(), 0, FULL);
        push_in(&mut engine, &mut log, 2, &v4_last.bytes(), 0, FULL ^ bit);
        push_in(&mut engine, &mut log, 3, &v6_last.bytes(), 0, FULL ^ bit);
        assert_eq!((log.wholes().len(), engine.queues()), (0, 4));
        push_in(&mut engine, &mut log, 4, &v4_last.bytes(), 0, FULL);
        push_in(&mut engine, &mut log, 5, &v6_last.bytes(), 0, FULL);
        let keys: Vec<_> = log.wholes().iter().map(|whole| whole.key).collect();
        assert_eq!((keys[0].domain, keys[0].protocol, keys[0].id), (FULL, 255, 0xffff));
        assert_eq!((keys[1].domain, keys[1].protocol, keys[1].id), (FULL, 253, u32::MAX));
        assert_eq!(keys[0].source, Address::V4(v4.source));
        assert_eq!((keys[1].source, keys[1].destination), (Address::V6(v6.source), Address::V6(v6.destination)));
        engine.flush(&[], &mut log);
        assert!(log.lost().iter().all(|lost| lost.key.domain == FULL ^ bit));
    }
}

#[test]
fn four_full_tags_on_the_wire_are_that_domain() {
    let (mut engine, mut log) = fresh(config(Policy::Linux));
    let mut bytes = vec![2; 12];
    for _ in 0..4 {
        bytes.extend([0x81, 0x00, 0x0f, 0xff]);
    }
    bytes.extend([8, 0]);
    bytes.extend(piece(1, 0, true));
    let length = bytes.len() as u32;
    let frame = Frame { start: 0, time: 0, record: length, captured: length, head: 0, link: LinkType(1) };
    engine.run(Batch { segment: &bytes, frames: &[frame], first: 0, origin: 0, transient: false }, &mut log);
    log.head = 30;
    engine.flush(&bytes, &mut log);
    assert_eq!((log.lost()[0].key.domain, &log.lost()[0].packets[0]), (FULL, &piece(1, 0, true)));
}

#[test]
fn frame_numbers_beyond_32_bits() {
    let edge = 1u64 << 32;
    for policy in [Policy::Linux, Policy::First] {
        for first in [edge - 4, edge - 3, edge - 2, edge - 1, edge, 5 * edge - 2, u64::MAX - 4] {
            let (mut engine, mut log) = fresh(config(policy));
            push(&mut engine, &mut log, first, &piece(1, 0, true), 0);
            push(&mut engine, &mut log, first + 1, &piece(2, 0, true), 0);
            push(&mut engine, &mut log, first + 2, &piece(1, 1, true), 0);
            push(&mut engine, &mut log, first + 3, &piece(1, 2, false), 0);
            assert_eq!(log.wholes()[0].frames, [first, first + 2, first + 3]);
            // A kill tells of the frame that did it by its own number.
            push(&mut engine, &mut log, first + 4, &V4::new(2, 0, true, &[]).bytes(), 0);
            assert_eq!(log.lost()[0].frames, [(first + 1, 0), (first + 4, 0)]);
            check_empty(&engine);
        }
    }
}

#[test]
fn a_number_is_still_right_when_time_or_input_ends() {
    let edge = 1u64 << 32;
    for first in [edge - 2, edge - 1, edge, edge + 1] {
        let (mut engine, mut log) = fresh(config(Policy::Linux));
        push(&mut engine, &mut log, first, &piece(1, 0, true), 0);
        push(&mut engine, &mut log, first + 1, &piece(2, 0, true), SECOND);
        engine.advance(&[], 30 * SECOND, &mut log);
        engine.flush(&[], &mut log);
        let frames: Vec<u64> = log.lost().iter().map(|lost| lost.frames[0].0).collect();
        assert_eq!(frames, [first, first + 1]);
    }
    // A batch knows the number behind its last frame.
    let (mut engine, mut log) = fresh(config(Policy::Linux));
    let packet = piece(1, 0, true);
    let frames = [raw(0, packet.len(), 0), raw(0, packet.len(), 0)];
    let batch = Batch { segment: &packet, frames: &frames, first: edge - 1, origin: 0, transient: false };
    engine.run_packets(batch, 0, &mut log);
    engine.flush(&packet, &mut log);
    assert_eq!(log.lost()[0].frames, [(edge - 1, 0)]);
    // Numbers of another input start anew: those of the input before stay what they were.
    let (mut engine, mut log) = fresh(config(Policy::Linux));
    push(&mut engine, &mut log, 500, &piece(1, 0, true), 0);
    push(&mut engine, &mut log, 1, &piece(1, 1, false), 0);
    assert_eq!(log.wholes()[0].frames, [500, 1]);
}

#[test]
fn a_record_that_is_no_frame_passes_without_time() {
    let (mut engine, mut log) = fresh(config(Policy::Linux));
    push(&mut engine, &mut log, 0, &piece(1, 0, true), 0);
    let none = Frame { link: LinkType::NONE, ..raw(0, 8, i64::MAX) };
    engine.run(Batch { segment: &[0; 8], frames: &[none], first: 1, origin: 0, transient: false }, &mut log);
    assert_eq!((log.lost().len(), engine.queues()), (0, 1));
    push(&mut engine, &mut log, 2, &piece(1, 1, false), 1);
    assert_eq!(log.wholes().len(), 1);
}
