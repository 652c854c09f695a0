// SPDX-License-Identifier: BSD-3-Clause
//! CPU time of `top` and `watch` for the entries of a trace: `speed TRACE [TIMES]` prints the CPU time of one entry, in
//! ns, and for comparison that of `summary`, which works by events and spans. At 200,000 entries a second, 1 ns each is
//! 0.02 % of a CPU.

#![forbid(unsafe_code)]

use std::hint::black_box;

use anyhow::{Context, Result};
use kutrace_cli::standard;
use kutrace_control::skim::Skim;
use kutrace_control::top::replay::Replay;
use kutrace_control::watch::condition::Condition;
use kutrace_control::watch::judge::Judge;
use postprocess::{direct, raw};
use rustix::time::{clock_gettime, ClockId};

/// Conditions to watch for: one of each kind, all at once, none of which a trace of milliseconds reaches.
const CONDITIONS: [&str; 8] = [
    "rpc:get > 10s",
    "mark:a..b > 10s",
    "call:fsync > 10s",
    "wait_cpu > 10s",
    "softirq > 10s",
    "irq:local_timer > 10s",
    "run:make > 10s",
    "keep",
];

/// CPU time of all threads of this process.
fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// CPU time of this number of calls.
fn took<T>(times: u32, what: impl Fn() -> T) -> f64 {
    let begun = cpu_ns();
    (0..times).for_each(|_| drop(black_box(what())));
    cpu_ns() - begun
}

/// Work of `watch` for a followed recorder, piece by piece.
fn watched(replay: &Replay, conditions: &[Condition]) -> usize {
    let mut skim = Skim::new(conditions.iter().flat_map(Condition::events));
    let mut judge = Judge::new(conditions, 1e6, &[]);
    let mut found = 0;
    for piece in replay.pieces() {
        skim.read(piece);
        let points = skim.take(u64::MAX);
        found += judge.judge(&points, u64::MAX, |pid| skim.thread(pid)).len();
    }
    found
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let file = words.next().context("usage: speed TRACE [TIMES]")?;
    let times: u32 = words.next().map_or(Ok(100), |times| times.parse())?;
    let bytes = std::fs::read(&file).context(file)?;
    let replay = Replay::new(&raw::parse(&bytes)?);
    let all = replay.entries() as f64 * f64::from(times);
    let conditions = |texts: &[&str]| texts.iter().map(|text| text.parse()).collect::<Result<Vec<Condition>, _>>();
    let [every, one] =
        [conditions(&CONDITIONS), conditions(&["call:fsync > 10s"])].map(|all| all.map_err(anyhow::Error::msg));
    let (every, one) = (every?, one?);
    let top = took(times, || replay.summary());
    let watch = took(times, || watched(&replay, &every));
    let single = took(times, || watched(&replay, &one));
    let summary = took(times, || direct::summary_of_raw(&bytes, 0));
    standard::print(&format!(
        "ns an entry, of {all} entries: top {:.1}, watch {:.1} ({} conditions) or {:.1} (one), summary {:.1}\n",
        top / all,
        watch / all,
        every.len(),
        single / all,
        summary / all
    ))
}
