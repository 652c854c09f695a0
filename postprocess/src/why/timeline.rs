// SPDX-License-Identifier: BSD-3-Clause
//! Timeline of each CPU and each thread: what the CPU executed; when and where the thread ran, what it waited for, and
//! who woke it.

use std::borrow::Cow;

use foldhash::HashMap;

use super::again::{Again, Doing};
use super::calls::{Call, Calls};
use super::cause::NAMELESS;
use super::files::Files;
use super::lookup::Lookup;
use super::message::Messages;
use super::meter::Meter;
use super::rows::Rows;
use super::stolen::Stolen;
use crate::event::names::{NameId, Names};
use crate::event::number::Level;
use crate::event::point::Point;
use crate::id::{CpuId, Pid};
use crate::span::dense::Dense;
use crate::span::wait::Reason;
use crate::span::what::{Arc, Lock, What};
use crate::span::{Span, Spans, NONE};
use crate::time::Time;

/// Largest number of CPUs that is considered; larger numbers are damage.
const MAX_CPUS: usize = 1 << 16;
/// Calls that create threads.
const BIRTHS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// Longest time from the start of a tick's interrupt to its sample of the interrupted code: 1 ms.
const TOLD_LATE: Time = Time(100_000);
/// Larger frequencies are damage.
const MHZ_MAX: i64 = 1_000_000;
/// Number of threads that are found without a search.
const RECENT: usize = 64;

/// CPUs and threads of a trace, by time.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The trace; its spans are [`Self::rows`].
    pub spans: &'a Spans,
    /// The spans of the trace.
    pub rows: Rows<'a>,
    /// Spans of execution of each CPU.
    cpus: Vec<Lookup>,
    /// System calls and wakeups.
    calls: Vec<u32>,
    /// Roles of the system calls.
    known: Calls,
    /// Points in time.
    points: Vec<u32>,
    threads: Threads,
    /// Names of the programs, each once. Kernel threads that do the same for several CPUs are one program.
    pub programs: Vec<String>,
    /// Arcs of interrupts to each CPU, by arrival.
    sent: Vec<Vec<u32>>,
    again: Again,
    /// Time that the host took from each CPU, unless the CPU's own spans show it.
    stolen: Stolen,
    /// Samples of each CPU's frequency.
    frequencies: Vec<Vec<u32>>,
    /// Samples of each CPU's program counter.
    samples: Vec<Vec<u32>>,
    /// Measure of how fast work was done.
    pub meter: Meter,
    /// First and last moment of the trace.
    pub extent: (Time, Time),
    /// Packets with both ends in the trace.
    pub messages: Messages,
    /// When descriptors may have become other files.
    files: Files,
}

/// State of a thread that the trace has not shown yet.
#[derive(Clone, Copy, Debug)]
pub enum Unseen {
    /// It has slept since before the trace began, in this wait.
    Asleep(Span),
    /// This thread starts it, at this time.
    Unborn(Pid, Time),
}

/// All threads.
#[derive(Debug)]
struct Threads {
    list: Vec<Thread>,
    numbers: HashMap<Pid, u32>,
    /// Numbers of the threads used last, by the low bits of their pids.
    recent: [u32; RECENT],
}

impl Threads {
    /// Returns the thread with this pid.
    fn get(&self, pid: Pid) -> Option<&Thread> {
        self.numbers.get(&pid).map(|&number| &self.list[number as usize])
    }

    /// Returns the thread with this pid, added if it is new.
    fn known(&mut self, pid: Pid) -> &mut Thread {
        let recent = &mut self.recent[pid.index() % RECENT];
        if self.list.get(*recent as usize).is_none_or(|thread| thread.pid != pid) {
            *recent = *self.numbers.entry(pid).or_insert(self.list.len() as u32);
            if *recent as usize == self.list.len() {
                self.list.push(Thread { pid, ..Thread::default() });
            }
        }
        &mut self.list[*recent as usize]
    }
}

impl Default for Threads {
    fn default() -> Threads {
        Threads { list: Vec::new(), numbers: HashMap::default(), recent: [0; RECENT] }
    }
}

/// One thread.
#[derive(Debug, Default)]
pub struct Thread {
    pid: Pid,
    /// Times on a CPU, and which one.
    pub runs: Vec<Run>,
    /// Spans of its waits.
    pub waits: Vec<u32>,
    /// Arcs of its wakeups.
    wakeups: Vec<u32>,
    /// Spans of waits that its program named as locks.
    locks: Vec<u32>,
    /// Last name of its user code.
    name: Option<NameId>,
    /// Id of its program, among [`Timeline::programs`].
    program: NameId,
    /// Time at which it ended, or last did what ends it.
    pub exit: Option<Time>,
    doing: Doing,
}

/// A stretch of time in which a thread has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
    /// CPU.
    pub cpu: CpuId,
}

impl<'a> Timeline<'a> {
    /// Builds the timeline of `spans`.
    pub fn new(spans: &'a Spans) -> Timeline<'a> {
        Timeline::of(spans, Rows::Spans(&spans.spans))
    }

    /// Builds the timeline of a trace whose spans are held in `dense`.
    pub fn dense(spans: &'a Spans, dense: &'a Dense) -> Timeline<'a> {
        Timeline::of(spans, Rows::Dense(dense))
    }

    fn of(spans: &'a Spans, rows: Rows<'a>) -> Timeline<'a> {
        let (mut cpus, mut sent): (Vec<Vec<u32>>, Vec<Vec<u32>>) = Default::default();
        let mut stolen = Stolen::default();
        let mut threads = Threads::default();
        let mut extent = (Time::MAX, Time::MIN);
        let ends = |name: &String| matches!(name.as_str(), "exit" | "exit_group");
        let ends: Vec<bool> = spans.names.iter().map(ends).collect();
        let (known, mut again) = (Calls::new(spans), Again::default());
        let (mut calls, mut points) = (Vec::new(), Vec::new());
        let (mut frequencies, mut samples): (Vec<Vec<u32>>, Vec<Vec<u32>>) = Default::default();
        for (n, s) in (0..).zip(rows.iter()) {
            match s.what() {
                What::Arc(Arc::Wakeup { woken, .. }) => {
                    calls.push(n);
                    threads.known(woken).wakeups.push(n);
                }
                What::Arc(Arc::Ipi { to }) => list(&mut sent, to).push(n),
                What::Wait(reason) => {
                    let Some(pid) = s.pid else { continue };
                    let thread = threads.known(pid);
                    thread.waits.push(n);
                    thread.doing.waits(n, reason, &mut again);
                }
                What::Lock(Lock::Waited) => {
                    if let Some(pid) = s.pid {
                        threads.known(pid).locks.push(n);
                    }
                }
                What::Point(point) => {
                    points.push(n);
                    match (point, s.cpu) {
                        (Point::Frequency, Some(cpu)) => list(&mut frequencies, cpu).push(n),
                        (Point::Steal, Some(cpu)) => list(&mut stolen.0, cpu).push(n),
                        (Point::PcUser | Point::PcKernel, Some(cpu)) => list(&mut samples, cpu).push(n),
                        _ => {}
                    }
                    let Some(pid) = s.pid else { continue };
                    match point {
                        Point::Exit => threads.known(pid).exit = Some(s.start),
                        _ if Doing::ends_with(point) => threads.known(pid).doing.marks(),
                        _ => {}
                    }
                }
                What::Run(_) => {
                    let Some(cpu) = s.cpu else { continue };
                    list(&mut cpus, cpu).push(n);
                    extent = (extent.0.min(s.start), extent.1.max(end(&s)));
                    if let Some(pid) = s.thread() {
                        let thread = threads.known(pid);
                        thread.executes(cpu, &s);
                        if s.level() == Some(Level::Syscall) {
                            thread.doing.calls(&s, &known);
                            calls.push(n);
                        }
                        if ends.get(s.name.index()) == Some(&true) {
                            thread.exit = Some(end(&s));
                        }
                    }
                }
                _ => {}
            }
        }
        let mut programs = Names::default();
        for thread in &mut threads.list {
            thread.runs.sort_by_key(|run| run.start);
            thread.waits.sort_by_key(|&n| (rows.end(n), rows.start(n)));
            thread.wakeups.sort_by_key(|&n| rows.start(n));
            thread.locks.sort_by_key(|&n| rows.start(n));
            let name = thread.name.map_or("", |name| spans.names[name].as_str());
            thread.program = programs.id(&on_machine(spans, thread.pid, of_all_cpus(program(name))));
        }
        sent.iter_mut().for_each(|list| list.sort_by_key(|&n| rows.end(n)));
        let cpus = cpus.into_iter().map(|numbers| Lookup::new(numbers, rows)).collect();
        let extent = if extent.0 > extent.1 { (Time::ZERO, Time::ZERO) } else { extent };
        again.ordered();
        let messages = Messages::default();
        let mut timeline = Timeline {
            spans,
            rows,
            cpus,
            calls,
            known,
            points,
            threads,
            programs: programs.into_texts(),
            sent,
            again,
            meter: Meter::of(spans.meta.flags, !frequencies.is_empty()),
            stolen,
            frequencies,
            samples,
            extent,
            messages,
            files: Files::default(),
        };
        timeline.messages = Messages::of(&timeline);
        if !spans.meta.files.is_empty() {
            timeline.files = Files::of(&spans.meta, timeline.calls().map(|call| (call, timeline.text(&call))));
        }
        timeline
    }

    /// Returns the number of CPUs, or the highest CPU number plus one.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Returns a span by its index.
    pub fn span(&self, index: u32) -> Span {
        self.rows.get(index)
    }

    /// Returns the name of a span.
    pub fn text(&self, span: &Span) -> &'a str {
        self.called(span.name)
    }

    /// Returns the text of a name; empty for one that a damaged trace lacks.
    pub fn called(&self, name: NameId) -> &'a str {
        self.spans.names.get(name.index()).map_or("", String::as_str)
    }

    /// Returns system calls and wakeups, in order.
    pub fn calls(&self) -> impl Iterator<Item = Span> + use<'_, 'a> {
        self.calls.iter().map(|&n| self.span(n))
    }

    /// Returns points in time, in order.
    pub fn points(&self) -> impl Iterator<Item = Span> + use<'_, 'a> {
        self.points.iter().map(|&n| self.span(n))
    }

    /// Returns a thread, if the trace has it.
    pub fn thread(&self, pid: Pid) -> Option<&Thread> {
        self.threads.get(pid)
    }

    /// Returns all threads.
    pub fn threads(&self) -> impl Iterator<Item = (Pid, &Thread)> {
        self.threads.list.iter().map(|thread| (thread.pid, thread))
    }

    /// Returns program and number of a thread, such as `redis-server.107`, with its machine if there are several.
    pub fn name(&self, pid: Pid) -> String {
        let known = self.thread(pid).and_then(|thread| thread.name);
        let unknown = format!(".{pid}");
        on_machine(self.spans, pid, known.map_or(&unknown, |name| &self.spans.names[name])).into_owned()
    }

    /// Returns the program of a thread; empty if unknown.
    pub fn program(&self, pid: Pid) -> &'a str {
        let known = self.thread(pid).and_then(|thread| thread.name);
        program(known.map_or("", |name| self.spans.names[name].as_str()))
    }

    /// Returns the id of a thread's program, among [`Self::programs`].
    pub fn program_id(&self, pid: Pid) -> NameId {
        self.thread(pid).map_or(NameId::EMPTY, |thread| thread.program)
    }

    /// Returns the arc of an interrupt that a CPU sent.
    pub fn sent(&self, interrupt: &Span) -> Option<Span> {
        let sent = self.sent.get(interrupt.cpu?.index())?;
        let after = sent.partition_point(|&n| self.rows.end(n) < interrupt.start);
        sent.get(after).map(|&n| self.span(n)).filter(|arc| end(arc) == interrupt.start)
    }

    /// Returns the program's name for the lock that a thread waits for, if the program gave it one.
    pub fn lock(&self, thread: &Thread, wait: &Span) -> Option<NameId> {
        let begun = thread.locks.partition_point(|&n| self.rows.start(n) <= wait.start);
        let lock = self.span(*thread.locks.get(begun.checked_sub(1)?)?);
        (end(&lock) >= end(wait)).then_some(lock.name)
    }

    /// Returns the device whose interrupt was passed on to another CPU, as this interrupt.
    pub fn device(&self, interrupt: &Span) -> Option<NameId> {
        let arc = self.sent(interrupt)?;
        let device = self.before(arc.cpu?, arc.start + Time::UNIT).next()?;
        (device.level() == Some(Level::Irq)).then_some(device.name)
    }

    /// Returns the thread that sent an interrupt.
    pub fn sender(&self, interrupt: &Span) -> Option<Pid> {
        let arc = self.sent(interrupt)?;
        self.before(arc.cpu?, arc.start + Time::UNIT).next()?.thread()
    }

    /// Returns the name of a call that a thread sleeps in, with the part of its first argument that identifies what it
    /// waits for: a descriptor, with the path of its file if that is certain, or the known bits of a lock's address.
    pub fn with_argument(&self, call: &Span) -> String {
        let name = self.text(call);
        if let Some(address) = self.address(call) {
            return format!("{name}({address})");
        }
        let has_descriptor = match self.known.of(call) {
            Some(Call::Poll) => name.starts_with("epoll"),
            Some(Call::Send | Call::Receive | Call::Accept | Call::Connect) => true,
            _ => Files::is_call(name),
        };
        if !has_descriptor || call.arg == NONE {
            return name.to_string();
        }
        let process = call.pid.map(|pid| self.spans.meta.process_of(pid));
        match process.and_then(|process| self.files.path(&self.spans.meta, process, call.arg as u32, call.start)) {
            Some(path) => format!("{name}({} {path})", call.arg),
            None => format!("{name}({})", call.arg),
        }
    }

    /// Returns the known bits of the address of the lock that a call waits for.
    pub fn address(&self, call: &Span) -> Option<String> {
        let lock = self.known.of(call) == Some(Call::Futex) && call.arg != NONE;
        lock.then(|| format!("0x...{:04x}", call.arg & 0xffff))
    }

    /// True if the span is a call that sends.
    pub fn is_send(&self, span: &Span) -> bool {
        self.known.of(span) == Some(Call::Send)
    }

    /// Returns what a CPU executed in a range of time, first to last, with its stolen time.
    pub fn executed(&self, cpu: CpuId, from: Time, to: Time) -> impl Iterator<Item = Span> + use<'_, 'a> {
        let known = self.cpus.get(cpu.index());
        let list = known.map_or(&[][..], |lookup| &lookup.numbers[lookup.first_after(from, self.rows)..]);
        let pieces = list.iter().flat_map(|&n| self.stolen.pieces(self.rows, self.span(n)));
        pieces.skip_while(move |s| end(s) <= from && s.dur > Time::ZERO).take_while(move |s| s.start < to)
    }

    /// Returns what a CPU was executing at a moment and before it, newest first.
    pub fn before(&self, cpu: CpuId, at: Time) -> impl Iterator<Item = Span> + use<'_, 'a> {
        let known = self.cpus.get(cpu.index());
        let list = known.map_or(&[][..], |lookup| &lookup.numbers[..lookup.starting_before(at, self.rows)]);
        list.iter().rev().map(|&n| self.span(n))
    }

    /// Returns the samples of what a CPU did in a range of time. Each was taken in the interrupt of a tick, and shows
    /// what that interrupted.
    pub fn sampled(&self, cpu: CpuId, from: Time, to: Time) -> impl Iterator<Item = Span> + use<'_, 'a> {
        let list = self.samples.get(cpu.index()).map_or(&[][..], |list| list);
        let first = list.partition_point(|&n| self.rows.end(n) <= from);
        let those = list[first..].iter().map(|&n| self.span(n)).take_while(move |s| end(s) <= to + TOLD_LATE);
        those.filter(move |sample| {
            let interrupted = self.before(cpu, end(sample)).find(|s| s.level() != Some(Level::Irq));
            interrupted.is_some_and(|s| (from + Time::UNIT..=to).contains(&end(&s).min(end(sample))))
        })
    }

    /// Returns the frequency of a CPU in a range of time, in MHz, times the time. Between samples the last one holds;
    /// before the first, the first.
    pub fn megahertz(&self, cpu: CpuId, from: Time, to: Time) -> i64 {
        let list = self.frequencies.get(cpu.index()).map_or(&[][..], |list| list);
        let first = list.partition_point(|&n| self.rows.start(n) <= from).saturating_sub(1);
        let (mut at, mut sum) = (from, 0);
        for (n, &sample) in list.iter().enumerate().skip(first) {
            let until = list.get(n + 1).map_or(to, |&next| self.rows.start(next).clamp(at, to));
            sum += (until - at).0.saturating_mul(self.span(sample).arg.clamp(0, MHZ_MAX));
            at = until;
            if at == to {
                break;
            }
        }
        sum
    }

    /// Returns the first piece of the call or the fault in which a thread slept at this moment.
    pub fn slept_in(&self, pid: Pid, at: Time) -> Option<Span> {
        let runs = &self.thread(pid)?.runs;
        let run = &runs[runs.partition_point(|run| run.start < at).checked_sub(1)?];
        let its = |s: &Span| s.start >= run.start && !s.is_own_code();
        let mut before = self.before(run.cpu, run.end.min(at)).take_while(its);
        let last =
            before.find(|s| s.thread() == Some(pid) && matches!(s.level(), Some(Level::Syscall | Level::Trap)))?;
        // A call that has returned is over.
        (last.ret == NONE).then_some(last)
    }

    /// Returns the last wakeup of a thread up to this moment.
    pub fn woken_before(&self, thread: &Thread, at: Time) -> Option<Span> {
        let after = thread.wakeups.partition_point(|&n| self.rows.start(n) <= at);
        after.checked_sub(1).map(|last| self.span(thread.wakeups[last]))
    }

    /// Returns the state at this moment of a thread that the trace first shows being woken later.
    pub fn unseen(&self, thread: &Thread, at: Time) -> Option<Unseen> {
        let arc = self.span(*thread.wakeups.first().filter(|&&n| self.rows.start(n) > at)?);
        let ran = thread.runs.first().is_some_and(|run| run.start < arc.start);
        let waited = thread.waits.first().is_some_and(|&n| self.rows.start(n) < arc.start);
        let by = arc.cpu.and_then(|cpu| self.before(cpu, arc.start + Time::UNIT).next());
        if ran || waited {
            return None;
        }
        if let Some(birth) = by.filter(|s| BIRTHS.contains(&self.text(s))) {
            return birth.thread().map(|by| Unseen::Unborn(by, arc.start));
        }
        let (start, what) = (self.extent.0.min(at), What::Wait(Reason::Unknown));
        let wait =
            Span { start, dur: arc.start - start, pid: Some(thread.pid), what, name: NAMELESS, ..Span::default() };
        Some(Unseen::Asleep(wait))
    }

    /// Returns the wait that ended the one with this index, if a timeout did not really end that one.
    pub fn last_of(&self, wait: u32) -> Option<Span> {
        self.again.last(wait).map(|last| self.span(last))
    }

    /// Returns the wakeup that ended a wait of a thread at this moment.
    pub fn wakeup(&self, thread: &Thread, at: Time) -> Option<Span> {
        let after = thread.wakeups.partition_point(|&n| self.rows.start(n) < at);
        thread.wakeups.get(after).map(|&n| self.span(n)).filter(|s| s.start == at)
    }
}

/// Returns the end of a span.
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

/// Returns the program in the name of a thread, `program.pid`.
fn program(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(program, _)| program)
}

/// Returns the name of a thread or its program, with its machine if there are several.
fn on_machine<'n>(spans: &Spans, pid: Pid, name: &'n str) -> Cow<'n, str> {
    match &spans.meta.machines[..] {
        [_, _, ..] => {
            let machine = spans.meta.machines.get(pid.machine() as usize).map_or("?", |machine| &machine.name);
            Cow::Owned(format!("{name} on {machine}"))
        }
        _ => Cow::Borrowed(name),
    }
}

/// Returns the common name of kernel threads that do the same for several CPUs, or any work given to them.
fn of_all_cpus(program: &str) -> &str {
    let kinds = ["kworker", "ksoftirqd", "migration", "cpuhp"];
    let kind = kinds.iter().find(|kind| program.strip_prefix(**kind).is_some_and(|rest| rest.starts_with('/')));
    kind.copied().unwrap_or(program)
}

/// Returns the list of a CPU; for an impossible number, one that belongs to no CPU.
fn list(lists: &mut Vec<Vec<u32>>, cpu: CpuId) -> &mut Vec<u32> {
    let cpu = cpu.index().min(MAX_CPUS);
    if lists.len() <= cpu {
        lists.resize_with(cpu + 1, Vec::new);
    }
    &mut lists[cpu]
}
