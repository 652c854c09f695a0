// SPDX-License-Identifier: GPL-2.0
//! The page by which a trace is found in an image of the memory.
//!
//! Invariant: the holder of the control lock writes it, except for the moment of a panic.

use core::cell::UnsafeCell;
use core::mem;

use crate::abi::command::{Info, Moment};
use crate::abi::landmark::{Landmark, MAGIC};
use crate::{ffi, per_cpu, pool};

struct Page(UnsafeCell<Landmark>);

// SAFETY: the holder of the control lock writes it, the one CPU that panics another field of it, and nobody reads it.
unsafe impl Sync for Page {}

// SAFETY: a landmark is made of numbers, for which zero is a value.
static PAGE: Page = Page(UnsafeCell::new(unsafe { mem::zeroed() }));

/// Says what the recorder does now.
///
/// # Safety
/// The control lock is held, or there is no device.
pub unsafe fn put(info: Info) {
    let page = PAGE.0.get();
    // SAFETY: as the caller says, so nobody else has a reference to this field; the same below.
    let machine = unsafe { &raw mut (*page).machine };
    // SAFETY: the page is in the module's data, and its machine can be written.
    unsafe { ffi::kutrace_shim_machine(machine, page) };
    let (blocks, blocks_taken) = pool::place();
    // SAFETY: as above.
    unsafe { (*page).info = Info { lost: 0, refused_names: 0, refused_marks: 0, blocks_taken: 0, ..info } };
    // SAFETY: as above.
    unsafe { (*page).blocks = blocks };
    // SAFETY: as above.
    unsafe { (*page).blocks_taken = blocks_taken };
    // SAFETY: as above.
    unsafe { (*page).fields = per_cpu::FIELDS };
    // SAFETY: as above.
    unsafe { (*page).magic = MAGIC };
}

/// Says when the kernel panicked.
///
/// # Safety
/// This is the CPU that panics.
pub unsafe fn put_panic(moment: Moment) {
    // SAFETY: as the caller says, and nobody else writes this field.
    unsafe { (*PAGE.0.get()).panic = moment };
}

/// Nothing is there to be found any more.
///
/// # Safety
/// There is no device.
pub unsafe fn take_away() {
    // SAFETY: as the caller says, so nobody else writes the page.
    unsafe { (*PAGE.0.get()).magic = [0; 16] };
}
