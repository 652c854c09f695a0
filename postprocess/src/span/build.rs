// SPDX-License-Identifier: BSD-3-Clause
//! Builds spans from events.
//!
//! Each CPU has a stack of what its thread is inside of, and one open piece of time that belongs to the top frame.
//! Every transition closes the piece and opens the next, so a CPU's pieces cover its time exactly; `since` is the seam.
//!
//! * A **call** pushes a frame; a frame that cannot be below it lost its return and ends now ([`super::nest`]).
//! * A **return** pops a frame. Frames above it lost their returns and end now; a return without a call turns the open
//!   piece into that call.
//! * A **folded call** is a call and a return: the piece before it continues after it.
//! * A **switch** replaces the stack by the new thread's ([`super::switch`]). A thread may have left the call that it
//!   blocked in unseen; the first event that can only come from user code, or only from the kernel, decides.
//! * A **sample** of the program counter distinguishes the program from the kernel; if it contradicts what the spans
//!   since the last conclusive event show, they are corrected ([`super::mode`]).
//! * A **point** is a line of its own ([`super::point`]) or one end of a span outside of CPU time ([`super::overlay`]);
//!   wakeups and interrupts between CPUs become arcs and waits ([`super::wake`]).
//!
//! Invariants: `since` never moves back except to trim a folded call that was rounded up; a piece of zero length is
//! written only if its activity would not be seen at all otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use foldhash::HashMap;
use kutrace_format::capability::{Capability, Unseen};

use super::abi::TracedAbi;
use super::begin::{Doubt, Recording};
use super::cgroup::infer;
use super::cpu::{Close, Cpu, Phase};
use super::flow::Flows;
use super::order::order;
use super::overlay::Overlays;
use super::rpc::{Rpcs, LINK_RATE};
use super::stack::{Frame, Nesting};
use super::stall::Period;
use super::thread::{Side, Threads};
use super::wake::PerhapsEnds;
use super::what::{Activity, What};
use super::{Meta, Span, Spans, Tally, NONE};
use crate::event::fact::Fact;
use crate::event::names::{Counts, Names};
use crate::event::number::{self, Level};
use crate::event::point::Point;
use crate::event::what::What as Said;
use crate::event::work::Work;
use crate::event::{self, Event, Events, Interval, CPUS_MAX};
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Builds spans from events in time order.
#[derive(Debug, Default)]
pub struct Builder {
    /// The names that [`Event::name`] indexes; spans add their own.
    pub names: Names,
    /// Counts collected on the way.
    pub tally: Tally,
    unseen: Unseen,
    /// The same for each of several machines, with its first CPU.
    unseen_from: Vec<(u32, Unseen)>,
    /// Rules for what may begin while something else runs.
    pub(super) nesting: Nesting,
    pub(super) abi: TracedAbi,
    pub(super) cpus: Vec<Cpu>,
    pub(super) threads: Threads,
    pub(super) overlays: Overlays,
    pub(super) rpcs: Rpcs,
    pub(super) flows: Flows,
    pub(super) out: Vec<Span>,
    pub(super) period: Period,
    pub(super) perhaps_ends: Vec<PerhapsEnds>,
    /// Programs for which it is not yet known what they were inside of, by pid; one that is on a CPU stays until it is
    /// known.
    pub(super) doubts: HashMap<Pid, Doubt>,
    /// CPUs that were offline when the recording began.
    pub(super) offline: BTreeSet<CpuId>,
    /// The recording of each machine, in the order of their CPUs; and the machine of the current event.
    pub(super) machines: Vec<Recording>,
    pub(super) machine: usize,
    meta: Meta,
    /// The paths of control groups, by id.
    cgroups: BTreeMap<u32, String>,
    /// Time that hosts took and that fits into no pause.
    pub(super) untold_steal: Time,
    /// Number of occurrences by name.
    pub(super) counts: Counts,
    intervals: Vec<Interval>,
    last: Time,
    /// Number of spans returned by [`Builder::take`], and their earliest start.
    taken: usize,
    earliest: Option<Time>,
}

/// Builds the spans of all `events`.
pub fn build(events: Events) -> (Spans, Tally) {
    let mut builder = Builder::new(&events.meta, events.names);
    builder.out.reserve(events.events.len());
    for event in &events.events {
        builder.push(event);
    }
    builder.finish(events.meta)
}

impl Builder {
    /// A builder for events; `meta` names what their source cannot show, and its intervals are where CPUs begin.
    pub fn new(meta: &event::Meta, names: Names) -> Builder {
        let unseen = meta.unseen();
        let unseen_from: Vec<_> =
            meta.machines.iter().map(|machine| (machine.first_cpu, Unseen(machine.unseen))).collect();
        let recording = |machine: usize| {
            let from = unseen_from.get(machine).map_or(0, |(first_cpu, _)| *first_cpu);
            let to = unseen_from.get(machine + 1).map_or(u32::MAX, |(first_cpu, _)| *first_cpu);
            let losses = !unseen_from.get(machine).map_or(unseen, |(_, unseen)| *unseen).has(Capability::Losses);
            let own = meta.intervals.iter().filter(|i| (from..to).contains(&i.cpu.number()));
            let last = own.map(|i| i.from).max().filter(|_| losses);
            Recording { blind: last.unwrap_or(Time::MIN), ..Recording::default() }
        };
        let machines = (0..unseen_from.len().max(1)).map(recording).collect();
        let intervals = meta.intervals.clone();
        let mut builder = Builder { names, unseen_from, machines, intervals, ..Builder::default() };
        builder.is_told_by(unseen);
        builder
    }

    /// The events that follow come from a source that cannot show `unseen`.
    fn is_told_by(&mut self, unseen: Unseen) {
        self.unseen = unseen;
        self.nesting.returns = !unseen.has(Capability::Returns);
        self.nesting.points = unseen.has(Capability::KernelFaults);
    }

    /// The CPUs of the machine that this one is of, as far as they have been met.
    pub(super) fn cpus_of_machine(&self, c: usize) -> Range<usize> {
        let after = self.unseen_from.partition_point(|(first_cpu, _)| *first_cpu as usize <= c);
        let from = after.checked_sub(1).map_or(0, |machine| self.unseen_from[machine].0 as usize);
        let to = self.unseen_from.get(after).map_or(usize::MAX, |(first_cpu, _)| *first_cpu as usize);
        from..to.min(self.cpus.len())
    }

    /// The recording that the event is from.
    pub(super) fn recording(&self) -> &Recording {
        &self.machines[self.machine]
    }

    /// The same, mutable.
    pub(super) fn recording_mut(&mut self) -> &mut Recording {
        &mut self.machines[self.machine]
    }

    /// True if the source of the events can show this.
    pub(super) fn sees(&self, capability: Capability) -> bool {
        !self.unseen.has(capability)
    }

    /// The spans written so far; those of the last event are at the end.
    pub fn written(&self) -> &[Span] {
        &self.out
    }

    /// Takes out the spans written so far, except those that may still change. Only these and the spans returned at the
    /// end together are all; they are not ordered. While more may change than not, none are taken out, so each is moved
    /// only a few times.
    pub fn take(&mut self) -> Vec<Span> {
        let now = self.cpus.iter().map(|cpu| cpu.last).max().unwrap_or(Time::MIN);
        for cpu in self.cpus.iter_mut().filter(|cpu| cpu.since <= now) {
            cpu.folded = None;
        }
        let folded = self.cpus.iter().filter(|cpu| cpu.begin.is_none()).filter_map(|cpu| cpu.folded).min();
        let first = folded.unwrap_or(self.out.len()).min(self.first_in_doubt());
        if first < self.out.len() / 2 {
            return Vec::new();
        }
        for folded in self.cpus.iter_mut().filter(|cpu| cpu.begin.is_none()).filter_map(|cpu| cpu.folded.as_mut()) {
            *folded -= first;
        }
        let rest = self.out.split_off(first);
        let taken = std::mem::replace(&mut self.out, rest);
        self.count(&taken);
        taken
    }

    fn count(&mut self, spans: &[Span]) {
        self.taken += spans.len();
        self.earliest = spans.iter().map(|s| s.start).chain(self.earliest).min();
        self.tally.count(spans);
    }

    /// The event's meaning, with the numbers of its machine.
    #[inline]
    pub fn said(&self, e: &Event) -> Said {
        self.abi.what(e.what)
    }

    /// Processes one event.
    pub fn push(&mut self, e: &Event) {
        let machine = self.unseen_from.partition_point(|(first_cpu, _)| *first_cpu <= e.cpu.number());
        self.machine = machine.saturating_sub(1);
        if let Some((_, unseen)) = self.unseen_from.get(self.machine).filter(|_| machine > 0) {
            self.is_told_by(*unseen);
        }
        let e = &match self.said(e) {
            Said::Point(Point::ExitWork) => Event { what: Said::Call(Work::ExitWork), dur: Time::ZERO, ..*e },
            Said::Point(Point::ExitWorkReturn) => {
                Event { what: Said::Return(Work::ExitWork), dur: Time::ZERO, arg: 0, ..*e }
            }
            Said::Point(Point::GuestEnter) => self.guest_entered(e),
            Said::Point(Point::GuestExit) => self.guest_left(e),
            what => Event { what, ..*e },
        };
        match e.what {
            Said::Fact(fact) => self.fact(fact, e),
            Said::Other(_) => self.tally.unknown += 1,
            _ if e.cpu.number() >= CPUS_MAX => self.tally.unknown += 1,
            Said::Point(point @ (Point::Stolen | Point::StolenReturn)) => self.host_says(e, point),
            _ => self.transition(e),
        }
    }

    fn transition(&mut self, e: &Event) {
        let c = self.cpu(e);
        let before = self.cpus[c].last;
        let t = self.arrive(c, e.ts);
        self.last = self.last.max(t.saturating_add(e.dur));
        self.given_back(c, t);
        self.look(c, before, e, t);
        if matches!(e.what, Said::Lost) {
            return self.lose(c, e, t);
        }
        self.silent(c, before, e, t);
        if !matches!(e.what, Said::Switch) && e.pid != self.running(c) {
            self.resync(c, e.pid, t);
        }
        self.leave_low_power(c, t);
        self.decide(c, e.what);
        if let Said::Call(_) = e.what {
            *self.counts.of(e.name) += 1;
        }
        match e.what {
            Said::Switch => self.switch(c, e, t),
            Said::Point(point) => self.point(c, e, point, t),
            Said::Call(work) => self.call(c, e, t, work),
            Said::Return(work) => self.ret(c, e, t, work),
            Said::Lost | Said::Fact(_) | Said::Other(_) => {}
        }
    }

    /// Index of a CPU that may have no event yet.
    #[inline]
    fn known_cpu(&mut self, cpu: CpuId) -> usize {
        while self.cpus.len() <= cpu.index() {
            self.cpus.push(Cpu::new(CpuId::new(self.cpus.len() as u32)));
        }
        cpu.index()
    }

    /// Index of an event's CPU. A CPU's time begins at its first event, in the user code of the thread that it names.
    fn cpu(&mut self, e: &Event) -> usize {
        let c = self.known_cpu(e.cpu);
        if !self.cpus[c].has_begun() {
            let from = self.intervals.iter().find(|i| i.cpu == e.cpu).map_or(e.ts, |i| i.from.min(e.ts));
            self.begin_cpu(from);
            self.cpus[c].look.begin(from);
            self.cpus[c].phase = Phase::Traced;
            self.cpus[c].since = from;
            self.cpus[c].thread = self.threads.find(Pid::IDLE, &mut self.names);
            let was_offline = self.offline.contains(&e.cpu) && e.ts > from;
            self.place(c, if was_offline { Pid::IDLE } else { e.pid }, from);
            if was_offline {
                self.place(c, e.pid, e.ts);
                self.cpus[c].phase = Phase::Offline;
                self.was_offline(c);
            }
        }
        c
    }

    /// The time at which an event takes effect: its own, unless the CPU's pieces reach further. A folded call that
    /// reaches further was rounded up, and is trimmed.
    pub(super) fn arrive(&mut self, c: usize, ts: Time) -> Time {
        let cpu = &mut self.cpus[c];
        cpu.last = cpu.last.max(ts);
        if ts >= cpu.since {
            return ts;
        }
        if let Some(call) = cpu.folded {
            let call = &mut self.spans(c)[call];
            let since = ts.max(call.start);
            call.dur = since - call.start;
            self.cpus[c].since = since;
        }
        let since = self.cpus[c].since;
        self.tally.late += u64::from(ts < since);
        ts.max(since)
    }

    /// Writes the spans that a rule returns. Spans of what a CPU runs are written by [`Builder::write`], because they
    /// may still change.
    #[inline]
    pub(super) fn emit(&mut self, spans: impl IntoIterator<Item = Span>) {
        self.out.extend(spans);
    }

    /// Ends the open piece at `t`; the next begins there.
    pub(super) fn close(&mut self, c: usize, t: Time, how: Close) {
        let (pid, rpc) = self.owner(c);
        let cpu = &mut self.cpus[c];
        let (id, start) = (cpu.id, cpu.since);
        let Some(top) = cpu.stack.last_mut() else { return };
        let (ret, ipc, ends) = match how {
            Close::Pause { ipc } => (NONE, ipc, false),
            Close::End { ret, ipc } => (ret, ipc, true),
        };
        let dur = t - start;
        let no_value = top.activity.no_value();
        let ret = if ret == NONE { no_value } else { ret };
        let needed = ends && top.work().is_some() && (!top.shown || no_value == NONE && ret != NONE);
        if dur > Time::ZERO || needed {
            top.shown = true;
            let idle = cpu.low_power.is_some() && top.activity == Activity::Idle;
            let interrupt = matches!(top.level(), Level::Irq | Level::Softirq);
            let (arg, name) = if idle { (1, self.names.id("-idlelp-")) } else { (top.arg, top.name) };
            let (what, ipc) = (What::Run(top.activity), ipc & 15);
            cpu.folded = None;
            if interrupt && pid == Some(Pid::IDLE) {
                cpu.interrupt(start, t);
            }
            self.write(c, Span { start, dur, cpu: Some(id), pid, rpc, what, arg, ret, ipc, name });
        }
        let cpu = &mut self.cpus[c];
        cpu.since = t;
        cpu.owner = Some(cpu.thread).filter(|_| !cpu.is_lost());
    }

    /// The thread that owns a CPU's open piece, and its RPC.
    pub(super) fn owner(&self, c: usize) -> (Option<Pid>, i32) {
        let owner = self.cpus[c].owner.map(|thread| &self.threads.list[thread]);
        owner.map_or((None, 0), |thread| (Some(thread.pid), thread.rpc as i32))
    }

    /// The thread on a CPU.
    pub(super) fn running(&self, c: usize) -> Pid {
        self.threads.list[self.cpus[c].thread].pid
    }

    /// The bottom frame of a thread.
    pub(super) fn bottom(&self, thread: usize) -> Frame {
        let thread = &self.threads.list[thread];
        let activity = match thread.side {
            Side::Kernel => Activity::thread(thread.pid),
            Side::Program => Activity::user(thread.pid),
        };
        Frame { shown: true, ..Frame::new(activity, 0, thread.user) }
    }

    /// Ends all CPUs' time and returns the spans.
    pub fn finish(mut self, meta: event::Meta) -> (Spans, Tally) {
        self.intervals.clone_from(&meta.intervals);
        for i in meta.intervals.iter().filter(|i| i.cpu.number() < CPUS_MAX) {
            if self.cpus.get(i.cpu.index()).is_some_and(Cpu::has_begun) {
                continue;
            }
            if self.offline.contains(&i.cpu) {
                let name = self.names.id("-offline-");
                self.emit([Span::run(i.cpu, Activity::Offline, name, (i.from, i.to))]);
            } else {
                let name = self.names.id("-lost-");
                self.push(&Event { ts: i.from, cpu: i.cpu, what: Said::Lost, name, ..Event::default() });
            }
        }
        for c in 0..self.cpus.len() {
            if self.cpus[c].has_begun() {
                let known = self.intervals.iter().find(|i| i.cpu.index() == c);
                let to = known.map_or(self.last, |i| i.to).max(self.cpus[c].since).max(self.cpus[c].last);
                self.silent_at_the_end(c, to);
                self.exited(c);
                // A scheduler that has not returned by then has made its choice.
                self.sched_left(c, to);
                self.close(c, to, Close::End { ret: NONE, ipc: 0 });
                self.settle(c);
                self.was_offline(c);
                let sampled = self.overlays.end_samples(self.cpus[c].id, to, &mut self.names);
                self.emit(sampled);
            }
        }
        let parts = self.overlays.end_all_parts(self.last);
        self.emit(parts);
        let out = std::mem::take(&mut self.out);
        self.count(&out);
        self.out = out;
        self.label_rows();
        infer(&self.threads, &self.cgroups, &mut self.meta);
        self.describe(meta);
        order(&mut self.out);
        self.tally.pending += self.threads.list.iter().filter(|t| t.wakeup.is_some()).count() as u64;
        (Spans { meta: self.meta, names: self.names.into_texts(), spans: self.out }, self.tally)
    }

    /// Processes a fact.
    fn fact(&mut self, fact: Fact, e: &Event) {
        match fact {
            Fact::Name(kind) => self.name(kind, e),
            Fact::OpenCall(call) => self.open_call(e, call),
            Fact::Kernel(is_kernel) => {
                let side = if is_kernel { Side::Kernel } else { Side::Program };
                let pid = Pid::new(e.arg);
                if let Some(recording) = self.machines.get_mut(pid.machine() as usize) {
                    recording.kernel_told = true;
                }
                let thread = self.threads.find(pid, &mut self.names);
                self.set_side(thread, side);
            }
            Fact::Offline => {
                self.offline.insert(CpuId::new(e.arg));
            }
            Fact::Tickless if e.arg < CPUS_MAX => {
                let c = self.known_cpu(CpuId::new(e.arg));
                self.cpus[c].ticks.tickless = true;
            }
            Fact::Tickless => {}
            Fact::Group(group) => {
                let thread = self.threads.find(Pid::new(e.arg), &mut self.names);
                self.threads.list[thread].group = group;
            }
            Fact::Process(process) if process.number() != e.arg => {
                self.meta.processes.insert(e.arg, process.number());
            }
            Fact::Process(_) => {
                self.meta.processes.remove(&e.arg);
            }
            Fact::File(file) => {
                self.meta.files.entry(e.arg).or_default().insert(file, self.names.text(e.name).to_string());
            }
            Fact::Member(group) => {
                let thread = self.threads.find(Pid::new(e.arg), &mut self.names);
                self.threads.list[thread].cgroup = group;
            }
        }
    }

    /// Processes a name.
    fn name(&mut self, kind: u32, e: &Event) {
        let text = self.names.text(e.name);
        self.abi.learn(kind, e.arg, text);
        match kind {
            number::PID_NAME => self.rename(e),
            number::CGROUP_PATH => drop(self.cgroups.insert(e.arg, text.to_string())),
            number::CGROUP => drop(self.meta.cgroups.insert(e.arg, text.to_string())),
            number::KERNEL_NAME => {
                self.nesting.realtime = text.contains("PREEMPT_RT");
                self.meta.kernel = text.to_string();
            }
            number::MODEL_NAME => self.meta.cpu_model = text.to_string(),
            number::HOST_NAME => self.meta.host = text.to_string(),
            number::ERRNO_NAME => drop(self.meta.errors.insert(e.arg, text.to_string())),
            _ => {}
        }
    }

    /// Gives a thread a name from now on; its first name also applies to the open piece of its user code.
    fn rename(&mut self, e: &Event) {
        let thread = self.threads.find(Pid::new(e.arg), &mut self.names);
        let unnamed = self.threads.list[thread].comms.is_empty();
        let before = self.threads.list[thread].user;
        self.threads.rename(thread, e.name, &mut self.names);
        let Some(c) = self.threads.list[thread].place.cpu() else { return };
        let bottom = self.bottom(thread);
        let cpu = &self.cpus[c];
        if cpu.is_lost() || bottom.name == before {
            return;
        }
        if cpu.stack.len() == 1 && e.ts > cpu.since && !unnamed {
            self.close(c, e.ts, Close::Pause { ipc: 0 });
        }
        self.cpus[c].stack[0].name = bottom.name;
    }

    /// Writes a label for every row whose thread had more than one name.
    fn label_rows(&mut self) {
        let start = self.earliest.unwrap_or_default();
        let renamed = self.threads.list.iter().filter(|t| t.comms.len() > 1);
        let labels: Vec<(Pid, String)> = renamed
            .map(|t| {
                let comms: Vec<&str> = t.comms.iter().map(|&c| self.names.text(c)).collect();
                (t.pid, format!("{}.{}", comms.join("+"), t.pid))
            })
            .collect();
        self.taken += labels.len();
        for (pid, label) in labels {
            let (what, name) = (What::Point(Point::RowLabel), self.names.id(&label));
            let (cpu, pid) = (Some(CpuId::default()), Some(pid));
            self.emit([Span { start, dur: Time::UNIT, cpu, pid, what, name, ..Span::default() }]);
        }
    }

    fn describe(&mut self, meta: event::Meta) {
        let mark = [meta.base.as_bytes(), self.meta.host.as_bytes(), &self.taken.to_le_bytes()].concat();
        self.meta.randomid = crc32fast::hash(&mark) >> 1;
        self.meta.value_bits = if meta.unseen().has(Capability::Values) { 16 } else { 32 };
        self.meta.unseen = meta.unseen().texts().map(String::from).collect();
        self.meta.tracebase = meta.base;
        self.meta.flags = meta.flags;
        self.meta.mbit_sec = LINK_RATE;
        self.meta.lost = meta.lost;
        self.meta.quality = meta.quality;
        self.meta.counted = meta.counted;
        self.meta.counted.extend(self.untold_steal());
        self.meta.machines = meta.machines;
        self.meta.boot_id = meta.boot_id;
        self.meta.monotonic = meta.monotonic;
        self.meta.recorder = meta.recorder;
        let counted = self.counts.iter().map(|(name, n)| (self.names.text(name).to_string(), n));
        self.meta.counts = counted.collect();
        if self.tally.wakeups > 0 {
            self.meta.counts.insert("-wakeup-".to_string(), self.tally.runs);
        }
    }
}
