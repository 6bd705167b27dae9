//! Nanoseconds a record: a plain serial walk against [`Reader`], over files in memory.
//!
//! `cargo bench -p fragtrack-capture --bench walk -- FILE.pcap...`; little-endian pcap. Passes of
//! each kind take turns; printed are median and least, of processor time. `serial` and `reader` read the IPv4 or IPv6
//! header of each frame, as anything that uses the frames does; `bare` follows the lengths alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

use std::hint::black_box;

use clock::Clock;
use fragtrack_capture::{Input, Origins, Pause, Reader, Tail};
use fragtrack_core::frame::Frame;

// The wall time is for the other benchmark.
#[allow(dead_code)]
#[path = "engine/clock.rs"]
mod clock;

const PASSES: usize = 15;
const BATCH: usize = 1024;

fn main() {
    let clock = Clock::new();
    println!("{:<24} {:>8}  {:>14} {:>14} {:>14}", "file", "records", "serial", "bare", "reader");
    for file in std::env::args().skip(1).filter(|arg| !arg.starts_with("--")) {
        let bytes = std::fs::read(&file).expect("the file");
        let kinds: [fn(&[u8]) -> usize; 3] =
            [|bytes| walk_serially(bytes, true), |bytes| walk_serially(bytes, false), walk_with_reader];
        let mut times = [const { Vec::new() }; 3];
        let mut records = [0; 3];
        for _ in 0..PASSES {
            for ((kind, times), records) in kinds.iter().zip(&mut times).zip(&mut records) {
                let (found, took) = clock.time(|| kind(&bytes));
                *records = found;
                times.push(took.cpu as f64);
            }
        }
        assert_eq!(records[0], records[2], "both see the same records");
        let name = file.rsplit('/').next().unwrap_or(&file);
        print!("{name:<24} {:>8} ", records[0]);
        for times in &mut times {
            times.sort_by(f64::total_cmp);
            let each = |time: f64| time / records[0] as f64;
            print!("  {:>6.1} {:>6.1}", each(times[PASSES / 2]), each(times[0]));
        }
        println!();
    }
}

/// Follows the lengths; with `look`, reads each frame's IP header too.
fn walk_serially(bytes: &[u8], look: bool) -> usize {
    let (mut at, mut records, mut sum) = (24, 0, 0_u64);
    while let Some(header) = bytes.get(at..at + 16) {
        let captured = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        sum = sum.wrapping_add(if look { key(bytes, at + 16) } else { captured as u64 });
        records += 1;
        at += 16 + captured;
    }
    black_box(sum);
    records
}

fn walk_with_reader(bytes: &[u8]) -> usize {
    let mut origins = Origins::new();
    let mut reader = Reader::new();
    reader.glance(if bytes.get(24 + 16 + 12) == Some(&0x86) { 62 } else { 34 });
    let mut frames: Vec<Frame> = Vec::with_capacity(BATCH);
    let (mut start, mut records, mut sum) = (0, 0, 0_u64);
    loop {
        let input = Input { bytes, start, stop: bytes.len(), tail: Tail::Last };
        let step = reader.read(&mut origins, input, &mut frames, BATCH);
        for frame in &frames {
            sum = sum.wrapping_add(key(bytes, frame.start as usize + usize::from(frame.head)));
        }
        records += frames.len();
        start = step.next;
        if !matches!(step.pause, Pause::Full | Pause::Section) {
            break;
        }
    }
    black_box(sum);
    records
}

/// Something that depends on every field a reassembler must look at.
#[inline]
fn key(bytes: &[u8], at: usize) -> u64 {
    let word = |place: usize| {
        let raw = bytes.get(at + place..at + place + 8);
        raw.map_or(0, |raw| u64::from_le_bytes(raw.try_into().unwrap()))
    };
    let mut sum = word(12) ^ word(20) ^ word(26);
    if bytes.get(at + 12) == Some(&0x86) {
        sum ^= word(34) ^ word(42) ^ word(54);
    }
    sum
}
