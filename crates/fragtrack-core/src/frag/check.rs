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
