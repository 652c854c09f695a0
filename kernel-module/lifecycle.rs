// SPDX-License-Identifier: GPL-2.0
//! Operations on the states of all CPUs, and sums over them, from one reset to the next.
//!
//! Invariant: one caller at a time, the one that holds the control lock.

use kernel::prelude::*;

use crate::abi::command::{Cpu, CPU_MUTE, CPU_OFFLINE, CPU_POSSIBLE, SHIFT};
#[cfg(kutrace_count)]
use crate::ffi;
use crate::on_each_cpu::{cpus, for_each_cpu, is_online, wait_for_calls, Cpus};
use crate::per_cpu::PerCpu;
use crate::{arch, pool};

/// Empties the pool and every CPU's state. Counters are closed.
///
/// # Safety
/// The control lock is held, and no hook that records runs.
pub unsafe fn reset(flags: u32) {
    // SAFETY: as the caller guarantees; the states are reset next.
    unsafe { pool::reset(flags) };
    for_each_cpu(|cpu, state| {
        let fresh = PerCpu::new(cpu, state);
        // SAFETY: `state` is that CPU's PerCpu. No hook that records runs, a program's call gets no further than the
        // closed pool, and a CPU that comes back late writes only `answer`.
        unsafe { state.write(fresh) };
    });
}

/// Opens the counters that `flags` request on every online CPU; after an error none is open.
///
/// # Safety
/// See [`reset`].
pub unsafe fn open_counters(flags: u32) -> Result {
    let mut result = Ok(());
    // SAFETY: as the caller guarantees, so no hook runs that samples, and this is the only reference to them.
    unsafe {
        for_each_cpu(|cpu, state| result = result.and_then(|()| (*state).counters.open(cpu, flags)));
        result.inspect_err(|_| close_counters())
    }
}

/// Closes all open counters.
///
/// # Safety
/// See [`reset`].
pub unsafe fn close_counters() {
    // SAFETY: as the caller guarantees, so no hook runs that samples, and this is the only reference to them.
    for_each_cpu(|_, state| unsafe { (*state).counters.close() });
}

/// Completes the header of each CPU's last block. `end` is the current counter.
///
/// # Safety
/// See [`reset`]; in addition, every CPU has answered.
pub unsafe fn finish(end: u64) {
    // SAFETY: as the caller guarantees, so this is the only reference to that CPU's state.
    for_each_cpu(|_, state| unsafe { (*state).finish(end) });
}

/// Writes into the blocks of mute CPUs, which have not carried out their last request, how far these blocks are filled.
/// `end` is the current counter.
///
/// # Safety
/// The control lock is held.
pub unsafe fn end_for_now(end: u64) {
    // SAFETY: `for_each_cpu` gives the address of a CPU's state, and the control lock is held.
    for_each_cpu(|_, state| unsafe {
        if PerCpu::is_mute(state) {
            PerCpu::end_for_now(state, end);
        }
    });
}

/// Number of times that a CPU in a claim is checked again: it leaves the claim soon, unless it was interrupted.
const LOOKS: u32 = 100;

/// Writes into every CPU's block how far it is filled, and waits until all of that is written. Returns the counter up
/// to which this holds.
///
/// # Safety
/// The control lock is held.
pub unsafe fn look() -> Result<u64> {
    let end = arch::tsc() >> SHIFT;
    // SAFETY: `for_each_cpu` gives the address of a CPU's state, and the control lock is held.
    for_each_cpu(|_, state| unsafe {
        let claims = (0..LOOKS).take_while(|_| PerCpu::is_claiming(state));
        claims.for_each(|_| core::hint::spin_loop());
        PerCpu::end_for_now(state, end);
    });
    // A system call's claim does not show in the depth.
    wait_for_calls().map(|()| end)
}

/// Notes for each CPU whether it is online when recording begins.
///
/// # Safety
/// The pool is closed.
pub unsafe fn begin(_: &Cpus) {
    // SAFETY: `for_each_cpu` gives the address of a CPU's state; CPUs are held, which takes the control lock; and the
    // pool is closed, as the caller guarantees.
    for_each_cpu(|cpu, state| unsafe { PerCpu::begin(state, is_online(cpu)) });
}

/// Returns the flags of a CPU; EINVAL if no CPU can have this number.
///
/// # Safety
/// The control lock is held.
pub unsafe fn cpu(cpu: u32) -> Result<Cpu> {
    let mut found = Cpu { cpu, flags: 0 };
    if cpu >= cpus() {
        return Err(EINVAL);
    }
    // SAFETY: `for_each_cpu` gives the address of a CPU's state, and the control lock is held.
    for_each_cpu(|number, state| unsafe {
        if number == cpu {
            let offline = if PerCpu::was_offline(state) { CPU_OFFLINE } else { 0 };
            let mute = if PerCpu::is_mute(state) { CPU_MUTE } else { 0 };
            found.flags = CPU_POSSIBLE | offline | mute;
        }
    });
    Ok(found)
}

/// Events lost on all CPUs since the reset.
pub fn lost() -> u64 {
    let mut sum = 0;
    // SAFETY: `for_each_cpu` gives the address of a CPU's state.
    for_each_cpu(|_, state| sum += unsafe { PerCpu::lost(state) });
    sum
}

/// Names and marks of programs that were refused since the reset.
pub fn refused() -> (u64, u64) {
    let mut sum = (0, 0);
    for_each_cpu(|_, state| {
        // SAFETY: `for_each_cpu` gives the address of a CPU's state.
        let (names, marks) = unsafe { PerCpu::refused(state) };
        sum = (sum.0 + names, sum.1 + marks);
    });
    sum
}

/// Prints the counts since the reset: calls of hooks, and what happened to their events.
///
/// # Safety
/// See [`finish`].
#[cfg(kutrace_count)]
pub unsafe fn print_counts() {
    let (mut calls, mut outside) = (0, 0);
    // SAFETY: as the caller guarantees, so nothing writes to a state or a block.
    unsafe {
        for_each_cpu(|_, state| {
            calls += (*state).calls;
            outside += (*state).outside;
        });
        let (recorded, overwritten) = pool::events();
        ffi::kutrace_shim_print_counts(calls, recorded, lost(), overwritten, outside);
    }
}
