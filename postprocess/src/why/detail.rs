// SPDX-License-Identifier: BSD-3-Clause
//! Details of the causes that are shown: their threads, their CPUs, and what these did.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;

use super::cause::{Cause, Causes, Chain, Kind};
use super::compare::Data;
use super::path::{path, Part};
use super::timeline::{end, Thread, Timeline};
use crate::event::names::NameId;
use crate::id::{CpuId, Pid};
use crate::span::sample;
use crate::span::wait::Reason;
use crate::span::what::{Share, What};
use crate::time::Time;

/// Largest number of requests that are examined.
pub const LOOKED_AT: usize = 500;
/// Least number of samples that indicate where most of the time went.
const SAMPLES_MIN: u32 = 3;
/// Number of names shown if there are several.
pub const NAMES: usize = 3;

/// Kinds of causes for which the CPU matters.
pub const OF_CPUS: [Kind; 5] = [Kind::Stalled, Kind::Queue, Kind::Idle, Kind::Interrupt, Kind::Offline];

/// Data gathered about a cause.
#[derive(Debug, Default)]
struct Gathered<'a> {
    time: Time,
    threads: BTreeMap<Pid, Time>,
    cpus: BTreeMap<CpuId, Time>,
    did: BTreeMap<&'a str, Time>,
    /// Calls and faults in which a thread slept.
    slept: BTreeMap<&'a str, Time>,
    /// Calls with arguments in which a thread slept, by name of the call.
    slept_for: BTreeMap<&'a str, BTreeSet<String>>,
    /// Locks that the request's own thread waited for, and the largest number of threads that did so at once.
    locks: BTreeMap<String, usize>,
    /// Thread and start of the last call for which these were counted.
    counted: Option<(Pid, Time)>,
    /// Functions in which a CPU was sampled, with the number of samples.
    sampled: BTreeMap<&'a str, u32>,
    samples: u32,
    /// Time in which some other CPU was idle.
    beside_idle: Time,
}

/// Examines groups of causes in these requests, given by number, or in a selection if there are many. Returns sentences
/// about each group.
pub fn of(data: &Data, causes: &mut Causes, requests: &[u32], wanted: &[Vec<u32>]) -> Vec<Vec<String>> {
    let mut gathered: Vec<Gathered> = wanted.iter().map(|_| Gathered::default()).collect();
    let groups: HashMap<u32, usize> =
        wanted.iter().enumerate().flat_map(|(n, group)| group.iter().map(move |cause| (*cause, n))).collect();
    let step = requests.len().div_ceil(LOOKED_AT).max(1);
    for number in requests.iter().rev().step_by(step) {
        let request = &data.requests[*number as usize];
        for part in path(data.timeline, causes, request) {
            if let Some(group) = groups.get(&part.cause) {
                let cause = causes.cause(part.cause);
                gathered[*group].add(data.timeline, cause, &part, request.pid);
                gathered[*group].add_lock(data.timeline, causes.first_wait(cause.chain), &part, request.pid);
            }
        }
    }
    let kinds = wanted.iter().map(|group| group.first().map_or(Kind::Unknown, |cause| causes.cause(*cause).kind));
    gathered.iter().zip(kinds).map(|(its, kind)| its.notes(data.timeline, kind)).collect()
}

impl<'a> Gathered<'a> {
    fn add(&mut self, timeline: &Timeline<'a>, cause: &Cause, part: &Part, own: Pid) {
        let dur = part.end - part.start;
        self.time += dur;
        part.culprit.into_iter().for_each(|pid| *self.threads.entry(pid).or_default() += dur);
        part.cpu.into_iter().for_each(|cpu| *self.cpus.entry(cpu).or_default() += dur);
        // Time in another thread's chain that no thread is to blame for has no known sleeper.
        let sleeper = part.culprit.or((cause.chain == Chain::OWN).then_some(own));
        if let (Kind::Wait, Some(call)) = (cause.kind, sleeper.and_then(|pid| timeline.slept_in(pid, part.start))) {
            let name = timeline.text(&call);
            *self.slept.entry(name).or_default() += dur;
            self.slept_for.entry(name).or_default().insert(timeline.with_argument(&call));
        }
        if let (Kind::User | Kind::Kernel | Kind::Interrupt, Some(cpu)) = (cause.kind, part.cpu) {
            for sample in timeline.sampled(cpu, part.start, part.end) {
                self.samples += 1;
                if let Some(function) = function(timeline.text(&sample)) {
                    *self.sampled.entry(function).or_default() += 1;
                }
            }
        }
        if let (Kind::Queue, Some(_), Some(cpu)) = (cause.kind, part.culprit, part.cpu) {
            for span in timeline.executed(cpu, part.start, part.end) {
                let time = end(&span).min(part.end) - span.start.max(part.start);
                let did = if span.is_own_code() { "its own code" } else { timeline.text(&span) };
                *self.did.entry(did).or_default() += time;
            }
            self.beside_idle += idle_elsewhere(timeline, part);
        }
    }

    /// Adds the lock that the request's own thread waits for in a part, in this wait.
    fn add_lock(&mut self, timeline: &Timeline<'a>, wait: NameId, part: &Part, own: Pid) {
        if Reason::named(timeline.called(wait)) != Reason::Lock {
            return;
        }
        let Some(call) = timeline.slept_in(own, part.start) else { return };
        // Threads are counted once for each call, at its first part: there may be many of both.
        if self.counted.replace((own, call.start)) == Some((own, call.start)) {
            return;
        }
        if let Some(lock) = timeline.address(&call) {
            let most = self.locks.entry(lock).or_default();
            *most = waiting_with(timeline, own, part.start).max(*most);
        }
    }

    fn notes(&self, timeline: &Timeline, kind: Kind) -> Vec<String> {
        let threads: Vec<String> = most(&self.threads).map(|(pid, _)| timeline.name(*pid)).collect();
        let mut notes = Vec::new();
        if threads.len() > 1 {
            let more = if threads.len() > NAMES { ", ..." } else { "" };
            let shown = threads[..threads.len().min(NAMES)].join(", ");
            notes.push(format!("{} threads: {shown}{more}", threads.len()));
        }
        if !self.did.is_empty() {
            notes.push(format!(
                "there ran {}",
                self.shares(most(&self.did).map(|(name, time)| (name.to_string(), time)))
            ));
        }
        if !self.sampled.is_empty() && self.samples >= SAMPLES_MIN {
            notes.push(self.functions());
        }
        if !self.slept.is_empty() {
            notes.push(format!(
                "asleep in {}",
                self.shares(most(&self.slept).map(|(name, time)| (self.slept_in(name), time)))
            ));
        }
        if let Some(note) = self.lock() {
            notes.push(note);
        }
        if self.beside_idle * 10 > self.time {
            notes.push(format!("while another CPU was idle {}", self.percent(self.beside_idle)));
        }
        if OF_CPUS.contains(&kind) {
            notes.push(self.shares(most(&self.cpus).map(|(cpu, time)| (format!("CPU {cpu}"), time))));
        }
        notes.retain(|note| !note.is_empty());
        notes
    }

    /// Returns a call, with its argument if that was the same each time.
    fn slept_in(&self, name: &str) -> String {
        let calls = self.slept_for.get(name).filter(|calls| calls.len() == 1);
        calls.and_then(|calls| calls.first()).map_or_else(|| name.to_string(), String::clone)
    }

    /// Describes the locks waited for, by address if that was one, and how many threads waited for the same at once.
    fn lock(&self) -> Option<String> {
        let most = *self.locks.values().max()?;
        let locks = match self.locks.len() {
            1 => format!("lock {}", self.locks.keys().next()?),
            several => format!("{several} locks"),
        };
        Some(if most > 1 { format!("{locks}, up to {most} threads waiting at once") } else { locks })
    }

    /// Describes where most samples were.
    fn functions(&self) -> String {
        let mut list: Vec<(&&str, &u32)> = self.sampled.iter().collect();
        list.sort_by_key(|(name, samples)| (std::cmp::Reverse(**samples), **name));
        let part = |samples: u32| f64::from(samples) * 100.0 / f64::from(self.samples);
        let shown = list.iter().take(NAMES).map(|(name, samples)| format!("{name} {:.0} %", part(**samples)));
        format!("{} samples: {}", self.samples, shown.collect::<Vec<_>>().join(", "))
    }

    fn shares(&self, list: impl Iterator<Item = (String, Time)>) -> String {
        let worth = |(_, time): &(String, Time)| *time * 100 >= self.time;
        list.take(NAMES)
            .filter(worth)
            .map(|(name, time)| format!("{name} {}", self.percent(time)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn percent(&self, time: Time) -> String {
        format!("{:.0} %", time.0 as f64 * 100.0 / self.time.0.max(1) as f64)
    }
}

/// Returns the number of threads of a thread's process that sleep at a moment for the same lock as that one.
fn waiting_with(timeline: &Timeline, pid: Pid, at: Time) -> usize {
    let lock = |pid: Pid| timeline.slept_in(pid, at).and_then(|call| timeline.address(&call));
    let process = |pid: Pid| timeline.spans.meta.process_of(pid);
    let (own, of) = (lock(pid), process(pid));
    let asleep = |thread: &Thread| {
        let next = thread.waits.partition_point(|&n| timeline.rows.end(n) <= at);
        let wait = thread.waits.get(next).map(|&n| timeline.span(n)).filter(|wait| wait.start <= at);
        wait.is_some_and(|wait| wait.what == What::Wait(Reason::Lock))
    };
    let those = timeline.threads().filter(|(pid, thread)| asleep(thread) && process(*pid) == of && lock(*pid) == own);
    those.count()
}

/// Returns the function that a sample is named after; `None` if only its address is known.
fn function(name: &str) -> Option<&str> {
    let name = name.strip_prefix("PC=")?;
    (sample::address(name).is_none()).then_some(name)
}

/// Returns times, largest first.
fn most<K: Ord>(times: &BTreeMap<K, Time>) -> impl Iterator<Item = (&K, Time)> {
    let mut list: Vec<(&K, Time)> = times.iter().map(|(key, time)| (key, *time)).collect();
    list.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
    list.into_iter()
}

/// Returns how much of a part some other CPU was idle.
fn idle_elsewhere(timeline: &Timeline, part: &Part) -> Time {
    let (mut at, mut idle) = (part.start, Time::ZERO);
    let mut spans: Vec<(Time, Time)> = (0..timeline.cpus() as u32)
        .map(CpuId::new)
        .filter(|cpu| Some(*cpu) != part.cpu)
        .flat_map(|cpu| timeline.executed(cpu, part.start, part.end))
        .filter(|span| span.activity().is_some_and(|a| a.share() == Share::Idle))
        .map(|span| (span.start.max(part.start), end(&span).min(part.end)))
        .collect();
    spans.sort_unstable();
    for (from, to) in spans {
        idle += (to - from.max(at)).max(Time::ZERO);
        at = at.max(to);
    }
    idle
}
