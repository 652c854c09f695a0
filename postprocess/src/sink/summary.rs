// SPDX-License-Identifier: BSD-3-Clause
//! Summary: an overview of a trace for the terminal, before a browser opens it.
//!
//! [`share`] divides each CPU's time, [`work`] measures what took that time, [`wait`] what threads waited for, and
//! [`latency`] how long they waited for a CPU and who ran in that time. [`text`] formats tables, [`json`] lists for
//! programs. Times in JSON are units of 10 ns.
//!
//! Invariant: all events and all spans are counted as they come, and no span is kept: memory is that of threads, names
//! and distinct latencies, however long the trace is.

pub mod share;
pub mod work;
pub mod wait;
pub mod latency;
pub mod text;
pub mod json;

use std::collections::BTreeMap;
use std::str::FromStr;

use foldhash::HashMap;
use kutrace_format::capability::Capability;

use crate::event::names::NameId;
use crate::event::number::Level;
use crate::event::point::Point;
use crate::event::what::What as Said;
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::span::{Meta, Span};
use crate::time::Time;
use latency::{Latency, Waiting};
use share::Share;
use wait::{Wait, Waits};
use work::{Kernel, Program, Programs, Sum};

/// Summary of a trace. Lists are ordered by time, most first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Data about the whole trace.
    pub meta: Meta,
    /// First and last moment.
    pub extent: (Time, Time),
    /// Number of events as every tool counts them: [`is_event`](crate::event::what::What::is_event).
    pub events: u64,
    /// Division of each CPU's time, ordered by CPU.
    pub cpus: Vec<(CpuId, Share)>,
    /// Programs: all threads with the same name.
    pub programs: Vec<Program>,
    /// Control groups, by path; empty if the trace records none.
    pub cgroups: Vec<Program>,
    /// System calls, and the scheduler.
    pub calls: Vec<Sum>,
    /// Interrupts and the work they left for later.
    pub interrupts: Vec<Sum>,
    /// Faults.
    pub faults: Vec<Sum>,
    /// Waits by reason.
    pub waits: Vec<Wait>,
    /// Spans that programs recorded, by name.
    pub spans: Vec<Wait>,
    /// Latency from a wakeup to the resulting run.
    pub woken: Latency,
    /// Latency from the loss of a CPU to the next run, if no wakeup was needed.
    pub preempted: Latency,
    /// Number of wakeups of threads that had not left their CPU yet.
    pub running: u64,
}

/// Grouping of threads in text; JSON has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Their names.
    Program,
    /// Their control groups.
    Cgroup,
}

impl FromStr for By {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<By, Self::Err> {
        match word {
            "program" => Ok(By::Program),
            "cgroup" => Ok(By::Cgroup),
            _ => Err("expected program or cgroup"),
        }
    }
}

/// A part of a CPU's time, with its name.
type Part = (&'static str, fn(&Share) -> Time);

/// Parts that not every source can measure, with the capabilities that they require.
const PARTS: [(Part, &[Capability]); 3] = [
    (("idle", |share| share.idle), &[Capability::Idle]),
    (("stalled", |share| share.stalled), &[Capability::Interrupts, Capability::Idle]),
    (("lost", |share| share.lost), &[Capability::Losses]),
];

impl Summary {
    /// True if an amount is worth reporting: not if it is 0 only because the source cannot see it.
    fn tells(&self, amount: u64, seen_by: &[Capability]) -> bool {
        amount > 0 || seen_by.iter().all(|&capability| self.meta.sees(capability))
    }

    /// Returns the reported parts of the CPUs' time, by name.
    fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        let amount = |(_, part): Part| self.cpus.iter().map(|(_, share)| part(share).0 as u64).sum();
        PARTS.into_iter().filter(move |(part, seen_by)| self.tells(amount(*part), seen_by)).map(|(part, _)| part)
    }
}

/// Calls its last argument with each span of execution of a CPU within a range of time, and the span's name.
pub type Look<'a> = dyn FnMut(CpuId, (Time, Time), &mut dyn FnMut(&Span, &str)) + 'a;

/// Adds up events, and spans as [`crate::span::build::Builder::take`] returns them.
#[derive(Debug)]
pub struct Adder {
    events: u64,
    extent: Option<(Time, Time)>,
    cpus: BTreeMap<CpuId, Share>,
    kernel: Kernel,
    programs: Programs,
    waits: Waits,
    spans: Waits,
    waiting: Waiting,
    /// Name of the user code of each thread; the last one if a thread had several.
    threads: HashMap<Pid, NameId>,
}

impl Adder {
    /// Makes an empty sum that will report the longest `worst` waits for a CPU of each kind in full.
    pub fn new(worst: usize) -> Adder {
        Adder {
            events: 0,
            extent: None,
            cpus: BTreeMap::new(),
            kernel: Kernel::default(),
            programs: Programs::default(),
            waits: Waits::default(),
            spans: Waits::default(),
            waiting: Waiting::new(worst),
            threads: HashMap::default(),
        }
    }

    /// Adds an event and its meaning, by the numbers of its machine.
    pub fn event(&mut self, said: Said, event: &Event) {
        self.events += u64::from(said.is_event());
        if let Said::Call(work) = said {
            self.kernel.begin(work.level(), event.name);
        }
    }

    /// Adds a span.
    pub fn span(&mut self, span: &Span) {
        if let (Some(Point::Steal), Some(cpu)) = (span.point(), span.cpu) {
            let share = self.cpus.entry(cpu).or_default();
            share.stolen += span.dur;
            share.steals += 1;
        }
        let (Some(activity), Some(cpu)) = (span.activity(), span.cpu) else {
            if Waits::is_wait(span) {
                self.waits.add(span);
            } else if Waits::is_of_program(span) {
                self.spans.add(span);
            }
            self.waiting.add(span);
            return;
        };
        let (first, last) = self.extent.unwrap_or((span.start, span.start));
        self.extent = Some((first.min(span.start), last.max(end(span))));
        self.cpus.entry(cpu).or_default().add(activity, span.dur);
        self.kernel.add(activity, span);
        self.programs.add(activity, span);
        self.waiting.runs(span);
        if activity.is_own_code() {
            self.threads.extend(span.pid.map(|pid| (pid, span.name)));
        }
    }

    /// Returns the summary after everything was added.
    pub fn finish(mut self, meta: Meta, names: &[String], look: &mut Look) -> Summary {
        let points = [Capability::Exceptions, Capability::KernelFaults, Capability::ProgramFaults, Capability::Nmis];
        self.kernel.finish(points.into_iter().any(|capability| !meta.sees(capability)));
        self.waiting.finish();
        self.programs.finish();
        let threads = Threads { ids: self.threads, names };
        let cgroups = match meta.cgroups.is_empty() {
            true => Vec::new(),
            false => self.programs.by(|pid| meta.cgroup_of(pid).unwrap_or("?")),
        };
        Summary {
            meta,
            extent: self.extent.unwrap_or_default(),
            events: self.events,
            cpus: self.cpus.into_iter().collect(),
            programs: self.programs.by(|pid| threads.program(pid)),
            cgroups,
            calls: self.kernel.sums(&[Level::Syscall, Level::Sched], names),
            interrupts: self.kernel.sums(&[Level::Irq, Level::Softirq], names),
            faults: self.kernel.sums(&[Level::Trap], names),
            waits: self.waits.finish(&threads, names),
            spans: self.spans.finish(&threads, names),
            woken: self.waiting.woken.finish(&threads, look),
            preempted: self.waiting.preempted.finish(&threads, look),
            running: self.waiting.running,
        }
    }
}

/// Names of threads with their numbers: `bash.7`.
#[derive(Debug, Default)]
pub struct Threads<'a> {
    ids: HashMap<Pid, NameId>,
    names: &'a [String],
}

impl<'a> Threads<'a> {
    fn known(&self, pid: Pid) -> Option<&'a str> {
        self.names.get(self.ids.get(&pid)?.index()).map(String::as_str)
    }

    /// Returns name and number of a thread.
    pub fn name(&self, pid: Pid) -> String {
        self.known(pid).map_or_else(|| format!("pid.{pid}"), str::to_string)
    }

    /// Returns the name without the number; `?` for a nameless thread.
    pub fn program(&self, pid: Pid) -> &'a str {
        let program = self.known(pid).and_then(|name| name.rsplit_once('.')).map(|(program, _)| program);
        program.filter(|program| !program.is_empty()).unwrap_or("?")
    }
}

fn end(span: &Span) -> Time {
    span.start.saturating_add(span.dur)
}
