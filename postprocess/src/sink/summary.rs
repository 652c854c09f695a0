// SPDX-License-Identifier: BSD-3-Clause
//! Summary: what a terminal can tell of a trace before a browser opens it.
//!
//! [`share`] says how each CPU's time divides, [`work`] what took it, [`wait`] what threads waited for, [`latency`] how
//! long they waited for a CPU and who ran meanwhile, [`text`] puts it into tables, [`json`] into lists for programs.
//! Times in JSON are units of 10 ns.
//!
//! Invariant: everything is counted from all events and all spans, as they come, and no span is kept: memory is that of
//! threads, names and distinct latencies, however long the trace is.

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

/// What is said of a trace. Lists are ordered, what took most time first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// About the whole trace.
    pub meta: Meta,
    /// First and last moment.
    pub extent: (Time, Time),
    /// Events, as every tool counts them: [`is_event`].
    pub events: u64,
    /// How each CPU's time divides, ordered by CPU.
    pub cpus: Vec<(CpuId, Share)>,
    /// Programs: all threads of one name.
    pub programs: Vec<Program>,
    /// The same by control group, called by their paths; empty if the trace tells of none.
    pub cgroups: Vec<Program>,
    /// System calls, and the scheduler.
    pub calls: Vec<Sum>,
    /// Interrupts and what they left for later.
    pub interrupts: Vec<Sum>,
    /// Faults.
    pub faults: Vec<Sum>,
    /// Waits by reason.
    pub waits: Vec<Wait>,
    /// Spans that programs recorded, by name.
    pub spans: Vec<Wait>,
    /// From a wakeup to the run it led to.
    pub woken: Latency,
    /// From the loss of a CPU to the next run, where nobody had to wake the thread.
    pub preempted: Latency,
    /// Wakeups of threads that had not left their CPU yet.
    pub running: u64,
}

/// What threads are added up by, in text: JSON has both.
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
            _ => Err("program or cgroup is meant"),
        }
    }
}

/// A part of a CPU's time, and what it is called.
type Part = (&'static str, fn(&Share) -> Time);

/// Those parts that not every source can tell, with what it must see for that.
const PARTS: [(Part, &[Capability]); 3] = [
    (("idle", |share| share.idle), &[Capability::Idle]),
    (("stalled", |share| share.stalled), &[Capability::Interrupts, Capability::Idle]),
    (("lost", |share| share.lost), &[Capability::Losses]),
];

impl Summary {
    /// Whether something is to be told: not if there is nothing of it only because the source cannot tell it.
    fn tells(&self, amount: u64, seen_by: &[Capability]) -> bool {
        amount > 0 || seen_by.iter().all(|&capability| self.meta.sees(capability))
    }

    /// Those parts of the CPUs' time that are to be told, by name.
    fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        let amount = |(_, part): Part| self.cpus.iter().map(|(_, share)| part(share).0 as u64).sum();
        PARTS.into_iter().filter(move |(part, seen_by)| self.tells(amount(*part), seen_by)).map(|(part, _)| part)
    }
}

/// Calls its last argument with each span of execution of a CPU within a range of time, and its name.
pub type Look<'a> = dyn FnMut(CpuId, (Time, Time), &mut dyn FnMut(&Span, &str)) + 'a;

/// Adds up events, and spans as [`crate::span::build::Builder::take`] gives them.
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
    /// The name of the user code of each thread; of several that a thread had, the last.
    threads: HashMap<Pid, NameId>,
}

impl Adder {
    /// Nothing yet; the longest `worst` waits for a CPU of each kind will be told in full.
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

    /// Takes an event that says this, by the numbers of its machine.
    pub fn event(&mut self, said: Said, event: &Event) {
        self.events += u64::from(said.is_event());
        if let Said::Call(work) = said {
            self.kernel.begin(work.level(), event.name);
        }
    }

    /// Takes a span.
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

    /// What is to be said, now that all was taken.
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

/// The names of threads, with their numbers: `bash.7`.
#[derive(Debug, Default)]
pub struct Threads<'a> {
    ids: HashMap<Pid, NameId>,
    names: &'a [String],
}

impl<'a> Threads<'a> {
    fn known(&self, pid: Pid) -> Option<&'a str> {
        self.names.get(self.ids.get(&pid)?.index()).map(String::as_str)
    }

    /// Name and number of a thread.
    pub fn name(&self, pid: Pid) -> String {
        self.known(pid).map_or_else(|| format!("pid.{pid}"), str::to_string)
    }

    /// The name without the number; `?` for a thread that has none.
    pub fn program(&self, pid: Pid) -> &'a str {
        let program = self.known(pid).and_then(|name| name.rsplit_once('.')).map(|(program, _)| program);
        program.filter(|program| !program.is_empty()).unwrap_or("?")
    }
}

fn end(span: &Span) -> Time {
    span.start.saturating_add(span.dur)
}
