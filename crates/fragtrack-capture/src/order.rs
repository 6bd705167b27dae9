//! Byte order of a file or section, and numbers read and written in it.

/// Byte order in which a pcap file or a pcapng section writes its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    /// The 16-bit number at byte `at`, or `None` past the end.
    #[inline]
    #[must_use]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(raw),
            Self::Big => u16::from_be_bytes(raw),
        })
    }

    /// The 32-bit number at byte `at`, or `None` past the end.
    #[inline]
    #[must_use]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(raw),
            Self::Big => u32::from_be_bytes(raw),
        })
    }

    /// The 64-bit number at byte `at`, or `None` past the end.
    #[inline]
    #[must_use]
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let raw = *bytes.get(at..)?.first_chunk::<8>()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(raw),
            Self::Big => u64::from_be_bytes(raw),
        })
    }

    /// `value` as two bytes.
    #[inline]
    #[must_use]
    pub fn bytes16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// `value` as four bytes.
    #[inline]
    #[must_use]
    pub fn bytes32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// Appends `value` as two bytes.
    #[inline]
    pub(crate) fn put16(self, out: &mut Vec<u8>, value: u16) {
        out.extend_from_slice(&self.bytes16(value));
    }

    /// Appends `value` as four bytes.
    #[inline]
    pub(crate) fn put32(self, out: &mut Vec<u8>, value: u32) {
        out.extend_from_slice(&self.bytes32(value));
    }

    /// Writes `value` over the four bytes at `at`; nothing happens where they do not exist.
    #[inline]
    pub(crate) fn patch32(self, out: &mut [u8], at: usize, value: u32) {
        patch(out, at, self.bytes32(value));
    }
}

/// Writes `raw` over the bytes at `at`; nothing happens where they do not exist.
#[inline]
pub(crate) fn patch<const N: usize>(out: &mut [u8], at: usize, raw: [u8; N]) {
    if let Some(place) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<N>) {
        *place = raw;
    }
}

/// Bytes that bring a length to a multiple of four (draft-ietf-opsawg-pcapng, "General Block Structure").
#[inline]
pub(crate) const fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_both_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(Order::Little.u16(&bytes, 1), Some(0x0302));
        assert_eq!(Order::Big.u16(&bytes, 1), Some(0x0203));
        assert_eq!(Order::Little.u32(&bytes, 4), Some(0x0807_0605));
        assert_eq!(Order::Big.u32(&bytes, 5), None);
        assert_eq!(Order::Big.u64(&bytes, 0), Some(0x0102_0304_0506_0708));
        assert_eq!(Order::Big.u16(&bytes, usize::MAX), None);
    }

    #[test]
    fn padding_reaches_a_multiple_of_four() {
        assert_eq!([0, 1, 2, 3, 4].map(padding), [0, 3, 2, 1, 0]);
    }
}
