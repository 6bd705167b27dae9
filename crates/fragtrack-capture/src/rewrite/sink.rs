//! Where the engine's events become output and rows.

use std::collections::HashMap;
use std::ops::Range;

use fragtrack_core::event::{self, Atomic, Datagram, GivenUp};
use fragtrack_core::frame::Frame;
use fragtrack_core::reason::Reason;

use super::{Incomplete, Row, Rows};
use crate::origin::Origins;
use crate::pcapng::SIMPLE_HEAD;
use crate::writer::{Record, Refused, Writer};

/// Times of held Simple Packet Blocks that are remembered.
const TIMES: usize = 1 << 20;

/// The output, if there is one.
pub(super) struct Written {
    writer: Option<Writer>,
    incomplete: Incomplete,
    out: Vec<u8>,
    /// Whether a record of this origin was held.
    held: bool,
    /// Times of held records that have none themselves, by origin and frame number. An entry whose
    /// datagram became whole may stay behind, so their number is bounded.
    times: HashMap<(u32, u64), i64>,
}

impl Written {
    pub(super) fn new(writer: Option<Writer>, incomplete: Incomplete) -> Self {
        Self { writer, incomplete, out: Vec::new(), held: false, times: HashMap::new() }
    }

    pub(super) fn begin(&mut self, origins: &Origins, origin: u32) {
        if let Some(writer) = &mut self.writer {
            writer.begin(origins, origin, &mut self.out);
        }
    }

    pub(super) fn other(&mut self, origins: &Origins, record: Record<'_>) {
        if let Some(writer) = &mut self.writer {
            writer.other(origins, record.origin, record.bytes, &mut self.out);
        }
    }

    pub(super) fn admit(&mut self, origins: &Origins, origin: u32, frames: &[Frame]) -> Result<(), Refused> {
        match &mut self.writer {
            Some(writer) => writer.admit(origins, origin, frames, &mut self.out),
            None => Ok(()),
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.finish(&mut self.out);
        }
    }

    /// Whether a record was held since the last call.
    pub(super) const fn take_held(&mut self) -> bool {
        std::mem::replace(&mut self.held, false)
    }

    pub(super) fn output(&self) -> &[u8] {
        &self.out
    }

    pub(super) fn clear(&mut self) {
        self.out.clear();
    }

    pub(super) fn count(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::written)
    }
}

/// The rows, if they are asked for.
pub(super) struct Told {
    rows: Vec<Row>,
    what: Rows,
}

impl Told {
    pub(super) const fn new(what: Rows) -> Self {
        Self { rows: Vec::new(), what }
    }

    pub(super) fn take(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }
}

/// Takes the events of one batch.
pub(super) struct Sink<'a> {
    pub(super) segment: &'a [u8],
    pub(super) frames: &'a [Frame],
    pub(super) first: u64,
    pub(super) origin: u32,
    pub(super) origins: &'a Origins,
    pub(super) written: &'a mut Written,
    pub(super) told: &'a mut Told,
    /// Frames in a row that are to be written as they are.
    pub(super) run: Range<usize>,
}

impl Sink<'_> {
    /// Writes the frames that passed and were not written yet.
    pub(super) fn flush(&mut self) {
        let run = std::mem::take(&mut self.run);
        let Written { writer: Some(writer), out, .. } = &mut *self.written else { return };
        let frames = self.frames.get(run).unwrap_or_default();
        writer.packets(self.origins, self.origin, frames, self.segment, out);
    }

    fn number(&self, at: usize) -> u64 {
        self.first + at as u64
    }

    fn time(&self, at: usize) -> i64 {
        self.frames.get(at).map_or(0, |frame| frame.time)
    }
}

impl event::Sink for Sink<'_> {
    #[inline]
    fn pass(&mut self, at: usize) {
        if self.run.end != at || self.run.is_empty() {
            self.flush();
            self.run = at..at;
        }
        self.run.end = at + 1;
    }

    #[inline]
    fn held(&mut self, at: usize) {
        self.written.held = true;
        // Of all records only Simple Packet Blocks have this head, and no time.
        if let Some(frame) = self.frames.get(at)
            && usize::from(frame.head) == SIMPLE_HEAD
            && self.written.writer.is_some()
            && self.written.incomplete == Incomplete::Keep
        {
            if self.written.times.len() >= TIMES {
                self.written.times.clear();
            }
            self.written.times.insert((self.origin, self.number(at)), frame.time);
        }
    }

    fn dropped(&mut self, at: usize, reason: Reason) {
        if self.written.incomplete == Incomplete::Keep && reason != Reason::Duplicate {
            self.pass(at);
        }
    }

    fn atomic(&mut self, at: usize, datagram: &Atomic<'_>) {
        self.pass(at);
        if self.told.what != Rows::None {
            let packet = (self.told.what == Rows::Payloads).then(|| datagram.packet().to_vec());
            let row = Row::atomic(datagram, self.time(at), self.number(at), packet);
            self.told.rows.push(row);
        }
    }

    fn complete(&mut self, at: usize, datagram: &Datagram<'_>) {
        self.flush();
        if let (Written { writer: Some(writer), out, times, .. }, Some(frame)) =
            (&mut *self.written, self.frames.get(at))
        {
            let record = Record::of(self.origin, frame, self.segment);
            let length = datagram.link_header_len() + datagram.packet_len();
            let fill = |out: &mut Vec<u8>| {
                datagram.write_link_header(out);
                datagram.write_packet(out);
            };
            writer.replace(self.origins, record, length, fill, out);
            if !times.is_empty() {
                for number in datagram.frames() {
                    times.remove(&(self.origin, number));
                }
            }
        }
        if self.told.what != Rows::None {
            let packet = (self.told.what == Rows::Payloads).then(|| {
                let mut packet = Vec::with_capacity(datagram.packet_len());
                datagram.write_packet(&mut packet);
                packet
            });
            self.told.rows.push(Row::complete(datagram, packet));
        }
    }

    fn given_up(&mut self, datagram: &GivenUp<'_>) {
        self.flush();
        if let Written { writer: Some(writer), incomplete: Incomplete::Keep, out, times, .. } = &mut *self.written {
            for held in datagram.held() {
                let time = times.remove(&(held.origin, held.number));
                let time = time.unwrap_or_else(|| datagram.times().0);
                let record = Record { origin: held.origin, bytes: held.record, time };
                writer.packet(self.origins, record, out);
            }
        }
        if self.told.what != Rows::None {
            self.told.rows.push(Row::given_up(datagram));
        }
    }
}
