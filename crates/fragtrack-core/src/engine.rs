//! Frames in, events out: one staged frame is placed after the other.
//!
//! How a batch goes through is in [`crate::blocks`].

use crate::config::Config;
use crate::event::{Atomic, Datagram, GivenUp, Killer, Sink, View, nested};
use crate::frag::held::Record;
use crate::frag::queue::Queue;
use crate::frag::table::{Ended, Table, Verdict};
use crate::frag::whole::Slice;
use crate::frame::{Frame, LinkType};
use crate::reason::Reason;
use crate::stage::{Kind, Staged, packet_of};
use crate::stats::{KernelCounters, Totals};
use crate::wire::link::{self, Located};
use crate::wire::{Family, ipv6};

/// A batch of frames of one segment.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// The bytes that [`Frame::start`] counts in.
    pub segment: &'a [u8],
    /// The frames, in order.
    pub frames: &'a [Frame],
    /// Number of the first frame.
    pub first: u64,
    /// Handed back with each held record: which section or input it is of.
    pub origin: u32,
    /// Whether the segment goes away: then call [`Engine::settle`] before it does.
    pub transient: bool,
}

/// Reassembly of both families.
pub struct Engine {
    pub(crate) config: Config,
    tables: [Table; 2],
    pub(crate) totals: Totals,
    slices: Vec<Slice>,
    /// Number of the frame after the last one.
    pub(crate) next: u64,
}

/// What is the same for all frames of a batch while they are placed.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) batch: &'a Batch<'a>,
    /// Place of the frame in the batch.
    pub(crate) at: usize,
    pub(crate) frame: &'a Frame,
    pub(crate) number: u64,
}

impl Engine {
    /// An empty engine. `detailed`: keep the times that reports want.
    #[must_use]
    pub fn new(config: Config, detailed: bool) -> Self {
        let tables = [Table::new(&config, Family::V4, detailed), Table::new(&config, Family::V6, detailed)];
        Self { config, tables, totals: Totals::default(), slices: Vec::new(), next: 0 }
    }

    /// The table of a family.
    #[inline(always)]
    #[must_use]
    pub const fn table(&self, family: Family) -> &Table {
        let [v4, v6] = &self.tables;
        match family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }

    #[inline(always)]
    const fn table_mut(&mut self, family: Family) -> &mut Table {
        let [v4, v6] = &mut self.tables;
        match family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }

    /// What was counted.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The kernel's counters of a family.
    #[must_use]
    pub const fn counters(&self, family: Family) -> &KernelCounters {
        &self.table(family).counters
    }

    /// Open queues of both families.
    #[must_use]
    pub const fn queues(&self) -> usize {
        self.table(Family::V4).len() + self.table(Family::V6).len()
    }

    /// Bytes in use, both families, by the cost model.
    #[must_use]
    pub const fn memory(&self) -> u64 {
        self.table(Family::V4).memory() + self.table(Family::V6).memory()
    }

    /// Which sections or inputs the held records are of, in any order, repeated.
    pub fn held_origins(&self) -> impl Iterator<Item = u32> {
        self.tables.iter().flat_map(|table| table.held.origins())
    }

    /// Asserts all invariants from scratch.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        self.tables.iter().try_for_each(Table::check)
    }

    #[inline(always)]
    pub(crate) fn place<S: Sink>(&mut self, context: Context<'_>, staged: &Staged, sink: &mut S) {
        let Context { at, frame, .. } = context;
        if frame.link != LinkType::NONE {
            let [v4, v6] = &mut self.tables;
            if v4.tick(frame.time) | v6.tick(frame.time) {
                self.show_ended(context.batch.segment, context.number, sink);
            }
        }
        match staged.kind {
            Kind::Pass => sink.pass(at),
            Kind::Fragment(family) => self.place_fragment(context, family, staged, sink),
            Kind::Atomic => self.place_atomic(context, staged, sink),
            Kind::Fault { family, reason, problem, fragment, short } => {
                self.count_fault(family, reason, fragment, short);
                if let Some((code, pointer)) = problem {
                    sink.problem(at, code, pointer, packet_of(&context, staged));
                }
                sink.dropped(at, reason);
            }
        }
    }

    #[inline(always)]
    fn place_fragment<S: Sink>(&mut self, context: Context<'_>, family: Family, staged: &Staged, sink: &mut S) {
        let Context { batch, at, frame, number } = context;
        let record = Record {
            start: frame.start,
            length: frame.record,
            ip: (staged.ip + u32::from(frame.head)) as u16,
            origin: batch.origin,
            frame: number,
            charged: frame.charge(),
            packet: frame.captured - staged.ip,
        };
        let table = self.table_mut(family);
        let verdict = table.add(&staged.fragment, &staged.wide, (staged.hash, staged.guess), record, frame.time);
        if !table.ended.is_empty() {
            self.show_ended(batch.segment, number, sink);
        }
        let fragments = match family {
            Family::V4 => self.totals.fragments.first_mut(),
            Family::V6 => self.totals.fragments.last_mut(),
        };
        if let Some(count) = fragments
            && !matches!(verdict, Verdict::Passed(_))
        {
            *count = count.wrapping_add(1);
        }
        match verdict {
            Verdict::Held => {
                if batch.transient {
                    self.table_mut(family).held.note_fresh();
                }
                sink.held(at);
            }
            Verdict::Complete(queue) => self.finish(context, family, queue, staged, sink),
            Verdict::Dropped(reason) => {
                self.totals.lose(reason, 1);
                sink.dropped(at, reason);
            }
            Verdict::Killed(reason, queue) => self.kill(context, family, queue, reason, staged, sink),
            Verdict::Problem(reason, pointer) => {
                self.totals.lose(reason, 1);
                sink.problem(at, 0, pointer, packet_of(&context, staged));
                sink.dropped(at, reason);
            }
            Verdict::Passed(queue) => {
                if self.table(family).queue(queue).is_some_and(Queue::holds) {
                    let end = Ended { queue, reason: Reason::Unaligned, icmp: false };
                    self.give_up(batch.segment, number, family, end, None, sink);
                } else {
                    self.table_mut(family).release(queue);
                }
                sink.pass(at);
            }
        }
    }

    /// A queue is complete: shows the datagram, then gives everything back.
    #[inline(always)]
    fn finish<S: Sink>(&mut self, context: Context<'_>, family: Family, at: u32, staged: &Staged, sink: &mut S) {
        let Context { batch, frame, number, .. } = context;
        let mut slices = core::mem::take(&mut self.slices);
        let table = self.table(family);
        let mut nested_at = None;
        if let Some(queue) = table.queue(at) {
            table.slices(queue, &mut slices);
            let mut located = Located { ip: staged.ip as usize, ..Located::default() };
            // Ethernet with IP right inside has nothing more to tell.
            if (frame.link.0, located.ip) != (1, 14)
                && let Some(found) = located_again(batch.segment, frame)
            {
                located = found;
            }
            let view = View { table, at, queue, segment: batch.segment, current: number };
            let datagram = Datagram { view, slices: &slices, frame, located };
            if family == Family::V6 && self.config.path == crate::config::Path::Local {
                nested_at = nested(&datagram);
            }
            if nested_at.is_none() {
                sink.complete(context.at, &datagram);
            }
        }
        self.slices = slices;
        if let Some((pointer, packet)) = nested_at {
            self.table_mut(family).counters.in_hdr_errors += 1;
            sink.problem(context.at, 0, pointer as u32, &packet);
            self.kill(context, family, at, Reason::Nested, staged, sink);
            return;
        }
        let used = self.table_mut(family).release(at);
        self.totals.used += used;
        self.totals.complete += 1;
    }

    #[inline(never)]
    fn kill<S: Sink>(
        &mut self,
        context: Context<'_>,
        family: Family,
        queue: u32,
        reason: Reason,
        staged: &Staged,
        sink: &mut S,
    ) {
        let Context { batch, at, number, .. } = context;
        let f = &staged.fragment;
        let rounded = if family == Family::V4 && f.more { f.length & !7 } else { f.length };
        // At completion the killing fragment is one of those held already.
        let accepted = matches!(reason, Reason::Ecn | Reason::Oversize | Reason::Nested);
        let killer = Killer { number, offset: f.offset, end: f.offset + rounded, time: context.frame.time, accepted };
        self.give_up(batch.segment, number, family, Ended { queue, reason, icmp: false }, Some(killer), sink);
        if !accepted {
            self.totals.lose(reason, 1);
        }
        sink.dropped(at, reason);
    }

    /// Shows a queue that ended, and gives everything back.
    #[inline(never)]
    fn give_up<S: Sink>(
        &mut self,
        segment: &[u8],
        number: u64,
        family: Family,
        end: Ended,
        killer: Option<Killer>,
        sink: &mut S,
    ) {
        let Ended { queue: at, reason, icmp } = end;
        let table = self.table(family);
        if let Some(queue) = table.queue(at) {
            let view = View { table, at, queue, segment, current: number };
            sink.given_up(&GivenUp { view, reason, icmp, killer });
        }
        let lost = self.table_mut(family).release(at);
        self.totals.lose(reason, lost);
        self.totals.give_up(reason);
    }

    #[inline(never)]
    fn show_ended<S: Sink>(&mut self, segment: &[u8], number: u64, sink: &mut S) {
        for family in [Family::V4, Family::V6] {
            let mut ended = core::mem::take(&mut self.table_mut(family).ended);
            for end in ended.drain(..) {
                self.give_up(segment, number, family, end, None, sink);
            }
            self.table_mut(family).ended = ended;
        }
    }

    #[inline(never)]
    fn place_atomic<S: Sink>(&mut self, context: Context<'_>, staged: &Staged, sink: &mut S) {
        let Context { batch, at, frame, .. } = context;
        let fragment = &staged.fragment;
        let counters = &mut self.table_mut(Family::V6).counters;
        counters.reasm_reqds += 1;
        counters.reasm_oks += 1;
        let start = frame.start as usize + usize::from(frame.head) + staged.ip as usize;
        let length = (fragment.header + fragment.length) as usize;
        let packet = batch.segment.get(start..start + length).unwrap_or(&[]);
        let [_, fragments] = &mut self.totals.fragments;
        *fragments += 1;
        if let Some(pointer) = ipv6::nested_fragment_header(packet, fragment.protocol, fragment.header as usize) {
            self.table_mut(Family::V6).counters.in_hdr_errors += 1;
            self.totals.lose(Reason::Nested, 1);
            sink.problem(at, 0, pointer as u32, packet);
            sink.dropped(at, Reason::Nested);
            return;
        }
        self.totals.used += 1;
        self.totals.complete += 1;
        sink.atomic(at, &Atomic { addresses: staged.wide, fragment, packet });
    }

    /// Counts a packet that was refused before it came to a queue.
    #[inline(never)]
    fn count_fault(&mut self, family: Family, reason: Reason, fragment: bool, short: bool) {
        let local = self.config.path == crate::config::Path::Local;
        let counters = &mut self.table_mut(family).counters;
        match reason {
            // A packet shorter than its header is a header error to the kernel.
            Reason::Truncated if short => counters.in_hdr_errors += 1,
            Reason::Truncated => counters.in_truncated_pkts += 1,
            Reason::Checksum => {
                counters.in_hdr_errors += 1;
                counters.in_csum_errors += 1;
            }
            Reason::Chain | Reason::FragmentHeader if local => {
                counters.reasm_reqds += 1;
                counters.in_hdr_errors += 1;
            }
            // Not IP at all (`short` says so): no family to count it for.
            Reason::Header if !short => counters.in_hdr_errors += 1,
            _ => {}
        }
        if fragment {
            let [v4, v6] = &mut self.totals.fragments;
            *(if family == Family::V4 { v4 } else { v6 }) += 1;
            self.totals.lose(reason, 1);
        }
    }

    /// Time passes without a packet: queues may end.
    pub fn advance<S: Sink>(&mut self, segment: &[u8], time: i64, sink: &mut S) {
        let [v4, v6] = &mut self.tables;
        if v4.tick(time) | v6.tick(time) {
            self.show_ended(segment, self.next, sink);
        }
    }

    /// Everything open is given up.
    pub fn flush<S: Sink>(&mut self, segment: &[u8], sink: &mut S) {
        self.tables.iter_mut().for_each(Table::flush);
        self.show_ended(segment, self.next, sink);
    }

    /// The transient segments of the last batches go away: what is still held of them is copied.
    pub fn settle(&mut self, segment: &[u8]) {
        for table in &mut self.tables {
            table.held.settle(segment);
        }
    }

    /// A segment that stayed goes away.
    pub fn settle_all(&mut self, segment: &[u8]) {
        for table in &mut self.tables {
            table.held.settle_all(segment);
        }
    }
}

fn located_again(segment: &[u8], frame: &Frame) -> Option<Located> {
    let start = frame.start as usize + usize::from(frame.head);
    link::locate(frame.link, segment.get(start..start + frame.captured as usize)?)
}
