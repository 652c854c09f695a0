// SPDX-License-Identifier: BSD-3-Clause
//! The critical path of a request: whose time it was, at each moment.
//!
//! While the request's thread has a CPU, what that CPU does is the cause. While the thread could run and did not, it is
//! whoever had the CPU on which it runs next. While it sleeps, it is what the thread that wakes it does meanwhile, in the
//! same way; and where no thread does the waking but a device or a timer, what it waits for.

use super::cause::{Cause, Kind, Of, NAMELESS};
use super::request::Request;
use super::timeline::{end, Thread, Timeline};
use crate::event::number::{level, share, Level, Share};
use crate::span::wait::Reason;
use crate::span::Span;
use crate::summary::latency::could_run;

/// From waiting thread to waking thread this often at most.
const DEPTH: u32 = 16;
/// Between two runs this may lie without a wait that says why: shorter ones have no span.
const SHORT: i64 = 2 * crate::span::wake::SHORT;

/// A part of a request's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From when.
    pub start: i64,
    /// Until when.
    pub end: i64,
    /// On which CPU; -1 for none.
    pub cpu: i32,
    /// Into what it went.
    pub cause: Cause,
}

/// Divides the time of a request: parts follow each other, from its start to its end.
pub fn path(timeline: &Timeline, request: &Request) -> Vec<Part> {
    let mut path = Path { timeline, parts: Vec::new(), at: request.start };
    path.follow(request.pid, Of::OWN, request.end, 0);
    path.until(request.end, Cause::UNKNOWN, -1);
    path.parts
}

struct Path<'a> {
    timeline: &'a Timeline<'a>,
    parts: Vec<Part>,
    /// Up to here the time is divided.
    at: i64,
}

impl Path<'_> {
    /// What comes next has this cause, until `end`.
    fn until(&mut self, end: i64, cause: Cause, cpu: i32) {
        if end <= self.at {
            return;
        }
        match self.parts.last_mut().filter(|part| part.cause == cause && part.cpu == cpu) {
            Some(part) => part.end = end,
            None => self.parts.push(Part { start: self.at, end, cpu, cause }),
        }
        self.at = end;
    }

    /// Divides the time until `to` by what a thread does.
    fn follow(&mut self, pid: i32, of: Of, to: i64, depth: u32) {
        let Some(thread) = self.timeline.thread(pid) else { return self.until(to, Cause::UNKNOWN, -1) };
        let first = thread.runs.partition_point(|run| run.end <= self.at);
        for run in &thread.runs[first..] {
            if self.at >= to {
                return;
            }
            if run.start > self.at {
                self.off_cpu(thread, of, run.start.min(to), Some(run.cpu), depth);
            }
            if run.start < to {
                self.on_cpu(run.cpu, of, run.end.min(to));
            }
        }
        if self.at < to {
            self.off_cpu(thread, of, to, None, depth);
        }
    }

    fn on_cpu(&mut self, cpu: i32, of: Of, to: i64) {
        let (timeline, from) = (self.timeline, self.at);
        for span in timeline.executed(cpu, from, to) {
            self.until(span.start.min(to), Cause::UNKNOWN, cpu);
            self.until(end(span).min(to), Cause::executing(span, of), cpu);
        }
    }

    /// The thread does not run until `to`; then it has the CPU `next`.
    fn off_cpu(&mut self, thread: &Thread, of: Of, to: i64, next: Option<i32>, depth: u32) {
        let timeline = self.timeline;
        let first = thread.waits.partition_point(|&n| end(timeline.span(n)) <= self.at);
        for wait in thread.waits[first..].iter().map(|&n| timeline.span(n)).take_while(|s| s.start < to) {
            self.untold(wait.start.min(to), next);
            let until = end(wait).min(to);
            match could_run(wait.event) {
                true => self.runnable(wait, next, until),
                false => self.asleep(thread, wait, of, until, depth),
            }
        }
        self.untold(to, next);
    }

    /// Time off the CPU without a wait.
    fn untold(&mut self, to: i64, next: Option<i32>) {
        match to - self.at {
            ..=0 => {}
            1..=SHORT => self.until(to, Cause::own(Kind::Queue, NAMELESS), next.unwrap_or(-1)),
            _ => self.until(to, Cause::UNKNOWN, -1),
        }
    }

    /// The thread could run; whoever has the CPU that it gets next is the cause.
    fn runnable(&mut self, wait: &Span, next: Option<i32>, to: i64) {
        let quota = Cause::own(Kind::Quota, NAMELESS);
        if wait.event == Reason::Quota.event() {
            return self.until(to, quota, -1);
        }
        let waiting = Cause::own(Kind::Queue, NAMELESS);
        let Some(cpu) = next else { return self.until(to, waiting, -1) };
        let (timeline, from) = (self.timeline, self.at);
        for span in timeline.executed(cpu, from, to) {
            let cause = match (share(span.event), level(span.event as u32)) {
                (Share::User | Share::Kernel, level) if !matches!(level, Level::Irq | Level::Softirq) => {
                    let by = if span.pid > 0 { span.pid } else { 0 };
                    let kind = if span.pid > 0 { Kind::Queue } else { Kind::Idle };
                    Cause { kind, by, name: NAMELESS, wait: NAMELESS }
                }
                (Share::Idle, _) => Cause::own(Kind::Idle, NAMELESS),
                _ => Cause::executing(span, Of::OWN),
            };
            self.until(span.start.min(to), waiting, cpu);
            self.until(end(span).min(to), cause, cpu);
        }
        self.until(to, waiting, cpu);
    }

    /// The thread sleeps until `to`, in a wait.
    fn asleep(&mut self, thread: &Thread, wait: &Span, of: Of, to: i64, depth: u32) {
        let told = Cause { kind: Kind::Wait, by: of.by, name: wait.name, wait: of.wait };
        let wakeup = self.timeline.wakeup(thread, end(wait)).filter(|_| end(wait) <= to && depth < DEPTH);
        match wakeup.and_then(|arc| self.waker(arc)) {
            Some(waker) => self.follow(waker, Of { by: waker, wait: wait.name }, to, depth + 1),
            None => self.until(to, told, -1),
        }
    }

    /// The thread whose doing a wakeup is; none if it is a device's, a timer's, or nobody's.
    fn waker(&self, arc: &Span) -> Option<i32> {
        let mut before = self.timeline.before(arc.cpu, arc.start + 1).skip_while(|s| s.start > arc.start);
        let first = before.next()?;
        let mut doer = first;
        // A softirq that follows a call of the thread is that call's doing: a message to this machine.
        if level(doer.event as u32) == Level::Softirq {
            doer = before.find(|s| level(s.event as u32) != Level::Softirq)?;
        }
        let is_its_own = doer.pid == arc.pid && !matches!(level(doer.event as u32), Level::Irq);
        (arc.pid > 0 && is_its_own && (first == doer || level(doer.event as u32) == Level::Syscall)).then_some(arc.pid)
    }
}
