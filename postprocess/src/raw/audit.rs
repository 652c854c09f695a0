// SPDX-License-Identifier: BSD-3-Clause
//! Audit: compares the trace with the kernel's own counts for the same time.
//!
//! The kernel's files were read after the start and before the end, each between two times. Everything that happened
//! between the end of the first reading and the start of the last was counted; everything counted happened between the
//! start of the first and the end of the last. The kernel's count is therefore between two numbers of the trace, which
//! differ by the events during the readings. In addition, a CPU that was inside a hooked place at an edge may have
//! counted already and recorded later, or the other way round.
//!
//! Invariants: no content of the files makes it fail; counts that they lack are not compared. A CPU is skipped if the
//! trace itself reports that its events are missing. Events that the source cannot see are not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use foldhash::HashSet;
use kutrace_format::capability::{Capability, Unseen};
use kutrace_format::reading::{CounterFile, Reading};
use kutrace_format::x86::{softirq, trap, vector};

use super::clock::Clock;
use super::kernel_file::{line_number, Table};
use crate::event::number::{IRQ, RUNNABLE, SOFTIRQ, SWITCH, TRAP};
use crate::event::point::Point;
use crate::event::what::What;
use crate::event::work::Work;
use crate::event::{Event, Interval};
use crate::id::CpuId;
use crate::time::Time;

/// The machine's own interrupts: the line of /proc/interrupts, a name for them, the numbers of their events, and the
/// capability that a source needs to be compared.
const SYSTEM: [(&str, &str, &[u32], Capability); 7] = [
    ("NMI", "NMIs", &[TRAP + trap::NMI], Capability::Nmis),
    ("LOC", "timer interrupts", &[IRQ + vector::LOCAL_TIMER], Capability::Interrupts),
    ("HVS", "timer interrupts of Hyper-V", &[IRQ + vector::HYPERV_TIMER], Capability::Interrupts),
    ("IWI", "interrupts for work", &[IRQ + vector::IRQ_WORK], Capability::Interrupts),
    ("RES", "rescheduling interrupts", &[IRQ + vector::RESCHEDULE], Capability::Interrupts),
    (
        "CAL",
        "interrupts for calls",
        &[IRQ + vector::CALL_FUNCTION_SINGLE, IRQ + vector::CALL_FUNCTION],
        Capability::Interrupts,
    ),
    ("MCE", "machine checks", &[TRAP + trap::MACHINE_CHECK], Capability::MachineChecks),
];
/// The vectors of devices.
const DEVICES: RangeInclusive<u32> = IRQ + *vector::DEVICES.start()..=IRQ + *vector::DEVICES.end();
/// The chips that give each interrupt a vector: the kernel counts other chips' interrupts twice.
const CHIPS: [&str; 4] = ["IO-APIC", "PCI-MSI", "IR-", "HPET_MSI"];
const PAGE_FAULT: u32 = TRAP + trap::PAGE_FAULT;
/// Number of events that a CPU may have in progress at the two edges.
const IN_FLIGHT: u64 = 2;
/// Maximum difference between times of events and those of the TSC, which have more bits.
const ROUNDING: Time = Time(2);

/// Agreement required between the kernel's count and the trace's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The counts are the same.
    Same,
    /// The kernel does not count more than the trace has.
    NoMore,
    /// The kernel also counts something else: for information.
    Told,
}

/// Events of one kind.
#[derive(Debug)]
struct Class {
    name: String,
    rule: Rule,
    /// By CPU, or without one for all together.
    cells: BTreeMap<Option<u32>, Cell>,
    window: Window,
}

/// Counts in one place.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    kernel: u64,
    min: u64,
    max: u64,
}

/// The time between two readings of a file.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Everything that happened in this time was counted.
    inner: (Time, Time),
    /// Everything counted happened in this time.
    outer: (Time, Time),
}

/// Compares while events pass.
#[derive(Debug, Default)]
pub struct Audit {
    classes: Vec<Class>,
    /// The class of an event, plus one, by number; for softirqs the first.
    by_event: Vec<u8>,
    /// The last pid allocated before the first reading, while new threads are counted.
    last_pid: Option<u32>,
    born: HashSet<u32>,
    /// CPUs whose events are missing since a time, and those with events missing between readings.
    lost: BTreeMap<CpuId, Time>,
    holes: BTreeSet<CpuId>,
    /// Over all files.
    outer: (Time, Time),
    notes: Vec<String>,
}

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The kernel's count and the trace's, a sentence for each kind.
    pub compared: Vec<String>,
    /// Contradictions between the two.
    pub wrong: Vec<String>,
}

impl Audit {
    /// An audit by these readings.
    pub fn new(readings: &[Reading], clock: &Clock, unseen: Unseen) -> Audit {
        let mut audit =
            Audit { by_event: vec![0; 0x1000], outer: (Time(i64::MAX), Time(i64::MIN)), ..Audit::default() };
        let pair = |file: CounterFile| {
            let mut of = readings.iter().filter(|reading| reading.file == file as u16);
            let first = of.next()?;
            Some((first, of.next_back()?))
        };
        if !readings.is_empty() && pair(CounterFile::Stat).is_none() {
            audit.notes.push("the kernel's counters were not read at both ends: nothing is compared with them".into());
        }
        if let Some((first, last)) = pair(CounterFile::Interrupts) {
            audit.interrupts(first, last, clock, unseen);
        }
        if let Some((first, last)) = pair(CounterFile::Softirqs) {
            audit.softirqs(first, last, clock);
        }
        if let Some((first, last)) = pair(CounterFile::Stat) {
            audit.total("context switches", Rule::Same, (first, last, "ctxt"), clock, &[SWITCH]);
            let pids = pair(CounterFile::Loadavg).and_then(|(first, last)| Some((last_pid(first)?, last_pid(last)?)));
            let births = line_number(last.text, "processes").zip(line_number(first.text, "processes"));
            let births = births.map_or(u64::MAX, |(last, first)| last.wrapping_sub(first));
            // Pids are allocated in ascending order; once all were used, they start from the beginning.
            let ascending = |&(first, last): &(u32, u32)| births <= u64::from(last.saturating_sub(first)) + IN_FLIGHT;
            audit.last_pid = pids.filter(ascending).map(|(first, _)| first);
            if audit.last_pid.is_some() && !unseen.has(Capability::Wakeups) && !unseen.has(Capability::Births) {
                audit.total("new threads", Rule::Same, (first, last, "processes"), clock, &[RUNNABLE]);
            }
        }
        if let Some((first, last)) = pair(CounterFile::Vmstat).filter(|_| !unseen.has(Capability::Faults)) {
            audit.total("page faults", Rule::Told, (first, last, "pgfault"), clock, &[PAGE_FAULT]);
        }
        for class in &audit.classes {
            let (from, to) = class.window.outer;
            audit.outer = (audit.outer.0.min(from), audit.outer.1.max(to));
        }
        audit
    }

    fn interrupts(&mut self, first: &Reading, last: &Reading, clock: &Clock, unseen: Unseen) {
        let (Some(before), Some(after)) = (Table::read(first.text), Table::read(last.text)) else { return };
        let window = Window::between(first, last, clock);
        for (line, name, numbers, seen_by) in SYSTEM {
            let counted = after.growth(&before, line);
            if !unseen.has(seen_by) && !counted.is_empty() {
                self.class(name, Rule::Same, counted, window, numbers);
            }
        }
        if unseen.has(Capability::Interrupts) {
            return;
        }
        let mut cells = BTreeMap::<u32, u64>::new();
        let lines = after
            .lines()
            .filter(|(line, chip)| line.parse::<u32>().is_ok() && CHIPS.iter().any(|known| chip.starts_with(known)));
        for (cpu, n) in lines.flat_map(|(line, _)| after.growth(&before, line)) {
            *cells.entry(cpu).or_default() += n;
        }
        self.class("interrupts of devices", Rule::NoMore, cells, window, &DEVICES.collect::<Vec<_>>());
    }

    fn softirqs(&mut self, first: &Reading, last: &Reading, clock: &Clock) {
        let (Some(before), Some(after)) = (Table::read(first.text), Table::read(last.text)) else { return };
        let window = Window::between(first, last, clock);
        for (nr, name) in softirq::NAMES.into_iter().enumerate() {
            let numbers = if nr == 0 { &[SOFTIRQ][..] } else { &[] };
            self.class(&format!("softirqs {name}"), Rule::Same, after.growth(&before, name), window, numbers);
        }
    }

    /// A count of all CPUs together.
    fn total(&mut self, name: &str, rule: Rule, of: (&Reading, &Reading, &str), clock: &Clock, numbers: &[u32]) {
        let (first, last, line) = of;
        let (Some(before), Some(after)) = (line_number(first.text, line), line_number(last.text, line)) else { return };
        let cell = Cell { kernel: after.wrapping_sub(before), ..Cell::default() };
        let (name, window) = (name.to_string(), Window::between(first, last, clock));
        self.classes.push(Class { name, rule, cells: BTreeMap::from([(None, cell)]), window });
        self.counted_by(numbers);
    }

    fn class(
        &mut self,
        name: &str,
        rule: Rule,
        kernel: impl IntoIterator<Item = (u32, u64)>,
        window: Window,
        numbers: &[u32],
    ) {
        let cells = kernel.into_iter().map(|(cpu, kernel)| (Some(cpu), Cell { kernel, ..Cell::default() })).collect();
        self.classes.push(Class { name: name.to_string(), rule, cells, window });
        self.counted_by(numbers);
    }

    fn counted_by(&mut self, numbers: &[u32]) {
        for &number in numbers {
            self.by_event[number as usize] = self.classes.len() as u8;
        }
    }

    /// Counts an event.
    #[inline]
    pub fn event(&mut self, event: &Event) {
        let place = self.by_event.get(event.what.number() as usize).copied().unwrap_or(0);
        if place != 0 || event.what == What::Lost || !self.lost.is_empty() {
            self.look(event, place.into());
        }
    }

    fn look(&mut self, event: &Event, place: usize) {
        if event.what == What::Lost {
            self.lost.entry(event.cpu).or_insert(event.ts);
        } else if let Some(since) = self.lost.remove(&event.cpu) {
            self.hole(event.cpu, since, event.ts);
        }
        let place = match event.what {
            What::Call(Work::Softirq) if event.arg as usize >= softirq::NAMES.len() => return,
            What::Call(Work::Softirq) if place != 0 => place + event.arg as usize,
            // A record of the running thread is not a switch.
            What::Switch if event.dur != Time::ZERO => return,
            What::Point(Point::Runnable) if place != 0 && !self.is_born(event.arg) => return,
            _ => place,
        };
        let Some(class) = place.checked_sub(1).and_then(|place| self.classes.get_mut(place)) else { return };
        let cell = match class.cells.get_mut(&None) {
            Some(cell) => Some(cell),
            None => class.cells.get_mut(&Some(event.cpu.number())),
        };
        let Some(cell) = cell else { return };
        let within = |(from, to): (Time, Time)| (from..=to).contains(&event.ts);
        cell.min += u64::from(within(class.window.inner));
        cell.max += u64::from(within(class.window.outer));
    }

    /// True if this is the first wakeup of a thread younger than the trace.
    fn is_born(&mut self, pid: u32) -> bool {
        self.last_pid.is_some_and(|last| pid > last) && self.born.insert(pid)
    }

    fn hole(&mut self, cpu: CpuId, from: Time, to: Time) {
        if from <= self.outer.1 && to >= self.outer.0 {
            self.holes.insert(cpu);
        }
    }

    /// The findings, for CPUs that were traced for these intervals; other CPUs recorded nothing, or their blocks may be
    /// `overwritten`.
    pub fn finish(&self, intervals: &[Interval], overwritten: bool) -> Findings {
        if self.classes.is_empty() {
            return Findings { compared: self.notes.clone(), wrong: Vec::new() };
        }
        let mut left_out = self.holes.clone();
        left_out.extend(self.lost.iter().filter(|(_, since)| **since <= self.outer.1).map(|(cpu, _)| *cpu));
        let covers = |i: &&Interval| i.from <= self.outer.0 + ROUNDING && i.to >= self.outer.1 - ROUNDING;
        left_out.extend(intervals.iter().filter(|i| !covers(i)).map(|i| i.cpu));
        let known: BTreeSet<u32> = intervals.iter().map(|i| i.cpu.number()).collect();
        let is_out = |cpu: u32| left_out.contains(&CpuId::new(cpu)) || (overwritten && !known.contains(&cpu));
        let mut findings = Findings { compared: self.notes.clone(), wrong: Vec::new() };
        for class in &self.classes {
            class.judge(is_out, !left_out.is_empty(), known.len() as u64, &mut findings);
        }
        findings
    }
}

impl Class {
    fn judge(&self, is_out: impl Fn(u32) -> bool, any_out: bool, cpus: u64, findings: &mut Findings) {
        let (mut sum, mut out) = (Cell::default(), 0u64);
        for (place, cell) in &self.cells {
            let left_out = place.map_or(any_out, &is_out);
            out += u64::from(left_out);
            if left_out && place.is_some() {
                continue;
            }
            sum.kernel = sum.kernel.saturating_add(cell.kernel);
            (sum.min, sum.max) = (sum.min + cell.min, sum.max + cell.max);
            let slack = if place.is_some() { IN_FLIGHT } else { IN_FLIGHT * cpus };
            let judged = self.rule != Rule::Told && !left_out;
            let missing = judged && cell.kernel > cell.max + slack;
            let more = judged && self.rule == Rule::Same && cell.kernel + slack < cell.min;
            if missing || more {
                let on = place.map_or(String::new(), |cpu| format!(" on cpu {cpu}"));
                findings.wrong.push(format!(
                    "{}{on}: {}, from {:.6} s to {:.6} s: {}",
                    self.name,
                    cell.text(),
                    self.window.inner.0.seconds(),
                    self.window.inner.1.seconds(),
                    if missing { "events are missing" } else { "some events of the trace did not happen" }
                ));
            }
        }
        if self.cells.values().all(|cell| cell.kernel == 0 && cell.max == 0) {
            return;
        }
        let note = match (self.rule, out) {
            (_, 1..) if self.cells.contains_key(&None) => "; not judged, since the trace lacks events".to_string(),
            (_, 1..) => format!("; without {out} of {} CPUs, whose trace lacks events", self.cells.len()),
            (Rule::Told, 0) => "; the kernel also counts those without an exception".to_string(),
            _ => String::new(),
        };
        findings.compared.push(format!("{}: {}{note}", self.name, sum.text()));
    }
}

impl Cell {
    fn text(&self) -> String {
        let Cell { kernel, min, max } = self;
        match min == max {
            true => format!("the kernel counted {kernel}, the trace has {max}"),
            false => format!("the kernel counted {kernel}, the trace has {min} to {max}"),
        }
    }
}

impl Window {
    fn between(first: &Reading, last: &Reading, clock: &Clock) -> Window {
        let at = |tsc: u64| clock.tsc_units(tsc.into());
        Window {
            inner: (at(first.after) + ROUNDING, at(last.before) - ROUNDING),
            outer: (at(first.before) - ROUNDING, at(last.after) + ROUNDING),
        }
    }
}

/// The last allocated pid.
fn last_pid(loadavg: &Reading) -> Option<u32> {
    std::str::from_utf8(loadavg.text).ok()?.split_whitespace().next_back()?.parse().ok()
}
