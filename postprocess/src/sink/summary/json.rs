// SPDX-License-Identifier: BSD-3-Clause
//! The summary for programs, as docs/summary.schema.json describes it. What is cut off a list is counted next to it.

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
struct Told<'a> {
    host: &'a str,
    kernel: &'a str,
    cpu_model: &'a str,
    base: &'a str,
    start: Time,
    end: Time,
    events: u64,
    lost: u64,
    wrapped: bool,
    unseen: &'a [String],
    damage: List<'a, String>,
    cpus: Vec<Cpu>,
    programs: List<'a, Program>,
    calls: List<'a, Sum>,
    interrupts: List<'a, Sum>,
    faults: List<'a, Sum>,
    waits: &'a [Wait],
    woken: Waited<'a>,
    preempted: Waited<'a>,
    running: u64,
}

/// The first of a list, and how many more there are.
#[derive(Serialize)]
struct List<'a, T> {
    first: &'a [T],
    left_out: usize,
}

impl<'a, T> List<'a, T> {
    fn new(all: &'a [T], top: usize) -> List<'a, T> {
        let first = &all[..top.min(all.len())];
        List { first, left_out: all.len() - first.len() }
    }
}

#[derive(Serialize)]
struct Cpu {
    cpu: CpuId,
    #[serde(flatten)]
    share: Share,
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
    /// -1 if it is not known.
    cpu: i64,
    meanwhile: List<'a, (String, Time)>,
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
    /// All of it as JSON, with the first `top` of each list whose length has no bound.
    pub fn json(&self, top: usize) -> serde_json::Result<String> {
        let meta = &self.meta;
        let told = Told {
            host: &meta.host,
            kernel: &meta.kernel,
            cpu_model: &meta.cpu_model,
            base: &meta.tracebase,
            start: self.extent.0,
            end: self.extent.1,
            events: self.events,
            lost: meta.lost,
            wrapped: meta.flags & flag::WRAPPED != 0,
            unseen: &meta.unseen,
            damage: List::new(&meta.quality, top),
            cpus: self.cpus.iter().map(|(cpu, share)| Cpu { cpu: *cpu, share: *share }).collect(),
            programs: List::new(&self.programs, top),
            calls: List::new(&self.calls, top),
            interrupts: List::new(&self.interrupts, top),
            faults: List::new(&self.faults, top),
            waits: &self.waits,
            woken: Waited::new(&self.woken, top),
            preempted: Waited::new(&self.preempted, top),
            running: self.running,
        };
        Ok(serde_json::to_string_pretty(&told)? + "\n")
    }
}
