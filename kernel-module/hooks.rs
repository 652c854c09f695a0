// SPDX-License-Identifier: GPL-2.0
//! Where the kernel enters the recorder: one function for each kind of hook.
//!
//! Invariants: called with preemption off, in any context; no hook prints, sleeps or allocates.

use kernel::bindings;

use crate::abi::event::SWITCH;
use crate::entry;
use crate::ffi::Ops;
use crate::lane::ThisCpu;
use crate::task::Task;

/// What the kernel's hook table calls.
pub static OPS: Ops = Ops { event, value, syscall, syscall_return, switch_to, task };

unsafe extern "C" fn event(event: u32) {
    // SAFETY: hooks run with preemption off.
    entry::event(&unsafe { ThisCpu::new() }, event as u16)
}

unsafe extern "C" fn value(event: u32, value: u32) {
    // SAFETY: hooks run with preemption off.
    entry::value(&unsafe { ThisCpu::new() }, event as u16, value)
}

unsafe extern "C" fn syscall(nr: u32, arg: u64) {
    // SAFETY: hooks run with preemption off.
    entry::syscall(&unsafe { ThisCpu::new() }, nr, arg)
}

unsafe extern "C" fn syscall_return(nr: u32, value: i64) {
    // SAFETY: hooks run with preemption off.
    entry::syscall_return(&unsafe { ThisCpu::new() }, nr, value)
}

unsafe extern "C" fn switch_to(next: *mut bindings::task_struct) {
    // SAFETY: hooks run with preemption off.
    let cpu = unsafe { ThisCpu::new() };
    // SAFETY: the scheduler holds `next` until it runs.
    let next = unsafe { Task::new(next) };
    let pid = next.pid();
    if pid != 0 && cpu.must_name(pid) {
        entry::switch_to_named(&cpu, next.words())
    } else {
        entry::value(&cpu, SWITCH, pid)
    }
}

unsafe extern "C" fn task(task: *mut bindings::task_struct) {
    // SAFETY: hooks run with preemption off.
    let cpu = unsafe { ThisCpu::new() };
    // SAFETY: the caller holds `task`.
    entry::task(&cpu, unsafe { Task::new(task) }.words())
}
