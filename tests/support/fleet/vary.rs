// SPDX-License-Identifier: BSD-3-Clause
//! A recorded trace, and its variations.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use postprocess::event::date;
use postprocess::event::names::NameId;
use postprocess::event::number::Level;
use postprocess::event::work::Work;
use postprocess::id::{CpuId, Pid};
use postprocess::sink::track::{Item, Track, Tracks};
use postprocess::span::order::order;
use postprocess::span::wait::Reason;
use postprocess::span::what::{Activity, Arc, What};
use postprocess::span::{Span, Spans, NONE};
use postprocess::time::Time;
use postprocess::why::request::{find, Ask, Request};
use postprocess::why::Timeline;

use super::clock::{Changes, Clock};
use super::plan::{Host, Plan};
use crate::Random;

/// From when to when.
type Stretch = (Time, Time);

/// The first day of a fleet: seconds since 1970 of 2026-10-01 12:00 UTC.
const FIRST_DAY: i64 = 1_790_856_000;
/// Interval at which the pace changes by itself: every 100 to 300 us.
const PACES: (u64, u64) = (10_000, 20_000);
/// Size of that change, in hundredths, up and down.
const UNSTEADY: u64 = 12;
/// Duration of a slow wakeup, as a multiple of the recorded one.
const WAKEUP: f64 = 1.5;
/// On a shared CPU, one call in this many is slow, and takes this multiple of the 99th percentile.
const SLOW: (u64, f64) = (25, 6.0);
/// One of how many requests is interrupted by a device that makes it slow.
const INTERRUPTED: u64 = 25;
/// Calls with fewer instances on shared CPUs are not slowed down.
const CALLS: usize = 50;
/// Nor are these, in which threads wait for input from outside, or from which they do not return.
const WAITING: [&str; 9] =
    ["epoll_wait", "poll", "select", "futex", "nanosleep", "clock_nanosleep", "wait4", "exit", "exit_group"];
/// Nor those of which one of a hundred takes longer: activities in the same time would be slow as well.
const LONG: Time = Time(Time::SECOND.0 / 10);
/// The vector of the device.
const VECTOR: u8 = 0x41;

/// A recorded trace, and where in it something can be planted.
#[derive(Debug)]
pub struct Base {
    spans: Spans,
    extent: Stretch,
    wakeups: Vec<Stretch>,
    /// Calls whose threads waited for a CPU that others had.
    shared: BTreeMap<String, Vec<Stretch>>,
    /// For each request a place where its thread executes.
    places: Vec<(CpuId, Time)>,
    /// Duration of a slow request.
    slow: Time,
}

impl Base {
    /// A variation of these spans.
    ///
    /// # Errors
    /// A sentence, if there are no requests in it.
    pub fn new(spans: Spans) -> Result<Base, String> {
        let timeline = Timeline::new(&spans);
        let mut requests = find(&timeline, &Ask::Best)?.requests;
        let extent = timeline.extent;
        let mut runs: BTreeMap<Pid, Vec<&Span>> = BTreeMap::new();
        for span in spans.spans.iter().filter(|span| can_be_interrupted(span)) {
            span.pid.into_iter().for_each(|pid| runs.entry(pid).or_default().push(span));
        }
        let place = |request: &Request| {
            let runs = runs.get(&request.pid)?;
            let from = runs.partition_point(|run| run.start < request.start);
            let within = runs[from..].iter().take_while(|run| run.start + run.dur <= request.end);
            let run = within.take(64).max_by_key(|run| run.dur)?;
            Some((run.cpu?, run.start + run.dur / 2))
        };
        let places = requests.iter().filter_map(place).collect();
        requests.sort_by_key(|request| request.dur());
        let slow = requests.get(requests.len() * 99 / 100).ok_or("no requests")?.dur();
        let is_wakeup = |span: &&Span| matches!(span.what(), What::Arc(Arc::Wakeup { .. }));
        let wakeups = spans.spans.iter().filter(is_wakeup).map(|span| (span.start, span.start + span.dur)).collect();
        let shared = shared(&spans);
        Ok(Base { spans, extent, wakeups: union(wakeups), shared, places, slow })
    }

    /// Number of its spans.
    pub fn rows(&self) -> usize {
        self.spans.spans.len()
    }

    /// The calls that can be slow on a host.
    pub fn calls(&self) -> Vec<String> {
        let fits = |(name, all): &(&String, &Vec<Stretch>)| {
            all.len() >= CALLS && !WAITING.contains(&name.as_str()) && one_of_a_hundred(all) <= LONG
        };
        self.shared.iter().filter(fits).map(|(name, _)| name.clone()).collect()
    }

    /// The spans of a trace of the plan.
    pub fn vary(&self, plan: &Plan, trace: usize) -> Spans {
        let (host, day, mut random) = plan.of(trace);
        let (changes, pauses) = self.changes(host, day, &mut random);
        let mut clock = Clock::new(self.extent.0, changes);
        let mut spans = Spans { meta: self.spans.meta.clone(), names: self.spans.names.clone(), spans: Vec::new() };
        spans.spans.reserve(self.rows() + 2 * pauses.len());
        let name = NameId(spans.names.len() as u32);
        spans.names.extend(host.device.map(ToString::to_string));
        let mut pauses = pauses.into_iter().peekable();
        let mut next: BTreeMap<CpuId, Vec<Time>> = BTreeMap::new();
        for span in &self.spans.spans {
            let end = span.start + span.dur;
            let (from, to) = (clock.at(span.start), clock.at(end));
            while let Some((cpu, at)) = pauses.next_if(|(_, at)| *at < end.max(span.start + Time::UNIT)) {
                next.entry(cpu).or_default().push(at);
            }
            let is_point = span.dur <= Time::UNIT && !span.is_execution();
            let moved = Span { start: from, dur: if is_point { span.dur } else { to - from }, ..*span };
            let mut inside = Vec::new();
            if let Some(coming) = span.cpu.filter(|_| can_be_interrupted(span)).and_then(|cpu| next.get_mut(&cpu)) {
                inside.extend(coming.extract_if(.., |at| span.start < *at && *at + Time::UNIT < end));
            }
            interrupted(moved, &inside, name, &mut clock, &mut spans.spans);
        }
        order(&mut spans.spans);
        let meta = &mut spans.meta;
        meta.host = host.name.clone();
        meta.kernel = super::plan::KERNELS[host.kernel(day)].to_string();
        meta.tracebase = date::utc(FIRST_DAY + day as i64 * 86_400 + (trace as i64 % 60) * 60);
        meta.randomid = trace as u32;
        spans
    }

    /// Changes to the time of a trace, and the CPUs and times of a device's interrupts.
    fn changes(&self, host: &Host, day: usize, random: &mut Random) -> (Changes, Vec<(CpuId, Time)>) {
        let mut changes = Changes::default();
        let (mut at, end) = self.extent;
        // A day is a little busier than another.
        let pace = host.pace as f64 / 100.0 * (1.0 + random.below(5) as f64 / 100.0);
        while at < end {
            let now = 100 - UNSTEADY + random.below(2 * UNSTEADY + 1);
            changes.pace(at, pace * now as f64 / 100.0);
            at += Time((PACES.0 + random.below(PACES.1)) as i64);
        }
        if host.slow_wakeups && host.kernel(day) == 1 {
            self.wakeups.iter().for_each(|wakeup| changes.stretch(*wakeup, WAKEUP));
        }
        if let Some(calls) = host.slow_call.as_ref().and_then(|name| self.shared.get(name)) {
            let slow = one_of_a_hundred(calls).0 as f64 * SLOW.1;
            let chosen = calls.iter().filter(|_| random.below(SLOW.0) == 0).copied().collect();
            let factor = |(from, to): Stretch| (slow / (to - from).0.max(1) as f64).max(1.0);
            union(chosen).into_iter().for_each(|call| changes.stretch(call, factor(call)));
        }
        let mut places = BTreeSet::new();
        if host.device.is_some() {
            places.extend(self.places.iter().filter(|_| random.below(INTERRUPTED) == 0).map(|&(cpu, at)| (at, cpu)));
        }
        let length = |random: &mut Random| Time(self.slow.0 * (100 + random.below(100) as i64) / 100);
        places.iter().for_each(|(at, _)| changes.pause(*at, length(random)));
        (changes, places.into_iter().map(|(at, cpu)| (cpu, at)).collect())
    }
}

/// Duration that only one of a hundred exceeds.
fn one_of_a_hundred(calls: &[Stretch]) -> Time {
    let mut lengths: Vec<Time> = calls.iter().map(|(from, to)| *to - *from).collect();
    lengths.sort_unstable();
    lengths[lengths.len() * 99 / 100]
}

/// Adds a span that a device interrupts right after these moments of the recorded trace.
fn interrupted(span: Span, moments: &[Time], device: NameId, clock: &mut Clock, to: &mut Vec<Span>) {
    let mut rest = span;
    for &moment in moments {
        let (at, until) = (clock.at(moment), clock.at(moment + Time::UNIT));
        let end = rest.start + rest.dur;
        let is_call = matches!(rest.what(), What::Run(activity) if activity.no_value() == NONE);
        to.push(Span { dur: at - rest.start, ret: if is_call { NONE } else { rest.ret }, ..rest });
        let irq = What::Run(Activity::Call(Work::Irq(VECTOR)));
        to.push(Span { start: at, dur: until - at, what: irq, arg: 0, ret: 0, rpc: 0, name: device, ..rest });
        rest = Span { start: until, dur: end - until, ..rest };
    }
    to.push(rest);
}

/// Returns whether a device can interrupt it: a program, or a system call of one.
fn can_be_interrupted(span: &Span) -> bool {
    let What::Run(activity) = span.what() else { return false };
    let is_own = matches!(activity, Activity::User(_));
    is_own || matches!(activity, Activity::Call(work) if work.level() == Level::Syscall)
}

/// Times that overlap, as one.
fn union(mut all: Vec<Stretch>) -> Vec<Stretch> {
    all.sort_unstable();
    let mut apart: Vec<Stretch> = Vec::new();
    for (from, to) in all {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

/// The calls of each name whose threads waited in that time for a CPU that others had.
fn shared(spans: &Spans) -> BTreeMap<String, Vec<Stretch>> {
    let (mut open, mut waited) = (BTreeMap::<Track, Vec<(Option<NameId>, Time)>>::new(), BTreeMap::new());
    let mut found: BTreeMap<String, Vec<Stretch>> = BTreeMap::new();
    let mut tracks = Tracks::new(spans.meta.flags);
    for span in &spans.spans {
        if let (What::Wait(Reason::Cpu), Some(pid)) = (span.what(), span.pid) {
            waited.insert(pid, span.start + span.dur);
            continue;
        }
        let taken: Result<(), Infallible> = tracks.span(span, &mut |item| {
            match item {
                Item::Begin { track, at, name, does, .. } => {
                    let is_call = does.is_some_and(|(work, arg)| work.level() == Level::Syscall && arg != NONE);
                    open.entry(track).or_default().push((is_call.then_some(name), at));
                }
                Item::End { track: track @ Track::Thread(pid), at, .. } => {
                    let Some((Some(name), from)) = open.get_mut(&track).and_then(Vec::pop) else { return Ok(()) };
                    if waited.get(&pid).is_some_and(|until| *until > from) {
                        found.entry(spans.names[name].clone()).or_default().push((from, at));
                    }
                }
                Item::End { track, .. } => drop(open.get_mut(&track).and_then(Vec::pop)),
                _ => {}
            }
            Ok(())
        });
        let Ok(()) = taken;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::sample;
    use postprocess::why::check::check as adds_up;

    /// Time of its CPUs that is not covered exactly once.
    fn faults(spans: &Spans) -> Vec<String> {
        let mut ends: BTreeMap<CpuId, Time> = BTreeMap::new();
        let mut found = Vec::new();
        for span in spans.spans.iter().filter(|span| span.is_execution()) {
            let Some(cpu) = span.cpu else { continue };
            let end = ends.entry(cpu).or_insert(span.start);
            if span.start != *end || span.dur < Time::ZERO {
                found.push(format!("CPU {cpu} at {}: {span:?}", *end));
            }
            *end = (*end).max(span.start + span.dur);
        }
        found
    }

    #[test]
    fn a_variation_covers_the_time_of_its_cpus_as_the_recorded_trace_does() {
        let spans = sample("redis");
        assert_eq!(faults(&spans), [""; 0]);
        let base = Base::new(spans).unwrap();
        let plan = Plan::new(12, &base.calls(), 5);
        let mut slow = 0;
        for trace in 0..plan.traces() {
            let varied = base.vary(&plan, trace);
            assert_eq!(faults(&varied), [""; 0], "{trace}");
            let (more, host) = (varied.spans.len() - base.rows(), plan.of(trace).0);
            assert!(more % 2 == 0 && (more > 0) == host.device.is_some(), "{trace}: {more} for {host:?}");
            slow += more;
            let timeline = Timeline::new(&varied);
            assert_eq!(adds_up(&timeline, &Ask::default()).unwrap(), [""; 0]);
        }
        assert!(slow > 20, "{slow}");
        assert_eq!(base.vary(&plan, 3), base.vary(&plan, 3));
    }
}
