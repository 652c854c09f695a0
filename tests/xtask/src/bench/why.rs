// SPDX-License-Identifier: BSD-3-Clause
//! Accuracy of `why`: records the cases of tests/causes in guests, and judges its answers. And accuracy of `diff`, for
//! many recordings of each control.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::{compile, in_guest};
use crate::kernel::Variant;
use crate::place;
use crate::progress::{self, output, tied};
use crate::vm::VmArgs;

/// The guests that cases ask for, and their kernels; the load of the host disturbs the last.
const GUESTS: [(&str, Variant); 3] =
    [("one", Variant::Small), ("groups", Variant::Distribution), ("many", Variant::Small)];
/// Instructions of a paced guest take 2^0 ns, as those of a real CPU. In one that is eight times slower, what servers do
/// now and then of their own accord takes as long as what is planted.
const PACE: u8 = 0;
/// MiB of the disk of a guest, and seconds that one may take.
const DISK: u32 = 512;
const LIMIT: u64 = 3 * 3600;

/// Cases to judge.
#[derive(Clone, Copy, PartialEq)]
pub enum Judged {
    /// `why`, of one recording of each case.
    Why,
    /// `diff`, of pairs of recordings of each control.
    Diff,
}

/// Records the cases whose names begin so, or all, and returns the table.
pub fn measure(judged: Judged, seed: Option<u64>, names: &[String], dir: &Path) -> Result<String> {
    let (name, [script, judge]) = match judged {
        Judged::Why => ("why", ["script", "judge"]),
        Judged::Diff => ("diff", ["script-pairs", "judge-pairs"]),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_secs());
    let seed = seed.unwrap_or(now);
    let causes = place::checkout().join("tests/causes");
    let plant = compile(&causes.join("plant.c"), dir)?;
    let traces = dir.join(name);
    if traces.exists() {
        fs::remove_dir_all(&traces).with_context(|| traces.display().to_string())?;
    }
    let traces = place::made(traces)?;
    let program = program(dir)?;
    let cases = causes.join("cases.txt");
    for (guest, kernel) in GUESTS {
        let cpus = if guest == "many" { many() } else { 1 };
        let mut command = Command::new(&program);
        command.arg(script).arg(&cases).args([guest, &cpus.to_string(), &seed.to_string()]).args(names);
        let script = output(&mut command)?;
        if script.is_empty() {
            continue;
        }
        let prepare = fs::read_to_string(causes.join("prepare.sh")).context("bench: prepare.sh")?;
        let script = format!("set +e\nCAUSES='{}'\n{prepare}\n{script}", causes.display());
        let how = VmArgs {
            kernel: kernel.into(),
            disk: DISK,
            cpus,
            paced: (cpus == 1).then_some(PACE),
            timeout: LIMIT,
            ..VmArgs::new(Vec::new())
        };
        in_guest(&script, &[&plant], &traces, how)?;
    }
    let mut table = Command::new(&program);
    table.arg(judge).arg(&cases).arg(&traces).args(names);
    Ok(format!("`cargo xtask bench {name} --seed {seed}`\n\n{}\n", output(&mut table)?))
}

/// Several CPUs: as many as the host has, up to four. If they had to take turns, each would stand still while another runs,
/// and little else would be seen.
fn many() -> u32 {
    thread::available_parallelism().map_or(2, |cpus| cpus.get().clamp(2, 4) as u32)
}

/// The program that knows the cases.
fn program(dir: &Path) -> Result<PathBuf> {
    let mut cargo = tied("cargo");
    cargo.args(["build", "--release", "--locked", "--package", "kutrace-bench", "--bin", "causes"]);
    progress::run("bench: building", cargo.current_dir(place::checkout()), &dir.join("causes.log"))?;
    Ok(place::target().join("release/causes"))
}
