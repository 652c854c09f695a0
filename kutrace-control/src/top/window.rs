// SPDX-License-Identifier: BSD-3-Clause
//! Totals of a period. Consecutive windows add up to one, which is reported as a summary.
//!
//! Times and durations are counts of the recorder until they are reported.

use std::collections::BTreeMap;

use foldhash::HashMap;
use kutrace_format::capability::Capability;
use postprocess::event::date;
use postprocess::event::names::{clean, NameId, Names};
use postprocess::event::number::Level;
use postprocess::id::CpuId;
use postprocess::raw::clock::Clock;
use postprocess::sink::summary::latency::{Latency, Worst, PERMILLE};
use postprocess::sink::summary::share::Share;
use postprocess::sink::summary::wait::Wait;
use postprocess::sink::summary::work::{Program, Sum};
use postprocess::sink::summary::Summary;
use postprocess::span::wait::Reason;
use postprocess::span::Meta;
use postprocess::time::Time;

use crate::names::machine;
use crate::skim::Skim;

/// Maximum number of span names in one second's report.
const SPANS: usize = 1 << 14;
/// Number of waits for a CPU that are reported in full.
const WORST: usize = 5;
/// Leading bits kept of the durations in a distribution: the reported ones are off by at most 0.4 %.
const BITS: u32 = 8;

/// Number of times that something of the kernel began, and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Number of begins.
    pub count: u64,
    /// CPU time, without that of its interruptions.
    pub total: u64,
    /// Longest CPU time of one that ended.
    pub longest: u64,
    /// Longest time from start to end of one that ended.
    pub slowest: u64,
}

impl Use {
    /// Adds the totals of another.
    pub fn add(&mut self, other: &Use) {
        self.count += other.count;
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
        self.slowest = self.slowest.max(other.slowest);
    }
}

/// Time of a CPU by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// User code.
    pub user: u64,
    /// System calls, faults, threads of the kernel, the scheduler.
    pub kernel: u64,
    /// Interrupts and softirqs.
    pub interrupts: u64,
    /// Idle.
    pub idle: u64,
    /// Unknown.
    pub lost: u64,
    /// Offline; not part of the total.
    pub offline: u64,
}

impl Part {
    /// Total time, without offline.
    pub fn total(&self) -> u64 {
        self.user + self.kernel + self.interrupts + self.idle + self.lost
    }

    fn add(&mut self, other: &Part) {
        self.user += other.user;
        self.kernel += other.kernel;
        self.interrupts += other.interrupts;
        self.idle += other.idle;
        self.lost += other.lost;
        self.offline += other.offline;
    }
}

/// CPU time of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// User code.
    pub user: u64,
    /// Kernel, without interrupts.
    pub kernel: u64,
    /// Total, with interrupts.
    pub on_cpu: u64,
    /// Number of times that it got a CPU.
    pub runs: u64,
    /// Longest run without losing the CPU, measured from the start of the run.
    pub longest: u64,
}

impl Run {
    /// Adds the totals of another.
    pub fn add(&mut self, other: &Run) {
        self.user += other.user;
        self.kernel += other.kernel;
        self.on_cpu += other.on_cpu;
        self.runs += other.runs;
        self.longest = self.longest.max(other.longest);
    }
}

/// A wait, with its start and its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Duration.
    pub dur: u64,
    /// Start.
    pub at: u64,
    /// The thread.
    pub pid: u32,
    /// The CPU that the thread got.
    pub cpu: u32,
}

/// Waits for one reason, or spans of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waits {
    count: u64,
    total: u64,
    longest: Waited,
}

impl Waits {
    fn add(&mut self, wait: Waited) {
        self.join(&Waits { count: 1, total: wait.dur, longest: wait });
    }

    fn join(&mut self, other: &Waits) {
        self.count += other.count;
        self.total += other.total;
        if other.longest.dur > self.longest.dur {
            self.longest = other.longest;
        }
    }
}

/// Distribution of waits by length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    lengths: HashMap<u64, u64>,
    /// Longest first.
    worst: Vec<Waited>,
}

impl Spread {
    /// Adds a wait.
    pub fn add(&mut self, wait: Waited) {
        let drop = (u64::BITS - wait.dur.leading_zeros()).saturating_sub(BITS);
        let middle = if drop == 0 { 0 } else { 1 << (drop - 1) };
        *self.lengths.entry((wait.dur >> drop << drop) + middle).or_default() += 1;
        self.keep(wait);
    }

    /// The longest wait; 0 if none.
    pub fn longest(&self) -> u64 {
        self.worst.first().map_or(0, |worst| worst.dur)
    }

    fn keep(&mut self, wait: Waited) {
        let place = self.worst.partition_point(|worse| worse.dur >= wait.dur);
        if place < WORST {
            self.worst.insert(place, wait);
            self.worst.truncate(WORST);
        }
    }

    fn join(&mut self, other: &Spread) {
        for (length, count) in &other.lengths {
            *self.lengths.entry(*length).or_default() += count;
        }
        other.worst.iter().for_each(|wait| self.keep(*wait));
    }
}

/// Totals of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Counter at the start.
    pub from: u64,
    /// Counter at the end.
    pub to: u64,
    /// Number of events.
    pub events: u64,
    /// Number of events that did not fit into the recorder.
    pub lost: u64,
    /// Number of blocks that were overwritten before they were read.
    pub missed: u64,
    /// Time by CPU; CPUs without any event have no entry.
    pub cpus: BTreeMap<u32, Part>,
    /// Kernel activity.
    pub uses: HashMap<(Level, NameId), Use>,
    /// CPU time of threads, by pid.
    pub runs: HashMap<u32, Run>,
    /// Number of records of programs that were overwritten before they were read.
    pub missed_marks: u64,
    waits: BTreeMap<u8, Waits>,
    spans: BTreeMap<Box<[u8]>, Waits>,
    /// Times from wakeup to run.
    pub woken: Spread,
    /// Times from losing a CPU to the next run.
    pub preempted: Spread,
    /// Number of wakeups of threads that were running.
    pub running: u64,
}

/// Context needed to report a window.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Converts counters to times.
    pub clock: Clock,
    /// Description of the machine.
    pub meta: &'a Meta,
    /// Names of kernel activities.
    pub names: &'a Names,
    /// Names of threads.
    pub threads: &'a Skim,
}

impl Window {
    /// Adds a wait that has ended.
    pub fn wait(&mut self, reason: Reason, wait: Waited) {
        self.waits.entry(reason.letter()).or_default().add(wait);
    }

    /// Adds a span of a program that has ended.
    pub fn span(&mut self, name: &[u8], span: Waited) {
        let has_room = self.spans.len() < SPANS;
        match self.spans.get_mut(name) {
            Some(spans) => spans.add(span),
            None if has_room => self.spans.entry(name.into()).or_default().add(span),
            None => self.missed_marks += 1,
        }
    }

    /// Reasons for waiting, each with the number and the total duration of its waits.
    #[cfg(test)]
    pub fn waits(&self) -> impl Iterator<Item = (Reason, u64, u64)> + '_ {
        self.waits.iter().map(|(letter, waits)| (Reason::of(*letter), waits.count, waits.total))
    }

    /// Adds the window that follows.
    pub fn join(&mut self, next: &Window) {
        if self.to == 0 {
            self.from = next.from;
        }
        self.to = next.to;
        self.events += next.events;
        self.lost += next.lost;
        self.missed += next.missed;
        self.missed_marks += next.missed_marks;
        self.running += next.running;
        next.cpus.iter().for_each(|(cpu, part)| self.cpus.entry(*cpu).or_default().add(part));
        next.uses.iter().for_each(|(work, other)| self.uses.entry(*work).or_default().add(other));
        next.runs.iter().for_each(|(pid, run)| self.runs.entry(*pid).or_default().add(run));
        next.waits.iter().for_each(|(reason, other)| self.waits.entry(*reason).or_default().join(other));
        next.spans.iter().for_each(|(name, other)| self.spans.entry(name.clone()).or_default().join(other));
        self.woken.join(&next.woken);
        self.preempted.join(&next.preempted);
    }

    /// The summary of a trace of this period. The threads that had a CPU while others waited for it are unknown.
    pub fn summary(&self, known: &Known) -> Summary {
        let moment = |at: u64| known.clock.units(at);
        let time = |counts: u64| moment(self.from + counts) - moment(self.from);
        let mut meta = known.meta.clone();
        meta.tracebase = date::utc(known.clock.base);
        meta.lost = self.lost;
        if self.missed > 0 {
            meta.quality.push(format!("{} blocks were overwritten before they were read", self.missed));
        }
        if self.missed_marks > 0 {
            meta.quality.push("marks of programs were overwritten before they were read".to_string());
        }
        let wait = |name: String, waits: &Waits| Wait {
            name,
            count: waits.count,
            total: time(waits.total),
            longest: time(waits.longest.dur),
            at: moment(waits.longest.at),
            thread: known.thread(waits.longest.pid),
        };
        let reason = |letter: u8| Reason::of(letter).name().to_string();
        let mut waits: Vec<Wait> = self.waits.iter().map(|(letter, waits)| wait(reason(*letter), waits)).collect();
        let mut spans: Vec<Wait> = self.spans.iter().map(|(name, spans)| wait(clean(name), spans)).collect();
        for list in [&mut waits, &mut spans] {
            list.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
        }
        Summary {
            meta,
            extent: (moment(self.from), moment(self.to)),
            events: self.events,
            cpus: self.cpus.iter().map(|(cpu, part)| (CpuId::new(*cpu), share(part, time))).collect(),
            programs: self.programs(known, time),
            cgroups: Vec::new(),
            calls: self.sums(known, &[Level::Syscall, Level::Sched], time),
            interrupts: self.sums(known, &[Level::Irq, Level::Softirq], time),
            faults: self.sums(known, &[Level::Trap], time),
            waits,
            spans,
            woken: self.latency(&self.woken, known),
            preempted: self.latency(&self.preempted, known),
            running: self.running,
        }
    }

    /// Share of interrupts in the time of all CPUs, then of each CPU.
    pub fn interrupts(&self) -> Vec<f64> {
        let mut all = Part::default();
        self.cpus.values().for_each(|part| all.add(part));
        let of = |part: &Part| part.interrupts as f64 / part.total().max(1) as f64;
        std::iter::once(&all).chain(self.cpus.values()).map(of).collect()
    }

    fn programs(&self, known: &Known, time: impl Fn(u64) -> Time) -> Vec<Program> {
        let mut programs: BTreeMap<String, (usize, Run)> = BTreeMap::new();
        for (pid, run) in &self.runs {
            let program = programs.entry(known.program(*pid)).or_default();
            program.0 += 1;
            program.1.add(run);
        }
        let told = |(name, (threads, run)): (String, (usize, Run))| Program {
            name,
            threads,
            user: time(run.user),
            kernel: time(run.kernel),
            runs: run.runs,
            on_cpu: time(run.on_cpu),
            longest: time(run.longest),
        };
        let mut programs: Vec<Program> = programs.into_iter().map(told).collect();
        programs.sort_by_key(|program| std::cmp::Reverse(program.user + program.kernel));
        programs
    }

    fn sums(&self, known: &Known, levels: &[Level], time: impl Fn(u64) -> Time) -> Vec<Sum> {
        let told = |((_, name), of): (&(Level, NameId), &Use)| Sum {
            name: known.names.text(*name).to_string(),
            count: of.count,
            points: 0,
            total: time(of.total),
            longest: time(of.longest),
            slowest: time(of.slowest),
        };
        let mut sums: Vec<Sum> = self.uses.iter().filter(|((level, _), _)| levels.contains(level)).map(told).collect();
        sums.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
        sums
    }

    fn latency(&self, spread: &Spread, known: &Known) -> Latency {
        let time = |counts: u64| known.clock.units(self.from + counts) - known.clock.units(self.from);
        let mut lengths: Vec<(u64, u64)> = spread.lengths.iter().map(|(length, count)| (*length, *count)).collect();
        lengths.sort_unstable();
        let count: u64 = lengths.iter().map(|(_, count)| count).sum();
        let longest = spread.longest();
        let at = |permille: u64| {
            let rank = (count * permille).div_ceil(1000).max(1);
            let mut below = 0;
            let found = lengths.iter().find(|(_, count)| {
                below += count;
                below >= rank
            });
            // The longest is known exactly.
            if rank == count {
                longest
            } else {
                found.map_or(0, |(length, _)| (*length).min(longest))
            }
        };
        let worst = |wait: &Waited| Worst {
            at: known.clock.units(wait.at),
            dur: time(wait.dur),
            thread: known.thread(wait.pid),
            cpu: Some(CpuId::new(wait.cpu)),
            meanwhile: Vec::new(),
        };
        Latency {
            count,
            percentiles: PERMILLE.map(|permille| time(at(permille))),
            worst: spread.worst.iter().map(worst).collect(),
        }
    }
}

fn share(part: &Part, time: impl Fn(u64) -> Time) -> Share {
    Share {
        user: time(part.user),
        kernel: time(part.kernel + part.interrupts),
        idle: time(part.idle),
        lost: time(part.lost),
        offline: time(part.offline),
        ..Share::default()
    }
}

impl Known<'_> {
    /// Name of a thread without its number, `?` if it has none.
    pub fn program(&self, pid: u32) -> String {
        let comm = self.threads.thread(pid).unwrap_or_default();
        let name = clean(comm.split(|byte| *byte == 0).next().unwrap_or_default());
        if name.is_empty() {
            "?".to_string()
        } else {
            name
        }
    }

    /// Name and number of a thread.
    pub fn thread(&self, pid: u32) -> String {
        match self.threads.thread(pid) {
            Some(_) => format!("{}.{pid}", self.program(pid)),
            None => format!("pid.{pid}"),
        }
    }
}

/// Description of this machine and of the events that its recorder cannot see.
pub fn about<'a>(unseen: impl Iterator<Item = &'a str>) -> Meta {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut unseen: Vec<String> = unseen.map(str::to_string).collect();
    // Stalled CPUs are not detected here.
    let stalls = Capability::Interrupts.unseen().to_string();
    if !unseen.contains(&stalls) {
        unseen.push(stalls);
    }
    Meta {
        host: machine::host(),
        kernel: machine::kernel(),
        cpu_model: machine::cpu_model(&cpuinfo).unwrap_or_default().to_string(),
        unseen,
        ..Meta::default()
    }
}
