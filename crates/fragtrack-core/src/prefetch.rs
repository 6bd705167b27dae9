//! Asking for a cache line before it is needed.
//!
//! The engine is limited by the memory system: a record, its queue and its hash line are three
//! misses of about 80 ns each. They are asked for a batch ahead, so that they overlap.

#![allow(unsafe_code)]

/// Asks for the cache line that holds `value`. Changes nothing but timing.
#[inline(always)]
pub fn line<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: PREFETCHT0 reads no memory architecturally and cannot fault, whatever the address;
        // here the address is that of a live reference, and SSE is part of every x86_64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = value;
    }
}

/// Asks for the cache line of `bytes[at]`, if there is such a byte.
#[inline(always)]
pub fn read(bytes: &[u8], at: usize) {
    if let Some(byte) = bytes.get(at) {
        line(byte);
    }
}
