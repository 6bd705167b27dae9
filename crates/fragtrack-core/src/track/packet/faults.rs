//! What is wrong with a transport header behind its ports: lengths and checksums.

use super::network::Network;
use super::{Decoder, ICMPV6, UDP, UDP_LITE};
use crate::track::config::Checksum;
use crate::track::verdict::{Reason, Why};
use crate::wire::{Family, be16, checksum};

/// Folds a sum of big-endian words to 16 bits.
#[inline(always)]
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32).wrapping_add(sum & 0xffff_ffff);
    let sum = (sum >> 16).wrapping_add(sum & 0xffff);
    let sum = (sum >> 16).wrapping_add(sum & 0xffff);
    let sum = (sum >> 16).wrapping_add(sum & 0xffff);
    sum as u16
}

impl Decoder {
    /// What is wrong with the Internet checksum at byte `field` of the transport header over `covered` bytes, if
    /// that can be told and matters.
    #[inline(always)]
    pub(super) fn wrong(&self, network: &Network<'_>, field: usize, covered: usize) -> Option<Why> {
        if self.checksum == Checksum::Ignore || network.transport.len() < network.length {
            return None;
        }
        let covered = network.transport.get(..covered)?;
        // UDP-Lite, too, is checked as UDP (`udplite_error`).
        let protocol = if network.protocol == UDP_LITE { UDP } else { network.protocol };
        let pseudo = network.pseudo(protocol, network.length);
        let sum = u64::from(checksum::sum(covered));
        if fold(pseudo.wrapping_add(sum)) == 0xffff {
            return None;
        }
        self.wrong_checksum(network, field, pseudo, sum)
    }

    /// The sum is wrong: says so, unless a network card was to fill it in.
    #[inline(never)]
    fn wrong_checksum(&self, network: &Network<'_>, field: usize, pseudo: u64, sum: u64) -> Option<Why> {
        let found = be16(network.transport, field)?;
        // What a sender leaves to its card is the sum of the pseudo header, before segmentation without a length; or
        // nothing.
        let without = pseudo.wrapping_sub(network.length as u64);
        let left = found == 0 || fold(pseudo) == found || fold(without) == found;
        if left && self.checksum == Checksum::Offload && network.protocol != ICMPV6 {
            return None;
        }
        let bare = pseudo.wrapping_add(sum).wrapping_add(u64::from(!found));
        let right = match !fold(bare) {
            0 if matches!(network.protocol, UDP | UDP_LITE) => 0xffff,
            right => right,
        };
        Some(Why::new(Reason::Checksum, u32::from(found), u32::from(right)))
    }

    /// What is wrong with a UDP header (`udp_error`).
    #[inline(always)]
    pub(super) fn udp_fault(&self, network: &Network<'_>) -> Option<Why> {
        let bytes = network.transport;
        let Some(header) = bytes.first_chunk::<8>() else {
            return Some(Why::new(Reason::Short, bytes.len() as u32, 8));
        };
        let [.., l0, l1, c0, c1] = *header;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if length > network.length || length < 8 {
            return Some(Why::new(Reason::Length, length as u32, network.length as u32));
        }
        if c0 == 0 && c1 == 0 { None } else { self.wrong(network, 6, bytes.len()) }
    }

    /// What is wrong with a UDP-Lite header (`udplite_error`).
    #[inline(never)]
    pub(super) fn udp_lite_fault(&self, network: &Network<'_>) -> Option<Why> {
        let bytes = network.transport;
        let Some(header) = bytes.first_chunk::<8>() else {
            return Some(Why::new(Reason::Short, bytes.len() as u32, 8));
        };
        let [.., l0, l1, c0, c1] = *header;
        let coverage = match usize::from(u16::from_be_bytes([l0, l1])) {
            0 => network.length,
            coverage => coverage,
        };
        if coverage < 8 || coverage > network.length {
            return Some(Why::new(Reason::Coverage, coverage as u32, network.length as u32));
        }
        if c0 == 0 && c1 == 0 {
            return Some(Why::bare(Reason::NoChecksum));
        }
        self.wrong(network, 6, coverage)
    }

    /// What is wrong with an SCTP header (`sctp_error`).
    #[inline(never)]
    pub(super) fn sctp_fault(&self, network: &Network<'_>) -> Option<Why> {
        let bytes = network.transport;
        if bytes.len() < 12 {
            return Some(Why::new(Reason::Short, bytes.len() as u32, 12));
        }
        if self.checksum == Checksum::Ignore || bytes.len() < network.length {
            return None;
        }
        let field = bytes.get(8..)?.first_chunk::<4>()?;
        let (found, right) = (u32::from_le_bytes(*field), crc32c(bytes));
        if found == right || (found == 0 && self.checksum == Checksum::Offload) {
            return None;
        }
        Some(Why::new(Reason::Checksum, found.swap_bytes(), right.swap_bytes()))
    }
    pub(super) fn wrong_icmp(&self, network: &Network<'_>) -> Option<Why> {
        if network.family == Family::V6 {
            return self.wrong(network, 2, network.transport.len());
        }
        let bytes = network.transport;
        if self.checksum == Checksum::Ignore || bytes.len() < network.length {
            return None;
        }
        let sum = checksum::sum(bytes);
        if sum == 0xffff {
            return None;
        }
        let found = be16(bytes, 2)?;
        let right = !fold(u64::from(sum).wrapping_add(u64::from(!found)));
        Some(Why::new(Reason::Checksum, u32::from(found), u32::from(right)))
    }
}

/// CRC32c of an SCTP packet (RFC 9260 appendix A), its checksum field taken as zero.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for (at, byte) in bytes.iter().enumerate() {
        let byte = if (8..12).contains(&at) { 0 } else { *byte };
        crc = CRC32C.get(usize::from(crc as u8 ^ byte)).copied().unwrap_or(0) ^ crc >> 8;
    }
    !crc
}

const CRC32C: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0x82f6_3b78 ^ crc >> 1 } else { crc >> 1 };
            bit += 1;
        }
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            table[at] = crc;
        }
        at += 1;
    }
    table
};
