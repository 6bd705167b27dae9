//! The tracker by itself, on packets that lie in memory: what one costs, what a connection takes.

use std::hint::black_box;

use crate::clock::Clock;
use crate::report;
use fragtrack_core::track::config::Checksum;
use fragtrack_core::track::tracker::Record;
use fragtrack_core::track::verdict::Why;
use fragtrack_core::track::{Config, Packet, Reason, Tracker};

const KEY: (u64, u64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
const START: i64 = 1_700_000_000_000_000_000;
/// Packets decoded before the first of them is followed.
const BLOCK: usize = 16;
const HEADERS: usize = 60;
const SYN: u8 = 2;
const ACK: u8 = 16;
/// Connections of the tests with many.
const MANY: u32 = 1_000_000;

/// An IP packet with a TCP header and no payload.
#[derive(Clone, Copy)]
struct Made {
    bytes: [u8; HEADERS],
    length: usize,
}

/// A packet of the connection `number`.
fn packet(number: u32, v6: bool, flags: u8, seq: u32, ack: u32) -> Made {
    let mut bytes = [0; HEADERS];
    let mut put = |at: usize, part: &[u8]| {
        if let Some(to) = bytes.get_mut(at..at + part.len()) {
            to.copy_from_slice(part);
        }
    };
    let at = if v6 {
        put(0, &[0x60, 0, 0, 0, 0, 20, 6, 64]);
        put(8, &[0x20, 1, 0x0d, 0xb8]);
        put(20, &number.to_be_bytes());
        put(24, &[0x20, 1, 0x0d, 0xb8, 0xff]);
        40
    } else {
        put(0, &[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
        put(12, &(0x0a00_0000 | number).to_be_bytes());
        put(16, &[198, 51, 100, 2]);
        20
    };
    put(at, &[0x04, 0x00, 0x01, 0xbb]);
    put(at + 4, &seq.to_be_bytes());
    put(at + 8, &ack.to_be_bytes());
    put(at + 12, &[0x50, flags, 0xff, 0xff]);
    Made { bytes, length: at + 20 }
}

fn tracker(max: u32) -> Tracker {
    let mut config = Config::linux(KEY);
    config.checksum = Checksum::Ignore;
    config.max = max;
    Tracker::new(config, false, Record { rows: false, events: false })
}

/// Takes packets through as the follower does: a block is decoded while the one before it is followed.
fn follow(tracker: &mut Tracker, packets: impl Iterator<Item = Made>) -> u64 {
    let none = Packet::lost(Why::bare(Reason::Header));
    let (mut now, mut ahead) = (vec![none; BLOCK], vec![none; BLOCK]);
    let (mut packets, mut waiting, mut count) = (packets, 0, 0);
    loop {
        let mut staged = 0;
        for (made, place) in packets.by_ref().take(BLOCK).zip(&mut ahead) {
            tracker.stage(made.bytes.get(..made.length).unwrap_or(&[]), 0, place);
            staged += 1;
        }
        for packet in now.iter().take(waiting) {
            black_box(tracker.follow(packet, &[], START, 1));
            count += 1;
        }
        if staged == 0 {
            return count;
        }
        ahead.iter().take(staged).for_each(|packet| tracker.glance(packet));
        waiting = staged;
        core::mem::swap(&mut now, &mut ahead);
    }
}

/// Numbers below `MANY` in an order without a pattern.
fn scattered() -> impl Iterator<Item = u32> {
    (0..MANY).map(|at| (u64::from(at) * 618_033_989 % u64::from(MANY)) as u32)
}

pub(crate) fn run(clock: &Clock, rounds: u32) -> Result<(), String> {
    for round in 1..=rounds {
        hot(clock, round);
        for v6 in [false, true] {
            many(clock, round, v6)?;
        }
    }
    Ok(())
}

/// One connection, and packets of it: no miss of any cache.
fn hot(clock: &Clock, round: u32) {
    let mut tracker = tracker(1000);
    let handshake = [packet(1, false, SYN, 0, 0), packet(1, false, ACK, 1, 1)];
    follow(&mut tracker, handshake.into_iter());
    let packets = vec![packet(1, false, ACK, 1, 1); 4096];
    let (count, took) = clock.time(|| (0..500).map(|_| follow(&mut tracker, packets.iter().copied())).sum());
    report("one flow", round, count, took);
}

/// A million connections: made, looked up in any order, told of.
fn many(clock: &Clock, round: u32, v6: bool) -> Result<(), String> {
    let mut tracker = tracker(2 * MANY);
    let name = |what: &str| format!("{what}, IPv{}", if v6 { 6 } else { 4 });
    let made = |flags| move |number| packet(number, v6, flags, 0, 0);
    let (count, took) = clock.time(|| follow(&mut tracker, (0..MANY).map(made(SYN))));
    report(&name("new flows"), round, count, took);
    if tracker.len() != MANY as usize {
        return Err(format!("{} connections where {MANY} are right", tracker.len()));
    }
    let (count, took) = clock.time(|| follow(&mut tracker, scattered().map(made(SYN))));
    report(&name("look-ups"), round, count, took);
    let (rows, took) = clock.time(|| tracker.rows());
    report(&name("dump"), round, rows.len() as u64, took);
    if round == 1 {
        let each = tracker.memory() / MANY as usize;
        println!(
            "{{\"what\":\"{}\",\"bytes_each\":{each},\"used_each\":{}}}",
            name("memory"),
            tracker.used() / MANY as usize
        );
    }
    Ok(())
}
