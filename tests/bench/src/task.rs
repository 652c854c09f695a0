// SPDX-License-Identifier: GPL-2.0
//! The running task, as the header of a block names it.

use std::marker::PhantomData;

use crate::abi::event::{TaskState, TASK_WORDS};

/// The only task.
pub struct Task<'a>(PhantomData<&'a ()>);

impl Task<'_> {
    /// The running task.
    pub unsafe fn current() -> Self {
        Task(PhantomData)
    }

    pub fn born(&self) -> u64 {
        0
    }

    pub fn words(&self) -> [u32; TASK_WORDS] {
        [0; TASK_WORDS]
    }

    pub fn pid(&self) -> u32 {
        1
    }

    pub fn tgid(&self) -> u32 {
        1
    }

    pub fn comm(&self) -> [u32; 4] {
        [0; 4]
    }

    pub fn state(&self) -> TaskState {
        TaskState(TaskState::NO_CALL.into())
    }
}
