// SPDX-License-Identifier: BSD-3-Clause
//! The critical path of a thread: the cause of each moment of its time.
//!
//! While the thread has a CPU, the cause is what that CPU does. While the thread could run but does not, the cause is
//! whatever has the CPU on which it runs next. While the thread sleeps, the cause is what the thread that wakes it does
//! in that time, found in the same way; if a device or a timer wakes it, the cause is what it waits for.
//!
//! Invariant: the cause of a moment depends on the thread and the moment alone, so the path of a request is a piece of
//! the path of any longer stretch of its thread.

use super::cause::{Cause, Causes, Chain, Kind, ENDED, NAMELESS, UNBORN};
use super::message::Message;
use super::request::Request;
use super::timeline::{end, Thread, Timeline, Unseen};
use super::waker::{waker, Waker};
use crate::event::names::NameId;
use crate::event::stolen;
use crate::id::{CpuId, Pid};
use crate::span::wait::Reason;
use crate::span::what::{Activity, Share, What};
use crate::span::Span;
use crate::time::Time;

/// Largest number of steps from a waiting thread to its waker; an undamaged trace never needs more.
const DEPTH: u32 = 64;
/// Longest gap between two runs without a wait that explains it: shorter waits have no span.
const SHORT: Time = Time(2 * crate::span::wake::SHORT.0);

/// A part of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
    /// CPU, if it was on one.
    pub cpu: Option<CpuId>,
    /// Thread to blame, if it is not the request's own.
    pub culprit: Option<Pid>,
    /// Number of the cause.
    pub cause: u32,
    /// Amount counted by [`super::meter`]; 0 if nothing was counted.
    pub work: i64,
}

impl Part {
    /// Returns the share of the counted work in this much of the part's time.
    pub fn work_of(&self, time: Time) -> i64 {
        (i128::from(self.work) * i128::from(time.0) / i128::from((self.end - self.start).0.max(1))) as i64
    }
}

/// Divides the time of a request into parts that follow each other, from its start to its end.
pub fn path(timeline: &Timeline, causes: &mut Causes, request: &Request) -> Vec<Part> {
    let mut stretch = Stretch::new(timeline, request);
    stretch.divide(timeline, causes, request.end);
    stretch.parts
}

/// A stretch of a thread's time, divided as far as requested.
#[derive(Debug)]
pub struct Stretch {
    of: Of,
    /// Parts that follow each other.
    pub parts: Vec<Part>,
    /// Next run of the thread.
    run: usize,
    /// End of the divided time.
    at: Time,
}

impl Stretch {
    /// Makes the stretch from the start of `request` to its end, not divided yet.
    pub fn new(timeline: &Timeline, request: &Request) -> Stretch {
        let of = Of { pid: request.pid, chain: Chain::OWN, untold: None, till: request.end, asker: None };
        let runs = timeline.thread(request.pid).map_or(&[][..], |thread| &thread.runs);
        let run = runs.partition_point(|run| run.end <= request.start);
        Stretch { of, parts: Vec::new(), run, at: request.start }
    }

    /// Divides the time up to `to` or further, so that no part that starts before `to` will change.
    pub fn divide(&mut self, timeline: &Timeline, causes: &mut Causes, to: Time) {
        let (mut path, till) =
            (Path { timeline, causes, parts: &mut self.parts, at: self.at, ran: None }, self.of.till);
        let thread = timeline.thread(self.of.pid);
        while path.at < till && path.parts.last().is_none_or(|part| part.start < to) {
            match thread.filter(|thread| self.run < thread.runs.len()) {
                Some(thread) => path.run(thread, self.run, self.of, till, 0),
                None => {
                    path.rest(thread, self.of, till, 0);
                    path.until(till, Cause::UNKNOWN, None, None);
                }
            }
            self.run += 1;
        }
        self.at = path.at;
    }
}

/// Thread whose time is followed.
#[derive(Clone, Copy, Debug)]
struct Of {
    /// The thread.
    pid: Pid,
    /// Threads that the request waits for.
    chain: Chain,
    /// Name of the wait to report instead of this thread's own, and of what ended it, for a thread that works on behalf
    /// of a device.
    untold: Option<(NameId, NameId)>,
    /// Limit: the end of the request, or the time at which the thread woke the one that waits for it.
    till: Time,
    /// Thread that waits for this one; `None` for the request's own.
    asker: Option<Pid>,
}

impl Of {
    /// Returns the thread to blame for what this thread does: itself, unless it is the request's own.
    fn blamed(&self) -> Option<Pid> {
        (self.chain != Chain::OWN).then_some(self.pid)
    }
}

struct Path<'a> {
    timeline: &'a Timeline<'a>,
    causes: &'a mut Causes,
    parts: &'a mut Vec<Part>,
    /// End of the divided time.
    at: Time,
    /// Span that the CPU executes, while its work is counted.
    ran: Option<Span>,
}

impl Path<'_> {
    /// Assigns a cause to the time up to `end`.
    fn until(&mut self, end: Time, cause: Cause, cpu: Option<CpuId>, culprit: Option<Pid>) {
        if end <= self.at {
            return;
        }
        let cause = self.causes.id(cause);
        let work = self.ran.map_or(0, |span| self.timeline.meter.work(self.timeline, &span, self.at, end));
        match self.parts.last_mut().filter(|part| (part.cause, part.cpu, part.culprit) == (cause, cpu, culprit)) {
            Some(part) => (part.end, part.work) = (end, part.work + work),
            None => self.parts.push(Part { start: self.at, end, cpu, culprit, cause, work }),
        }
        self.at = end;
    }

    /// Divides the time up to `to` by what a thread does.
    fn follow(&mut self, of: Of, to: Time, depth: u32) {
        let timeline = self.timeline;
        let thread = timeline.thread(of.pid);
        if let Some(thread) = thread {
            let first = thread.runs.partition_point(|run| run.end <= self.at);
            for n in first..thread.runs.len() {
                if self.at >= to {
                    return;
                }
                self.run(thread, n, of, to, depth);
            }
        }
        self.rest(thread, of, to, depth);
    }

    /// Divides the time up to the end of the thread's next run, or up to `to`.
    fn run(&mut self, thread: &Thread, n: usize, of: Of, to: Time, depth: u32) {
        let run = &thread.runs[n];
        if run.start > self.at {
            let last = n.checked_sub(1).map(|n| thread.runs[n].cpu);
            self.off_cpu(thread, of, run.start.min(to), (last, Some(run.cpu)), depth);
        }
        if run.start < to {
            self.on_cpu(run.cpu, of, run.end.min(to));
        }
    }

    /// Divides the time up to `to`, in which a thread does not run any more.
    fn rest(&mut self, thread: Option<&Thread>, of: Of, to: Time, depth: u32) {
        match thread {
            Some(thread) if self.at < to && thread.exit.is_some_and(|exit| exit <= self.at) => {
                self.until(to, Cause { chain: of.chain, ..Cause::own(Kind::Unknown, ENDED) }, None, None);
            }
            Some(thread) if self.at < to => {
                self.off_cpu(thread, of, to, (thread.runs.last().map(|run| run.cpu), None), depth);
            }
            Some(_) => {}
            None => self.until(to, Cause::UNKNOWN, None, None),
        }
    }

    fn on_cpu(&mut self, cpu: CpuId, of: Of, to: Time) {
        let (timeline, from) = (self.timeline, self.at);
        for span in timeline.executed(cpu, from, to) {
            self.until(span.start.min(to), Cause::UNKNOWN, Some(cpu), None);
            let (cause, culprit) = self.executing(&span, of);
            self.ran = Some(span);
            self.until(end(&span).min(to), cause, Some(cpu), culprit);
            self.ran = None;
        }
    }

    /// Returns the cause for what a CPU does for a thread.
    fn executing(&self, span: &Span, of: Of) -> (Cause, Option<Pid>) {
        let blamed = of.blamed();
        let does = |kind, name| (Cause { chain: of.chain, ..Cause::own(kind, name) }, blamed);
        match span.activity() {
            Some(Activity::User(_)) => does(Kind::User, NAMELESS),
            Some(Activity::Lost) => (Cause::own(Kind::Lost, NAMELESS), None),
            Some(Activity::Stalled) => (Cause::own(Kind::Stalled, self.stolen(span)), None),
            Some(Activity::Offline) => (Cause::own(Kind::Offline, NAMELESS), None),
            Some(activity) if activity.interrupts() => self.interrupted(span),
            Some(Activity::Call(_)) => does(Kind::Kernel, span.name),
            _ => does(Kind::Kernel, NAMELESS),
        }
    }

    /// Returns what the host did instead of running a CPU, if known.
    fn stolen(&self, span: &Span) -> NameId {
        stolen::sentence(self.timeline.text(span)).map_or(NAMELESS, |_| span.name)
    }

    /// Returns the cause for an interrupt, and the thread that sent it, if one did.
    fn interrupted(&self, span: &Span) -> (Cause, Option<Pid>) {
        let cause = Cause::own(Kind::Interrupt, span.name);
        let sender = self.timeline.sender(span);
        (Cause { by: sender.map_or(NAMELESS, |pid| self.timeline.program_id(pid)), ..cause }, sender)
    }

    /// Divides the time up to `to`, in which the thread does not run; `cpus` are its CPUs before and after.
    fn off_cpu(&mut self, thread: &Thread, of: Of, to: Time, cpus: (Option<CpuId>, Option<CpuId>), depth: u32) {
        let timeline = self.timeline;
        let rows = timeline.rows;
        match timeline.unseen(thread, self.at) {
            Some(Unseen::Asleep(wait)) => self.asleep(thread, &wait, of, end(&wait).min(to), depth),
            Some(Unseen::Unborn(by, born)) => self.unborn(by, born, of, to, depth),
            None => {}
        }
        let first = thread.waits.partition_point(|&n| rows.end(n) <= self.at);
        for &number in thread.waits[first..].iter().take_while(|&&n| rows.start(n) < to) {
            let wait = timeline.span(number);
            self.untold(of, wait.start.min(to), cpus.1);
            let until = end(&wait).min(to);
            match wait.what() {
                What::Wait(reason) if reason.could_run() => self.runnable(thread, &wait, of, cpus, until),
                _ => {
                    let in_it = |last: &Span| if depth == 0 { last.start < of.till } else { end(last) <= of.till };
                    let last = timeline.last_of(number).filter(in_it);
                    self.asleep(thread, &last.unwrap_or(wait), of, until, depth);
                }
            }
        }
        self.untold(of, to, cpus.1);
    }

    /// Divides time before the birth of the thread: the cause is what the thread that starts it does.
    fn unborn(&mut self, by: Pid, born: Time, of: Of, to: Time, depth: u32) {
        let in_order = depth == 0 || born <= of.till;
        if in_order && depth < DEPTH && of.untold.is_none() {
            let chain = self.causes.waiting(of.chain, self.timeline.program_id(by), UNBORN);
            let parent = Of { pid: by, chain, untold: None, till: born, asker: Some(of.pid) };
            self.follow(parent, born.min(to), depth + 1);
        }
    }

    /// Divides time off the CPU without a wait.
    fn untold(&mut self, of: Of, to: Time, next: Option<CpuId>) {
        let waits = Cause { chain: of.chain, ..Cause::own(Kind::Queue, NAMELESS) };
        match (to - self.at, of.untold) {
            (time, _) if time <= Time::ZERO => {}
            (time, _) if time <= SHORT => self.until(to, waits, next, None),
            (_, Some((wait, ended))) => {
                self.until(to, Cause { chain: of.chain, ended, ..Cause::own(Kind::Wait, wait) }, None, None)
            }
            _ => self.until(to, Cause::UNKNOWN, None, None),
        }
    }

    /// Divides time in which the thread could run; the cause is whatever has the CPU that the thread gets next. If that
    /// CPU is idle although the thread competed with others, the thread was pulled over from its previous CPU. A thread
    /// that lost its CPU to another one queues there as long as that CPU has something to do.
    fn runnable(
        &mut self,
        thread: &Thread,
        wait: &Span,
        of: Of,
        (last, next): (Option<CpuId>, Option<CpuId>),
        to: Time,
    ) {
        let own = |kind| Cause { chain: of.chain, ..Cause::own(kind, NAMELESS) };
        let blamed = of.blamed();
        if wait.what() == What::Wait(Reason::Quota) {
            return self.until(to, own(Kind::Quota), None, blamed);
        }
        let Some(cpu) = next.or(last) else { return self.until(to, own(Kind::Queue), None, None) };
        let competed = wait.what() == What::Wait(Reason::Cpu);
        if let Some(last) = last.filter(|last| competed && *last != cpu && self.preempted(thread, wait)) {
            self.behind(last, of, self.idle_from(last, to));
        }
        let (timeline, from) = (self.timeline, self.at);
        for span in timeline.executed(cpu, from, to) {
            self.until(span.start.min(to), own(Kind::Queue), Some(cpu), None);
            match last
                .filter(|last| competed && *last != cpu && span.activity().is_some_and(|a| a.share() == Share::Idle))
            {
                Some(last) => self.behind(last, of, end(&span).min(to)),
                None => self.had(&span, of, end(&span).min(to)),
            }
        }
        self.until(to, own(Kind::Queue), Some(cpu), None);
    }

    /// True if a thread had a CPU when it began to wait for one.
    fn preempted(&self, thread: &Thread, wait: &Span) -> bool {
        let after = thread.runs.partition_point(|run| run.end < wait.start);
        let had_one = thread.runs.get(after).is_some_and(|run| run.end == wait.start);
        had_one && self.timeline.wakeup(thread, wait.start).is_none()
    }

    /// Returns when a CPU runs out of work; `to`, if not before.
    fn idle_from(&self, cpu: CpuId, to: Time) -> Time {
        let is_idle = |span: &Span| span.activity().is_some_and(|a| a.share() == Share::Idle);
        let idle = self.timeline.executed(cpu, self.at, to).find(is_idle);
        idle.map_or(to, |span| span.start.clamp(self.at, to))
    }

    /// Divides time in which the thread waited for what a CPU did.
    fn behind(&mut self, cpu: CpuId, of: Of, to: Time) {
        let (timeline, from) = (self.timeline, self.at);
        for span in timeline.executed(cpu, from, to) {
            self.had(&span, of, end(&span).min(to));
        }
        self.until(to, Cause { chain: of.chain, ..Cause::own(Kind::Queue, NAMELESS) }, Some(cpu), None);
    }

    fn had(&mut self, span: &Span, of: Of, to: Time) {
        let own = |kind| Cause { chain: of.chain, ..Cause::own(kind, NAMELESS) };
        let (cause, culprit) = match span.activity() {
            Some(Activity::Idle | Activity::IdleExit) => (own(Kind::Idle), None),
            Some(activity) if matches!(activity.share(), Share::User | Share::Kernel) && !activity.interrupts() => {
                match span.thread() {
                    None => (own(Kind::Idle), None),
                    // The thread has been switched to, or is on its way to another CPU.
                    Some(pid) if pid == of.pid => (own(Kind::Queue), None),
                    Some(pid) => (Cause { by: self.timeline.program_id(pid), ..own(Kind::Queue) }, Some(pid)),
                }
            }
            _ => self.executing(span, of),
        };
        self.until(to, cause, span.cpu, culprit);
    }

    /// Divides the time up to `to`, in which the thread sleeps in a wait.
    fn asleep(&mut self, thread: &Thread, wait: &Span, of: Of, to: Time, depth: u32) {
        let (blamed, over) = (of.blamed(), end(wait));
        // A thread that woke another one was awake before that; if not, the trace is damaged.
        let in_order = depth == 0 || over <= of.till;
        let arc = self.timeline.wakeup(thread, over).filter(|_| in_order && depth < DEPTH);
        if of.untold.is_some() {
            return self.untold(of, to, None);
        }
        let (timeline, for_net) = (self.timeline, wait.what() == What::Wait(Reason::Net));
        if let Some(message) =
            arc.as_ref().filter(|_| for_net).and_then(|arc| timeline.messages.woke(timeline, of.pid, arc))
        {
            return self.arriving(message, wait, of, to, depth);
        }
        let name = timeline.lock(thread, wait).filter(|_| wait.what() == What::Wait(Reason::Lock)).unwrap_or(wait.name);
        let mut told = Cause { chain: of.chain, ..Cause::own(Kind::Wait, name) };
        match arc.map(|arc| waker(timeline, &arc)) {
            Some(Waker::Thread(pid)) => {
                let chain = self.causes.waiting(of.chain, self.timeline.program_id(pid), name);
                let asker = Some(of.pid);
                self.follow(Of { pid, chain, untold: None, till: over, asker }, to, depth + 1);
            }
            Some(Waker::Servant(pid, ended)) => {
                let (untold, asker) = (Some((name, ended)), Some(of.pid));
                self.follow(Of { pid, chain: of.chain, untold, till: over, asker }, to, depth + 1);
            }
            Some(Waker::Message(message)) => self.arriving(message, wait, of, to, depth),
            Some(Waker::Device(name)) => {
                told.ended = if wait.what() == What::Wait(Reason::Time) { NAMELESS } else { name };
                self.until(to, told, None, blamed);
            }
            None => self.until(to, told, None, blamed),
        }
    }

    /// Divides time in which the thread waits for a message: first for its sender and, once it is sent, for the
    /// network. A message from the one that waits for the thread is a request on its way to it, and so is one of
    /// unknown sender.
    fn arriving(&mut self, message: Message, wait: &Span, of: Of, to: Time, depth: u32) {
        let program = |pid: Pid| self.timeline.program_id(pid);
        // Another thread of the waiting program may have sent it.
        let is_its = |by: Pid, asker: Pid| program(by) == program(asker) && program(by) != program(of.pid);
        let asks = message.by.is_none_or(|by| of.asker.is_some_and(|asker| by == asker || is_its(by, asker)));
        let by = of.asker.filter(|_| asks).map_or(NAMELESS, |_| program(of.pid));
        let mut chain = of.chain;
        if let Some(pid) = message.by {
            let sender = self.causes.waiting(of.chain, program(pid), wait.name);
            let of_sender = Of { pid, chain: sender, untold: None, till: message.sent, asker: Some(of.pid) };
            self.follow(of_sender, message.sent.min(to), depth + 1);
            chain = if asks { of.chain } else { sender };
        }
        let kind = if message.again { Kind::Resent } else { Kind::Network };
        self.until(to, Cause { chain, by, ..Cause::own(kind, NAMELESS) }, None, None);
    }
}
