//! What the Zeek view needs of a packet.

/// ICMP.
pub const ICMP: u8 = 1;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// ICMPv6.
pub const ICMPV6: u8 = 58;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

/// A whole packet: one that came in fragments is seen once, when it is complete.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Source address; an IPv4 address in the low 32 bits.
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// Packets of different zones never meet. Zeek has no zones: 0 for all.
    pub zone: u64,
    /// What the IP header claims: IPv4 total length, IPv6 payload length and 40. Of a reassembled datagram, that of
    /// the whole.
    pub length: u32,
    /// Bytes that the lengths in the headers claim, behind the TCP header with its options, behind the 8 bytes of the
    /// UDP header (by the length in that header), behind the first 8 bytes of the ICMP message; else 0.
    pub payload: u32,
    /// TCP only.
    pub seq: u32,
    /// TCP only.
    pub ack: u32,
    /// Ports of TCP and UDP; type of ICMP; else 0.
    pub sport: u16,
    /// Ports of TCP and UDP; code of ICMP; else 0.
    pub dport: u16,
    /// TCP only: as it stands in the header.
    pub window: u16,
    /// TCP only: from FIN (1) to CWR (128).
    pub flags: u8,
    /// IP protocol.
    pub protocol: u8,
    /// 4 or 6.
    pub version: u8,
    /// TCP only: whether all of `payload` was captured. Where it was not, Zeek sees a gap.
    pub whole: bool,
    /// Whether a checksum of TCP, UDP or ICMP is known to be wrong.
    pub bad_checksum: bool,
}

impl Segment {
    pub(crate) const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Whether it has a SYN and no ACK.
    pub(crate) const fn asks(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// Reads the transport header of a packet; `None` if it does not fit in the packet, or was not captured.
    ///
    /// `ip` gives what stands in the IP header (addresses, protocol, length, version, zone); `size` is the number of
    /// bytes behind it as claimed, `transport` those that were captured.
    #[must_use]
    pub fn read(ip: Self, size: u32, transport: &[u8]) -> Option<Self> {
        let data = transport.get(..size as usize).unwrap_or(transport);
        match ip.protocol {
            TCP => {
                let &[a, b, c, d, s0, s1, s2, s3, k0, k1, k2, k3, words, flags, w0, w1, ..] = data.get(..20)? else {
                    return None;
                };
                let header = u32::from(words >> 4) * 4;
                if header < 20 || header as usize > data.len() {
                    return None;
                }
                Some(Self {
                    sport: u16::from_be_bytes([a, b]),
                    dport: u16::from_be_bytes([c, d]),
                    payload: size.saturating_sub(header),
                    flags,
                    seq: u32::from_be_bytes([s0, s1, s2, s3]),
                    ack: u32::from_be_bytes([k0, k1, k2, k3]),
                    window: u16::from_be_bytes([w0, w1]),
                    whole: data.len() == size as usize,
                    ..ip
                })
            }
            UDP => {
                let &[a, b, c, d, l0, l1, ..] = data.get(..8)? else { return None };
                let length = u32::from(u16::from_be_bytes([l0, l1]));
                Some(Self {
                    sport: u16::from_be_bytes([a, b]),
                    dport: u16::from_be_bytes([c, d]),
                    payload: length.saturating_sub(8),
                    ..ip
                })
            }
            ICMP | ICMPV6 => {
                let &[kind, code, ..] = data.get(..8)? else { return None };
                Some(Self { sport: kind.into(), dport: code.into(), payload: size.saturating_sub(8), ..ip })
            }
            _ => Some(ip),
        }
    }
}

impl Default for Segment {
    /// All zero, whole, and of version 4.
    fn default() -> Self {
        Self {
            src: 0,
            dst: 0,
            zone: 0,
            length: 0,
            payload: 0,
            seq: 0,
            ack: 0,
            sport: 0,
            dport: 0,
            window: 0,
            flags: 0,
            protocol: 0,
            version: 4,
            whole: true,
            bad_checksum: false,
        }
    }
}
