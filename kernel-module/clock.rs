// SPDX-License-Identifier: GPL-2.0
//! The time stamp counter, and the moments that tie it to the kernel's clocks.

use crate::abi::command::Moment;
use crate::ffi;
use core::arch::asm;

/// The time stamp counter, not ordered against other instructions: a claim's exchange orders it enough,
/// since interrupts are precise.
#[inline(always)]
pub fn tsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: every x86-64 processor has rdtsc, and the kernel may execute it.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags)) };
    high << 32 | low
}

/// This moment on the TSC, CLOCK_REALTIME and CLOCK_MONOTONIC.
pub fn moment() -> Moment {
    let mut moment = Moment::default();
    // SAFETY: the pointer is valid for one Moment, whose layout is that of `struct kutrace_moment`.
    unsafe { ffi::kutrace_shim_moment(&mut moment) };
    moment
}

/// The rate of the TSC in kHz.
pub fn tsc_khz() -> u32 {
    // SAFETY: reads a kernel variable.
    unsafe { ffi::kutrace_shim_tsc_khz() }
}

/// Whether the kernel found that the TSC cannot be trusted.
pub fn tsc_unstable() -> bool {
    // SAFETY: reads a kernel variable.
    unsafe { ffi::kutrace_shim_tsc_unstable() }
}
