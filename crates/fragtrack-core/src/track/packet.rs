//! A packet from its IP header on, decoded for tracking: whose it is, and what its protocol needs; or what is wrong.

mod faults;
mod network;

use super::config::Checksum;
use super::icmp::{self, query};
use super::segment::{self, Segment};
use super::verdict::{Reason, Why};
use crate::frag::key::Multilinear;
use crate::wire::{Family, be16, ipv6};
use network::{Network, network4, network6, quoted_network};
pub use network::{View, view};

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
