// SPDX-License-Identifier: BSD-3-Clause
//! Properties that the spans of every trace must have, whatever the events were.

use std::collections::BTreeMap;

use super::what::{Arc, What};
use super::{Span, Spans, Tally};
use crate::event::point::Point;
use crate::event::Interval;
use crate::id::CpuId;
use crate::time::Time;

/// Maximum number of violations reported; the rest is dropped.
const SHOWN: usize = 20;

/// Checks `spans`; every violation is a sentence. In addition to the checks of [`Check`], the list must be ordered by
/// start.
pub fn check(spans: &Spans, intervals: &[Interval], tally: &Tally) -> Vec<String> {
    let mut check = Check::default();
    if let Some(pair) = spans.spans.windows(2).find(|pair| pair[1].start < pair[0].start) {
        check.violated(|| format!("a span at {} comes after one at {}", pair[1].start, pair[0].start));
    }
    spans.spans.iter().for_each(|span| check.span(span));
    check.finish(intervals, tally)
}

/// Checks spans one by one without keeping them: in order, or as [`super::build::Builder::take`] returns them.
///
/// * No duration is negative.
/// * The execution spans of a CPU cover its time without gap or overlap, from the first moment to the last of its
///   interval if that is listed; a span of zero length lies on a seam.
/// * The times in user code, in the kernel, idle, lost, stalled and offline add up to the time of all execution spans.
/// * Every wakeup led to a run, was repeated before the run, or is pending at the end.
#[derive(Debug, Default)]
pub struct Check {
    cpus: BTreeMap<CpuId, Coverage>,
    time: Time,
    wakeups: u64,
    runs: u64,
    found: Vec<String>,
}

/// Time of a CPU that its spans cover so far.
#[derive(Debug)]
struct Coverage {
    /// Start of its first span.
    from: Time,
    /// Start and end of its last span that has a length.
    start: Time,
    end: Time,
}

impl Check {
    /// Checks a span.
    pub fn span(&mut self, span: &Span) {
        match span.what() {
            What::Point(Point::Runnable) => self.wakeups += 1,
            What::Arc(Arc::Wakeup { .. }) => self.runs += 1,
            _ => {}
        }
        if span.dur < Time::ZERO {
            self.violated(|| format!("{} at {} lasts {}", span.event(), span.start, span.dur));
        } else if let Some(cpu) = span.cpu.filter(|_| span.is_execution()) {
            self.cover(cpu, span);
        }
    }

    fn cover(&mut self, cpu: CpuId, &Span { start, dur, .. }: &Span) {
        self.time = self.time.saturating_add(dur);
        let covered = self.cpus.entry(cpu).or_insert(Coverage { from: start, start, end: start });
        let (before, end) = (covered.start, covered.end);
        if dur > Time::ZERO {
            (covered.start, covered.end) = (start, start.saturating_add(dur));
        }
        match (start - end).0 {
            0 => {}
            _ if dur == Time::ZERO && start == before => {}
            gap @ 1.. => self.violated(|| format!("cpu {cpu}: {gap} units from {end} are not covered")),
            _ if dur == Time::ZERO => {
                self.violated(|| format!("cpu {cpu}: a span of no length at {start} is inside another"))
            }
            twice => self.violated(|| format!("cpu {cpu}: {} units before {end} are covered twice", -twice)),
        }
    }

    /// All violations, once every span has been taken.
    pub fn finish(mut self, intervals: &[Interval], tally: &Tally) -> Vec<String> {
        for &Interval { cpu, from, to } in intervals {
            match self.cpus.get(&cpu).map(|covered| (covered.from, covered.end)) {
                None if to > from => self.violated(|| format!("cpu {cpu} has no spans")),
                Some((first, last)) if first > from || last < to => {
                    self.violated(|| format!("cpu {cpu}: spans from {first} to {last}, traced from {from} to {to}"));
                }
                _ => {}
            }
        }
        let parts = [tally.user, tally.system, tally.idle, tally.lost, tally.stalled, tally.offline];
        let all = self.time;
        let parts = parts.into_iter().fold(Time::ZERO, Time::saturating_add);
        if all != parts {
            self.violated(|| format!("user, kernel, idle and lost time add up to {parts} units, all spans to {all}"));
        }
        let (wakeups, runs, repeated, pending) = (self.wakeups, self.runs, tally.repeated, tally.pending);
        if wakeups != runs + repeated + pending {
            let counted = format!("{wakeups} wakeups, but {runs} runs, {repeated} repeated, {pending} pending");
            self.violated(|| counted);
        }
        self.found
    }

    fn violated(&mut self, sentence: impl FnOnce() -> String) {
        if self.found.len() < SHOWN {
            self.found.push(sentence());
        }
    }
}
