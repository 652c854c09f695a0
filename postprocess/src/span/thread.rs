// SPDX-License-Identifier: BSD-3-Clause
//! What the span builder knows of each thread, whether it runs or not.
//!
//! Where a thread is, its [`Place`], follows from switches and from the scheduler, which has a CPU for a while before and
//! after each:
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
//! A thread that is switched to while it is `Leaving`, on another CPU whose scheduler has not returned, has never stopped
//! to run. The idle thread is on many CPUs at once: its place is that on the last of them.
//!
//! Apart from that a thread has a [`Side`], which only what it does can tell, and a [`Past`]: what it is inside of is known
//! only since it was seen in user code. A thread that has [ended](Life::Ended) stays on its CPU up to the next switch; the
//! next with its pid is another.

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
    /// Whether `stack` is all that it is inside of.
    pub past: Past,
    /// Whose code it runs at the bottom.
    pub side: Side,
    /// The frame of `stack` it blocked in, which it may have left unseen.
    pub ambiguous: Option<usize>,
    /// Where it is.
    pub place: Place,
    /// What it said that it is about to wait for.
    pub waits_for: Option<Reason>,
    /// What it last slept for.
    pub slept_for: Option<Reason>,
    /// Its control group, 0 for the root or if that is not known.
    pub group: u32,
    /// The thread that made it, if that was seen.
    pub parent: Option<Pid>,
    /// The CPU it last ran on.
    pub last_cpu: Option<usize>,
    /// The id of its control group as the recorder told it last; 0 if it did not.
    pub cgroup: u32,
    /// Whether it has ended.
    pub life: Life,
    /// When it last stopped to run or was woken; `None` before its first run.
    pub last_end: Option<Time>,
    /// The wakeup that has not led to a run yet.
    pub wakeup: Option<Wakeup>,
    /// RPC it works on, 0 for none, and that RPC's name.
    pub rpc: u32,
    /// Name of the RPC.
    pub rpc_name: NameId,
    /// What it has done with that RPC.
    pub rpc_is: RpcIs,
    /// The queue it has taken an RPC out of that it has not turned to yet.
    pub dequeued: Option<Event>,
}

/// Where a thread is; CPUs by index.
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

    /// Whether it runs: a switch from it takes effect with the end of the scheduler.
    pub fn runs(self) -> bool {
        matches!(self, Place::Running(_) | Place::Leaving)
    }

    /// After a switch to it.
    pub fn switched_to(self, c: usize) -> Place {
        if self.runs() {
            Place::Running(c)
        } else {
            Place::Arriving(c)
        }
    }

    /// After a switch from it.
    pub fn switched_from(self) -> Place {
        if self.runs() {
            Place::Leaving
        } else {
            Place::Away
        }
    }

    /// It is shown running.
    pub fn started(self) -> Place {
        self.cpu().map_or(Place::Leaving, Place::Running)
    }

    /// The scheduler that switched from it has returned.
    pub fn stopped(self) -> Place {
        self.cpu().map_or(Place::Away, Place::Arriving)
    }
}

/// Whose code a thread runs at the bottom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// A program's.
    #[default]
    Program,
    /// The kernel's: it was said to be one of its threads, or it sleeps outside of any call and has not shown anything
    /// that only a program does.
    Kernel,
}

/// How far back it is known what a thread is inside of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Past {
    /// It was seen in user code, and since then.
    #[default]
    Known,
    /// It may be inside of more: nothing has shown yet that it ever was in user code. Of a thread of the kernel nothing
    /// does.
    Unsure,
}

/// Whether a thread has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// It has not.
    #[default]
    Lives,
    /// It has; the next with its pid is another.
    Ended,
}

/// What a thread has done with its RPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RpcIs {
    /// It works on it.
    #[default]
    InHand,
    /// It has put it into a queue, and has not turned to another yet.
    Enqueued,
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
        let past = if pid == Pid::IDLE { Past::Known } else { Past::Unsure };
        self.list.push(Thread { pid, user: names.id(&text), past, ..Thread::default() });
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
