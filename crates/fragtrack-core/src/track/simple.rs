//! Protocols without a state machine: UDP, UDP-Lite, ICMP, GRE, all else.

use super::config::Config;
use super::flow::{Flow, bit};
use super::protocols::Handled;
use super::verdict::Direction;

const ACCEPTED: Handled = Handled::Accepted { changed: false };
const CHANGED: Handled = Handled::Accepted { changed: true };

/// How long UDP has to go on until it is a stream, nanoseconds.
const STREAM: i64 = 2_000_000_000;

/// Counts a packet, and renews the timer (`nf_ct_refresh_acct`).
#[inline(always)]
pub(super) fn refresh(flow: &mut Flow, direction: Direction, length: u32, now: i64, timeout: i64) {
    flow.count(direction, length);
    flow.deadline = now.saturating_add(timeout);
}

/// Sets ASSURED; whether it was not.
fn assure(flow: &mut Flow) -> Handled {
    let before = flow.has(bit::ASSURED);
    flow.bits |= bit::ASSURED;
    if before { ACCEPTED } else { CHANGED }
}

/// UDP (`nf_conntrack_udp_packet`). `fresh`: the first packet.
#[inline(always)]
pub(super) fn udp(
    flow: &mut Flow,
    direction: Direction,
    fresh: bool,
    config: &Config,
    now: i64,
    length: u32,
) -> Handled {
    if fresh {
        flow.set_stream_from(now.saturating_add(STREAM));
    }
    let stream = flow.has(bit::SEEN_REPLY) && now > flow.stream_from();
    let timeout = if stream { config.timeouts.udp_stream } else { config.timeouts.udp };
    refresh(flow, direction, length, now, timeout);
    if stream { assure(flow) } else { ACCEPTED }
}

/// UDP-Lite and GRE: a longer timeout once it was answered (`nf_conntrack_udplite_packet`, `nf_conntrack_gre_packet`).
pub(super) fn answered(
    flow: &mut Flow,
    direction: Direction,
    (alone, both): (i64, i64),
    now: i64,
    length: u32,
) -> Handled {
    if flow.has(bit::SEEN_REPLY) {
        refresh(flow, direction, length, now, both);
        return assure(flow);
    }
    refresh(flow, direction, length, now, alone);
    ACCEPTED
}

/// One timeout, whatever happens.
pub(super) fn plain(flow: &mut Flow, direction: Direction, timeout: i64, now: i64, length: u32) -> Handled {
    refresh(flow, direction, length, now, timeout);
    ACCEPTED
}
