//! Link layers: where the IP header starts in a frame. One row per link type in [`TYPES`], one arm in
//! [`locate`].

use super::{be16, be32};
use crate::frame::LinkType;

/// Most VLAN tags a frame may carry; a deeper stack is not decoded.
pub const MAX_VLAN_TAGS: u64 = 4;
/// Most MPLS labels a frame may carry.
const MAX_LABELS: usize = 16;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;

/// The link types that are decoded: number in pcap and pcapng, name, what it is.
pub const TYPES: [(u16, &str, &str); 14] = [
    (0, "NULL", "BSD loopback, family in host order (either order is read)"),
    (1, "ETHERNET", "Ethernet, with VLAN tags, PPPoE and MPLS inside"),
    (9, "PPP", "PPP, with or without address and control bytes"),
    (12, "RAW", "raw IP (the number used by most BSDs)"),
    (14, "RAW", "raw IP (the number used by OpenBSD)"),
    (50, "PPP_HDLC", "PPP in HDLC-like framing"),
    (51, "PPP_ETHER", "PPPoE session, starting at its header"),
    (101, "RAW", "raw IP, version from the first nibble"),
    (104, "C_HDLC", "Cisco HDLC"),
    (108, "LOOP", "OpenBSD loopback, family in network order (either order is read)"),
    (113, "LINUX_SLL", "Linux cooked capture v1"),
    (228, "IPV4", "raw IPv4"),
    (229, "IPV6", "raw IPv6"),
    (276, "LINUX_SLL2", "Linux cooked capture v2"),
];

/// Where the IP header is, and what around it depends on the packet's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Located {
    /// Byte of the frame at which the IP header starts.
    pub ip: usize,
    /// VLAN tags: their number << 48, then 12 bits each, outermost lowest.
    pub domain: u64,
    /// Place of a PPPoE length field (counts the PPP protocol and the packet).
    pub pppoe_length: Option<usize>,
    /// Place of an IEEE 802.3 length field (counts all behind it).
    pub ieee_length: Option<usize>,
}

/// Finds the IP header of a frame; `None` if it is not IP or not understood.
#[inline(always)]
#[must_use]
pub fn locate(link: LinkType, frame: &[u8]) -> Option<Located> {
    if link.0 == 1
        && let Some(ETHERTYPE_IPV4 | ETHERTYPE_IPV6) = be16(frame, 12)
    {
        return Some(Located { ip: 14, ..Located::default() });
    }
    locate_any(link, frame)
}

#[inline(never)]
fn locate_any(link: LinkType, frame: &[u8]) -> Option<Located> {
    let plain = Located::default();
    match link.0 {
        1 => ethertype(frame, 12, plain),
        0 | 108 => family(frame, 4),
        9 | 50 => ppp(frame, 0, plain),
        51 => pppoe(frame, 0, plain),
        12 | 14 | 101 => ip(frame, plain),
        228 => (frame.first()? >> 4 == 4).then_some(plain),
        229 => (frame.first()? >> 4 == 6).then_some(plain),
        104 => match be16(frame, 0)? {
            0x0f00 | 0x8f00 => by_type(frame, be16(frame, 2)?, Located { ip: 4, ..plain }),
            _ => None,
        },
        113 => by_type(frame, be16(frame, 14)?, Located { ip: 16, ..plain }),
        276 => by_type(frame, be16(frame, 0)?, Located { ip: 20, ..plain }),
        _ => None,
    }
}

/// Accepts `at.ip` if an IP version stands there.
fn ip(frame: &[u8], at: Located) -> Option<Located> {
    matches!(frame.get(at.ip)? >> 4, 4 | 6).then_some(at)
}

/// BSD loopback: an address family in either byte order.
fn family(frame: &[u8], header: usize) -> Option<Located> {
    let value = be32(frame, 0)?;
    let value = if value > 0xffff { value.swap_bytes() } else { value };
    // AF_INET is 2 everywhere; AF_INET6 is 10 (Linux), 24 (NetBSD, OpenBSD), 28 (FreeBSD), 30 (macOS).
    let version = match value {
        2 => 4,
        10 | 24 | 28 | 30 => 6,
        _ => return None,
    };
    (frame.get(header)? >> 4 == version).then_some(Located { ip: header, ..Located::default() })
}

/// What stands behind the 16-bit type at `place`.
fn ethertype(frame: &[u8], place: usize, at: Located) -> Option<Located> {
    let kind = be16(frame, place)?;
    let at = Located { ip: place + 2, ..at };
    if kind <= 1500 {
        return snap(frame, place, at);
    }
    by_type(frame, kind, at)
}

fn by_type(frame: &[u8], kind: u16, at: Located) -> Option<Located> {
    match kind {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Some(at),
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => vlan(frame, at),
        ETHERTYPE_PPPOE_SESSION => pppoe(frame, at.ip, at),
        0x8847 | 0x8848 => mpls(frame, at),
        _ => None,
    }
}

/// One VLAN tag (IEEE 802.1Q, 802.1ad and the older numbers), then whatever follows.
fn vlan(frame: &[u8], at: Located) -> Option<Located> {
    let tags = at.domain >> 48;
    if tags >= MAX_VLAN_TAGS {
        return None;
    }
    let id = u64::from(be16(frame, at.ip)? & 0x0fff);
    let tagged = (at.domain & 0xffff_ffff_ffff) | id << (12 * tags) | (tags + 1) << 48;
    ethertype(frame, at.ip + 2, Located { domain: tagged, ..at })
}

/// IEEE 802.2 LLC with SNAP (RFC 1042).
fn snap(frame: &[u8], place: usize, at: Located) -> Option<Located> {
    if frame.get(at.ip..)?.first_chunk::<6>()? != &[0xaa, 0xaa, 3, 0, 0, 0] {
        return None;
    }
    let inner = Located { ip: at.ip + 8, ieee_length: Some(place), ..at };
    match be16(frame, at.ip + 6)? {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Some(inner),
        _ => None,
    }
}

/// PPPoE session stage (RFC 2516 section 4).
fn pppoe(frame: &[u8], place: usize, at: Located) -> Option<Located> {
    if be16(frame, place)? != 0x1100 {
        return None;
    }
    ppp(frame, place + 6, Located { pppoe_length: Some(place + 4), ..at })
}

/// PPP (RFC 1661, RFC 1662): address and control may be left out, the protocol may be one byte.
fn ppp(frame: &[u8], mut place: usize, at: Located) -> Option<Located> {
    if be16(frame, place)? == 0xff03 {
        place += 2;
    }
    let first = *frame.get(place)?;
    let (protocol, length) = if first & 1 == 1 { (u16::from(first), 1) } else { (be16(frame, place)?, 2) };
    let at = Located { ip: place + length, ..at };
    match protocol {
        PPP_IPV4 | PPP_IPV6 => Some(at),
        PPP_MPLS => mpls(frame, at),
        _ => None,
    }
}

/// MPLS label stack (RFC 3032); what is inside is told by the IP version.
fn mpls(frame: &[u8], mut at: Located) -> Option<Located> {
    for _ in 0..MAX_LABELS {
        let label = be32(frame, at.ip)?;
        at.ip += 4;
        if label & 0x100 != 0 {
            return ip(frame, at);
        }
    }
    None
}

/// Puts a new packet length into the fields of a link header that depend on it.
pub fn set_lengths(header: &mut [u8], at: &Located, packet: usize) {
    if let Some(place) = at.pppoe_length {
        // A PPPoE frame cannot say more than 65,535; the field then says that.
        let length = u16::try_from(packet + at.ip - (place + 2)).unwrap_or(u16::MAX);
        store(header, place, length);
    }
    if let Some(place) = at.ieee_length {
        let length = packet + at.ip - (place + 2);
        if length <= 1500 {
            store(header, place, length as u16);
        }
    }
}

fn store(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(to) = bytes.get_mut(at..at + 2) {
        to.copy_from_slice(&value.to_be_bytes());
    }
}
