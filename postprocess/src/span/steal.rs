// SPDX-License-Identifier: BSD-3-Clause
//! Time that the host took from a CPU: its kernel learns how much, but not when.
//!
//! The recorder looks at each interrupt and each switch, and reports the time taken since its last look
//! ([`Point::Steal`](crate::event::point::Point::Steal)). The CPU did nothing then, so this time is in a pause between
//! two of its events: at the end of the last pause that is long enough, because an interrupt is due when the CPU runs
//! again. If none is long enough, the time was taken in several pieces, and these are the longest pauses. In a merged
//! trace the host itself reports what it did ([`super::guest`]), and the recorder's reports are skipped.
//!
//! Stolen time is drawn over the CPU's activity, and takes nothing of its time: the activity's time is known exactly,
//! the stolen time only to within two looks, and a span's argument states how much earlier it may have been.
//!
//! Invariants: spans of one CPU do not overlap, and none has an event inside. All reported time is drawn or counted.

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

/// Number of pauses since the last look that are remembered: the longest.
const PAUSES: usize = 8;

/// State of a CPU since the recorder last looked at the time its host took.
#[derive(Clone, Debug, Default)]
pub struct Look {
    since: Time,
    /// In order of time.
    pauses: Vec<Pause>,
    /// Pauses of this length or shorter are not remembered.
    least: Time,
    /// The last pause, of any length.
    last: Option<Pause>,
    /// True if the host itself reports what it does.
    pub host_tells: bool,
    /// Reported time that is less than a unit, in ns.
    rest_ns: u32,
}

/// Time in which a CPU recorded nothing.
#[derive(Clone, Copy, Debug)]
struct Pause {
    from: Time,
    to: Time,
    /// Index of the thread on the CPU.
    thread: usize,
}

impl Pause {
    fn length(&self) -> Time {
        self.to - self.from
    }
}

impl Look {
    /// Starts to see pauses from here on.
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
    /// An event arrives, the first on its CPU since `before`.
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
        let thread = cpu.thread;
        self.paused(c, before, t);
        let cpu = &mut self.cpus[c];
        match e.what {
            What::Point(Point::Steal) => self.took(c, e.arg, t),
            What::Switch if e.dur == Time::ZERO => cpu.look.begin(t),
            What::Call(work @ Work::Irq(_)) if !UNMASKABLE.contains(&work) => cpu.look.begin(t),
            What::Call(_) => cpu.look.pause(Pause { from: t, to: t.saturating_add(e.dur), thread }),
            _ => {}
        }
    }

    /// A CPU has recorded nothing from `before` to `t`.
    #[inline]
    pub(super) fn paused(&mut self, c: usize, before: Time, t: Time) {
        let cpu = &mut self.cpus[c];
        let (thread, from) = (cpu.thread, before.max(cpu.since).max(cpu.look.since));
        // A folded call may have been rounded up.
        if let Some(last) = cpu.look.pauses.last_mut() {
            last.to = last.to.min(t);
        }
        cpu.look.pause(Pause { from, to: t, thread });
    }

    /// The host has taken `ns` since the last look.
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

    /// Sentence about the time taken by the host that fits into no pause, if there is any.
    pub(super) fn untold_steal(&self) -> Option<String> {
        let ms = self.untold_steal.seconds() * 1e3;
        (self.untold_steal > Time::ZERO)
            .then(|| format!("the host took {ms:.3} ms more from the CPUs, at times that are not in the trace"))
    }
}

/// Sentence about time that hosts took, if they did.
pub fn sentence(steals: u64, stolen: Time) -> Option<String> {
    let (times, ms) = (count(steals, "time", "times"), stolen.seconds() * 1e3);
    (steals > 0)
        .then(|| format!("the host ran something else {times}, {ms:.1} ms together, counted as the CPUs' own work"))
}
