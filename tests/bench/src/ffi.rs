// SPDX-License-Identifier: GPL-2.0
//! Stands in for the kernel's C side of the module: the per-CPU state, and the clocks that nothing here reads.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use crate::abi::command::Moment;
use crate::per_cpu::PerCpu;

/// The state of the one CPU.
pub struct State(pub UnsafeCell<MaybeUninit<PerCpu>>);

// SAFETY: one thread uses it.
unsafe impl Sync for State {}

#[allow(non_upper_case_globals)]
#[no_mangle]
pub static kutrace_cpu: State = State(UnsafeCell::new(MaybeUninit::uninit()));

#[allow(non_upper_case_globals)]
pub static mut kutrace_shim_namerate: u32 = 0;
#[allow(non_upper_case_globals)]
pub static mut kutrace_shim_markrate: u32 = 0;

pub unsafe fn kutrace_shim_may_mark() -> bool {
    true
}

pub unsafe fn kutrace_rate_take_one() -> bool {
    true
}

pub unsafe fn kutrace_rate_refused() {}

pub unsafe fn kutrace_shim_moment(_: &mut Moment) {}

pub fn kutrace_shim_tsc_khz() -> u32 {
    0
}

pub fn kutrace_shim_tsc_unstable() -> bool {
    false
}
