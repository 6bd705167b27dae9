//! What a tracker may be told: the kernel's sysctls, and what only captures need. Plain values, checked by the caller.

use super::packet;
use super::states::State;

/// Which checksums make a packet invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// Wrong ones, but not those that a sender left to its network card.
    Offload,
    /// All wrong ones.
    Verify,
    /// None.
    Ignore,
}

/// Timeouts in nanoseconds, by the names of their sysctls.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// By TCP state, from `NONE` on; `NONE` and `SYN_SENT2` are those of the kernel, which no sysctl changes.
    pub tcp: [i64; 10],
    /// After `tcp_max_retrans` identical segments.
    pub tcp_max_retrans: i64,
    /// While data is not acknowledged.
    pub tcp_unacknowledged: i64,
    /// UDP and UDP-Lite without an answer.
    pub udp: i64,
    /// A stream both ways.
    pub udp_stream: i64,
    /// ICMP.
    pub icmp: i64,
    /// ICMPv6.
    pub icmpv6: i64,
    /// By SCTP state, from `NONE` on.
    pub sctp: [i64; 9],
    /// GRE without an answer.
    pub gre: i64,
    /// GRE both ways.
    pub gre_stream: i64,
    /// All else.
    pub generic: i64,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Config {
    /// Segments and acknowledgments below the window are invalid, as before Linux 6.1.
    pub pre_6_1: bool,
    /// Checksums.
    pub checksum: Checksum,
    /// Most connections.
    pub max: u32,
    /// Learn windows anew behind a gap in the capture.
    pub gap_tolerant: bool,
    /// Pick connections up in the middle.
    pub tcp_loose: bool,
    /// Let through what is outside of the window.
    pub tcp_be_liberal: bool,
    /// Let resets through whose number is too low.
    pub tcp_ignore_invalid_rst: bool,
    /// Identical segments until the timeout is cut.
    pub tcp_max_retrans: u8,
    /// An inexact reset leaves the `unacknowledged` timeout (6.12), not that of `CLOSE`.
    pub rst_inexact_unacknowledged: bool,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Key of the hash: comes from outside, so that the core stays pure.
    pub hash_key: (u64, u64),
}

const SECOND: i64 = 1_000_000_000;

impl Config {
    /// What Linux 6.18 has by default, with checksums as captures need them.
    #[must_use]
    pub const fn linux(hash_key: (u64, u64)) -> Self {
        Self {
            pre_6_1: false,
            checksum: Checksum::Offload,
            max: 262_144,
            gap_tolerant: false,
            tcp_loose: true,
            tcp_be_liberal: false,
            tcp_ignore_invalid_rst: false,
            tcp_max_retrans: 3,
            rst_inexact_unacknowledged: false,
            timeouts: Timeouts {
                tcp: [
                    120 * SECOND,
                    120 * SECOND,
                    60 * SECOND,
                    432_000 * SECOND,
                    120 * SECOND,
                    60 * SECOND,
                    30 * SECOND,
                    120 * SECOND,
                    10 * SECOND,
                    120 * SECOND,
                ],
                tcp_max_retrans: 300 * SECOND,
                tcp_unacknowledged: 300 * SECOND,
                udp: 30 * SECOND,
                udp_stream: 120 * SECOND,
                icmp: 30 * SECOND,
                icmpv6: 30 * SECOND,
                sctp: [
                    10 * SECOND,
                    10 * SECOND,
                    3 * SECOND,
                    3 * SECOND,
                    210 * SECOND,
                    3 * SECOND,
                    3 * SECOND,
                    3 * SECOND,
                    30 * SECOND,
                ],
                gre: 30 * SECOND,
                gre_stream: 180 * SECOND,
                generic: 600 * SECOND,
            },
            hash_key,
        }
    }
}

impl Timeouts {
    /// The shortest one of a protocol, whole seconds: no deadline comes nearer than that.
    #[must_use]
    pub fn shortest(&self, protocol: u8) -> i64 {
        let least = |values: &[i64]| values.iter().copied().min().unwrap_or(0);
        let shortest = match protocol {
            packet::TCP => least(&self.tcp).min(self.tcp_max_retrans).min(self.tcp_unacknowledged),
            packet::UDP | packet::UDP_LITE => self.udp.min(self.udp_stream),
            packet::SCTP => least(&self.sctp),
            packet::GRE => self.gre.min(self.gre_stream),
            packet::ICMP => self.icmp,
            packet::ICMPV6 => self.icmpv6,
            _ => self.generic,
        };
        shortest / SECOND
    }

    /// That of a TCP state.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, state: State) -> i64 {
        self.tcp.get(state as usize).copied().unwrap_or(0)
    }
}
