//! A packet from its IP header on, decoded for tracking: whose it is, and what its protocol needs; or what is wrong.

use super::config::Checksum;
use super::icmp::{self, query};
use super::segment::{self, Segment};
use super::verdict::{Reason, Why};
use crate::frag::key::Multilinear;
use crate::wire::{Family, be16, be32, be64, checksum, ipv6};

/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// UDP-Lite.
pub const UDP_LITE: u8 = 136;
/// SCTP.
pub const SCTP: u8 = 132;
/// GRE.
pub const GRE: u8 = 47;
/// ICMP.
pub const ICMP: u8 = 1;
/// ICMPv6.
pub const ICMPV6: u8 = ipv6::ICMPV6;

/// Whose packet it is, whoever sent it: the two endpoints in a fixed order, the lower one first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// IPv4: both addresses. IPv6: the first half of the lower one.
    pub addr: u64,
    /// IPv6: the other halves.
    pub wide: [u64; 3],
    /// Both ports, or what stands for them: ICMP identifier, and type and code of the request; GRE call id.
    pub ports: u32,
    /// Protocol.
    pub protocol: u8,
    /// Family.
    pub family: Family,
    /// The zone: connections of different zones have nothing to do with each other.
    pub zone: u64,
}

/// What the protocol of a packet needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// TCP.
    Tcp(Segment),
    /// UDP.
    Udp,
    /// UDP-Lite.
    UdpLite,
    /// SCTP, which starts at this byte of the packet and has so many.
    Sctp(u32, u32),
    /// An ICMP query, or the answer to one, of this type.
    Query(u8),
    /// GRE.
    Gre,
    /// Anything else.
    Other,
    /// The transport header is wrong; that is noticed after the look-up.
    Faulty(Why),
    /// An ICMP error about a packet of this key.
    Error {
        /// It goes to who sent that packet.
        to_sender: bool,
        /// Both endpoints of that packet are the same.
        alike: bool,
    },
    /// No key: what is wrong.
    Lost(Why),
    /// Exempt: the ICMPv6 type.
    Exempt(u8),
}

/// One packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Whose it is (of an ICMP error: the quoted packet).
    pub key: Key,
    /// Hash of the key.
    pub hash: u32,
    /// The upper endpoint sent it (ICMP: it is an answer).
    pub swapped: bool,
    /// It came in fragments.
    pub fragmented: bool,
    /// Bytes from the IP header on, as that says.
    pub length: u32,
    /// The rest.
    pub what: What,
}

impl Packet {
    /// A packet that is lost.
    #[must_use]
    pub const fn lost(why: Why) -> Self {
        let key = Key { addr: 0, wide: [0; 3], ports: 0, protocol: 0, family: Family::V4, zone: 0 };
        Self { key, hash: 0, swapped: false, fragmented: false, length: 0, what: What::Lost(why) }
    }
}

/// Decodes packets: knows the secret of the hash, and which checksums matter.
#[derive(Clone, Debug)]
pub struct Decoder {
    hasher: Multilinear,
    checksum: Checksum,
    header_checksum: bool,
}

/// One endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Endpoint {
    high: u64,
    low: u64,
    port: u16,
}

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
struct Network<'a> {
    family: Family,
    source: (u64, u64),
    destination: (u64, u64),
    protocol: u8,
    /// Captured bytes of the transport part.
    transport: &'a [u8],
    /// Bytes it has as the IP header says.
    length: usize,
    /// Where it starts.
    at: usize,
    /// Bytes of the whole packet.
    total: usize,
    /// Time to live, or hop limit.
    hops: u8,
}

impl Network<'_> {
    /// Folded sum of the pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1).
    #[inline(always)]
    fn pseudo(&self, protocol: u8, length: usize) -> u64 {
        let words = |word: u64| (word >> 32).wrapping_add(word & 0xffff_ffff);
        let ((a, b), (c, d)) = (self.source, self.destination);
        let sum = words(a).wrapping_add(words(b)).wrapping_add(words(c)).wrapping_add(words(d));
        sum.wrapping_add(u64::from(protocol)).wrapping_add(length as u64)
    }
}

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
    /// With the secret of the hash; `header_checksum`: IPv4 header checksums count, too.
    #[must_use]
    pub fn new(hash_key: (u64, u64), checksum: Checksum, header_checksum: bool) -> Self {
        Self { hasher: Multilinear::new(hash_key), checksum, header_checksum }
    }

    /// Decodes the packet that starts `bytes`; what follows it is padding.
    #[inline(always)]
    pub fn decode(&self, bytes: &[u8], zone: u64, packet: &mut Packet) {
        packet.fragmented = false;
        let read = match bytes.first().map(|byte| byte >> 4) {
            Some(4) => network4(bytes, self.header_checksum),
            Some(6) => network6(bytes),
            _ => Err(Why::new(Reason::Header, bytes.len() as u32, 20)),
        };
        match read {
            Ok(network) => self.transport(&network, zone, packet),
            Err(why) => {
                packet.length = 0;
                packet.what = What::Lost(why);
            }
        }
    }

    #[inline(always)]
    fn transport(&self, network: &Network<'_>, zone: u64, packet: &mut Packet) {
        let bytes = network.transport;
        packet.length = network.total as u32;
        packet.what = match network.protocol {
            TCP => {
                let Some(ports) = segment::ports(bytes) else { return cut(packet, bytes, segment::HEADER) };
                self.identify(network, ports, zone, packet);
                let verify = || self.wrong(network, 16, bytes.len());
                segment::read(bytes, network.length, verify).map_or_else(What::Faulty, What::Tcp)
            }
            UDP | UDP_LITE => {
                let Some(ports) = segment::ports(bytes) else { return cut(packet, bytes, 8) };
                self.identify(network, ports, zone, packet);
                let (fault, right) = if network.protocol == UDP {
                    (self.udp_fault(network), What::Udp)
                } else {
                    (self.udp_lite_fault(network), What::UdpLite)
                };
                fault.map_or(right, What::Faulty)
            }
            SCTP => {
                let Some(ports) = segment::ports(bytes) else { return cut(packet, bytes, 12) };
                self.identify(network, ports, zone, packet);
                let right = What::Sctp(network.at as u32, network.length as u32);
                self.sctp_fault(network).map_or(right, What::Faulty)
            }
            ICMP | ICMPV6 => return self.icmp(network, zone, packet),
            GRE => match gre_key(bytes) {
                Ok(call) => {
                    self.identify(network, (0, call), zone, packet);
                    What::Gre
                }
                Err(why) => What::Lost(why),
            },
            _ => {
                self.identify(network, (0, 0), zone, packet);
                What::Other
            }
        };
    }

    /// Fills in the key from addresses and ports.
    #[inline(always)]
    fn identify(&self, network: &Network<'_>, ports: (u16, u16), zone: u64, packet: &mut Packet) {
        let source = Endpoint { high: network.source.0, low: network.source.1, port: ports.0 };
        let destination = Endpoint { high: network.destination.0, low: network.destination.1, port: ports.1 };
        let swapped = source > destination;
        let (lower, upper) = if swapped { (destination, source) } else { (source, destination) };
        self.keyed(network, (lower, upper), swapped, zone, packet);
    }

    #[inline(always)]
    fn keyed(
        &self,
        network: &Network<'_>,
        (lower, upper): (Endpoint, Endpoint),
        swapped: bool,
        zone: u64,
        packet: &mut Packet,
    ) {
        let ports = u32::from(lower.port) << 16 | u32::from(upper.port);
        let rest = u64::from(ports) << 32 | u64::from(network.protocol);
        packet.swapped = swapped;
        let key = &mut packet.key;
        (key.ports, key.protocol, key.family, key.zone) = (ports, network.protocol, network.family, zone);
        if network.family == Family::V4 {
            key.addr = lower.low << 32 | upper.low;
            packet.hash = self.hasher.hash([key.addr, rest, zone]);
        } else {
            key.addr = lower.high;
            key.wide = [lower.low, upper.high, upper.low];
            packet.hash = self.hasher.hash([lower.high, lower.low, upper.high, upper.low, rest, zone]);
        }
    }

    /// What is wrong with the Internet checksum at byte `field` of the transport header over `covered` bytes, if
    /// that can be told and matters.
    #[inline(always)]
    fn wrong(&self, network: &Network<'_>, field: usize, covered: usize) -> Option<Why> {
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
    fn udp_fault(&self, network: &Network<'_>) -> Option<Why> {
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
    fn udp_lite_fault(&self, network: &Network<'_>) -> Option<Why> {
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
    fn sctp_fault(&self, network: &Network<'_>) -> Option<Why> {
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

    /// ICMP and ICMPv6 (`nf_conntrack_icmpv4_error`, `nf_conntrack_icmpv6_error`).
    #[inline(never)]
    fn icmp(&self, network: &Network<'_>, zone: u64, packet: &mut Packet) {
        let bytes = network.transport;
        let Some(&[kind, code, ..]) = bytes.first_chunk::<{ icmp::HEADER }>() else {
            return cut(packet, bytes, icmp::HEADER);
        };
        let family = network.family;
        let odd = What::Lost(Why::got(Reason::IcmpType, u32::from(kind)));
        packet.what = if (network.protocol == ICMP) != (family == Family::V4) {
            odd
        } else if let Some(why) = self.wrong_icmp(network) {
            What::Lost(why)
        } else if family == Family::V4 && kind > icmp::HIGHEST {
            odd
        } else if family == Family::V6 && icmp::is_exempt(kind) {
            What::Exempt(kind)
        } else if icmp::is_error(family, kind) {
            let quoted = bytes.get(icmp::HEADER..).unwrap_or(&[]);
            self.about(network, quoted, network.length.saturating_sub(icmp::HEADER), zone, packet)
        } else if family == Family::V6 && kind == icmp::REDIRECT {
            self.redirect(network, code, zone, packet).unwrap_or(odd)
        } else if let Some(found) = query(family, kind) {
            let id = be16(bytes, 4).unwrap_or(0);
            self.identify_query(network, found, (code, id), zone, packet);
            What::Query(kind)
        } else {
            odd
        };
    }

    fn wrong_icmp(&self, network: &Network<'_>) -> Option<Why> {
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

    /// The key of a query: who asks comes first.
    fn identify_query(
        &self,
        network: &Network<'_>,
        found: icmp::Query,
        (code, id): (u8, u16),
        zone: u64,
        packet: &mut Packet,
    ) {
        let (asks, asked) =
            if found.answer { (network.destination, network.source) } else { (network.source, network.destination) };
        let lower = Endpoint { high: asks.0, low: asks.1, port: id };
        let upper = Endpoint { high: asked.0, low: asked.1, port: u16::from_be_bytes([found.request, code]) };
        self.keyed(network, (lower, upper), found.answer, zone, packet);
    }

    /// An error that quotes a packet (`nf_conntrack_inet_error`).
    fn about(&self, outer: &Network<'_>, quoted: &[u8], length: usize, zone: u64, packet: &mut Packet) -> What {
        let lost = What::Lost(Why::got(Reason::Inner, quoted.len() as u32));
        let Some(inner) = quoted_network(outer.family, quoted, length) else { return lost };
        let bytes = inner.transport;
        match inner.protocol {
            TCP | UDP | UDP_LITE | SCTP => match segment::ports(bytes) {
                Some(ports) => self.identify(&inner, ports, zone, packet),
                None => return lost,
            },
            ICMP | ICMPV6 => {
                let Some(&[kind, code, _, _, i0, i1, ..]) = bytes.first_chunk::<{ icmp::HEADER }>() else {
                    return lost;
                };
                // The table of types is that of the protocol, whatever carries it.
                let family = if inner.protocol == ICMP { Family::V4 } else { Family::V6 };
                let Some(found) = query(family, kind) else {
                    return What::Lost(Why::got(Reason::InnerType, u32::from(kind)));
                };
                let id = u16::from_be_bytes([i0, i1]);
                self.identify_query(&inner, found, (code, id), zone, packet);
            }
            GRE => match gre_key(bytes) {
                Ok(call) => self.identify(&inner, (0, call), zone, packet),
                Err(_) => return lost,
            },
            _ => self.identify(&inner, (0, 0), zone, packet),
        }
        let ports = packet.key.ports;
        let alike = inner.source == inner.destination && ports >> 16 == ports & 0xffff;
        What::Error { to_sender: outer.destination == inner.source, alike }
    }

    /// An ICMPv6 redirect (`nf_conntrack_icmpv6_redirect`); `None`: it is not looked into.
    fn redirect(&self, network: &Network<'_>, code: u8, zone: u64, packet: &mut Packet) -> Option<What> {
        let bytes = network.transport;
        if bytes.len() < icmp::REDIRECT_HEADER {
            return Some(What::Lost(Why::new(Reason::Short, bytes.len() as u32, icmp::REDIRECT_HEADER as u32)));
        }
        if code != 0 {
            return None;
        }
        let lost = What::Lost(Why::got(Reason::Inner, 0));
        let link_local = network.source.0 >> 54 == 0xfe80 >> 6;
        if network.hops != 255 || !link_local {
            return Some(lost);
        }
        let (kind, skip) = icmp::REDIRECTED;
        let option = bytes.get(icmp::REDIRECT_HEADER..)?;
        match *option {
            [found, units, ..] if units != 0 => {
                if found != kind {
                    return None;
                }
            }
            _ => return Some(lost),
        }
        let quoted = option.get(skip..).unwrap_or(&[]);
        let length = network.length.saturating_sub(icmp::REDIRECT_HEADER + skip);
        Some(self.about(network, quoted, length, zone, packet))
    }
}

/// The transport header is cut short before the ports.
#[inline(never)]
fn cut(packet: &mut Packet, bytes: &[u8], needed: usize) {
    packet.what = What::Lost(Why::new(Reason::Short, bytes.len() as u32, needed as u32));
}

/// IPv4 (`ip_rcv_core`, `get_l4proto`).
#[inline(always)]
fn network4(bytes: &[u8], verify: bool) -> Result<Network<'_>, Why> {
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
fn network6(bytes: &[u8]) -> Result<Network<'_>, Why> {
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
fn quoted_network(family: Family, bytes: &[u8], length: usize) -> Option<Network<'_>> {
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

/// The call id of GRE version 1 with PPP inside; other versions have no key (`gre_pkt_to_tuple`).
fn gre_key(bytes: &[u8]) -> Result<u16, Why> {
    const PPP: u16 = 0x880b;
    let Some(&[_, flags, p0, p1]) = bytes.first_chunk::<4>() else { return Ok(0) };
    if flags & 7 != 1 {
        return Ok(0);
    }
    let Some(&[.., c0, c1]) = bytes.first_chunk::<8>() else { return Ok(0) };
    let protocol = u16::from_be_bytes([p0, p1]);
    if protocol == PPP { Ok(u16::from_be_bytes([c0, c1])) } else { Err(Why::got(Reason::Gre, u32::from(protocol))) }
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
