// SPDX-License-Identifier: BSD-3-Clause
//! The critical path of a thread: whose time it was, at each moment.
//!
//! While the thread has a CPU, what that CPU does is the cause. While the thread could run and did not, it is whoever
//! had the CPU on which it runs next. While it sleeps, it is what the thread that wakes it does meanwhile, in the same
//! way; and where no thread does the waking but a device or a timer, what it waits for.
//!
//! Invariant: what the cause is at a moment depends on the thread and the moment alone; so the path of a request is a
//! piece of the path of any longer stretch of its thread.

use super::cause::{Cause, Causes, Chain, Kind, NAMELESS};
use super::request::Request;
use super::timeline::{end, Thread, Timeline};
use crate::event::names::NameId;
use crate::event::number::Level;
use crate::span::wait::Reason;
use crate::span::what::{Activity, Share, What};
use crate::span::Span;

/// From waiting thread to waking thread this often at most: more than a trace without damage has.
const DEPTH: u32 = 64;
/// Between two runs this may lie without a wait that says why: shorter ones have no span.
const SHORT: i64 = 2 * crate::span::wake::SHORT;

/// The flag of a trace in which instructions per cycle were counted.
const IPC: u32 = 0x80;
/// Sixteenths of an instruction per cycle, by the code of a span.
const SIXTEENTHS: [i64; 16] = [1, 3, 5, 7, 9, 11, 13, 15, 18, 22, 26, 30, 36, 44, 52, 60];

/// A part of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From when.
    pub start: i64,
    /// Until when.
    pub end: i64,
    /// On which CPU; -1 for none.
    pub cpu: i32,
    /// The thread that is to blame; 0 for none but the own.
    pub culprit: i32,
    /// Into what it went, by its number.
    pub cause: u32,
    /// Instructions per cycle in sixteenths, times the time; 0 where they were not counted.
    pub work: i64,
}

impl Part {
    /// The instructions of so much of it.
    pub fn work_of(&self, time: i64) -> i64 {
        (i128::from(self.work) * i128::from(time) / i128::from((self.end - self.start).max(1))) as i64
    }
}

/// Divides the time of a request: parts follow each other, from its start to its end.
pub fn path(timeline: &Timeline, causes: &mut Causes, request: &Request) -> Vec<Part> {
    let counted = timeline.spans.meta.flags & IPC != 0;
    let mut path = Path { timeline, causes, parts: Vec::new(), at: request.start, pace: 0, counted };
    path.follow(Of { pid: request.pid, chain: Chain::OWN, untold: None }, request.end, 0);
    path.until(request.end, Cause::UNKNOWN, -1, 0);
    path.parts
}

/// Whose time is followed.
#[derive(Clone, Copy, Debug)]
struct Of<'a> {
    /// The thread.
    pid: i32,
    /// Whom the request waits for.
    chain: Chain,
    /// The wait that is told instead of those of this thread: it works when a device tells it to.
    untold: Option<&'a Span>,
}

/// Who ended a wait.
enum Waker {
    /// A thread.
    Thread(i32),
    /// A thread that works when a device tells it to: until then it was the device.
    Servant(i32),
    /// An interrupt or softirq of this name, or nobody knows who.
    Device(NameId),
}

struct Path<'a, 'b> {
    timeline: &'a Timeline<'a>,
    causes: &'b mut Causes,
    parts: Vec<Part>,
    /// Up to here the time is divided.
    at: i64,
    /// Instructions per cycle in sixteenths, while that is known.
    pace: i64,
    counted: bool,
}

impl<'a> Path<'a, '_> {
    /// What comes next has this cause, until `end`.
    fn until(&mut self, end: i64, cause: Cause, cpu: i32, culprit: i32) {
        if end <= self.at {
            return;
        }
        let cause = self.causes.id(cause);
        let work = (end - self.at) * self.pace;
        match self.parts.last_mut().filter(|part| (part.cause, part.cpu, part.culprit) == (cause, cpu, culprit)) {
            Some(part) => (part.end, part.work) = (end, part.work + work),
            None => self.parts.push(Part { start: self.at, end, cpu, culprit, cause, work }),
        }
        self.at = end;
    }

    /// Divides the time until `to` by what a thread does.
    fn follow(&mut self, of: Of<'a>, to: i64, depth: u32) {
        let timeline = self.timeline;
        let Some(thread) = timeline.thread(of.pid) else { return self.until(to, Cause::UNKNOWN, -1, 0) };
        let first = thread.runs.partition_point(|run| run.end <= self.at);
        for (n, run) in thread.runs.iter().enumerate().skip(first) {
            if self.at >= to {
                return;
            }
            if run.start > self.at {
                let last = n.checked_sub(1).map(|n| thread.runs[n].cpu);
                self.off_cpu(thread, of, run.start.min(to), (last, Some(run.cpu)), depth);
            }
            if run.start < to {
                self.on_cpu(run.cpu, of, run.end.min(to));
            }
        }
        if self.at < to {
            self.off_cpu(thread, of, to, (thread.runs.last().map(|run| run.cpu), None), depth);
        }
    }

    fn on_cpu(&mut self, cpu: i32, of: Of, to: i64) {
        let (timeline, from) = (self.timeline, self.at);
        for span in timeline.executed(cpu, from, to) {
            self.until(span.start.min(to), Cause::UNKNOWN, cpu, 0);
            let (cause, culprit) = self.executing(span, of);
            self.pace = if self.counted { SIXTEENTHS[usize::from(span.ipc & 15)] } else { 0 };
            self.until(end(span).min(to), cause, cpu, culprit);
            self.pace = 0;
        }
    }

    /// What a CPU does for a thread.
    fn executing(&self, span: &Span, of: Of) -> (Cause, i32) {
        let blamed = if of.chain == Chain::OWN { 0 } else { of.pid };
        let does = |kind, name| (Cause { chain: of.chain, ..Cause::own(kind, name) }, blamed);
        match span.activity() {
            Some(Activity::User) => does(Kind::User, NAMELESS),
            Some(Activity::Lost) => (Cause::own(Kind::Lost, NAMELESS), 0),
            Some(Activity::Stalled) => (Cause::own(Kind::Stalled, NAMELESS), 0),
            Some(Activity::Offline) => (Cause::own(Kind::Offline, NAMELESS), 0),
            Some(Activity::Call(Level::Irq | Level::Softirq)) => self.interrupted(span),
            Some(Activity::Call(Level::Syscall | Level::Trap | Level::Sched)) => does(Kind::Kernel, span.name),
            _ => does(Kind::Kernel, NAMELESS),
        }
    }

    /// An interrupt, and who sent it if a thread did.
    fn interrupted(&self, span: &Span) -> (Cause, i32) {
        let cause = Cause::own(Kind::Interrupt, span.name);
        let sender = self.timeline.sender(span).filter(|pid| *pid > 0);
        (Cause { by: sender.map_or(NAMELESS, |pid| self.timeline.program_id(pid)), ..cause }, sender.unwrap_or(0))
    }

    /// The thread does not run until `to`; it had one CPU, and then it has another.
    fn off_cpu(&mut self, thread: &Thread, of: Of<'a>, to: i64, cpus: (Option<i32>, Option<i32>), depth: u32) {
        let timeline = self.timeline;
        let first = thread.waits.partition_point(|&n| end(timeline.span(n)) <= self.at);
        for wait in thread.waits[first..].iter().map(|&n| timeline.span(n)).take_while(|s| s.start < to) {
            self.untold(of, wait.start.min(to), cpus.1);
            let until = end(wait).min(to);
            match wait.what() {
                What::Wait(reason) if reason.could_run() => self.runnable(wait, of, cpus, until),
                _ => self.asleep(thread, wait, of, until, depth),
            }
        }
        self.untold(of, to, cpus.1);
    }

    /// Time off the CPU without a wait.
    fn untold(&mut self, of: Of, to: i64, next: Option<i32>) {
        let waits = Cause { chain: of.chain, ..Cause::own(Kind::Queue, NAMELESS) };
        match (to - self.at, of.untold) {
            (..=0, _) => {}
            (1..=SHORT, _) => self.until(to, waits, next.unwrap_or(-1), 0),
            (_, Some(wait)) => self.until(to, Cause { chain: of.chain, ..Cause::own(Kind::Wait, wait.name) }, -1, 0),
            _ => self.until(to, Cause::UNKNOWN, -1, 0),
        }
    }

    /// The thread could run; whoever has the CPU that it gets next is the cause. Where that is idle though the thread
    /// competed with others, it was pulled over from the CPU that it had before.
    fn runnable(&mut self, wait: &Span, of: Of, (last, next): (Option<i32>, Option<i32>), to: i64) {
        let own = |kind| Cause { chain: of.chain, ..Cause::own(kind, NAMELESS) };
        let blamed = if of.chain == Chain::OWN { 0 } else { of.pid };
        if wait.what() == What::Wait(Reason::Quota) {
            return self.until(to, own(Kind::Quota), -1, blamed);
        }
        let Some(cpu) = next.or(last) else { return self.until(to, own(Kind::Queue), -1, 0) };
        let (timeline, from) = (self.timeline, self.at);
        let competed = wait.what() == What::Wait(Reason::Cpu);
        for span in timeline.executed(cpu, from, to) {
            self.until(span.start.min(to), own(Kind::Queue), cpu, 0);
            match last
                .filter(|last| competed && *last != cpu && span.activity().is_some_and(|a| a.share() == Share::Idle))
            {
                Some(last) => self.behind(last, of, end(span).min(to)),
                None => self.had(span, of, end(span).min(to)),
            }
        }
        self.until(to, own(Kind::Queue), cpu, 0);
    }

    /// What a CPU did that the thread waited for.
    fn behind(&mut self, cpu: i32, of: Of, to: i64) {
        let (timeline, from) = (self.timeline, self.at);
        for span in timeline.executed(cpu, from, to) {
            self.had(span, of, end(span).min(to));
        }
        self.until(to, Cause { chain: of.chain, ..Cause::own(Kind::Queue, NAMELESS) }, cpu, 0);
    }

    fn had(&mut self, span: &Span, of: Of, to: i64) {
        let own = |kind| Cause { chain: of.chain, ..Cause::own(kind, NAMELESS) };
        let (cause, culprit) = match span.activity() {
            Some(Activity::Idle | Activity::IdleExit) => (own(Kind::Idle), 0),
            Some(
                Activity::User
                | Activity::Thread
                | Activity::Kernel
                | Activity::Call(Level::Syscall | Level::Trap | Level::Sched),
            ) => match span.pid {
                ..=0 => (own(Kind::Idle), 0),
                // It has been switched to, or is on its way to another CPU.
                pid if pid == of.pid => (own(Kind::Queue), 0),
                pid => (Cause { by: self.timeline.program_id(pid), ..own(Kind::Queue) }, pid),
            },
            _ => self.executing(span, of),
        };
        self.until(to, cause, span.cpu, culprit);
    }

    /// The thread sleeps until `to`, in a wait.
    fn asleep(&mut self, thread: &Thread, wait: &'a Span, of: Of<'a>, to: i64, depth: u32) {
        let blamed = if of.chain == Chain::OWN { 0 } else { of.pid };
        // A thread that woke another had been awake for that: if not, the trace is damaged.
        let in_order = depth == 0 || end(wait) <= to;
        let arc = self.timeline.wakeup(thread, end(wait)).filter(|_| in_order && depth < DEPTH);
        if of.untold.is_some() {
            return self.untold(of, to, None);
        }
        let mut told = Cause { chain: of.chain, ..Cause::own(Kind::Wait, wait.name) };
        match arc.map(|arc| self.waker(arc)) {
            Some(Waker::Thread(pid)) => {
                let chain = self.causes.waiting(of.chain, self.timeline.program_id(pid), wait.name);
                self.follow(Of { pid, chain, untold: None }, to, depth + 1);
            }
            Some(Waker::Servant(pid)) => {
                self.follow(Of { pid, chain: of.chain, untold: Some(wait) }, to, depth + 1);
            }
            Some(Waker::Device(name)) => {
                told.ended = if wait.what() == What::Wait(Reason::Time) { NAMELESS } else { name };
                self.until(to, told, -1, blamed);
            }
            None => self.until(to, told, -1, blamed),
        }
    }

    /// Whose doing a wakeup is.
    fn waker(&self, arc: &Span) -> Waker {
        let timeline = self.timeline;
        let mut before = timeline.before(arc.cpu, arc.start + 1).skip_while(|s| s.start > arc.start);
        let Some(first) = before.next() else { return Waker::Device(NAMELESS) };
        match first.activity() {
            Some(Activity::Call(Level::Irq)) => return Waker::Device(first.name),
            Some(Activity::Call(Level::Softirq)) => {}
            _ if arc.pid > 0 && first.pid == arc.pid => return Waker::Thread(arc.pid),
            _ => return Waker::Device(NAMELESS),
        }
        let (mut burst, mut name) = (first, first.name);
        let is_net = |s: &Span| matches!(s.arg, 2 | 3);
        let mut before = before.peekable();
        while let Some(s) = before.next() {
            let follows = end(s) == std::mem::replace(&mut burst, s).start;
            match s.activity() {
                Some(Activity::Stalled) => {}
                // A timer that sends a packet is why that arrives.
                Some(Activity::Call(Level::Softirq)) if follows && is_net(first) && s.arg == 1 => name = s.name,
                Some(Activity::Call(Level::Softirq)) => {}
                // It came while the softirq ran.
                Some(Activity::Call(Level::Irq))
                    if before.peek().is_some_and(|b| b.event == first.event && b.arg == first.arg) => {}
                Some(Activity::Call(Level::Irq)) if follows => {
                    let device = timeline.text(s);
                    let general = device.contains("timer") || device.contains("ipi") || device.contains("call_func");
                    let is_told = name != first.name;
                    return Waker::Device(if general || is_told { name } else { s.name });
                }
                // A softirq that follows a call of the thread is that call's doing: a message to this machine.
                Some(Activity::Call(Level::Syscall))
                    if s.pid == arc.pid && arc.pid > 0 && is_net(first) && name == first.name =>
                {
                    return Waker::Thread(arc.pid);
                }
                Some(Activity::Thread) if s.pid == arc.pid => {
                    let servant = timeline.program(s.pid).starts_with("ksoftirqd");
                    return if servant { Waker::Servant(s.pid) } else { Waker::Device(name) };
                }
                _ => return Waker::Device(name),
            }
        }
        Waker::Device(name)
    }
}
