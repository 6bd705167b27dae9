//! The invariants of a table, asserted from scratch: for tests, after every step.

use super::table::Table;
use crate::config::Policy;

impl Table {
    /// Asserts the invariants from scratch.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let (mut memory, mut live, mut nodes) = (0, 0, 0);
        if self.open().count() != self.index.len() {
            return Err("there is not one timer for each live queue");
        }
        for (at, queue) in self.queues.iter().enumerate().filter(|(_, queue)| queue.seq != 0) {
            live += 1;
            memory += u64::from(queue.cost);
            let at = at as u32;
            if self.index.find(queue.hash, |found| found == at).is_none() {
                return Err("a live queue is not in the index");
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
        if self.timers.iter().zip(self.timers.iter().skip(1)).any(|(a, b)| a.start > b.start) {
            return Err("timers are out of order");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Policy, Reclaim};
    use crate::frag::held::Record;
    use crate::frag::index::NIL;
    use crate::frag::table::{Ended, Verdict};
    use crate::reason::Reason;
    use crate::wire::{Family, Fragment};

    fn table(policy: Policy, memory: u64, reclaim: Reclaim) -> Table {
        let config =
            Config { policy, timeout4: 1000, timeout6: 1000, memory, max_dist: 20, reclaim, ..Config::capture((1, 2)) };
        Table::new(&config, Family::V4, true)
    }

    /// Places a fragment of 8-byte units, and gives back what has ended, as the engine does.
    fn add(table: &mut Table, id: u32, unit: u32, units: u32, more: bool, time: i64) {
        let f = Fragment {
            addr: 1 << 32,
            context: 0,
            id,
            offset: unit * 8,
            length: units * 8,
            header: 20,
            protocol: 0,
            ecn: 0,
            more,
            df: false,
        };
        let record = Record { start: 0, length: 0, ip: 0, origin: 0, frame: 0, charged: 10, packet: 0 };
        table.tick(time);
        let verdict = table.add(&f, &[0; 4], (table.hash(&f, &[0; 4]), NIL), record, time);
        sweep(table);
        if let Verdict::Complete(queue) | Verdict::Killed(_, queue) | Verdict::Passed(queue) = verdict {
            table.release(queue);
        }
    }

    fn sweep(table: &mut Table) {
        for ended in core::mem::take(&mut table.ended) {
            table.release(ended.queue);
        }
    }

    #[test]
    fn every_slot_comes_back_once() {
        for (number, (_, policy)) in Policy::ALL.into_iter().enumerate() {
            for (memory, reclaim) in [(1 << 20, Reclaim::Refuse), (5000, Reclaim::Fair), (5000, Reclaim::Lru)] {
                let mut table = table(policy, memory, reclaim);
                // The numbers of queues wrap on the way.
                table.next_seq = u32::MAX - 100;
                let (mut state, mut time, mut tables) = (number as u32 + 1, 0, 0);
                let mut below = |n: u32| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) % n
                };
                for _ in 0..3000 {
                    time += i64::from(below(8));
                    // Many runs of one datagram now and then, so that lines of seven become tables.
                    let (id, units) = if below(3) == 0 { (0, 1) } else { (1 + below(12), 1 + below(3)) };
                    let unit = if id == 0 { below(4000) * 2 } else { below(6) };
                    add(&mut table, id, unit, units, below(5) != 0, time);
                    assert_eq!(table.check(), Ok(()));
                    tables = tables.max(table.runs.used().1);
                }
                assert_eq!(tables > 0, policy == Policy::Linux);
                table.flush();
                sweep(&mut table);
                assert_eq!(table.check(), Ok(()));
                assert_eq!((table.memory, table.held.used(), table.runs.used()), (0, (0, 0), (0, 0, 0)));
                for (free, slots) in
                    [(&mut table.free, table.queues.len()), (&mut table.free_pieces, table.pieces.len())]
                {
                    free.sort_unstable();
                    assert!(free.iter().copied().eq(0..slots as u32), "{policy:?}");
                }
            }
        }
    }

    #[test]
    fn whatever_is_wrong_is_noticed() {
        let first = |table: &Table| table.open().next().map(|(at, _)| at as usize).unwrap();
        let wrongs: [fn(&mut Table, usize); 8] = [
            |table, _| table.memory += 1,
            |table, at| table.queues[at].meat += 1,
            |table, at| table.queues[at].len = 8,
            |table, at| table.queues[at].cost += 1,
            |table, at| table.queues[at].seq = 0,
            |table, at| table.queues[at].head = NIL,
            |table, at| table.index.remove(table.queues[at].hash, at as u32),
            |table, at| table.ended.push(Ended { queue: at as u32, reason: Reason::End, icmp: false }),
        ];
        for policy in [Policy::Linux, Policy::Rfc5722, Policy::Last] {
            for wrong in wrongs {
                let mut table = table(policy, 1 << 20, Reclaim::Fair);
                for (id, unit) in [(1, 0), (2, 0), (1, 2), (1, 5)] {
                    add(&mut table, id, unit, 2, true, i64::from(id));
                }
                assert_eq!(table.check(), Ok(()));
                let at = first(&table);
                wrong(&mut table, at);
                assert!(table.check().is_err());
            }
            let mut table = table(policy, 1 << 20, Reclaim::Fair);
            (1..3).for_each(|id| add(&mut table, id, 0, 2, true, i64::from(id)));
            table.timers.swap(0, 1);
            assert!(table.check().is_err());
        }
    }
}
