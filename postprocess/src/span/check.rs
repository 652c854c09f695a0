// SPDX-License-Identifier: BSD-3-Clause
//! What must hold of every trace's spans, whatever the events were.

use std::collections::BTreeMap;

use super::{Span, Spans, Tally};
use crate::event::number::{is_execution, RUNNABLE, WAKEUP_ARC};
use crate::event::Interval;

/// Violations spoken of before the rest is dropped.
const SHOWN: usize = 20;

/// Checks `spans`; every violation is a sentence.
///
/// * No duration is negative, and the list is ordered by start.
/// * The execution spans of a CPU cover its time without gap or overlap, from the first moment to the last of its
///   interval if that is listed; a span of no length lies on a seam.
/// * The times in user code, in the kernel, idle and lost add up to the time of all execution spans.
/// * Every wakeup led to a run, was repeated before the run, or is pending at the end.
pub fn check(spans: &Spans, intervals: &[Interval], tally: &Tally) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(pair) = spans.spans.windows(2).find(|pair| pair[1].start < pair[0].start) {
        found.push(format!("a span at {} comes after one at {}", pair[1].start, pair[0].start));
    }
    let mut cpus: BTreeMap<i32, Vec<&Span>> = BTreeMap::new();
    for span in &spans.spans {
        if span.dur < 0 {
            found.push(format!("{} at {} lasts {}", span.event, span.start, span.dur));
        }
        if is_execution(span.event) && span.cpu >= 0 {
            cpus.entry(span.cpu).or_default().push(span);
        }
    }
    for (&cpu, spans) in &cpus {
        let interval = intervals.iter().find(|i| i.cpu as i32 == cpu);
        cover(cpu, spans, interval, &mut found);
    }
    for missing in intervals.iter().filter(|i| !cpus.contains_key(&(i.cpu as i32)) && i.to > i.from) {
        found.push(format!("cpu {} has no spans", missing.cpu));
    }
    let all = cpus.values().flatten().fold(0i64, |sum, s| sum.saturating_add(s.dur));
    let parts = [tally.user, tally.system, tally.idle, tally.lost].into_iter().fold(0, i64::saturating_add);
    if all != parts {
        found.push(format!("user, kernel, idle and lost time add up to {parts} units, all spans to {all}"));
    }
    let count = |event| spans.spans.iter().filter(|s| s.event == event).count() as u64;
    let (wakeups, runs) = (count(RUNNABLE as i32), count(WAKEUP_ARC));
    let counted = runs + tally.repeated + tally.pending;
    if wakeups != counted {
        found.push(format!(
            "{wakeups} wakeups, but {runs} runs, {} repeated, {} pending",
            tally.repeated, tally.pending
        ));
    }
    found.truncate(SHOWN);
    found
}

fn cover(cpu: i32, spans: &[&Span], interval: Option<&Interval>, found: &mut Vec<String>) {
    let (long, none): (Vec<&Span>, Vec<&Span>) = spans.iter().partition(|s| s.dur != 0);
    for pair in long.windows(2) {
        let end = pair[0].start + pair[0].dur;
        match pair[1].start - end {
            0 => {}
            gap @ 1.. => found.push(format!("cpu {cpu}: {gap} units from {end} are not covered")),
            overlap => found.push(format!("cpu {cpu}: {} units before {end} are covered twice", -overlap)),
        }
    }
    for span in none {
        let after = long.partition_point(|s| s.start < span.start);
        let inside = after.checked_sub(1).is_some_and(|b| span.start < long[b].start + long[b].dur);
        if inside {
            found.push(format!("cpu {cpu}: a span of no length at {} is inside another", span.start));
        }
    }
    let (Some(interval), Some(first), Some(last)) = (interval, long.first(), long.last()) else { return };
    let end = last.start + last.dur;
    if first.start > interval.from || end < interval.to {
        let (from, to) = (interval.from, interval.to);
        found.push(format!("cpu {cpu}: spans from {} to {end}, traced from {from} to {to}", first.start));
    }
}
