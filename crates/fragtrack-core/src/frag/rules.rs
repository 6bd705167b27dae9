//! Numbers and small tables: mostly the kernel's.

use super::held::Record;
use crate::config::CostModel;

/// Largest IP packet (IPv4), largest payload (IPv6).
pub const MAX_PACKET: u32 = 65_535;

/// What it costs to hold a fragment, bytes.
#[inline(always)]
#[must_use]
pub const fn fragment_cost(model: CostModel, record: &Record) -> u32 {
    match model {
        CostModel::Capture => record.charged.saturating_add(192),
        CostModel::Kernel => kernel_cost(record.packet),
    }
}

/// Buffer size of a packet of `length` bytes written to a TUN device of Linux 6.18 (measured).
#[must_use]
pub const fn kernel_cost(length: u32) -> u32 {
    match length {
        0..=192 => 832,
        193..=640 => 1280,
        641..=1664 => 2304,
        1665..=3712 => 4352,
        3713..=7808 => 8448,
        _ => (length - 7808).div_ceil(4096).saturating_mul(4096).saturating_add(8448),
    }
}

/// The code point of the result for a set of code points (RFC 3168 section 5.3, `ip_frag_ecn_table`): what is
/// OR-ed into the first fragment's; `None` if they must not occur together.
#[must_use]
pub const fn ecn_of(seen: u8) -> Option<u8> {
    const NOT_ECT: u8 = 1;
    const CE: u8 = 1 << 3;
    if seen & NOT_ECT != 0 && seen != NOT_ECT {
        return None;
    }
    if seen & CE != 0 && seen != CE { Some(3) } else { Some(0) }
}
