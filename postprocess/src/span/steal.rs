// SPDX-License-Identifier: BSD-3-Clause
//! Time that the host took from a CPU: its kernel is told how much, and not when.
//!
//! The recorder looks at each interrupt and each switch, and says what was taken since it looked last
//! ([`Point::Steal`](crate::event::point::Point::Steal)). The CPU did nothing then, so it lies in a pause between two
//! of its events: the last one that is long enough, up to its end, as an interrupt is due when the CPU runs again. If
//! none is, it was taken in several pieces, and the longest pauses are those. In a merged trace the host says itself what
//! it did ([`super::guest`]), and this is left out.
//!
//! What is found so is drawn over what the CPU was at, and takes nothing of its time: that is known exactly, this within
//! the time between two looks only, and a span's argument says how much earlier it may have been.
//!
//! Invariants: spans of one CPU do not overlap, and none has an event inside. What was told is drawn, or counted.

use std::cmp::Reverse;

use kutrace_format::capability::Capability;

use super::build::Builder;
use super::stack::UNMASKABLE;
use super::what::What as Is;
use super::Span;
use crate::event::point::Point;
use crate::event::stolen::Instead;
use crate::event::what::What;
use crate::event::work::Work;
use crate::event::Event;
use crate::readable::count;
use crate::time::Time;

/// Pauses since the last look that are remembered: the longest.
const PAUSES: usize = 8;

/// What is known of a CPU since the recorder last looked at what its host took.
#[derive(Clone, Debug, Default)]
pub struct Look {
    since: Time,
    /// By time.
    pauses: Vec<Pause>,
    /// What is no longer is not remembered.
    least: Time,
    /// The last, however long it is.
    last: Option<Pause>,
    /// The host says itself what it does.
    pub host_tells: bool,
    /// What was told and is less than a unit, in ns.
    rest_ns: u32,
}

/// Time in which a CPU recorded nothing.
#[derive(Clone, Copy, Debug)]
struct Pause {
    from: Time,
    to: Time,
    /// The index of the thread on it.
    thread: usize,
}

impl Pause {
    fn length(&self) -> Time {
        self.to - self.from
    }
}

impl Look {
    /// What comes is seen from here on.
    pub fn begin(&mut self, t: Time) {
        self.since = t;
        self.pauses.clear();
        self.least = Time::ZERO;
        self.last = None;
        self.host_tells = false;
    }

    fn pause(&mut self, pause: Pause) {
        self.last = Some(pause);
        if pause.length() <= self.least {
            return;
        }
        self.pauses.push(pause);
        let shortest_of = |pauses: &[Pause]| pauses.iter().map(Pause::length).min().unwrap_or_default();
        if self.pauses.len() > PAUSES {
            let shortest = shortest_of(&self.pauses);
            let mut is_left = true;
            self.pauses.retain(|pause| pause.length() > shortest || !std::mem::take(&mut is_left));
        }
        if self.pauses.len() == PAUSES {
            self.least = shortest_of(&self.pauses);
        }
    }
}

impl Builder {
    /// An event comes, the first on its CPU since `before`.
    #[inline]
    pub(super) fn look(&mut self, c: usize, before: Time, e: &Event, t: Time) {
        let is_told = matches!(e.what, What::Point(Point::Steal));
        if !is_told && !self.sees(Capability::Steal) {
            return;
        }
        let cpu = &mut self.cpus[c];
        if cpu.is_lost() || cpu.is_offline() {
            cpu.look.begin(t);
        }
        let (thread, from) = (cpu.thread, before.max(cpu.since).max(cpu.look.since));
        // A call and its return in one may have been rounded up.
        if let Some(last) = cpu.look.pauses.last_mut() {
            last.to = last.to.min(t);
        }
        cpu.look.pause(Pause { from, to: t, thread });
        match e.what {
            What::Point(Point::Steal) => self.took(c, e.arg, t),
            What::Switch if e.dur == Time::ZERO => cpu.look.begin(t),
            What::Call(work @ Work::Irq(_)) if !UNMASKABLE.contains(&work) => cpu.look.begin(t),
            What::Call(_) => cpu.look.pause(Pause { from: t, to: t.saturating_add(e.dur), thread }),
            _ => {}
        }
    }

    /// The host has taken this much, in ns.
    fn took(&mut self, c: usize, ns: u32, t: Time) {
        let cpu = &mut self.cpus[c];
        let ns = u64::from(ns) + u64::from(cpu.look.rest_ns);
        let (mut rest, rest_ns) = (Time((ns / 10) as i64), (ns % 10) as u32);
        let Look { since, mut pauses, last, host_tells, .. } = std::mem::take(&mut cpu.look);
        cpu.look = Look { since: t, rest_ns, ..Look::default() };
        if host_tells {
            return;
        }
        match last.iter().chain(pauses.iter().rev()).find(|pause| pause.length() >= rest) {
            Some(fits) => pauses = vec![*fits],
            None => pauses.sort_by_key(|pause| Reverse(pause.length())),
        }
        let (id, name) = (cpu.id, self.names.id(&Instead::Unknown.name()));
        for Pause { from, to, thread } in pauses {
            let start = from.max(to - rest);
            rest -= to - start;
            if to > start {
                let (thread, what) = (&self.threads.list[thread], Is::Point(Point::Steal));
                let (pid, rpc, arg) = (Some(thread.pid), thread.rpc as i32, (start - since).max(Time::ZERO).0);
                self.emit([Span {
                    start,
                    dur: to - start,
                    cpu: Some(id),
                    pid,
                    rpc,
                    what,
                    arg,
                    name,
                    ..Span::default()
                }]);
            }
        }
        self.untold_steal += rest;
    }

    /// What the host took that no pause has room for, if it is anything.
    pub(super) fn untold_steal(&self) -> Option<String> {
        let ms = self.untold_steal.seconds() * 1e3;
        (self.untold_steal > Time::ZERO)
            .then(|| format!("the host took {ms:.3} ms more from the CPUs, of which the trace does not tell when"))
    }
}

/// What is said of time that hosts took, if they did.
pub fn sentence(steals: u64, stolen: Time) -> Option<String> {
    let (times, ms) = (count(steals, "time", "times"), stolen.seconds() * 1e3);
    (steals > 0)
        .then(|| format!("the host ran something else {times}, {ms:.1} ms together, counted as what the CPUs were at"))
}
