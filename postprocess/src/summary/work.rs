// SPDX-License-Identifier: BSD-3-Clause
//! What took the CPUs' time: programs, system calls, interrupts, faults.
//!
//! A call that was interrupted, or whose thread lost its CPU, is several spans. They are put together again: a system
//! call or fault of a thread goes on until that thread does something that cannot happen inside of it, an interrupt or
//! the scheduler until its CPU does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{end, is_user, name, Threads};
use crate::event::number::{is_execution, level, Level};
use crate::span::{Span, Spans};

/// Everything that took time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Threads of the same name.
    pub programs: Vec<Program>,
    /// System calls, and the scheduler.
    pub calls: Vec<Sum>,
    /// Interrupts and softirqs.
    pub interrupts: Vec<Sum>,
    /// Faults.
    pub faults: Vec<Sum>,
}

/// Something the kernel did, under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Its name.
    pub name: String,
    /// How often.
    pub count: u64,
    /// CPU time, without what interrupted it.
    pub total: i64,
    /// Most CPU time of one.
    pub longest: i64,
    /// Longest from begin to end, with whatever interrupted it and all waiting inside of it.
    pub slowest: i64,
}

/// The threads of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The name.
    pub name: String,
    /// How many threads.
    pub threads: usize,
    /// Time in user code.
    pub user: i64,
    /// Time in system calls, faults and the scheduler.
    pub kernel: i64,
    /// How often a thread got a CPU.
    pub runs: u64,
    /// All time on a CPU, interrupts included.
    pub on_cpu: i64,
    /// The longest without losing it.
    pub longest: i64,
}

/// Adds up all execution.
pub fn add_up(spans: &Spans, threads: &Threads) -> Work {
    let mut kernel = Kernel::default();
    let mut programs = Programs::default();
    for span in spans.spans.iter().filter(|s| s.cpu >= 0 && is_execution(s.event)) {
        programs.add(span, threads);
        kernel.add(span, name(spans, span));
    }
    let programs = programs.finish(threads);
    let mut sums = kernel.finish();
    let mut of = |levels: &[Level]| levels.iter().flat_map(|level| sums.remove(level)).flatten().collect::<Vec<Sum>>();
    let mut work = Work {
        programs,
        calls: of(&[Level::Syscall, Level::Sched]),
        interrupts: of(&[Level::Irq, Level::Softirq]),
        faults: of(&[Level::Trap]),
    };
    for list in [&mut work.calls, &mut work.interrupts, &mut work.faults] {
        list.sort_by(|a, b| (Reverse(a.total), &a.name).cmp(&(Reverse(b.total), &b.name)));
    }
    work
}

/// Where an activity is: a thread, or a CPU.
type Place = (Level, i32);

/// An activity under way.
struct Open<'a> {
    name: &'a str,
    start: i64,
    end: i64,
    total: i64,
}

#[derive(Default)]
struct Kernel<'a> {
    open: HashMap<Place, Open<'a>>,
    sums: BTreeMap<Level, HashMap<&'a str, Sum>>,
}

impl<'a> Kernel<'a> {
    fn add(&mut self, span: &Span, name: &'a str) {
        let user = is_user(span.event);
        let level = if user || span.event & !0xfff != 0 { Level::User } else { level(span.event as u32) };
        // What is on top shows that whatever can only be above it has ended.
        let over = match level {
            Level::User => &[Level::Syscall, Level::Trap, Level::Softirq, Level::Irq, Level::Sched][..],
            Level::Syscall => &[Level::Trap, Level::Softirq, Level::Irq, Level::Sched],
            Level::Trap => &[Level::Softirq, Level::Irq, Level::Sched],
            Level::Sched => &[Level::Softirq, Level::Irq],
            Level::Softirq => &[Level::Irq],
            Level::Irq => &[],
        };
        for &ended in over {
            self.close(place(ended, span));
        }
        if level == Level::User {
            return;
        }
        let place = place(level, span);
        if self.open.get(&place).is_some_and(|open| open.name != name) {
            self.close(place);
        }
        let open = self.open.entry(place).or_insert(Open { name, start: span.start, end: span.start, total: 0 });
        open.total += span.dur;
        open.end = end(span);
    }

    fn close(&mut self, place: Place) {
        let Some(open) = self.open.remove(&place) else { return };
        let sum = self.sums.entry(place.0).or_default().entry(open.name).or_default();
        sum.count += 1;
        sum.total += open.total;
        sum.longest = sum.longest.max(open.total);
        sum.slowest = sum.slowest.max(open.end - open.start);
    }

    fn finish(mut self) -> BTreeMap<Level, Vec<Sum>> {
        let places: Vec<Place> = self.open.keys().copied().collect();
        places.into_iter().for_each(|place| self.close(place));
        let named = |(name, sum): (&str, Sum)| Sum { name: name.to_string(), ..sum };
        self.sums.into_iter().map(|(level, sums)| (level, sums.into_iter().map(named).collect())).collect()
    }
}

/// Calls and faults belong to a thread and move with it, the others stay on their CPU.
fn place(level: Level, span: &Span) -> Place {
    match level {
        Level::Syscall | Level::Trap => (level, span.pid),
        _ => (level, span.cpu),
    }
}

#[derive(Default)]
struct Programs<'a> {
    sums: HashMap<&'a str, (Program, BTreeSet<i32>)>,
    /// Per CPU the thread on it, from when, to when.
    running: HashMap<i32, (i32, i64, i64)>,
}

impl<'a> Programs<'a> {
    fn add(&mut self, span: &Span, threads: &Threads<'a>) {
        let running = self.running.get(&span.cpu).copied();
        match running {
            Some((pid, from, _)) if pid == span.pid => drop(self.running.insert(span.cpu, (pid, from, end(span)))),
            _ => {
                self.end_run(running, threads);
                self.running.insert(span.cpu, (span.pid, span.start, end(span)));
            }
        }
        if span.pid <= 0 {
            return;
        }
        let (program, pids) = self.sums.entry(threads.program(span.pid)).or_default();
        pids.insert(span.pid);
        match level(span.event as u32) {
            _ if is_user(span.event) => program.user += span.dur,
            Level::Syscall | Level::Trap | Level::Sched => program.kernel += span.dur,
            _ => {}
        }
    }

    fn end_run(&mut self, run: Option<(i32, i64, i64)>, threads: &Threads<'a>) {
        let Some((pid @ 1.., from, to)) = run else { return };
        let (program, _) = self.sums.entry(threads.program(pid)).or_default();
        program.runs += 1;
        program.on_cpu += to - from;
        program.longest = program.longest.max(to - from);
    }

    fn finish(mut self, threads: &Threads<'a>) -> Vec<Program> {
        for (_, run) in std::mem::take(&mut self.running) {
            self.end_run(Some(run), threads);
        }
        let named = |(name, (program, pids)): (&str, (Program, BTreeSet<i32>))| Program {
            name: name.to_string(),
            threads: pids.len(),
            ..program
        };
        let mut programs: Vec<Program> = self.sums.into_iter().map(named).collect();
        programs.sort_by(|a, b| (Reverse(a.user + a.kernel), &a.name).cmp(&(Reverse(b.user + b.kernel), &b.name)));
        programs
    }
}
