//! What the machine itself costs, without any tracking: the ends of the scale.
//!
//! | floor | does |
//! | --- | --- |
//! | `floor-walk` | follows the record lengths one by one, reads the header fields of IPv4 and TCP |
//! | `floor-ahead` | the same with positions known, so that headers are asked for 32 records early |
//! | `floor-flow` | `ahead`, and finds each connection's slot in a hash table, and counts its packets and bytes |
//!
//! None is a tracker: no states, no windows, no timers, no limit, a table that never fills, classic pcap in little
//! endian with IPv4 without options on Ethernet only.

use crate::input::{Capture, FILE_HEADER, RECORD};
use crate::{Answer, Measure, Truth};
use fragtrack_core::prefetch;

const IP: usize = RECORD + 14;
const AHEAD: usize = 32;

/// A record with its headers: 16 bytes of record, 14 of Ethernet, 40 of IPv4 and TCP.
type Window = [u8; 72];

#[derive(Clone, Copy, Default)]
struct Header {
    addresses: u64,
    ports: u32,
    seq: u32,
    ack: u32,
    length: u32,
    flags: u8,
    protocol: u8,
}

/// A connection: the lower of its two ends, the higher one; and above that, the protocol.
type Key = (u64, u64);

fn window(bytes: &[u8], at: usize) -> Option<&Window> {
    bytes.get(at..)?.first_chunk()
}

fn word<const N: usize>(record: &Window, at: usize) -> [u8; N] {
    record.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn step(record: &Window) -> usize {
    RECORD.wrapping_add(u32::from_le_bytes(word(record, 8)) as usize)
}

/// Reads what a tracker has to look at.
#[inline(always)]
fn parse(record: &Window) -> Header {
    Header {
        addresses: u64::from_be_bytes(word(record, IP + 12)),
        ports: u32::from_be_bytes(word(record, IP + 20)),
        seq: u32::from_be_bytes(word(record, IP + 24)),
        ack: u32::from_be_bytes(word(record, IP + 28)),
        length: u32::from(u16::from_be_bytes(word(record, IP + 2))),
        flags: u8::from_be_bytes(word(record, IP + 33)),
        protocol: u8::from_be_bytes(word(record, IP + 9)),
    }
}

impl Header {
    fn mix(&self) -> u64 {
        self.addresses
            ^ u64::from(self.ports ^ self.seq ^ self.ack ^ self.length)
            ^ u64::from(self.flags) << 32
            ^ u64::from(self.protocol) << 40
    }

    /// The key of the connection, whoever sent this.
    #[inline(always)]
    fn key(&self) -> Key {
        // Without a branch: which way a packet goes cannot be foretold.
        let one = (self.addresses >> 32) << 16 | u64::from(self.ports >> 16);
        let other = (self.addresses & 0xffff_ffff) << 16 | u64::from(self.ports & 0xffff);
        (one.min(other), one.max(other) | u64::from(self.protocol) << 48)
    }
}

/// Where every record starts: what the other floors are given for nothing.
pub(crate) fn positions(capture: &Capture) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = FILE_HEADER;
    while at < capture.end {
        let Some(record) = window(&capture.bytes, at) else { break };
        found.push(at);
        at = at.wrapping_add(step(record));
    }
    found
}

fn ask(capture: &Capture, positions: &[usize], index: usize) {
    if let Some(at) = positions.get(index) {
        prefetch::read(&capture.bytes, at.saturating_add(IP));
    }
}

/// Every floor over one capture.
pub(crate) fn measures<'a>(capture: &'a Capture, positions: &'a [usize], truth: Truth) -> Vec<Box<dyn Measure + 'a>> {
    // Probes are short, and no more pages are touched than need be.
    let most = truth.connections.map_or(positions.len(), |right| right as usize);
    let slots = (8 * most).next_power_of_two().max(1 << 16);
    vec![
        Box::new(Walk { capture }),
        Box::new(Ahead { capture, positions }),
        Box::new(Flow { capture, positions, slots: vec![EMPTY; slots] }),
    ]
}

struct Walk<'a> {
    capture: &'a Capture,
}

impl Measure for Walk<'_> {
    fn name(&self) -> &'static str {
        "floor-walk"
    }

    fn follows(&self) -> bool {
        false
    }

    fn pass(&mut self) -> Answer {
        let mut answer = Answer::default();
        let mut at = FILE_HEADER;
        while at < self.capture.end {
            let Some(record) = window(&self.capture.bytes, at) else { break };
            answer.sum ^= parse(record).mix();
            answer.records += 1;
            at = at.wrapping_add(step(record));
        }
        answer
    }
}

struct Ahead<'a> {
    capture: &'a Capture,
    positions: &'a [usize],
}

impl Measure for Ahead<'_> {
    fn name(&self) -> &'static str {
        "floor-ahead"
    }

    fn follows(&self) -> bool {
        false
    }

    fn pass(&mut self) -> Answer {
        let mut answer = Answer::default();
        for (index, at) in self.positions.iter().enumerate() {
            ask(self.capture, self.positions, index + AHEAD);
            let Some(record) = window(&self.capture.bytes, *at) else { break };
            answer.sum ^= parse(record).mix();
            answer.records += 1;
        }
        answer
    }
}

/// Half a cache line, so that none lies in two.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot {
    key: Key,
    packets: u64,
    bytes: u64,
}

const EMPTY: Slot = Slot { key: (0, 0), packets: 0, bytes: 0 };

struct Flow<'a> {
    capture: &'a Capture,
    positions: &'a [usize],
    slots: Vec<Slot>,
}

impl Flow<'_> {
    #[inline(always)]
    fn find(&mut self, place: usize, key: Key) -> Option<&mut Slot> {
        let mask = self.slots.len() - 1;
        let mut place = place;
        loop {
            let slot = self.slots.get(place & mask)?;
            if slot.packets == 0 || ((slot.key.0 ^ key.0) | (slot.key.1 ^ key.1)) == 0 {
                return self.slots.get_mut(place & mask);
            }
            place = place.wrapping_add(1);
        }
    }
}

impl Measure for Flow<'_> {
    fn name(&self) -> &'static str {
        "floor-flow"
    }

    fn prepare(&mut self) {
        self.slots.fill(EMPTY);
    }

    fn pass(&mut self) -> Answer {
        let mut answer = Answer::default();
        let shift = 64 - self.slots.len().trailing_zeros();
        let mut batch = [(EMPTY.key, 0_u32, 0_usize); AHEAD];
        for (number, group) in self.positions.chunks(AHEAD).enumerate() {
            for (index, (at, entry)) in group.iter().zip(&mut batch).enumerate() {
                ask(self.capture, self.positions, (number + 1) * AHEAD + index);
                let Some(record) = window(&self.capture.bytes, *at) else { return answer };
                let header = parse(record);
                answer.sum ^= header.mix();
                let key = header.key();
                let mixed = key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key.1;
                let hash = (mixed ^ mixed >> 32).wrapping_mul(0xd1b5_4a32_d192_ed03);
                let place = (hash >> shift) as usize;
                if let Some(slot) = self.slots.get(place) {
                    prefetch::line(slot);
                }
                *entry = (key, header.length, place);
            }
            for (key, length, place) in batch.iter().take(group.len()) {
                let Some(slot) = self.find(*place, *key) else { continue };
                answer.connections += u64::from(slot.packets == 0);
                slot.key = *key;
                slot.packets = slot.packets.wrapping_add(1);
                slot.bytes = slot.bytes.wrapping_add(u64::from(*length));
            }
            answer.records += group.len() as u64;
        }
        answer
    }
}
