// SPDX-License-Identifier: BSD-3-Clause
//! What the span builder knows of each thread, whether it runs or not.

use foldhash::HashMap;

use super::stack::Frame;
use super::wait::Reason;
use crate::event::names::{NameId, Names};
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// A thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its id.
    pub pid: Pid,
    /// Every name it had, in order of their last use; the last is the present one.
    pub comms: Vec<NameId>,
    /// Name and pid.
    pub user: NameId,
    /// What it is inside of while it does not run; empty if not known.
    pub stack: Vec<Frame>,
    /// Whether it may be inside of more: nothing has shown yet that it ever was in user code. Of a thread of the kernel
    /// nothing does.
    pub unsure: bool,
    /// Whether it is a thread of the kernel: it was said to be, or it sleeps outside of any call and has not shown
    /// anything that only a program does.
    pub kernel: bool,
    /// The frame of `stack` it blocked in, which it may have left unseen.
    pub ambiguous: Option<usize>,
    /// Index of the CPU it is on, from the switch to it to the switch from it.
    pub cpu: Option<usize>,
    /// Whether it runs: from the end of the scheduler that switched to it, or an interrupt before that shows it running
    /// after a wakeup, to the end of the scheduler that switched away.
    pub running: bool,
    /// What it said that it is about to wait for.
    pub waits_for: Option<Reason>,
    /// What it last slept for.
    pub slept_for: Option<Reason>,
    /// Its control group, 0 for the root or if that is not known.
    pub group: u32,
    /// The CPU it last ran on.
    pub last_cpu: Option<usize>,
    /// Whether it has ended; the next with its pid is another.
    pub exited: bool,
    /// When it last stopped to run or was woken; `None` before its first run.
    pub last_end: Option<Time>,
    /// The wakeup that has not led to a run yet.
    pub wakeup: Option<Wakeup>,
    /// RPC it works on, 0 for none, and that RPC's name.
    pub rpc: u32,
    /// Name of the RPC.
    pub rpc_name: NameId,
    /// Whether it has put that RPC into a queue.
    pub enqueued: bool,
    /// The queue it has taken an RPC out of that it has not turned to yet.
    pub dequeued: Option<Event>,
}

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// When.
    pub ts: Time,
    /// The waker's CPU.
    pub cpu: CpuId,
    /// The waker.
    pub pid: Pid,
}

/// Every thread met.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// By index.
    pub list: Vec<Thread>,
    index: HashMap<Pid, usize>,
}

impl Threads {
    /// The index of a thread, which is added if it is new.
    pub fn find(&mut self, pid: Pid, names: &mut Names) -> usize {
        if let Some(index) = self.known(pid) {
            return index;
        }
        let text = if pid == Pid::IDLE { "-idle-".to_string() } else { format!(".{pid}") };
        self.list.push(Thread { pid, user: names.id(&text), unsure: pid != Pid::IDLE, ..Thread::default() });
        self.index.insert(pid, self.list.len() - 1);
        self.list.len() - 1
    }

    /// The index of a thread met before.
    pub fn known(&self, pid: Pid) -> Option<usize> {
        self.index.get(&pid).copied()
    }

    /// Gives a thread a name, without the path that the original's first record of a program has. Idle keeps its own.
    pub fn rename(&mut self, index: usize, comm: NameId, names: &mut Names) {
        let thread = &mut self.list[index];
        let text = names.text(comm);
        let text = match text.contains("kutrace_contro") {
            true => "kutrace_control",
            false => text.strip_prefix("./").unwrap_or(text),
        };
        if thread.pid == Pid::IDLE || text.is_empty() {
            return;
        }
        let (text, user) = (text.to_string(), format!("{text}.{}", thread.pid));
        let comm = names.id(&text);
        thread.user = names.id(&user);
        thread.comms.retain(|&c| c != comm);
        thread.comms.push(comm);
    }
}
