//! A capture in, the same capture with whole datagrams out: reader, engine and writer together.

mod rows;
mod sink;

use std::collections::BTreeSet;
use std::fmt;

use fragtrack_core::config::Config;
use fragtrack_core::engine::{Batch, Engine};
use fragtrack_core::frame::{Frame, LinkType};
use fragtrack_core::stats::Totals;

use crate::damage::{Damage, Why};
use crate::origin::{Format, Origins};
use crate::reader::{Input, Pause, Reader, Tail};
use crate::writer::{Output, Record, Refused, Writer};

pub use rows::Row;
use sink::{Told, Written};

/// Sections that are remembered without asking whether that is needed.
const SECTIONS: usize = 256;
/// Frames handed to the engine at once.
const BATCH: usize = 256;

/// Whether fragments that never become a datagram are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incomplete {
    /// As they are: where they stand if refused alone, all when their datagram is given up
    /// otherwise. Duplicates are not.
    Keep,
    /// No.
    Drop,
}

/// What is told of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// Nothing.
    None,
    /// One row each.
    Keys,
    /// One row each, with the bytes of those that became whole.
    Payloads,
}

/// Whether the bytes of a buffer stay where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// Until [`Rewriter::end`], with the same bytes in every call of the input: what is held of
    /// them is referred to.
    Stays,
    /// Until the call returns: what is held of them is copied.
    Goes,
}

/// Why a rewriter cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The input is no capture.
    Input(Damage),
    /// The output cannot hold a frame.
    Output {
        /// The input's name.
        name: String,
        /// Number of the frame in it, from 1.
        number: u64,
        /// Why.
        refused: Refused,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(Damage { why: why @ (Why::Empty | Why::NotACapture { .. }), .. }) => {
                write!(f, "{why}")
            }
            Self::Input(damage) => write!(f, "not a capture: {}", damage.why),
            Self::Output { name, number, refused } => write!(f, "{name}: frame {number} {refused}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Damage, and the input that has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damaged {
    /// The input's name.
    pub name: String,
    /// Where, and what is wrong there.
    pub damage: Damage,
}

/// Reassembles the fragments of captures, and writes them again.
///
/// Frames that are not fragments, not IP, or cannot be understood, pass as they are and in order.
/// A datagram that becomes whole is written in place of the frame that completed it, under that
/// frame's record header and link header; its other frames vanish.
///
/// For each input: [`begin`](Self::begin), [`feed`](Self::feed) until all is consumed,
/// [`end`](Self::end). Then [`finish`](Self::finish). Fragments may wait from one input to the
/// next. Frames are numbered from 1 in each input.
pub struct Rewriter {
    engine: Engine,
    reader: Reader,
    origins: Origins,
    origin: Option<u32>,
    /// Number of origins at which those are looked for that nothing is held of any more.
    sweep_origins_at: usize,
    frames: Vec<Frame>,
    name: String,
    /// Packets of this input so far, and of all.
    number: u64,
    packets: u64,
    /// Bytes of all inputs so far.
    bytes: u64,
    damaged: Option<Damaged>,
    written: Written,
    told: Told,
}

impl Rewriter {
    /// A rewriter that has seen nothing. `output`: what to write, if anything.
    #[must_use]
    pub fn new(config: Config, output: Option<Output>, incomplete: Incomplete, rows: Rows) -> Self {
        Self {
            engine: Engine::new(config, rows != Rows::None),
            reader: Reader::new(),
            origins: Origins::new(),
            origin: None,
            sweep_origins_at: SECTIONS,
            frames: Vec::with_capacity(BATCH),
            name: String::new(),
            number: 0,
            packets: 0,
            bytes: 0,
            damaged: None,
            written: Written::new(output.map(Writer::new), incomplete),
            told: Told::new(rows),
        }
    }

    /// An input begins.
    pub fn begin(&mut self, name: &str) {
        name.clone_into(&mut self.name);
        self.reader = Reader::new();
        self.number = 0;
        self.damaged = None;
    }

    /// Takes the whole records of the input's next bytes through; returns after about `budget`
    /// bytes at the end of a record. Gives the place of the first byte not taken, or the end of
    /// the bytes if nothing behind damage can be read.
    ///
    /// # Errors
    ///
    /// [`Failure`]; nothing more is to be fed then.
    pub fn feed(&mut self, input: Input<'_>, buffer: Buffer, budget: usize) -> Result<usize, Failure> {
        let fed = self.feed_batches(input, buffer, budget);
        if buffer == Buffer::Goes {
            self.engine.settle(input.bytes);
        }
        fed
    }

    fn feed_batches(&mut self, input: Input<'_>, buffer: Buffer, budget: usize) -> Result<usize, Failure> {
        let mut at = input.start;
        let mut frames = std::mem::take(&mut self.frames);
        let fed = loop {
            if at.saturating_sub(input.start) >= budget {
                break Ok(at);
            }
            let rest = Input { start: at, ..input };
            let step = self.reader.read(&mut self.origins, rest, &mut frames, BATCH);
            self.bytes += step.next.saturating_sub(at) as u64;
            at = step.next;
            if let Err(failure) = self.take(input.bytes, &frames, buffer) {
                break Err(failure);
            }
            match (step.pause, self.note_damage()) {
                (_, Err(failure)) => break Err(failure),
                (Pause::Full | Pause::Section, _) => {}
                (Pause::More | Pause::Done, _) => break Ok(at),
                (Pause::Damaged, _) => break Ok(input.stop),
            }
        };
        self.frames = frames;
        fed
    }

    fn note_damage(&mut self) -> Result<(), Failure> {
        match self.reader.damage() {
            Some(damage) if damage.offset == 0 => return Err(Failure::Input(*damage)),
            Some(damage) if self.damaged.is_none() => {
                self.damaged = Some(Damaged { name: self.name.clone(), damage: *damage });
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes frames of one origin through, in stretches of packets: the engine numbers what it
    /// gets, and other records have no number.
    fn take(&mut self, segment: &[u8], frames: &[Frame], buffer: Buffer) -> Result<(), Failure> {
        let Some(origin) = self.reader.origin() else {
            return Ok(());
        };
        if self.origin != Some(origin) {
            self.forget_origins(origin);
            self.origin = Some(origin);
            if self.origins.at(origin).is_some_and(|new| matches!(new.format(), Format::Pcap(_))) {
                self.written.begin(&self.origins, origin);
            }
        }
        let mut rest = frames;
        while let Some(first) = rest.first() {
            let none = rest.iter().position(|frame| frame.link == LinkType::NONE);
            let (packets, others) = rest.split_at_checked(none.unwrap_or(rest.len())).unwrap_or((rest, &[]));
            if packets.is_empty() {
                let record = Record::of(origin, first, segment);
                self.written.other(&self.origins, record);
                rest = rest.get(1..).unwrap_or_default();
            } else {
                self.run(segment, packets, origin, buffer)?;
                rest = others;
            }
        }
        Ok(())
    }

    /// Another origin begins: forgets those that surely nothing is held of. Sections cost little to
    /// make, so a hostile file could have very many.
    fn forget_origins(&mut self, current: u32) {
        let held = self.written.take_held();
        if self.engine.queues() == 0 {
            self.origins.retain(|number| number == current);
        } else if let (false, Some(last)) = (held, self.origin) {
            self.origins.forget(last);
        } else if self.origins.count() >= self.sweep_origins_at {
            let held: BTreeSet<u32> = self.engine.held_origins().collect();
            self.origins.retain(|number| number == current || held.contains(&number));
            self.sweep_origins_at = 2 * self.origins.count().max(SECTIONS);
        }
    }

    fn run(&mut self, segment: &[u8], frames: &[Frame], origin: u32, buffer: Buffer) -> Result<(), Failure> {
        let admitted = self.written.admit(&self.origins, origin, frames);
        let frames = match admitted {
            Ok(()) => frames,
            Err(refused) => frames.get(..refused.at).unwrap_or_default(),
        };
        let first = self.number + 1;
        self.number += frames.len() as u64;
        self.packets += frames.len() as u64;
        let [v4, v6] = self.engine.totals().fragments;
        let mut sink = sink::Sink {
            segment,
            frames,
            first,
            origin,
            origins: &self.origins,
            written: &mut self.written,
            told: &mut self.told,
            run: 0..0,
        };
        let transient = buffer == Buffer::Goes;
        self.engine.run(Batch { segment, frames, first, origin, transient }, &mut sink);
        sink.flush();
        let [v4_now, v6_now] = self.engine.totals().fragments;
        // An IPv6 header is longer: what is asked for ahead reaches further.
        self.reader.glance(if v6_now - v6 > v4_now - v4 { 62 } else { 34 });
        match admitted {
            Ok(()) => Ok(()),
            Err(refused) => Err(Failure::Output { name: self.name.clone(), number: self.number + 1, refused }),
        }
    }

    /// An input ended. What it left open may be completed by the next one: what was referred to
    /// in `segment`, the buffer of an input that stays, is copied.
    pub fn end(&mut self, segment: &[u8]) {
        self.engine.settle_all(segment);
        self.reader = Reader::new();
        self.name.clear();
    }

    /// All inputs ended: everything open is given up, the output is completed.
    pub fn finish(&mut self) {
        let mut sink = sink::Sink {
            segment: &[],
            frames: &[],
            first: self.number + 1,
            origin: 0,
            origins: &self.origins,
            written: &mut self.written,
            told: &mut self.told,
            run: 0..0,
        };
        self.engine.flush(&[], &mut sink);
        self.written.finish();
    }

    /// The output since it was last cleared.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.written.output()
    }

    /// Forgets the output so far: it has been taken.
    pub fn clear_output(&mut self) {
        self.written.clear();
    }

    /// Datagrams that ended since the last call, in the order of their ending.
    pub fn take_rows(&mut self) -> Vec<Row> {
        self.told.take()
    }

    /// The first damage in the last input begun.
    #[must_use]
    pub const fn damaged(&self) -> Option<&Damaged> {
        self.damaged.as_ref()
    }

    /// Packets read.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of files read.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.count()
    }

    /// Fragments, datagrams, reasons.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        self.engine.totals()
    }

    /// The engine, to look at.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// Whether more of an input can come, from a flag.
impl From<bool> for Tail {
    fn from(last: bool) -> Self {
        if last { Self::Last } else { Self::Open }
    }
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
