// SPDX-License-Identifier: GPL-2.0
//! Who a task is: the fields of `task_struct` that a trace shows.

use core::ptr;

use kernel::bindings;

use crate::abi::event::{TaskState, TASK_WORDS};
use crate::ffi;

/// A task that cannot go away while the value lives: the running one, or one a hook was given.
pub struct Task(*mut bindings::task_struct);

impl Task {
    /// The running task.
    pub fn current() -> Task {
        // SAFETY: there is always a running task.
        Task(unsafe { bindings::get_current() })
    }

    /// The task a hook was given.
    ///
    /// # Safety
    /// `task` is valid until the value is gone.
    pub unsafe fn new(task: *mut bindings::task_struct) -> Task {
        Task(task)
    }

    /// Thread id.
    pub fn pid(&self) -> u32 {
        // SAFETY: the task is valid.
        unsafe { (*self.0).pid as u32 }
    }

    /// Thread group id.
    pub fn tgid(&self) -> u32 {
        // SAFETY: the task is valid.
        unsafe { (*self.0).tgid as u32 }
    }

    /// The name, NUL-padded. A rename at the same moment can show half of each.
    pub fn comm(&self) -> [u32; 4] {
        // SAFETY: the task is valid; comm is 16 bytes, of any alignment.
        unsafe { ptr::read_unaligned((&raw const (*self.0).comm).cast()) }
    }

    /// The system call the task is in.
    pub fn state(&self) -> TaskState {
        // SAFETY: the task is valid and so has a kernel stack.
        TaskState(unsafe { ffi::kutrace_shim_open_call(self.0) } as u32)
    }

    /// The argument words of a task entry.
    pub fn words(&self) -> [u32; TASK_WORDS] {
        let comm = self.comm();
        [self.pid(), self.tgid(), self.state().0, comm[0], comm[1], comm[2], comm[3]]
    }
}
