// SPDX-License-Identifier: GPL-2.0
//! Where the kernel enters the recorder: one function for each kind of hook.
//!
//! Invariants: called with preemption off, in any context; no hook prints, sleeps or allocates.

use kernel::bindings;

use crate::abi::command::{IPC, LLC};
use crate::abi::event::{SWITCH, SYSCALLS, TASK};
use crate::abi::packet;
use crate::abi::user::WORDS;
use crate::entry;
use crate::ffi::{self, Ops};
use crate::lane::ThisCpu;
use crate::task::Task;
use crate::user;

/// What the kernel's hook table calls in a trace without counters.
static PLAIN: Ops = functions::<false>();
/// And in one with counters.
static COUNTING: Ops = functions::<true>();

/// What the kernel's hook table is to call in a trace of these flags.
pub fn table(flags: u32) -> &'static Ops {
    match flags & (IPC | LLC) {
        0 => &PLAIN,
        _ => &COUNTING,
    }
}

const fn functions<const COUNTING: bool>() -> Ops {
    Ops {
        event: event::<COUNTING>,
        value: value::<COUNTING>,
        address: address::<COUNTING>,
        syscall: syscall::<COUNTING>,
        syscall_return: syscall_return::<COUNTING>,
        packet: packet::<COUNTING>,
        switch_to: switch_to::<COUNTING>,
        task: task::<COUNTING>,
        user: user::<COUNTING>,
    }
}

/// The CPU whose hook this is.
#[inline(always)]
fn this_cpu<const COUNTING: bool>() -> ThisCpu<COUNTING> {
    // SAFETY: hooks run with preemption off.
    let cpu = unsafe { ThisCpu::new() };
    cpu.count_call();
    cpu
}

unsafe extern "C" fn event<const COUNTING: bool>(event: u32) {
    entry::event(this_cpu::<COUNTING>(), event)
}

unsafe extern "C" fn value<const COUNTING: bool>(event: u32, value: u32) {
    entry::value(this_cpu::<COUNTING>(), event, value)
}

unsafe extern "C" fn address<const COUNTING: bool>(event: u32, address: u64) {
    entry::words(this_cpu::<COUNTING>(), event as u16, [address as u32, (address >> 32) as u32])
}

unsafe extern "C" fn syscall<const COUNTING: bool>(arg: u64, nr: u32) {
    entry::syscall(this_cpu::<COUNTING>(), nr, arg)
}

unsafe extern "C" fn syscall_return<const COUNTING: bool>(value: i64, nr: u32) {
    // A number that was overwritten is -1, which becomes that of OPEN_RETURN.
    entry::syscall_return(this_cpu::<COUNTING>(), nr % SYSCALLS, value)
}

unsafe extern "C" fn packet<const COUNTING: bool>(event: u32, words: *const [u64; packet::WORDS]) {
    // SAFETY: the kernel gives its own copy of the words.
    let words = unsafe { &*words };
    // SAFETY: nobody writes module parameters that are read-only.
    let (mask, wanted) = unsafe { (ffi::kutrace_shim_pktmask, ffi::kutrace_shim_pktmatch) };
    if packet::is_wanted(words, mask, wanted as u32) {
        entry::value(this_cpu::<COUNTING>(), event, packet::hash(words))
    }
}

unsafe extern "C" fn switch_to<const COUNTING: bool>(next: *mut bindings::task_struct) {
    let cpu = this_cpu::<COUNTING>();
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
            entry::words(cpu, TASK, next.words())
        }
    }
}

unsafe extern "C" fn task<const COUNTING: bool>(task: *mut bindings::task_struct) {
    let cpu = this_cpu::<COUNTING>();
    // SAFETY: the caller holds `task`.
    entry::words(cpu, TASK, unsafe { Task::new(task) }.words())
}

unsafe extern "C" fn user<const COUNTING: bool>(command: u64, words: *const [u64; WORDS]) -> i64 {
    // SAFETY: hooks run with preemption off.
    let cpu = unsafe { ThisCpu::<COUNTING>::new() };
    // SAFETY: the kernel gives its own copy of the words.
    user::call(cpu, command, unsafe { &*words })
}
