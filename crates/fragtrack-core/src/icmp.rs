//! The ICMP errors that Linux would send, as data.

use crate::wire::{Family, be16, ipv6};

/// An error about `quote`. It goes to the quoted packet's source, from the host it was for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IcmpError {
    /// ICMP or ICMPv6.
    pub family: Family,
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Bytes 4 to 8 of the message: unused, or the pointer of a parameter problem.
    pub rest: u32,
    /// The packet quoted, from its IP header on, as much as fits.
    pub quote: Vec<u8>,
}

/// Most bytes quoted: the error itself stays within 576 bytes (RFC 1812 section 4.3.2.3) or 1,280 (RFC 4443
/// section 2.4 c).
const fn room(family: Family) -> usize {
    match family {
        Family::V4 => 576 - 20 - 8,
        Family::V6 => 1280 - 40 - 8,
    }
}

fn quoted(family: Family, packet: &[u8]) -> Vec<u8> {
    packet.iter().copied().take(room(family)).collect()
}

/// Whether `icmp_send` answers about this packet (RFC 1122 section 3.2.2): not about an ICMP error or an unknown
/// ICMP type, not to or from a group, broadcast, loopback or "this network" address (`ip_expire` asks for the
/// route first, which refuses those).
fn answerable4(packet: &[u8]) -> bool {
    const ICMP: u8 = 1;
    let special = |at: usize| match packet.get(at..at + 4) {
        Some([first, ..]) if packet.get(at..at + 4) != Some(&[255; 4]) => {
            matches!(first, 0 | 127 | 224..240)
        }
        _ => true,
    };
    if special(12) || special(16) {
        return false;
    }
    let header = packet.first().map_or(20, |byte| usize::from(byte & 15) * 4);
    match (packet.get(9), packet.get(header)) {
        // The types that are no errors; unknown ones count as errors.
        (Some(&ICMP), Some(kind)) => matches!(kind, 0 | 8 | 13..=18),
        _ => true,
    }
}

/// Whether `icmp6_send` answers about this packet (RFC 4443 section 2.4 e): not from the unspecified or a group
/// address, not to a group, not about an ICMPv6 error. An ICMPv6 packet whose type is missing is answered only
/// if the fragment header before it has more than an offset of 0 to tell (`is_ineligible`).
fn answerable6(packet: &[u8]) -> bool {
    let byte = |at: usize| packet.get(at).copied().unwrap_or(0);
    if byte(8) == 0xff || byte(24) == 0xff || packet.iter().skip(8).take(16).all(|b| *b == 0) {
        return false;
    }
    match ipv6::upper_layer(packet, ipv6::FIXED, byte(6)) {
        Some((ipv6::ICMPV6, at)) => match packet.get(at) {
            Some(kind) => *kind >= 128,
            None => ipv6::find_fragment_header(packet)
                .and_then(|(at, _)| be16(packet, at + 2).filter(|_| packet.len() >= at + 8))
                .is_some_and(|field| field != 0),
        },
        _ => true,
    }
}

impl IcmpError {
    /// Fragment reassembly time exceeded, quoting the first fragment; `None` where nobody answers.
    #[must_use]
    pub fn time_exceeded(family: Family, first: &[u8]) -> Option<Self> {
        let (kind, answerable) = match family {
            Family::V4 => (11, answerable4(first)),
            Family::V6 => (3, answerable6(first)),
        };
        answerable.then(|| Self { family, kind, code: 1, rest: 0, quote: quoted(family, first) })
    }

    /// IPv6 parameter problem; `None` where nobody answers.
    #[must_use]
    pub fn parameter_problem(code: u8, pointer: u32, packet: &[u8]) -> Option<Self> {
        let quote = || quoted(Family::V6, packet);
        answerable6(packet).then(|| Self { family: Family::V6, kind: 4, code, rest: pointer, quote: quote() })
    }
}
