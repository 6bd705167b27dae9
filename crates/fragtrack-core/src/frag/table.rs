//! All fragment queues of one address family: key, clock, timers, memory, and the placing of a fragment.
//!
//! The rules are the kernel's (`ip_frag_queue`, `ip6_frag_queue`, `nf_ct_frag6_queue`), confirmed against a
//! running 6.18. What ends here is only taken out of the table and put on a list: the engine shows it to its
//! sink, then releases it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::held::{Held, Node, Record};
use super::index::{Index, NIL};
use super::key::{Multilinear, SipHash};
use super::order::Fit;
use super::order::pieces::Pieces;
use super::order::runs::Runs;
use super::queue::{Detail, ECN_SHIFT, FIRST, LAST, POISONED, Queue};
use crate::event::Slice;
use crate::config::{Config, CostModel, Duplicates, Path, Policy, Reclaim};
use crate::prefetch;
use crate::reason::Reason;
use crate::stats::KernelCounters;
use crate::wire::{Addresses, Family, Fragment};

/// Largest IP packet (IPv4), largest payload (IPv6).
pub const MAX_PACKET: u32 = 65_535;

/// What became of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is held.
    Held,
    /// It completed this queue, which has ended.
    Complete(u32),
    /// It alone is dropped.
    Dropped(Reason),
    /// It is dropped, and this queue has ended with it.
    Killed(Reason, u32),
    /// IPv6: dropped with a parameter problem of code 0 pointing here; its queue stays.
    Problem(Reason, u32),
    /// IPv6 netfilter: it passes on as if it were no fragment; its queue has ended.
    Passed(u32),
}

/// A queue that has ended by itself.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Which.
    pub queue: u32,
    /// Why.
    pub reason: Reason,
    /// Whether Linux would tell the sender, if the first fragment is there.
    pub icmp: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Timer {
    pub(super) queue: u32,
    pub(super) seq: u32,
    pub(super) deadline: i64,
}

/// The table.
///
/// Invariant: the index has exactly the live queues (`seq != 0`); `memory` is the sum of their costs; every
/// live queue has one timer with its `seq`, and timers are in the order of their deadlines.
pub struct Table {
    pub(crate) family: Family,
    policy: Policy,
    path: Path,
    duplicates: Duplicates,
    extent: crate::config::Extent,
    pub(super) reclaim: Reclaim,
    cost_model: CostModel,
    pub(super) limit: u64,
    max_dist: u32,
    timeout: i64,
    local: Option<Vec<(u32, u32)>>,
    detailed: bool,
    pub(super) hash: SipHash,
    spread: Multilinear,
    index: Index,
    /// The queue that the last fragment went to.
    latest: u32,
    pub(super) queues: Vec<Queue>,
    pub(super) wide: Vec<Addresses>,
    pub(crate) details: Vec<Detail>,
    free: Vec<u32>,
    /// The fragments of all queues.
    pub held: Held,
    runs: Runs,
    pieces: Vec<Pieces>,
    free_pieces: Vec<u32>,
    pub(super) timers: VecDeque<Timer>,
    pub(super) buckets: Vec<VecDeque<(u32, u32)>>,
    clock: i64,
    next_deadline: i64,
    pub(super) memory: u64,
    next_seq: u32,
    accepted: u64,
    sources: BTreeMap<(u32, u64), u32>,
    /// Queues that ended by themselves and were not shown yet.
    pub ended: Vec<Ended>,
    /// The kernel's counters.
    pub counters: KernelCounters,
}

/// How a fragment goes in (`linux`).
enum Put {
    Append,
    NewLast,
    Gap,
}

impl Table {
    /// An empty table. `detailed`: keep what reports need (times of last fragments).
    #[must_use]
    pub fn new(config: &Config, family: Family, detailed: bool) -> Self {
        let kernel_distance = family == Family::V4 && config.max_dist > 0;
        Self {
            family,
            policy: config.policy,
            path: config.path,
            duplicates: config.duplicates,
            extent: config.extent,
            reclaim: config.reclaim,
            cost_model: config.cost,
            limit: config.memory,
            max_dist: if kernel_distance { config.max_dist } else { 0 },
            timeout: if family == Family::V4 { config.timeout4 } else { config.timeout6 },
            local: config.local.clone(),
            detailed: detailed || kernel_distance || config.reclaim == Reclaim::Lru,
            hash: SipHash::new(config.hash_key),
            spread: Multilinear::new(config.hash_key),
            index: Index::new(),
            latest: NIL,
            queues: Vec::new(),
            wide: Vec::new(),
            details: Vec::new(),
            free: Vec::new(),
            held: Held::new(),
            runs: Runs::default(),
            pieces: Vec::new(),
            free_pieces: Vec::new(),
            timers: VecDeque::new(),
            buckets: Vec::new(),
            clock: i64::MIN,
            next_deadline: i64::MAX,
            memory: 0,
            next_seq: 0,
            accepted: 0,
            sources: BTreeMap::new(),
            ended: Vec::new(),
            counters: KernelCounters::default(),
        }
    }

    /// Hash of a fragment's key.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, f: &Fragment, addresses: &Addresses) -> u32 {
        match self.family {
            // Domain (51 bits), protocol (8) and identification (16) do not fit one word.
            Family::V4 => self.spread.hash([f.addr, f.context, u64::from(f.id)]),
            Family::V6 => {
                let [a, b, c, d] = *addresses;
                self.spread.hash([a, b, c, d, f.context, u64::from(f.id)])
            }
        }
    }

    /// First step of a look-up ahead of time: the line of the index.
    #[inline(always)]
    pub fn prefetch_index(&self, hash: u32) {
        self.index.prefetch(hash);
    }

    /// Second step: the queue it probably is, asked for.
    #[inline(always)]
    #[must_use]
    pub fn guess(&self, hash: u32) -> u32 {
        let guess = self.index.guess(hash);
        if let Some(queue) = self.queues.get(guess as usize) {
            prefetch::line(queue);
            if self.family == Family::V6
                && let Some(addresses) = self.wide.get(guess as usize)
            {
                prefetch::line(addresses);
            }
        }
        guess
    }

    /// Asks for the lines that a queue and a node made `ahead` fragments from now will be put in.
    #[inline(always)]
    pub fn prefetch_free(&self, ahead: usize) {
        self.held.prefetch_free(ahead);
        if let Some(queue) = self.free.len().checked_sub(ahead).and_then(|at| self.queues.get(*self.free.get(at)? as usize)) {
            prefetch::line(queue);
        }
    }

    /// The queue at `at`.
    #[inline(always)]
    #[must_use]
    pub fn queue(&self, at: u32) -> Option<&Queue> {
        self.queues.get(at as usize)
    }

    /// Its IPv6 addresses (zeros for IPv4).
    #[must_use]
    pub fn addresses(&self, at: u32) -> Addresses {
        self.wide.get(at as usize).copied().unwrap_or_default()
    }

    /// Its details (zeros if they are not kept).
    #[must_use]
    pub fn detail(&self, at: u32) -> Detail {
        self.details.get(at as usize).copied().unwrap_or_default()
    }

    /// Its pieces, if the policy keeps any.
    #[must_use]
    pub fn pieces(&self, queue: &Queue) -> Option<&Pieces> {
        if self.policy == Policy::Linux { None } else { self.pieces.get(queue.runs as usize) }
    }

    /// Live queues.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes in use by the cost model.
    #[must_use]
    pub const fn memory(&self) -> u64 {
        self.memory
    }

    /// Whether Linux would count here: the netfilter path of IPv6 keeps no counters.
    #[inline(always)]
    fn counts(&self) -> bool {
        self.family == Family::V4 || self.path == Path::Local
    }

    #[inline]
    pub(super) fn fail(&mut self) {
        if self.counts() {
            self.counters.reasm_fails += 1;
        }
    }

    // ---- time ----

    /// Moves the clock; what has run out ends. Whether anything ended.
    #[inline(always)]
    pub fn tick(&mut self, time: i64) -> bool {
        if time >= self.clock && time < self.next_deadline {
            self.clock = time;
            return false;
        }
        self.tick_slow(time)
    }

    #[inline(never)]
    fn tick_slow(&mut self, time: i64) -> bool {
        if time < self.clock {
            if self.clock.saturating_sub(time) <= self.timeout {
                return false;
            }
            // Another time altogether: nothing that is open can be trusted to belong to what comes.
            self.clock = time;
            while let Some(timer) = self.timers.pop_front() {
                if self.is_current(timer) {
                    self.expire(timer.queue, false);
                }
            }
        } else {
            self.clock = time;
            while let Some(timer) = self.timers.front().copied() {
                let current = self.is_current(timer);
                if current && timer.deadline > time {
                    break;
                }
                self.timers.pop_front();
                if current {
                    self.expire(timer.queue, true);
                }
            }
        }
        self.next_deadline = self.timers.front().map_or(i64::MAX, |timer| timer.deadline);
        !self.ended.is_empty()
    }

    pub(super) fn is_current(&self, timer: Timer) -> bool {
        self.queues.get(timer.queue as usize).is_some_and(|queue| queue.seq == timer.seq)
    }

    /// The timer of a queue has run out (`ip_expire`, `ip6frag_expire_frag_queue`).
    fn expire(&mut self, at: u32, icmp: bool) {
        let poisoned = self.queue(at).is_some_and(|queue| queue.flags & POISONED != 0);
        self.detach(at);
        if poisoned {
            self.release(at);
        } else {
            self.counters.reasm_timeout += 1;
            self.counters.reasm_fails += 1;
            self.ended.push(Ended { queue: at, reason: Reason::Timeout, icmp });
        }
    }

    fn start_timer(&mut self, queue: u32, seq: u32) {
        if self.timers.len() > 2 * self.len() + 1024 {
            let queues = &self.queues;
            self.timers.retain(|timer| queues.get(timer.queue as usize).is_some_and(|q| q.seq == timer.seq));
        }
        let deadline = self.clock.saturating_add(self.timeout);
        if self.timers.is_empty() {
            self.next_deadline = deadline;
        }
        self.timers.push_back(Timer { queue, seq, deadline });
        if self.reclaim == Reclaim::BucketOldest {
            self.enter_bucket(queue, seq);
        }
    }

    fn new_seq(&mut self) -> u32 {
        self.next_seq = if self.next_seq == u32::MAX { 1 } else { self.next_seq + 1 };
        self.next_seq
    }

    // ---- queues come and go ----

    const fn queue_cost(&self) -> u32 {
        match (self.cost_model, self.family) {
            (CostModel::Capture, _) => 128,
            (CostModel::Kernel, Family::V4) => 200,
            (CostModel::Kernel, Family::V6) => 184,
        }
    }

    #[inline(always)]
    fn fragment_cost(&self, captured: u32, packet: u32) -> u32 {
        match self.cost_model {
            CostModel::Capture => captured.saturating_add(192),
            CostModel::Kernel => kernel_cost(packet),
        }
    }

    #[inline(always)]
    fn create(&mut self, f: &Fragment, addresses: &Addresses, hash: u32, time: i64) -> u32 {
        let seq = self.new_seq();
        let cost = self.queue_cost();
        let queue = Queue {
            addr: f.addr,
            context: f.context,
            created: time,
            id: f.id,
            hash,
            head: NIL,
            runs: NIL,
            cost,
            run_end: 0,
            seq,
            len: 0,
            meat: 0,
            run_start: 0,
            flags: 0,
            opener: f.protocol,
        };
        self.memory += u64::from(cost);
        let at = self.put_queue(queue);
        if self.family == Family::V6 {
            set(&mut self.wide, at, *addresses);
        }
        if self.detailed {
            self.accepted += 1;
            let detail = Detail { first_time: time, last_time: time, last_seq: self.accepted, ..Detail::default() };
            set(&mut self.details, at, detail);
        }
        self.index.insert(hash, at);
        self.start_timer(at, seq);
        at
    }

    fn put_queue(&mut self, queue: Queue) -> u32 {
        if let Some(at) = self.free.pop() {
            if let Some(slot) = self.queues.get_mut(at as usize) {
                *slot = queue;
            }
            return at;
        }
        prefetch::push(&mut self.queues, queue);
        (self.queues.len() - 1) as u32
    }

    /// Takes a queue out of the table; its fragments stay until [`Table::release`].
    #[inline]
    pub(super) fn detach(&mut self, at: u32) {
        if let Some(queue) = self.queues.get_mut(at as usize) {
            queue.seq = 0;
            self.memory -= u64::from(queue.cost);
            let hash = queue.hash;
            self.index.remove(hash, at);
        }
    }

    /// Gives back an ended queue and its fragments; how many there were.
    #[inline]
    pub fn release(&mut self, at: u32) -> u64 {
        let Some(queue) = self.queues.get(at as usize).copied() else { return 0 };
        if queue.runs != NIL {
            if self.policy == Policy::Linux {
                self.runs.release(queue.runs);
            } else {
                set(&mut self.pieces, queue.runs, Pieces::default());
                self.free_pieces.push(queue.runs);
            }
        }
        self.free.push(at);
        self.held.release(queue.head)
    }

    /// The content of a live queue as an ended one of its own; the live one is left empty.
    fn split_off(&mut self, at: u32) -> Option<u32> {
        let base = self.queue_cost();
        let queue = self.queues.get_mut(at as usize)?;
        let mut ghost = *queue;
        ghost.seq = 0;
        queue.reset();
        self.memory -= u64::from(queue.cost - base);
        queue.cost = base;
        let (addresses, detail) = (self.addresses(at), self.detail(at));
        let ghost = self.put_queue(ghost);
        if self.family == Family::V6 {
            set(&mut self.wide, ghost, addresses);
        }
        if self.detailed {
            set(&mut self.details, ghost, detail);
        }
        Some(ghost)
    }

    /// Everything open ends.
    pub fn flush(&mut self) {
        while let Some(timer) = self.timers.pop_front() {
            if self.is_current(timer) {
                let poisoned = self.queue(timer.queue).is_some_and(|queue| queue.flags & POISONED != 0);
                self.detach(timer.queue);
                if poisoned {
                    self.release(timer.queue);
                } else {
                    self.ended.push(Ended { queue: timer.queue, reason: Reason::End, icmp: false });
                }
            }
        }
        // Nothing is open: time may start anew.
        self.clock = i64::MIN;
        self.next_deadline = i64::MAX;
    }

    // ---- a fragment arrives ----

    #[inline(always)]
    fn find(&self, f: &Fragment, addresses: &Addresses, hash: u32, guess: u32) -> Option<u32> {
        let same = |at: u32, queue: &Queue| {
            queue.addr == f.addr
                && queue.id == f.id
                && queue.context == f.context
                && (self.family == Family::V4 || self.wide.get(at as usize) == Some(addresses))
        };
        // There is one live queue with a key: if a guess is it, nothing more need be looked up.
        for guess in [self.latest, guess] {
            if self.queue(guess).is_some_and(|queue| same(guess, queue) && queue.seq != 0) {
                return Some(guess);
            }
        }
        self.index.find(hash, |at| self.queue(at).is_some_and(|queue| same(at, queue)))
    }

    /// Places a fragment that arrived at `time` (the clock has been moved before). `guess` is what [`Table::guess`]
    /// said a while ago, or [`NIL`].
    #[inline(always)]
    pub fn add(
        &mut self,
        f: &Fragment,
        addresses: &Addresses,
        (hash, guess): (u32, u32),
        record: Record,
        time: i64,
    ) -> Verdict {
        if self.counts() {
            self.counters.reasm_reqds += 1;
        }
        if (self.memory > self.limit || self.limit == 0) && !self.make_room(f, addresses) {
            self.fail();
            return Verdict::Dropped(Reason::Memory);
        }
        let mut found = self.find(f, addresses, hash, guess);
        if let Some(at) = found
            && let Some(queue) = self.queue(at)
        {
            let age = time.saturating_sub(queue.created);
            if age >= self.timeout || age < -self.timeout {
                self.expire(at, true);
                found = None;
            }
        }
        let at = match found {
            Some(at) => at,
            None => self.create(f, addresses, hash, time),
        };
        self.latest = at;
        if self.queue(at).is_some_and(|queue| queue.flags & POISONED != 0) {
            return Verdict::Dropped(Reason::Abandoned);
        }
        if self.max_dist > 0 {
            self.check_distance(at, f, time);
        }
        self.place(at, f, record, time)
    }

    /// `ip_frag_too_far`, `ip_frag_reinit`: too many fragments of the source came since the queue's last.
    #[cold]
    fn check_distance(&mut self, at: u32, f: &Fragment, time: i64) {
        if self.sources.len() > 2 * self.len() + 1024 {
            // A counter matters only between two fragments of one open queue.
            let open: BTreeSet<(u32, u64)> = (self.queues.iter())
                .filter(|queue| queue.seq != 0)
                .map(|queue| (queue.addresses4().0, queue.domain()))
                .collect();
            self.sources.retain(|source, _| open.contains(source));
        }
        let source = ((f.addr >> 32) as u32, f.context & 0x00ff_ffff_ffff_ffff);
        let counter = self.sources.entry(source).or_insert(0);
        *counter = counter.wrapping_add(1);
        let now = *counter;
        let Some(detail) = self.details.get_mut(at as usize) else { return };
        let distance = now.wrapping_sub(detail.rid);
        detail.rid = now;
        let holds = self.queue(at).is_some_and(|queue| queue.head != NIL);
        if !holds || distance <= self.max_dist {
            return;
        }
        if let Some(ghost) = self.split_off(at) {
            self.ended.push(Ended { queue: ghost, reason: Reason::TooFar, icmp: false });
        }
        self.fail();
        let seq = self.new_seq();
        if let Some(queue) = self.queues.get_mut(at as usize) {
            queue.seq = seq;
            queue.created = time;
        }
        self.start_timer(at, seq);
    }

    #[inline(always)]
    fn place(&mut self, at: u32, f: &Fragment, record: Record, time: i64) -> Verdict {
        let Some(queue) = self.queues.get(at as usize) else { return Verdict::Dropped(Reason::Memory) };
        let (start, mut end) = (f.offset, f.offset + f.length);
        let (mut flags, mut len) = (queue.flags, queue.len);
        let v6 = self.family == Family::V6;
        if v6 && end > MAX_PACKET {
            return self.too_long(at, f);
        }
        // Steps 1 and 2 come before the duplicate test: what they learn stays, even from a duplicate.
        if !f.more {
            if end < len || (flags & LAST != 0 && end != len) {
                return self.refuse(at, Reason::LastConflict);
            }
            flags |= LAST;
            len = end;
        } else {
            if end & 7 != 0 {
                if v6 {
                    return self.unaligned(at);
                }
                end &= !7;
            }
            if end > len {
                if flags & LAST != 0 {
                    return self.refuse(at, Reason::PastLast);
                }
                len = end;
            }
        }
        if end <= start {
            self.learn(at, flags, len);
            return self.refuse(at, Reason::Empty);
        }
        if self.policy != Policy::Linux {
            return self.place_piece(at, f, &record, time, end, flags, len);
        }
        let put = if start >= queue.run_end {
            // The usual case, also for an empty queue: behind everything.
            if start == queue.run_end && queue.run_end != 0 { Put::Append } else { Put::NewLast }
        } else {
            let fit = if end > queue.run_end {
                Fit::Across
            } else if start >= u32::from(queue.run_start) {
                Fit::Inside
            } else if end > u32::from(queue.run_start) {
                Fit::Across
            } else {
                self.runs.fit(queue.runs, start, end)
            };
            match fit {
                Fit::Free => Put::Gap,
                Fit::Inside => {
                    self.learn(at, flags, len);
                    return Verdict::Dropped(Reason::Duplicate);
                }
                Fit::Across => return self.overlap(at),
            }
        };
        let (runs, run_start, run_end) = match put {
            Put::Append => (queue.runs, queue.run_start, end),
            Put::NewLast if queue.run_end == 0 => (NIL, start as u16, end),
            Put::NewLast => {
                let runs = self.runs.insert(queue.runs, u32::from(queue.run_start), queue.run_end);
                (runs, start as u16, end)
            }
            Put::Gap => (self.runs.insert(queue.runs, start, end), queue.run_start, queue.run_end),
        };
        let cost = self.fragment_cost(record.captured, record.packet);
        let Some(queue) = self.queues.get_mut(at as usize) else { return Verdict::Dropped(Reason::Memory) };
        let cost = cost.min(u32::MAX - queue.cost);
        let first = queue.head == NIL;
        queue.head = self.held.add(Node::new(&record, start, end - start, f.header, f.df, queue.head));
        queue.runs = runs;
        queue.run_start = run_start;
        queue.run_end = run_end;
        queue.meat += end - start;
        queue.cost += cost;
        queue.len = len;
        queue.flags = flags | 1 << (f.ecn + ECN_SHIFT) | u8::from(start == 0) * FIRST;
        let complete = queue.is_complete();
        self.memory += u64::from(cost);
        if self.detailed {
            self.note(at, f, end, time, first);
        }
        if complete { self.complete(at) } else { Verdict::Held }
    }

    /// Any policy but `linux`: pieces in a tree.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn place_piece(
        &mut self,
        at: u32,
        f: &Fragment,
        record: &Record,
        time: i64,
        end: u32,
        flags: u8,
        len: u32,
    ) -> Verdict {
        let start = f.offset;
        let Some(queue) = self.queues.get(at as usize).copied() else { return Verdict::Dropped(Reason::Memory) };
        let none = Pieces::default();
        let pieces = self.pieces.get(queue.runs as usize).unwrap_or(&none);
        let plan = if self.policy == Policy::Rfc5722 {
            match (pieces.fit(start, end), self.duplicates) {
                (Fit::Free, _) => {}
                (Fit::Inside, Duplicates::Ignore) => {
                    self.learn(at, flags, len);
                    return Verdict::Dropped(Reason::Duplicate);
                }
                (Fit::Inside, Duplicates::Discard) | (Fit::Across, _) => return self.overlap(at),
            }
            pieces.plan(Policy::First, self.extent, start, end)
        } else {
            pieces.plan(self.policy, self.extent, start, end)
        };
        if plan.keep.is_empty() && plan.cut.is_empty() {
            self.learn(at, flags, len);
            return Verdict::Dropped(Reason::Duplicate);
        }
        let cost = self.fragment_cost(record.captured, record.packet).min(u32::MAX - queue.cost);
        let node = self.held.add(Node::new(record, start, end - start, f.header, f.df, queue.head));
        let first = queue.head == NIL;
        let runs = if queue.runs != NIL {
            queue.runs
        } else if let Some(free) = self.free_pieces.pop() {
            free
        } else {
            self.pieces.push(Pieces::default());
            (self.pieces.len() - 1) as u32
        };
        let covered = self.pieces.get_mut(runs as usize).map_or(0, |pieces| {
            pieces.commit(&plan, node, start, end);
            pieces.covered()
        });
        let Some(queue) = self.queues.get_mut(at as usize) else { return Verdict::Dropped(Reason::Memory) };
        queue.head = node;
        queue.runs = runs;
        queue.meat = covered;
        queue.cost += cost;
        queue.len = len;
        queue.flags = flags | 1 << (f.ecn + ECN_SHIFT) | u8::from(start == 0) * FIRST;
        let complete = queue.is_complete();
        self.memory += u64::from(cost);
        if self.detailed {
            self.note(at, f, end, time, first);
        }
        if complete { self.complete(at) } else { Verdict::Held }
    }

    /// What a fragment tells about the end of its datagram stays, though it is dropped.
    #[inline]
    fn learn(&mut self, at: u32, flags: u8, len: u32) {
        if let Some(queue) = self.queues.get_mut(at as usize) {
            (queue.flags, queue.len) = (flags, len);
        }
    }

    #[inline(never)]
    fn note(&mut self, at: u32, f: &Fragment, end: u32, time: i64, first: bool) {
        self.accepted += 1;
        if let Some(detail) = self.details.get_mut(at as usize) {
            let size = (f.header + end - f.offset).min(MAX_PACKET) as u16;
            if first {
                detail.first_time = time;
            }
            detail.last_time = time;
            detail.last_seq = self.accepted;
            detail.max_size = detail.max_size.max(size);
            if f.df {
                detail.max_df_size = detail.max_df_size.max(size);
            }
        }
    }

    /// A refusal: the queue goes too, but not on the netfilter path of IPv6.
    #[inline(never)]
    fn refuse(&mut self, at: u32, reason: Reason) -> Verdict {
        if self.family == Family::V6 && self.path == Path::Netfilter {
            return Verdict::Dropped(reason);
        }
        self.fail();
        self.detach(at);
        Verdict::Killed(reason, at)
    }

    /// An overlap where the policy forbids it.
    #[inline(never)]
    fn overlap(&mut self, at: u32) -> Verdict {
        self.fail();
        if self.family == Family::V4 {
            self.counters.reasm_overlaps += 1;
        }
        if self.policy == Policy::Rfc5722
            && let Some(ghost) = self.split_off(at)
        {
            self.learn(at, POISONED, 0);
            return Verdict::Killed(Reason::Overlap, ghost);
        }
        self.detach(at);
        Verdict::Killed(Reason::Overlap, at)
    }

    /// IPv6: beyond 65,535 bytes.
    #[inline(never)]
    fn too_long(&mut self, _at: u32, f: &Fragment) -> Verdict {
        match self.path {
            Path::Netfilter => Verdict::Dropped(Reason::Oversize),
            // The pointer is to the offset field, 2 bytes into the fragment header.
            Path::Local => {
                self.counters.in_hdr_errors += 1;
                Verdict::Problem(Reason::Oversize, f.header - 6)
            }
        }
    }

    /// IPv6: more fragments follow, but the length is no multiple of 8.
    #[inline(never)]
    fn unaligned(&mut self, at: u32) -> Verdict {
        match self.path {
            Path::Netfilter => {
                self.detach(at);
                Verdict::Passed(at)
            }
            // The pointer is to the payload length.
            Path::Local => {
                self.counters.in_hdr_errors += 1;
                Verdict::Problem(Reason::Unaligned, 4)
            }
        }
    }

    /// Every byte is there (`ip_frag_reasm`, `ip6_frag_reasm`).
    #[inline(always)]
    fn complete(&mut self, at: u32) -> Verdict {
        let Some(queue) = self.queues.get(at as usize).copied() else { return Verdict::Dropped(Reason::Memory) };
        self.detach(at);
        if ecn_of(queue.ecn()).is_none() {
            self.fail();
            return Verdict::Killed(Reason::Ecn, at);
        }
        // Only long datagrams are worth a look at their first header.
        if queue.len > MAX_PACKET - 60 || self.family == Family::V6 {
            let before = self.first_node(&queue).map_or(0, |node| node.header() as u32);
            let headers = if self.family == Family::V4 { before } else { before.saturating_sub(48) };
            if headers + queue.len > MAX_PACKET {
                self.fail();
                return Verdict::Killed(Reason::Oversize, at);
            }
        }
        if self.counts() {
            self.counters.reasm_oks += 1;
        }
        Verdict::Complete(at)
    }

    /// The fragment that owns byte 0.
    #[must_use]
    pub fn first_node(&self, queue: &Queue) -> Option<&Node> {
        if let Some(pieces) = self.pieces(queue) {
            let (start, span) = pieces.iter().next()?;
            return if start == 0 { self.held.node(span.node) } else { None };
        }
        self.held.list(queue.head).map(|(_, node)| node).find(|node| node.start == 0)
    }

    /// Whether the result may not be fragmented: a largest fragment said so (`max_df_size`).
    #[must_use]
    pub fn dont_fragment(&self, at: u32) -> bool {
        if self.max_dist > 0 {
            // These sizes outlive a reset of the queue, as in the kernel.
            let detail = self.detail(at);
            return detail.max_df_size == detail.max_size;
        }
        let Some(queue) = self.queue(at) else { return false };
        let (mut largest, mut largest_df) = (0, 0);
        for (_, node) in self.held.list(queue.head) {
            largest = largest.max(node.size());
            if node.df() {
                largest_df = largest_df.max(node.size());
            }
        }
        largest == largest_df
    }

    /// Whether Linux would tell the sender of a timeout (IPv4): on the netfilter path only for its own addresses.
    #[must_use]
    pub fn may_answer(&self, queue: &Queue) -> bool {
        let (_, destination) = queue.addresses4();
        match (&self.local, self.path) {
            (Some(own), Path::Netfilter) => own.iter().any(|(net, mask)| destination & mask == *net),
            _ => true,
        }
    }

    /// The ranges of a datagram in order, each with the fragment that supplies it.
    #[inline(always)]
    pub fn slices(&self, queue: &Queue, out: &mut Vec<Slice>) {
        out.clear();
        if let Some(pieces) = self.pieces(queue) {
            out.extend(pieces.iter().map(|(start, span)| Slice { start, end: span.end, node: span.node }));
            return;
        }
        let mut sorted = true;
        let mut behind = u32::MAX;
        for (at, node) in self.held.list(queue.head) {
            let (start, end) = (u32::from(node.start), node.end());
            sorted &= end <= behind;
            behind = start;
            out.push(Slice { start, end, node: at });
        }
        if sorted {
            out.reverse();
        } else {
            out.sort_unstable_by_key(|slice| slice.start);
        }
    }

    /// Asserts the invariants from scratch.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let (mut memory, mut live, mut nodes) = (0, 0, 0);
        for (at, queue) in self.queues.iter().enumerate().filter(|(_, queue)| queue.seq != 0) {
            live += 1;
            memory += u64::from(queue.cost);
            let at = at as u32;
            if self.index.find(queue.hash, |found| found == at).is_none() {
                return Err("a live queue is not in the index");
            }
            if self.timers.iter().filter(|timer| timer.queue == at && timer.seq == queue.seq).count() != 1 {
                return Err("a live queue does not have one timer");
            }
            let (mut bytes, mut highest, mut count) = (0, 0, 0);
            for (_, node) in self.held.list(queue.head) {
                count += 1;
                bytes += u32::from(node.length);
                highest = highest.max(node.end());
            }
            nodes += count;
            let covered = if let Some(pieces) = self.pieces(queue) {
                if !pieces.check() {
                    return Err("pieces overlap, are empty, or are counted wrongly");
                }
                pieces.covered()
            } else if self.policy == Policy::Linux {
                let mut runs = self.runs.list(queue.runs);
                if queue.run_end != 0 {
                    runs.push((u32::from(queue.run_start), queue.run_end));
                }
                if runs.iter().zip(runs.iter().skip(1)).any(|((_, end), (start, _))| end > start)
                    || runs.iter().any(|(start, end)| start >= end)
                {
                    return Err("runs overlap, are empty, or are out of order");
                }
                let covered = runs.iter().map(|(start, end)| end - start).sum();
                if covered != bytes {
                    return Err("runs and fragments do not hold the same bytes");
                }
                covered
            } else {
                0
            };
            if covered != queue.meat {
                return Err("meat is not the number of bytes held");
            }
            if highest > queue.len {
                return Err("a byte is held beyond the length");
            }
        }
        if live != self.index.len() || !self.index.check() {
            return Err("the index has other queues than the live ones");
        }
        if memory != self.memory {
            return Err("memory is not the sum of the costs");
        }
        if !self.ended.is_empty() || nodes != self.held.used().0 {
            return Err("a fragment belongs to no queue");
        }
        if self.timers.iter().zip(self.timers.iter().skip(1)).any(|(a, b)| a.deadline > b.deadline) {
            return Err("timers are out of order");
        }
        Ok(())
    }
}

/// Writes a slot of a column that grows with the queues.
#[inline(always)]
fn set<T: Default + Clone>(column: &mut Vec<T>, at: u32, value: T) {
    let at = at as usize;
    if at >= column.len() {
        column.resize(at + 1, T::default());
    }
    if let Some(slot) = column.get_mut(at) {
        *slot = value;
    }
}

/// Buffer size of a packet of `length` bytes written to a TUN device of Linux 6.18 (measured).
#[must_use]
pub const fn kernel_cost(length: u32) -> u32 {
    match length {
        0..=192 => 832,
        193..=640 => 1280,
        641..=1664 => 2304,
        1665..=3712 => 4352,
        3713..=7808 => 8448,
        _ => 8448 + (length - 7808).div_ceil(4096) * 4096,
    }
}

/// The code point of the result for a set of code points (RFC 3168 section 5.3, `ip_frag_ecn_table`): what is
/// OR-ed into the first fragment's; `None` if they must not occur together.
#[must_use]
pub const fn ecn_of(seen: u8) -> Option<u8> {
    const NOT_ECT: u8 = 1;
    const CE: u8 = 1 << 3;
    if seen & NOT_ECT != 0 && seen != NOT_ECT {
        return None;
    }
    if seen & CE != 0 && seen != CE { Some(3) } else { Some(0) }
}
