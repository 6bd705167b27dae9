//! The whole datagram: header of the offset-0 fragment, with lengths, flags and checksum made right
//! (`ip_frag_reasm`, `ip6_frag_reasm`).

use crate::frag::queue::Queue;
use crate::frag::rules::ecn_of;
use crate::wire::{checksum, ipv6};

/// Writes the IPv4 header of a whole datagram of `payload` bytes, made from that of its first fragment.
pub fn header4(out: &mut Vec<u8>, first: &[u8], payload: u32, ecn: u8, dont_fragment: bool) {
    let start = out.len();
    out.extend_from_slice(first);
    let Some(header) = out.get_mut(start..) else { return };
    let total = (header.len() + payload as usize) as u16;
    let [t0, t1] = total.to_be_bytes();
    if let Some([_, tos, l0, l1, _, _, f0, f1, _, _, c0, c1, ..]) = header.first_chunk_mut::<20>() {
        *tos |= ecn;
        (*l0, *l1) = (t0, t1);
        (*f0, *f1) = (if dont_fragment { 0x40 } else { 0 }, 0);
        (*c0, *c1) = (0, 0);
    }
    let [s0, s1] = checksum::of(header).to_be_bytes();
    if let Some([_, _, _, _, _, _, _, _, _, _, c0, c1, ..]) = header.first_chunk_mut::<20>() {
        (*c0, *c1) = (s0, s1);
    }
}

/// Writes the headers of a whole IPv6 datagram, made from those of its first fragment (fragment header
/// included in `first`, left out of the result).
pub fn header6(out: &mut Vec<u8>, first: &[u8], payload: u32, ecn: u8) {
    let start = out.len();
    let Some((kept, fragment_header)) = first.len().checked_sub(8).and_then(|at| first.split_at_checked(at)) else {
        return;
    };
    out.extend_from_slice(kept);
    let Some(header) = out.get_mut(start..) else { return };
    let length = (header.len().saturating_sub(ipv6::FIXED) + payload as usize) as u16;
    let [p0, p1] = length.to_be_bytes();
    if let Some([_, class, _, _, l0, l1, ..]) = header.first_chunk_mut::<{ ipv6::FIXED }>() {
        *class |= ecn << 4;
        (*l0, *l1) = (p0, p1);
    }
    if let (Some((_, named)), Some(next)) = (ipv6::find_fragment_header(first), fragment_header.first())
        && let Some(byte) = header.get_mut(named)
    {
        *byte = *next;
    }
}

/// What to OR into the ECN field of the result.
#[must_use]
pub fn ecn(queue: &Queue) -> u8 {
    ecn_of(queue.ecn()).unwrap_or(0)
}
