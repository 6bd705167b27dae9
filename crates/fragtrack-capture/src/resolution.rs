//! Units of time stamps.

/// Resolution of pcapng time stamps, as the option `if_tsresol` encodes it: 10 to the minus
/// `value`, or with the highest bit set 2 to the minus the rest (draft-ietf-opsawg-pcapng,
/// "Interface Description Block Options").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolution(pub u8);

impl Resolution {
    /// Microseconds: what applies without the option.
    pub const MICRO: Self = Self(6);

    /// Nanoseconds since the epoch for `units` of this resolution after `offset` seconds, rounded
    /// down to whole nanoseconds and saturating at the ends of `i64`.
    #[inline]
    #[must_use]
    pub fn nanoseconds(self, units: u64, offset: i64) -> i64 {
        let scaled = if self.0 & 0x80 != 0 {
            (u128::from(units) * 1_000_000_000) >> (self.0 & 0x7f)
        } else if self.0 <= 9 {
            u128::from(units) * u128::from(10_u64.pow(9 - u32::from(self.0)))
        } else {
            // 10^20 is more than any number of units.
            10_u128.checked_pow(u32::from(self.0) - 9).map_or(0, |divisor| u128::from(units) / divisor)
        };
        let nanoseconds =
            i128::try_from(scaled).unwrap_or(i128::MAX).saturating_add(i128::from(offset) * 1_000_000_000);
        saturate(nanoseconds)
    }

    /// Units of this resolution after `offset` seconds for `time` nanoseconds since the epoch,
    /// rounded down, saturating at the ends of `u64`.
    #[must_use]
    pub fn units(self, time: i64, offset: i64) -> u64 {
        let nanoseconds = i128::from(time) - i128::from(offset) * 1_000_000_000;
        let Ok(nanoseconds @ 1..) = u128::try_from(nanoseconds) else {
            return 0;
        };
        // Whole seconds and the rest apart: nothing that fits in 64 bits overflows on the way.
        let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
        let power = u32::from(self.0 & 0x7f);
        let units = match (self.0 & 0x80, power) {
            (0, 0..=9) => nanoseconds / u128::from(10_u64.pow(9 - power)),
            (0, _) => 10_u128.checked_pow(power - 9).map_or(u128::MAX, |factor| nanoseconds.saturating_mul(factor)),
            (_, 0..=63) => (seconds << power) + (rest << power) / 1_000_000_000,
            (_, 64..=97) if seconds == 0 => (rest << power) / 1_000_000_000,
            (_, _) => u128::MAX,
        };
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// Whether microseconds cannot express every time of this resolution.
    #[must_use]
    pub const fn finer_than_micro(self) -> bool {
        match self.0 & 0x80 {
            0 => self.0 > 6,
            // 2^-20 is the first power of two below a microsecond.
            _ => (self.0 & 0x7f) >= 20,
        }
    }
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 10^9 times 2^127 or 10^127 is more than any integer here holds: digits by long division.
    fn exactly(units: u64, resolution: Resolution, offset: i64) -> i64 {
        let power = u32::from(resolution.0 & 0x7f);
        let base: u32 = if resolution.0 & 0x80 == 0 { 10 } else { 2 };
        let mut scaled = u128::from(units) * 1_000_000_000;
        for _ in 0..power {
            scaled /= u128::from(base);
        }
        saturate(scaled as i128 + i128::from(offset) * 1_000_000_000)
    }

    proptest! {
        #[test]
        fn nanoseconds_are_exact(units: u64, code: u8, offset in prop_oneof![-9..9_i64, any::<i64>()]) {
            let resolution = Resolution(code);
            prop_assert_eq!(resolution.nanoseconds(units, offset), exactly(units, resolution, offset));
        }

        #[test]
        fn units_lead_back(time in 0..i64::MAX, code in prop_oneof![9..19_u8, 0x9e..0xa0_u8], offset in -9..9_i64) {
            let resolution = Resolution(code);
            let units = resolution.units(time, offset);
            prop_assume!(units < u64::MAX && units > 0);
            let back = resolution.nanoseconds(units, offset);
            prop_assert!((back..=back + 1).contains(&time), "{} and {}", time, back);
        }

        #[test]
        fn units_never_overflow(time: i64, code: u8, offset: i64) {
            let units = Resolution(code).units(time, offset);
            prop_assert!(i128::from(time) > i128::from(offset) * 1_000_000_000 || units == 0);
        }
    }

    #[test]
    fn units_at_the_ends() {
        assert_eq!(Resolution(0x80 | 64).units(1, 0), 18_446_744_073);
        assert_eq!(Resolution(0x80 | 100).units(1, 0), u64::MAX);
        assert_eq!(Resolution(0x80 | 127).units(0, 0), 0);
        assert_eq!(Resolution(127).units(5, 0), u64::MAX);
        assert_eq!(Resolution(127).units(5_000_000_000, 5), 0);
        assert_eq!(Resolution(6).units(-1, 0), 0);
        assert_eq!(Resolution(0).units(i64::MAX, 0), i64::MAX as u64 / 1_000_000_000);
        assert_eq!(Resolution(0xff).nanoseconds(u64::MAX, 0), 0);
        assert_eq!(Resolution(0x7f).nanoseconds(u64::MAX, -1), -1_000_000_000);
        assert_eq!(Resolution(0).nanoseconds(u64::MAX, 0), i64::MAX);
        assert_eq!(Resolution(6).nanoseconds(0, i64::MIN), i64::MIN);
    }

    #[test]
    fn what_is_finer_than_a_microsecond() {
        let fine: Vec<u8> = (0..=255).filter(|code| Resolution(*code).finer_than_micro()).collect();
        assert_eq!(fine, (7..128).chain(128 + 20..=255).collect::<Vec<u8>>());
    }
}
