//! What is measured against the floors: the reader alone, and the reader with the engine.

use crate::Measure;
use crate::floors::Answer;
use crate::input::{Capture, Options};
use fragtrack_capture::{Input, Origins, Pause, Reader, Tail};
use fragtrack_core::config::Config;
use fragtrack_core::engine::{Batch, Engine};
use fragtrack_core::event::{Atomic, Datagram, GivenUp, Sink};
use fragtrack_core::frame::Frame;
use fragtrack_core::reason::Reason;

/// Records read before the engine gets them.
const BATCH: usize = 256;
/// Bytes of memory for one family, with `limits="capture"`.
const MEMORY: u64 = 512 << 20;
/// Bytes of a frame up to the end of the headers.
const IPV4: usize = 34;
const IPV6: usize = 62;

/// The measurements of this project's own code.
pub(crate) fn measures<'a>(capture: &'a Capture, options: &Options) -> Vec<Box<dyn Measure + 'a>> {
    let engine = || Engine::new(config(options), false);
    vec![
        Box::new(Read { capture, frames: Vec::new() }),
        Box::new(Reassemble::<false> { capture, engine: engine(), parts: Parts::default() }),
        Box::new(Reassemble::<true> { capture, engine: engine(), parts: Parts::default() }),
    ]
}

/// The defaults of the command, with a hash key that is always the same.
fn config(options: &Options) -> Config {
    Config {
        memory: options.memory.unwrap_or(MEMORY),
        ..Config::capture((0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908))
    }
}

/// Reads the whole capture, a batch of frames at a time; `take` says how much of each frame it looks at.
#[inline(always)]
fn batches(capture: &Capture, frames: &mut Vec<Frame>, mut take: impl FnMut(&[Frame]) -> usize) {
    let (bytes, mut origins, mut reader) = (capture.file(), Origins::new(), Reader::new());
    let (stop, tail) = (bytes.len(), Tail::Last);
    let mut start = 0;
    loop {
        let step = reader.read(&mut origins, Input { bytes, start, stop, tail }, frames, BATCH);
        reader.glance(take(frames));
        start = step.next;
        if matches!(step.pause, Pause::Done | Pause::Damaged | Pause::More) {
            return;
        }
    }
}

/// The index of the records, and nothing done with it.
struct Read<'a> {
    capture: &'a Capture,
    frames: Vec<Frame>,
}

impl Measure for Read<'_> {
    fn name(&self) -> &'static str {
        "reader"
    }

    fn completes(&self) -> bool {
        false
    }

    fn pass(&mut self) -> Answer {
        let mut answer = Answer::default();
        batches(self.capture, &mut self.frames, |frames| {
            answer.records += frames.len() as u64;
            for frame in frames {
                answer.sum ^= frame.start ^ u64::from(frame.captured) ^ frame.time as u64;
            }
            IPV4
        });
        answer
    }
}

#[derive(Default)]
struct Parts {
    frames: Vec<Frame>,
    out: Vec<u8>,
}

/// Everything: reader, decoding, table. A finished datagram goes out as slices, or with `GATHER`
/// as contiguous bytes in one buffer. The engine lives on from pass to pass.
struct Reassemble<'a, const GATHER: bool> {
    capture: &'a Capture,
    engine: Engine,
    parts: Parts,
}

impl<const GATHER: bool> Measure for Reassemble<'_, GATHER> {
    fn name(&self) -> &'static str {
        if GATHER { "engine-gather" } else { "engine-chain" }
    }

    fn pass(&mut self) -> Answer {
        let Parts { frames, out } = &mut self.parts;
        let mut sink = Taken::<GATHER> { answer: Answer::default(), out };
        let (segment, mut first) = (self.capture.file(), 1);
        batches(self.capture, frames, |frames| {
            let batch = Batch { segment, frames, first, origin: 0, transient: false };
            let [_, before] = self.engine.totals().fragments;
            self.engine.run(batch, &mut sink);
            first += frames.len() as u64;
            let [_, v6] = self.engine.totals().fragments;
            // As the rewriter does.
            if (v6 - before) * 2 > frames.len() as u64 { IPV6 } else { IPV4 }
        });
        sink.answer.records = first - 1;
        sink.answer
    }

    fn drain(&mut self) {
        let mut sink = Taken::<GATHER> { answer: Answer::default(), out: &mut self.parts.out };
        self.engine.flush(self.capture.file(), &mut sink);
    }
}

/// Takes datagrams and drops them.
struct Taken<'a, const GATHER: bool> {
    answer: Answer,
    out: &'a mut Vec<u8>,
}

impl<const GATHER: bool> Sink for Taken<'_, GATHER> {
    fn pass(&mut self, _at: usize) {}

    fn held(&mut self, _at: usize) {}

    fn dropped(&mut self, _at: usize, _reason: Reason) {}

    fn atomic(&mut self, _at: usize, _datagram: &Atomic<'_>) {}

    fn complete(&mut self, _at: usize, datagram: &Datagram<'_>) {
        self.answer.datagrams += 1;
        self.answer.bytes += datagram.payload_len() as u64;
        if GATHER {
            self.out.clear();
            datagram.write_payload(self.out);
            self.answer.sum ^= u64::from(self.out.last().copied().unwrap_or(0));
        } else {
            for (_, bytes) in datagram.slices() {
                self.answer.sum ^= (bytes.as_ptr() as usize ^ bytes.len()) as u64;
            }
        }
    }

    fn given_up(&mut self, _datagram: &GivenUp<'_>) {}
}
