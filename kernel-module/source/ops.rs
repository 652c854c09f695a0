// SPDX-License-Identifier: GPL-2.0
//! The entry points of the recorder: one function for each kind of event, whichever the source. In this module a hook
//! is the place that calls one of them: a hook of a patched kernel, or a probe on a tracepoint.
//!
//! Invariants: called with preemption off, in any context; no hook prints, sleeps or allocates.

use core::ffi::{c_char, CStr};

use kernel::bindings;

use crate::abi::command::{IPC, LLC};
use crate::abi::event::{
    Vector, FLOW_RECEIVED, FLOW_SENT, IRQ, IRQ_LAST, NAME_BYTES, NAME_VECTOR, NAME_WORDS, ONLINE, STEAL,
    TASK_WORDS,
};
use crate::abi::packet::{self, FlowPacket, Packet};
use crate::abi::user::WORDS;
use crate::call::TaskLane;
use crate::claim;
use crate::entry;
use crate::ffi::{self, Ops, Table, OPS_VERSION};
use crate::lane::End;
use crate::task::Task;
use crate::this_cpu::{on_this_cpu, ThisCpu};
use crate::user;

/// Vectors of interrupts that arrive even while interrupts are off.
const NMI: u32 = 2;
const MACHINE_CHECK: u32 = 18;

/// The functions that a source calls in a trace without counters.
static PLAIN: Table = functions::<false>();
/// Those for a trace with counters.
static COUNTING: Table = functions::<true>();
/// The same on a machine whose host reports the time that it takes: other machines do not check for it.
static PLAIN_AND_STEAL: Table = with_steal::<false>();
static COUNTING_AND_STEAL: Table = with_steal::<true>();

/// Returns the functions that a source calls in a trace of these flags.
pub fn table(flags: u32) -> &'static Table {
    // SAFETY: a source is chosen before there is a trace.
    let steal = unsafe { ffi::kutrace_steal_is_known() };
    match (flags & (IPC | LLC), steal) {
        (0, false) => &PLAIN,
        (_, false) => &COUNTING,
        (0, true) => &PLAIN_AND_STEAL,
        (_, true) => &COUNTING_AND_STEAL,
    }
}

/// Checks for time that the host has taken where that may have changed: at interrupts, of which one is due when the CPU
/// runs again, and at switches, so that it is known which thread the time was taken from.
const fn with_steal<const COUNTING: bool>() -> Table {
    let plain = functions::<COUNTING>();
    let ops = Ops { event: steal_and_event::<COUNTING>, switch_to: steal_and_switch_to::<COUNTING>, ..plain.ops };
    Table { ops, ..plain }
}

const fn functions<const COUNTING: bool>() -> Table {
    let ops = Ops {
        version: OPS_VERSION,
        event: event::<COUNTING>,
        value: value::<COUNTING>,
        address: address::<COUNTING>,
        syscall: syscall::<COUNTING>,
        syscall_return: syscall_return::<COUNTING>,
        switch_to: switch_to::<COUNTING>,
        task: task::<COUNTING>,
        user: user::<COUNTING>,
        vector: vector::<COUNTING>,
        cpu: cpu::<COUNTING>,
    };
    Table { ops, point: point::<COUNTING>, rename: rename::<COUNTING>, flow: flow::<COUNTING>, record: tracepoint::<COUNTING> }
}

/// Has `work` record in the current hook.
///
/// # Safety
/// A hook calls this, so preemption is off.
#[inline(always)]
unsafe fn record<const COUNTING: bool, R>(work: impl FnOnce(ThisCpu<'_, COUNTING>) -> R) -> R {
    // SAFETY: as the caller guarantees.
    unsafe {
        on_this_cpu(|cpu| {
            cpu.count_call();
            work(cpu)
        })
    }
}

/// The same in a hook that only tasks reach: system calls and switches are a task's, never an interrupt's.
///
/// # Safety
/// Such a hook calls this.
#[inline(always)]
unsafe fn record_of_task<const COUNTING: bool>(work: impl FnOnce(TaskLane<ThisCpu<'_, COUNTING>>)) {
    // SAFETY: as the caller guarantees; and preemption is off, so no other task reaches the hooks of this CPU before
    // this one has left.
    unsafe { record(|cpu| work(TaskLane::new(cpu))) }
}

/// Functions of the table whose arguments are numbers, grouped by what they record.
macro_rules! of_numbers {
    ($($name:ident($($argument:ident: $type:ty),+) $entry:path;)+) => {$(
        unsafe extern "C" fn $name<const COUNTING: bool>($($argument: $type),+) {
            // SAFETY: a hook calls what is in the table.
            unsafe { record(|cpu: ThisCpu<'_, COUNTING>| $entry(cpu, $($argument),+)) }
        }
    )+};
}

of_numbers! {
    event(event: u32) entry::event;
    point(event: u32) entry::point;
    value(event: u32, value: u32) entry::value;
    address(event: u32, address: u64) entry::address;
}

/// Records the time that the host has taken from this CPU since the last check, if any.
///
/// # Safety
/// A hook calls this, with interrupts off, and not in an NMI.
unsafe fn steal<const COUNTING: bool>() {
    // SAFETY: as the caller guarantees.
    unsafe {
        let taken = ffi::kutrace_steal_taken();
        if taken != 0 {
            record(|cpu: ThisCpu<'_, COUNTING>| entry::value(cpu, STEAL.into(), taken))
        }
    }
}

unsafe extern "C" fn steal_and_event<const COUNTING: bool>(event: u32) {
    let vector = event.wrapping_sub(IRQ.into());
    // SAFETY: the source calls this. At the start of an interrupt other interrupts are off.
    unsafe {
        if vector <= u32::from(IRQ_LAST - IRQ) && vector != NMI && vector != MACHINE_CHECK {
            steal::<COUNTING>()
        }
        self::event::<COUNTING>(event)
    }
}

unsafe extern "C" fn steal_and_switch_to<const COUNTING: bool>(next: *mut bindings::task_struct) {
    // SAFETY: the source calls this. A switch has interrupts off, in __schedule() and on a CPU that goes offline.
    unsafe {
        steal::<COUNTING>();
        switch_to::<COUNTING>(next)
    }
}

unsafe extern "C" fn syscall<const COUNTING: bool>(arg: u64, nr: u32) {
    // SAFETY: the hook of system calls calls this.
    unsafe { record_of_task::<COUNTING>(|lane| entry::syscall(lane, nr, arg)) }
}

unsafe extern "C" fn syscall_return<const COUNTING: bool>(value: i64) {
    // SAFETY: the hook at the end of system calls calls this: the running task is at the end of a system call, its own
    // or, if it is new, the one that created it.
    unsafe {
        record_of_task::<COUNTING>(|lane| entry::syscall_return(lane, value, || ffi::kutrace_shim_returning()))
    }
}

unsafe extern "C" fn switch_to<const COUNTING: bool>(next: *mut bindings::task_struct) {
    // SAFETY: __schedule() has chosen `next` from its run queue, which stays locked, with interrupts off, until the
    // switch: it is the next to run, so it has neither ended nor lost its stack. A CPU that goes offline without the
    // kernel's hooks gives the first idle task, which exists for good, and does so with interrupts off too.
    let next = unsafe { Task::new(next) };
    // SAFETY: the hook of switches calls this.
    unsafe { record_of_task::<COUNTING>(|lane| entry::switch_to(lane, &next)) }
}

unsafe extern "C" fn task<const COUNTING: bool>(task: *mut bindings::task_struct) {
    // SAFETY: three functions call this. wake_up_new_task(), with interrupts off: the task's run queue is locked, so it
    // has not run yet. __set_task_comm(), with interrupts on: for the running task (exec, prctl, workers), or for one
    // to which comm_write() has a reference, and which may have ended. cpu_cgroup_attach(), with interrupts on: for the
    // running task, or for tasks that cannot end, because their group is moved under cgroup_threadgroup_rwsem.
    unsafe {
        let task = Task::new(task);
        say::<COUNTING>(&task, task.words())
    }
}

/// Records the identity of a task, and its control group.
///
/// # Safety
/// A hook calls this for a task which is new, renamed or moved.
unsafe fn say<const COUNTING: bool>(task: &Task<'_>, words: [u32; TASK_WORDS]) {
    // SAFETY: as the caller guarantees.
    unsafe {
        record(|cpu: ThisCpu<'_, COUNTING>| entry::task(cpu, words));
        if let Some(words) = task.member() {
            record(|cpu: ThisCpu<'_, COUNTING>| entry::member(cpu, words))
        }
    }
}

unsafe extern "C" fn rename<const COUNTING: bool>(task: *mut bindings::task_struct, comm: *const [u32; 4]) {
    // SAFETY: the probe of task_rename calls this, in __set_task_comm(), with interrupts on, for the same tasks as
    // `task`. It has copied TASK_COMM_LEN bytes onto its own stack, where they stay until this returns.
    unsafe {
        let task = Task::new(task);
        let mut words = task.words();
        words[3..].copy_from_slice(&*comm);
        say::<COUNTING>(&task, words)
    }
}

unsafe extern "C" fn flow<const COUNTING: bool>(sent: bool, packet: *const Packet, data: *const [u64; packet::WORDS]) {
    // SAFETY: kutrace_packet_seen() has read the headers out of the skb, to which it has a reference, onto its own
    // stack, where they stay until this returns. The skb itself is not passed on.
    let words = unsafe { FlowPacket::of(&*packet, &*data) }.words();
    let event = if sent { FLOW_SENT } else { FLOW_RECEIVED };
    // SAFETY: kutrace_packet_seen() calls as a hook does, with preemption off.
    unsafe { record(|cpu: ThisCpu<'_, COUNTING>| entry::packet(cpu, event.into(), words)) }
}

unsafe extern "C" fn tracepoint<const COUNTING: bool>(number: u32, words: *const u32, bytes: u32) {
    // SAFETY: the record is in a buffer of perf's, aligned for long numbers, which no other code of this CPU and
    // context gets before the tracepoint's callback returns.
    let words = unsafe { core::slice::from_raw_parts(words, bytes as usize / 4) };
    // SAFETY: kutrace_record() calls as a hook does, with preemption off.
    unsafe { record(|cpu: ThisCpu<'_, COUNTING>| entry::tracepoint(cpu, number, words)) }
}

unsafe extern "C" fn user<const COUNTING: bool>(command: u64, words: *const [u64; WORDS]) -> i64 {
    // SAFETY: kutrace_user() has copied the program's words onto its own stack, where they stay until this returns.
    let words = unsafe { &*words };
    // SAFETY: the hook of a program's system call calls this, with preemption off, after the hook of calls and before
    // that of returns.
    unsafe { on_this_cpu(|cpu: ThisCpu<'_, COUNTING>| user::call(TaskLane::new(cpu), command, words)) }
}

/// A vector of some CPU is for another device: the CPU that assigned it reports that.
unsafe extern "C" fn vector<const COUNTING: bool>(cpu: u32, vector: u32, name: *const c_char) {
    // SAFETY: kutrace_name_vector(), or kutrace_name() of a stock kernel's source, has made the text on its own stack,
    // ended by 0, where it stays until this returns. The interrupt and its handlers are not passed on.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let mut words = [0; NAME_WORDS];
    (words[0], words[1]) = (NAME_VECTOR, Vector::of(cpu, vector).0);
    for (at, byte) in name.iter().take(NAME_BYTES).enumerate() {
        words[2 + at / 4] |= u32::from(*byte) << (at % 4 * 8);
    }
    // SAFETY: a hook calls this.
    unsafe { record(|cpu: ThisCpu<'_, COUNTING>| entry::name(cpu, words)) }
}

unsafe extern "C" fn cpu<const COUNTING: bool>(event: u32) {
    let work = |cpu: ThisCpu<'_, COUNTING>| {
        if event == ONLINE.into() {
            cpu.come();
            return entry::value(cpu, event, cpu.number());
        }
        entry::value(cpu, event, cpu.number());
        cpu.go();
        claim::close(cpu, End::Offline);
    };
    // SAFETY: a hook calls this.
    unsafe { record(work) }
}
