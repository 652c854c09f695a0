// SPDX-License-Identifier: BSD-3-Clause
//! How long `top` takes for the entries of a trace: `speed TRACE [TIMES]` prints the CPU time of one, in ns, and beside
//! it what `summary` takes, by way of events and spans.

#![forbid(unsafe_code)]

use std::hint::black_box;

use anyhow::{Context, Result};
use kutrace_cli::standard;
use kutrace_control::top::replay::Replay;
use postprocess::{direct, raw};
use rustix::time::{clock_gettime, ClockId};

/// CPU time of all threads of this process.
fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let file = words.next().context("usage: speed TRACE [TIMES]")?;
    let times: u32 = words.next().map_or(Ok(100), |times| times.parse())?;
    let bytes = std::fs::read(&file).context(file)?;
    let replay = Replay::new(&raw::parse(&bytes)?);
    let all = replay.entries() as f64 * f64::from(times);
    let begun = cpu_ns();
    (0..times).for_each(|_| drop(black_box(replay.summary())));
    let top = cpu_ns() - begun;
    let begun = cpu_ns();
    for _ in 0..times {
        black_box(direct::summary_of_raw(&bytes, 0)?);
    }
    let summary = cpu_ns() - begun;
    standard::print(&format!("top {:.1} ns, summary {:.1} ns an entry, of {all} entries\n", top / all, summary / all))
}
