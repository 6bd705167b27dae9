//! What happens at the memory limit. One arm per way; all of them end queues in the order they were made,
//! or were last added to.

use std::collections::VecDeque;

use super::queue::DOMAIN;
use super::table::Table;
use super::time::is_live;
use crate::config::Reclaim;
use crate::reason::Reason;
use crate::wire::{Addresses, Family, Fragment};

/// Buckets of `bucket-oldest`: those of the kernel's table (`INETFRAGS_HASHSZ`, Linux 3.9 to 4.16).
const BUCKETS: usize = 1024;

/// Queues whose lines are asked for before they are evicted.
const EVICT_AHEAD: usize = 8;

/// Prefixes that may hold more than an eighth of the limit: there are at most eight, and a few more are kept.
const CANDIDATES: usize = 16;

/// The source prefixes that hold the most, found in one pass over any number (Misra and Gries 1982): whoever holds
/// more than a seventeenth of everything is among the candidates; a second pass counts exactly.
#[derive(Default)]
struct Heavy {
    prefixes: [u64; CANDIDATES],
    weights: [u64; CANDIDATES],
}

impl Heavy {
    fn note(&mut self, prefix: u64, weight: u64) {
        let pairs = self.prefixes.iter_mut().zip(&mut self.weights);
        let mut least = u64::MAX;
        for (held, sum) in pairs {
            if *held == prefix && *sum != 0 {
                *sum += weight;
                return;
            }
            least = least.min(*sum);
        }
        let taken = least.min(weight);
        for sum in &mut self.weights {
            *sum -= taken;
        }
        if weight > taken
            && let Some((held, sum)) = self.prefixes.iter_mut().zip(&mut self.weights).find(|(_, sum)| **sum == 0)
        {
            (*held, *sum) = (prefix, weight - taken);
        }
    }

    /// The candidates are known; their exact weights are not. A prefix that is no candidate any more is one all
    /// the same: that does no harm.
    fn forget_weights(&mut self) {
        self.weights = [0; CANDIDATES];
        // Each once: a slot that was given up may still name a prefix that came back elsewhere.
        for at in 1..CANDIDATES {
            if let Some((before, [this, ..])) = self.prefixes.split_at_mut_checked(at)
                && before.contains(this)
            {
                *this = u64::MAX;
            }
        }
    }

    fn add(&mut self, prefix: u64, weight: u64) {
        for (held, sum) in self.prefixes.iter().zip(&mut self.weights) {
            *sum += if *held == prefix { weight } else { 0 };
        }
    }

    fn any_above(&self, share: u64) -> bool {
        self.weights.iter().any(|sum| *sum > share)
    }

    /// Whether `prefix` holds more than its share; then `weight` less, from now on.
    fn take_above(&mut self, share: u64, prefix: u64, weight: u64) -> bool {
        for (held, sum) in self.prefixes.iter().zip(&mut self.weights) {
            if *held == prefix && *sum > share {
                *sum -= weight;
                return true;
            }
        }
        false
    }
}

/// The queues of a bucket, oldest first; those that ended are swept when there are many.
#[derive(Default)]
pub(super) struct Bucket {
    entries: VecDeque<(u32, u32)>,
    prune_at: usize,
}

impl Table {
    /// The limit is passed: makes room as configured. Whether the fragment may go on.
    #[cold]
    pub(super) fn make_room(&mut self, f: &Fragment, addresses: &Addresses) -> bool {
        match self.reclaim {
            Reclaim::Refuse => false,
            Reclaim::Lru => {
                let mut order: Vec<(u64, u32)> = self.open().map(|(at, _)| (self.detail(at).last_seq, at)).collect();
                order.sort_unstable();
                for (_, at) in order {
                    if self.memory <= self.low() {
                        break;
                    }
                    self.evict(at);
                }
                true
            }
            Reclaim::Fair => {
                self.evict_fairly();
                true
            }
            Reclaim::BucketOldest => {
                let bucket = self.bucket(f.addr, f.context, f.id, addresses);
                while self.memory > self.limit
                    && let Some((at, seq)) = self.buckets.get_mut(bucket).and_then(|bucket| bucket.entries.pop_front())
                {
                    if is_live(&self.queues, at, seq) {
                        self.evict(at);
                    }
                }
                self.memory <= self.limit && self.limit != 0
            }
        }
    }

    /// Eviction stops here: a quarter below the limit, so that it does not run for each fragment.
    const fn low(&self) -> u64 {
        self.limit / 4 * 3 + self.limit % 4 * 3 / 4
    }

    fn evict(&mut self, at: u32) {
        if self.end(at, Reason::Evicted, false) {
            self.fail();
        }
    }

    /// First the oldest of the source prefixes that hold more than an eighth of the limit, then the oldest.
    ///
    /// A sender who floods from one network pays for it; a flood from everywhere has nobody to charge, and
    /// then age tells: honest datagrams are whole within milliseconds.
    fn evict_fairly(&mut self) {
        let (low, share) = (self.low(), self.limit / 8);
        let mut heavy = Heavy::default();
        for (at, queue) in self.open() {
            heavy.note(self.prefix(at, queue.addr), u64::from(queue.cost));
        }
        heavy.forget_weights();
        for (at, queue) in self.open() {
            heavy.add(self.prefix(at, queue.addr), u64::from(queue.cost));
        }
        if heavy.any_above(share) {
            let open: Vec<u32> = self.open().map(|(at, _)| at).collect();
            for at in open {
                if self.memory <= low {
                    return;
                }
                let Some(queue) = self.queue(at) else { continue };
                let (prefix, cost) = (self.prefix(at, queue.addr), u64::from(queue.cost));
                if heavy.take_above(share, prefix, cost) {
                    self.evict(at);
                }
            }
        }
        while self.memory > low
            && let Some(timer) = self.timers.pop_front()
        {
            if let Some(soon) = self.timers.get(EVICT_AHEAD)
                && let Some(queue) = self.queue(soon.queue)
            {
                self.index.prefetch(queue.hash);
            }
            if self.is_current(timer) {
                self.evict(timer.queue);
            }
        }
    }

    /// The source's network: /24 or /48.
    fn prefix(&self, at: u32, addr: u64) -> u64 {
        match self.family {
            Family::V4 => addr >> 40,
            Family::V6 => {
                let [high, ..] = self.addresses(at);
                high >> 16
            }
        }
    }

    fn bucket(&self, addr: u64, context: u64, id: u32, addresses: &Addresses) -> usize {
        let domain = context & DOMAIN;
        let hash = match self.family {
            Family::V4 => self.hash.hash([addr, domain, u64::from(id) | context >> 56 << 32 | 4 << 40]),
            Family::V6 => {
                let [a, b, c, d] = *addresses;
                self.hash.hash([a, b, c, d, domain, u64::from(id) | 6 << 40])
            }
        };
        hash as usize & (BUCKETS - 1)
    }

    pub(super) fn enter_bucket(&mut self, at: u32, seq: u32) {
        if self.buckets.is_empty() {
            self.buckets.resize_with(BUCKETS, Default::default);
        }
        let Some(queue) = self.queue(at).copied() else { return };
        let bucket = self.bucket(queue.addr, queue.context, queue.id, &self.addresses(at));
        let queues = &self.queues;
        if let Some(Bucket { entries, prune_at }) = self.buckets.get_mut(bucket) {
            if entries.len() >= *prune_at {
                entries.retain(|(at, seq)| is_live(queues, *at, *seq));
                *prune_at = 2 * entries.len().max(8);
            }
            entries.push_back((at, seq));
        }
    }
}
