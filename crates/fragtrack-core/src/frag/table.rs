//! All fragment queues of one address family: key, clock, timers, memory, and the placing of a fragment.
//!
//! The rules are the kernel's (`ip_frag_queue`, `ip6_frag_queue`, `nf_ct_frag6_queue`), confirmed against a
//! running 6.18. What ends here is only taken out of the table and put on a list: the engine shows it to its
//! sink, then releases it.

use std::collections::{BTreeMap, VecDeque};

use super::held::Held;
use super::index::{Index, NIL};
use super::key::{Multilinear, SipHash};
use super::order::pieces::Pieces;
use super::order::runs::Runs;
use super::queue::{Detail, Queue};
use super::reclaim::Bucket;
use super::time::Timer;
use crate::config::{Config, CostModel, Duplicates, Extent, Path, Policy, Reclaim};
use crate::prefetch;
use crate::reason::Reason;
use crate::stats::KernelCounters;
use crate::wire::{Addresses, Family, Fragment};

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

/// The table.
///
/// Invariant: the index has exactly the live queues (`seq != 0`); `memory` is the sum of their costs; every
/// live queue has one timer with its `seq`, and timers are in the order of their deadlines.
pub struct Table {
    pub(crate) family: Family,
    pub(super) policy: Policy,
    pub(super) path: Path,
    pub(super) duplicates: Duplicates,
    pub(super) extent: Extent,
    pub(super) reclaim: Reclaim,
    pub(super) cost_model: CostModel,
    pub(super) limit: u64,
    pub(super) max_dist: u32,
    pub(super) timeout: i64,
    pub(super) local: Option<Vec<(u32, u32)>>,
    pub(super) detailed: bool,
    pub(super) hash: SipHash,
    pub(super) spread: Multilinear,
    pub(super) index: Index,
    /// The queue that the last fragment went to.
    pub(super) latest: u32,
    pub(super) queues: Vec<Queue>,
    pub(super) wide: Vec<Addresses>,
    pub(crate) details: Vec<Detail>,
    pub(super) free: Vec<u32>,
    /// The fragments of all queues.
    pub held: Held,
    pub(super) runs: Runs,
    pub(super) pieces: Vec<Pieces>,
    pub(super) free_pieces: Vec<u32>,
    pub(super) timers: VecDeque<Timer>,
    pub(super) buckets: Vec<Bucket>,
    pub(super) clock: i64,
    pub(super) next_deadline: i64,
    pub(super) memory: u64,
    pub(super) next_seq: u32,
    pub(super) accepted: u64,
    pub(super) sources: BTreeMap<(u32, u64), u32>,
    /// Queues that ended by themselves and were not shown yet.
    pub ended: Vec<Ended>,
    /// The kernel's counters.
    pub counters: KernelCounters,
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
        if let Some(queue) =
            self.free.len().checked_sub(ahead).and_then(|at| self.queues.get(*self.free.get(at)? as usize))
        {
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
    pub(super) fn counts(&self) -> bool {
        self.family == Family::V4 || self.path == Path::Local
    }

    #[inline]
    pub(super) fn fail(&mut self) {
        if self.counts() {
            self.counters.reasm_fails += 1;
        }
    }

    pub(super) const fn queue_cost(&self) -> u32 {
        match (self.cost_model, self.family) {
            (CostModel::Capture, _) => 128,
            (CostModel::Kernel, Family::V4) => 200,
            (CostModel::Kernel, Family::V6) => 184,
        }
    }

    #[inline(always)]
    pub(super) fn create(&mut self, f: &Fragment, addresses: &Addresses, hash: u32, time: i64) -> u32 {
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

    pub(super) fn put_queue(&mut self, queue: Queue) -> u32 {
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
        let Some((runs, head)) = self.queue(at).map(|queue| (queue.runs, queue.head)) else { return 0 };
        if runs != NIL {
            if self.policy == Policy::Linux {
                self.runs.release(runs);
            } else {
                set(&mut self.pieces, runs, Pieces::default());
                self.free_pieces.push(runs);
            }
        }
        self.free.push(at);
        self.held.release(head)
    }

    /// The content of a live queue as an ended one of its own; the live one is left empty.
    pub(super) fn split_off(&mut self, at: u32) -> Option<u32> {
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

    #[inline(always)]
    pub(super) fn find(&self, f: &Fragment, addresses: &Addresses, hash: u32, guess: u32) -> Option<u32> {
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
}

/// Writes a slot of a column that grows with the queues.
#[inline(always)]
pub(super) fn set<T: Default + Clone>(column: &mut Vec<T>, at: u32, value: T) {
    let at = at as usize;
    if at >= column.len() {
        column.resize(at + 1, T::default());
    }
    if let Some(slot) = column.get_mut(at) {
        *slot = value;
    }
}
