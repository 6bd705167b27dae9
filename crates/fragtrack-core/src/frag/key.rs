//! Keyed hashes of a fragment's key. Keys come from attackers.

/// SipHash-1-3 (Aumasson and Bernstein 2012) over whole 64-bit words.
#[derive(Clone, Copy, Debug)]
pub struct SipHash {
    key: (u64, u64),
}

impl SipHash {
    /// With a secret key.
    #[must_use]
    pub const fn new(key: (u64, u64)) -> Self {
        Self { key }
    }

    /// The hash of `words`, as that of their little-endian bytes.
    #[inline(always)]
    #[must_use]
    pub fn hash<const N: usize>(&self, words: [u64; N]) -> u64 {
        let (k0, k1) = self.key;
        let mut v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        for word in words {
            v = absorb(v, word);
        }
        v = absorb(v, ((N as u64 * 8) & 0xff) << 56);
        let [a, b, c, d] = v;
        let [a, b, c, d] = round(round(round([a, b, c ^ 0xff, d])));
        a ^ b ^ c ^ d
    }
}

#[inline(always)]
fn absorb([a, b, c, d]: [u64; 4], word: u64) -> [u64; 4] {
    let [a, b, c, d] = round([a, b, c, d ^ word]);
    [a ^ word, b, c, d]
}

#[inline(always)]
fn round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    [a, b, c, d]
}

/// Multilinear hashing (Lemire and Kaser 2014, "Strongly universal string hashing is fast"): a sum of 32-bit words,
/// each times a secret 64-bit number of its own; the upper half is the hash.
///
/// For two different keys of the same length the probability of the same hash is 2^-32 over the secret, whatever
/// the keys: an attacker who does not know the secret cannot fill a line of the index on purpose. It costs a
/// multiplication a word, where SipHash costs a round.
#[derive(Clone, Copy, Debug)]
pub struct Multilinear {
    secret: [u64; 13],
}

impl Multilinear {
    /// Draws its secret numbers out of a 128-bit key, by SipHash.
    #[must_use]
    pub fn new(key: (u64, u64)) -> Self {
        let sip = SipHash::new(key);
        Self { secret: core::array::from_fn(|i| sip.hash([i as u64])) }
    }

    /// The hash of `N` times 64 bits; `N` is at most 6.
    #[inline(always)]
    #[must_use]
    pub fn hash<const N: usize>(&self, words: [u64; N]) -> u32 {
        let [first, pairs @ ..] = &self.secret;
        let mut sum = *first;
        for (word, pair) in words.iter().zip(pairs.as_chunks::<2>().0) {
            let [a, b] = pair;
            sum = sum.wrapping_add(a.wrapping_mul(word & 0xffff_ffff)).wrapping_add(b.wrapping_mul(word >> 32));
        }
        (sum >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher;

    #[test]
    fn different_words_hash_differently() {
        let hash = Multilinear::new((1, 2));
        let mut seen = std::collections::BTreeSet::new();
        for i in 0..1000u64 {
            seen.insert(hash.hash([i, 7]));
            seen.insert(hash.hash([7, i << 32]));
        }
        assert!(seen.len() > 1990);
        assert_ne!(hash.hash([1, 2, 3, 4, 5]), hash.hash([1, 2, 3, 4, 6 << 32]));
    }

    #[test]
    fn equals_the_published_function() {
        for (i, key) in [(0, 0), (1, 2), (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)].into_iter().enumerate() {
            let words = [i as u64, 0xdead_beef, u64::MAX];
            let mut theirs = siphasher::sip::SipHasher13::new_with_keys(key.0, key.1);
            for word in words {
                theirs.write(&word.to_le_bytes());
            }
            assert_eq!(SipHash::new(key).hash(words), theirs.finish());
        }
    }
}
