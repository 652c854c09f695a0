// SPDX-License-Identifier: BSD-3-Clause
//! Compares the report of `top` for a recorded trace with that of `summary`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use postprocess::direct::summary_of_raw;
use postprocess::raw;
use postprocess::sink::summary::work::Sum;
use postprocess::sink::summary::Summary;
use postprocess::span::wait::Reason;
use postprocess::time::Time;

use super::replay::Replay;

/// Allowed difference of times that end, or are rounded, slightly earlier or later: 20 us.
const SLACK: Time = Time(2_000);

/// The differences found.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    /// Two times may differ by one part of a hundred, plus `slack`.
    fn near(&mut self, what: &str, told: Time, known: Time, slack: Time) {
        if (told - known).abs() > known / 100 + slack {
            self.0.push(format!("{what}: {told} instead of {known}"));
        }
    }

    fn same(&mut self, what: &str, told: u64, known: u64) {
        if told != known {
            self.0.push(format!("{what}: {told} instead of {known}"));
        }
    }

    fn sums(&mut self, sample: &str, told: &[Sum], known: &[Sum], slack: Time) {
        let by_name = |sums: &[Sum]| -> BTreeMap<String, (u64, Time)> {
            sums.iter().map(|sum| (sum.name.clone(), (sum.count, sum.total))).collect()
        };
        let (told, known) = (by_name(told), by_name(known));
        for name in known.keys().chain(told.keys()) {
            let of = |sums: &BTreeMap<String, (u64, Time)>| sums.get(name).copied().unwrap_or_default();
            self.same(&format!("{sample}: {name}"), of(&told).0, of(&known).0);
            self.near(&format!("{sample}: time of {name}"), of(&told).1, of(&known).1, slack);
        }
    }
}

#[test]
fn what_is_told_of_a_trace_is_its_summary() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/causes");
    let mut found = Differences::default();
    for sample in ["cold", "crowd", "hog", "holder", "more-work", "poll", "sleep", "syncer", "work"] {
        let path = folder.join(sample).with_extension("trace.xz");
        let bytes = Command::new("xz").arg("-dc").arg(path).output().expect("xz runs: apt-get install xz-utils").stdout;
        let told = Replay::new(&raw::parse(&bytes).unwrap()).summary();
        let known = summary_of_raw(&bytes, 5).unwrap();
        // Only the summary knows about stalled CPUs.
        let stalled: Time = known.cpus.iter().map(|(_, share)| share.stalled).sum();
        let slack = stalled + SLACK;
        for ((cpu, a), (_, b)) in told.cpus.iter().zip(&known.cpus) {
            for (what, a, b, c) in
                [("user", a.user, b.user, b), ("kernel", a.kernel, b.kernel, b), ("idle", a.idle, b.idle, b)]
            {
                found.near(&format!("{sample}: {what} of CPU {cpu}"), a, b, c.stalled + SLACK);
            }
        }
        found.same(sample, told.events, known.events);
        found.sums(sample, &told.calls, &known.calls, slack);
        found.sums(sample, &told.interrupts, &known.interrupts, slack);
        found.sums(sample, &told.faults, &known.faults, slack);
        for program in &known.programs {
            let same = told.programs.iter().find(|told| told.name == program.name).cloned().unwrap_or_default();
            found.near(&format!("{sample}: user of {}", program.name), same.user, program.user, slack);
            found.near(&format!("{sample}: kernel of {}", program.name), same.kernel, program.kernel, slack);
            found.same(&format!("{sample}: runs of {}", program.name), same.runs, program.runs);
        }
        // The division of the time that a thread could run depends on where CPUs were stalled.
        for wait in known.waits.iter().filter(|wait| !Reason::named(&wait.name).could_run()) {
            let same = told.waits.iter().find(|told| told.name == wait.name).cloned().unwrap_or_default();
            found.same(&format!("{sample}: {}", wait.name), same.count, wait.count);
            found.near(&format!("{sample}: time of {}", wait.name), same.total, wait.total, slack);
        }
        // A thread that was woken while it ran may count as one that ran at once.
        let wakeups = |summary: &Summary| summary.woken.count + summary.running;
        found.same(&format!("{sample}: wakeups"), wakeups(&told), wakeups(&known));
        found.near(&format!("{sample}: worst wakeup"), told.woken.percentiles[4], known.woken.percentiles[4], SLACK);
        found.same(&format!("{sample}: preempted"), told.preempted.count, known.preempted.count);
    }
    assert!(found.0.is_empty(), "{:#?}", found.0);
}
