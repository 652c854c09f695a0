// SPDX-License-Identifier: BSD-3-Clause
//! Side of a thread, its program or the kernel, where calls and returns do not show it.
//!
//! A kernel thread makes no calls, and a program is in the kernel between the return from a call, or the end of an
//! interrupt, and its own code: there it finishes what the call has left (the last close of a file, a signal), waits to
//! be allowed to continue, or is at the entry of its next call. Samples of the program counter distinguish the two.
//!
//! Invariant: after a sample, no span of its thread since [`Cpu::entered`](super::cpu::Cpu::entered) contradicts it.

use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::{Close, Phase, ShownBy};
use super::stack::Frame;
use super::thread::{Past, Side};
use super::what::{Activity, What, STALLED};
use super::Span;
use crate::event::number::Level;
use crate::event::work::Work;
use crate::id::Pid;
use crate::time::Time;

/// Spans that may be corrected are looked for among this many of the last ones, of all CPUs: what they write in 10 ms
/// or more, for which a virtual CPU may stand still in a tick.
pub const KEPT: usize = 1 << 16;
/// Longest time of entry code, and of the code after a call's return: 1 us.
const ENTRY: Time = Time(100);

impl Builder {
    /// A CPU's thread enters or leaves something; an interrupt changes nothing.
    pub(super) fn enter(&mut self, c: usize, level: Level, t: Time) {
        if !matches!(level, Level::Irq | Level::Softirq) {
            self.cpus[c].entered = t;
            self.cpus[c].shown_by = ShownBy::Change;
        }
        if matches!(level, Level::Syscall | Level::Trap) {
            let thread = self.cpus[c].thread;
            self.perhaps_ends.retain(|woke| level != Level::Syscall || woke.waker != thread);
            self.threads.list[thread].waits_for = None;
        }
    }

    /// Records whose code a thread runs.
    pub(super) fn set_side(&mut self, thread: usize, side: Side) {
        let before = self.bottom(thread);
        let known = &mut self.threads.list[thread];
        if known.side == side || known.pid == Pid::IDLE {
            return;
        }
        known.side = side;
        let (on, bottom, work) = (known.place.cpu(), self.bottom(thread), self.exit_work());
        let Some(cpu) = on.map(|c| &mut self.cpus[c]).filter(|cpu| !cpu.is_lost()) else { return };
        cpu.stack[0] = bottom;
        let since = cpu.entered;
        match &mut cpu.begin {
            Some(begin) if side == Side::Kernel => drop(begin.give(before, bottom)),
            Some(begin) => begin.give_program(before, bottom, work),
            None => on.into_iter().for_each(|c| self.correct_since(c, since, before, bottom)),
        }
    }

    /// A thread sleeps, or slept, in no known call. Records report the call that a program is in, so the thread is the
    /// kernel's, unless these records may be among the missing ones, or the trace itself lists the kernel's threads.
    pub(super) fn presume_kernel(&mut self, thread: usize) {
        let recording = *self.recording();
        let sleeper = &self.threads.list[thread];
        let missing = !self.sees(Capability::Tasks) || self.tally.gaps > 0 || recording.late || recording.kernel_told;
        let unsure = sleeper.past == Past::Unsure;
        if unsure && !missing && sleeper.stack.iter().all(|f| matches!(f.level(), Level::User | Level::Sched)) {
            self.set_side(thread, Side::Kernel);
        }
    }

    /// A thread is in its program, or on the way out to it: it is in no call, and not a kernel thread.
    pub(super) fn in_no_call(&mut self, c: usize) {
        self.left_before(c);
        self.set_side(self.cpus[c].thread, Side::Program);
        self.settle(c);
    }

    /// A tick interrupted a program.
    pub(super) fn sampled_in_program(&mut self, c: usize, t: Time) {
        if !self.sees(Capability::Returns) || self.running(c) == Pid::IDLE || self.cpus[c].is_lost() {
            return;
        }
        self.left_before(c);
        self.set_side(self.cpus[c].thread, Side::Program);
        self.settle_but_tick(c);
        let since = self.cpus[c].entered;
        let stack = &mut self.cpus[c].stack;
        let left = stack.iter().skip(1).take_while(|f| f.level() != Level::Irq).count();
        let (user, gone): (Frame, Vec<Frame>) = (stack[0], stack.drain(1..=left).collect());
        for call in gone {
            self.correct_since(c, since, call, user);
            self.repair(c, call.returned(), call.name);
        }
        let cpu = &mut self.cpus[c];
        cpu.ambiguous = None;
        cpu.entered = t;
        cpu.shown_by = ShownBy::SampleInProgram;
    }

    /// A tick interrupted the kernel.
    pub(super) fn sampled_in_kernel(&mut self, c: usize, t: Time) {
        let since = std::mem::replace(&mut self.cpus[c].entered, t);
        let shown_by = std::mem::take(&mut self.cpus[c].shown_by);
        if let Some(begin) = &mut self.cpus[c].begin {
            begin.kernel_until = t;
        }
        let cpu = &self.cpus[c];
        let &[user, ref above @ ..] = &cpu.stack[..] else { return };
        let of_program = matches!(user.activity, Activity::User(_));
        let told = above.iter().any(|f| f.level() != Level::Irq);
        if !self.sees(Capability::Returns) || !of_program || told {
            return;
        }
        if above.is_empty() {
            self.close(c, t, Close::Pause { ipc: 0 });
        }
        let work = self.exit_work();
        // Where exit work is reported, this is entry code, unless it began before anything was known. After a sample in
        // the program there was no call: only an interrupt, the last one, came in between.
        let told = self.recording().exit_work_told && self.cpus[c].begin.is_none();
        let since = match shown_by {
            _ if told => self.end_of_last(c, user, ENTRY),
            ShownBy::SampleInProgram => self.end_of_last(c, user, Time::MAX),
            ShownBy::Change => since,
        };
        self.correct_since(c, since, user, work);
    }

    /// The frame of the kernel's work for a thread that is in no call.
    pub(super) fn exit_work(&mut self) -> Frame {
        Frame::call(Work::ExitWork, 0, self.names.id("exit_work"))
    }

    /// Gives the spans of a CPU since then from one activity to another.
    fn correct_since(&mut self, c: usize, since: Time, from: Frame, to: Frame) {
        let id = self.cpus[c].id;
        let held = self.cpus[c].begin.as_mut().map_or(&mut [][..], |begin| begin.spans_mut());
        let written = self.out.iter_mut().rev().take(KEPT).filter(|s| s.cpu == Some(id) && s.is_execution());
        for span in held.iter_mut().rev().chain(written).take_while(|s| s.start >= since) {
            if span.what == What::Run(from.activity) {
                (span.what, span.arg, span.name) = (What::Run(to.activity), to.arg, to.name);
            } else if span.what == STALLED && span.arg == i64::from(from.activity.number()) {
                span.arg = to.activity.number().into();
            }
        }
    }

    /// Cuts the end off the last span of user code on a CPU if it is longer than `max`, and returns the start of that
    /// end.
    fn end_of_last(&mut self, c: usize, user: Frame, max: Time) -> Time {
        let (id, top) = (self.cpus[c].id, self.cpus[c].top());
        let spans = self.spans(c);
        let stalled = |s: &Span| s.what == STALLED;
        let of = |s: &Span| if stalled(s) { s.arg } else { s.event().into() };
        // The interrupt that took the sample may already have pieces, if the CPU stood still in it.
        let is_before = |s: &Span| {
            s.cpu == Some(id)
                && s.is_execution()
                && (top.level() != Level::Irq || of(s) != i64::from(top.activity.number()))
        };
        let first = spans.len().saturating_sub(KEPT);
        let Some(at) = spans[first..].iter().rposition(is_before).map(|at| first + at) else { return Time::MAX };
        let last = &mut spans[at];
        if of(last) != i64::from(user.activity.number()) {
            return Time::MAX;
        }
        if last.dur <= max {
            return last.start;
        }
        // The CPU ran this part after it stood still.
        let (what, arg, name) = match stalled(last) {
            true => (What::Run(user.activity), 0, user.name),
            false => (last.what, last.arg, last.name),
        };
        let end = Span { start: last.start + last.dur - max, dur: max, what, arg, name, ..*last };
        last.dur -= max;
        spans.insert(at + 1, end);
        end.start
    }

    /// A CPU that went offline is online again, or the trace ends: its last idle time was offline.
    pub(super) fn was_offline(&mut self, c: usize) {
        if !self.cpus[c].is_offline() {
            return;
        }
        self.cpus[c].phase = Phase::Traced;
        let name = self.names.id("-offline-");
        if let Some(last) = self.last_written(c, |span| span.what == What::Run(Activity::Idle)) {
            (last.what, last.pid, last.arg, last.name) = (What::Run(Activity::Offline), None, 0, name);
        }
    }

    /// The last execution span written for a CPU that satisfies `is_it`.
    pub(super) fn last_written(&mut self, c: usize, is_it: impl Fn(&Span) -> bool) -> Option<&mut Span> {
        let id = self.cpus[c].id;
        let held = self.cpus[c].begin.as_mut().map_or(&mut [][..], |begin| begin.spans_mut());
        let written = self.out.iter_mut().rev().take(KEPT);
        held.iter_mut().rev().chain(written).find(|s| s.cpu == Some(id) && s.is_execution() && is_it(s))
    }

    /// Index of the first written span that may still be corrected.
    pub(super) fn first_in_doubt(&self) -> usize {
        let from = self.out.len().saturating_sub(KEPT);
        let in_doubt = |s: &Span| {
            let cpu = s.cpu.and_then(|cpu| self.cpus.get(cpu.index())).filter(|_| s.is_execution());
            let of_a_thread = s.pid.is_some_and(|pid| pid != Pid::IDLE);
            self.perhaps_ends.iter().any(|woke| woke.made(s))
                || s.pid.and_then(|pid| self.doubts.get(&pid)).is_some_and(|doubt| doubt.covers(s))
                || cpu.is_some_and(|c| {
                    c.is_offline()
                        || c.ticks.may_be_stall(s.start.saturating_add(s.dur))
                        || of_a_thread && s.start >= c.entered
                })
        };
        self.out[from..].iter().position(in_doubt).map_or(self.out.len(), |at| from + at)
    }
}
