// SPDX-License-Identifier: GPL-2.0
//! Memory that outlives a warm reboot: its layout, with the pool and the data that leads the next kernel to the trace.
//!
//! ```text
//! landmark | offset of each CPU's sighting | sightings | blocks taken | ... | blocks
//! ```
//!
//! The next kernel has other page tables, and everything that this one has elsewhere is gone. So the landmark of this
//! range contains only addresses within the range, and *sightings* stand in for what is elsewhere: where each CPU was
//! last seen.
//!
//! Invariant: the range is the same from the loading of the module to its end.

use core::mem::size_of;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use kernel::error::{code, to_result};
use kernel::prelude::*;

use crate::abi::block;
use crate::abi::command::{BLOCKS_MAX, STATE_EMPTY};
use crate::abi::landmark::{Landmark, Sighting, PAGE, RESERVED};
use crate::ffi;

static START: AtomicU64 = AtomicU64::new(0);
static PHYSICAL: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The range.
#[derive(Clone, Copy)]
pub struct Range {
    start: u64,
    /// Its physical address.
    pub physical: u64,
    bytes: u64,
}

/// The range, if there is one.
pub fn range() -> Option<Range> {
    let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let found = Range { start: load(&START), physical: load(&PHYSICAL), bytes: load(&BYTES) };
    (found.bytes > 0).then_some(found)
}

impl Range {
    /// The landmark of the range.
    pub fn landmark(&self) -> *mut Landmark {
        self.start as *mut Landmark
    }

    /// The offsets from [`Range::sightings`] to each CPU's sighting, u64 each.
    pub fn offsets(&self) -> *mut u64 {
        (self.start + PAGE as u64) as *mut u64
    }

    /// The sightings, one of each CPU.
    pub fn sightings(&self) -> *mut Sighting {
        (self.offsets() as u64 + cpus() * 8).next_multiple_of(64) as *mut Sighting
    }

    /// The count of blocks taken.
    pub fn blocks_taken(&self) -> *mut u64 {
        (self.sightings() as u64 + cpus() * size_of::<Sighting>() as u64) as *mut u64
    }

    /// The first block, and the number of blocks.
    pub fn pool(&self) -> (*mut u8, usize) {
        let first = (self.blocks_taken() as u64 + 8).next_multiple_of(block::BYTES as u64);
        let blocks = (self.start + self.bytes).saturating_sub(first) / block::BYTES as u64;
        (first as *mut u8, blocks.min(BLOCKS_MAX.into()) as usize)
    }

    /// Returns whether `address` is in the range.
    pub fn has(&self, address: u64) -> bool {
        (self.start..self.start + self.bytes).contains(&address)
    }
}

/// Finds the range that the module's parameter names, and saves what an earlier kernel left in it.
///
/// # Safety
/// The module is being loaded.
pub unsafe fn find() -> Result {
    let (mut start, mut physical, mut bytes) = (ptr::null_mut(), 0, 0);
    // SAFETY: all three can be written, and nothing else has the range.
    let found = unsafe { ffi::kutrace_shim_reserved_find(&mut start, &mut physical, &mut bytes) };
    to_result(found)?;
    if found == 0 {
        return Ok(());
    }
    let range = Range { start: start as u64, physical, bytes };
    if range.pool().1 == 0 {
        pr_err!("the reserved memory is too small for a block\n");
        return Err(code::EINVAL);
    }
    // SAFETY: a landmark is made of numbers, for which every bit pattern is a value; the range begins with a page.
    let (magic, at, state) = unsafe {
        let page = range.landmark();
        (
            ptr::read_volatile(&raw const (*page).magic),
            ptr::read_volatile(&raw const (*page).machine.physical),
            ptr::read_volatile(&raw const (*page).info.state),
        )
    };
    if magic == RESERVED && at == physical && state != STATE_EMPTY {
        // SAFETY: the range was found, and nothing is kept yet.
        to_result(unsafe { ffi::kutrace_shim_reserved_keep() })?;
    }
    // Any other content must not become readable.
    // SAFETY: the range was found and has this many bytes, and nothing else uses it.
    unsafe { ptr::write_bytes(start.cast::<u8>(), 0, bytes as usize) };
    START.store(range.start, Ordering::Relaxed);
    PHYSICAL.store(range.physical, Ordering::Relaxed);
    BYTES.store(range.bytes, Ordering::Relaxed);
    Ok(())
}

/// Releases the range, after restoring what was saved of it.
///
/// # Safety
/// The module is about to be unloaded: nothing uses the range, and there is no device.
pub unsafe fn leave() {
    BYTES.store(0, Ordering::Relaxed);
    // SAFETY: as the caller guarantees.
    unsafe { ffi::kutrace_shim_reserved_leave() };
}

fn cpus() -> u64 {
    u64::from(ffi::kutrace_shim_cpus())
}
