// SPDX-License-Identifier: BSD-3-Clause
//! Slow requests against normal ones: by how much each cause is larger, and in how many of them it occurs.
//!
//! CPUs that stood still make any request slow, and hide what makes some slow. So which are slow is asked of the rest
//! of their time first, and only if nothing stands out in that, of all of it.

use crate::event::names::NameId;
use crate::time::Time;
use std::ops::Range;

use serde::Serialize;

use super::cause::{Causes, Kind, NAMELESS};
use super::detail::{self, Detail};
use super::request::Request;
use super::sweep::{sweep_together, Sum};
use super::timeline::Timeline;
use super::Question;

/// Slow requests, at least; fewer than four times as many are not compared.
pub const FEWEST: usize = 5;
/// Slow ones must take longer than normal ones by this part of those, or nothing stands out.
pub const EXCESS_MIN: f64 = 0.2;
/// And by this time: ticks, softirqs and what programs do now and then by themselves cost any request as much.
pub const EXCESS_TIME_MIN: Time = Time(20_000);
/// Or so often that what they take longer is this part of what all would take if they were normal.
const EXCESS_SHARE_MIN: f64 = 0.1;
/// A cause counts that makes this part of the excess at least.
const WORTH: f64 = 0.02;
/// Requests shown for each cause.
const SHOWN: usize = 3;
/// The same work is slower if it is done at less than this part of the usual instructions per cycle.
const OTHER: f64 = 0.9;

/// What went into each cause, by its number, over some requests.
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

    /// Adds other totals; each of their causes has another number here.
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

    /// Time that was divided.
    pub fn divided(&self) -> Time {
        self.by_cause.iter().map(|(sum, _)| sum.time).sum()
    }

    /// How many, and their mean duration.
    pub fn side(&self) -> Side {
        Side { count: self.requests, mean: self.mean() }
    }

    /// The mean duration.
    fn mean(&self) -> f64 {
        self.time.0 as f64 / self.requests.max(1) as f64
    }

    /// Of a cause: time in each request, stretches in each, instructions per cycle, in how many.
    pub fn of(&self, cause: u32) -> Mean {
        let (sum, requests) = self.by_cause.get(cause as usize).copied().unwrap_or_default();
        let each = |all: i64| all as f64 / self.requests.max(1) as f64;
        let pace = if sum.time > Time::ZERO { sum.work as f64 / sum.time.0 as f64 / 16.0 } else { 0.0 };
        Mean { time: each(sum.time.0), parts: each(sum.parts), pace, requests }
    }

    /// The causes that are there.
    fn causes(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.by_cause).filter(|(_, (sum, _))| sum.time > Time::ZERO).map(|(cause, _)| cause)
    }
}

/// Instructions per cycle in the requests that are looked at, and in those that they are compared with.
pub type Paces = (f64, f64);

/// A cause in one of several requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    /// Time of it in each.
    pub time: f64,
    /// Stretches of time of it in each.
    pub parts: f64,
    /// Instructions per cycle; 0 where they were not counted.
    pub pace: f64,
    /// In how many it is.
    pub requests: usize,
}

/// Slow requests against normal ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// The slow ones.
    pub slow: Side,
    /// The normal ones.
    pub normal: Side,
    /// How much longer a slow one takes than a normal one.
    pub excess: f64,
    /// What the slow ones have more of, most first; none if nothing stands out.
    pub causes: Vec<Excess>,
    /// Causes that are not shown, and the share of the excess that they and smaller ones make.
    pub left_out: usize,
    /// If all of the above is without the time in which CPUs stood still: what that makes among the slowest with it.
    pub apart: Option<Apart>,
    /// The share of the excess that no cause in the list makes.
    pub unexplained: f64,
}

impl Compared {
    /// What is told apart, if it makes more than any cause of the list: then it is what to know first.
    pub fn mostly(&self) -> Option<&Apart> {
        self.apart.as_ref().filter(|apart| self.causes.first().is_none_or(|first| apart.cause.time > first.time))
    }
}

/// CPUs that stood still, apart from all else: among the requests that are the slowest with that time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apart {
    /// How many those are.
    pub slow: usize,
    /// How much longer one of them takes than a normal one.
    pub excess: f64,
    /// What of that is time in which CPUs stood still; its rank is 0.
    pub cause: Excess,
}

/// Some of the requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Side {
    /// How many.
    pub count: usize,
    /// Their mean duration.
    pub mean: f64,
}

/// A cause of which the slow requests have more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Excess {
    /// 1 for the largest; 0 for what is told apart from the list.
    pub rank: usize,
    /// The cause, in words.
    pub cause: String,
    /// What it is.
    pub kind: Kind,
    /// Who or what is to blame: program and thread, call, interrupt; empty for none.
    pub culprit: String,
    /// Time of it in a slow request more than in a normal one.
    pub time: f64,
    /// That as a part of the whole excess.
    pub share: f64,
    /// In how many of the slow ones it is.
    pub in_slow: usize,
    /// In how many of the normal ones.
    pub in_normal: usize,
    /// What else is known of it.
    pub detail: Vec<String>,
    /// Slow requests with most of it.
    pub examples: Vec<Example>,
}

/// A request to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// Its start.
    pub start: Time,
    /// How long it took.
    pub dur: Time,
    /// Its thread.
    pub thread: String,
    /// The address of the page that shows it.
    pub address: String,
}

/// A cause of all requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The cause, in words.
    pub cause: String,
    /// What it is.
    pub kind: Kind,
    /// Who or what is to blame.
    pub culprit: String,
    /// Time of it in each.
    pub time: f64,
    /// That as a part of all time.
    pub share: f64,
    /// In how many it is.
    pub requests: usize,
}

/// The slow requests of all, and the normal ones, among those ordered by duration; nothing of too few.
pub fn ranges(count: usize, slow: f64, normal: &Range<f64>) -> Option<(Range<usize>, Range<usize>)> {
    let slow = ((count as f64 * slow).ceil() as usize).max(FEWEST);
    let at = |part: f64| (count as f64 * part).floor() as usize;
    let middle = at(normal.start)..at(normal.end).max(at(normal.start) + 1).min(count);
    (count >= 4 * FEWEST).then(|| (count.saturating_sub(slow).max(middle.end)..count, middle))
}

/// Everything that the comparison needs.
#[derive(Debug)]
pub struct Data<'a> {
    /// The trace.
    pub timeline: &'a Timeline<'a>,
    /// All requests.
    pub requests: &'a [Request],
    /// The page that shows the trace.
    pub page: &'a str,
    /// Causes shown.
    pub top: usize,
}

/// Where the time of all went, and how many causes are left out.
pub fn parts(data: &Data, causes: &mut Causes, all: &Totals) -> (Vec<Part>, usize) {
    let mut list: Vec<(u32, Mean)> = all.causes().map(|cause| (cause, all.of(cause))).collect();
    list.sort_by(|a, b| b.1.time.total_cmp(&a.1.time).then(a.0.cmp(&b.0)));
    let left_out = list.len().saturating_sub(data.top);
    list.truncate(data.top);
    let every: Vec<u32> = (0..data.requests.len() as u32).collect();
    let details = detail::of(data, causes, &every, &list.iter().map(|(cause, _)| vec![*cause]).collect::<Vec<_>>());
    let parts = list.iter().zip(details).map(|((cause, mean), detail)| Part {
        cause: causes.text(*cause, data.timeline, detail.thread.as_deref()),
        kind: causes.cause(*cause).kind,
        culprit: culprit(data.timeline, causes, *cause, &detail),
        time: mean.time,
        share: mean.time / all.mean().max(1.0),
        requests: mean.requests,
    });
    (parts.collect(), left_out)
}

/// How long CPUs stood still, of the sums of a request.
pub fn stood_still(causes: &Causes, sums: &[(u32, Sum)]) -> Time {
    sums.iter().filter(|(cause, _)| is_still(causes, *cause)).map(|(_, sum)| sum.time).sum()
}

fn is_still(causes: &Causes, cause: u32) -> bool {
    causes.cause(cause).kind == Kind::Stalled
}

/// The numbers of requests by duration, less the time of each that is to be left out.
pub fn order(requests: &[Request], without: &[Time]) -> Vec<u32> {
    let without = |n: u32| without.get(n as usize).copied().unwrap_or_default();
    let mut order: Vec<u32> = (0..requests.len() as u32).collect();
    order.sort_by_key(|&n| requests[n as usize].dur() - without(n));
    order
}

/// Compares slow requests with normal ones, of all, which are ordered by thread and start; `still` is how long CPUs
/// stood still in each. Nothing of too few.
pub fn compare(data: &Data, causes: &mut Causes, question: &Question, still: &[Time]) -> Option<Compared> {
    let sides = |causes: &mut Causes, without: &[Time]| Sides::new(data, causes, question, without);
    let whole = sides(causes, &[])?;
    let Some(cause) = whole.still(causes) else { return Some(whole.compared(data, causes, question)) };
    let rest = sides(causes, still)?.compared(data, causes, question);
    if rest.causes.is_empty() {
        return Some(whole.compared(data, causes, question));
    }
    let excess = whole.slow.mean() - whole.normal.mean();
    let cause = whole.excesses(data, causes, vec![(cause, None, whole.more(cause))]).pop();
    let apart = cause.map(|cause| Apart { slow: whole.slow.requests, excess, cause: Excess { rank: 0, ..cause } });
    Some(Compared { apart, ..rest })
}

/// The slow requests and the normal ones.
struct Sides {
    slow: Totals,
    normal: Totals,
    /// The numbers of the slow ones, and what each has of each cause.
    slowest: Vec<(u32, Vec<(u32, Time)>)>,
}

impl Sides {
    /// Chosen by duration; less the time of each in which CPUs stood still, if there are such times.
    fn new(data: &Data, causes: &mut Causes, question: &Question, without: &[Time]) -> Option<Sides> {
        let order = order(data.requests, without);
        let (slow, normal) = ranges(order.len(), question.slow, &question.normal)?;
        let mut sides = Sides { slow: Totals::default(), normal: Totals::default(), slowest: Vec::new() };
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
            sweep_together(data.timeline, causes, &some, Default::default, each, |(its, slowest), numbers| {
                side.add_all(&its, numbers);
                let known = |(cause, time): (u32, Time)| (numbers[cause as usize], time);
                let slowest = slowest.into_iter().map(|(n, sums)| (n, sums.into_iter().map(known).collect()));
                sides.slowest.extend(slowest);
            });
        }
        Some(sides)
    }

    /// That CPUs stood still, if that makes a part of the excess that counts.
    fn still(&self, causes: &Causes) -> Option<u32> {
        let worth = |cause: &u32| self.more(*cause) > WORTH * (self.slow.mean() - self.normal.mean());
        self.slow.causes().find(|cause| is_still(causes, *cause)).filter(worth)
    }

    /// How much more of a cause a slow one has.
    fn more(&self, cause: u32) -> f64 {
        self.slow.of(cause).time - self.normal.of(cause).time
    }

    /// What the slow ones have more of. If they are few and take little longer, nothing stands out.
    fn compared(&self, data: &Data, causes: &mut Causes, question: &Question) -> Compared {
        let (slow, normal) = (&self.slow, &self.normal);
        let excess = slow.mean() - normal.mean();
        let mut compared = Compared { slow: slow.side(), normal: normal.side(), excess, ..Compared::default() };
        let is_rare = excess * (slow.requests as f64) < EXCESS_SHARE_MIN * normal.mean() * data.requests.len() as f64;
        if excess < EXCESS_MIN * normal.mean() || (is_rare && excess < question.excess_min.0 as f64) {
            return compared;
        }
        let mut list = ranked(slow, normal);
        compared.left_out = list.len().saturating_sub(data.top);
        list.truncate(data.top);
        compared.causes = self.excesses(data, causes, list);
        compared.unexplained = 1.0 - compared.causes.iter().map(|cause| cause.share).sum::<f64>();
        compared
    }

    /// More of these causes.
    fn excesses(&self, data: &Data, causes: &mut Causes, list: Vec<(u32, Option<Paces>, f64)>) -> Vec<Excess> {
        let (slow, normal) = (&self.slow, &self.normal);
        let numbers: Vec<u32> = self.slowest.iter().map(|(number, _)| *number).collect();
        let wanted: Vec<Vec<u32>> = list.iter().map(|(cause, ..)| vec![*cause]).collect();
        let details = detail::of(data, causes, &numbers, &wanted);
        let excesses = list.into_iter().zip(details).enumerate().map(|(n, ((cause, pace, time), detail))| {
            let (its, usual) = (slow.of(cause), normal.of(cause));
            let text = causes.text(cause, data.timeline, detail.thread.as_deref());
            let mut notes = detail.notes.clone();
            if its.parts >= 1.5 * usual.parts && its.parts >= usual.parts + 1.0 && its.parts >= 2.0 {
                notes.insert(0, format!("{:.1} times in each, {:.1} times in a normal one", its.parts, usual.parts));
            }
            Excess {
                rank: n + 1,
                cause: at_pace(text, pace),
                kind: causes.cause(cause).kind,
                culprit: culprit(data.timeline, causes, cause, &detail),
                time,
                share: time / (slow.mean() - normal.mean()),
                in_slow: its.requests,
                in_normal: usual.requests,
                detail: notes,
                examples: examples(data, &self.slowest, cause),
            }
        });
        excesses.collect()
    }
}

/// Causes with what each adds to the difference between the means of some requests and of those that they are compared
/// with, most first: by more of it (or less, if they are faster), or by the same done at another pace.
pub fn ranked(its: &Totals, usual: &Totals) -> Vec<(u32, Option<Paces>, f64)> {
    let excess = its.mean() - usual.mean();
    let mut list = Vec::new();
    for cause in 0..its.by_cause.len().max(usual.by_cause.len()) as u32 {
        let (its, usual) = (its.of(cause), usual.of(cause));
        let pace = its.pace / usual.pace;
        let counted = its.pace > 0.0 && usual.pace > 0.0;
        let another = counted && if excess > 0.0 { pace < OTHER } else { pace > 1.0 / OTHER };
        let by_pace = if another { its.time * (1.0 - pace) } else { 0.0 };
        list.push((cause, None, its.time - usual.time - by_pace));
        list.push((cause, Some((its.pace, usual.pace)), by_pace));
    }
    list.retain(|(.., time)| excess != 0.0 && time / excess >= WORTH);
    list.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()).then(a.0.cmp(&b.0)));
    list
}

/// A cause in words, and at which pace it was done if that is what it is about.
pub fn at_pace(text: String, paces: Option<Paces>) -> String {
    match paces {
        Some((its, usual)) => {
            let slower = if its < usual { "slower" } else { "faster" };
            format!("{text}, {slower}: {its:.2} instructions per cycle, not {usual:.2}")
        }
        None => text,
    }
}

/// Who or what is to blame for a cause, by name.
pub fn culprit(timeline: &Timeline, causes: &Causes, cause: u32, detail: &Detail) -> String {
    let cause = causes.cause(cause);
    if matches!(cause.kind, Kind::Network | Kind::Resent) {
        return "network".to_string();
    }
    let named = |name: NameId| timeline.spans.names.get(name.index()).cloned().unwrap_or_default();
    let program = |id: NameId| timeline.programs.get(id.index()).cloned();
    let waited_for = Some(causes.awaited(cause.chain)).filter(|id| *id != NAMELESS).and_then(program);
    let thread = detail.thread.clone().filter(|_| cause.by != NAMELESS || waited_for.is_some());
    let by = program(cause.by).filter(|_| cause.by != NAMELESS);
    let own = || if cause.ended == NAMELESS { named(cause.name) } else { named(cause.ended) };
    thread.or(by).or(waited_for).unwrap_or_else(own)
}

/// Of the requests with what each has of each cause, those with most of this one.
pub fn examples(data: &Data, slowest: &[(u32, Vec<(u32, Time)>)], cause: u32) -> Vec<Example> {
    let time = |sums: &[(u32, Time)]| sums.iter().find(|(its, _)| *its == cause).map(|(_, time)| *time);
    let of = |(number, sums): &(u32, Vec<(u32, Time)>)| Some((time(sums)?, data.requests[*number as usize]));
    let mut those: Vec<(Time, Request)> = slowest.iter().filter_map(of).collect();
    those.sort_by_key(|(time, request)| (std::cmp::Reverse(*time), request.start));
    those.iter().take(SHOWN).map(|(_, request)| example(data, request)).collect()
}

/// A request with an address that shows it with a little before and after.
fn example(data: &Data, request: &Request) -> Example {
    let margin = request.dur() / 20 + Time::UNIT;
    let second = |at: Time| format!("{:.8}", at.seconds());
    let (from, to) = (second(request.start - margin), second(request.end + margin));
    Example {
        start: request.start,
        dur: request.dur(),
        thread: data.timeline.name(request.pid),
        address: format!("{}#t={from}..{to}&open=CPU,PID", data.page),
    }
}
