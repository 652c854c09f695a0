// SPDX-License-Identifier: GPL-2.0
//! The running task, as the header of a block names it.

use crate::abi::event::TaskState;

/// The only task.
pub struct Task;

impl Task {
    /// The running task.
    pub fn current() -> Task {
        Task
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
