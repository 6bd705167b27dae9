//! The Internet checksum (RFC 1071).

mod wide;

/// Folded one's-complement sum of 16-bit words; an odd last byte counts as the high half. At most 64 KiB, or what
/// follows is not summed right.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    // Words are summed as they lie and swapped once at the end: the sum does not care (RFC 1071, 2B).
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut total = if blocks.is_empty() { 0 } else { wide::sum(blocks) };
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        total = total.wrapping_add(u64::from(u32::from_ne_bytes(*word)));
    }
    let mut last = [0u8; 4];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    fold(total.wrapping_add(u64::from(u32::from_ne_bytes(last))))
}

/// The same of an IPv4 header without options.
#[inline(always)]
#[must_use]
pub const fn sum20(bytes: &[u8; 20]) -> u16 {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = *bytes;
    // Five numbers below 2^32 do not overflow 2^64.
    let total = (word(a, b, c, d).wrapping_add(word(e, f, g, h)))
        .wrapping_add(word(i, j, k, l).wrapping_add(word(m, n, o, p)))
        .wrapping_add(word(q, r, s, t));
    fold(total)
}

#[inline(always)]
const fn word(a: u8, b: u8, c: u8, d: u8) -> u64 {
    u32::from_ne_bytes([a, b, c, d]) as u64
}

/// Adds up the four words of a sum, with their carries.
#[inline(always)]
const fn fold(total: u64) -> u16 {
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16);
    let total = (total & 0xffff) + (total >> 16);
    let total = (total & 0xffff) + (total >> 16);
    u16::from_be((total & 0xffff) as u16)
}

/// The checksum of a header whose checksum field is zero.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rfc1071_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0xddf2);
        assert_eq!(of(&bytes), !0xddf2);
        assert_eq!(sum(&bytes[..7]), 0xdcfb);
        assert_eq!(sum(&[]), 0);
        let header: [u8; 20] = core::array::from_fn(|i| (i * 37 + 200) as u8);
        assert_eq!(sum20(&header), sum(&header));
        assert_eq!(sum20(&[0xff; 20]), 0xffff);
    }
}
