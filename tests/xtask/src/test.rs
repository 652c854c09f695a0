// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask test`: every tier, each after the other, and one closing line that says what failed. `cargo xtask
//! soak`: what the VM's tests check of the recorder, for longer and on the debug kernel too.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use kutrace_cli::signal::SignalGuard;
use rustix::process::{kill_process_group, Pid, Signal};

use crate::kernel::{self, Variant};
use crate::mutants::{self, MutantsArgs};
use crate::progress::{minutes, tied};
use crate::{demo, packages, place};

/// The tiers in their order, by what they need: nothing, the tools, packages of Python's, the guest, the guest with the distribution's kernel
/// in place of the usual one, the demo's artifacts.
const TIERS: &[(&str, &[&str], &[&str])] = &[
    ("host and golden", &["test", "--workspace", "--locked", "--no-fail-fast"], &[]),
    ("packages", PACKAGES, &[]),
    ("data", &["test", "--locked", "--package", "kutrace-tests", "--features", "vm", "--test", "data"], &[]),
    ("vm", VM, &[]),
    (DISTRIBUTION, VM, &["exact::", "faults::", "marks::", "nmi::", "proof::", "waits::"]),
    ("browser", &["test", "--locked", "--package", "kutrace-tests", "--features", "vm", "--test", "browser"], &[]),
];
/// The tests of what `cargo xtask dist` makes.
const PACKAGES: &[&str] = &["test", "--locked", "--package", "kutrace-tests", "--features", "vm", "--test", "packages"];
/// The tests of the VM; names of some may follow.
const VM: &[&str] = &["test", "--locked", "--package", "kutrace-tests", "--features", "vm", "--test", "vm", "--"];
/// The kernel configured like a distribution's, and the tier that runs on it.
const DISTRIBUTION: &str = "distribution";
/// The tests that name that kernel themselves: they are in its tier, and not in that of the guest.
const NAME_DISTRIBUTION: &[&str] = &[
    "denied::",
    "a_device_that_goes",
    "a_program_in_a_container",
    "a_kernel_that_is_locked_down",
    "a_service_that_a_filter_would_kill",
    "a_quota_is_told",
    "each_idle_state_of_acpi",
    "frozen_and_stopped_threads",
    "hibernation_ends",
    "hooks_and_tracepoints_say_the_same",
    "memory_and_the_disk_hold",
    "threads_are_in_the_control_groups",
];
/// A test of the guest's tier that the distribution's kernel need not repeat.
const POLLS: &str = "idle_that_polls_is_idle";
/// How many of a tier's longest tests are listed.
const LONGEST: usize = 12;
/// How the VM's tests are run in their long form; names of tests follow.
const SOAK: &[&str] =
    &["test", "--locked", "--package", "kutrace-tests", "--features", "soak", "--test", "vm", "--", "--nocapture"];
/// The tests that have a long form.
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
];
/// Kernels that run the tests that name no kernel themselves, and which of those.
const OTHERS: &[(&str, &[&str])] = &[
    (
        DISTRIBUTION,
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
            "packets::",
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
    ("realtime", &["exact::", "faults::", "nmi::", "packets::", "proof::", "waits::"]),
    ("v7.x", &["denied::", "exact::", "faults::", "hooks::", "hotplug::", "nmi::", "packets::", "proof::", "user::"]),
];

/// Runs every tier, also after one has failed; the status is 1 if any did.
pub fn run() -> Result<u8> {
    let began = Instant::now();
    // Before anything rebuilds this program: afterwards its path is that of a deleted file.
    let xtask = std::env::current_exe().context("test: xtask's own path")?;
    let skipped = place::made(place::target())?.join("skipped");
    let times = skipped.with_file_name("times");
    fs::write(&skipped, "").with_context(|| skipped.display().to_string())?;
    // On a machine without either kernel their builds would make the run half as long again.
    let postpones = !kernel::was_built(Variant::USUAL)? && !kernel::was_built(Variant::Distribution)?;
    let (mut good, mut failed) = (Vec::new(), Vec::new());
    let mut note = |name: &'static str, passed: bool| if passed { good.push(name) } else { failed.push(name) };
    say("demo")?;
    let demo = demo::run(Variant::USUAL.into(), &[]);
    if let Err(error) = &demo {
        eprintln!("xtask: {error:#}");
    }
    note("demo", demo.is_ok());
    for (name, words, tests) in TIERS {
        say(name)?;
        let mut cargo = cargo(&[*words, *tests].concat(), &xtask);
        match *name {
            DISTRIBUTION if postpones => {
                let why = "its kernel takes 15 min to build, which the next run does; this one built the usual kernel";
                fs::write(&skipped, fs::read_to_string(&skipped)? + &format!("skipped: {name}: {why}\n"))?;
                continue;
            }
            // It is the longest of them, and the same on either kernel.
            DISTRIBUTION => {
                cargo.args(NAME_DISTRIBUTION).args(["--skip", POLLS]).env("KUTRACE_VM_KERNEL", DISTRIBUTION);
            }
            "vm" => drop(cargo.args(NAME_DISTRIBUTION.iter().flat_map(|test| ["--skip", test]))),
            _ => {}
        }
        cargo.env("KUTRACE_CASES", "10").env("PROPTEST_CASES", "260").env("KUTRACE_CUTS", "12");
        fs::write(&times, "")?;
        cargo.env("KUTRACE_SKIPPED", &skipped).env("KUTRACE_TIMES", &times);
        cargo.env("KUTRACE_DEMO", demo::artifacts()).env("KUTRACE_PAGE", demo::artifacts().join("t.html"));
        // Chromium's times mean something, too. Guests wait for each other.
        match *name {
            "host and golden" => {}
            "vm" | DISTRIBUTION => drop(cargo.env("RUST_TEST_THREADS", "2")),
            _ => drop(cargo.env("RUST_TEST_THREADS", "1")),
        }
        let tier = Instant::now();
        note(name, passed(&mut cargo)?);
        say(&format!("{name}: took {}{}", minutes(tier.elapsed()), longest(&fs::read_to_string(&times)?)))?;
    }
    let mut out = std::io::stdout().lock();
    let took = minutes(began.elapsed());
    let skipped = fs::read_to_string(&skipped).with_context(|| skipped.display().to_string())?;
    if !skipped.is_empty() {
        writeln!(out, "{skipped}xtask test: {} skipped", skipped.lines().count())?;
    }
    match failed.as_slice() {
        [] => writeln!(out, "xtask test: all passed: {} ({took})", good.join(", "))?,
        failed => writeln!(out, "xtask test: FAILED: {} ({took})", failed.join(", "))?,
    }
    Ok(u8::from(!failed.is_empty()))
}

/// Runs the long form of the tests, and the others on other kernels; the status is 1 if any failed.
pub fn soak() -> Result<u8> {
    let xtask = std::env::current_exe().context("soak: xtask's own path")?;
    let run = |tests: &[&str], kernel: Option<&str>| {
        let mut cargo = cargo(&[SOAK, tests].concat(), &xtask);
        cargo.env("RUST_TEST_THREADS", "2").envs(kernel.map(|kernel| ("KUTRACE_VM_KERNEL", kernel)));
        passed(&mut cargo)
    };
    let mut all = run(LONG, None)?;
    for (kernel, tests) in OTHERS {
        say(kernel)?;
        all &= run(tests, Some(kernel))?;
    }
    say("packages")?;
    packages::ensure_inspectors()?;
    let mut packages = cargo(PACKAGES, &xtask);
    packages.args(["--features", "soak"]).env("RUST_TEST_THREADS", "1");
    all &= passed(&mut packages)?;
    say("mutants")?;
    Ok(mutants::run(&MutantsArgs::default())?.max(u8::from(!all)))
}

/// `cargo` in the checkout, for tests that run this program.
fn cargo(words: &[&str], xtask: &Path) -> Command {
    let mut cargo = tied("cargo");
    cargo.args(words).current_dir(place::checkout()).env("KUTRACE_XTASK", xtask);
    cargo
}

/// Runs `cargo` as a group of processes, all of which end when the user wants to stop.
fn passed(cargo: &mut Command) -> Result<bool> {
    let guard = SignalGuard::new()?;
    let mut child = cargo.process_group(0).stdin(Stdio::null()).spawn().context("test: cargo: cannot be started")?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if guard.is_requested() {
            let group = Pid::from_child(&child);
            kill_process_group(group, Signal::TERM).context("test: cargo")?;
            child.wait()?;
            bail!("test: interrupted");
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The tests whose guests were there longest, of lines of seconds and test; one that had several guests has a line for
/// each.
fn longest(times: &str) -> String {
    let mut of_test = BTreeMap::<&str, f64>::new();
    for (seconds, test) in times.lines().filter_map(|line| line.split_once(' ')) {
        *of_test.entry(test).or_default() += seconds.parse::<f64>().unwrap_or_default();
    }
    let mut tests: Vec<_> = of_test.into_iter().collect();
    tests.sort_by(|a, b| b.1.total_cmp(&a.1));
    tests.iter().take(LONGEST).map(|(test, seconds)| format!("\n{seconds:7.1} s  {test}")).collect()
}

fn say(tier: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "== {tier}")?)
}
