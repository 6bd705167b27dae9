//! All flows that are open, and the rows of those that ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::config::Config;
use super::flow::{Flow, NEVER, Sides, TIMERS};
use super::row::Row;
use super::segment::Segment;
use crate::frag::index::{Index, NIL};
use crate::frag::key::{Multilinear, SipHash};

/// Totals since the beginning.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Packets seen.
    pub packets: u64,
    /// Flows opened.
    pub opened: u64,
    /// Flows that ended.
    pub ended: u64,
    /// Of these, those that ended early since there were too many.
    pub evicted: u64,
}

/// When a flow is looked at, its number, and where it is.
type Plan = Reverse<(i64, u64, u32)>;

/// Watches packets and tells connections, as Zeek does.
///
/// Any packet opens a flow. Time is the highest time stamp so far; before a packet is looked at, all timers that are
/// due by then act, in the order of their times (flows of one time: of their numbers).
///
/// Invariant: at most `max` flows; each flow is in the index, in the list by last packets from `oldest` to `newest`,
/// and in the queue, not behind the first of its timers. Entries of the queue for flows that ended, or that stand
/// there for another time as well, are void; they are no more than the flows and 64.
pub struct Flows {
    config: Config,
    hash: Multilinear,
    uids: SipHash,
    index: Index,
    slots: Vec<Option<Flow>>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    queue: BinaryHeap<Plan>,
    /// The first time in the queue.
    due: i64,
    now: Option<i64>,
    ended: Vec<Row>,
    counters: Counters,
}

impl Flows {
    /// None yet. `hash_key`: secret, low half first; whoever knew it could choose flows that all collide.
    #[must_use]
    pub fn new(config: Config, hash_key: (u64, u64)) -> Self {
        Self {
            hash: Multilinear::new(hash_key),
            uids: SipHash::new(config.uid_key),
            index: Index::new(),
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NIL,
            newest: NIL,
            queue: BinaryHeap::new(),
            due: NEVER,
            now: None,
            ended: Vec::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// Takes a packet with its time stamp, in nanoseconds.
    pub fn see(&mut self, packet: &Segment, time: i64) {
        self.advance(time);
        self.counters.packets += 1;
        let sides = Sides::of(packet);
        let hash = sides.hash(packet, &self.hash);
        let found = self.index.find(hash, |at| self.flow(at).is_some_and(|flow| flow.base.is_between(&sides, packet)));
        let at = match found {
            Some(at) if self.flow(at).is_some_and(|flow| flow.is_reused(packet)) => {
                self.end(at);
                self.open(packet, &sides, time, hash)
            }
            Some(at) => {
                self.touch(at);
                at
            }
            None => self.open(packet, &sides, time, hash),
        };
        if let Some(Some(flow)) = self.slots.get_mut(at as usize) {
            flow.deliver(packet, &sides, time, &self.config);
        }
        self.plan(at);
    }

    /// Lets time pass, without a packet. A step back in time leaves it where it is.
    #[inline(always)]
    pub fn advance(&mut self, time: i64) {
        let now = self.now.map_or(time, |now| now.max(time));
        self.now = Some(now);
        if self.due <= now {
            self.fire_due(now);
        }
    }

    /// Ends all flows, in the order of their opening: the input is over.
    pub fn finish(&mut self) {
        let live = self.slots.iter().enumerate();
        let mut all: Vec<(u64, u32)> =
            live.filter_map(|(at, flow)| Some((flow.as_ref()?.base.number, at as u32))).collect();
        all.sort_unstable();
        for (_, at) in all {
            self.end(at);
        }
        self.queue.clear();
        self.due = NEVER;
    }

    /// The flows that ended since the last call, in the order of ending.
    pub fn take(&mut self) -> Vec<Row> {
        core::mem::take(&mut self.ended)
    }

    /// Number of open flows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Totals.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    fn flow(&self, at: u32) -> Option<&Flow> {
        self.slots.get(at as usize)?.as_ref()
    }

    fn flow_mut(&mut self, at: u32) -> Option<&mut Flow> {
        self.slots.get_mut(at as usize)?.as_mut()
    }

    // ------------------------------------------------------------------ the table

    /// Opens a flow, as the last one; where it is.
    fn open(&mut self, packet: &Segment, sides: &Sides, time: i64, hash: u32) -> u32 {
        if self.index.len() >= self.config.max as usize {
            self.counters.evicted += 1;
            self.end(self.oldest);
        }
        self.counters.opened += 1;
        let flow = Flow::new(packet, sides, self.counters.opened, time, hash, &self.config);
        let at = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(at as usize) {
            Some(slot) => *slot = Some(flow),
            None => self.slots.push(Some(flow)),
        }
        self.index.insert(hash, at);
        self.append(at);
        at
    }

    /// Ends a flow and makes its row.
    fn end(&mut self, at: u32) {
        self.unlink(at);
        let Some(flow) = self.slots.get_mut(at as usize).and_then(Option::take) else { return };
        self.index.remove(flow.base.hash, at);
        self.free.push(at);
        self.counters.ended += 1;
        self.ended.push(flow.row(&self.uids));
    }

    /// Makes a flow the last one.
    #[inline(always)]
    fn touch(&mut self, at: u32) {
        if self.newest != at {
            self.unlink(at);
            self.append(at);
        }
    }

    fn append(&mut self, at: u32) {
        let newest = core::mem::replace(&mut self.newest, at);
        if let Some(flow) = self.flow_mut(at) {
            (flow.base.older, flow.base.newer) = (newest, NIL);
        }
        match self.flow_mut(newest) {
            Some(flow) => flow.base.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let Some(flow) = self.flow(at) else { return };
        let (older, newer) = (flow.base.older, flow.base.newer);
        match self.flow_mut(older) {
            Some(flow) => flow.base.newer = newer,
            None => self.oldest = newer,
        }
        match self.flow_mut(newer) {
            Some(flow) => flow.base.older = older,
            None => self.newest = older,
        }
    }

    // ------------------------------------------------------------------ time

    #[inline(never)]
    fn fire_due(&mut self, now: i64) {
        while let Some(&Reverse((due, number, at))) = self.queue.peek() {
            if due > now {
                break;
            }
            self.queue.pop();
            let planned = |flow: &Flow| flow.base.number == number && flow.base.planned == due;
            if self.flow(at).is_some_and(planned) {
                self.fire(at, due, now);
            }
        }
        self.due = self.queue.peek().map_or(NEVER, |plan| plan.0.0);
    }

    /// Lets the timers of a flow act that are due at a time; ends it, or plans anew.
    fn fire(&mut self, at: u32, due: i64, now: i64) {
        let Some(Some(flow)) = self.slots.get_mut(at as usize) else { return };
        for timer in TIMERS {
            if *flow.base.timers.of_mut(timer) == due && flow.fire(timer, due, now, &self.config) {
                self.end(at);
                return;
            }
        }
        flow.base.planned = NEVER;
        self.plan(at);
    }

    /// Puts a flow in the queue for the first of its timers, unless it comes up before that.
    #[inline(always)]
    fn plan(&mut self, at: u32) {
        let Some(flow) = self.flow_mut(at) else { return };
        let first = flow.base.timers.first();
        if first < flow.base.planned {
            flow.base.planned = first;
            let number = flow.base.number;
            self.enqueue(first, number, at);
        }
    }

    fn enqueue(&mut self, due: i64, number: u64, at: u32) {
        self.queue.push(Reverse((due, number, at)));
        self.due = self.due.min(due);
        if self.queue.len() > 2 * self.index.len() + 64 {
            let live = |(at, flow): (usize, &Option<Flow>)| {
                let base = &flow.as_ref()?.base;
                Some(Reverse((base.planned, base.number, at as u32)))
            };
            self.queue = self.slots.iter().enumerate().filter_map(live).collect();
        }
    }

    /// Whether the invariants hold.
    #[must_use]
    pub fn check(&self) -> bool {
        let plans: std::collections::HashSet<_> = self.queue.iter().map(|plan| plan.0).collect();
        let mut listed = 0;
        let (mut at, mut before) = (self.oldest, NIL);
        while let Some(flow) = self.flow(at) {
            let base = &flow.base;
            let found = self.index.find(base.hash, |other| other == at).is_some();
            let planned = base.planned <= base.timers.first() && plans.contains(&(base.planned, base.number, at));
            if !(found && planned && base.older == before && flow.check()) {
                return false;
            }
            listed += 1;
            (before, at) = (at, base.newer);
        }
        let live = self.slots.iter().flatten().count();
        self.newest == before
            && (listed, live) == (self.index.len(), self.index.len())
            && self.slots.len() == live + self.free.len()
            && live <= self.config.max as usize
            && self.index.check()
            && self.queue.iter().all(|plan| plan.0.0 >= self.due)
    }
}
