// SPDX-License-Identifier: GPL-2.0
//! The page by which a trace is found in a memory image; and its counterpart in memory that outlives a reboot, with
//! sightings of the CPUs.
//!
//! Invariant: the holder of the control lock writes both, except for the moment of a panic; one context at a time
//! writes sightings, while a trace runs.

use core::cell::UnsafeCell;
use core::mem;
use core::ptr;
use core::sync::atomic::{fence, Ordering};

use kernel::prelude::*;

use crate::abi::command::{Info, Moment, SHIFT};
use crate::abi::landmark::{Landmark, Programs, Sighting, MAGIC, RESERVED, SIGHTING};
use crate::on_each_cpu::for_each_cpu;
use crate::per_cpu::PerCpu;
use crate::reserved::{self, Range};
use crate::pool::pool;
use crate::{arch, clock, ffi, per_cpu};

struct Page(UnsafeCell<Landmark>);

// SAFETY: the holder of the control lock writes it, and the one CPU that panics another field of it; only that holder
// reads it.
unsafe impl Sync for Page {}

// SAFETY: a landmark is made of numbers, for which zero is a value.
static PAGE: Page = Page(UnsafeCell::new(unsafe { mem::zeroed() }));

/// Writes the recorder's current state into the landmark.
///
/// # Safety
/// The control lock is held, or there is no device.
pub unsafe fn put(info: Info) {
    let page = PAGE.0.get();
    let (blocks, blocks_taken) = pool().owners.addresses();
    // SAFETY: the page is in the module's data, and as the caller guarantees no other code has a reference to these
    // fields. A function that is given a field's address writes that field.
    unsafe {
        ffi::kutrace_shim_machine(&raw mut (*page).machine, page);
        (*page).info = Info { lost: 0, refused_names: 0, refused_marks: 0, blocks_taken: 0, ..info };
        (*page).blocks = blocks;
        (*page).blocks_taken = blocks_taken;
        (*page).fields = per_cpu::FIELDS;
        ffi::kutrace_programs_layout(&raw mut (*page).programs);
        (*page).magic = MAGIC;
    }
    if let Some(range) = reserved::range() {
        // SAFETY: as the caller guarantees.
        unsafe { put_reserved(range) };
    }
}

/// Writes the same into memory that outlives a reboot, if the pool is there.
///
/// # Safety
/// See [`put`], which has filled the module's page.
unsafe fn put_reserved(range: Range) {
    let (page, own) = (range.landmark(), PAGE.0.get());
    // SAFETY: one page is in the range, which is the recorder's, the other in the module's data, both aligned; as the
    // caller guarantees, nothing else writes them. The CPUs are sighted after the trace that they belong to was put
    // here.
    unsafe {
        // There is no landmark to find while it changes.
        ptr::write_volatile(&raw mut (*page).magic, [0; 16]);
        fence(Ordering::SeqCst);
        if range_of_pool().is_none() {
            return;
        }
        ptr::copy_nonoverlapping(&raw const (*own).machine, &raw mut (*page).machine, 1);
        (*page).info = (*own).info;
        (*page).blocks = (*own).blocks;
        (*page).blocks_taken = range.blocks_taken() as u64;
        (*page).fields = SIGHTING;
        (*page).programs = Programs::NONE;
        let machine = &mut (*page).machine;
        (machine.physical, machine.levels) = (range.physical, 0);
        machine.tables.fill(0);
        machine.tables[0] = page as u64;
        (machine.offsets, machine.states) = (range.offsets() as u64, range.sightings() as u64);
        sight(clock::moment());
        fence(Ordering::SeqCst);
        ptr::write_volatile(&raw mut (*page).magic, RESERVED);
    }
}

/// Returns the memory that outlives a reboot, if the pool is there.
fn range_of_pool() -> Option<Range> {
    reserved::range().filter(|range| range.has(pool().owners.addresses().0))
}

/// Number of times that a CPU in a claim is checked again: it leaves the claim soon, unless it was interrupted.
const LOOKS: u32 = 100;

/// Writes down the CPUs' positions, if the trace is in memory that outlives a reboot. A system call that is interrupted
/// between its exchange and its words does not show in the depth: its words are written by the time that matters,
/// unless the machine is reset at once.
///
/// # Safety
/// Nothing else does so: the control lock is held while no trace runs, or this is the periodic call while one runs, or
/// the CPU that panics.
pub unsafe fn sight(moment: Moment) {
    let Some(range) = range_of_pool() else { return };
    // SAFETY: `for_each_cpu` gives the address of a CPU's state, of which `gone_at_start` is written while no trace
    // runs; the range has a place for each CPU, where nothing else writes, as the caller guarantees.
    for_each_cpu(|cpu, state| unsafe {
        let claims = (0..LOOKS).take_while(|_| PerCpu::is_claiming(state));
        claims.for_each(|_| core::hint::spin_loop());
        let position = PerCpu::position(state);
        // A block that begins later than this is not the one that the position is in.
        let seen = arch::tsc() >> SHIFT;
        let (refused_names, refused_marks) = PerCpu::refused(state);
        let place = range.sightings().add(cpu as usize);
        let sighting = Sighting {
            this: place as u64,
            position: 0,
            seen,
            lost: PerCpu::lost(state),
            refused_names,
            refused_marks,
            depth: u32::from(PerCpu::is_claiming(state)),
            gone_at_start: u32::from(PerCpu::was_offline(state)),
            reserved: 0,
        };
        ptr::write_volatile(place, sighting);
        fence(Ordering::Release);
        ptr::write_volatile(&raw mut (*place).position, position);
        ptr::write_volatile(range.offsets().add(cpu as usize), place as u64 - range.sightings() as u64);
    });
    // SAFETY: both are in the range, and nothing else writes them, as the caller guarantees.
    unsafe {
        ptr::write_volatile(range.blocks_taken(), pool().owners.taken());
        ptr::write_volatile(&raw mut (*range.landmark()).sighted, moment);
    }
}

/// Called periodically while a trace runs.
///
/// # Safety
/// The calls were started by [`watch`].
#[no_mangle]
unsafe extern "C" fn kutrace_sight_cpus() {
    // SAFETY: no two of these calls run at once.
    unsafe { sight(clock::moment()) };
}

/// Starts sighting the CPUs periodically, if the trace is in memory that outlives a reboot.
///
/// # Safety
/// The control lock is held, or there is no device; and [`unwatch`] comes before anything else that sights them.
pub unsafe fn watch() -> Result {
    if range_of_pool().is_none() {
        return Ok(());
    }
    // SAFETY: as the caller guarantees; a command may sleep.
    kernel::error::to_result(unsafe { ffi::kutrace_shim_reserved_watch() })
}

/// Stops sighting the CPUs.
///
/// # Safety
/// The control lock is held, or there is no device.
pub unsafe fn unwatch() {
    // SAFETY: as the caller guarantees; a command may sleep.
    unsafe { ffi::kutrace_shim_reserved_unwatch() };
}

/// Writes down the moment of the panic.
///
/// # Safety
/// This is the CPU that panics.
pub unsafe fn put_panic(moment: Moment) {
    for page in pages() {
        // SAFETY: as the caller guarantees, and nothing else writes this field.
        unsafe { (*page).panic = moment };
    }
}

/// Removes the landmarks, so that no trace is found any more.
///
/// # Safety
/// There is no device.
pub unsafe fn take_away() {
    for page in pages() {
        // SAFETY: as the caller guarantees, so nothing else writes the page.
        unsafe { (*page).magic = [0; 16] };
    }
}

/// The landmark of the module, and the one in memory that outlives a reboot.
fn pages() -> impl Iterator<Item = *mut Landmark> {
    [Some(PAGE.0.get()), reserved::range().map(|range| range.landmark())].into_iter().flatten()
}
