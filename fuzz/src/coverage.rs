//! What the compiler's edge counters say: whether an input went where none went before.
//!
//! The build sets `-sanitizer-coverage-inline-8bit-counters` (LLVM's SanitizerCoverage); without it
//! there are no counters, and fuzzing goes on blindly.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

static START: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Called by every instrumented module before `main`, with the same range: that of the program.
///
/// # Safety
/// `start..end` is the array of counters, which lives as long as the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    START.store(start, Ordering::Relaxed);
    LENGTH.store(end as usize - start as usize, Ordering::Relaxed);
}

/// The classes of counts seen so far, a bit each, per edge.
pub struct Coverage {
    seen: Vec<u8>,
}

impl Coverage {
    pub fn new() -> Self {
        Self { seen: vec![0; LENGTH.load(Ordering::Relaxed)] }
    }

    /// Edges met so far, and all there are.
    pub fn edges(&self) -> (usize, usize) {
        (self.seen.iter().filter(|classes| **classes != 0).count(), self.seen.len())
    }

    /// Takes the counters, clears them, and says whether there was anything new.
    pub fn take(&mut self) -> bool {
        let start = START.load(Ordering::Relaxed);
        if start.is_null() {
            return false;
        }
        // SAFETY: the range that the module handed over; only this thread runs instrumented code
        // while it is borrowed (the watchdog does nothing but sleep and look at a number).
        let counters = unsafe { std::slice::from_raw_parts_mut(start, self.seen.len()) };
        let mut new = false;
        for (chunk, seen) in counters.chunks_mut(16).zip(self.seen.chunks_mut(16)) {
            if chunk.iter().all(|count| *count == 0) {
                continue;
            }
            for (count, seen) in chunk.iter_mut().zip(seen) {
                let class = class(*count);
                new |= class & !*seen != 0;
                *seen |= class;
                *count = 0;
            }
        }
        new
    }
}

/// Counts that differ by little tell the same: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, to 127, more.
const fn class(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128..=255 => 128,
    }
}
