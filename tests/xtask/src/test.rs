// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask test`, the gate: every tier, in the same way each time. `cargo xtask night`: the same in its long form,
//! with other seeds, on other kernels. `cargo xtask soak`: the VM's tests of the recorder, for hours.
//!
//! All programs of tests are built first, so that a failing build is known before anything runs. Lanes take them one
//! after the other, the host's first, each guest a test of its own; then come those whose guests want all CPUs of the
//! host. A failure is shown at once and kept below target/failed. A test that reports that its guest stood still for
//! too long to decide is repeated once, alone, at the end; nothing else is.

mod canary;
mod lane;
mod plan;
mod report;

use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::{self, available_parallelism};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{bail, Context, Result};
use clap::Args;
use kutrace_cli::signal::SignalGuard;

use crate::mutants::{self, MutantsArgs};
use crate::progress::{self, tied};
use crate::{demo, packages, place, tools, versions};
use plan::{Form, Programs, Tier};
use report::{say, Report};

/// Variables of the host's searches: how many cases, inputs and cuts they try in the gate, and otherwise.
const SEARCHES: [(&str, u32, u32); 3] =
    [("KUTRACE_CASES", 3, 10), ("PROPTEST_CASES", 64, 260), ("KUTRACE_CUTS", 4, 12)];
/// The seed of the gate's searches.
const SEED: u64 = 1;
/// Kernels that run the VM's tests that name no kernel themselves, and which of those; at night and in the soak.
const OTHERS: &[(&str, &[&str])] = &[
    (
        "distribution",
        &[
            "conserve::",
            "control::",
            "counters::",
            "exact::",
            "faults::",
            "full::",
            "hooks::",
            "hotplug::",
            "lifecycle::",
            "marks::",
            "nmi::",
            "programs::",
            "proof::",
            "snapshot::",
            "stream::",
            "user::",
            "waits::",
            "wrap::",
        ],
    ),
    ("stock=6.1", &["stock::"]),
    ("stock=7.3", &["stock::"]),
    ("realtime", &["exact::", "faults::", "nmi::", "proof::", "waits::"]),
    ("v7.x", &["denied::", "exact::", "faults::", "hooks::", "hotplug::", "nmi::", "proof::", "user::"]),
];
/// The kernel under every check, and the parts of the soak there in addition to the tests that name it: commands,
/// packets, memory that outlives a reboot, streams.
const CHECKED: (&str, &[&str]) = ("debug", &["control::", "flows::", "reboot::", "stream::"]);
/// The tests of the VM that have a longest form.
const LONG: &[&str] = &[
    "conserve::",
    "wrap::",
    "snapshot::",
    "always::",
    "a_ring_under_a_storm",
    "a_device_that_goes",
    "no_trigger_is_missed",
    "tickless::",
    "lifetime::",
    "hotplug::",
    "ending::",
    "rights::",
    "killed_at_any_point",
    "programs::",
    "nonsense::",
];

#[derive(Args, Default)]
pub struct TestArgs {
    /// Only what failed in the last run
    #[arg(long, conflicts_with = "tier")]
    failed: bool,
    /// Only this tier
    #[arg(value_enum)]
    tier: Option<Tier>,
    /// Only its tests whose name has one of these texts
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

impl TestArgs {
    /// The tests of the last run that failed, or those of this tier.
    fn selection(&self) -> Result<Vec<(Tier, Vec<String>)>> {
        if self.failed {
            return report::failed_last();
        }
        Ok(Tier::ALL
            .into_iter()
            .filter(|tier| self.tier.is_none_or(|one| one == *tier))
            .map(|tier| (tier, self.names.clone()))
            .collect())
    }

    fn is_all(&self) -> bool {
        !self.failed && self.tier.is_none()
    }
}

/// Runs the gate, or a part of it; the status is 1 if anything failed.
pub fn run(args: &TestArgs) -> Result<u8> {
    let mut run = Run::begin(Form::Gate, SEED)?;
    if args.is_all() || !demo::artifacts().join("t.html").exists() {
        run.demo();
    }
    run.pass(&args.selection()?, None)?;
    if args.is_all() {
        run.canaries()?;
    }
    run.end("test")
}

/// Runs every tier in its form for the night, then the VM's tests on other kernels.
pub fn night() -> Result<u8> {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(SEED, |time| time.as_secs());
    let mut run = Run::begin(Form::Night, seed)?;
    say(&format!("the seed of this night: {seed}"));
    versions::others_in_debian()?.iter().for_each(|other| say(&format!("Debian has {other}")));
    run.demo();
    run.pass(&TestArgs::default().selection()?, None)?;
    for (kernel, tests) in OTHERS {
        run.pass(&[(Tier::Vm, owned(tests))], Some(kernel))?;
    }
    run.canaries()?;
    run.end("night")
}

/// Runs the longest form of the VM's and the packages' tests, the others on other kernels, and every mutant.
pub fn soak() -> Result<u8> {
    let mut run = Run::begin(Form::Soak, SEED)?;
    packages::ensure_inspectors()?;
    run.pass(&[(Tier::Vm, owned(LONG)), (Tier::Packages, Vec::new())], None)?;
    for (kernel, tests) in OTHERS.iter().chain([&CHECKED]) {
        run.pass(&[(Tier::Vm, owned(tests))], Some(kernel))?;
    }
    let status = run.end("soak")?;
    Ok(mutants::run(&MutantsArgs::default())?.max(status))
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// A run of tests from its beginning to its last line.
struct Run {
    /// This program.
    xtask: PathBuf,
    form: Form,
    programs: Programs,
    report: Report,
    variables: Vec<(&'static str, String)>,
    guard: SignalGuard,
    began: Instant,
}

impl Run {
    /// Brings everything that tests need up to date.
    fn begin(form: Form, seed: u64) -> Result<Run> {
        let began = Instant::now();
        // Before anything rebuilds this program: afterwards its path may be that of a deleted file.
        let xtask = std::env::current_exe().context("test: xtask's own path")?;
        packages::ensure()?;
        versions::others_here()?.iter().for_each(|other| say(&format!("this machine has {other}")));
        tools::ensure()?;
        let guard = SignalGuard::new()?;
        let programs = Programs::build(form)?;
        let skipped = place::made(place::target())?.join("skipped");
        fs::write(&skipped, "").with_context(|| skipped.display().to_string())?;
        let text = |path: PathBuf| path.display().to_string();
        let mut variables = vec![
            ("KUTRACE_XTASK", text(xtask.clone())),
            (crate::vm::READY, "1".to_owned()),
            ("KUTRACE_SKIPPED", text(skipped.clone())),
            ("KUTRACE_DEMO", text(demo::artifacts())),
            ("KUTRACE_PAGE", text(demo::artifacts().join("t.html"))),
            ("KUTRACE_SEED", seed.to_string()),
            ("PROPTEST_RNG_SEED", seed.to_string()),
        ];
        let tried = |gate: u32, others: u32| if form == Form::Gate { gate } else { others };
        variables.extend(SEARCHES.map(|(name, gate, others)| (name, tried(gate, others).to_string())));
        Ok(Run { xtask, form, programs, report: Report::new(skipped)?, variables, guard, began })
    }

    /// The whole way from the kernel to the page; tests look at its results.
    fn demo(&mut self) {
        let began = Instant::now();
        let mut demo = tied(&self.xtask.to_string_lossy());
        // The workload's output is of interest only if something is wrong.
        let made = progress::run("demo", demo.arg("demo"), &place::target().join("demo.log"));
        self.report.step("demo", made.map_err(|error| format!("{error:#}")), began.elapsed());
    }

    /// Runs the selected tests, those of guests on another kernel if one is named.
    fn pass(&mut self, selected: &[(Tier, Vec<String>)], kernel: Option<&str>) -> Result<()> {
        let mut variables = self.variables.clone();
        variables.extend(kernel.map(|kernel| ("KUTRACE_VM_KERNEL", kernel.to_owned())));
        let tasks = self.programs.tasks(selected, self.report.times())?;
        lane::run(tasks, lanes(), &variables, &self.report, &self.guard)?;
        // One has a guest while another looks at what its own has left.
        lane::run(self.report.take_alone(), 2, &variables, &self.report, &self.guard)?;
        // One at a time, so that nothing else of ours is in the way.
        lane::run(self.report.take_inconclusive(), 1, &variables, &self.report, &self.guard)
    }

    /// A removal must be noticed, or nothing that passed means anything.
    fn canaries(&self) -> Result<()> {
        let program = self.programs.of(Tier::Vm)?;
        thread::scope(|scope| {
            for canary in canary::ALL {
                scope.spawn(move || {
                    let began = Instant::now();
                    self.report.step(&canary.name(), canary.sing(program), began.elapsed());
                });
            }
        });
        if self.guard.is_requested() {
            bail!("test: interrupted");
        }
        Ok(())
    }

    fn end(self, command: &str) -> Result<u8> {
        self.report.end(command, self.form, self.began.elapsed())
    }
}

/// Number of tests that run at a time: three for two CPUs, as a guest waits for half of its time; not more than their
/// memory allows on any machine.
fn lanes() -> usize {
    (available_parallelism().map_or(1, NonZero::get) * 3 / 2).clamp(2, 6)
}
