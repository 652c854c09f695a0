// SPDX-License-Identifier: BSD-3-Clause
//! State of each CPU in the span builder.
//!
//! A CPU's [`Phase`] follows from its events:
//!
//! ```text
//!            its first event               it reports going offline
//!   Unseen -------------------> Traced -------------------------------> Offline
//!                                 ^                                        |
//!                                 +----------------------------------------+
//!                                  it reports being online, or the trace ends:
//!                                  its last idle time was offline
//! ```
//!
//! A CPU that was offline when the recording began is `Offline` from its first event on, for the time up to that event.
//! In every phase but the first, the bottom of the stack is user code, idle, or unknown time.

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

/// Number of interrupts that are remembered.
const INTERRUPTS: usize = 64;

/// State of one CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// CPU number.
    pub id: CpuId,
    /// Phase of its time.
    pub phase: Phase,
    /// Start of the open piece of time.
    pub since: Time,
    /// Last time anything showed whether its thread is in the program or in the kernel: a change of what it is inside
    /// of, other than an interrupt, or a sample.
    pub entered: Time,
    /// The event that showed that.
    pub shown_by: ShownBy,
    /// Time of its last event.
    pub last: Time,
    /// Index of the thread that owns the open piece, `None` if unknown; the scheduler's belongs to the thread that
    /// called it.
    pub owner: Option<usize>,
    /// Index of the thread on this CPU.
    pub thread: usize,
    /// Frames that the thread is inside of; never empty once the CPU's time has begun.
    pub stack: Vec<Frame>,
    /// Set while it is unknown what else the thread is inside of.
    pub begin: Option<UnsettledStart>,
    /// The frame of `stack` that the thread may have left unseen while it was away.
    pub ambiguous: Option<usize>,
    /// Time of the last switch, and the index of the thread it switched from unless that already runs elsewhere; set
    /// until the scheduler returns.
    pub switched: Option<(Time, Option<usize>)>,
    /// Time of the last switch to or from idle.
    pub idle_edge: Time,
    /// Time of the last switch.
    pub last_switch: Time,
    /// Last time in idle, up to the switch from it.
    pub idle: (Time, Time),
    /// Start and end of the last interrupts and softirqs in idle.
    pub interrupts: VecDeque<(Time, Time)>,
    /// Control groups that have, or had, used up their share of this CPU, in order.
    pub throttled: Vec<Throttled>,
    /// Hint of the low-power state it is in: from that `mwait`, or an equivalent, to its next event.
    pub low_power: Option<u32>,
    /// State of its timer ticks.
    pub ticks: Ticks,
    /// State since the recorder last looked at the time its host takes.
    pub look: Look,
    /// Interrupts sent to it that have not arrived.
    pub ipis: Vec<Ipi>,
    /// Activity of the sender of the last interrupt that arrived.
    pub remote: Option<(Reason, By)>,
    /// Index among its spans of a folded call that ends at `since`.
    pub folded: Option<usize>,
}

/// Phase of a CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It had no event yet.
    Unseen,
    /// It runs.
    Traced,
    /// It reported going offline, and has not reported being online again.
    Offline,
}

/// Last evidence of whether a CPU's thread is in the program or in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownBy {
    /// A change of what the thread is inside of, or a sample in the kernel.
    #[default]
    Change,
    /// A sample in the program.
    SampleInProgram,
}

/// An interrupt sent by another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipi {
    /// Time it was sent.
    pub ts: Time,
    /// Time when the sender sent the first interrupt that has not arrived either.
    pub first: Time,
    /// The sending CPU.
    pub from: CpuId,
    /// Activity of the sender.
    pub reason: (Reason, By),
}

/// A control group that has used up its share of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// Its number.
    pub group: u32,
    /// Start.
    pub from: Time,
    /// End; the far future while it lasts.
    pub to: Time,
}

/// End of a piece of time, with the piece's `ipc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The activity continues later, or under something else.
    Pause {
        /// IPC code.
        ipc: u8,
    },
    /// The activity is over.
    End {
        /// Return value; [`super::NONE`] if it was not seen.
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

    /// The innermost activity.
    pub fn top(&self) -> Frame {
        self.stack.last().copied().unwrap_or(Frame::new(Activity::Lost, 0, NameId::EMPTY))
    }

    /// Arcs of the interrupts sent to this CPU up to `t`, which have arrived.
    pub fn arrive_ipis(&mut self, t: Time, name: NameId) -> Vec<Span> {
        let arrived = self.ipis.extract_if(.., |ipi| ipi.ts <= t);
        let (id, remote) = (self.id, &mut self.remote);
        let arc = |ipi: Ipi| {
            *remote = Some(ipi.reason);
            Span::ipi(ipi.from, id, name, (ipi.ts, t))
        };
        arrived.map(arc).collect()
    }

    /// Remembers an interruption of idle.
    pub fn interrupt(&mut self, from: Time, to: Time) {
        if self.interrupts.len() == INTERRUPTS {
            self.interrupts.pop_front();
        }
        self.interrupts.push_back((from, to));
    }

    /// Time for which idle was interrupted within a range, as far as it is remembered.
    pub fn interrupted(&self, from: Time, to: Time) -> Time {
        let within = self.interrupts.iter().rev().take_while(|i| i.1 > from);
        within.map(|&(start, end)| end.min(to) - start.max(from)).sum()
    }

    /// True if its time has begun.
    pub fn has_begun(&self) -> bool {
        self.phase != Phase::Unseen
    }

    /// True if it last reported going offline.
    pub fn is_offline(&self) -> bool {
        self.phase == Phase::Offline
    }

    /// True if its activity is unknown at present.
    pub fn is_lost(&self) -> bool {
        self.top().activity == Activity::Lost
    }
}
