//! Captures in, connections and verdicts out: reader, reassembly and tracking together.

mod columns;
mod sink;

use fragtrack_core::config::{Checksum, Config};
use fragtrack_core::engine::{Batch, Engine};
use fragtrack_core::frame::{Frame, LinkType};
use fragtrack_core::prefetch;
use fragtrack_core::track::packet::{self, View, view};
use fragtrack_core::track::row::{Event, Row};
use fragtrack_core::track::tracker::{Record, Tracker};
use fragtrack_core::track::{
    self, Packet, Reason, Verdict,
    verdict::{End, Why},
};
use fragtrack_core::wire::{self, Family, link};
use fragtrack_core::zeek;

use crate::intake::{Buffer, Damaged, Failure, Intake, Take};
use crate::reader::Input;

pub use columns::Verdicts;
use sink::Whole;

/// Frames decoded before the first of them is followed.
const BLOCK: usize = 16;
/// Frames between the one whose payload is asked for and the one that is decoded.
const SOON: usize = 4;
/// Bytes of a payload that are asked for: the processor has caught on by then.
const PAYLOAD: usize = 1536;
/// Sections that are remembered without asking whether that is needed.
const SECTIONS: usize = 256;
/// Bytes of a frame up to the end of the headers: Ethernet, IPv4, TCP with time stamps.
const HEADERS: usize = 66;

/// Whether connections of different VLANs mix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zones {
    /// They never do.
    Vlan,
    /// Tags do not matter.
    None,
}

/// What is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tables {
    /// A verdict for each frame with an IP packet.
    pub verdicts: bool,
    /// What the kernel would announce.
    pub events: bool,
    /// Connections as Zeek sees them, too.
    pub zeek: bool,
}

/// What a frame is, once it is decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No IP in it.
    Other,
    /// A whole packet.
    Packet,
    /// A fragment.
    Fragment,
}

#[derive(Clone, Copy)]
struct Staged {
    kind: Kind,
    /// Byte of the frame at which the IP header starts.
    ip: u32,
    zone: u64,
    packet: Packet,
}

const UNSTAGED: Staged = Staged { kind: Kind::Other, ip: 0, zone: 0, packet: Packet::lost(Why::bare(Reason::Header)) };

/// Follows the connections of captures.
///
/// For each input: [`begin`](Self::begin), [`feed`](Self::feed) until all is consumed, [`end`](Self::end). Then
/// [`finish`](Self::finish). Connections and fragments live on from one input to the next. Frames are numbered from 1 in
/// each input.
pub struct Follower {
    engine: Engine,
    tracker: Tracker,
    zones: Zones,
    intake: Intake,
    origin: Option<u32>,
    /// Packets that are IP.
    ip: u64,
    verdicts: Option<Verdicts>,
    zeek: Option<zeek::Flows>,
    /// The packet being put together.
    scratch: Vec<u8>,
    /// Connections in the table at the end, and how they stand.
    open: Vec<Row>,
    standing: [u64; End::ALL.len()],
}

impl Follower {
    /// A follower that has seen nothing.
    #[must_use]
    pub fn new(config: track::Config, reassembly: Config, zones: Zones, tables: Tables) -> Self {
        let header_checksum = reassembly.checksum == Checksum::Verify;
        let record = Record { rows: true, events: tables.events };
        let hash_key = config.hash_key;
        let seen = zeek::Config { max: config.max, ..zeek::Config::default() };
        Self {
            tracker: Tracker::new(config, header_checksum, record),
            engine: Engine::new(reassembly, false),
            zones,
            intake: Intake::new(),
            origin: None,
            ip: 0,
            verdicts: tables.verdicts.then(Verdicts::default),
            zeek: tables.zeek.then(|| zeek::Flows::new(seen, hash_key)),
            scratch: Vec::new(),
            open: Vec::new(),
            standing: [0; 5],
        }
    }

    /// An input begins.
    pub fn begin(&mut self, name: &str) {
        self.intake.begin(name);
    }

    /// Takes the whole records of the input's next bytes through; returns after about `budget` bytes at the end of a
    /// record. Gives the place of the first byte not taken, or the end of the bytes if nothing behind damage can be read.
    ///
    /// # Errors
    ///
    /// [`Failure::Input`]; nothing more is to be fed then.
    pub fn feed(&mut self, input: Input<'_>, buffer: Buffer, budget: usize) -> Result<usize, Failure> {
        self.feed_all(input, buffer, budget)
    }

    /// Decodes a block of frames while the one before it is followed.
    fn run(&mut self, segment: &[u8], frames: &[Frame], buffer: Buffer) {
        let (mut one, mut other) = ([UNSTAGED; BLOCK], [UNSTAGED; BLOCK]);
        let (mut now, mut ahead) = (&mut one, &mut other);
        let mut blocks = frames.chunks(BLOCK);
        let mut following: &[Frame] = &[];
        // Checksums read whole packets: what the reader did not ask for is asked for here.
        let mut soon = if self.tracker.sums() { frames.get(SOON..).unwrap_or(&[]) } else { &[] }.iter();
        loop {
            let staging = blocks.next().unwrap_or(&[]);
            for (frame, staged) in staging.iter().zip(ahead.iter_mut()) {
                if let Some(frame) = soon.next() {
                    ask(segment, frame);
                }
                self.stage(segment, frame, staged);
            }
            for (frame, staged) in following.iter().zip(now.iter()) {
                if frame.link != LinkType::NONE {
                    self.follow(segment, frame, staged, buffer);
                }
            }
            if staging.is_empty() {
                return;
            }
            for (_, staged) in staging.iter().zip(ahead.iter()) {
                if staged.kind == Kind::Packet {
                    self.tracker.glance(&staged.packet);
                }
            }
            following = staging;
            core::mem::swap(&mut now, &mut ahead);
        }
    }

    #[inline(always)]
    fn stage(&self, segment: &[u8], frame: &Frame, staged: &mut Staged) {
        staged.kind = Kind::Other;
        let start = frame.start as usize + usize::from(frame.head);
        let Some(bytes) = segment.get(start..start + frame.captured as usize) else { return };
        let Some(located) = link::locate(frame.link, bytes) else { return };
        let Some(packet) = bytes.get(located.ip..) else { return };
        staged.ip = located.ip as u32;
        staged.zone = match self.zones {
            Zones::Vlan => located.domain,
            Zones::None => 0,
        };
        if wire::is_fragment(packet) {
            staged.kind = Kind::Fragment;
        } else if packet.first().is_some_and(|byte| matches!(byte >> 4, 4 | 6)) {
            staged.kind = Kind::Packet;
            self.tracker.stage(packet, staged.zone, &mut staged.packet);
        }
    }

    #[inline(always)]
    fn follow(&mut self, segment: &[u8], frame: &Frame, staged: &Staged, buffer: Buffer) {
        self.intake.number += 1;
        self.intake.packets += 1;
        if staged.kind == Kind::Fragment {
            self.ip += 1;
            self.piece(segment, frame, staged, buffer);
            return;
        }
        self.engine.advance(segment, frame.time, &mut sink::Nothing);
        if staged.kind == Kind::Other {
            self.tracker.pass_by(frame.time);
            return;
        }
        self.ip += 1;
        let start = frame.start as usize + usize::from(frame.head);
        let bytes = segment.get(start + staged.ip as usize..start + frame.captured as usize).unwrap_or(&[]);
        let verdict = self.tracker.follow(&staged.packet, bytes, frame.time, self.intake.number);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.push(self.intake.number, &verdict, &self.tracker);
        }
        if let Some(flows) = &mut self.zeek {
            see(flows, bytes, &verdict, frame.time);
        }
    }

    /// A fragment: the datagram that it may complete is followed.
    #[inline(never)]
    fn piece(&mut self, segment: &[u8], frame: &Frame, staged: &Staged, buffer: Buffer) {
        let start = frame.start as usize + usize::from(frame.head);
        let bytes = segment.get(start + staged.ip as usize..start + frame.captured as usize).unwrap_or(&[]);
        let mut whole = Whole {
            tracker: &mut self.tracker,
            verdicts: self.verdicts.as_mut(),
            zeek: self.zeek.as_mut(),
            scratch: &mut self.scratch,
            bytes,
            zone: staged.zone,
            time: frame.time,
            number: self.intake.number,
        };
        let frames = std::slice::from_ref(frame);
        let transient = buffer == Buffer::Goes;
        let batch = Batch { segment, frames, first: self.intake.number, origin: 0, transient };
        self.engine.run_one(batch, staged.ip, staged.zone, &mut whole);
    }

    /// An input ended. What it left open may be completed by the next one: what was referred to in `segment`, the buffer
    /// of an input that stays, is copied.
    pub fn end(&mut self, segment: &[u8]) {
        self.engine.settle_all(segment);
        self.intake.end();
    }

    /// All inputs ended: open fragments are given up; connections in the table are rows from now on.
    pub fn finish(&mut self) {
        self.engine.flush(&[], &mut sink::Nothing);
        self.open = self.tracker.rows();
        self.standing = End::ALL.map(|end| self.open.iter().filter(|row| row.end == end).count() as u64);
        if let Some(flows) = &mut self.zeek {
            flows.finish();
        }
    }

    /// Connections that ended since the last call, in the order of their ending; after [`finish`](Self::finish) those in
    /// the table, too.
    pub fn take_connections(&mut self) -> Vec<Row> {
        let mut rows = self.tracker.take_ended();
        rows.append(&mut self.open);
        rows
    }

    /// Verdicts since the last call.
    pub fn take_verdicts(&mut self) -> Verdicts {
        self.verdicts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What was announced since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.tracker.take_events()
    }

    /// Connections as Zeek sees them, that ended since the last call.
    pub fn take_zeek(&mut self) -> Vec<zeek::Row> {
        self.zeek.as_mut().map(zeek::Flows::take).unwrap_or_default()
    }

    /// The first damage in the last input begun.
    #[must_use]
    pub const fn damaged(&self) -> Option<&Damaged> {
        self.intake.damaged.as_ref()
    }

    /// Packets read, and those that are IP.
    #[must_use]
    pub const fn packets(&self) -> (u64, u64) {
        (self.intake.packets, self.ip)
    }

    /// Connections by how they ended; after [`finish`](Self::finish) those in the table, too, by how they stand.
    pub fn ends(&self) -> impl Iterator<Item = (End, u64)> {
        let totals = self.tracker.totals();
        End::ALL.into_iter().zip(self.standing).map(|(end, standing)| (end, totals.ended(end) + standing))
    }

    /// Bytes of files read.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.intake.bytes
    }

    /// The engine, to look at.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The tracker, to look at.
    #[must_use]
    pub const fn tracker(&self) -> &Tracker {
        &self.tracker
    }
}

impl Take for Follower {
    fn intake(&mut self) -> &mut Intake {
        &mut self.intake
    }

    fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    fn take(&mut self, segment: &[u8], frames: &[Frame], buffer: Buffer) -> Result<(), Failure> {
        let Some(origin) = self.intake.reader.origin() else { return Ok(()) };
        if self.origin != Some(origin) {
            self.origin = Some(origin);
            // Nothing is written again: sections are needed only while they are read.
            if self.intake.origins.count() >= SECTIONS {
                self.intake.origins.retain(|number| number == origin);
            }
        }
        self.run(segment, frames, buffer);
        self.intake.reader.glance(HEADERS);
        Ok(())
    }
}

/// Asks for the cache lines of a frame.
#[inline(always)]
fn ask(segment: &[u8], frame: &Frame) {
    let start = frame.start as usize;
    let length = (frame.record as usize).min(PAYLOAD);
    (HEADERS..length).step_by(64).for_each(|at| prefetch::read(segment, start + at));
}

/// Protocols whose checksums Zeek looks at.
const SUMMED: [u8; 4] = [packet::ICMP, packet::TCP, packet::UDP, packet::ICMPV6];

/// Shows a packet to the other view.
fn see(flows: &mut zeek::Flows, bytes: &[u8], verdict: &Verdict, time: i64) {
    let Some(View { family, source, destination, protocol, total, length, transport }) = view(bytes) else { return };
    let ip = zeek::Segment {
        version: if family == Family::V4 { 4 } else { 6 },
        src: source,
        dst: destination,
        protocol,
        length: total as u32,
        bad_checksum: verdict.why.is_some_and(|why| why.reason == Reason::Checksum) && SUMMED.contains(&protocol),
        ..zeek::Segment::default()
    };
    if let Some(segment) = zeek::Segment::read(ip, length as u32, transport) {
        flows.see(&segment, time);
    }
}
