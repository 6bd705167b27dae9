//! What everything that takes captures through has in common: inputs one after the other, each fed in pieces.

use std::fmt;

use fragtrack_core::engine::Engine;
use fragtrack_core::frame::Frame;

use crate::damage::{Damage, Why};
use crate::origin::Origins;
use crate::reader::{Input, Pause, Reader};
use crate::writer::Refused;

/// Frames read at once.
pub(crate) const BATCH: usize = 256;

/// Whether the bytes of a buffer stay where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// Until the input ends, with the same bytes in every call of it: what is held of them is referred to.
    Stays,
    /// Until the call returns: what is held of them is copied.
    Goes,
}

/// Why an input cannot be fed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// It is no capture.
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

/// The input being read, and what was read so far.
pub(crate) struct Intake {
    pub(crate) reader: Reader,
    pub(crate) origins: Origins,
    pub(crate) name: String,
    /// Packets of this input so far, and of all.
    pub(crate) number: u64,
    pub(crate) packets: u64,
    /// Bytes of all inputs so far.
    pub(crate) bytes: u64,
    pub(crate) damaged: Option<Damaged>,
    frames: Vec<Frame>,
}

impl Intake {
    pub(crate) fn new() -> Self {
        Self {
            reader: Reader::new(),
            origins: Origins::new(),
            name: String::new(),
            number: 0,
            packets: 0,
            bytes: 0,
            damaged: None,
            frames: Vec::with_capacity(BATCH),
        }
    }

    /// An input begins; its frames are numbered from 1.
    pub(crate) fn begin(&mut self, name: &str) {
        name.clone_into(&mut self.name);
        self.reader = Reader::new();
        self.number = 0;
        self.damaged = None;
    }

    /// The input ends.
    pub(crate) fn end(&mut self) {
        self.reader = Reader::new();
        self.name.clear();
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
}

/// Takes the frames of an intake through.
pub(crate) trait Take {
    fn intake(&mut self) -> &mut Intake;

    fn engine_mut(&mut self) -> &mut Engine;

    /// Frames of one origin, in the bytes of `segment`.
    fn take(&mut self, segment: &[u8], frames: &[Frame], buffer: Buffer) -> Result<(), Failure>;

    /// Takes the whole records of the input's next bytes through; returns after about `budget` bytes at the end of a
    /// record. Gives the place of the first byte not taken, or the end of the bytes if nothing behind damage can be read.
    fn feed_all(&mut self, input: Input<'_>, buffer: Buffer, budget: usize) -> Result<usize, Failure> {
        let mut frames = std::mem::take(&mut self.intake().frames);
        let fed = self.feed_batches(input, buffer, budget, &mut frames);
        self.intake().frames = frames;
        if buffer == Buffer::Goes {
            self.engine_mut().settle(input.bytes);
        }
        fed
    }

    fn feed_batches(
        &mut self,
        input: Input<'_>,
        buffer: Buffer,
        budget: usize,
        frames: &mut Vec<Frame>,
    ) -> Result<usize, Failure> {
        let mut at = input.start;
        while at.saturating_sub(input.start) < budget {
            let Intake { reader, origins, bytes, .. } = self.intake();
            let step = reader.read(origins, Input { start: at, ..input }, frames, BATCH);
            *bytes += step.next.saturating_sub(at) as u64;
            at = step.next;
            self.take(input.bytes, frames, buffer)?;
            self.intake().note_damage()?;
            match step.pause {
                Pause::Full | Pause::Section => {}
                Pause::More | Pause::Done => return Ok(at),
                Pause::Damaged => return Ok(input.stop),
            }
        }
        Ok(at)
    }
}
