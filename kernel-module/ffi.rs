// SPDX-License-Identifier: GPL-2.0
//! The kernel's C side as this module sees it: the hook table, and what shim.c supplies.

use core::ffi::{c_int, c_long, c_void};

use crate::abi::command::Moment;
use crate::abi::{packet, user};
use crate::lane::PerCpu;
use kernel::bindings;

/// `struct kutrace_ops` of include/linux/kutrace.h.
#[repr(C)]
pub struct Ops {
    pub event: unsafe extern "C" fn(u32),
    pub value: unsafe extern "C" fn(u32, u32),
    pub address: unsafe extern "C" fn(u32, u64),
    pub syscall: unsafe extern "C" fn(u64, u32),
    pub syscall_return: unsafe extern "C" fn(i64, u32),
    pub packet: unsafe extern "C" fn(u32, *const [u64; packet::WORDS]),
    pub switch_to: unsafe extern "C" fn(*mut bindings::task_struct),
    pub task: unsafe extern "C" fn(*mut bindings::task_struct),
    pub user: unsafe extern "C" fn(u64, *const [u64; user::WORDS]) -> i64,
}

/// `struct kutrace_counter` of shim.h.
#[repr(C)]
pub struct PerfCounter {
    pub event: *mut core::ffi::c_void,
    pub index: *const core::ffi::c_int,
}

// `task_struct` contains an empty struct; only pointers to it cross.
#[allow(improper_ctypes)]
extern "C" {
    // kernel/kutrace/kutrace.c
    pub fn kutrace_register(ops: *const Ops) -> c_int;
    pub fn kutrace_unregister();
    pub fn kutrace_enable();
    pub fn kutrace_disable();

    // kernel/smp.c
    pub fn kick_all_cpus_sync();

    // shim.c
    /// This CPU's state when reached through %gs; an offset, not an address.
    pub static kutrace_cpu: u8;
    /// The packet filter's parameters, which never change.
    pub static kutrace_shim_pktmask: c_long;
    pub static kutrace_shim_pktmatch: c_long;
    pub fn kutrace_shim_cpu(cpu: u32) -> *mut PerCpu;
    pub fn kutrace_shim_cpus() -> u32;
    pub fn kutrace_shim_possible(cpu: u32) -> bool;
    pub fn kutrace_shim_on_each_cpu(call: unsafe extern "C" fn(*mut c_void), argument: *mut c_void);
    pub fn kutrace_shim_pause();
    pub fn kutrace_shim_pool_bytes() -> usize;
    pub fn kutrace_shim_alloc(bytes: usize) -> *mut c_void;
    pub fn kutrace_shim_free(memory: *mut c_void);
    pub fn kutrace_shim_lock_mapping();
    pub fn kutrace_shim_unlock_mapping();
    pub fn kutrace_shim_process() -> *mut c_void;
    pub fn kutrace_shim_process_number(process: *mut c_void) -> u32;
    pub fn kutrace_shim_process_put(process: *mut c_void);
    pub fn kutrace_shim_open_call(task: *mut bindings::task_struct) -> u16;
    pub fn kutrace_shim_moment(moment: *mut Moment);
    pub fn kutrace_shim_counter_open(cpu: u32, config: u64, counter: *mut PerfCounter) -> core::ffi::c_int;
    pub fn kutrace_shim_counter_close(counter: *mut PerfCounter);
    pub fn kutrace_shim_tsc_khz() -> u32;
    pub fn kutrace_shim_tsc_unstable() -> bool;
    pub fn kutrace_shim_device_add() -> c_int;
    pub fn kutrace_shim_device_remove();
}
