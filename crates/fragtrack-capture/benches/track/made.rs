//! The tracker by itself, on packets that lie in memory: what one costs, what a connection takes, how long a dump stops.

use std::fs;
use std::hint::black_box;

use crate::clock::{Clock, Took};
use crate::input::{Options, huge_pages};
use crate::report;
use fragtrack_core::prefetch;
use fragtrack_core::track::config::Checksum;
use fragtrack_core::track::tracker::Record;
use fragtrack_core::track::verdict::Why;
use fragtrack_core::track::{Class, Config, Packet, Reason, Tracker};

const KEY: (u64, u64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
const START: i64 = 1_700_000_000_000_000_000;
/// Packets decoded before the first of them is followed.
const BLOCK: usize = 16;
/// Packets between the one that is asked for and the one that is decoded.
const SOON: usize = 2 * BLOCK;
const HEADERS: usize = 60;
/// Bytes of a page of memory, as `/proc` counts them.
const PAGE: usize = 4096;
/// Connections of the tests with many.
const MANY: u32 = 1_000_000;
/// Connections given at once by a dump in pages, and packets followed between two of them.
const ROWS: usize = 1024;
const BETWEEN: usize = 256;
/// Bytes probed for huge pages.
const PROBE: usize = 1 << 26;

/// A TCP segment; its payload is claimed, not there, as in a capture that was cut.
#[derive(Clone, Copy)]
struct Segment {
    reply: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    payload: u16,
}

const SYN: Segment = Segment { reply: false, flags: 2, seq: 0, ack: 0, payload: 0 };
const ANSWER: Segment = Segment { reply: true, flags: 18, seq: 0, ack: 1, payload: 0 };
const ACK: Segment = Segment { reply: false, flags: 16, seq: 1, ack: 1, payload: 0 };

/// An IP packet with a TCP header: one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Made {
    bytes: [u8; HEADERS],
    length: u32,
}

/// A packet of the connection `number`.
fn packet(number: u32, v6: bool, segment: Segment) -> Made {
    let mut bytes = [0; HEADERS];
    let mut put = |at: usize, part: &[u8]| {
        if let Some(to) = bytes.get_mut(at..at + part.len()) {
            to.copy_from_slice(part);
        }
    };
    let Segment { reply, flags, seq, ack, payload } = segment;
    let turn = |here: usize, there: usize| if reply { (there, here) } else { (here, there) };
    let at = if v6 {
        let (client, server) = turn(8, 24);
        put(0, &[0x60, 0, 0, 0]);
        put(4, &(20 + payload).to_be_bytes());
        put(6, &[6, 64]);
        put(client, &[0x20, 1, 0x0d, 0xb8]);
        put(client + 12, &number.to_be_bytes());
        put(server, &[0x20, 1, 0x0d, 0xb8, 0xff]);
        40
    } else {
        let (client, server) = turn(12, 16);
        put(0, &[0x45, 0]);
        put(2, &(40 + payload).to_be_bytes());
        put(8, &[64, 6]);
        put(client, &(0x0a00_0000 | number).to_be_bytes());
        put(server, &[198, 51, 100, 2]);
        20
    };
    let (client, server) = turn(at, at + 2);
    put(client, &1024_u16.to_be_bytes());
    put(server, &443_u16.to_be_bytes());
    put(at + 4, &seq.to_be_bytes());
    put(at + 8, &ack.to_be_bytes());
    put(at + 12, &[0x50, flags, 0xff, 0xff]);
    Made { bytes, length: at as u32 + 20 }
}

fn tracker(max: u32) -> Tracker {
    let mut config = Config::linux(KEY);
    config.checksum = Checksum::Ignore;
    config.max = max;
    Tracker::new(config, false, Record { rows: false, events: false })
}

/// Takes packets through as the follower does: asked for early, a block is decoded while the one before it is followed.
fn follow(tracker: &mut Tracker, packets: &[Made]) -> u64 {
    let none = Packet::lost(Why::bare(Reason::Header));
    let (mut one, mut other) = ([none; BLOCK], [none; BLOCK]);
    let (mut now, mut ahead) = (&mut one, &mut other);
    let mut blocks = packets.chunks(BLOCK);
    let mut soon = packets.get(SOON..).unwrap_or(&[]).iter();
    let mut waiting = 0;
    loop {
        let staging = blocks.next().unwrap_or(&[]);
        for (made, place) in staging.iter().zip(ahead.iter_mut()) {
            if let Some(made) = soon.next() {
                prefetch::line(made);
            }
            tracker.stage(made.bytes.get(..made.length as usize).unwrap_or(&[]), 0, place);
        }
        for packet in now.iter().take(waiting) {
            black_box(tracker.follow(packet, &[], START, 1));
        }
        if staging.is_empty() {
            return packets.len() as u64;
        }
        ahead.iter().take(staging.len()).for_each(|packet| tracker.glance(packet));
        waiting = staging.len();
        core::mem::swap(&mut now, &mut ahead);
    }
}

/// Numbers below `MANY` in an order without a pattern.
fn scattered() -> impl Iterator<Item = u32> {
    (0..MANY).map(|at| (u64::from(at) * 618_033_989 % u64::from(MANY)) as u32)
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let told = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = told.split_whitespace().nth(1).and_then(|word| word.parse::<usize>().ok());
    pages.unwrap_or(0).saturating_mul(PAGE)
}

/// Measures what was asked for: `hot`, `ipv4`, `ipv6`; `false` if the pages are not those asked for.
pub(crate) fn run(clock: &Clock, options: &Options) -> Result<bool, String> {
    if options.huge {
        let probe = black_box(vec![1_u8; PROBE]);
        if huge_pages() < probe.len() / 2 {
            return Ok(false);
        }
    }
    for round in 1..=options.rounds.min(5) {
        if options.wants("hot") {
            hot(clock, round)?;
        }
        for (name, v6) in [("ipv4", false), ("ipv6", true)] {
            if options.wants(name) {
                Many { clock, round, v6, tracker: tracker(2 * MANY) }.run()?;
            }
        }
    }
    Ok(true)
}

/// One connection, data and acknowledgments in turn: no miss of any cache but for the packets, which come in order.
fn hot(clock: &Clock, round: u32) -> Result<(), String> {
    let mut tracker = tracker(1000);
    follow(&mut tracker, &[SYN, ANSWER, ACK].map(|segment| packet(1, false, segment)));
    let packets: Vec<Made> = (0..MANY)
        .map(|number| {
            let sent = 1_u32.wrapping_add(number.div_ceil(2) * 100);
            let data = Segment { seq: sent, payload: 100, ..ACK };
            packet(1, false, if number & 1 == 0 { data } else { Segment { reply: true, ack: sent, ..ACK } })
        })
        .collect();
    let (count, took) = clock.time(|| follow(&mut tracker, &packets));
    report("one flow", round, count, took, None);
    sound(&tracker, 1)
}

/// That nothing was invalid, and that there are as many connections as were made.
fn sound(tracker: &Tracker, right: u32) -> Result<(), String> {
    let (found, invalid) = (tracker.len(), tracker.totals().class(Class::Invalid));
    if found == right as usize && invalid == 0 {
        return Ok(());
    }
    Err(format!("{found} connections where {right} are right, {invalid} invalid packets"))
}

/// A million connections of one family: made, looked up in any order, told of; and another million.
struct Many<'a> {
    clock: &'a Clock,
    round: u32,
    v6: bool,
    tracker: Tracker,
}

impl Many<'_> {
    fn run(mut self) -> Result<(), String> {
        let before = resident();
        self.tell("new flows", &self.made(0..MANY, SYN));
        self.weigh(before);
        for segment in [ANSWER, ACK] {
            let packets = self.made(0..MANY, segment);
            follow(&mut self.tracker, &packets);
        }
        let mixed = self.made(scattered(), ACK);
        self.tell("look-ups", &mixed);
        sound(&self.tracker, MANY)?;
        self.dump(&mixed)?;
        drop(mixed);
        self.tell("new flows, second million", &self.made(MANY..2 * MANY, SYN));
        sound(&self.tracker, 2 * MANY)
    }

    fn made(&self, numbers: impl Iterator<Item = u32>, segment: Segment) -> Vec<Made> {
        numbers.map(|number| packet(number, self.v6, segment)).collect()
    }

    fn name(&self, what: &str) -> String {
        format!("{what}, IPv{}", if self.v6 { 6 } else { 4 })
    }

    fn tell(&mut self, what: &str, packets: &[Made]) {
        let (count, took) = self.clock.time(|| follow(&mut self.tracker, packets));
        report(&self.name(what), self.round, count, took, None);
    }

    /// What a connection takes: by the tracker's own count, and of the process's memory (in a process of its own only:
    /// what an earlier round gave back may be used again).
    fn weigh(&self, before: usize) {
        let each = |bytes: usize| bytes / MANY as usize;
        let (name, round) = (self.name("memory"), self.round);
        let (bytes, used) = (each(self.tracker.memory()), each(self.tracker.used()));
        let grown = each(resident().saturating_sub(before));
        println!(
            "{{\"what\":\"{name}\",\"round\":{round},\"bytes_each\":{bytes},\"used_each\":{used},\
             \"resident_each\":{grown}}}"
        );
    }

    /// The table told of: at once, which is how long the tracker stands still; and in pages, between which it goes on.
    fn dump(&mut self, packets: &[Made]) -> Result<(), String> {
        let (rows, whole) = self.clock.time(|| self.tracker.rows());
        report(&self.name("dump"), self.round, rows.len() as u64, whole, None);
        let (mut paged, mut pushed) = (Total::default(), Total::default());
        let (mut from, mut chunks) = (0, packets.chunks(BETWEEN));
        loop {
            let ((rows, next), took) = self.clock.time(|| self.tracker.page(from, ROWS));
            paged.add(rows.len() as u64, took);
            let chunk = chunks.next().unwrap_or(&[]);
            let (count, took) = self.clock.time(|| follow(&mut self.tracker, chunk));
            pushed.add(count, took);
            let Some(next) = next else { break };
            from = next;
        }
        if paged.count != u64::from(MANY) {
            return Err(format!("{} connections in pages where {MANY} are right", paged.count));
        }
        report(&self.name("dump in pages"), self.round, paged.count, paged.took, None);
        report(&self.name("look-ups between pages"), self.round, pushed.count, pushed.took, None);
        let (name, round, all, page) = (self.name("standstill"), self.round, whole.cpu, paged.longest);
        println!("{{\"what\":\"{name}\",\"round\":{round},\"all_ns\":{all},\"page_ns\":{page},\"page_rows\":{ROWS}}}");
        Ok(())
    }
}

/// Many short times.
#[derive(Default)]
struct Total {
    count: u64,
    took: Took,
    longest: u64,
}

impl Total {
    fn add(&mut self, count: u64, took: Took) {
        self.count += count;
        self.took.cpu += took.cpu;
        self.took.wall += took.wall;
        self.longest = self.longest.max(took.cpu);
    }
}
