//! Batches through the engine, in blocks.
//!
//! A block is prepared while the one before it is placed. Every frame of it is decoded, its key hashed, and the line
//! of the index asked for; then, a block later, the queues that these lines point to are asked for; only then are its
//! fragments placed, one after the other. So cache misses overlap with work, and the order of events is that of the
//! frames.

use crate::engine::{Batch, Context, Engine};
use crate::event::Sink;
use crate::frame::Frame;
use crate::prefetch;
use crate::stage::{Kind, Staged, UNSTAGED};

/// Frames decoded before the first of them is placed.
const BLOCK: usize = 32;

impl Engine {
    /// Takes a batch of frames through.
    pub fn run<S: Sink>(&mut self, batch: Batch<'_>, sink: &mut S) {
        self.take(batch, sink, |engine, frame, staged| engine.stage(batch.segment, frame, staged));
    }

    /// Takes a batch of packets through: each frame is one packet from its IP header on, judged as a host does.
    pub fn run_packets<S: Sink>(&mut self, batch: Batch<'_>, domain: u64, sink: &mut S) {
        // Nobody has looked at these packets before: their headers are asked for two blocks ahead.
        let ask = |frame: &Frame| {
            prefetch::read(batch.segment, frame.start as usize);
            prefetch::read(batch.segment, frame.start as usize + 39);
        };
        batch.frames.iter().take(2 * BLOCK).for_each(ask);
        let mut soon = batch.frames.iter().skip(2 * BLOCK);
        self.take(batch, sink, |engine, frame, staged| {
            if let Some(frame) = soon.next() {
                ask(frame);
            }
            let start = frame.start as usize;
            let packet = batch.segment.get(start..start + frame.captured as usize).unwrap_or(&[]);
            engine.stage_packet(packet, domain, true, staged);
        });
    }

    #[inline(always)]
    fn take<S: Sink>(&mut self, batch: Batch<'_>, sink: &mut S, mut stage: impl FnMut(&mut Self, &Frame, &mut Staged)) {
        self.next = batch.first.saturating_add(batch.frames.len() as u64);
        // The frames of two blocks, decoded.
        let (mut one, mut other) = ([UNSTAGED; BLOCK], [UNSTAGED; BLOCK]);
        let (mut now, mut ahead) = (&mut one, &mut other);
        let mut blocks = batch.frames.chunks(BLOCK);
        let mut placing: &[Frame] = &[];
        let mut at = 0;
        loop {
            let staging = blocks.next().unwrap_or(&[]);
            for (frame, staged) in staging.iter().zip(ahead.iter_mut()) {
                stage(self, frame, staged);
            }
            for (frame, staged) in placing.iter().zip(now.iter()) {
                // There are fewer frames than numbers.
                self.place(
                    Context { batch: &batch, at, frame, number: batch.first.wrapping_add(at as u64) },
                    staged,
                    sink,
                );
                at = at.wrapping_add(1);
            }
            if staging.is_empty() {
                return;
            }
            let mut new = 0;
            for (_, staged) in staging.iter().zip(ahead.iter_mut()) {
                if let Kind::Fragment(family) = staged.kind {
                    let table = self.table(family);
                    staged.guess = table.guess(staged.hash);
                    new += 1;
                    table.prefetch_free(new);
                }
            }
            placing = staging;
            core::mem::swap(&mut now, &mut ahead);
        }
    }

    /// Takes the only frame of a batch through; its IP header starts at byte `ip` of it, and it belongs to `domain`.
    pub fn run_one<S: Sink>(&mut self, batch: Batch<'_>, ip: u32, domain: u64, sink: &mut S) {
        let mut staged = UNSTAGED;
        self.next = batch.first.saturating_add(1);
        let Some(frame) = batch.frames.first() else { return };
        let start = frame.start as usize + usize::from(frame.head);
        let end = start + frame.captured as usize;
        let packet = batch.segment.get(start + ip as usize..end).unwrap_or(&[]);
        staged.ip = ip;
        self.stage_packet(packet, domain, false, &mut staged);
        self.place(Context { batch: &batch, at: 0, frame, number: batch.first }, &staged, sink);
    }

    /// One packet by itself, from the IP header on, judged as a host does (so that packets that are no fragments
    /// may be dropped, too). The batch has one frame, which is the packet.
    pub fn push<S: Sink>(&mut self, batch: Batch<'_>, domain: u64, sink: &mut S) {
        let mut staged = UNSTAGED;
        self.next = batch.first.saturating_add(1);
        let Some(frame) = batch.frames.first() else { return };
        self.stage_packet(batch.segment, domain, true, &mut staged);
        self.place(Context { batch: &batch, at: 0, frame, number: batch.first }, &staged, sink);
    }
}
