// SPDX-License-Identifier: BSD-3-Clause
//! Calls and interrupts that a thread was already inside of when the trace first saw it.
//!
//! A CPU's recording begins, and continues after a gap, in the middle of anything; and a thread that is met for the
//! first time returns from whatever it went to sleep in earlier. Only the return shows what that was, and this is not a
//! repair: the call began earlier, and gets all the time since. The builder therefore holds back a CPU's execution
//! spans until an event shows that its thread is, or was, in user code. A thread that goes to sleep before that is
//! still in doubt when it runs again: its return then also identifies its earlier runs, as far back as spans are kept.
//!
//! Invariant: the number of spans held back is bounded, and a CPU's spans are written in order.

use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::Cpu;
use super::mode::KEPT;
use super::stack::{Frame, Nesting};
use super::thread::{Life, Side};
use super::what::{Activity, What, STALLED};
use super::{Span, NONE};
use crate::event::names::NameId;
use crate::event::number::Level;
use crate::event::work::Work;
use crate::id::Pid;
use crate::time::Time;

/// Maximum number of execution spans held back on a CPU; a call reaches back no further.
const HELD_MAX: usize = 256;

/// State of one machine's recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recording {
    /// True if it reports the kernel's work on the way out to a program.
    pub exit_work_told: bool,
    /// True if it reports which threads are the kernel's.
    pub kernel_told: bool,
    /// Start of the first CPU's time.
    pub first: Option<Time>,
    /// Time up to which events of some CPU are known to be missing, because it began late or lost them.
    pub blind: Time,
    /// True if another CPU's time began later, when there were threads that may have run there.
    pub late: bool,
    /// Repairs of calls, faults and their returns since the last CPU that began late.
    pub repaired_calls: u64,
}

/// State of a thread on a CPU while it is unknown what the thread was inside of at its start.
#[derive(Clone, Debug)]
pub struct UnsettledStart {
    /// Frames that were known at the start; some may be gone by now.
    pub known: usize,
    /// All work that has run directly above those frames, each kind once.
    above: Vec<Work>,
    /// The CPU's execution spans since the start.
    spans: Vec<Span>,
    /// True if the start was in the middle of anything, for example an interrupt; false if the thread was switched to.
    anywhere: bool,
    /// True if a tick found that it interrupted user code: the thread is then inside of that tick's interrupt alone.
    in_tick: bool,
    /// Time of the last sample that found the thread in the kernel.
    pub kernel_until: Time,
    /// Start of the doubt, earlier runs of the thread included.
    since: Time,
}

/// The same for a thread that is on no CPU: see [`UnsettledStart`].
#[derive(Clone, Debug)]
pub struct Doubt {
    since: Time,
    above: Vec<Work>,
}

impl Doubt {
    /// True if a span of the thread is from the time in doubt.
    pub fn covers(&self, span: &Span) -> bool {
        span.start >= self.since
    }
}

impl UnsettledStart {
    /// True if an interrupt that began unseen may be above this many frames.
    pub fn may_be_interrupted(&self, depth: usize) -> bool {
        self.anywhere
            && depth <= self.known
            && self
                .allows(Frame::call(Work::Softirq, 0, NameId::EMPTY), Nesting { returns: true, ..Nesting::default() })
    }

    /// Records that `work` runs above `depth` frames.
    pub fn runs(&mut self, work: Work, depth: usize) {
        if depth <= self.known && !self.above.contains(&work) {
            self.above.push(work);
        }
    }

    /// Gives one activity the time that another has had since the start; true if there was any.
    pub(super) fn give(&mut self, from: Frame, to: Frame) -> bool {
        self.give_up_to(Time::MAX, from, to)
    }

    /// Gives a program the time that another activity has had since the start; the time up to the last sample in the
    /// kernel goes to `work`, which the kernel does for the program.
    pub(super) fn give_program(&mut self, from: Frame, user: Frame, work: Frame) {
        self.give_up_to(self.kernel_until, from, work);
        self.give(from, user);
    }

    fn give_up_to(&mut self, end: Time, from: Frame, to: Frame) -> bool {
        let until = self.spans.partition_point(|span| span.start < end);
        self.spans[..until].iter_mut().fold(false, |any, span| give(span, from, to) | any)
    }

    /// The spans held back.
    pub(super) fn spans_mut(&mut self) -> &mut [Span] {
        &mut self.spans
    }

    /// True if a call could have begun before the start: nothing has run that cannot be above it.
    fn allows(&self, call: Frame, nesting: Nesting) -> bool {
        self.above.iter().all(|&inner| nesting.allows(call, inner))
    }
}

/// Gives a span to one activity if it belongs to another; true if it did.
fn give(span: &mut Span, from: Frame, to: Frame) -> bool {
    if span.what == STALLED && span.arg == i64::from(from.activity.number()) {
        span.arg = to.activity.number().into();
    }
    if span.what != What::Run(from.activity) {
        return false;
    }
    (span.what, span.arg, span.name) = (What::Run(to.activity), to.arg, to.name);
    span.ret = to.activity.no_value();
    true
}

impl Builder {
    /// Begins the time of a CPU. If others of its machine began earlier, in a trace that wrapped, a thread that is on
    /// no CPU may have run on this one. The calls repaired so far were then not missing either: they were made here.
    pub(super) fn begin_cpu(&mut self, from: Time) {
        let losses = self.sees(Capability::Losses);
        let recording = self.recording_mut();
        let first = *recording.first.get_or_insert(from);
        recording.first = Some(first.min(from));
        if from <= first || !losses {
            return;
        }
        recording.blind = recording.blind.max(from);
        let repaired = std::mem::take(&mut recording.repaired_calls);
        let mut threads =
            self.threads.list.iter().filter(|t| t.pid.machine() as usize == self.machine && t.pid != Pid::IDLE);
        let late = threads.any(|t| t.place.cpu().is_none() && t.last_end.is_some());
        self.recording_mut().late |= late;
        self.tally.repairs -= repaired;
        self.tally.first = self.tally.first.filter(|_| self.tally.repairs > 0);
    }

    /// From now on it is unknown what a CPU's thread is inside of, except for the frames below the scheduler. If the
    /// thread was switched to, the scheduler has run above all of these.
    pub(super) fn doubt(&mut self, c: usize, mut above: Vec<Work>) {
        let cpu = &mut self.cpus[c];
        let anywhere = above.is_empty();
        let known = cpu.stack.len() - usize::from(cpu.top().level() == Level::Sched);
        let mut since = cpu.since;
        if let Some(doubt) = self.doubts.get(&self.threads.list[cpu.thread].pid) {
            above.retain(|work| !doubt.above.contains(work));
            above.extend(&doubt.above);
            since = doubt.since;
        }
        cpu.begin = Some(UnsettledStart {
            known,
            above,
            spans: Vec::new(),
            anywhere,
            in_tick: false,
            kernel_until: Time::MIN,
            since,
        });
        cpu.folded = None;
    }

    /// Settles what a CPU's thread was inside of at its start: it is known now, or never will be.
    pub(super) fn settle(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        let Some(begin) = cpu.begin.take() else { return };
        cpu.folded = cpu.folded.map(|call| call + self.out.len());
        self.out.extend(begin.spans);
        self.doubts.remove(&self.threads.list[cpu.thread].pid);
    }

    /// Settles that a thread is in no call, unless the only evidence is a tick whose interrupt began unseen.
    pub(super) fn settle_but_tick(&mut self, c: usize) {
        let sees = self.sees(Capability::Interrupts);
        let cpu = &mut self.cpus[c];
        let interrupted = cpu.stack.iter().any(|f| f.level() == Level::Irq);
        match &mut cpu.begin {
            Some(begin) if sees && !interrupted && begin.may_be_interrupted(cpu.stack.len()) => begin.in_tick = true,
            _ => self.settle(c),
        }
    }

    /// A program leaves its CPU before anything has shown what it was inside of at its start.
    pub(super) fn settle_later(&mut self, c: usize) {
        let thread = &self.threads.list[self.cpus[c].thread];
        let lives = thread.side == Side::Program && thread.life == Life::Lives;
        let (pid, stays) = (thread.pid, thread.pid != Pid::IDLE && lives);
        let begin = self.cpus[c].begin.as_ref().filter(|begin| stays && !begin.in_tick);
        let doubt = begin.map(|begin| Doubt { since: begin.since, above: begin.above.clone() });
        self.settle(c);
        doubt.into_iter().for_each(|doubt| drop(self.doubts.insert(pid, doubt)));
    }

    /// Puts a call on the stack of which only the end is seen, if it may have begun before the thread was known: the
    /// call then gets all the time since that nothing above it had. Frames that are there now have lost their returns.
    pub(super) fn began_before(&mut self, c: usize, t: Time, call: Frame, ipc: u8) -> bool {
        if call.level() == Level::Syscall {
            self.left_before(c);
        }
        let (cpu, nesting) = (&self.cpus[c], self.nesting);
        let Some(work) = call.work() else { return false };
        let Some(begin) = cpu.begin.as_ref().filter(|b| b.allows(call, nesting)) else { return false };
        let is_tick = begin.in_tick;
        if is_tick && call.level() != Level::Irq {
            return false;
        }
        let known = begin.known.min(cpu.stack.len());
        let (below, above) = cpu.stack.split_at(known);
        let fits = |f: &Frame| nesting.allows(*f, work);
        if !below.last().is_some_and(fits) || above.iter().any(fits) {
            return false;
        }
        while self.cpus[c].stack.len() > known {
            self.end_top(c, t, ipc);
        }
        let exit_work = self.exit_work();
        let pid = self.running(c);
        let cpu = &mut self.cpus[c];
        let below = cpu.top();
        let Some(begin) = &mut cpu.begin else { return false };
        if let Some(doubt) = self.doubts.get(&pid) {
            // The thread may have been taken for the kernel's, because it sleeps in no known call.
            let program = Frame { activity: Activity::user(pid), ..below };
            let kept = self.out.iter_mut().rev().take(KEPT);
            for span in kept.filter(|s| s.pid == Some(pid) && s.is_execution() && doubt.covers(s)) {
                let _ = [below, program, exit_work].into_iter().any(|from| give(span, from, call));
            }
        }
        // Samples in the kernel belong to this call.
        let shown = begin.give(below, call) | begin.give(exit_work, call);
        begin.runs(work, known);
        cpu.stack.push(Frame { shown, ..call });
        if is_tick {
            self.settle(c);
        }
        true
    }

    /// A thread is in no call: it had left the call that only a record reported before it was known, and user code gets
    /// all the time since. An interrupt may be above.
    pub(super) fn left_before(&mut self, c: usize) {
        let work = self.exit_work();
        let cpu = &mut self.cpus[c];
        let (Some(begin), &[user, call, ref above @ ..]) = (&mut cpu.begin, &cpu.stack[..]) else { return };
        if begin.known > 1 && call.level() == Level::Syscall && above.iter().all(|f| f.level() == Level::Irq) {
            begin.give_program(call, user, work);
            begin.known -= 1;
            cpu.stack.remove(1);
            cpu.ambiguous = None;
        }
    }

    /// The spans held back on all CPUs: each may still be given to another activity.
    pub fn held(&self) -> impl Iterator<Item = &Span> {
        self.cpus.iter().filter_map(|cpu| cpu.begin.as_ref()).flat_map(|begin| &begin.spans)
    }

    /// Cuts an execution span of a CPU, one of the last, so that a span begins at `from` and ends at `to`.
    pub(super) fn cut(&mut self, c: usize, from: Time, to: Time) {
        let (id, held) = (self.cpus[c].id, self.cpus[c].begin.is_some());
        let spans = self.spans(c);
        let kept = spans.len().saturating_sub(KEPT);
        let contains = |s: &Span| s.start <= from && s.start.saturating_add(s.dur) >= to;
        let is_its = |s: &Span| s.cpu == Some(id) && s.is_execution() && contains(s);
        let Some(at) = spans[kept..].iter().rposition(is_its).map(|at| kept + at) else { return };
        let whole = spans[at];
        let no_value = whole.activity().map_or(NONE, Activity::no_value);
        let end = whole.start.saturating_add(whole.dur);
        let piece = |(start, end): (Time, Time)| Span { start, dur: end - start, ret: no_value, ..whole };
        let mut pieces: Vec<Span> = [(whole.start, from), (from, to), (to, end)].map(piece).to_vec();
        pieces.retain(|piece| piece.dur > Time::ZERO);
        pieces.last_mut().into_iter().for_each(|last| last.ret = whole.ret);
        let more = pieces.len() - 1;
        spans.splice(at..=at, pieces);
        // Folded calls are known by their places.
        let same = |(n, cpu): &(usize, &mut Cpu)| if held { *n == c } else { cpu.begin.is_none() };
        let folded = self.cpus.iter_mut().enumerate().filter(same).filter_map(|(_, cpu)| cpu.folded.as_mut());
        folded.filter(|folded| **folded > at).for_each(|folded| *folded += more);
    }

    /// Writes an execution span of a CPU and returns its index in [`Builder::spans`].
    pub(super) fn write(&mut self, c: usize, span: Span) -> usize {
        if let Some(begin) = self.cpus[c].begin.as_mut().filter(|b| b.spans.len() >= HELD_MAX) {
            self.out.append(&mut begin.spans);
        }
        let spans = self.spans(c);
        spans.push(span);
        spans.len() - 1
    }

    /// The list that a CPU's execution spans are written to.
    pub(super) fn spans(&mut self, c: usize) -> &mut Vec<Span> {
        match &mut self.cpus[c].begin {
            Some(begin) => &mut begin.spans,
            None => &mut self.out,
        }
    }
}
