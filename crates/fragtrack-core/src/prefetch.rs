//! Hints to the memory system: a cache line before it is needed, large pages for large tables.
//!
//! The engine is limited by the memory system: a record, its queue and its hash line are three
//! misses of about 80 ns each. They are asked for a block ahead, so that they overlap.

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

/// Smallest size that large pages are asked for.
const HUGE: usize = 2 << 20;

/// Asks for large pages under a large table: random access to it otherwise pays a page walk each time.
/// Changes nothing but timing.
pub fn large_pages<T>(table: &[T]) {
    #[cfg(target_os = "linux")]
    {
        let range = table.as_ptr_range();
        let (start, end) = (range.start as usize, range.end as usize);
        // Only whole large pages inside the table.
        let (start, end) = (start.next_multiple_of(HUGE), end / HUGE * HUGE);
        if start < end {
            // SAFETY: MADV_HUGEPAGE changes neither content nor access rights of a mapping; the range lies inside
            // memory that `table` borrows. A refusal (no such pages) is fine, so the result is not needed.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (table, HUGE);
    }
}

/// Adds to a table that grows by doubling, in large pages once it is large.
#[inline(always)]
pub fn push<T>(table: &mut Vec<T>, value: T) {
    if table.len() == table.capacity() {
        grow(table);
    }
    table.push(value);
}

#[cold]
#[inline(never)]
fn grow<T>(table: &mut Vec<T>) {
    table.reserve(table.capacity().max(64));
    let spare = table.spare_capacity_mut();
    large_pages(spare);
}
