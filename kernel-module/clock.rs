// SPDX-License-Identifier: GPL-2.0
//! The moments that tie the time stamp counter to the kernel's clocks.

use crate::abi::command::Moment;
use crate::ffi;

/// Returns the current moment on the TSC, CLOCK_REALTIME and CLOCK_MONOTONIC.
pub fn moment() -> Moment {
    let mut moment = Moment::default();
    // SAFETY: the pointer is valid for one Moment, whose layout is that of `struct kutrace_moment`.
    unsafe { ffi::kutrace_shim_moment(&mut moment) };
    moment
}

/// The rate of the TSC in kHz.
pub fn tsc_khz() -> u32 {
    ffi::kutrace_shim_tsc_khz()
}

/// Returns whether the kernel has found that the TSC cannot be trusted.
pub fn tsc_unstable() -> bool {
    ffi::kutrace_shim_tsc_unstable()
}
