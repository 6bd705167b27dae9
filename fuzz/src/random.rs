//! Pseudo-randomness that a seed repeats (xorshift64*).

pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `limit`, which may be 0: then 0.
    pub const fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() >> 11) as usize % limit }
    }

    /// Once in `n` times.
    pub const fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
