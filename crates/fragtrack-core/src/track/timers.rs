//! When connections have to be looked at again: a wheel of seconds.
//!
//! Timers are renewed with nearly every packet, so nothing is moved then. Each connection stands in one second of
//! the wheel at which it is looked at; whatever its deadline is by then decides whether it ends or stands in a later
//! second again. A deadline may come nearer in between, but never nearer than the shortest timeout of its protocol,
//! and no connection stands further ahead than that.

/// No connection.
const NIL: u32 = u32::MAX;
/// Seconds of the wheel, and the furthest that a connection may stand ahead.
const SECONDS: usize = 1024;
/// Furthest ahead, seconds.
pub const FURTHEST: i64 = 1000;
/// In `previous`: it is the first of a second.
const FIRST: u32 = 1 << 31;

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    /// The one before, or `FIRST` and the second of the wheel.
    previous: u32,
}

/// Invariant: each connection of the table stands in exactly one list; `previous` of each is the one before it.
pub struct Timers {
    heads: Box<[u32; SECONDS]>,
    links: Vec<Link>,
    /// The last second that was taken out.
    second: i64,
}

impl Default for Timers {
    fn default() -> Self {
        Self { heads: Box::new([NIL; SECONDS]), links: Vec::new(), second: 0 }
    }
}

const fn place(second: i64) -> usize {
    (second as usize) % SECONDS
}

impl Timers {
    /// Time begins.
    pub fn begin(&mut self, second: i64) {
        self.second = second;
    }

    /// The last second that was taken out.
    #[inline(always)]
    #[must_use]
    pub const fn second(&self) -> i64 {
        self.second
    }

    /// Looks at a connection in a second that is to come, at most [`FURTHEST`] ahead.
    pub fn add(&mut self, slot: u32, second: i64) {
        let at = slot as usize;
        if at >= self.links.len() {
            self.links.resize(at + 1, Link { next: NIL, previous: NIL });
        }
        let place = place(second);
        let Some(head) = self.heads.get_mut(place) else { return };
        let next = core::mem::replace(head, slot);
        if let Some(after) = self.links.get_mut(next as usize) {
            after.previous = slot;
        }
        if let Some(link) = self.links.get_mut(at) {
            *link = Link { next, previous: FIRST | place as u32 };
        }
    }

    /// It is gone.
    pub fn remove(&mut self, slot: u32) {
        let Some(&Link { next, previous }) = self.links.get(slot as usize) else { return };
        if previous & FIRST == 0 {
            if let Some(before) = self.links.get_mut(previous as usize) {
                before.next = next;
            }
        } else if let Some(head) = self.heads.get_mut((previous & !FIRST) as usize) {
            *head = next;
        }
        if let Some(after) = self.links.get_mut(next as usize) {
            after.previous = previous;
        }
    }

    /// Takes out the connections to look at up to a second, into `due`.
    pub fn take(&mut self, second: i64, due: &mut Vec<u32>) {
        let passed = second.saturating_sub(self.second).clamp(0, SECONDS as i64);
        for back in (0..passed).rev() {
            let Some(head) = self.heads.get_mut(place(second.wrapping_sub(back))) else { return };
            let mut at = core::mem::replace(head, NIL);
            while let Some(link) = self.links.get(at as usize) {
                due.push(at);
                at = link.next;
            }
        }
        self.second = self.second.max(second);
    }

    /// The connections to look at in a second, which stay there.
    pub fn at(&self, second: i64) -> impl Iterator<Item = u32> {
        let mut at = self.heads.get(place(second)).copied().unwrap_or(NIL);
        core::iter::from_fn(move || {
            let slot = at;
            at = self.links.get(slot as usize)?.next;
            Some(slot)
        })
    }

    /// How many stand in it; whether the lists are whole.
    #[must_use]
    pub fn check(&self) -> Option<usize> {
        let mut count = 0usize;
        for (place, head) in self.heads.iter().enumerate() {
            let mut previous = FIRST | place as u32;
            let mut at = *head;
            while at != NIL {
                let link = self.links.get(at as usize)?;
                if link.previous != previous || count > self.links.len() {
                    return None;
                }
                count += 1;
                previous = at;
                at = link.next;
            }
        }
        Some(count)
    }

    /// Bytes in use, without what is kept for growth.
    #[must_use]
    pub fn used(&self) -> usize {
        self.links.len() * size_of::<Link>() + SECONDS * 4
    }

    /// Bytes it has.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.links.capacity() * size_of::<Link>() + SECONDS * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn takes_out_what_is_due(ops in proptest::collection::vec((0u8..3, 0u32..50, 1i64..900), 0..300)) {
            let mut timers = Timers::default();
            timers.begin(100);
            let mut model: BTreeMap<u32, i64> = BTreeMap::new();
            for (what, slot, ahead) in ops {
                match what {
                    0 if !model.contains_key(&slot) => {
                        timers.add(slot, timers.second() + ahead);
                        model.insert(slot, timers.second() + ahead);
                    }
                    1 if model.remove(&slot).is_some() => timers.remove(slot),
                    2 => {
                        let second = timers.second() + ahead * 2;
                        let mut due = Vec::new();
                        timers.take(second, &mut due);
                        due.sort_unstable();
                        let expected: Vec<u32> = model.iter().filter(|(_, at)| **at <= second).map(|(s, _)| *s).collect();
                        model.retain(|_, at| *at > second);
                        prop_assert_eq!(due, expected);
                    }
                    _ => {}
                }
                prop_assert_eq!(timers.check(), Some(model.len()));
            }
        }
    }
}
