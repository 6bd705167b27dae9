//! From a frame to a fragment. Stateless, allocates nothing, believes no length.

pub mod checksum;
pub mod ipv4;
pub mod ipv6;
pub mod link;

/// Big-endian 16 bits at `at`.
#[inline(always)]
#[must_use]
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|b| u16::from_be_bytes(*b))
}

/// Big-endian 32 bits at `at`.
#[inline(always)]
#[must_use]
pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|b| u32::from_be_bytes(*b))
}

/// Big-endian 64 bits at `at`.
#[inline(always)]
#[must_use]
pub fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<8>().map(|b| u64::from_be_bytes(*b))
}

/// Whether a packet, from its IP header on, is a fragment as far as its bytes show.
#[inline(always)]
#[must_use]
pub fn is_fragment(packet: &[u8]) -> bool {
    match packet.first_chunk::<20>() {
        Some([first, _, _, _, _, _, flags, offset, ..]) if first >> 4 == 4 => flags & 0x3f != 0 || *offset != 0,
        Some([first, _, _, _, _, _, next, ..]) if first >> 4 == 6 => {
            ipv6::is_extension(*next) && ipv6::find_fragment_header(ipv6::packet(packet)).is_some()
        }
        _ => false,
    }
}

/// Address family; the number is the index into per-family arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4 = 0,
    /// IPv6.
    V6 = 1,
}

/// A fragment, decoded: all that placing it needs, and where its bytes are.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// IPv4: source in the high half, destination in the low. IPv6: a digest of both; the
    /// addresses themselves are in [`Addresses`].
    pub addr: u64,
    /// The domain (VLAN tags) and, in the top 8 bits, the IPv4 protocol.
    pub context: u64,
    /// Identification.
    pub id: u32,
    /// First byte of its payload within the datagram, a multiple of 8.
    pub offset: u32,
    /// Payload bytes.
    pub length: u32,
    /// Bytes from the IP header to the payload.
    pub header: u32,
    /// IPv4 protocol, or the next header of the IPv6 fragment header.
    pub protocol: u8,
    /// ECN code point, 0 to 3.
    pub ecn: u8,
    /// More fragments follow.
    pub more: bool,
    /// IPv4: don't fragment.
    pub df: bool,
}

impl Fragment {
    /// The place for a fragment before decoding.
    pub const NONE: Self = Self {
        addr: 0,
        context: 0,
        id: 0,
        offset: 0,
        length: 0,
        header: 0,
        protocol: 0,
        ecn: 0,
        more: false,
        df: false,
    };
}

/// Source and destination of an IPv6 packet, as four big-endian words.
pub type Addresses = [u64; 4];
