//! IP headers in front of a transport header, outside and quoted inside an ICMP error.

use crate::track::verdict::{Reason, Why};
use crate::wire::{Family, be16, be32, be64, checksum, ipv6};

/// What any view of connections needs of a packet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Family.
    pub family: Family,
    /// Source; an IPv4 address in the low 32 bits.
    pub source: u128,
    /// Destination.
    pub destination: u128,
    /// Protocol behind all extension headers.
    pub protocol: u8,
    /// Bytes of the whole packet, as the IP header says.
    pub total: usize,
    /// Bytes of the transport part, as the IP header says.
    pub length: usize,
    /// Captured bytes of the transport part.
    pub transport: &'a [u8],
}

/// Looks at a packet; `None` if it has no transport part to look at.
#[must_use]
pub fn view(bytes: &[u8]) -> Option<View<'_>> {
    let network = match bytes.first()? >> 4 {
        4 => network4(bytes, false),
        6 => network6(bytes),
        _ => return None,
    };
    let Network { family, source, destination, protocol, total, length, transport, .. } = network.ok()?;
    let wide = |(high, low): (u64, u64)| u128::from(high) << 64 | u128::from(low);
    Some(View { family, source: wide(source), destination: wide(destination), protocol, total, length, transport })
}

/// Addresses of an IP packet, and where its transport header is.
#[derive(Clone, Copy)]
pub(super) struct Network<'a> {
    pub(super) family: Family,
    pub(super) source: (u64, u64),
    pub(super) destination: (u64, u64),
    pub(super) protocol: u8,
    /// Captured bytes of the transport part.
    pub(super) transport: &'a [u8],
    /// Bytes it has as the IP header says.
    pub(super) length: usize,
    /// Where it starts.
    pub(super) at: usize,
    /// Bytes of the whole packet.
    pub(super) total: usize,
    /// Time to live, or hop limit.
    pub(super) hops: u8,
}

impl Network<'_> {
    /// Folded sum of the pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1).
    #[inline(always)]
    pub(super) fn pseudo(&self, protocol: u8, length: usize) -> u64 {
        let words = |word: u64| (word >> 32).wrapping_add(word & 0xffff_ffff);
        let ((a, b), (c, d)) = (self.source, self.destination);
        let sum = words(a).wrapping_add(words(b)).wrapping_add(words(c)).wrapping_add(words(d));
        sum.wrapping_add(u64::from(protocol)).wrapping_add(length as u64)
    }
}
/// IPv4 (`ip_rcv_core`, `get_l4proto`).
#[inline(always)]
pub(super) fn network4(bytes: &[u8], verify: bool) -> Result<Network<'_>, Why> {
    let short = |needed| Why::new(Reason::Header, bytes.len() as u32, needed);
    let Some(fixed) = bytes.first_chunk::<20>() else { return Err(short(20)) };
    let [first, _, t0, t1, _, _, f0, f1, hops, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *fixed;
    let at = usize::from(first & 15) * 4;
    let total = usize::from(u16::from_be_bytes([t0, t1]));
    if at < 20 || bytes.len() < at || total < at {
        return Err(short(at.max(20) as u32));
    }
    if verify && checksum::sum(bytes.get(..at).unwrap_or(&[])) != 0xffff {
        return Err(short(at as u32));
    }
    let offset = u16::from_be_bytes([f0, f1]) & 0x1fff;
    if offset != 0 {
        return Err(Why::got(Reason::Fragment, u32::from(offset) * 8));
    }
    Ok(Network {
        family: Family::V4,
        source: (0, u64::from(u32::from_be_bytes([s0, s1, s2, s3]))),
        destination: (0, u64::from(u32::from_be_bytes([d0, d1, d2, d3]))),
        protocol,
        transport: bytes.get(at..total.min(bytes.len())).unwrap_or(&[]),
        length: total.wrapping_sub(at),
        at,
        total,
        hops,
    })
}

/// IPv6 (`ip6_rcv_core`, `get_l4proto`).
#[inline(always)]
pub(super) fn network6(bytes: &[u8]) -> Result<Network<'_>, Why> {
    let Some(fixed) = bytes.first_chunk::<{ ipv6::FIXED }>() else {
        return Err(Why::new(Reason::Header, bytes.len() as u32, ipv6::FIXED as u32));
    };
    let [_, _, _, _, p0, p1, next, hops, ..] = *fixed;
    let payload = usize::from(u16::from_be_bytes([p0, p1]));
    // Payload length 0 with a hop-by-hop header may be a jumbogram: as long as it came.
    let total = if payload == 0 && next == 0 { bytes.len() } else { ipv6::FIXED + payload };
    behind_chain(bytes, next, total, hops).map_err(|at| match at {
        Stop::Broken(at) => Why::new(Reason::Extension, at as u32, total as u32),
        Stop::Fragment(offset) => Why::got(Reason::Fragment, u32::from(offset)),
    })
}

enum Stop {
    Broken(usize),
    Fragment(u16),
}

/// Walks the extension headers of an IPv6 packet (`ipv6_skip_exthdr`).
#[inline(always)]
fn behind_chain(bytes: &[u8], mut next: u8, total: usize, hops: u8) -> Result<Network<'_>, Stop> {
    let packet = bytes.get(..total).unwrap_or(bytes);
    let mut at = ipv6::FIXED;
    while ipv6::is_extension(next) {
        if next == ipv6::FRAGMENT {
            let offset = be16(packet, at + 2).ok_or(Stop::Broken(at))? & 0xfff8;
            if offset != 0 {
                return Err(Stop::Fragment(offset));
            }
        }
        (next, at) = ipv6::skip(packet, next, at).ok_or(Stop::Broken(at))?;
    }
    if next == ipv6::NONE {
        return Err(Stop::Broken(at));
    }
    let word = |at| be64(bytes, at).unwrap_or(0);
    Ok(Network {
        family: Family::V6,
        source: (word(8), word(16)),
        destination: (word(24), word(32)),
        protocol: next,
        transport: packet.get(at..).unwrap_or(&[]),
        length: total.saturating_sub(at),
        at,
        total,
        hops,
    })
}

/// The packet quoted in an error (`nf_ct_get_tuplepr`): its lengths and checksums do not matter, nor its version.
pub(super) fn quoted_network(family: Family, bytes: &[u8], length: usize) -> Option<Network<'_>> {
    if family == Family::V6 {
        let next = *bytes.first_chunk::<{ ipv6::FIXED }>()?.get(6)?;
        return behind_chain(bytes, next, length.max(ipv6::FIXED), 0).ok();
    }
    let fixed = bytes.first_chunk::<20>()?;
    let [first, _, _, _, _, _, f0, f1, _, protocol, ..] = *fixed;
    let at = usize::from(first & 15) * 4;
    if u16::from_be_bytes([f0, f1]) & 0x1fff != 0 || at > length {
        return None;
    }
    Some(Network {
        family: Family::V4,
        source: (0, u64::from(be32(bytes, 12)?)),
        destination: (0, u64::from(be32(bytes, 16)?)),
        protocol,
        transport: bytes.get(at..).unwrap_or(&[]),
        length: length.saturating_sub(at),
        at,
        total: length,
        hops: 0,
    })
}
