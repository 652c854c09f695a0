// SPDX-License-Identifier: BSD-3-Clause
//! State of each thread in the decoder: its name, and the system call it is in.

use foldhash::HashMap;

use crate::event::names::{NameId, Names};
use crate::id::Pid;

/// A thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// Its id.
    pub pid: Pid,
    /// Its name.
    pub comm: NameId,
    /// Name and pid, the name of spans of its user code.
    pub user: NameId,
    /// Name of its wakeups.
    pub runnable: NameId,
    /// Its control group.
    pub group: u16,
    /// The process it belongs to: its first thread.
    pub process: Pid,
    /// True if it was reported as one of the kernel's.
    kernel: bool,
    call: Call,
    seen: Seen,
}

/// System call of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Call {
    /// Unknown.
    #[default]
    Unknown,
    /// None: its last one returned.
    Out,
    /// This one.
    In(u16),
}

/// Place and time at which something was learned: a CPU, and the number of gaps it had by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Index of the CPU.
    pub cpu: usize,
    /// Number of gaps in its stream.
    pub gaps: u32,
}

/// Every thread seen. A system call known from a CPU is forgotten when that CPU loses events: its return may be among
/// them.
#[derive(Debug, Default)]
pub struct Tasks {
    list: Vec<Task>,
    index: HashMap<Pid, usize>,
}

impl Tasks {
    /// Index of a thread; a new thread is added.
    pub fn find(&mut self, pid: Pid, names: &mut Names) -> usize {
        if let Some(&i) = self.index.get(&pid) {
            return i;
        }
        let text = if pid == Pid::IDLE { "-idle-".to_string() } else { format!(".{pid}") };
        let comm = names.id(if pid == Pid::IDLE { "-idle-" } else { "" });
        let (user, runnable) = (names.id(&text), names.id(&format!("runnable.{pid}")));
        self.list.push(Task { pid, comm, user, runnable, process: pid, ..Task::default() });
        self.index.insert(pid, self.list.len() - 1);
        self.list.len() - 1
    }

    /// A thread by index.
    pub fn get(&self, index: usize) -> &Task {
        &self.list[index]
    }

    /// Gives a thread this name; false if it already has it.
    pub fn rename(&mut self, index: usize, comm: &str, names: &mut Names) -> bool {
        let id = names.id(comm);
        let task = &mut self.list[index];
        if task.comm == id || task.pid == Pid::IDLE || comm.is_empty() {
            return false;
        }
        task.comm = id;
        task.user = names.id(&format!("{comm}.{}", task.pid));
        true
    }

    /// Puts a thread into this control group; false if it is already there.
    pub fn set_group(&mut self, index: usize, group: u16) -> bool {
        std::mem::replace(&mut self.list[index].group, group) != group
    }

    /// Sets the process of a thread; false if that is already known, or is not given.
    pub fn set_process(&mut self, index: usize, process: Pid) -> bool {
        process != Pid::IDLE && std::mem::replace(&mut self.list[index].process, process) != process
    }

    /// Sets whether a thread is one of the kernel's; false if that is already known.
    pub fn set_kernel(&mut self, index: usize, kernel: bool) -> bool {
        std::mem::replace(&mut self.list[index].kernel, kernel) != kernel
    }

    /// The system call a thread is in, as far as it is known and still true; `gaps` returns the number of each CPU's
    /// gaps.
    pub fn call(&self, index: usize, gaps: impl Fn(usize) -> u32) -> Call {
        let task = &self.list[index];
        if gaps(task.seen.cpu) == task.seen.gaps {
            task.call
        } else {
            Call::Unknown
        }
    }

    /// Sets the system call a thread is in.
    pub fn set_call(&mut self, index: usize, call: Call, seen: Seen) {
        let task = &mut self.list[index];
        task.call = call;
        task.seen = seen;
    }
}
