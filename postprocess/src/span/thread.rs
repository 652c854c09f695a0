// SPDX-License-Identifier: BSD-3-Clause
//! State of each thread in the span builder, running or not.
//!
//! A thread's [`Place`] follows from switches and from the scheduler, which has a CPU for a while before and after
//! each:
//!
//! ```text
//!           switch to it              the scheduler returns           switch from it
//!   Away -----------------> Arriving -----------------------> Running ---------------> Leaving
//!    ^                         a wakeup, and then anything                                |
//!    |                         on its CPU, shows it running, too                          |
//!    +------------------------------------------------------------------------------------+
//!                          the scheduler that switched from it returns
//! ```
//!
//! A thread that is switched to while it is `Leaving`, on another CPU whose scheduler has not returned, never stopped
//! running. The idle thread is on many CPUs at once: its place is the last of them.
//!
//! A thread also has a [`Side`], which only its actions show, and a [`Past`]: its stack is known only since it was seen
//! in user code. A thread that has [ended](Life::Ended) stays on its CPU up to the next switch; the next thread with
//! its pid is another one.

use foldhash::HashMap;

use super::stack::Frame;
use super::wait::Reason;
use crate::event::names::{NameId, Names};
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// State of one thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Thread id.
    pub pid: Pid,
    /// Every name it had, in order of last use; the last is the present one.
    pub comms: Vec<NameId>,
    /// Name and pid.
    pub user: NameId,
    /// Frames it is inside of while it does not run; empty if unknown.
    pub stack: Vec<Frame>,
    /// Completeness of `stack`.
    pub past: Past,
    /// Owner of the code that it runs at the bottom.
    pub side: Side,
    /// The frame of `stack` it blocked in, which it may have left unseen.
    pub ambiguous: Option<usize>,
    /// Its place, on a CPU or on none.
    pub place: Place,
    /// The reason that it reported for its next wait.
    pub waits_for: Option<Reason>,
    /// The reason of its last sleep.
    pub slept_for: Option<Reason>,
    /// Its control group; 0 for the root, or if unknown.
    pub group: u32,
    /// The thread that made it, if that was seen.
    pub parent: Option<Pid>,
    /// The CPU it last ran on.
    pub last_cpu: Option<usize>,
    /// Id of its control group that the recorder reported last; 0 if none.
    pub cgroup: u32,
    /// Alive or ended.
    pub life: Life,
    /// Time when it last stopped running or was woken; `None` before its first run.
    pub last_end: Option<Time>,
    /// The wakeup that has not led to a run yet.
    pub wakeup: Option<Wakeup>,
    /// Id of the RPC it works on; 0 for none.
    pub rpc: u32,
    /// Name of the RPC.
    pub rpc_name: NameId,
    /// State of the RPC.
    pub rpc_is: RpcIs,
    /// The queue from which it took an RPC that it has not turned to yet.
    pub dequeued: Option<Event>,
}

/// Place of a thread; CPUs by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// On no CPU: it waits, or could run.
    #[default]
    Away,
    /// Switched to, by a scheduler that has not returned.
    Arriving(usize),
    /// Running, or in the scheduler that it has called.
    Running(usize),
    /// Switched from, by a scheduler that has not returned.
    Leaving,
}

impl Place {
    /// The CPU it is on, from the switch to it to the switch from it.
    pub fn cpu(self) -> Option<usize> {
        match self {
            Place::Arriving(c) | Place::Running(c) => Some(c),
            Place::Away | Place::Leaving => None,
        }
    }

    /// True if it runs: a switch from it takes effect when the scheduler ends.
    pub fn runs(self) -> bool {
        matches!(self, Place::Running(_) | Place::Leaving)
    }

    /// The place after a switch to the thread.
    pub fn switched_to(self, c: usize) -> Place {
        if self.runs() {
            Place::Running(c)
        } else {
            Place::Arriving(c)
        }
    }

    /// The place after a switch from the thread.
    pub fn switched_from(self) -> Place {
        if self.runs() {
            Place::Leaving
        } else {
            Place::Away
        }
    }

    /// The place once the thread is shown running.
    pub fn started(self) -> Place {
        self.cpu().map_or(Place::Leaving, Place::Running)
    }

    /// The place once the scheduler that switched from the thread has returned.
    pub fn stopped(self) -> Place {
        self.cpu().map_or(Place::Away, Place::Arriving)
    }
}

/// Owner of the code that a thread runs at the bottom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// A program.
    #[default]
    Program,
    /// The kernel: the thread was reported as one of the kernel's, or it sleeps outside of any call and has not done
    /// anything that only a program does.
    Kernel,
}

/// Completeness of a thread's known stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Past {
    /// Complete: it was seen in user code, and ever since.
    #[default]
    Known,
    /// The thread may be inside of more: nothing has shown yet that it ever was in user code. For a thread of the
    /// kernel nothing ever does.
    Unsure,
}

/// Life of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// It has not ended.
    #[default]
    Lives,
    /// It has ended; the next thread with its pid is another one.
    Ended,
}

/// State of a thread's RPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RpcIs {
    /// The thread works on it.
    #[default]
    InHand,
    /// The thread has put it into a queue, and has not turned to another yet.
    Enqueued,
}

/// Wakeup of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// Time.
    pub ts: Time,
    /// The waker's CPU.
    pub cpu: CpuId,
    /// The waker.
    pub pid: Pid,
}

/// Every thread seen.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// By index.
    pub list: Vec<Thread>,
    index: HashMap<Pid, usize>,
}

impl Threads {
    /// Index of a thread; a new thread is added.
    pub fn find(&mut self, pid: Pid, names: &mut Names) -> usize {
        if let Some(index) = self.known(pid) {
            return index;
        }
        let text = if pid == Pid::IDLE { "-idle-".to_string() } else { format!(".{pid}") };
        let past = if pid == Pid::IDLE { Past::Known } else { Past::Unsure };
        self.list.push(Thread { pid, user: names.id(&text), past, ..Thread::default() });
        self.index.insert(pid, self.list.len() - 1);
        self.list.len() - 1
    }

    /// Index of a thread seen before.
    pub fn known(&self, pid: Pid) -> Option<usize> {
        self.index.get(&pid).copied()
    }

    /// Names a thread, without the path in the original's first record of a program. Idle keeps its own name.
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
