// SPDX-License-Identifier: BSD-3-Clause
//! What each CPU executed, and each thread: when it ran and where, what it waited for between, and who woke it.

use std::borrow::Cow;

use foldhash::HashMap;

use super::again::{Again, Doing};
use super::calls::{Call, Calls};
use super::cause::NAMELESS;
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

/// CPUs beyond this are not looked at: a number so large is damage.
const MAX_CPUS: usize = 1 << 16;
/// Calls in which threads are born.
const BIRTHS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// A tick tells this long after its interrupt has begun, at most, what it interrupted: 1 ms.
const TOLD_LATE: Time = Time(100_000);
/// A frequency beyond it is damage.
const MHZ_MAX: i64 = 1_000_000;
/// Threads that are found without a search.
const RECENT: usize = 64;

/// What spans say of CPUs and threads, by time.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The trace; its spans are [`Self::rows`].
    pub spans: &'a Spans,
    /// Its spans.
    pub rows: Rows<'a>,
    /// Spans of execution of each CPU.
    cpus: Vec<Lookup>,
    /// System calls and wakeups.
    calls: Vec<u32>,
    /// What system calls do.
    known: Calls,
    /// Points in time.
    points: Vec<u32>,
    threads: Threads,
    /// The names of programs, each once. Threads of the kernel that do the same for several CPUs are one program.
    pub programs: Vec<String>,
    /// The arcs of interrupts to each CPU, by arrival.
    sent: Vec<Vec<u32>>,
    again: Again,
    /// What the host took of each CPU, where it does not say so itself.
    stolen: Stolen,
    /// The samples of each CPU's frequency.
    frequencies: Vec<Vec<u32>>,
    /// The samples of each CPU's program counter.
    samples: Vec<Vec<u32>>,
    /// What tells how fast work was done.
    pub meter: Meter,
    /// First and last moment of the trace.
    pub extent: (Time, Time),
    /// Packets of which both ends are in the trace.
    pub messages: Messages,
}

/// A thread of which the trace has nothing yet.
#[derive(Clone, Copy, Debug)]
pub enum Unseen {
    /// It sleeps since before the trace began, in this wait.
    Asleep(Span),
    /// This thread starts it, at this moment.
    Unborn(Pid, Time),
}

/// All threads.
#[derive(Debug)]
struct Threads {
    list: Vec<Thread>,
    numbers: HashMap<Pid, u32>,
    /// The numbers of those that were spoken of last, by the low bits of their pids.
    recent: [u32; RECENT],
}

impl Threads {
    /// The thread of this number.
    fn get(&self, pid: Pid) -> Option<&Thread> {
        self.numbers.get(&pid).map(|&number| &self.list[number as usize])
    }

    /// The same; it is added if it is new.
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
    /// When it had a CPU, and which.
    pub runs: Vec<Run>,
    /// What it waited for: spans of waits.
    pub waits: Vec<u32>,
    /// The arcs of its wakeups.
    wakeups: Vec<u32>,
    /// What it waited for that its program called a lock: spans of those.
    locks: Vec<u32>,
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
        Timeline::of(spans, Rows::Spans(&spans.spans))
    }

    /// The same of a trace whose spans are held in `dense`.
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
        };
        timeline.messages = Messages::of(&timeline);
        timeline
    }

    /// How many CPUs there are, or one more than the number of the last.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// A span by its index.
    pub fn span(&self, index: u32) -> Span {
        self.rows.get(index)
    }

    /// The name of a span.
    pub fn text(&self, span: &Span) -> &'a str {
        self.called(span.name)
    }

    /// The text of a name; none of one that a damaged trace does not have.
    pub fn called(&self, name: NameId) -> &'a str {
        self.spans.names.get(name.index()).map_or("", String::as_str)
    }

    /// System calls and wakeups, in their order.
    pub fn calls(&self) -> impl Iterator<Item = Span> + use<'_, 'a> {
        self.calls.iter().map(|&n| self.span(n))
    }

    /// Points in time, in their order.
    pub fn points(&self) -> impl Iterator<Item = Span> + use<'_, 'a> {
        self.points.iter().map(|&n| self.span(n))
    }

    /// A thread, if the trace has it.
    pub fn thread(&self, pid: Pid) -> Option<&Thread> {
        self.threads.get(pid)
    }

    /// All threads.
    pub fn threads(&self) -> impl Iterator<Item = (Pid, &Thread)> {
        self.threads.list.iter().map(|thread| (thread.pid, thread))
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

    /// The arc of an interrupt that a CPU sent.
    pub fn sent(&self, interrupt: &Span) -> Option<Span> {
        let sent = self.sent.get(interrupt.cpu?.index())?;
        let after = sent.partition_point(|&n| self.rows.end(n) < interrupt.start);
        sent.get(after).map(|&n| self.span(n)).filter(|arc| end(arc) == interrupt.start)
    }

    /// What a program calls the lock that a thread waits for, if it says that.
    pub fn lock(&self, thread: &Thread, wait: &Span) -> Option<NameId> {
        let begun = thread.locks.partition_point(|&n| self.rows.start(n) <= wait.start);
        let lock = self.span(*thread.locks.get(begun.checked_sub(1)?)?);
        (end(&lock) >= end(wait)).then_some(lock.name)
    }

    /// The device whose interrupt was left to another CPU: this one, which that was sent.
    pub fn device(&self, interrupt: &Span) -> Option<NameId> {
        let arc = self.sent(interrupt)?;
        let device = self.before(arc.cpu?, arc.start + Time::UNIT).next()?;
        (device.level() == Some(Level::Irq)).then_some(device.name)
    }

    /// The thread that sent an interrupt.
    pub fn sender(&self, interrupt: &Span) -> Option<Pid> {
        let arc = self.sent(interrupt)?;
        self.before(arc.cpu?, arc.start + Time::UNIT).next()?.thread()
    }

    /// A call that a thread sleeps in, with what its first argument says of what it waits for: a descriptor, or what is
    /// known of the address of a lock.
    pub fn with_argument(&self, call: &Span) -> String {
        let name = self.text(call);
        match self.known.of(call).filter(|_| call.arg != NONE) {
            Some(Call::Futex) => format!("{name}(0x...{:04x})", call.arg & 0xffff),
            Some(Call::Poll) if name.starts_with("epoll") => format!("{name}({})", call.arg),
            Some(Call::Send | Call::Receive | Call::Accept | Call::Connect) => format!("{name}({})", call.arg),
            _ => name.to_string(),
        }
    }

    /// Whether it is a call that sends.
    pub fn is_send(&self, span: &Span) -> bool {
        self.known.of(span) == Some(Call::Send)
    }

    /// What a CPU executed in a range of time, first to last, and what of it was stolen.
    pub fn executed(&self, cpu: CpuId, from: Time, to: Time) -> impl Iterator<Item = Span> + use<'_, 'a> {
        let known = self.cpus.get(cpu.index());
        let list = known.map_or(&[][..], |lookup| &lookup.numbers[lookup.first_after(from, self.rows)..]);
        let pieces = list.iter().flat_map(|&n| self.stolen.pieces(self.rows, self.span(n)));
        pieces.skip_while(move |s| end(s) <= from && s.dur > Time::ZERO).take_while(move |s| s.start < to)
    }

    /// What a CPU was executing at a moment, and what right before that, newest first.
    pub fn before(&self, cpu: CpuId, at: Time) -> impl Iterator<Item = Span> + use<'_, 'a> {
        let known = self.cpus.get(cpu.index());
        let list = known.map_or(&[][..], |lookup| &lookup.numbers[..lookup.starting_before(at, self.rows)]);
        list.iter().rev().map(|&n| self.span(n))
    }

    /// The samples of what a CPU did in a range of time. Each was taken in the interrupt of a tick, and is of what that
    /// interrupted.
    pub fn sampled(&self, cpu: CpuId, from: Time, to: Time) -> impl Iterator<Item = Span> + use<'_, 'a> {
        let list = self.samples.get(cpu.index()).map_or(&[][..], |list| list);
        let first = list.partition_point(|&n| self.rows.end(n) <= from);
        let those = list[first..].iter().map(|&n| self.span(n)).take_while(move |s| end(s) <= to + TOLD_LATE);
        those.filter(move |sample| {
            let interrupted = self.before(cpu, end(sample)).find(|s| s.level() != Some(Level::Irq));
            interrupted.is_some_and(|s| (from + Time::UNIT..=to).contains(&end(&s).min(end(sample))))
        })
    }

    /// The frequency of a CPU in a range of time, in MHz, times the time. Where it was not sampled it is what it was
    /// last; before that, what it was first.
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

    /// The first piece of the call or the fault in which a thread slept at this moment.
    pub fn slept_in(&self, pid: Pid, at: Time) -> Option<Span> {
        let runs = &self.thread(pid)?.runs;
        let run = &runs[runs.partition_point(|run| run.start < at).checked_sub(1)?];
        let its = |s: &Span| s.start >= run.start && !s.is_own_code();
        let mut before = self.before(run.cpu, run.end.min(at)).take_while(its);
        let last =
            before.find(|s| s.thread() == Some(pid) && matches!(s.level(), Some(Level::Syscall | Level::Trap)))?;
        // One that has returned is over.
        (last.ret == NONE).then_some(last)
    }

    /// The last wakeup of a thread up to this moment.
    pub fn woken_before(&self, thread: &Thread, at: Time) -> Option<Span> {
        let after = thread.wakeups.partition_point(|&n| self.rows.start(n) <= at);
        after.checked_sub(1).map(|last| self.span(thread.wakeups[last]))
    }

    /// What a thread is at this moment of which nothing is known yet but who wakes it first.
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

    /// The wait that ended one of this index, if a timeout did not really end that.
    pub fn last_of(&self, wait: u32) -> Option<Span> {
        self.again.last(wait).map(|last| self.span(last))
    }

    /// The wakeup that ended a wait of a thread at this moment.
    pub fn wakeup(&self, thread: &Thread, at: Time) -> Option<Span> {
        let after = thread.wakeups.partition_point(|&n| self.rows.start(n) < at);
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
