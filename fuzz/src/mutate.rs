//! Changes to captures: of bytes, of length fields, of whole records, of the packets inside.

use std::ops::Range;

use crate::random::Random;

/// Longest input, bytes.
pub const LONGEST: usize = 1 << 16;

const NUMBERS: [u32; 22] = [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    12,
    16,
    20,
    0x7f,
    0xff,
    0x2000,
    0x1fff,
    0x7fff,
    0xffff,
    0x4_0000,
    0x4_0001,
    0x7fff_ffff,
    0xffff_ffff,
];

/// Makes one to a few changes; `other` is there to take pieces from.
pub fn mutate(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    let most = if random.once_in(4) { 12 } else { 4 };
    for _ in 0..=random.below(most) {
        match random.below(16) {
            0 => flip(random, data),
            1 => number(random, data),
            2 => stretch(random, data),
            3 => {
                let length = random.below(data.len() + 1);
                data.truncate(length);
            }
            4..=8 => records(random, data, other),
            _ => packet(random, data),
        }
    }
    data.truncate(LONGEST);
}

fn flip(random: &mut Random, data: &mut [u8]) {
    let at = random.below(data.len());
    if let Some(byte) = data.get_mut(at) {
        *byte = if random.once_in(2) { *byte ^ 1 << random.below(8) } else { random.next() as u8 };
    }
}

fn write(data: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = data.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Puts a number of note somewhere, in either byte order.
fn number(random: &mut Random, data: &mut [u8]) {
    let value = random.of(&NUMBERS);
    let at = random.below(data.len()) & !(random.of(&[0, 1, 3, 3]));
    match random.below(4) {
        0 => write(data, at, &value.to_le_bytes()),
        1 => write(data, at, &value.to_be_bytes()),
        2 => write(data, at, &(value as u16).to_be_bytes()),
        _ => write(data, at, &(value as u16).to_le_bytes()),
    }
}

/// Inserts or removes bytes.
fn stretch(random: &mut Random, data: &mut Vec<u8>) {
    let at = random.below(data.len() + 1);
    let length = random.of(&[1, 2, 4, 4, 8, 16, 64]);
    if random.once_in(2) {
        let end = (at + length).min(data.len());
        data.drain(at..end);
    } else {
        let byte = random.of(&[0, 0xff, 0x45, 0x60]);
        data.splice(at..at, std::iter::repeat_n(byte, length));
    }
}

/// Where the records of a capture stand, as far as their lengths can be believed.
fn spans(data: &[u8]) -> Vec<Range<usize>> {
    let word = |at: usize, big: bool| {
        let bytes = data.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map(|bytes| if big { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) } as usize)
    };
    let mut spans = Vec::new();
    let ng = data.starts_with(&[10, 13, 13, 10]);
    let mut big = if ng { false } else { matches!(data.first(), Some(0xa1)) };
    let head = if data.starts_with(&[0x34, 0xcd]) || data.get(2..4) == Some(&[0xcd, 0x34]) { 24 } else { 16 };
    let mut at = if ng { 0 } else { 24 };
    while at + 12 <= data.len() && spans.len() < 2000 {
        if ng && data.get(at..at + 4) == Some(&[10, 13, 13, 10]) {
            big = data.get(at + 8) == Some(&0x1a);
        }
        let length = if ng { word(at + 4, big) } else { word(at + 8, big).map(|captured| captured + head) };
        let Some(length) = length.filter(|length| (12..=data.len() - at).contains(length)) else { break };
        spans.push(at..at + length);
        at += length;
    }
    spans
}

/// Removes, repeats, moves or brings in whole records, or lies about the length of one.
fn records(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    let spans = spans(data);
    if spans.is_empty() {
        return flip(random, data);
    }
    let one = spans[random.below(spans.len())].clone();
    let two = spans[random.below(spans.len())].clone();
    match random.below(8) {
        0 => drop(data.drain(one)),
        1 => {
            let copy = data[one].to_vec();
            data.splice(two.start..two.start, copy);
        }
        2 => {
            let copy = data[one.clone()].to_vec();
            data.drain(one.clone());
            let to = if two.start > one.start { two.start - copy.len().min(two.start) } else { two.start };
            data.splice(to..to, copy);
        }
        3 | 4 => {
            let theirs = self::spans(other);
            if !theirs.is_empty() {
                let from = theirs[random.below(theirs.len())].clone();
                let to = theirs[random.below(theirs.len())].clone();
                let range = from.start.min(to.start)..from.end.max(to.end).min(from.start.min(to.start) + 8192);
                data.splice(one.start..one.start, other[range].iter().copied());
            }
        }
        5 => {
            // A field of the record's header.
            let at = one.start + 4 * random.below(8);
            let value = random.of(&NUMBERS);
            write(data, at, &if random.once_in(2) { value.to_le_bytes() } else { value.to_be_bytes() });
        }
        6 => {
            let at = one.start + 4 * random.below(8);
            let delta = random.of(&[1_u32, 2, 4, 8, 16, 0xffff_ffff, 0xffff_fffc, 0x0100_0000, 0xfc00_0000]);
            if let Some(bytes) = data.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>()) {
                let value = u32::from_le_bytes(*bytes).wrapping_add(delta);
                write(data, at, &value.to_le_bytes());
            }
        }
        _ => {
            let from = one.start.min(two.start);
            data.drain(from..one.end.max(two.end));
        }
    }
}

/// Changes a field of an IP packet somewhere inside.
fn packet(random: &mut Random, data: &mut [u8]) {
    let start = random.below(data.len());
    let found = data.iter().skip(start).position(|byte| (0x45..=0x4f).contains(byte) || *byte == 0x60);
    let Some(at) = found.map(|found| start + found) else { return };
    if data[at] == 0x60 {
        packet6(random, data, at);
    } else {
        packet4(random, data, at);
    }
}

fn field(random: &mut Random) -> u16 {
    let offset = random.of(&[0, 0, 1, 2, 3, 4, 5, 8, 16, 0x1ffe, 0x1fff]);
    offset | random.of(&[0, 0x2000, 0x2000, 0x4000, 0x6000])
}

fn packet4(random: &mut Random, data: &mut [u8], at: usize) {
    match random.below(8) {
        0..=2 => {
            let value = field(random);
            write(data, at + 6, &value.to_be_bytes());
        }
        3 => {
            let total = random.of(&[0_u16, 1, 19, 20, 21, 27, 28, 29, 36, 44, 60, 1500, 0xffff]);
            write(data, at + 2, &total.to_be_bytes());
        }
        4 => {
            let id = random.below(4) as u16;
            write(data, at + 4, &id.to_be_bytes());
        }
        5 => write(data, at, &[0x40 | random.below(16) as u8]),
        6 => write(data, at + 1, &[random.below(4) as u8]),
        _ => write(data, at + 9, &[random.of(&[1, 6, 17, 44, 253])]),
    }
}

fn packet6(random: &mut Random, data: &mut [u8], at: usize) {
    const HEADERS: [u8; 14] = [0, 6, 17, 43, 44, 44, 50, 51, 58, 59, 60, 135, 139, 253];
    let header = at + 40 + 8 * random.below(4);
    match random.below(8) {
        0 => write(data, at + 6, &[random.of(&HEADERS)]),
        1 => {
            let length = random.of(&[0_u16, 1, 7, 8, 9, 16, 24, 32, 1440, 0xffff]);
            write(data, at + 4, &length.to_be_bytes());
        }
        2 | 3 => {
            let value = field(random);
            write(data, header + 2, &(value << 3 | value >> 13 & 1).to_be_bytes());
        }
        4 => write(data, header, &[random.of(&HEADERS)]),
        5 => write(data, header + 1, &[random.of(&[0, 1, 2, 255])]),
        6 => write(data, header + 4, &[0, 0, 0, random.below(3) as u8]),
        _ => write(data, at + 1, &[(random.below(4) as u8) << 4]),
    }
}
