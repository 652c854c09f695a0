// SPDX-License-Identifier: BSD-3-Clause
//! The summary for programs, as docs/summary.schema.json describes it. Each shortened list has a count of the missing
//! items.

use std::collections::BTreeMap;

use kutrace_format::capability::Capability;
use kutrace_format::flag;
use serde::Serialize;

use super::latency::{Latency, Worst, PERMILLE};
use super::share::Share;
use super::wait::Wait;
use super::work::{Program, Sum};
use super::Summary;
use crate::id::CpuId;
use crate::time::Time;

#[derive(Serialize)]
struct Document<'a> {
    host: &'a str,
    kernel: &'a str,
    cpu_model: &'a str,
    base: &'a str,
    start: Time,
    end: Time,
    events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
    wrapped: bool,
    unseen: &'a [String],
    counted: &'a [String],
    damage: List<&'a [String]>,
    cpus: Vec<Cpu>,
    programs: List<&'a [Program]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroups: Option<List<&'a [Program]>>,
    calls: List<Vec<Counted<'a>>>,
    interrupts: List<Vec<Counted<'a>>>,
    faults: List<Vec<Counted<'a>>>,
    waits: &'a [Wait],
    #[serde(skip_serializing_if = "Option::is_none")]
    spans: Option<List<&'a [Wait]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    woken: Option<Waited<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preempted: Option<Waited<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<u64>,
}

/// The first items of a list, and the number of the others.
#[derive(Serialize)]
struct List<T> {
    first: T,
    left_out: usize,
}

impl<'a, T> List<&'a [T]> {
    fn new(all: &'a [T], top: usize) -> List<&'a [T]> {
        let first = &all[..top.min(all.len())];
        List { first, left_out: all.len() - first.len() }
    }
}

impl<T> List<Vec<T>> {
    fn of(mut all: Vec<T>, top: usize) -> List<Vec<T>> {
        let left_out = all.len().saturating_sub(top);
        all.truncate(top);
        List { first: all, left_out }
    }
}

#[derive(Serialize)]
struct Cpu {
    cpu: CpuId,
    user: Time,
    kernel: Time,
    /// Reported parts of its time.
    #[serde(flatten)]
    parts: BTreeMap<&'static str, Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls: Option<u64>,
    /// Time that the host took from the other parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    stolen: Option<Time>,
    offline: Time,
}

#[derive(Serialize)]
struct Counted<'a> {
    name: &'a str,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<u64>,
    #[serde(flatten)]
    times: Option<Times>,
}

#[derive(Serialize)]
struct Times {
    total: Time,
    longest: Time,
    slowest: Time,
}

impl<'a> Counted<'a> {
    fn all(sums: &'a [Sum]) -> Vec<Counted<'a>> {
        let times = |s: &Sum| Times { total: s.total, longest: s.longest, slowest: s.slowest };
        let counted = |s: &'a Sum| Counted {
            name: &s.name,
            count: s.count,
            points: Some(s.points).filter(|&points| points > 0),
            times: (!s.is_untimed()).then(|| times(s)),
        };
        sums.iter().map(counted).collect()
    }
}

#[derive(Serialize)]
struct Waited<'a> {
    count: u64,
    percentiles: Vec<Percentile>,
    longest: Vec<Long<'a>>,
}

#[derive(Serialize)]
struct Percentile {
    percentile: f64,
    time: Time,
}

#[derive(Serialize)]
struct Long<'a> {
    start: Time,
    time: Time,
    thread: &'a str,
    /// -1 if unknown.
    cpu: i64,
    meanwhile: List<&'a [(String, Time)]>,
}

impl<'a> Waited<'a> {
    fn new(latency: &'a Latency, top: usize) -> Waited<'a> {
        let percentiles = PERMILLE.into_iter().zip(latency.percentiles);
        let long = |worst: &'a Worst| Long {
            start: worst.at,
            time: worst.dur,
            thread: &worst.thread,
            cpu: CpuId::column(worst.cpu),
            meanwhile: List::new(&worst.meanwhile, top),
        };
        Waited {
            count: latency.count,
            percentiles: percentiles.map(|(of, time)| Percentile { percentile: of as f64 / 1e3, time }).collect(),
            longest: latency.worst.iter().map(long).collect(),
        }
    }
}

impl Summary {
    /// Returns the summary as JSON, with the first `top` items of each list of unbounded length.
    pub fn json(&self, top: usize) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(&self.told(top))? + "\n")
    }

    /// Returns the same summary for serde to write.
    pub fn told(&self, top: usize) -> impl Serialize + '_ {
        let meta = &self.meta;
        let parts: Vec<_> = self.parts().collect();
        let cpu = |(cpu, share): &(CpuId, Share)| Cpu {
            cpu: *cpu,
            user: share.user,
            kernel: share.kernel,
            parts: parts.iter().map(|(name, part)| (*name, part(share))).collect(),
            stalls: parts.iter().any(|(name, _)| *name == "stalled").then_some(share.stalls),
            stolen: (share.steals > 0).then_some(share.stolen),
            offline: share.offline,
        };
        let wakeups = meta.sees(Capability::Wakeups);
        Document {
            host: &meta.host,
            kernel: &meta.kernel,
            cpu_model: &meta.cpu_model,
            base: &meta.tracebase,
            start: self.extent.0,
            end: self.extent.1,
            events: self.events,
            lost: self.tells(meta.lost, &[Capability::Losses]).then_some(meta.lost),
            wrapped: meta.flags & flag::WRAPPED != 0,
            unseen: &meta.unseen,
            counted: &meta.counted,
            damage: List::new(&meta.quality, top),
            cpus: self.cpus.iter().map(cpu).collect(),
            programs: List::new(&self.programs, top),
            cgroups: (!self.cgroups.is_empty()).then(|| List::new(&self.cgroups, top)),
            calls: List::of(Counted::all(&self.calls), top),
            interrupts: List::of(Counted::all(&self.interrupts), top),
            faults: List::of(Counted::all(&self.faults), top),
            waits: &self.waits,
            spans: (!self.spans.is_empty()).then(|| List::new(&self.spans, top)),
            woken: wakeups.then(|| Waited::new(&self.woken, top)),
            preempted: wakeups.then(|| Waited::new(&self.preempted, top)),
            running: wakeups.then_some(self.running),
        }
    }
}
