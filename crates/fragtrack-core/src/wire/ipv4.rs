//! IPv4 headers, checked in the order of the kernel's `ip_rcv_core`.

use super::{Fragment, be16, checksum};
use crate::reason::Reason;

/// Decodes the packet that starts `bytes` into `fragment`; bytes after its total length are padding. Whether it is
/// a fragment at all.
///
/// `wrong_checksum` is set if the header checksum does not hold. The caller decides what that means;
/// it is computed for fragments only, unless `always` asks for more.
///
/// # Errors
/// `Header`, `Truncated`, and nothing else.
#[inline(always)]
pub fn decode(
    bytes: &[u8],
    domain: u64,
    always: bool,
    fragment: &mut Fragment,
    wrong_checksum: &mut bool,
) -> Result<bool, Reason> {
    let Some(fixed) = bytes.first_chunk::<20>() else {
        return Err(Reason::Truncated);
    };
    let [version, tos, t0, t1, i0, i1, f0, f1, _, protocol, ..] = *fixed;
    let header = u32::from(version & 15) * 4;
    if version >> 4 != 4 || header < 20 {
        return Err(Reason::Header);
    }
    let field = u16::from_be_bytes([f0, f1]);
    let fragmented = field & 0x3fff != 0;
    if !fragmented && !always {
        return Ok(false);
    }
    // Without options the checksum is that of a fixed number of bytes.
    *wrong_checksum = if header == 20 {
        checksum::sum20(fixed) != 0xffff
    } else {
        let Some(head) = bytes.get(..header as usize) else {
            return Err(Reason::Truncated);
        };
        checksum::sum(head) != 0xffff
    };
    let total = u32::from(u16::from_be_bytes([t0, t1]));
    if total as usize > bytes.len() {
        return Err(Reason::Truncated);
    }
    if total < header {
        return Err(Reason::Header);
    }
    if !fragmented {
        return Ok(false);
    }
    let [.., a0, a1, a2, a3, b0, b1, b2, b3] = *fixed;
    fragment.addr = u64::from_be_bytes([a0, a1, a2, a3, b0, b1, b2, b3]);
    fragment.context = domain | u64::from(protocol) << 56;
    fragment.id = u32::from(u16::from_be_bytes([i0, i1]));
    fragment.offset = u32::from(field & 0x1fff) * 8;
    fragment.length = total - header;
    fragment.header = header;
    fragment.protocol = protocol;
    fragment.ecn = tos & 3;
    fragment.more = field & 0x2000 != 0;
    fragment.df = field & 0x4000 != 0;
    Ok(true)
}

/// Total length of a packet with a sound header, at most `bytes.len()`.
#[must_use]
pub fn total_length(bytes: &[u8]) -> usize {
    be16(bytes, 2).map_or(0, usize::from).min(bytes.len())
}
