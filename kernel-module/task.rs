// SPDX-License-Identifier: GPL-2.0
//! The identity of a task: the fields of `task_struct` that a trace shows. shim.c has their offsets, since it is
//! compiled for the kernel that it is loaded into.

use core::marker::PhantomData;

use kernel::bindings;

use crate::abi::event::{TaskState, TASK_WORDS};
use crate::{arch, ffi};

/// A task that cannot go away while the value lives: the running one, or one a hook was given.
///
/// Its stack can: a task that has ended has given it back. With interrupts off no hook is given such a task. The idle
/// tasks, which are the kernel's, keep their stacks forever.
pub struct Task<'a>(*mut bindings::task_struct, PhantomData<&'a ()>);

impl<'a> Task<'a> {
    /// The running task. It neither ends nor loses its stack before another runs on this CPU; so an NMI in the middle
    /// of a switch, which may still find the task that is leaving, finds it intact.
    ///
    /// # Safety
    /// Preemption is off until the value is gone.
    pub unsafe fn current() -> Self {
        // SAFETY: there is always a running task.
        Task(unsafe { bindings::get_current() }, PhantomData)
    }

    /// The task a hook was given.
    ///
    /// # Safety
    /// `task` is held until the value is gone, and preemption is off until then. If interrupts are off too, it is the
    /// running task, the next to run, one that has not run yet or an idle task, so it has its stack.
    pub unsafe fn new(task: *mut bindings::task_struct) -> Self {
        Task(task, PhantomData)
    }

    /// Thread id.
    pub fn pid(&self) -> u32 {
        // SAFETY: the task is held, and its pid is at this offset.
        unsafe { arch::field_at!(self.0, ffi::kutrace_task_pid, u32) }
    }

    /// Thread group id.
    pub fn tgid(&self) -> u32 {
        // SAFETY: the task is held, and the id of its thread group is at this offset.
        unsafe { arch::field_at!(self.0, ffi::kutrace_task_tgid, u32) }
    }

    /// The time when it was created, in ns: together with the pid, no other task's.
    pub fn born(&self) -> u64 {
        // SAFETY: the task is held, and its start time is at this offset.
        unsafe { arch::field_at!(self.0, ffi::kutrace_task_born, u64) }
    }

    /// The name, NUL-padded. A rename at the same moment can show half of each.
    pub fn comm(&self) -> [u32; 4] {
        // SAFETY: the task is held, and its name, of 16 bytes, is at this offset.
        let (low, high) = unsafe {
            (
                arch::field_at!(self.0, ffi::kutrace_task_comm, u64),
                arch::field_at!(self.0, ffi::kutrace_task_comm, u64, 8),
            )
        };
        [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
    }

    /// The system call that the task is in, and its control group.
    pub fn state(&self) -> TaskState {
        // SAFETY: the task is held, and with interrupts off it has its stack: the running task as `current` explains,
        // another by the safety requirements of `new`.
        let call = unsafe { ffi::kutrace_shim_open_call(self.0) };
        // SAFETY: the task is held, and preemption is off. Where RCU does not watch, on a CPU that idles or goes
        // offline, no hook is given a task, and the running task, which a new block names, is the idle task.
        let group = unsafe { ffi::kutrace_shim_group(self.0) };
        TaskState((group as u32) << 16 | call as u32)
    }

    /// The argument words of a member entry: pid, and the id of its control group. None if there are no groups.
    pub fn member(&self) -> Option<[u32; 2]> {
        // SAFETY: the task is held, and a hook that is given a task is called outside of idle code, where RCU watches.
        let group = unsafe { ffi::kutrace_shim_cgroup(self.0) };
        (group != 0).then(|| [self.pid(), group])
    }

    /// The argument words of a task entry.
    pub fn words(&self) -> [u32; TASK_WORDS] {
        let comm = self.comm();
        [self.pid(), self.tgid(), self.state().0, comm[0], comm[1], comm[2], comm[3]]
    }
}
