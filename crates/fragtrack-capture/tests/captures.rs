//! Public captures of other projects: every packet is read, and what is written again is the same.
//!
//! They are looked for in `../shared/captures` beside the repository, or where `FRAGTRACK_CAPTURES`
//! says; without them this test says so and passes.

// Helpers of a test are tests, though clippy sees functions.
#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::fs;
use std::path::PathBuf;

use fragtrack_capture::{Input, Origins, Output, Pause, Reader, Record, Tail, Writer};
use fragtrack_core::frame::LinkType;

fn folder() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let folder = std::env::var_os("FRAGTRACK_CAPTURES").map_or(beside, PathBuf::from);
    if folder.join("manifest.csv").is_file() {
        return Some(folder);
    }
    println!("skipped: no captures at {}", folder.display());
    None
}

/// The fields of a line, of which some are in quotes.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("there is one").push(letter),
        }
    }
    fields
}

struct Capture {
    name: String,
    bytes: Vec<u8>,
    packets: usize,
    note: String,
}

/// All captures that are not compressed.
fn captures() -> Vec<Capture> {
    let Some(folder) = folder() else { return Vec::new() };
    let manifest = fs::read_to_string(folder.join("manifest.csv")).expect("the manifest");
    let mut lines = manifest.lines().map(fields);
    let head = lines.next().expect("a head");
    let place = |name: &str| head.iter().position(|field| field == name).expect("a column");
    let (file, packets, note) = (place("file"), place("packets"), place("reader_note"));
    lines
        .filter(|row| row[file].ends_with("pcap") || row[file].ends_with("pcapng"))
        .map(|row| Capture {
            bytes: fs::read(folder.join(&row[file])).expect("the capture"),
            name: row[file].clone(),
            packets: match row[file].as_str() {
                // tshark guesses record headers of another shape here and reads one more.
                "suricata-verify__fuzz.pcap" => 1,
                _ => row[packets].parse().expect("a number"),
            },
            note: row[note].clone(),
        })
        .collect()
}

struct Copied {
    packets: usize,
    out: Vec<u8>,
    position: usize,
    damaged: bool,
}

/// Reads all of a capture and writes it in a format; the whole of it at once, or as a stream.
fn copy(bytes: &[u8], output: Output, chunk: usize) -> Copied {
    let (mut reader, mut origins, mut frames) = (Reader::new(), Origins::new(), Vec::new());
    let (mut writer, mut out) = (Writer::new(output), Vec::new());
    let (mut start, mut stop, mut packets, mut begun) = (0, chunk.min(bytes.len()), 0, false);
    loop {
        let input = Input { bytes, start, stop, tail: Tail::from(stop == bytes.len()) };
        let step = reader.read(&mut origins, input, &mut frames, 256);
        if let Some(origin) = reader.origin() {
            if !begun && bytes[0] != 0x0a {
                writer.begin(&origins, origin, &mut out);
            }
            begun = true;
            for run in frames.chunk_by(|a, b| (a.link == LinkType::NONE) == (b.link == LinkType::NONE)) {
                if run[0].link == LinkType::NONE {
                    for frame in run {
                        writer.other(&origins, origin, Record::of(origin, frame, bytes).bytes, &mut out);
                    }
                } else {
                    packets += run.len();
                    writer.admit(&origins, origin, run, &mut out).expect("one link type");
                    writer.packets(&origins, origin, run, bytes, &mut out);
                }
            }
        }
        start = step.next;
        match step.pause {
            Pause::Done | Pause::Damaged => break,
            Pause::More => stop = (stop + chunk).min(bytes.len()),
            Pause::Full | Pause::Section => {}
        }
    }
    writer.finish(&mut out);
    assert_eq!(writer.written(), packets as u64);
    let position = usize::try_from(reader.position()).expect("in memory");
    Copied { packets, out, position, damaged: reader.damage().is_some() }
}

/// Section lengths unspecified, snapshot length of a pcap file as every reader accepts it.
fn as_written(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes[0] != 0x0a {
        let little = bytes[3] == 0xa1;
        let raw = [bytes[16], bytes[17], bytes[18], bytes[19]];
        let snaplen = if little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) }.max(262_144);
        bytes[16..20].copy_from_slice(&if little { snaplen.to_le_bytes() } else { snaplen.to_be_bytes() });
        return bytes;
    }
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..at + 4] == [0x0a, 0x0d, 0x0d, 0x0a] {
            bytes[at + 16..at + 24].fill(0xff);
        }
        let raw = [bytes[at + 4], bytes[at + 5], bytes[at + 6], bytes[at + 7]];
        at += u32::from_le_bytes(raw).min(u32::from_be_bytes(raw)) as usize;
    }
    bytes
}

#[test]
fn every_packet_is_read_and_written_as_it_was() {
    for capture in captures() {
        let output = if capture.bytes[0] == 0x0a { Output::Pcapng } else { Output::Pcap };
        for chunk in [usize::MAX, 1000, 37] {
            let copied = copy(&capture.bytes, output, chunk);
            assert_eq!(copied.packets, capture.packets, "{}", capture.name);
            let broken = capture.note.contains("cut short") || capture.note.contains("damaged");
            assert_eq!(copied.damaged, broken, "{}: {}", capture.name, capture.note);
            let read = &capture.bytes[..copied.position];
            assert!(copied.out == as_written(read), "{} comes out changed", capture.name);
        }
    }
}

#[test]
fn every_packet_survives_the_other_format() {
    for capture in captures().iter().filter(|capture| capture.bytes[0] != 0x0a) {
        let there = copy(&capture.bytes, Output::Pcapng, usize::MAX);
        let back = copy(&there.out, Output::Pcap, usize::MAX);
        assert_eq!((there.packets, back.packets), (capture.packets, capture.packets), "{}", capture.name);
        assert!(!back.damaged);
        let modified = capture.bytes[..4] == [0x34, 0xcd, 0xb2, 0xa1];
        if !modified {
            let mut want = as_written(&capture.bytes[..copy(&capture.bytes, Output::Pcap, 64).position]);
            // The reserved fields and the snapshot length go back to what a new file has.
            want[4..20].copy_from_slice(&back.out[4..20]);
            assert!(want == back.out, "{} comes back changed", capture.name);
        }
    }
}
