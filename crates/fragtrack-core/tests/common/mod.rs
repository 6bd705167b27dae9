//! What the tests share: packets from their fields, settings, and a sink that writes everything down.

// Each test crate uses a part of this. Helpers of a test are tests, though clippy sees functions.
#![allow(dead_code, clippy::expect_used, clippy::indexing_slicing)]

use fragtrack_core::config::{Config, Policy};
use fragtrack_core::engine::Batch;
use fragtrack_core::event::{Atomic, Datagram, GivenUp, Key, Sink};
use fragtrack_core::icmp::IcmpError;
use fragtrack_core::wire::{Family, checksum};
use fragtrack_core::{Engine, Frame, LinkType, Reason};

pub(crate) const SECOND: i64 = 1_000_000_000;

/// The settings for reading captures, with a policy.
pub(crate) fn config(policy: Policy) -> Config {
    Config { policy, ..Config::capture((1, 2)) }
}

/// An IPv4 packet; the checksum is made right.
#[derive(Clone, Debug)]
pub(crate) struct V4 {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) id: u16,
    pub(crate) protocol: u8,
    pub(crate) offset: u32,
    pub(crate) more: bool,
    pub(crate) df: bool,
    pub(crate) ecn: u8,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl V4 {
    /// A fragment of datagram `id` whose bytes at `offset` are `payload`.
    pub(crate) fn new(id: u16, offset: u32, more: bool, payload: &[u8]) -> Self {
        Self {
            source: 0x0a00_0001,
            destination: 0xc0a8_0002,
            id,
            protocol: 17,
            offset,
            more,
            df: false,
            ecn: 0,
            options: Vec::new(),
            payload: payload.to_vec(),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let header = 20 + self.options.len();
        let field = (self.offset / 8) as u16 | u16::from(self.more) << 13 | u16::from(self.df) << 14;
        let mut out = vec![0x40 | (header / 4) as u8, self.ecn];
        out.extend(((header + self.payload.len()) as u16).to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend(field.to_be_bytes());
        out.extend([64, self.protocol, 0, 0]);
        out.extend(self.source.to_be_bytes());
        out.extend(self.destination.to_be_bytes());
        out.extend(&self.options);
        let sum = checksum::of(&out).to_be_bytes();
        out[10..12].copy_from_slice(&sum);
        out.extend(&self.payload);
        out
    }
}

/// An IPv6 packet with a fragment header behind the headers of `before` (the first of which is of type `first`).
#[derive(Clone, Debug)]
pub(crate) struct V6 {
    pub(crate) source: u128,
    pub(crate) destination: u128,
    pub(crate) id: u32,
    pub(crate) next: u8,
    pub(crate) offset: u32,
    pub(crate) more: bool,
    pub(crate) ecn: u8,
    pub(crate) first: u8,
    pub(crate) before: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl V6 {
    /// A fragment of datagram `id` whose bytes at `offset` are `payload`; what it carries is of no known type.
    pub(crate) fn new(id: u32, offset: u32, more: bool, payload: &[u8]) -> Self {
        Self {
            source: 0x2001_0db8_0000_0000_0000_0000_0000_0001,
            destination: 0x2001_0db8_0000_0000_0000_0000_0000_0002,
            id,
            next: 253,
            offset,
            more,
            ecn: 0,
            first: 44,
            before: Vec::new(),
            payload: payload.to_vec(),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0x60, self.ecn << 4, 0, 0];
        out.extend(((self.before.len() + 8 + self.payload.len()) as u16).to_be_bytes());
        out.extend([self.first, 64]);
        out.extend(self.source.to_be_bytes());
        out.extend(self.destination.to_be_bytes());
        out.extend(&self.before);
        out.extend([self.next, 0]);
        out.extend((self.offset as u16 | u16::from(self.more)).to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend(&self.payload);
        out
    }
}

/// Bytes that tell where they are and whose they are.
pub(crate) fn pattern(mark: u8, start: u32, length: u32) -> Vec<u8> {
    (start..start + length).map(|at| (at as u8).wrapping_mul(31) ^ mark).collect()
}

/// What a sink was told, with everything that can be asked about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Pass(u64),
    Held(u64),
    Dropped(u64, Reason),
    Problem(u64, u8, u32, Vec<u8>),
    Atomic(u64, Key, Vec<u8>),
    Complete(u64, Whole),
    GivenUp(Lost),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Whole {
    pub(crate) key: Key,
    pub(crate) times: (i64, i64),
    pub(crate) frames: Vec<u64>,
    pub(crate) packet: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lost {
    pub(crate) key: Key,
    pub(crate) reason: Reason,
    pub(crate) times: (i64, i64),
    pub(crate) frames: Vec<(u64, u32)>,
    pub(crate) length: u32,
    pub(crate) packets: Vec<Vec<u8>>,
    pub(crate) origins: Vec<u32>,
    pub(crate) icmp: Option<IcmpError>,
}

/// Writes down what happens. Frames are numbered from `first`; records have `head` bytes before the packet and
/// `tail` bytes behind it.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) first: u64,
    pub(crate) head: usize,
    pub(crate) tail: usize,
    pub(crate) events: Vec<Event>,
    /// Link headers written for whole datagrams.
    pub(crate) links: Vec<Vec<u8>>,
}

impl Log {
    pub(crate) fn wholes(&self) -> Vec<&Whole> {
        self.events
            .iter()
            .filter_map(|event| if let Event::Complete(_, whole) = event { Some(whole) } else { None })
            .collect()
    }

    pub(crate) fn lost(&self) -> Vec<&Lost> {
        self.events
            .iter()
            .filter_map(|event| if let Event::GivenUp(lost) = event { Some(lost) } else { None })
            .collect()
    }
}

impl Sink for Log {
    fn pass(&mut self, at: usize) {
        self.events.push(Event::Pass(self.first + at as u64));
    }

    fn held(&mut self, at: usize) {
        self.events.push(Event::Held(self.first + at as u64));
    }

    fn dropped(&mut self, at: usize, reason: Reason) {
        self.events.push(Event::Dropped(self.first + at as u64, reason));
    }

    fn problem(&mut self, at: usize, code: u8, pointer: u32, packet: &[u8]) {
        self.events.push(Event::Problem(self.first + at as u64, code, pointer, packet.to_vec()));
    }

    fn atomic(&mut self, at: usize, datagram: &Atomic<'_>) {
        assert!(datagram.packet().ends_with(datagram.payload()));
        self.events.push(Event::Atomic(self.first + at as u64, datagram.key(), datagram.packet().to_vec()));
    }

    fn complete(&mut self, at: usize, datagram: &Datagram<'_>) {
        let (mut packet, mut payload, mut link) = (Vec::new(), Vec::new(), Vec::new());
        datagram.write_packet(&mut packet);
        datagram.write_payload(&mut payload);
        datagram.write_link_header(&mut link);
        assert_eq!((packet.len(), payload.len()), (datagram.packet_len(), datagram.payload_len()));
        assert!(packet.ends_with(&payload));
        assert_eq!(link.len(), datagram.link_header_len());
        let mut behind = 0;
        for (slice, bytes) in datagram.slices() {
            assert_eq!((slice.start, slice.len() as usize), (behind, bytes.len()));
            assert!(!slice.is_empty());
            behind = slice.end;
        }
        assert_eq!(behind as usize, payload.len());
        let frames = datagram.distinct_frames();
        let supply: std::collections::BTreeSet<u64> = datagram.frames().collect();
        assert_eq!(frames.len(), supply.len());
        assert!(frames.iter().all(|number| supply.contains(number)));
        let (key, times) = (datagram.key(), datagram.times());
        self.links.push(link);
        self.events.push(Event::Complete(self.first + at as u64, Whole { key, times, frames, packet, payload }));
    }

    fn given_up(&mut self, datagram: &GivenUp<'_>) {
        let held = datagram.held();
        let packet = |record: &[u8]| record[self.head..record.len() - self.tail].to_vec();
        let lost = Lost {
            key: datagram.key(),
            reason: datagram.reason(),
            times: datagram.times(),
            frames: datagram.frames(),
            length: datagram.length(),
            packets: held.iter().map(|held| packet(held.record)).collect(),
            origins: held.iter().map(|held| held.origin).collect(),
            icmp: datagram.icmp(),
        };
        self.events.push(Event::GivenUp(lost));
    }
}

/// A frame that is a packet from its IP header on.
pub(crate) fn raw(start: usize, length: usize, time: i64) -> Frame {
    let length = length as u32;
    Frame { start: start as u64, time, record: length, captured: length, head: 0, link: LinkType(101) }
}

/// Pushes one packet whose bytes go away.
pub(crate) fn push(engine: &mut Engine, log: &mut Log, number: u64, packet: &[u8], time: i64) {
    push_in(engine, log, number, packet, time, 0);
}

/// The same in a domain.
pub(crate) fn push_in(engine: &mut Engine, log: &mut Log, number: u64, packet: &[u8], time: i64, domain: u64) {
    let frames = [raw(0, packet.len(), time)];
    log.first = number;
    engine.push(Batch { segment: packet, frames: &frames, first: number, origin: 0, transient: true }, domain, log);
    engine.settle(packet);
}

/// Held fragments of both families.
pub(crate) fn held(engine: &Engine) -> u64 {
    [Family::V4, Family::V6].iter().map(|family| engine.table(*family).held.used().0 as u64).sum()
}

/// Asserts the invariants of an engine, and that every fragment is accounted for.
pub(crate) fn check(engine: &Engine) {
    engine.check().expect("the invariants hold");
    let totals = engine.totals();
    let [v4, v6] = totals.fragments;
    assert_eq!(v4 + v6, totals.used + held(engine) + totals.reasons.iter().sum::<u64>());
    assert_eq!(totals.incomplete, totals.given_up.iter().sum::<u64>());
}

/// Asserts that nothing at all is left.
pub(crate) fn check_empty(engine: &Engine) {
    check(engine);
    assert_eq!((engine.queues(), engine.memory(), held(engine)), (0, 0, 0));
    for family in [Family::V4, Family::V6] {
        assert_eq!(engine.table(family).held.used(), (0, 0));
        assert!(engine.table(family).is_empty());
    }
}

/// Numbers that look random and are the same each time (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) const fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
