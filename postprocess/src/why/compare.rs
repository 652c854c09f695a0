// SPDX-License-Identifier: BSD-3-Clause
//! Slow requests against normal ones: by how much each cause is larger, and how many requests have it.
//!
//! CPUs that stood still make any request slow and hide other causes. So slow requests are first chosen by the rest of
//! their time, and by all of it only if nothing stands out in that.

use std::ops::Range;

use serde::Serialize;

use super::cause::{Causes, Kind, NAMELESS};
use super::detail;
use super::event::{Event, Events};
use super::example::{examples, Example};
use super::request::Request;
use super::rules::{Pace, Rules, BEYOND};
use super::sweep::{sweep_together, Blamed, Sum};
use super::timeline::Timeline;
use super::verdict;
use super::Question;
use crate::event::names::NameId;
use crate::span::wait::Reason;
use crate::time::Time;

/// Least number of slow requests, given four times as many or more; of fewer requests, a quarter is slow.
const FEWEST: usize = 5;
/// Fewer requests are not compared.
const COMPARED_MIN: usize = 4;
/// Slow requests must exceed normal ones by this part of the normal ones, or nothing stands out.
const EXCESS_MIN: f64 = 0.2;
/// That part if requests are few: the slowest of a few may by chance alone be far from the middle.
const EXCESS_MIN_OF_FEW: f64 = 1.0;
/// They must also exceed them by this time: ticks, softirqs and periodic work of programs cost any request as much.
pub const EXCESS_TIME_MIN: Time = Time(20_000);
/// Or they must occur so often that their excess is this part of the time that all requests would take if they were
/// normal.
const EXCESS_SHARE_MIN: f64 = 0.1;
/// Least part of the excess at which a cause counts.
const WORTH: f64 = 0.02;
/// The frequency of a cause is reported if it is this many times as high, higher by this much, and at least this high.
const OFTEN: [f64; 3] = [1.5, 1.0, 2.0];

/// Sum of each cause, by its number, over some requests.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    requests: usize,
    time: Time,
    by_cause: Vec<(Sum, usize)>,
}

impl Totals {
    /// Adds a request of this duration.
    pub fn add(&mut self, dur: Time, sums: &[(u32, Sum)]) {
        self.requests += 1;
        self.time += dur;
        for (cause, sum) in sums.iter().filter(|(_, sum)| sum.time > Time::ZERO) {
            self.put(*cause, *sum, 1);
        }
    }

    /// Adds other totals; `numbers` holds the number that each of their causes has here.
    pub fn add_all(&mut self, others: &Totals, numbers: &[u32]) {
        self.requests += others.requests;
        self.time += others.time;
        others.by_cause.iter().zip(numbers).for_each(|((sum, requests), cause)| self.put(*cause, *sum, *requests));
    }

    fn put(&mut self, cause: u32, sum: Sum, requests: usize) {
        let cause = cause as usize;
        if self.by_cause.len() <= cause {
            self.by_cause.resize(cause + 1, Default::default());
        }
        self.by_cause[cause].0 += sum;
        self.by_cause[cause].1 += requests;
    }

    /// Returns the time that was divided.
    pub fn divided(&self) -> Time {
        self.by_cause.iter().map(|(sum, _)| sum.time).sum()
    }

    /// Returns the number of requests and their mean duration.
    pub fn side(&self) -> Side {
        Side { count: self.requests, mean: self.mean() }
    }

    /// Returns the mean duration.
    fn mean(&self) -> f64 {
        self.time.0 as f64 / self.requests.max(1) as f64
    }

    /// Returns, for a cause, the mean time and number of stretches per request, its pace, and the number of requests
    /// that have it.
    pub fn of(&self, cause: u32) -> Mean {
        let (sum, requests) = self.by_cause.get(cause as usize).copied().unwrap_or_default();
        let each = |all: i64| all as f64 / self.requests.max(1) as f64;
        let pace = if sum.time > Time::ZERO { sum.work as f64 / sum.time.0 as f64 } else { 0.0 };
        Mean { time: each(sum.time.0), parts: each(sum.parts), pace, requests }
    }

    /// Returns the causes that occur.
    fn causes(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.by_cause).filter(|(_, (sum, _))| sum.time > Time::ZERO).map(|(cause, _)| cause)
    }
}

/// Pace in the examined requests and in those that they are compared with, in the unit of the trace's [`Pace`].
pub type Paces = (f64, f64);

/// Mean of a cause over several requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    /// Time per request.
    pub time: f64,
    /// Stretches of time per request.
    pub parts: f64,
    /// Pace at which it was done; 0 if nothing was counted.
    pub pace: f64,
    /// Number of requests that have it.
    pub requests: usize,
}

/// Slow requests against normal ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// The slow ones.
    pub slow: Side,
    /// Number of requests asked for; those that are not beyond the normal ones are skipped.
    pub slow_asked: usize,
    /// The normal ones.
    pub normal: Side,
    /// Mean time by which slow requests exceed normal ones.
    pub excess: f64,
    /// Causes that are larger in slow requests, largest first; empty if nothing stands out.
    pub causes: Vec<Excess>,
    /// Events of the slow requests, those with the longest first; empty if nothing stands out.
    pub events: Vec<Event>,
    /// Number of events.
    pub event_count: usize,
    /// Number of causes that are not shown.
    pub left_out: usize,
    /// Time in which CPUs stood still, among the requests slowest with it, if everything above excludes that time.
    pub apart: Option<Apart>,
    /// Share of the excess that belongs to no listed cause.
    pub unexplained: f64,
}

impl Compared {
    /// Returns the separate part if it is larger than any listed cause: then it is the most important result.
    pub fn mostly(&self) -> Option<&Apart> {
        self.apart.as_ref().filter(|apart| self.causes.first().is_none_or(|first| apart.cause.time > first.time))
    }
}

/// CPUs that stood still, separate from all other causes: among the requests that are the slowest with that time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apart {
    /// Number of these requests.
    pub slow: usize,
    /// Mean time by which they exceed normal ones.
    pub excess: f64,
    /// Part of the excess in which CPUs stood still; its rank is 0.
    pub cause: Excess,
}

/// Some of the requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Side {
    /// Number of requests.
    pub count: usize,
    /// Their mean duration.
    pub mean: f64,
}

/// A cause with more time in slow requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Excess {
    /// 1 for the largest; 0 for the one reported separately from the list.
    pub rank: usize,
    /// Cause, in words.
    pub cause: String,
    /// Kind of the cause.
    pub kind: Kind,
    /// Program and thread, call or interrupt to blame; empty for none.
    pub culprit: String,
    /// Mean time by which it is larger in slow requests.
    pub time: f64,
    /// That time as a part of the whole excess.
    pub share: f64,
    /// Number of slow requests that have it.
    pub in_slow: usize,
    /// Number of normal requests that have it.
    pub in_normal: usize,
    /// Further details.
    pub detail: Vec<String>,
    /// Slow requests with the most time of it.
    pub examples: Vec<Example>,
}

/// A cause of all requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Cause, in words.
    pub cause: String,
    /// Kind of the cause.
    pub kind: Kind,
    /// Program, thread, call or interrupt to blame.
    pub culprit: String,
    /// Mean time per request.
    pub time: f64,
    /// Its time as a part of all time.
    pub share: f64,
    /// Number of requests that have it.
    pub requests: usize,
}

/// Returns how many of `count` requests to treat as slow.
fn slow_asked(count: usize, slow: f64) -> usize {
    ((count as f64 * slow).ceil() as usize).max(FEWEST.min(count / 4))
}

/// True if a quarter of the requests is less than the usual minimum of slow ones.
pub fn are_few(count: usize) -> bool {
    count < 4 * FEWEST
}

/// Returns the part by which slow ones of this many requests must exceed normal ones.
pub fn excess_min(count: usize) -> f64 {
    if are_few(count) {
        EXCESS_MIN_OF_FEW
    } else {
        EXCESS_MIN
    }
}

/// Returns the rules for the page of a trace with this many requests, which compares other requests.
pub fn rules(timeline: &Timeline, count: usize) -> Rules {
    Rules {
        excess_min: excess_min(count),
        time_min: EXCESS_TIME_MIN.0,
        share_min: EXCESS_SHARE_MIN,
        worth: WORTH,
        causes: Question::default().top,
        looked_at: detail::LOOKED_AT,
        names: detail::NAMES,
        of_cpus: detail::OF_CPUS.map(word).to_vec(),
        often: OFTEN,
        named: verdict::NAMED,
        named_min: verdict::SHARE_MIN,
        beyond: BEYOND,
        pace: timeline.meter.pace(),
    }
}

/// Returns the name of a kind of cause, in one word.
pub fn word(kind: Kind) -> String {
    format!("{kind:?}").to_lowercase()
}

/// Returns the ranges of slow and of normal requests among all, ordered by duration; `None` if there are too few. No
/// request is in both.
pub fn ranges(count: usize, slow: f64, normal: &Range<f64>) -> Option<(Range<usize>, Range<usize>)> {
    let slow = slow_asked(count, slow);
    let at = |part: f64| (count as f64 * part).floor() as usize;
    let middle = at(normal.start)..at(normal.end).max(at(normal.start) + 1).min(count);
    (count >= COMPARED_MIN).then(|| (count.saturating_sub(slow).max(middle.end)..count, middle))
}

/// Checks that the normal requests leave some slow ones. Too few requests to compare at all are not an error.
///
/// # Errors
/// A sentence, if the range of normal requests leaves none that are slow.
pub fn comparable(count: usize, question: &Question) -> Result<(), String> {
    let Range { start, end } = question.normal;
    match ranges(count, question.slow, &question.normal) {
        Some((slow, _)) if slow.is_empty() => {
            let [from, to] = [start, end].map(|part| (part * 1e4).round() / 1e2);
            Err(format!("nothing to compare: none of {count} requests is slower than --normal {from}..{to}"))
        }
        _ => Ok(()),
    }
}

/// Input of the comparison.
#[derive(Debug)]
pub struct Data<'a> {
    /// The trace.
    pub timeline: &'a Timeline<'a>,
    /// All requests.
    pub requests: &'a [Request],
    /// Page that shows the trace.
    pub page: &'a str,
    /// Number of causes shown.
    pub top: usize,
}

/// Returns the causes of all requests' time, and the number of causes that are not shown.
pub fn parts(data: &Data, causes: &Causes, all: &Totals, blamed: &Blamed) -> (Vec<Part>, usize) {
    let mut list: Vec<(u32, Mean)> = all.causes().map(|cause| (cause, all.of(cause))).collect();
    list.sort_by(|a, b| b.1.time.total_cmp(&a.1.time).then(a.0.cmp(&b.0)));
    let left_out = list.len().saturating_sub(data.top);
    list.truncate(data.top);
    let parts = list.iter().map(|(cause, mean)| {
        let thread = blamed.alone(*cause).map(|pid| data.timeline.name(pid));
        Part {
            cause: causes.text(*cause, data.timeline, thread.as_deref()),
            kind: causes.cause(*cause).kind,
            culprit: culprit(data.timeline, causes, *cause, thread),
            time: mean.time,
            share: mean.time / all.mean().max(1.0),
            requests: mean.requests,
        }
    });
    (parts.collect(), left_out)
}

/// Returns how long CPUs stood still, given the sums of a request.
pub fn stood_still(causes: &Causes, sums: &[(u32, Sum)]) -> Time {
    sums.iter().filter(|(cause, _)| is_still(causes, *cause)).map(|(_, sum)| sum.time).sum()
}

fn is_still(causes: &Causes, cause: u32) -> bool {
    causes.cause(cause).kind == Kind::Stalled
}

/// Returns the numbers of requests by duration, less the time `without` of each.
pub fn order(requests: &[Request], without: &[Time]) -> Vec<u32> {
    let without = |n: u32| without.get(n as usize).copied().unwrap_or_default();
    let mut order: Vec<u32> = (0..requests.len() as u32).collect();
    order.sort_by_key(|&n| requests[n as usize].dur() - without(n));
    order
}

/// Compares slow requests with normal ones. All requests are ordered by thread and start; `still` is how long CPUs
/// stood still in each. `None` if there are too few.
pub fn compare(data: &Data, causes: &mut Causes, question: &Question, still: &[Time]) -> Option<Compared> {
    let sides = |causes: &mut Causes, without: &[Time]| Sides::new(data, causes, question, without);
    let whole = sides(causes, &[])?;
    let Some(cause) = whole.still(causes) else { return Some(whole.compared(data, causes, question)) };
    let rest = sides(causes, still)?.compared(data, causes, question);
    if rest.causes.is_empty() {
        return Some(whole.compared(data, causes, question));
    }
    let excess = whole.slow.mean() - whole.normal.mean();
    let events = whole.events(data, causes);
    let cause = whole.excesses(data, causes, vec![(cause, None, whole.more(cause))], &events).pop();
    let apart = cause.map(|cause| Apart { slow: whole.slow.requests, excess, cause: Excess { rank: 0, ..cause } });
    // The slowest requests are those by all of their time.
    Some(Compared { apart, events: events.list, event_count: events.count, ..rest })
}

/// The slow requests and the normal ones.
struct Sides {
    slow: Totals,
    normal: Totals,
    /// Threads to blame in the slow requests.
    blamed: Blamed,
    /// Numbers of the slow requests, and the time of each cause in each of them.
    slowest: Vec<(u32, Vec<(u32, Time)>)>,
}

impl Sides {
    /// Chooses both by duration, less the time `without` of each in which CPUs stood still, if given.
    fn new(data: &Data, causes: &mut Causes, question: &Question, without: &[Time]) -> Option<Sides> {
        let order = order(data.requests, without);
        let (slow, normal) = ranges(order.len(), question.slow, &question.normal)?;
        let mut sides = Sides {
            slow: Totals::default(),
            normal: Totals::default(),
            blamed: Blamed::default(),
            slowest: Vec::new(),
        };
        for (range, is_slow) in [(normal, false), (slow, true)] {
            let mut numbers = order[range].to_vec();
            numbers.sort_unstable();
            let some: Vec<Request> = numbers.iter().map(|&n| data.requests[n as usize]).collect();
            let each = |(side, slowest): &mut (Totals, Vec<_>), causes: &Causes, n: usize, sums: &[(u32, Sum)]| {
                let number = numbers[n];
                let told = |(cause, _): &&(u32, Sum)| without.is_empty() || !is_still(causes, *cause);
                let rest: Vec<(u32, Sum)> = sums.iter().filter(told).copied().collect();
                side.add(some[n].dur() - without.get(number as usize).copied().unwrap_or_default(), &rest);
                if is_slow {
                    slowest.push((number, rest.iter().map(|(cause, sum)| (*cause, sum.time)).collect::<Vec<_>>()));
                }
            };
            let side = if is_slow { &mut sides.slow } else { &mut sides.normal };
            let done = |(its, slowest): (Totals, Vec<(u32, Vec<_>)>), numbers: &[u32]| {
                side.add_all(&its, numbers);
                let known = |(cause, time): (u32, Time)| (numbers[cause as usize], time);
                let slowest = slowest.into_iter().map(|(n, sums)| (n, sums.into_iter().map(known).collect()));
                sides.slowest.extend(slowest);
            };
            let blamed = sweep_together(data.timeline, causes, &some, Default::default, each, done);
            if is_slow {
                sides.blamed = blamed;
            }
        }
        Some(sides)
    }

    /// Returns the cause that CPUs stood still, if it is a part of the excess that counts.
    fn still(&self, causes: &Causes) -> Option<u32> {
        let worth = |cause: &u32| self.more(*cause) > WORTH * (self.slow.mean() - self.normal.mean());
        self.slow.causes().find(|cause| is_still(causes, *cause)).filter(worth)
    }

    /// Returns by how much the mean time of a cause is larger in slow requests.
    fn more(&self, cause: u32) -> f64 {
        self.slow.of(cause).time - self.normal.of(cause).time
    }

    /// Returns the causes that are larger in slow requests. If the slow ones are few and take little longer, nothing
    /// stands out.
    fn compared(&self, data: &Data, causes: &mut Causes, question: &Question) -> Compared {
        let (slow, normal) = (&self.slow, &self.normal);
        let excess = slow.mean() - normal.mean();
        let mut compared = Compared {
            slow: slow.side(),
            slow_asked: slow_asked(data.requests.len(), question.slow),
            normal: normal.side(),
            excess,
            ..Compared::default()
        };
        let is_rare = excess * (slow.requests as f64) < EXCESS_SHARE_MIN * normal.mean() * data.requests.len() as f64;
        if excess < excess_min(data.requests.len()) * normal.mean()
            || (is_rare && excess < question.excess_min.0 as f64)
        {
            return compared;
        }
        let mut list = ranked(slow, normal, &data.timeline.meter.pace());
        compared.left_out = list.len().saturating_sub(data.top);
        list.truncate(data.top);
        let events = self.events(data, causes);
        compared.causes = self.excesses(data, causes, list, &events);
        (compared.events, compared.event_count) = (events.list, events.count);
        compared.unexplained = 1.0 - compared.causes.iter().map(|cause| cause.share).sum::<f64>();
        compared
    }

    /// Returns the events of the slow requests.
    fn events(&self, data: &Data, causes: &mut Causes) -> Events {
        Events::new(data, causes, self.slowest.iter().map(|(number, _)| *number))
    }

    /// Describes the excess of these causes.
    fn excesses(
        &self,
        data: &Data,
        causes: &mut Causes,
        list: Vec<(u32, Option<Paces>, f64)>,
        events: &Events,
    ) -> Vec<Excess> {
        let (slow, normal) = (&self.slow, &self.normal);
        let numbers: Vec<u32> = self.slowest.iter().map(|(number, _)| *number).collect();
        let wanted: Vec<Vec<u32>> = list.iter().map(|(cause, ..)| vec![*cause]).collect();
        let details = detail::of(data, causes, &numbers, &wanted);
        let excesses = list.into_iter().zip(details).enumerate().map(|(n, ((cause, pace, time), mut notes))| {
            let thread = self.blamed.alone(cause).map(|pid| data.timeline.name(pid));
            let (its, usual) = (slow.of(cause), normal.of(cause));
            let text = causes.text(cause, data.timeline, thread.as_deref());
            let [factor, more, least] = OFTEN;
            if its.parts >= factor * usual.parts && its.parts >= usual.parts + more && its.parts >= least {
                notes.insert(0, format!("{:.1} per slow request, {:.1} per normal one", its.parts, usual.parts));
            }
            Excess {
                rank: n + 1,
                cause: with_pace(text, pace, &data.timeline.meter.pace()),
                kind: causes.cause(cause).kind,
                culprit: culprit(data.timeline, causes, cause, thread),
                time,
                share: time / (slow.mean() - normal.mean()),
                in_slow: its.requests,
                in_normal: usual.requests,
                detail: notes,
                examples: examples(data, &self.slowest, cause, events),
            }
        });
        excesses.collect()
    }
}

/// Returns causes with the part that each adds to the difference between the means of two sets of requests, largest
/// first: by more of it (or less, if `its` are faster), or by the same work at another pace.
pub fn ranked(its: &Totals, usual: &Totals, pace: &Pace) -> Vec<(u32, Option<Paces>, f64)> {
    let excess = its.mean() - usual.mean();
    let mut list = Vec::new();
    for cause in 0..its.by_cause.len().max(usual.by_cause.len()) as u32 {
        let (its, usual) = (its.of(cause), usual.of(cause));
        let by_pace = pace.longer((its.pace, its.time), (usual.pace, usual.time), excess < 0.0);
        list.push((cause, None, its.time - usual.time - by_pace));
        list.push((cause, Some((its.pace, usual.pace)), by_pace));
    }
    list.retain(|(.., time)| excess != 0.0 && time / excess >= WORTH);
    list.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()).then(a.0.cmp(&b.0)));
    list
}

/// Returns a cause in words, with its pace if the pace is what differs.
pub fn with_pace(text: String, paces: Option<Paces>, pace: &Pace) -> String {
    match paces {
        Some((its, usual)) => format!("{text}, {}", pace.text(its, usual)),
        None => text,
    }
}

/// Returns the name of the thread (if it is only one), program, call or interrupt to blame for a cause.
pub fn culprit(timeline: &Timeline, causes: &Causes, cause: u32, thread: Option<String>) -> String {
    let cause = causes.cause(cause);
    if matches!(cause.kind, Kind::Network | Kind::Resent) {
        return "network".to_string();
    }
    let named = |name: NameId| timeline.spans.names.get(name.index()).cloned().unwrap_or_default();
    let program = |id: NameId| timeline.programs.get(id.index()).cloned();
    let waited_for = Some(causes.awaited(cause.chain)).filter(|id| *id != NAMELESS).and_then(program);
    let thread = thread.filter(|_| cause.by != NAMELESS || waited_for.is_some());
    let by = program(cause.by).filter(|_| cause.by != NAMELESS);
    let own = || match (named(cause.name), named(cause.ended)) {
        (name, ended) if ended.is_empty() || (&*name, &*ended) == (Reason::Disk.name(), "BH:timer") => name,
        (_, ended) => ended,
    };
    thread.or(by).or(waited_for).unwrap_or_else(own)
}
