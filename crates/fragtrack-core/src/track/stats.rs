//! What a tracker counts.

use super::verdict::{Class, End, Reason, Verdict};

/// Counters as in the kernel's `net/stat/nf_conntrack`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that found their connection.
    pub found: u64,
    /// Connections made (as the kernel's old counter of that name).
    pub new: u64,
    /// Packets that are invalid.
    pub invalid: u64,
    /// Packets that are exempt.
    pub ignore: u64,
    /// Connections that ended.
    pub delete: u64,
    /// Connections put in.
    pub insert: u64,
    /// Connections that could not be.
    pub insert_failed: u64,
    /// Packets the kernel would drop.
    pub drop: u64,
    /// Connections that gave way.
    pub early_drop: u64,
    /// ICMP errors about nothing known.
    pub icmp_error: u64,
}

/// Sums over a tracker's life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Totals {
    /// IP packets.
    pub packets: u64,
    /// As the kernel counts.
    pub counters: Counters,
    classes: [u64; Class::NAMES.len()],
    reasons: [u64; Reason::ALL.len() + 1],
    ends: [u64; End::ALL.len()],
    protocols: Box<[u64; 256]>,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            packets: 0,
            counters: Counters::default(),
            classes: [0; 7],
            reasons: [0; 40],
            ends: [0; 5],
            protocols: Box::new([0; 256]),
        }
    }
}

impl Totals {
    /// Counts a verdict.
    #[inline(always)]
    pub(super) fn see(&mut self, verdict: &Verdict) {
        self.see_class(verdict.class);
        match verdict.class {
            Class::Invalid => self.counters.invalid = self.counters.invalid.wrapping_add(1),
            Class::Untracked => self.counters.ignore = self.counters.ignore.wrapping_add(1),
            _ => {}
        }
        if let Some(why) = verdict.why
            && let Some(count) = self.reasons.get_mut(why.reason as usize)
        {
            *count = count.wrapping_add(1);
        }
    }

    /// Counts a class by itself: of fragments, which have no other verdict.
    #[inline(always)]
    pub fn see_class(&mut self, class: Class) {
        if let Some(count) = self.classes.get_mut(class as usize) {
            *count = count.wrapping_add(1);
        }
    }

    /// Counts a new connection.
    pub(super) fn see_made(&mut self, protocol: u8) {
        if let Some(count) = self.protocols.get_mut(usize::from(protocol)) {
            *count = count.wrapping_add(1);
        }
    }

    /// Counts a connection that ended.
    pub(super) fn see_end(&mut self, end: End) {
        if let Some(count) = self.ends.get_mut(end as usize) {
            *count = count.wrapping_add(1);
        }
    }

    /// Connections made, by protocol; those above 0.
    pub fn protocols(&self) -> impl Iterator<Item = (u8, u64)> {
        (0u8..=255).zip(self.protocols.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Connections that ended so.
    #[must_use]
    pub fn ended(&self, end: End) -> u64 {
        self.ends.get(end as usize).copied().unwrap_or(0)
    }

    /// Packets of a class.
    #[must_use]
    pub fn class(&self, class: Class) -> u64 {
        self.classes.get(class as usize).copied().unwrap_or(0)
    }

    /// Packets with a reason.
    #[must_use]
    pub fn reason(&self, reason: Reason) -> u64 {
        self.reasons.get(reason as usize).copied().unwrap_or(0)
    }
}
