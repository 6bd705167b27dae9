//! A fragment arrives: found or made its queue, checked, put in or refused (`ip_frag_queue`, `ip6_frag_queue`,
//! `nf_ct_frag6_queue`).

use std::collections::BTreeSet;

use super::held::{Node, Record};
use super::index::NIL;
use super::order::Fit;
use super::order::pieces::Pieces;
use super::queue::{DOMAIN, FIRST, LAST, POISONED, seen};
use super::rules::{MAX_PACKET, ecn_of, fragment_cost};
use super::table::{Ended, Table, Verdict};
use crate::config::{Duplicates, Path, Policy};
use crate::reason::Reason;
use crate::wire::{Addresses, Family, Fragment};

/// How a fragment goes in (`linux`).
enum Put {
    Append,
    NewLast,
    Gap,
}

/// What is known of a fragment and its datagram once steps 1 to 3 are done.
#[derive(Clone, Copy)]
struct Known {
    /// Behind the fragment's last byte that is used.
    end: u32,
    flags: u8,
    len: u32,
}

impl Table {
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
            self.counters.reasm_reqds = self.counters.reasm_reqds.wrapping_add(1);
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
        if self.max_dist > 0 {
            // Also draws a number for what is dropped below.
            self.check_distance(at, f, time);
        }
        if self.queue(at).is_some_and(|queue| queue.flags & POISONED != 0) {
            return Verdict::Dropped(Reason::Abandoned);
        }
        self.place(at, f, record, time)
    }

    /// `ip_frag_too_far`, `ip_frag_reinit`: too many fragments of the source came since the queue's last.
    #[cold]
    fn check_distance(&mut self, at: u32, f: &Fragment, time: i64) {
        if self.sources.len() > 2 * self.len() + 1024 {
            // A counter matters only between two fragments of one open queue.
            let open: BTreeSet<(u32, u64)> =
                self.open().map(|(_, queue)| (queue.addresses4().0, queue.domain())).collect();
            self.sources.retain(|source, _| open.contains(source));
        }
        let source = ((f.addr >> 32) as u32, f.context & DOMAIN);
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
        let Some(queue) = self.queues.get_mut(at as usize) else { return Verdict::Dropped(Reason::Memory) };
        let (start, mut end) = (f.offset, f.offset + f.length);
        let (mut flags, mut len) = (queue.flags, queue.len);
        let v6 = self.family == Family::V6;
        if v6 && end > MAX_PACKET {
            return self.too_long(f);
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
            (queue.flags, queue.len) = (flags, len);
            return self.refuse(at, Reason::Empty);
        }
        if self.policy != Policy::Linux {
            return self.place_piece(at, f, &record, time, Known { end, flags, len });
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
                    (queue.flags, queue.len) = (flags, len);
                    return Verdict::Dropped(Reason::Duplicate);
                }
                Fit::Across => return self.overlap(at),
            }
        };
        match put {
            Put::Append => queue.run_end = end,
            Put::NewLast => {
                if queue.run_end != 0 {
                    queue.runs = self.runs.insert(queue.runs, u32::from(queue.run_start), queue.run_end);
                }
                queue.run_start = start as u16;
                queue.run_end = end;
            }
            Put::Gap => queue.runs = self.runs.insert(queue.runs, start, end),
        }
        let first = queue.head == NIL;
        let cost = fragment_cost(self.cost_model, &record).min(u32::MAX - queue.cost);
        queue.head = self.held.add(Node::new(&record, start, end - start, f.header, f.df, queue.head));
        // Disjoint ranges below 2^17, and a cost that was cut to fit.
        queue.meat = queue.meat.wrapping_add(end - start);
        queue.cost = queue.cost.wrapping_add(cost);
        queue.len = len;
        queue.flags = flags | seen(f.ecn) | if start == 0 { FIRST } else { 0 };
        let complete = queue.is_complete();
        self.memory = self.memory.wrapping_add(u64::from(cost));
        if self.detailed {
            self.note(at, f, end, time, first);
        }
        if complete { self.complete(at) } else { Verdict::Held }
    }

    /// Any policy but `linux`: pieces in a tree.
    #[inline(never)]
    fn place_piece(&mut self, at: u32, f: &Fragment, record: &Record, time: i64, known: Known) -> Verdict {
        let Known { end, flags, len } = known;
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
        let cost = fragment_cost(self.cost_model, record).min(u32::MAX - queue.cost);
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
        queue.flags = flags | seen(f.ecn) | if start == 0 { FIRST } else { 0 };
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
    fn too_long(&mut self, f: &Fragment) -> Verdict {
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
        self.detach(at);
        // Fields are read one by one: the whole queue was written to a moment ago, in smaller parts.
        let Some(queue) = self.queues.get(at as usize) else { return Verdict::Dropped(Reason::Memory) };
        let len = queue.len;
        if ecn_of(queue.ecn()).is_none() {
            self.fail();
            return Verdict::Killed(Reason::Ecn, at);
        }
        // Only long datagrams are worth a look at their first header.
        if len > MAX_PACKET - 60 || self.family == Family::V6 {
            let before = self.first_node(queue).map_or(0, |node| node.header() as u32);
            let headers = if self.family == Family::V4 { before } else { before.saturating_sub(48) };
            if headers + len > MAX_PACKET {
                self.fail();
                return Verdict::Killed(Reason::Oversize, at);
            }
        }
        if self.counts() {
            self.counters.reasm_oks += 1;
        }
        Verdict::Complete(at)
    }
}
