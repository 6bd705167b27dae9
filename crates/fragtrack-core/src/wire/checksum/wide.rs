//! Sums of many 16-bit words at once, by whatever vectors the processor has.

#![allow(unsafe_code)]

/// Words side by side.
const LANES: usize = 16;

/// Sum of the 16-bit words of the blocks, as they lie.
#[inline(always)]
pub(super) fn sum(blocks: &[[u8; 2 * LANES]]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the only condition of calling it is that the processor has AVX2, which was asked just now. It is safe
        // code otherwise, the same as below.
        return unsafe { sum_avx2(blocks) };
    }
    lanes(blocks)
}

/// The same with vectors twice as wide.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(blocks: &[[u8; 2 * LANES]]) -> u64 {
    lanes(blocks)
}

#[inline(always)]
fn lanes(blocks: &[[u8; 2 * LANES]]) -> u64 {
    let mut lanes = [0u32; LANES];
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<2>().0) {
            // 2^16 words fit; a packet has 2^11 blocks at most.
            *lane = lane.wrapping_add(u32::from(u16::from_ne_bytes(*word)));
        }
    }
    lanes.iter().map(|lane| u64::from(*lane)).sum()
}
