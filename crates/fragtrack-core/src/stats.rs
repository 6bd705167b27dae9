//! Counters: the kernel's, and ours.

use crate::reason::Reason;

/// The counters of one address family, under the kernel's names
/// (`/proc/net/snmp`, `/proc/net/netstat`, `/proc/net/snmp6`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct KernelCounters {
    /// Fragments received for reassembly.
    pub reasm_reqds: u64,
    /// Datagrams put together.
    pub reasm_oks: u64,
    /// Failures: refused, killed, timed out.
    pub reasm_fails: u64,
    /// Queues whose timer ran out.
    pub reasm_timeout: u64,
    /// Queues killed by an overlap; the kernel shows it for IPv4 only.
    pub reasm_overlaps: u64,
    /// Packets with an impossible header.
    pub in_hdr_errors: u64,
    /// Packets shorter than their length field.
    pub in_truncated_pkts: u64,
    /// Packets with a wrong header checksum.
    pub in_csum_errors: u64,
}

impl KernelCounters {
    /// Name and value of each counter.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("ReasmReqds", self.reasm_reqds),
            ("ReasmOKs", self.reasm_oks),
            ("ReasmFails", self.reasm_fails),
            ("ReasmTimeout", self.reasm_timeout),
            ("ReasmOverlaps", self.reasm_overlaps),
            ("InHdrErrors", self.in_hdr_errors),
            ("InTruncatedPkts", self.in_truncated_pkts),
            ("InCsumErrors", self.in_csum_errors),
        ]
    }
}

/// What happened to fragments and datagrams, counted once each.
///
/// Invariant, once nothing is held: `fragments` (both families) = `used` + the sum of `reasons`.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Fragments seen, IPv4 and IPv6.
    pub fragments: [u64; 2],
    /// Fragments that became part of a complete datagram.
    pub used: u64,
    /// Complete datagrams.
    pub complete: u64,
    /// Datagrams given up.
    pub incomplete: u64,
    /// The same by reason code.
    pub given_up: [u64; 21],
    /// Fragments by reason code.
    pub reasons: [u64; 21],
    /// Fragments whose IPv4 header checksum was wrong, while that was to be ignored.
    pub bad_checksum: u64,
}

impl Totals {
    /// Counts `n` fragments lost for `reason`.
    #[inline]
    pub fn lose(&mut self, reason: Reason, n: u64) {
        if let Some(count) = self.reasons.get_mut(usize::from(reason.code())) {
            *count += n;
        }
    }

    /// Counts a datagram given up for `reason`.
    #[inline]
    pub fn give_up(&mut self, reason: Reason) {
        self.incomplete += 1;
        if let Some(count) = self.given_up.get_mut(usize::from(reason.code())) {
            *count += 1;
        }
    }

    /// Datagrams given up for `reason`.
    #[must_use]
    pub fn gave_up(&self, reason: Reason) -> u64 {
        self.given_up.get(usize::from(reason.code())).copied().unwrap_or(0)
    }

    /// Fragments lost for `reason`.
    #[must_use]
    pub fn lost(&self, reason: Reason) -> u64 {
        self.reasons.get(usize::from(reason.code())).copied().unwrap_or(0)
    }
}
