//! Time: the clock of a table, and the timers of its queues (`ip_expire`, `ip6frag_expire_frag_queue`).
//!
//! Time is the capture's. It does not run backward for small steps, since captures are not perfectly sorted; a step
//! back by more than the timeout is another epoch, and what is open is given up. Deadlines never fall along the order
//! of creation, so one queue of timers does; entries of queues that ended are skipped, and swept once they are many.

use super::queue::{POISONED, Queue};
use super::table::{Ended, Table};
use crate::config::Reclaim;
use crate::reason::Reason;

/// The timer of a queue: stale once the queue's `seq` is another.
#[derive(Clone, Copy)]
pub(super) struct Timer {
    pub(super) queue: u32,
    pub(super) seq: u32,
    /// The clock when it was started. (A deadline might not fit: times near the end of their range occur.)
    pub(super) start: i64,
}

/// Whether queue `at` is still the one that was made as number `seq`.
pub(super) fn is_live(queues: &[Queue], at: u32, seq: u32) -> bool {
    queues.get(at as usize).is_some_and(|queue| queue.seq == seq)
}

impl Table {
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
                if current && time.saturating_sub(timer.start) < self.timeout {
                    break;
                }
                self.timers.pop_front();
                if current {
                    self.expire(timer.queue, true);
                }
            }
        }
        self.next_deadline = self.timers.front().map_or(i64::MAX, |timer| timer.start.saturating_add(self.timeout));
        !self.ended.is_empty()
    }

    pub(super) fn is_current(&self, timer: Timer) -> bool {
        is_live(&self.queues, timer.queue, timer.seq)
    }

    /// The timer of a queue has run out (`ip_expire`, `ip6frag_expire_frag_queue`).
    pub(super) fn expire(&mut self, at: u32, icmp: bool) {
        if self.end(at, Reason::Timeout, icmp) {
            self.counters.reasm_timeout += 1;
            self.counters.reasm_fails += 1;
        }
    }

    /// Ends a queue by itself. A poisoned one ends in silence, uncounted: it was told of when it was poisoned.
    /// Whether it is told of.
    pub(super) fn end(&mut self, at: u32, reason: Reason, icmp: bool) -> bool {
        let poisoned = self.queue(at).is_some_and(|queue| queue.flags & POISONED != 0);
        self.detach(at);
        if poisoned {
            self.release(at);
        } else {
            self.ended.push(Ended { queue: at, reason, icmp });
        }
        !poisoned
    }

    /// Every live queue, in the order of creation.
    pub(super) fn open(&self) -> impl Iterator<Item = (u32, &Queue)> {
        self.timers
            .iter()
            .filter(|timer| self.is_current(**timer))
            .filter_map(|timer| Some((timer.queue, self.queue(timer.queue)?)))
    }

    pub(super) fn start_timer(&mut self, queue: u32, seq: u32) {
        if self.timers.len() > 2 * self.len() + 1024 {
            let queues = &self.queues;
            self.timers.retain(|timer| is_live(queues, timer.queue, timer.seq));
        }
        if self.timers.is_empty() {
            self.next_deadline = self.clock.saturating_add(self.timeout);
        }
        self.timers.push_back(Timer { queue, seq, start: self.clock });
        if self.reclaim == Reclaim::BucketOldest {
            self.enter_bucket(queue, seq);
        }
    }

    pub(super) fn new_seq(&mut self) -> u32 {
        self.next_seq = if self.next_seq == u32::MAX { 1 } else { self.next_seq + 1 };
        self.next_seq
    }

    /// Everything open ends.
    pub fn flush(&mut self) {
        while let Some(timer) = self.timers.pop_front() {
            if self.is_current(timer) {
                self.end(timer.queue, Reason::End, false);
            }
        }
        // Nothing is open: time may start anew.
        self.clock = i64::MIN;
        self.next_deadline = i64::MAX;
    }
}
