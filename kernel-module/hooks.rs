// SPDX-License-Identifier: GPL-2.0
//! Where the kernel enters the recorder: one function for each kind of hook.
//!
//! Invariants: called with preemption off, in any context; no hook prints, sleeps or allocates.

use kernel::bindings;

use crate::abi::event::{SWITCH, SYSCALLS};
use crate::abi::user::WORDS;
use crate::entry;
use crate::ffi::Ops;
use crate::lane::ThisCpu;
use crate::task::Task;
use crate::user;

/// What the kernel's hook table calls.
pub static OPS: Ops = Ops { event, value, syscall, syscall_return, switch_to, task, user };

/// The CPU whose hook this is.
#[inline(always)]
fn this_cpu() -> ThisCpu {
    // SAFETY: hooks run with preemption off.
    let cpu = unsafe { ThisCpu::new() };
    cpu.count_call();
    cpu
}

unsafe extern "C" fn event(event: u32) {
    entry::event(this_cpu(), event)
}

unsafe extern "C" fn value(event: u32, value: u32) {
    entry::value(this_cpu(), event, value)
}

unsafe extern "C" fn syscall(arg: u64, nr: u32) {
    entry::syscall(this_cpu(), nr, arg)
}

unsafe extern "C" fn syscall_return(value: i64, nr: u32) {
    // A number that was overwritten is -1, which becomes that of OPEN_RETURN.
    entry::syscall_return(this_cpu(), nr % SYSCALLS, value)
}

unsafe extern "C" fn switch_to(next: *mut bindings::task_struct) {
    let cpu = this_cpu();
    // SAFETY: the scheduler holds `next` until it runs.
    let next = unsafe { Task::new(next) };
    let pid = next.pid();
    let block = cpu.block_number();
    if pid == 0 {
        entry::value(cpu, SWITCH.into(), pid)
    } else if cpu.must_name(block, pid) {
        entry::switch_to_named(cpu, next.words())
    } else {
        entry::value(cpu, SWITCH.into(), pid);
        // It may have gone into a block that has no name of the task yet.
        if cpu.block_number() != block {
            cpu.count_call();
            entry::task(cpu, next.words())
        }
    }
}

unsafe extern "C" fn task(task: *mut bindings::task_struct) {
    let cpu = this_cpu();
    // SAFETY: the caller holds `task`.
    entry::task(cpu, unsafe { Task::new(task) }.words())
}

unsafe extern "C" fn user(command: u64, words: *const [u64; WORDS]) -> i64 {
    // SAFETY: hooks run with preemption off.
    let cpu = unsafe { ThisCpu::new() };
    // SAFETY: the kernel gives its own copy of the words.
    user::call(cpu, command, unsafe { &*words })
}
