// SPDX-License-Identifier: BSD-3-Clause
//! What each CPU executed, and each thread: when it ran and where, what it waited for between, and who woke it.

use std::borrow::Cow;

use foldhash::HashMap;

use super::again::{Again, Doing};
use super::calls::Calls;
use super::message::Messages;
use crate::event::names::{NameId, Names};
use crate::event::number::Level;
use crate::event::point::Point;
use crate::id::{CpuId, Pid};
use crate::span::what::{Arc, What};
use crate::span::{Span, Spans};
use crate::time::Time;

/// CPUs beyond this are not looked at: a number so large is damage.
const MAX_CPUS: usize = 1 << 16;

/// What spans say of CPUs and threads, by time.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The trace.
    pub spans: &'a Spans,
    /// Spans of execution of each CPU.
    cpus: Vec<Vec<u32>>,
    threads: HashMap<Pid, Thread>,
    /// The names of programs, each once. Threads of the kernel that do the same for several CPUs are one program.
    pub programs: Vec<String>,
    /// The arcs of interrupts to each CPU, by arrival.
    sent: Vec<Vec<u32>>,
    again: Again,
    /// First and last moment of the trace.
    pub extent: (Time, Time),
    /// Packets of which both ends are in the trace.
    pub messages: Messages,
}

/// One thread.
#[derive(Debug, Default)]
pub struct Thread {
    /// When it had a CPU, and which.
    pub runs: Vec<Run>,
    /// What it waited for: spans of waits.
    pub waits: Vec<u32>,
    /// The arcs of its wakeups.
    wakeups: Vec<u32>,
    /// The last name of its user code.
    name: Option<NameId>,
    /// Its program, among [`Timeline::programs`].
    program: NameId,
    /// When it ended, or did last what ends it.
    pub exit: Option<Time>,
    doing: Doing,
}

/// A thread has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// Which CPU.
    pub cpu: CpuId,
}

impl<'a> Timeline<'a> {
    /// Orders what `spans` say.
    pub fn new(spans: &'a Spans) -> Timeline<'a> {
        let (mut cpus, mut sent): (Vec<Vec<u32>>, Vec<Vec<u32>>) = Default::default();
        let mut threads: HashMap<Pid, Thread> = HashMap::default();
        let mut extent = (Time::MAX, Time::MIN);
        let ends = |name: &String| matches!(name.as_str(), "exit" | "exit_group");
        let ends: Vec<bool> = spans.names.iter().map(ends).collect();
        let (calls, mut again) = (Calls::new(spans), Again::default());
        for (n, s) in (0..).zip(&spans.spans) {
            match s.what() {
                What::Arc(Arc::Wakeup { woken, .. }) => threads.entry(woken).or_default().wakeups.push(n),
                What::Arc(Arc::Ipi { to }) => list(&mut sent, to).push(n),
                What::Wait(reason) => {
                    let Some(pid) = s.pid else { continue };
                    let thread = threads.entry(pid).or_default();
                    thread.waits.push(n);
                    thread.doing.waits(n, reason, &mut again);
                }
                What::Point(point) if Doing::ends_with(point) => {
                    s.pid.into_iter().for_each(|pid| threads.entry(pid).or_default().doing.marks());
                }
                What::Point(Point::Exit) => {
                    s.pid.into_iter().for_each(|pid| threads.entry(pid).or_default().exit = Some(s.start));
                }
                What::Run(_) => {
                    let Some(cpu) = s.cpu else { continue };
                    list(&mut cpus, cpu).push(n);
                    extent = (extent.0.min(s.start), extent.1.max(end(s)));
                    if let Some(pid) = s.thread() {
                        let thread = threads.entry(pid).or_default();
                        thread.executes(cpu, s);
                        if s.level() == Some(Level::Syscall) {
                            thread.doing.calls(s, &calls);
                        }
                        if ends.get(s.name.index()) == Some(&true) {
                            thread.exit = Some(end(s));
                        }
                    }
                }
                _ => {}
            }
        }
        let mut programs = Names::default();
        for (pid, thread) in &mut threads {
            thread.runs.sort_by_key(|run| run.start);
            let by_end = |&n: &u32| (end(&spans.spans[n as usize]), spans.spans[n as usize].start);
            thread.waits.sort_by_key(by_end);
            thread.wakeups.sort_by_key(|&n| spans.spans[n as usize].start);
            let name = thread.name.map_or("", |name| spans.names[name].as_str());
            thread.program = programs.id(&on_machine(spans, *pid, of_all_cpus(program(name))));
        }
        sent.iter_mut().for_each(|list| list.sort_by_key(|&n| end(&spans.spans[n as usize])));
        let extent = if extent.0 > extent.1 { (Time::ZERO, Time::ZERO) } else { extent };
        again.ordered();
        let messages = Messages::default();
        let mut timeline =
            Timeline { spans, cpus, threads, programs: programs.into_texts(), sent, again, extent, messages };
        timeline.messages = Messages::of(&timeline);
        timeline
    }

    /// How many CPUs there are, or one more than the number of the last.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// A span by its index.
    pub fn span(&self, index: u32) -> &'a Span {
        &self.spans.spans[index as usize]
    }

    /// The name of a span.
    pub fn text(&self, span: &Span) -> &'a str {
        self.spans.names.get(span.name.index()).map_or("", String::as_str)
    }

    /// A thread, if the trace has it.
    pub fn thread(&self, pid: Pid) -> Option<&Thread> {
        self.threads.get(&pid)
    }

    /// All threads.
    pub fn threads(&self) -> impl Iterator<Item = (Pid, &Thread)> {
        self.threads.iter().map(|(pid, thread)| (*pid, thread))
    }

    /// Program and number of a thread, as `redis-server.107`; with its machine, if there are several.
    pub fn name(&self, pid: Pid) -> String {
        let known = self.thread(pid).and_then(|thread| thread.name);
        let unknown = format!(".{pid}");
        on_machine(self.spans, pid, known.map_or(&unknown, |name| &self.spans.names[name])).into_owned()
    }

    /// The program of a thread; empty if that is not known.
    pub fn program(&self, pid: Pid) -> &'a str {
        let known = self.thread(pid).and_then(|thread| thread.name);
        program(known.map_or("", |name| self.spans.names[name].as_str()))
    }

    /// The id of a thread's program, among [`Self::programs`].
    pub fn program_id(&self, pid: Pid) -> NameId {
        self.thread(pid).map_or(NameId::EMPTY, |thread| thread.program)
    }

    /// The thread that sent an interrupt.
    pub fn sender(&self, interrupt: &Span) -> Option<Pid> {
        let sent = self.sent.get(interrupt.cpu?.index())?;
        let after = sent.partition_point(|&n| end(self.span(n)) < interrupt.start);
        let arc = self.span(*sent.get(after)?);
        let from = arc.cpu.filter(|_| end(arc) == interrupt.start)?;
        self.before(from, arc.start + Time::UNIT).next()?.thread()
    }

    /// What a CPU executed in a range of time, first to last.
    pub fn executed(&self, cpu: CpuId, from: Time, to: Time) -> impl Iterator<Item = &'a Span> + use<'_, 'a> {
        let list = self.cpus.get(cpu.index()).map_or(&[][..], Vec::as_slice);
        let first = list.partition_point(|&n| end(self.span(n)) <= from);
        list[first..].iter().map(|&n| self.span(n)).take_while(move |s| s.start < to)
    }

    /// What a CPU was executing at a moment, and what right before that, newest first.
    pub fn before(&self, cpu: CpuId, at: Time) -> impl Iterator<Item = &'a Span> + use<'_, 'a> {
        let list = self.cpus.get(cpu.index()).map_or(&[][..], Vec::as_slice);
        let after = list.partition_point(|&n| self.span(n).start < at);
        list[..after].iter().rev().map(|&n| self.span(n))
    }

    /// The last wakeup of a thread up to this moment.
    pub fn woken_before(&self, thread: &Thread, at: Time) -> Option<&'a Span> {
        let after = thread.wakeups.partition_point(|&n| self.span(n).start <= at);
        after.checked_sub(1).map(|last| self.span(thread.wakeups[last]))
    }

    /// The wait that ended one of this index, if a timeout did not really end that.
    pub fn last_of(&self, wait: u32) -> Option<&'a Span> {
        self.again.last(wait).map(|last| self.span(last))
    }

    /// The wakeup that ended a wait of a thread at this moment.
    pub fn wakeup(&self, thread: &Thread, at: Time) -> Option<&'a Span> {
        let after = thread.wakeups.partition_point(|&n| self.span(n).start < at);
        thread.wakeups.get(after).map(|&n| self.span(n)).filter(|s| s.start == at)
    }
}

/// The end of a span.
pub fn end(span: &Span) -> Time {
    span.start.saturating_add(span.dur)
}

impl Thread {
    fn executes(&mut self, cpu: CpuId, s: &Span) {
        if s.is_own_code() {
            self.name = Some(s.name);
        }
        match self.runs.last_mut().filter(|run| run.cpu == cpu && run.end == s.start) {
            Some(run) => run.end = end(s),
            None => self.runs.push(Run { start: s.start, end: end(s), cpu }),
        }
    }
}

/// The program in the name of a thread, `program.pid`.
fn program(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(program, _)| program)
}

/// What a thread or its program is called, of all machines.
fn on_machine<'n>(spans: &Spans, pid: Pid, name: &'n str) -> Cow<'n, str> {
    match &spans.meta.machines[..] {
        [_, _, ..] => {
            let machine = spans.meta.machines.get(pid.machine() as usize).map_or("?", |machine| &machine.name);
            Cow::Owned(format!("{name} on {machine}"))
        }
        _ => Cow::Borrowed(name),
    }
}

/// What the threads of the kernel have in common that do the same for several CPUs, or are given any work.
fn of_all_cpus(program: &str) -> &str {
    let kinds = ["kworker", "ksoftirqd", "migration", "cpuhp"];
    let kind = kinds.iter().find(|kind| program.strip_prefix(**kind).is_some_and(|rest| rest.starts_with('/')));
    kind.copied().unwrap_or(program)
}

/// The list of a CPU; for an impossible number, one that belongs to no CPU.
fn list(lists: &mut Vec<Vec<u32>>, cpu: CpuId) -> &mut Vec<u32> {
    let cpu = cpu.index().min(MAX_CPUS);
    if lists.len() <= cpu {
        lists.resize_with(cpu + 1, Vec::new);
    }
    &mut lists[cpu]
}
