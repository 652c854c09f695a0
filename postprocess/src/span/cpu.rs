// SPDX-License-Identifier: BSD-3-Clause
//! What the span builder knows of each CPU.
//!
//! A CPU's [`Phase`] is that of its time:
//!
//! ```text
//!            its first event               it says that it goes offline
//!   Unseen -------------------> Traced -------------------------------> Offline
//!                                 ^                                        |
//!                                 +----------------------------------------+
//!                                  it says that it is online, or the trace ends:
//!                                  while it last was idle it was offline
//! ```
//!
//! A CPU that was offline when the recording began is `Offline` from its first event on, up to that event. In any phase
//! but the first it has a stack with something at the bottom: user code, idle, or time of which nothing is known.

use std::collections::VecDeque;

use super::begin::UnsettledStart;
use super::stack::Frame;
use super::stall::Ticks;
use super::steal::Look;
use super::wait::{By, Reason};
use super::what::Activity;
use super::Span;
use crate::event::names::NameId;
use crate::id::CpuId;
use crate::time::Time;

/// Interrupts that are remembered.
const INTERRUPTS: usize = 64;

/// A CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// Its number.
    pub id: CpuId,
    /// Whether its time has begun, and whether it goes on.
    pub phase: Phase,
    /// Where the open piece of time starts.
    pub since: Time,
    /// Since when nothing has shown whether its thread is in the program or in the kernel: what it is inside of changed
    /// then, but for interrupts, or a sample told.
    pub entered: Time,
    /// What has shown that.
    pub shown_by: ShownBy,
    /// When its last event was.
    pub last: Time,
    /// Index of the thread the open piece belongs to, `None` if that is not known; the scheduler's belongs to the
    /// thread that called it.
    pub owner: Option<usize>,
    /// Index of the thread on it.
    pub thread: usize,
    /// What that thread is inside of; never empty once its time has begun.
    pub stack: Vec<Frame>,
    /// While it is not known what else the thread is inside of.
    pub begin: Option<UnsettledStart>,
    /// The frame of `stack` that the thread may have left unseen while it was away.
    pub ambiguous: Option<usize>,
    /// When it switched, and the index of the thread it switched from unless that runs elsewhere already,
    /// while the scheduler has not returned.
    pub switched: Option<(Time, Option<usize>)>,
    /// When it last switched to idle or from it.
    pub idle_edge: Time,
    /// When it last switched.
    pub last_switch: Time,
    /// When it was last idle, up to the switch from it.
    pub idle: (Time, Time),
    /// The last interrupts and softirqs while it was idle: from when to when.
    pub interrupts: VecDeque<(Time, Time)>,
    /// The control groups that have used up their share of it, or had, in order.
    pub throttled: Vec<Throttled>,
    /// The hint of the low-power state that it is in: from that `mwait`, or what does the same, to its next event.
    pub low_power: Option<u32>,
    /// What is known of its ticks.
    pub ticks: Ticks,
    /// What is known since the recorder looked at what its host takes.
    pub look: Look,
    /// Interrupts sent to it that have not arrived.
    pub ipis: Vec<Ipi>,
    /// What the sender of the last one that arrived was doing.
    pub remote: Option<(Reason, By)>,
    /// Index among its spans of a folded call that ends at `since`.
    pub folded: Option<usize>,
}

/// Whether a CPU's time has begun, and whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There was no event of it yet.
    Unseen,
    /// It runs.
    Traced,
    /// It has said that it goes offline, and not that it is online again.
    Offline,
}

/// What has shown last whether a CPU's thread is in the program or in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownBy {
    /// A change of what it is inside of, or a sample in the kernel.
    #[default]
    Change,
    /// A sample in the program.
    SampleInProgram,
}

/// An interrupt sent by another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipi {
    /// When.
    pub ts: Time,
    /// When that CPU sent the first that has not arrived either.
    pub first: Time,
    /// By which CPU.
    pub from: CpuId,
    /// What that CPU was doing.
    pub reason: (Reason, By),
}

/// A control group that has used up its share of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// Its id.
    pub group: u32,
    /// Since when.
    pub from: Time,
    /// Until when; the far future while it lasts.
    pub to: Time,
}

/// How a piece of time ends. `ipc` is that of the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Its activity continues later, or under something else.
    Pause {
        /// IPC code.
        ipc: u8,
    },
    /// Its activity is over.
    End {
        /// What it returns; [`super::NONE`] if that was not seen.
        ret: i64,
        /// IPC code.
        ipc: u8,
    },
}

impl Cpu {
    /// A CPU before its first event.
    pub fn new(id: CpuId) -> Cpu {
        Cpu {
            id,
            phase: Phase::Unseen,
            since: Time::ZERO,
            entered: Time::MIN,
            shown_by: ShownBy::Change,
            last: Time::MIN,
            owner: None,
            thread: 0,
            stack: Vec::new(),
            begin: None,
            ambiguous: None,
            switched: None,
            idle_edge: Time::MIN,
            last_switch: Time::MIN,
            idle: (Time::MAX, Time::MIN),
            interrupts: VecDeque::new(),
            throttled: Vec::new(),
            low_power: None,
            ticks: Ticks::default(),
            look: Look::default(),
            ipis: Vec::new(),
            remote: None,
            folded: None,
        }
    }

    /// What it is doing.
    pub fn top(&self) -> Frame {
        self.stack.last().copied().unwrap_or(Frame::new(Activity::Lost, 0, NameId::EMPTY))
    }

    /// Interrupts sent to it up to then have arrived.
    pub fn arrive_ipis(&mut self, t: Time, name: NameId) -> Vec<Span> {
        let arrived = self.ipis.extract_if(.., |ipi| ipi.ts <= t);
        let (id, remote) = (self.id, &mut self.remote);
        let arc = |ipi: Ipi| {
            *remote = Some(ipi.reason);
            Span::ipi(ipi.from, id, name, (ipi.ts, t))
        };
        arrived.map(arc).collect()
    }

    /// Remembers that while it was idle something interrupted it.
    pub fn interrupt(&mut self, from: Time, to: Time) {
        if self.interrupts.len() == INTERRUPTS {
            self.interrupts.pop_front();
        }
        self.interrupts.push_back((from, to));
    }

    /// How long idle was interrupted within a time, as far as it is remembered.
    pub fn interrupted(&self, from: Time, to: Time) -> Time {
        let within = self.interrupts.iter().rev().take_while(|i| i.1 > from);
        within.map(|&(start, end)| end.min(to) - start.max(from)).sum()
    }

    /// Whether its time has begun.
    pub fn has_begun(&self) -> bool {
        self.phase != Phase::Unseen
    }

    /// Whether it is offline, as far as it has said.
    pub fn is_offline(&self) -> bool {
        self.phase == Phase::Offline
    }

    /// Whether nothing is known of it at present.
    pub fn is_lost(&self) -> bool {
        self.top().activity == Activity::Lost
    }
}
