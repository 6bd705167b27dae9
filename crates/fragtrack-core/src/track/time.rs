//! Time passes, and room is made: how connections end that no packet ends.

use super::flow::{Flow, bit};
use super::flows::RANGE;
use super::timers::FURTHEST;
use super::tracker::Tracker;
use super::verdict::End;

const SECOND: i64 = 1_000_000_000;
/// The clock goes no further (year 2194), so that every deadline fits.
const LATEST: i64 = i64::MAX - ((1 << 31) - 1) * SECOND;

impl Tracker {
    /// Time passes up to a packet.
    #[inline(always)]
    pub(super) fn pass_time(&mut self, time: i64) {
        let time = time.min(LATEST);
        if time > self.now {
            self.now = time;
            // In this second nothing was swept yet.
            if time >= self.turn {
                self.turn_second();
            }
        }
    }

    /// Another second, or the first one.
    #[inline(never)]
    fn turn_second(&mut self) {
        let second = self.now.div_euclid(SECOND);
        self.turn = second.saturating_add(1).saturating_mul(SECOND);
        if core::mem::replace(&mut self.begun, true) {
            self.sweep();
        } else {
            self.timers.begin(second);
        }
    }

    /// Time passes without a packet.
    pub fn advance(&mut self, time: i64) {
        let begun = self.begun;
        self.pass_time(time);
        if begun {
            self.sweep();
        }
    }

    /// Ends what has run out.
    #[inline(never)]
    fn sweep(&mut self) {
        let mut due = core::mem::take(&mut self.due);
        due.clear();
        self.timers.take(self.now.div_euclid(SECOND), &mut due);
        let mut over = Vec::new();
        for slot in &due {
            let Some(flow) = self.flows.at(*slot) else { continue };
            let look = self.next_look(flow);
            if flow.deadline <= self.now {
                over.push(*slot);
            }
            self.timers.add(*slot, look);
        }
        self.due = due;
        // Those that run out later within this second stand in the next one.
        let next = self.timers.second().saturating_add(1);
        let late = |flow: &Flow| flow.deadline <= self.now;
        over.extend(self.timers.at(next).filter(|slot| self.flows.at(*slot).is_some_and(late)));
        over.sort_unstable();
        over.dedup();
        self.expire_all(over);
        if core::mem::take(&mut self.squeeze) && !self.settled {
            self.squeeze_out();
        }
    }

    /// In the order in which they ran out.
    fn expire_all(&mut self, mut slots: Vec<u32>) {
        let order = |slot: &u32| (self.flows.at(*slot).map_or(0, |flow| flow.deadline), self.id(*slot));
        slots.sort_by_cached_key(order);
        slots.into_iter().for_each(|slot| self.expire(slot));
    }

    /// The table was full: what may go goes, the oldest first, while more than 95 % are in use (`gc_worker`).
    fn squeeze_out(&mut self) {
        let candidates: Vec<u32> =
            self.flows.live().filter(|slot| self.flows.at(*slot).is_some_and(Flow::may_go)).collect();
        self.settled = candidates.is_empty();
        for slot in self.by_number(candidates) {
            if self.flows.len() as u64 * 100 <= u64::from(self.config.max) * 95 {
                return;
            }
            self.drop_one(slot, 0);
        }
    }

    /// The second in which a connection is to be looked at.
    pub(super) fn next_look(&self, flow: &Flow) -> i64 {
        let second = self.now.div_euclid(SECOND);
        let due = flow.deadline.div_euclid(SECOND).max(second.saturating_add(1));
        due.min(second.saturating_add(self.config.timeouts.shortest(flow.protocol).clamp(1, FURTHEST)))
    }

    pub(super) fn expire(&mut self, slot: u32) {
        let Some(flow) = self.flows.at(slot) else { return };
        let (end, time) = (flow.end(true), flow.deadline);
        self.end(slot, end, time, 0);
    }

    /// Makes room near a bucket (`early_drop`); whether there was something to drop.
    #[inline(never)]
    pub(super) fn drop_early(&mut self, hash: u32, frame: u64) -> bool {
        let mut bucket = core::mem::take(&mut self.near);
        let mut dropped = false;
        for ahead in 0..RANGE {
            bucket.clear();
            bucket.extend(self.flows.near(hash, ahead));
            bucket.sort_unstable_by_key(|slot| self.id(*slot));
            // Those that ran out end first, and do not count.
            bucket.retain(|slot| {
                let Some(flow) = self.flows.at(*slot) else { return false };
                let (over, assured) = (flow.deadline <= self.now, flow.has(bit::ASSURED));
                if over {
                    self.expire(*slot);
                }
                !over && !assured
            });
            bucket.iter().for_each(|slot| self.drop_one(*slot, frame));
            if !bucket.is_empty() {
                dropped = true;
                break;
            }
        }
        self.near = bucket;
        dropped
    }

    fn drop_one(&mut self, slot: u32, frame: u64) {
        let counters = &mut self.totals.counters;
        counters.early_drop = counters.early_drop.wrapping_add(1);
        self.end(slot, End::EarlyDrop, self.now, frame);
    }

    fn by_number(&self, mut slots: Vec<u32>) -> Vec<u32> {
        slots.sort_unstable_by_key(|slot| self.id(*slot));
        slots
    }
}
