// SPDX-License-Identifier: BSD-3-Clause
//! What the span builder knows of each CPU.

use super::begin::Begin;
use super::stack::Frame;
use super::wait::Reason;
use crate::event::number;

/// A CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// Its number.
    pub id: i32,
    /// Whether its time has begun.
    pub seen: bool,
    /// Where the open piece of time starts.
    pub since: i64,
    /// When its last event was.
    pub last: i64,
    /// Index of the thread the open piece belongs to, `None` if that is not known; the scheduler's belongs to the thread
    /// that called it.
    pub owner: Option<usize>,
    /// Index of the thread on it.
    pub thread: usize,
    /// What that thread is inside of; never empty once `seen`.
    pub stack: Vec<Frame>,
    /// While it is not known what else the thread is inside of.
    pub begin: Option<Begin>,
    /// The frame of `stack` that the thread may have left unseen while it was away.
    pub ambiguous: Option<usize>,
    /// When it switched, and the index of the thread it switched from, while the scheduler has not returned.
    pub switched: Option<(i64, usize)>,
    /// When it last switched to idle or from it.
    pub idle_edge: i64,
    /// The hint it went to a low-power state with, until its next event.
    pub mwait: Option<u32>,
    /// Whether the open piece is in that state.
    pub low: bool,
    /// Interrupts sent to it that have not arrived.
    pub ipis: Vec<Ipi>,
    /// What the sender of the last one that arrived was doing.
    pub remote: Option<Reason>,
    /// Index among its spans of a folded call that ends at `since`.
    pub folded: Option<usize>,
}

/// An interrupt sent by another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipi {
    /// When.
    pub ts: i64,
    /// By which CPU.
    pub from: i32,
    /// What that CPU was doing.
    pub reason: Reason,
}

/// How a piece of time ends. `ipc` is that of the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Its activity goes on later, or under something else.
    Pause {
        /// IPC code.
        ipc: u8,
    },
    /// Its activity is over.
    End {
        /// What it returns.
        ret: u32,
        /// IPC code.
        ipc: u8,
    },
}

impl Cpu {
    /// A CPU before its first event.
    pub fn new(id: i32) -> Cpu {
        Cpu {
            id,
            seen: false,
            since: 0,
            last: i64::MIN,
            owner: None,
            thread: 0,
            stack: Vec::new(),
            begin: None,
            ambiguous: None,
            switched: None,
            idle_edge: i64::MIN,
            mwait: None,
            low: false,
            ipis: Vec::new(),
            remote: None,
            folded: None,
        }
    }

    /// What it is doing.
    pub fn top(&self) -> Frame {
        self.stack.last().copied().unwrap_or(Frame::call(number::LOST, 0, 0))
    }

    /// Whether nothing is known of it at present.
    pub fn is_lost(&self) -> bool {
        self.top().event == number::LOST
    }
}
