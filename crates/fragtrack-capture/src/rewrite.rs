//! A capture in, the same capture with whole datagrams out: reader, engine and writer together.

mod rows;
mod sink;

use std::collections::BTreeSet;

use fragtrack_core::config::Config;
use fragtrack_core::engine::{Batch, Engine};
use fragtrack_core::frame::{Frame, LinkType};
use fragtrack_core::stats::Totals;

use crate::intake::{Buffer, Damaged, Failure, Intake, Take};
use crate::origin::Format;
use crate::reader::Input;
use crate::writer::{Output, Record, Writer};

pub use rows::Row;
use sink::{Told, Written};

/// Sections that are remembered without asking whether that is needed.
const SECTIONS: usize = 256;

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
    intake: Intake,
    origin: Option<u32>,
    /// Number of origins at which those are looked for that nothing is held of any more.
    sweep_origins_at: usize,
    written: Written,
    told: Told,
}

impl Rewriter {
    /// A rewriter that has seen nothing. `output`: what to write, if anything.
    #[must_use]
    pub fn new(config: Config, output: Option<Output>, incomplete: Incomplete, rows: Rows) -> Self {
        Self {
            engine: Engine::new(config, rows != Rows::None),
            intake: Intake::new(),
            origin: None,
            sweep_origins_at: SECTIONS,
            written: Written::new(output.map(Writer::new), incomplete),
            told: Told::new(rows),
        }
    }

    /// An input begins.
    pub fn begin(&mut self, name: &str) {
        self.intake.begin(name);
    }

    /// Takes the whole records of the input's next bytes through; returns after about `budget`
    /// bytes at the end of a record. Gives the place of the first byte not taken, or the end of
    /// the bytes if nothing behind damage can be read.
    ///
    /// # Errors
    ///
    /// [`Failure`]; nothing more is to be fed then.
    pub fn feed(&mut self, input: Input<'_>, buffer: Buffer, budget: usize) -> Result<usize, Failure> {
        self.feed_all(input, buffer, budget)
    }

    /// Another origin begins: forgets those that surely nothing is held of. Sections cost little to
    /// make, so a hostile file could have very many.
    fn forget_origins(&mut self, current: u32) {
        let held = self.written.take_held();
        if self.engine.queues() == 0 {
            self.intake.origins.retain(|number| number == current);
        } else if let (false, Some(last)) = (held, self.origin) {
            self.intake.origins.forget(last);
        } else if self.intake.origins.count() >= self.sweep_origins_at {
            let held: BTreeSet<u32> = self.engine.held_origins().collect();
            self.intake.origins.retain(|number| number == current || held.contains(&number));
            self.sweep_origins_at = 2 * self.intake.origins.count().max(SECTIONS);
        }
    }

    fn run(&mut self, segment: &[u8], frames: &[Frame], origin: u32, buffer: Buffer) -> Result<(), Failure> {
        let admitted = self.written.admit(&self.intake.origins, origin, frames);
        let frames = match admitted {
            Ok(()) => frames,
            Err(refused) => frames.get(..refused.at).unwrap_or_default(),
        };
        let first = self.intake.number + 1;
        self.intake.number += frames.len() as u64;
        self.intake.packets += frames.len() as u64;
        let [v4, v6] = self.engine.totals().fragments;
        let mut sink = sink::Sink {
            segment,
            frames,
            first,
            origin,
            origins: &self.intake.origins,
            written: &mut self.written,
            told: &mut self.told,
            run: 0..0,
        };
        let transient = buffer == Buffer::Goes;
        self.engine.run(Batch { segment, frames, first, origin, transient }, &mut sink);
        sink.flush();
        let [v4_now, v6_now] = self.engine.totals().fragments;
        // An IPv6 header is longer: what is asked for ahead reaches further.
        self.intake.reader.glance(if v6_now - v6 > v4_now - v4 { 62 } else { 34 });
        match admitted {
            Ok(()) => Ok(()),
            Err(refused) => {
                Err(Failure::Output { name: self.intake.name.clone(), number: self.intake.number + 1, refused })
            }
        }
    }

    /// An input ended. What it left open may be completed by the next one: what was referred to
    /// in `segment`, the buffer of an input that stays, is copied.
    pub fn end(&mut self, segment: &[u8]) {
        self.engine.settle_all(segment);
        self.intake.end();
    }

    /// All inputs ended: everything open is given up, the output is completed.
    pub fn finish(&mut self) {
        let mut sink = sink::Sink {
            segment: &[],
            frames: &[],
            first: self.intake.number + 1,
            origin: 0,
            origins: &self.intake.origins,
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
        self.intake.damaged.as_ref()
    }

    /// Packets read.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.intake.packets
    }

    /// Bytes of files read.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.intake.bytes
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

impl Take for Rewriter {
    fn intake(&mut self) -> &mut Intake {
        &mut self.intake
    }

    fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// In stretches of packets: the engine numbers what it gets, and other records have no number.
    fn take(&mut self, segment: &[u8], frames: &[Frame], buffer: Buffer) -> Result<(), Failure> {
        let Some(origin) = self.intake.reader.origin() else {
            return Ok(());
        };
        if self.origin != Some(origin) {
            self.forget_origins(origin);
            self.origin = Some(origin);
            if self.intake.origins.at(origin).is_some_and(|new| matches!(new.format(), Format::Pcap(_))) {
                self.written.begin(&self.intake.origins, origin);
            }
        }
        let mut rest = frames;
        while let Some(first) = rest.first() {
            let none = rest.iter().position(|frame| frame.link == LinkType::NONE);
            let (packets, others) = rest.split_at_checked(none.unwrap_or(rest.len())).unwrap_or((rest, &[]));
            if packets.is_empty() {
                let record = Record::of(origin, first, segment);
                self.written.other(&self.intake.origins, record);
                rest = rest.get(1..).unwrap_or_default();
            } else {
                self.run(segment, packets, origin, buffer)?;
                rest = others;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
