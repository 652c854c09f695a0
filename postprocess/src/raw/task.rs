// SPDX-License-Identifier: BSD-3-Clause
//! What the decoder knows of each thread: its name, and the system call it is in.

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
    /// Name and pid, as spans of its user code are called.
    pub user: NameId,
    /// What a wakeup of it is called.
    pub runnable: NameId,
    /// Its control group.
    pub group: u16,
    /// The process it belongs to: its first thread.
    pub process: Pid,
    /// Whether it was said to be one of the kernel.
    kernel: bool,
    call: Call,
    seen: Seen,
}

/// Whether a thread is inside a system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Call {
    /// Not known.
    #[default]
    Unknown,
    /// It is in none: its last one returned.
    Out,
    /// It is in this one.
    In(u16),
}

/// Where and when something was learned: a CPU, and how many gaps it had by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Index of the CPU.
    pub cpu: usize,
    /// Gaps in its stream.
    pub gaps: u32,
}

/// Every thread met. A system call known on a CPU is forgotten when that CPU loses events: its return may be among
/// them.
#[derive(Debug, Default)]
pub struct Tasks {
    list: Vec<Task>,
    index: HashMap<Pid, usize>,
}

impl Tasks {
    /// The index of a thread, which is added if it is new.
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

    /// Gives a thread this name; false if it had it.
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

    /// Puts a thread into this control group; false if it was there.
    pub fn set_group(&mut self, index: usize, group: u16) -> bool {
        std::mem::replace(&mut self.list[index].group, group) != group
    }

    /// Says which process a thread belongs to; false if that is known already, or is not said.
    pub fn set_process(&mut self, index: usize, process: Pid) -> bool {
        process != Pid::IDLE && std::mem::replace(&mut self.list[index].process, process) != process
    }

    /// Says whether a thread is one of the kernel; false if that is known already.
    pub fn set_kernel(&mut self, index: usize, kernel: bool) -> bool {
        std::mem::replace(&mut self.list[index].kernel, kernel) != kernel
    }

    /// The system call a thread is in, as far as that is known and still true; `gaps` are those of each CPU.
    pub fn call(&self, index: usize, gaps: impl Fn(usize) -> u32) -> Call {
        let task = &self.list[index];
        if gaps(task.seen.cpu) == task.seen.gaps {
            task.call
        } else {
            Call::Unknown
        }
    }

    /// Says which system call a thread is in.
    pub fn set_call(&mut self, index: usize, call: Call, seen: Seen) {
        let task = &mut self.list[index];
        task.call = call;
        task.seen = seen;
    }
}
