// SPDX-License-Identifier: GPL-2.0
//! A recorder in the manner of the original, for comparison: entries of 8 bytes with 20 bits of time, 12 of event and
//! 32 of argument; room is reserved by `lock xadd` on the place of the next entry, at any price of exclusivity.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::abi::block::BYTES;
use crate::{arch, pool};

/// State of a CPU's recorder.
static TRACING: AtomicBool = AtomicBool::new(false);
/// Index of the next entry, in entries since the start.
static NEXT: AtomicU64 = AtomicU64::new(0);
static ENTRIES: AtomicPtr<u64> = AtomicPtr::new(ptr::null_mut());
static MASK: AtomicU64 = AtomicU64::new(0);
/// The original's resolution: a count is 64 TSC counts.
const SHIFT: u32 = 6;

/// Allocates memory for this many blocks, a power of two.
pub fn prepare(blocks: usize) {
    ENTRIES.store(pool::memory(blocks).cast(), Ordering::Relaxed);
    MASK.store((blocks * BYTES / 8 - 1) as u64, Ordering::Relaxed);
    TRACING.store(true, Ordering::Relaxed);
}

/// Records an event.
#[inline(never)]
pub extern "C" fn record(event: u32, argument: u32) {
    if !TRACING.load(Ordering::Relaxed) {
        return;
    }
    let time = arch::tsc() >> SHIFT;
    let index = NEXT.fetch_add(1, Ordering::SeqCst) & MASK.load(Ordering::Relaxed);
    let entry = time << 44 | u64::from(event) << 32 | u64::from(argument);
    // SAFETY: the mask keeps the index inside the memory.
    unsafe { ptr::write_volatile(ENTRIES.load(Ordering::Relaxed).add(index as usize), entry) };
}
