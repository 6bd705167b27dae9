//! Which protocol takes a packet, and what every one of them may answer.

use super::config::Config;
use super::flow::Flow;
use super::icmp::query;
use super::packet::{Packet, What};
use super::verdict::{Direction, Reason, Why};
use super::{sctp, simple, tcp};
use crate::wire::Family;

/// What a protocol makes of a packet.
pub(super) enum Handled {
    /// State, timer and counts are up to date. `changed`: there is something to announce.
    Accepted {
        /// The state or a flag changed.
        changed: bool,
    },
    /// The same, and there is something odd about it.
    Noted {
        /// The state or a flag changed.
        changed: bool,
        /// What.
        note: Why,
    },
    /// Accepted, but neither timer nor counts.
    Unrefreshed {
        /// The state or a flag changed.
        changed: bool,
    },
    /// It keeps its class and changes nothing.
    Ignored(Why),
    /// It is invalid.
    Invalid(Why),
    /// The connection is over.
    Kill(Why),
    /// The connection is over, and the packet begins a new one.
    Repeat(Why),
}

/// Hands a packet to its protocol. `fresh`: it may begin a connection.
#[inline(always)]
pub(super) fn handle(
    flow: &mut Flow,
    direction: Direction,
    packet: &Packet,
    bytes: &[u8],
    fresh: bool,
    config: &Config,
    now: i64,
) -> Handled {
    let (length, timeouts) = (packet.length, &config.timeouts);
    match &packet.what {
        What::Tcp(segment) => {
            if fresh && let Err(why) = tcp::open(flow, segment, config) {
                return Handled::Invalid(why);
            }
            tcp::handle(flow, direction, segment, config, now, length)
        }
        What::Udp => simple::udp(flow, direction, fresh, config, now, length),
        What::UdpLite => simple::answered(flow, direction, (timeouts.udp, timeouts.udp_stream), now, length),
        What::Gre => simple::answered(flow, direction, (timeouts.gre, timeouts.gre_stream), now, length),
        What::Sctp(at, transport) => {
            let (at, transport) = (*at as usize, *transport as usize);
            let bytes = bytes.get(at..).unwrap_or(&[]);
            let cut = bytes.len() < transport;
            let bytes = bytes.get(..transport).unwrap_or(bytes);
            sctp::handle(flow, direction, (bytes, cut && transport >= 16), fresh, config, now, length)
        }
        What::Query(kind) => {
            let family = packet.key.family;
            if fresh && query(family, *kind).is_none_or(|found| found.answer) {
                return Handled::Invalid(Why::got(Reason::Unsolicited, u32::from(*kind)));
            }
            let timeout = if family == Family::V4 { timeouts.icmp } else { timeouts.icmpv6 };
            simple::plain(flow, direction, timeout, now, length)
        }
        What::Other => simple::plain(flow, direction, timeouts.generic, now, length),
        What::Faulty(why) | What::Lost(why) => Handled::Invalid(*why),
        What::Exempt(_) | What::Error { .. } => Handled::Invalid(Why::bare(Reason::Inner)),
    }
}
