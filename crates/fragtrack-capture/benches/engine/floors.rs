//! What the machine itself costs, without any reassembly: the ends of the scale.
//!
//! | floor | does |
//! | --- | --- |
//! | `walk` | follows the record lengths one by one, reads every header field a reassembler needs |
//! | `ahead` | the same with positions known, so that headers are asked for 16 records early |
//! | `keyed` | `ahead`, and finds each datagram's slot in a hash table and counts its bytes |
//! | `gather` | `keyed`, and copies each finished datagram to one 64 KiB buffer |
//!
//! None is a reassembler: no order, no overlaps, no expiry, no limit, a table that never fills,
//! classic pcap in little endian on Ethernet only.

use crate::Measure;
use crate::input::{Capture, FILE_HEADER, RECORD};
use fragtrack_core::prefetch;

const ETHERNET: usize = 14;
const AHEAD: usize = 16;
const NONE: u32 = u32::MAX;

/// What a pass found.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Answer {
    pub(crate) records: u64,
    pub(crate) datagrams: u64,
    /// IP payload of the complete datagrams, bytes.
    pub(crate) bytes: u64,
    /// Everything read, mixed, so that no read can be optimized away.
    pub(crate) sum: u64,
}

/// A record with its headers: 16 bytes of record, 14 of Ethernet, at most 48 of IP.
type Window = [u8; 80];

#[derive(Clone, Copy, Default)]
struct Header {
    addresses: u64,
    id: u32,
    offset: u32,
    length: u32,
    more: bool,
    protocol: u8,
    /// Where the payload starts, from the record's start on.
    payload: u32,
    fragment: bool,
}

impl Header {
    fn mix(&self) -> u64 {
        let low = u64::from(self.id ^ self.offset ^ self.length);
        self.addresses ^ low ^ u64::from(self.more) << 32 ^ u64::from(self.protocol) << 40
    }
}

fn window(bytes: &[u8], at: usize) -> Option<&Window> {
    bytes.get(at..)?.first_chunk()
}

fn step(record: &Window) -> usize {
    let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = *record;
    RECORD.wrapping_add(u32::from_le_bytes([a, b, c, d]) as usize)
}

fn be16(high: u8, low: u8) -> u32 {
    u32::from(u16::from_be_bytes([high, low]))
}

fn word(record: &Window, at: usize) -> u64 {
    let bytes = record.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Reads what a reassembler has to look at.
#[inline(always)]
fn parse(record: &Window) -> Header {
    const IP: usize = RECORD + ETHERNET;
    match [record[IP - 2], record[IP - 1]] {
        [0x08, 0x00] => {
            let header = u32::from(record[IP] & 15) * 4;
            let flags = be16(record[IP + 6], record[IP + 7]);
            Header {
                addresses: word(record, IP + 12),
                id: be16(record[IP + 4], record[IP + 5]),
                offset: (flags & 0x1fff) * 8,
                length: be16(record[IP + 2], record[IP + 3]).wrapping_sub(header),
                more: flags & 0x2000 != 0,
                protocol: record[IP + 9],
                payload: IP as u32 + header,
                fragment: flags & 0x3fff != 0 && record[IP] >> 4 == 4,
            }
        }
        [0x86, 0xdd] if record[IP + 6] == 44 => {
            let source = fold(word(record, IP + 8), word(record, IP + 16));
            let destination = fold(word(record, IP + 24), word(record, IP + 32));
            let flags = be16(record[IP + 42], record[IP + 43]);
            Header {
                addresses: source ^ destination.rotate_left(32),
                id: be16(record[IP + 44], record[IP + 45]) << 16 | be16(record[IP + 46], record[IP + 47]),
                offset: flags & 0xfff8,
                length: be16(record[IP + 4], record[IP + 5]).wrapping_sub(8),
                more: flags & 1 != 0,
                protocol: record[IP + 40],
                payload: IP as u32 + 48,
                fragment: true,
            }
        }
        _ => Header::default(),
    }
}

/// Multiplies to 128 bits and folds: one instruction, every bit of both counts.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ (product >> 64) as u64
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
        prefetch::read(&capture.bytes, at.saturating_add(RECORD + ETHERNET));
    }
}

/// Every floor over one capture.
pub(crate) fn measures<'a>(capture: &'a Capture, positions: &'a [usize]) -> Vec<Box<dyn Measure + 'a>> {
    vec![
        Box::new(Walk { capture }),
        Box::new(Ahead { capture, positions }),
        Box::new(Tabled::<false> { capture, positions, table: Table::new(positions.len()) }),
        Box::new(Tabled::<true> { capture, positions, table: Table::new(positions.len()) }),
    ]
}

struct Walk<'a> {
    capture: &'a Capture,
}

impl Measure for Walk<'_> {
    fn name(&self) -> &'static str {
        "floor-walk"
    }

    fn completes(&self) -> bool {
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

    fn completes(&self) -> bool {
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

struct Tabled<'a, const GATHER: bool> {
    capture: &'a Capture,
    positions: &'a [usize],
    table: Table,
}

impl<const GATHER: bool> Measure for Tabled<'_, GATHER> {
    fn name(&self) -> &'static str {
        if GATHER { "floor-gather" } else { "floor-keyed" }
    }

    fn prepare(&mut self) {
        self.table.slots.fill(EMPTY);
    }

    fn pass(&mut self) -> Answer {
        self.table.pass::<GATHER>(self.capture, self.positions)
    }
}

#[derive(Clone, Copy)]
struct Slot {
    addresses: u64,
    id: u32,
    used: u32,
    have: u32,
    total: u32,
    head: u32,
    tail: u32,
}

const EMPTY: Slot = Slot { addresses: 0, id: 0, used: 0, have: 0, total: NONE, head: NONE, tail: NONE };

/// The table of `keyed` and `gather`: open addressing, finished entries stay as tombstones.
struct Table {
    slots: Vec<Slot>,
    shift: u32,
    /// The next fragment of the same datagram, by record number.
    link: Vec<u32>,
    out: Vec<u8>,
}

impl Table {
    /// A table that a capture of `records` records cannot fill.
    fn new(records: usize) -> Self {
        let slots = records.next_power_of_two().max(1 << 20);
        let out = vec![1; 1 << 17];
        let shift = 64 - slots.trailing_zeros();
        Self { slots: vec![EMPTY; slots], shift, link: vec![0; records], out }
    }

    fn find(slots: &mut [Slot], place: usize, header: &Header) -> Option<usize> {
        let mask = slots.len() - 1;
        let mut place = place;
        loop {
            let slot = slots.get_mut(place & mask)?;
            if slot.used == 0 {
                *slot = Slot { addresses: header.addresses, id: header.id, used: 1, ..EMPTY };
            }
            if slot.addresses == header.addresses && slot.id == header.id {
                return Some(place & mask);
            }
            place = place.wrapping_add(1);
        }
    }

    /// One pass; `gather` also makes each finished datagram contiguous.
    fn pass<const GATHER: bool>(&mut self, capture: &Capture, positions: &[usize]) -> Answer {
        let mut answer = Answer::default();
        let mut batch = [(Header::default(), 0_usize); AHEAD];
        for (number, group) in positions.chunks(AHEAD).enumerate() {
            let first = number * AHEAD;
            for (index, (at, entry)) in group.iter().zip(&mut batch).enumerate() {
                ask(capture, positions, first + AHEAD + index);
                let Some(record) = window(&capture.bytes, *at) else { return answer };
                let header = parse(record);
                let hash = fold(header.addresses, u64::from(header.id));
                let place = (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
                if let Some(slot) = self.slots.get(place) {
                    prefetch::line(slot);
                }
                *entry = (header, place);
            }
            for (index, (header, place)) in batch.iter().take(group.len()).enumerate() {
                if !header.fragment {
                    continue;
                }
                let Some(found) = Self::find(&mut self.slots, *place, header) else { continue };
                let Some(slot) = self.slots.get_mut(found) else { continue };
                if GATHER {
                    let fragment = (first + index) as u32;
                    chain(&mut self.link, slot, fragment);
                }
                slot.have = slot.have.wrapping_add(header.length);
                if !header.more {
                    slot.total = header.offset.wrapping_add(header.length);
                }
                if slot.have == slot.total {
                    answer.datagrams += 1;
                    answer.bytes += u64::from(slot.have);
                    if GATHER {
                        let head = slot.head;
                        copy(&mut self.out, &self.link, capture, positions, head);
                    }
                    slot.id = NONE; // a tombstone: used, and equal to no key
                    slot.addresses = 0;
                }
            }
            answer.records += group.len() as u64;
        }
        answer.sum ^= u64::from(self.out.get(100).copied().unwrap_or(0));
        answer
    }
}

#[inline(always)]
fn chain(link: &mut [u32], slot: &mut Slot, fragment: u32) {
    if let Some(next) = link.get_mut(fragment as usize) {
        *next = NONE;
    }
    if slot.head == NONE {
        slot.head = fragment;
    } else if let Some(next) = link.get_mut(slot.tail as usize) {
        *next = fragment;
    }
    slot.tail = fragment;
}

#[inline(always)]
fn copy(out: &mut [u8], link: &[u32], capture: &Capture, positions: &[usize], head: u32) {
    let mut fragment = head;
    while let Some(at) = positions.get(fragment as usize) {
        let next = link.get(fragment as usize).copied().unwrap_or(NONE);
        ask(capture, positions, next as usize);
        let Some(record) = window(&capture.bytes, *at) else { return };
        let header = parse(record);
        let (start, length) = (at + header.payload as usize, header.length as usize);
        let offset = header.offset as usize;
        let from = capture.bytes.get(start..start.saturating_add(length));
        if let (Some(to), Some(from)) = (out.get_mut(offset..offset + length), from) {
            to.copy_from_slice(from);
        }
        fragment = next;
    }
}
