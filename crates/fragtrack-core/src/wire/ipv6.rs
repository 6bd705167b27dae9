//! IPv6: the header chain up to and behind the fragment header, checked in the order of the kernel's
//! `ipv6_frag_rcv` (local) and `nf_ct_frag6_gather` (netfilter).

use super::{Addresses, Fragment, be16, be32, be64};
use crate::config::Path;
use crate::reason::Reason;

/// Length of the fixed header.
pub const FIXED: usize = 40;
/// Next-header number of the fragment header.
pub const FRAGMENT: u8 = 44;
const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ROUTING: u8 = 43;
const AUTH: u8 = 51;
/// Next-header number of ICMPv6.
pub const ICMPV6: u8 = 58;
/// "No next header".
pub const NONE: u8 = 59;
const DESTINATION: u8 = 60;

/// An ICMPv6 parameter problem: code and pointer.
pub type Problem = (u8, u32);

/// What an IPv6 packet turned out to be.
#[derive(Clone, Copy, Debug)]
pub enum Decoded {
    /// Not a fragment, or (netfilter) one that passes as it is.
    Whole,
    /// A fragment to be placed.
    Fragment,
    /// Offset 0 and no more fragments (RFC 6946): whole by itself.
    Atomic,
    /// Refused; `fragment` says whether it got as far as being counted as one.
    Fault {
        /// Why.
        reason: Reason,
        /// What Linux answers.
        problem: Option<Problem>,
        /// It carries a fragment header.
        fragment: bool,
    },
}

const fn fault(reason: Reason, problem: Option<Problem>) -> Decoded {
    Decoded::Fault { reason, problem, fragment: true }
}

/// Where an extension header ends, and what comes next; `None` if its first two bytes are missing or
/// `next` is no extension header that may be skipped.
pub(crate) fn skip(bytes: &[u8], next: u8, at: usize) -> Option<(u8, usize)> {
    let following = *bytes.get(at)?;
    let length = usize::from(*bytes.get(at + 1)?);
    match next {
        HOP_BY_HOP | ROUTING | DESTINATION => Some((following, at + 8 * (length + 1))),
        AUTH => Some((following, at + 4 * (length + 2))),
        FRAGMENT => Some((following, at + 8)),
        _ => None,
    }
}

/// The place of the first fragment header, and of the next-header byte that names it.
#[must_use]
pub fn find_fragment_header(bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut next, mut named, mut at) = (*bytes.get(6)?, 6, FIXED);
    while next != FRAGMENT {
        let (following, end) = skip(bytes, next, at)?;
        (next, named, at) = (following, at, end);
    }
    (at <= bytes.len()).then_some((at, named))
}

/// The upper-layer header behind `at`, where the header `next` starts, and its place, which may lie behind the
/// packet (`ipv6_skip_exthdr`). A fragment header with an offset ends the walk; `None` if it breaks off.
#[must_use]
pub fn upper_layer(bytes: &[u8], mut at: usize, mut next: u8) -> Option<(u8, usize)> {
    while is_extension(next) {
        // The offset is looked at before the rest of the header.
        if next == FRAGMENT && be16(bytes, at + 2)? & 0xfff8 != 0 {
            return Some((FRAGMENT, at));
        }
        (next, at) = skip(bytes, next, at)?;
    }
    (next != NONE).then_some((next, at))
}

/// RFC 7112 as the kernel checks it (`ipv6frag_thdr_truncated`): does the chain that starts with the
/// fragment header at `at` end before the upper-layer header does? What cannot be walked is not judged.
fn chain_is_cut(bytes: &[u8], at: usize) -> bool {
    match upper_layer(bytes, at, FRAGMENT) {
        None | Some((FRAGMENT, _)) => false,
        Some((next, at)) => {
            let needed = match next {
                TCP => 20,
                UDP | ICMPV6 => 8,
                _ => 1,
            };
            at + needed > bytes.len()
        }
    }
}

/// A fragment header behind `at`, where the header `next` starts: what the kernel meets when it goes on
/// with a packet that was already put together once.
#[must_use]
pub fn nested_fragment_header(bytes: &[u8], mut next: u8, mut at: usize) -> Option<usize> {
    loop {
        match next {
            FRAGMENT => return (at <= bytes.len()).then_some(at),
            NONE => return None,
            _ => (next, at) = skip(bytes, next, at)?,
        }
    }
}

/// Whether a header is one that the chain may go on behind.
#[must_use]
pub const fn is_extension(next: u8) -> bool {
    matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | AUTH | DESTINATION)
}

/// What of `bytes` is the packet: the rest is padding.
#[must_use]
pub fn packet(bytes: &[u8]) -> &[u8] {
    let payload = be16(bytes, 4).map_or(0, usize::from);
    if payload == 0 && bytes.get(6) == Some(&HOP_BY_HOP) {
        return bytes;
    }
    bytes.get(..FIXED + payload).unwrap_or(bytes)
}

/// Decodes the packet that starts `bytes` into `fragment` and `addresses`; bytes after its payload length are padding.
///
/// `always`: judge packets that are no fragments, too.
#[inline(always)]
#[must_use]
pub fn decode(
    bytes: &[u8],
    domain: u64,
    path: Path,
    always: bool,
    fragment: &mut Fragment,
    addresses: &mut Addresses,
) -> Decoded {
    let whole = |reason| {
        if always { Decoded::Fault { reason, problem: None, fragment: false } } else { Decoded::Whole }
    };
    let Some(fixed) = bytes.first_chunk::<FIXED>() else {
        return whole(Reason::Truncated);
    };
    let [version, class, _, _, p0, p1, next, ..] = *fixed;
    if version >> 4 != 6 {
        return whole(Reason::Header);
    }
    let payload = usize::from(u16::from_be_bytes([p0, p1]));
    // Payload length 0 with a hop-by-hop header may be a jumbogram: as long as it came.
    let total = if payload == 0 && next == HOP_BY_HOP { bytes.len() } else { FIXED + payload };
    let packet = bytes.get(..total).unwrap_or(bytes);
    let found = if next == FRAGMENT { Some((FIXED, 6)) } else { find_fragment_header(packet) };
    if total > bytes.len() {
        return if found.is_some() { fault(Reason::Truncated, None) } else { whole(Reason::Truncated) };
    }
    let Some((at, _)) = found else { return Decoded::Whole };
    let local = path == Path::Local;
    if !local && (payload == 0 || chain_is_cut(packet, at)) {
        return Decoded::Whole;
    }
    let pointer = at as u32;
    if payload == 0 {
        // Jumbo payload inhibits the fragment header.
        return fault(Reason::FragmentHeader, Some((0, pointer)));
    }
    let (Some(field), Some(id)) = (be16(packet, at + 2), be32(packet, at + 4)) else {
        return fault(Reason::FragmentHeader, local.then_some((0, pointer)));
    };
    let offset = u32::from(field & 0xfff8);
    let more = field & 1 != 0;
    let header = at + 8;
    *addresses = [
        be64(bytes, 8).unwrap_or(0),
        be64(bytes, 16).unwrap_or(0),
        be64(bytes, 24).unwrap_or(0),
        be64(bytes, 32).unwrap_or(0),
    ];
    let [a, b, c, d] = *addresses;
    *fragment = Fragment {
        addr: a.rotate_left(16) ^ b ^ c.rotate_left(32) ^ d.rotate_left(48),
        context: domain,
        id,
        offset,
        length: (total - header) as u32,
        header: header as u32,
        protocol: packet.get(at).copied().unwrap_or(NONE),
        ecn: (class >> 4) & 3,
        more,
        df: false,
    };
    if local && offset == 0 && !more {
        return Decoded::Atomic;
    }
    if local && offset == 0 && chain_is_cut(packet, at) {
        return fault(Reason::Chain, Some((3, 0)));
    }
    Decoded::Fragment
}
