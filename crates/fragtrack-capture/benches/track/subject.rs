//! What is measured against the floors: the reader alone, and the follower, which is everything.

use crate::input::Capture;
use crate::{Answer, Measure, Truth};
use fragtrack_capture::Buffer;
use fragtrack_capture::follow::{Follower, Tables, Zones};
use fragtrack_capture::{Input, Origins, Pause, Reader, Tail};
use fragtrack_core::config::{Config, Path};
use fragtrack_core::frame::Frame;
use fragtrack_core::track;
use fragtrack_core::track::Class;
use fragtrack_core::track::config::Checksum;

/// Always the same hash key.
const KEY: (u64, u64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
/// Bytes of the file that the follower gets at once.
const WINDOW: usize = 1 << 18;

/// The measurements of this project's own code. `room`: one with a table that holds all connections, too.
pub(crate) fn measures(capture: &Capture, truth: Truth, room: bool) -> Vec<Box<dyn Measure + '_>> {
    let usual = track::Config::linux(KEY);
    let unsummed = track::Config { checksum: Checksum::Ignore, ..track::Config::linux(KEY) };
    let none = Tables { verdicts: false, events: false, zeek: false };
    let follow = |name, config: &track::Config, tables| -> Box<dyn Measure + '_> {
        Box::new(Follow { capture, name, config: config.clone(), tables, follower: None })
    };
    let mut all: Vec<Box<dyn Measure + '_>> = vec![
        Box::new(Read { capture, frames: Vec::new() }),
        follow("track-nosum", &unsummed, none),
        follow("track", &usual, none),
        follow("track-verdicts", &usual, Tables { verdicts: true, ..none }),
        follow("track-zeek", &usual, Tables { zeek: true, ..none }),
    ];
    if let Some(right) = truth.connections.filter(|_| room) {
        let max = u32::try_from(right).unwrap_or(u32::MAX);
        all.push(follow("track-room", &track::Config { max, ..track::Config::linux(KEY) }, none));
    }
    all
}

struct Read<'a> {
    capture: &'a Capture,
    frames: Vec<Frame>,
}

impl Measure for Read<'_> {
    fn name(&self) -> &'static str {
        "reader"
    }

    fn follows(&self) -> bool {
        false
    }

    fn pass(&mut self) -> Answer {
        let mut answer = Answer::default();
        let (bytes, mut origins, mut reader) = (self.capture.file(), Origins::new(), Reader::new());
        let (stop, tail, mut start) = (bytes.len(), Tail::Last, 0);
        reader.glance(66);
        loop {
            let step = reader.read(&mut origins, Input { bytes, start, stop, tail }, &mut self.frames, 256);
            answer.records += self.frames.len() as u64;
            for frame in &self.frames {
                answer.sum ^= frame.start ^ u64::from(frame.captured) ^ frame.time as u64;
            }
            start = step.next;
            if matches!(step.pause, Pause::Done | Pause::Damaged | Pause::More) {
                return answer;
            }
        }
    }
}

/// Reader, decoding, reassembly, tracking; connections are taken and dropped as they end. A new follower for each pass:
/// connections of the pass before would be found again.
struct Follow<'a> {
    capture: &'a Capture,
    name: &'static str,
    config: track::Config,
    tables: Tables,
    follower: Option<Follower>,
}

impl Measure for Follow<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&mut self) {
        let reassembly = Config { path: Path::Netfilter, ..Config::capture(KEY) };
        self.follower = Some(Follower::new(self.config.clone(), reassembly, Zones::Vlan, self.tables));
    }

    fn pass(&mut self) -> Answer {
        let mut answer = Answer::default();
        let Some(follower) = &mut self.follower else { return answer };
        let bytes = self.capture.file();
        follower.begin("file");
        let mut start = 0;
        while start < bytes.len() {
            let input = Input { bytes, start, stop: bytes.len(), tail: Tail::Last };
            match follower.feed(input, Buffer::Stays, WINDOW) {
                Ok(next) if next > start => start = next,
                _ => break,
            }
            answer.sum ^= follower.take_connections().len() as u64;
            answer.sum ^= follower.take_verdicts().len() as u64;
            answer.sum ^= follower.take_zeek().len() as u64;
        }
        follower.end(bytes);
        answer.records = follower.packets().0;
        let totals = follower.tracker().totals();
        answer.connections = follower.tracker().made();
        answer.invalid = totals.class(Class::Invalid);
        answer.pressed = totals.counters.early_drop.saturating_add(totals.counters.drop);
        answer
    }

    fn drain(&mut self) -> u64 {
        let Some(follower) = &mut self.follower else { return 0 };
        follower.finish();
        follower.take_connections().len() as u64
    }
}
