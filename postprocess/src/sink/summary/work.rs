// SPDX-License-Identifier: BSD-3-Clause
//! Work that took the CPUs' time: programs, system calls, interrupts, faults.
//!
//! The events give the number of calls, [`crate::span::whole`] the duration of each.

use serde::Serialize;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap as Named};

use foldhash::HashMap;

use super::end;
use crate::event::names::NameId;
use crate::event::number::Level;
use crate::id::{CpuId, Pid};
use crate::span::what::Activity;
use crate::span::whole::{Whole, Wholes};
use crate::span::Span;
use crate::time::Time;

/// Kernel work of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Name.
    pub name: String,
    /// Number of times that it began.
    pub count: u64,
    /// Number of those that are points in the trace because its source cannot measure their duration.
    pub points: u64,
    /// CPU time, without interruptions.
    pub total: Time,
    /// Most CPU time of a single one.
    pub longest: Time,
    /// Longest time from start to end, with interruptions and all waiting inside.
    pub slowest: Time,
}

impl Sum {
    /// Returns the number of those with times.
    pub fn timed(&self) -> u64 {
        self.count.saturating_sub(self.points)
    }

    /// True if none has a known time.
    pub fn is_untimed(&self) -> bool {
        self.points > 0 && self.timed() == 0
    }
}

/// The threads of one name, or of one control group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Name, or path.
    pub name: String,
    /// Number of threads.
    pub threads: usize,
    /// Time in user code.
    pub user: Time,
    /// Time in system calls, faults and the scheduler.
    pub kernel: Time,
    /// Number of times that a thread got a CPU.
    pub runs: u64,
    /// Total time on a CPU, including interrupts.
    pub on_cpu: Time,
    /// Longest time without losing the CPU.
    pub longest: Time,
}

/// Kernel work, by level and number of the name.
#[derive(Debug, Default)]
pub struct Kernel {
    under_way: Wholes,
    sums: HashMap<(Level, NameId), Sum>,
}

impl Kernel {
    /// Counts work of this level and name that began.
    pub fn begin(&mut self, level: Level, name: NameId) {
        self.sums.entry((level, name)).or_default().count += 1;
    }

    /// Adds a span of execution.
    pub fn add(&mut self, activity: Activity, span: &Span) {
        let level = activity.level();
        if level == Level::Trap && span.dur == Time::ZERO {
            self.sums.entry((level, span.name)).or_default().points += 1;
        }
        self.under_way.add(activity, span, |whole| add(&mut self.sums, whole));
    }

    /// Returns the sums of these levels, most time first. A call that was denied before its entry was seen did not
    /// begin, and is not reported.
    pub fn sums(&self, levels: &[Level], names: &[String]) -> Vec<Sum> {
        let wanted = self
            .sums
            .iter()
            .filter(|((level, _), sum)| levels.contains(level) && (sum.count, sum.total) != (0, Time::ZERO));
        let mut sums: Vec<Sum> = wanted
            .map(|(&(_, name), sum)| Sum { name: names.get(name.index()).cloned().unwrap_or_default(), ..sum.clone() })
            .collect();
        sums.sort_by(|a, b| (Reverse(a.total), &a.name).cmp(&(Reverse(b.total), &b.name)));
        sums
    }

    /// Finishes after all spans; `has_points` is true if spans without length are points in this trace.
    pub fn finish(&mut self, has_points: bool) {
        if !has_points {
            self.sums.values_mut().for_each(|sum| sum.points = 0);
        }
        self.under_way.finish(|whole| add(&mut self.sums, whole));
    }
}

fn add(sums: &mut HashMap<(Level, NameId), Sum>, whole: &Whole) {
    let sum = sums.entry((whole.work.level(), whole.name)).or_default();
    sum.total += whole.own;
    sum.longest = sum.longest.max(whole.own);
    sum.slowest = sum.slowest.max(whole.end - whole.start);
}

/// A thread on a CPU.
#[derive(Clone, Copy, Debug)]
struct Run {
    thread: Option<Pid>,
    from: Time,
    to: Time,
}

/// Work of each thread.
#[derive(Debug, Default)]
pub struct Programs {
    threads: HashMap<Pid, Program>,
    running: BTreeMap<Option<CpuId>, Run>,
}

impl Programs {
    /// Adds a span of execution.
    pub fn add(&mut self, activity: Activity, span: &Span) {
        let new = Run { thread: span.thread(), from: span.start, to: end(span) };
        let run = self.running.entry(span.cpu).or_insert(new);
        if run.thread == span.thread() {
            run.to = end(span);
        } else {
            let ended = std::mem::replace(run, new);
            self.end_run(ended);
        }
        let Some(thread) = span.thread() else { return };
        let thread = self.threads.entry(thread).or_default();
        match activity {
            Activity::User(_) => thread.user += span.dur,
            Activity::Thread(_) => thread.kernel += span.dur,
            Activity::Call(_) if !activity.interrupts() => thread.kernel += span.dur,
            _ => {}
        }
    }

    fn end_run(&mut self, Run { thread, from, to }: Run) {
        if let Some(thread) = thread {
            let thread = self.threads.entry(thread).or_default();
            thread.runs += 1;
            thread.on_cpu += to - from;
            thread.longest = thread.longest.max(to - from);
        }
    }

    /// Ends the runs after all spans have been added.
    pub fn finish(&mut self) {
        for run in std::mem::take(&mut self.running).into_values() {
            self.end_run(run);
        }
    }

    /// Adds up the threads of each name; returns the names with most time first.
    pub fn by<'a>(&self, name: impl Fn(Pid) -> &'a str) -> Vec<Program> {
        let mut sums: Named<&str, Program> = Named::new();
        for (&pid, thread) in &self.threads {
            let sum = sums.entry(name(pid)).or_default();
            sum.threads += 1;
            sum.user += thread.user;
            sum.kernel += thread.kernel;
            sum.runs += thread.runs;
            sum.on_cpu += thread.on_cpu;
            sum.longest = sum.longest.max(thread.longest);
        }
        let mut programs: Vec<Program> =
            sums.into_iter().map(|(name, program)| Program { name: name.to_string(), ..program }).collect();
        programs.sort_by(|a, b| (Reverse(a.user + a.kernel), &a.name).cmp(&(Reverse(b.user + b.kernel), &b.name)));
        programs
    }
}
