// SPDX-License-Identifier: BSD-3-Clause
//! Entries to events: numbers of the raw format to the original's, small returns to the calls they belong to.
//!
//! A [`event::SMALL_RETURN`] or [`event::OPEN_RETURN`] returns from the system call its thread is in. That call is
//! known from its own entry, from TASK records and from block headers; it is forgotten when the CPU it was learned on
//! loses events. A return from an unknown call is `/syscall`, [`number::UNKNOWN_RETURN`].
//!
//! At the start of a CPU's stream, after a gap, and where a thread takes another's number in `execve`, a switch of
//! duration 1 states the running thread. If that thread, or one described by a TASK record, is inside a system call
//! whose entry was not seen, a name line [`number::OPEN_CALL`] reports it. [`number::LOST`] opens a gap; its argument
//! is the number of events lost, if known.

mod thread;

use std::collections::VecDeque;

use kutrace_format::abi::event::{self, TaskState};
use kutrace_format::abi::programs::{ASYNC_BEGIN, ASYNC_END, BEGIN, END, MARK};
use kutrace_format::abi::word;
use kutrace_format::capability::Unseen;
use kutrace_format::event::{Event as Entry, Work};
use kutrace_format::file::{Name, NameKind, CPU_OFFLINE};
use kutrace_format::x86::trap;

use super::clock::Clock;
use super::counter::Counting;
use super::label::{Label, Labels};
use super::maps::Maps;
use super::name::EventNames;
use super::program::{Programs, Said};
use super::stream::{Item, Stream, Timed};
use super::task::{Call, Seen, Tasks};
use super::tracepoint::Tracepoints;
use crate::event::fact::Fact;
use crate::event::names::{clean, in_function, NameId, Names};
use crate::event::point::Point;
use crate::event::what::What;
use crate::event::{flow, number, Event};
use crate::id::{CpuId, Pid};
use crate::merge::Merge;
use crate::time::Time;

/// The system calls that never return: exit and exit_group, 64-bit and 32-bit.
const EXITS: [u16; 4] = [60, 231, TaskState::COMPAT + 1, TaskState::COMPAT + 252];
/// The system calls that load a program: execve and execveat, 64-bit and 32-bit.
const EXECS: [u16; 4] = [59, 322, TaskState::COMPAT + 11, TaskState::COMPAT + 358];

/// Turns merged entries into events, one at a time.
#[derive(Debug)]
pub struct Decoder<'a> {
    clock: Clock,
    counting: Counting,
    /// [`Event::ipc`] of the entry that is being decoded.
    ipc: u8,
    merge: Merge<Stream<'a>>,
    programs: Programs<'a>,
    maps: Maps,
    /// The trace's time 0 on the monotonic clock, in ns.
    monotonic_ns: i64,
    labels: Labels,
    tracepoints: Tracepoints,
    cpus: Vec<Cpu>,
    tasks: Tasks,
    event_names: EventNames,
    unseen: Unseen,
    /// Events decoded and not yet returned.
    ready: VecDeque<Event>,
    /// Nothing is decoded from this counter on.
    limit: u64,
    /// Counts collected on the way.
    pub counts: Counts,
}

/// State of a decoder whose streams are taken away; see [`Decoder::pause`].
#[derive(Debug)]
pub struct Paused {
    clock: Clock,
    counting: Counting,
    maps: Maps,
    monotonic_ns: i64,
    labels: Labels,
    tracepoints: Tracepoints,
    cpus: Vec<Cpu>,
    tasks: Tasks,
    event_names: EventNames,
    unseen: Unseen,
    ready: VecDeque<Event>,
    /// See [`Decoder::counts`].
    pub counts: Counts,
}

/// A thread in a TASK or in the header of a block: pid, first thread of its process, state, name.
type ThreadWords<'t> = (u32, u32, TaskState, &'t [u8]);

/// Counts of the decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events returned, without names.
    pub events: u64,
    /// Returns from unknown system calls.
    pub unknown_returns: u64,
    /// Gaps: unknown stretches of a CPU's time that are not due to counted losses.
    pub gaps: u64,
    /// Blocks whose header names another thread than the entries before it.
    pub disagreements: u64,
    /// Entries of programs whose thread ran on no CPU then, as far as is known.
    pub unplaced: u64,
}

/// True if an entry may come between the record of a switch and the switch: interrupts are off there.
fn may_come_within_a_switch(entry: &Entry<'_>) -> bool {
    const UNMASKABLE: [u8; 2] = [trap::NMI as u8, trap::MACHINE_CHECK as u8];
    match entry {
        Entry::Nop | Entry::FullTime(_) | Entry::Task { .. } => true,
        Entry::Begin(Work::Trap(vector)) | Entry::End(Work::Trap(vector)) => UNMASKABLE.contains(vector),
        _ => false,
    }
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    id: CpuId,
    task: usize,
    pid: Pid,
    gaps: u32,
    /// True if its stream has begun, or begins when the CPU comes online.
    begun: bool,
    /// True if the running thread must be reported at the next block.
    adrift: bool,
    /// True if it is in the scheduler, as far as is known since its stream began or was lost.
    scheduling: bool,
    /// The thread that it may still run although a switch to another is recorded: until an event that is impossible
    /// between the record of a switch and the switch.
    left: Option<Pid>,
}

impl<'a> Decoder<'a> {
    /// A decoder of `streams`, ordered by CPU, from a source that cannot see what is `unseen`. The first events are
    /// `records`.
    pub fn new(
        clock: Clock,
        counting: Counting,
        unseen: Unseen,
        streams: Vec<Stream<'a>>,
        records: &[Name],
        programs: Programs<'a>,
        names: &mut Names,
    ) -> Decoder<'a> {
        let mut tasks = Tasks::default();
        let (event_names, known) = EventNames::new(records, names);
        let mut ready = VecDeque::from(known);
        tasks.find(Pid::IDLE, names);
        let tasks_named = records.iter().filter(|r| r.kind == NameKind::Task as u16);
        let tasks_named = tasks_named.map(|r| (Pid::new(r.number), Pid::new(r.second), r.text));
        for (pid, process, text) in std::iter::once((Pid::IDLE, Pid::IDLE, &b"-idle-"[..])).chain(tasks_named) {
            let task = tasks.find(pid, names);
            if tasks.rename(task, &clean(text), names) || pid == Pid::IDLE {
                let name = tasks.get(task).comm;
                ready.push_back(Event {
                    ts: Time(-1),
                    what: What::Fact(Fact::Name(number::PID_NAME)),
                    arg: pid.number(),
                    name,
                    ..Event::default()
                });
            }
            if tasks.set_process(task, process) {
                let (ts, what, arg) = (Time(-1), What::Fact(Fact::Process(process)), pid.number());
                ready.push_back(Event { ts, what, arg, ..Event::default() });
            }
        }
        let offline = |cpu: CpuId| {
            let mut cpus = records.iter().filter(|r| r.kind == NameKind::Cpu as u16 && r.number == cpu.number());
            cpus.any(|r| r.second & CPU_OFFLINE != 0)
        };
        let cpu = |id| Cpu {
            id,
            task: 0,
            pid: Pid::IDLE,
            gaps: 0,
            begun: offline(id),
            adrift: true,
            scheduling: true,
            left: None,
        };
        let cpus = streams.iter().map(|s| cpu(s.cpu)).collect();
        let merge = Merge::new(streams);
        let (ipc, counts) = (0, Counts::default());
        Decoder {
            clock,
            counting,
            ipc,
            merge,
            programs,
            maps: Maps::default(),
            monotonic_ns: 0,
            labels: Labels::default(),
            tracepoints: Tracepoints::new(records),
            cpus,
            tasks,
            event_names,
            unseen,
            ready,
            limit: u64::MAX,
            counts,
        }
    }

    /// Makes [`Decoder::next`] end before this counter.
    pub fn until(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The decoder's state, and each stream's, with its next item; without the recordings of programs.
    pub fn pause(self) -> (Paused, Vec<(Stream<'a>, Option<Timed<'a>>)>) {
        let Decoder { clock, counting, maps, monotonic_ns, labels, tracepoints, .. } = self;
        let Decoder { cpus, tasks, event_names, unseen, ready, counts, merge, .. } = self;
        let paused = Paused {
            clock,
            counting,
            maps,
            monotonic_ns,
            labels,
            tracepoints,
            cpus,
            tasks,
            event_names,
            unseen,
            ready,
            counts,
        };
        (paused, merge.pause())
    }

    /// Continues with these streams, of the same CPUs.
    pub fn resume(
        paused: Paused,
        streams: Vec<(Stream<'a>, Option<Timed<'a>>)>,
        programs: Programs<'a>,
    ) -> Decoder<'a> {
        let merge = Merge::resume(streams);
        let Paused { clock, counting, maps, monotonic_ns, labels, tracepoints, .. } = paused;
        let Paused { cpus, tasks, event_names, unseen, ready, counts, .. } = paused;
        let (ipc, limit) = (0, u64::MAX);
        Decoder {
            clock,
            counting,
            ipc,
            merge,
            programs,
            maps,
            monotonic_ns,
            labels,
            tracepoints,
            cpus,
            tasks,
            event_names,
            unseen,
            ready,
            limit,
            counts,
        }
    }

    /// Names samples of user code after their place in programs' files; the trace's time 0 is at `monotonic_ns`.
    pub fn with_maps(self, maps: Maps, monotonic_ns: i64) -> Decoder<'a> {
        Decoder { maps, monotonic_ns, ..self }
    }

    /// The next event; `None` at the end.
    #[inline]
    pub fn next(&mut self, names: &mut Names) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.counts.events += u64::from(event.what.is_event());
                return Some(event);
            }
            self.ipc = 0;
            // At the same count a program's entry comes after the kernel's.
            if let Some(said) = self.programs.peek() {
                let at = said.entry.tsc >> self.clock.shift();
                if self.merge.peek().is_none_or(|next| at < next) {
                    self.programs.take();
                    self.said(at, said, names);
                    continue;
                }
            }
            if self.merge.peek()? >= self.limit {
                return None;
            }
            let (cpu, Timed { at, item }) = self.merge.next()?;
            match item {
                Item::Entry(number, words, counters) => {
                    let code = |word: usize| counters.get(word).map_or(0, |byte| self.counting.code(*byte));
                    self.ipc = code(0) | code(1) << 4;
                    self.entry(cpu, at, number, words, names);
                }
                Item::Begin { pid, tgid, state, comm } => self.begin(cpu, at, (pid, tgid, state, comm), names),
                Item::Lost(count) => self.lose(cpu, at, count, names),
            }
        }
    }

    /// The recordings of programs, for what is missing in them.
    pub fn programs(&self) -> &Programs<'a> {
        &self.programs
    }

    /// The streams, for the damage found and how far they got.
    pub fn streams(&self) -> &[Stream<'a>] {
        self.merge.streams()
    }

    /// Puts an entry of a program on the CPU that runs its thread.
    fn said(&mut self, at: u64, said: Said, names: &mut Names) {
        let Said { tid, program, entry, .. } = said;
        let is_late = self.programs.is_after_the_stop(&entry);
        let runs = |(cpu, stream): (&Cpu, &Stream)| {
            cpu.pid.number() == tid && !cpu.adrift && (!is_late || at <= stream.until())
        };
        let Some(cpu) = self.cpus.iter().zip(self.merge.streams()).position(runs) else {
            // If a CPU began later or ended before, another file knows what ran there; or nothing does, if a flight
            // recorder has kept less of the CPU than of a program.
            let is_known = !is_late && self.cpus.iter().all(|cpu| cpu.begun);
            self.counts.unplaced += u64::from(is_known);
            return;
        };
        let Label { name, number: named } = self.labels.label(&said, &self.programs, names);
        let (point, arg, ret) = match entry.kind {
            MARK => (Point::ProgramMark, named, 0),
            BEGIN => (Point::ProgramBegin, named, 0),
            END => (Point::ProgramEnd, named, 0),
            ASYNC_BEGIN => (Point::ProgramAsyncBegin, self.labels.part(program, &entry, named), 0),
            ASYNC_END => (Point::ProgramAsyncEnd, self.labels.part(program, &entry, named), 0),
            _ => (Point::ProgramValue, entry.value as u32, (entry.value >> 32) as i32),
        };
        let ts = self.clock.units(at);
        let what = What::Point(point);
        self.push(cpu, Event { ts, dur: Time::UNIT, what, arg, ret, name, ..Event::default() });
    }

    fn entry(&mut self, cpu: usize, at: u64, number: u16, words: &[u8], names: &mut Names) {
        let Some(entry) = Entry::read(number, words) else { return };
        let (ts, event) = (self.clock.units(at), u32::from(number));
        self.cpus[cpu].left.take_if(|_| !may_come_within_a_switch(&entry));
        match entry {
            Entry::Nop | Entry::FullTime(_) => {}
            Entry::Switch(pid) => {
                self.cpus[cpu].left = Some(self.cpus[cpu].pid);
                self.name_right_after(cpu, ts, pid, names);
                self.switch(cpu, ts, Pid::new(pid), Time::ZERO, names);
            }
            Entry::Task { pid, tgid, state, comm } => self.task(cpu, ts, (pid, tgid, state, comm), names),
            Entry::Member { pid, group } => {
                self.tell(ts, Fact::Member(group), pid, NameId::EMPTY);
            }
            Entry::Name { kind, number, text } => self.name(ts, (kind, number), text, names),
            Entry::Exit(code) => {
                self.tasks.set_call(self.cpus[cpu].task, Call::Unknown, self.seen(cpu));
                let name = self.event_names.event(event, names);
                self.push(
                    cpu,
                    Event { ts, dur: Time::UNIT, what: What::Point(Point::Exit), arg: code, name, ..Event::default() },
                );
            }
            Entry::Runnable(pid) => {
                let name = self.woken(Pid::new(pid), names);
                self.push(
                    cpu,
                    Event {
                        ts,
                        dur: Time::UNIT,
                        what: What::Point(Point::Runnable),
                        arg: pid,
                        name,
                        ..Event::default()
                    },
                );
            }
            Entry::Ipi(ipi) => self.point(cpu, ts, event, ipi.0, (ipi.cpu(), ipi.vector().into()), names),
            Entry::Quota { throttle, .. } => {
                self.point(cpu, ts, event, throttle.0, (throttle.group(), throttle.cpu()), names);
            }
            Entry::Packet { sent, packet } => {
                let what = What::Point(if sent { Point::TxFlow } else { Point::RxFlow });
                let name = names.id(&flow::name(sent, &packet));
                let (arg, ret) = (packet.sequence, packet.bytes as i32);
                self.push(cpu, Event { ts, dur: Time::UNIT, what, arg, ret, name, ..Event::default() });
            }
            Entry::Tracepoint { number, record } => {
                let (what, name) = (What::Point(Point::TracepointMark), self.tracepoints.label(number, record));
                let name = names.id(&name);
                self.push(cpu, Event { ts, dur: Time::UNIT, what, arg: number, name, ..Event::default() });
            }
            Entry::Point { argument, .. } => {
                self.point(cpu, ts, event, argument, (argument, 0), names);
                // It is not recorded how a thread that reports this last gives its CPU back.
                self.cpus[cpu].adrift |= event == number::OFFLINE && self.cpus[cpu].pid != Pid::IDLE;
            }
            Entry::Sample { pc, user } => {
                let known = match user {
                    true => self.of_program(cpu, ts, pc),
                    false => self.event_names.function(number, pc).map(in_function),
                };
                let (text, arg) = known.unwrap_or_else(|| (format!("PC={pc:012x}"), (pc >> 6) as u16));
                let (arg, name) = (arg.into(), names.id(&text));
                let what = What::Point(if user { Point::PcUser } else { Point::PcKernel });
                self.push(cpu, Event { ts, what, arg, name, ..Event::default() });
            }
            Entry::Call { nr, call } => self.call(cpu, at, nr, call, names),
            Entry::Return { nr, value } => self.returned(cpu, ts, nr.or_else(|| self.open_call(cpu)), value, names),
            Entry::Begin(Work::Softirq(nr)) => self.softirq(cpu, ts, number::SOFTIRQ, nr, names),
            Entry::End(Work::Softirq(nr)) => self.softirq(cpu, ts, number::SOFTIRQ_RETURN, nr, names),
            Entry::Begin(work) | Entry::End(work) => {
                if work == Work::Sched {
                    self.cpus[cpu].scheduling = entry == Entry::Begin(work);
                }
                let name = match work {
                    Work::Irq(_) => self.event_names.interrupt(event, self.cpus[cpu].id, names),
                    _ => self.event_names.event(event, names),
                };
                self.push(cpu, Event { ts, what: What::of(event), name, ..Event::default() });
            }
        }
    }

    /// A point event that is named after its word; argument and value are those of the text.
    fn point(&mut self, cpu: usize, ts: Time, event: u32, word: u32, (arg, ret): (u32, u32), names: &mut Names) {
        let name = self.event_names.point(event, word, names);
        self.push(
            cpu,
            Event { ts, dur: Time::UNIT, what: What::of(event), arg, ret: ret as i32, name, ..Event::default() },
        );
    }

    /// Name and argument of a sample of the thread that runs on a CPU, if its process is known to have run a part of a
    /// file there.
    fn of_program(&self, cpu: usize, ts: Time, pc: u64) -> Option<(String, u16)> {
        let process = self.tasks.get(self.cpus[cpu].task).process;
        self.maps.sample(process, pc, (ts.0 * 10).saturating_add(self.monotonic_ns).max(0) as u64)
    }

    fn softirq(&mut self, cpu: usize, ts: Time, event: u32, nr: u8, names: &mut Names) {
        let name = self.event_names.softirq(event, nr.into(), names);
        self.push(cpu, Event { ts, what: What::of(event), arg: nr.into(), name, ..Event::default() });
    }

    fn woken(&mut self, pid: Pid, names: &mut Names) -> NameId {
        let task = self.tasks.find(pid, names);
        self.tasks.get(task).runnable
    }

    /// Passes on a name, or another fact that has a name's line.
    fn tell(&mut self, ts: Time, fact: Fact, arg: u32, name: NameId) {
        self.ready.push_back(Event { ts, dur: Time::UNIT, what: What::Fact(fact), arg, name, ..Event::default() });
    }

    fn push(&mut self, cpu: usize, event: Event) {
        let Cpu { id, pid, .. } = self.cpus[cpu];
        self.ready.push_back(Event { cpu: id, pid, ipc: self.ipc, ..event });
    }

    fn call(&mut self, cpu: usize, at: u64, nr: u16, call: word::Call, names: &mut Names) {
        let (ts, event) = (self.clock.units(at), number::SYSCALL + u32::from(nr));
        self.cpus[cpu].scheduling = false;
        let open = if call.folded.is_none() { Call::In(nr) } else { Call::Out };
        self.tasks.set_call(self.cpus[cpu].task, open, self.seen(cpu));
        let (dur, ret) = call.folded.map_or((Time::ZERO, 0), |(dur, ret)| {
            let end = self.clock.units(at.saturating_add(dur.into()));
            ((end - ts).max(Time::UNIT), i32::from(ret))
        });
        let name = self.event_names.event(event, names);
        self.push(cpu, Event { ts, dur, what: What::of(event), arg: call.arg.into(), ret, name, ..Event::default() });
    }

    fn returned(&mut self, cpu: usize, ts: Time, call: Option<u16>, ret: i32, names: &mut Names) {
        self.tasks.set_call(self.cpus[cpu].task, Call::Out, self.seen(cpu));
        self.counts.unknown_returns += u64::from(call.is_none());
        let event = call.map_or(number::UNKNOWN_RETURN, |nr| number::SYSCALL_RETURN + u32::from(nr));
        let name = self.event_names.event(event, names);
        self.push(cpu, Event { ts, what: What::of(event), ret, name, ..Event::default() });
    }

    fn switch(&mut self, cpu: usize, ts: Time, pid: Pid, dur: Time, names: &mut Names) {
        let task = self.tasks.find(pid, names);
        let call = self.known_call(task);
        (self.cpus[cpu].task, self.cpus[cpu].pid, self.cpus[cpu].adrift) = (task, pid, false);
        self.tasks.set_call(task, call, self.seen(cpu));
        let name = self.tasks.get(task).user;
        self.push(cpu, Event { ts, dur, what: What::Switch, arg: pid.number(), name, ..Event::default() });
    }

    fn name(&mut self, ts: Time, (kind, arg): (u32, u32), text: &[u8], names: &mut Names) {
        let text = clean(until_nul(text));
        if kind == event::NAME_VECTOR {
            return self.event_names.learn_vector(event::Vector(arg), &text, names);
        }
        if self.event_names.learn(kind, arg, &text) {
            self.tell(ts, Fact::Name(kind), arg, names.id(&text));
        }
    }

    fn lose(&mut self, cpu: usize, at: u64, count: u64, names: &mut Names) {
        let (ts, arg) = (self.clock.units(at), u32::try_from(count).unwrap_or(u32::MAX));
        self.push(cpu, Event { ts, what: What::Lost, arg, name: names.id("-lost-"), ..Event::default() });
        self.cpus[cpu].gaps = self.cpus[cpu].gaps.wrapping_add(1);
        (self.cpus[cpu].begun, self.cpus[cpu].adrift) = (true, true);
        self.cpus[cpu].scheduling = true;
        self.counts.gaps += u64::from(count == 0);
    }

    fn seen(&self, cpu: usize) -> Seen {
        Seen { cpu, gaps: self.cpus[cpu].gaps }
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&c| c == 0).next().unwrap_or(text)
}
