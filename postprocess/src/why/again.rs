// SPDX-License-Identifier: BSD-3-Clause
//! Waits that a timeout ended and that their thread resumed: they are one wait, ended by what ends the last of them.
//!
//! A server does not wait for messages forever: now and then a timeout ends its wait, it does its housekeeping, and
//! waits again, in the same call with the same argument. A thread that waits for the server in that time waits for the
//! message.
//!
//! A condition variable of glibc has two futexes in the eight bytes of its `__g_signals`, and a wait takes the one whose
//! turn it is. So a thread that waits for one of them in vain, unlocks the mutex of the variable, and waits for the
//! other, waits again.
//!
//! Invariant: between two of these waits the thread sent nothing, received nothing except from files that it had
//! opened, woke no thread, recorded no mark and waited for nothing else. So no request begins or ends there, except one
//! that is a call.

use foldhash::HashMap;

use super::calls::{Call, Calls};
use crate::event::names::NameId;
use crate::event::point::Point;
use crate::span::wait::Reason;
use crate::span::{Span, NONE};

/// Difference between the addresses of the two futexes of a condition variable.
const OTHER_FUTEX: i64 = 4;

/// Resumed waits of a trace, by the index of their spans: the waits that ended them.
#[derive(Debug, Default)]
pub struct Again(HashMap<u32, u32>);

/// State of a thread, in the order of its spans.
#[derive(Debug, Default)]
pub struct Doing {
    /// Call that it is in: name and argument.
    call: Option<(NameId, i64)>,
    /// Last wait, while it may be resumed.
    wait: Option<Wait>,
}

/// A wait that a timer ended.
#[derive(Debug)]
struct Wait {
    span: u32,
    call: (NameId, i64),
    /// True if the call has returned.
    over: bool,
    /// True if the thread waited for a futex, and has woken others at one since, as it does to unlock a mutex.
    unlocked: bool,
    /// Descriptors of files that the thread has opened since.
    opened: Vec<i64>,
}

impl Wait {
    /// True if this call takes the wait up again.
    fn is_resumed_by(&self, (name, argument): (NameId, i64)) -> bool {
        let differs_by = argument ^ self.call.1;
        self.over && name == self.call.0 && (differs_by == 0 || self.unlocked && differs_by == OTHER_FUTEX)
    }
}

impl Again {
    /// Returns the wait that ended this one, perhaps after others.
    pub fn last(&self, wait: u32) -> Option<u32> {
        self.0.get(&wait).copied()
    }

    /// Maps each wait to the last of those that follow it.
    pub fn ordered(&mut self) {
        let mut waits: Vec<u32> = self.0.keys().copied().collect();
        waits.sort_unstable();
        for wait in waits.into_iter().rev() {
            let next = self.0[&wait];
            if let Some(&last) = self.0.get(&next) {
                self.0.insert(wait, last);
            }
        }
    }
}

impl Doing {
    /// The thread waits, as this span shows.
    pub fn waits(&mut self, span: u32, reason: Reason, again: &mut Again) {
        if reason.could_run() {
            return;
        }
        let resumed = |before: &Wait| self.call.is_some_and(|call| before.is_resumed_by(call));
        if let Some(before) = self.wait.take().filter(resumed) {
            again.0.insert(before.span, span);
        }
        let call = self.call.filter(|_| reason == Reason::Time);
        self.wait = call.map(|call| Wait { span, call, over: false, unlocked: false, opened: Vec::new() });
    }

    /// The thread is in a system call.
    pub fn calls(&mut self, s: &Span, calls: &Calls) {
        self.call = (s.ret == NONE).then_some((s.name, s.arg));
        let Some(wait) = self.wait.as_mut().filter(|_| s.ret != NONE) else { return };
        let call = calls.of(s);
        let goes_on = match (wait.over, call) {
            (false, Some(call)) if (s.name, s.arg) == wait.call => {
                wait.over = true;
                call.timed_out(s.ret)
            }
            (false, _) => false,
            (true, Some(Call::Send)) => false,
            (true, Some(Call::Futex)) => {
                wait.unlocked |= s.name == wait.call.0 && s.ret == 0;
                s.ret <= 0
            }
            (true, Some(Call::Poll | Call::Accept)) => s.ret <= 0,
            (true, Some(Call::Receive)) => s.ret <= 0 || wait.opened.contains(&s.arg),
            (true, Some(Call::Open)) => {
                wait.opened.push(s.ret);
                true
            }
            (true, Some(Call::Close)) => {
                wait.opened.retain(|descriptor| *descriptor != s.arg);
                true
            }
            (true, Some(Call::Connect) | None) => true,
        };
        if !goes_on {
            self.wait = None;
        }
    }

    /// True if a thread that records this point does something else from there on.
    pub fn ends_with(point: Point) -> bool {
        point.is_mark() || point.is_rpc() || matches!(point, Point::ProgramMark | Point::ProgramBegin)
    }

    /// The thread records a point of that kind.
    pub fn marks(&mut self) {
        self.wait = None;
    }
}
