//! What happens at the memory limit. One arm per way; all of them end queues in the order they were made,
//! or were last added to.

use std::collections::{BTreeMap, VecDeque};

use super::index::NIL;
use super::queue::DOMAIN;
use super::table::Table;
use super::time::is_live;
use crate::config::Reclaim;
use crate::reason::Reason;
use crate::wire::{Addresses, Family, Fragment};

/// Buckets of `bucket-oldest`: those of the kernel's table (`INETFRAGS_HASHSZ`, Linux 3.9 to 4.16).
const BUCKETS: usize = 1024;

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
        let mut open: Vec<(u32, u64)> = Vec::with_capacity(self.len());
        let mut usage: BTreeMap<u64, u64> = BTreeMap::new();
        for (at, queue) in self.open() {
            let prefix = self.prefix(at, queue.addr);
            *usage.entry(prefix).or_insert(0) += u64::from(queue.cost);
            open.push((at, prefix));
        }
        let (low, share) = (self.low(), self.limit / 8);
        for (at, prefix) in &mut open {
            if self.memory <= low {
                return;
            }
            let cost = self.queue(*at).map_or(0, |queue| u64::from(queue.cost));
            if let Some(used) = usage.get_mut(prefix)
                && *used > share
            {
                *used -= cost;
                self.evict(*at);
                *at = NIL;
            }
        }
        for (at, _) in open {
            if self.memory <= low {
                return;
            }
            if at != NIL {
                self.evict(at);
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
