// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask mutants`: takes one hook of the kernel, one line of the recorder, one probe on a stock kernel's
//! tracepoints or one line of the rest of the module away at a time, and runs the tests that claim it: each must fail.
//! tests/mutants lists these.
//!
//! A test that fails proves something only if it passes without the mutant, and if the test itself failed: each is run
//! once on the same kernel with every hook in place, and a guest that breaks is distinguished from a trace that is
//! wrong.

pub mod hooks;
pub mod lines;
pub mod sources;
mod table;
mod verdict;

use std::io::{stdout, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{bail, Context, Result};
use clap::Args;
use kutrace_cli::signal::SignalGuard;

use crate::progress::minutes;
use table::Claims;
pub use table::{Entry, Kind};
pub use verdict::asked;
use verdict::{Outcome, Runs, Verdict};

#[derive(Args, Default)]
pub struct MutantsArgs {
    /// Only show which mutants there are, and which tests claim them
    #[arg(long)]
    list: bool,
    /// Only the mutants of this number, or whose table, line in it or test has this text
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

/// Runs the requested mutants; the status is 1 if one survives or a test cannot decide.
pub fn run(args: &MutantsArgs) -> Result<u8> {
    let began = Instant::now();
    let guard = SignalGuard::new()?;
    let mut runs = Runs::default();
    let (mut killed, mut excused, mut left) = (0, 0, Vec::new());
    let all = Kind::ALL.into_iter().map(table::read).collect::<Result<Vec<_>>>()?;
    for mutant in all.iter().flatten().filter(|mutant| args.takes(mutant)) {
        let Claims::Tests(tests) = &mutant.claims else {
            say(mutant, &mutant.claims.to_string(), "excused", Instant::now())?;
            excused += 1;
            continue;
        };
        if args.list {
            say(mutant, &mutant.claims.to_string(), "", Instant::now())?;
            continue;
        }
        let at = Instant::now();
        match runs.judge(mutant, tests)? {
            Verdict::Killed { test, said } => {
                killed += 1;
                say(mutant, &test, &format!("killed: {said}"), at)?;
            }
            Verdict::Survived => {
                left.push(mutant.name());
                say(mutant, &mutant.claims.to_string(), "SURVIVED", at)?;
            }
            Verdict::Unclear(why) => {
                left.push(mutant.name());
                say(mutant, &mutant.claims.to_string(), &format!("UNCLEAR: {why}"), at)?;
            }
        }
        if guard.is_requested() {
            break;
        }
    }
    let mut out = stdout().lock();
    if !args.list {
        let took = minutes(began.elapsed());
        writeln!(out, "mutants: {killed} killed, {} left, {excused} excused ({took})", left.len())?;
        left.iter().try_for_each(|name| writeln!(out, "left: {name}"))?;
    }
    Ok(u8::from(!left.is_empty()))
}

/// Fails unless a test fails with the mutant whose line has `expression`; `program` is that of the VM's tests, which are
/// known to pass without it.
pub fn canary(program: &Path, kind: Kind, expression: &str) -> Result<()> {
    let entries = table::read(kind)?;
    let mutant = entries.iter().find(|entry| entry.what.contains(expression));
    let mutant = mutant.with_context(|| format!("{}: no {expression}", kind.file()))?;
    let Claims::Tests(tests) = &mutant.claims else { bail!("{}: no test claims {expression}", kind.file()) };
    for test in tests {
        match verdict::in_guest(program, test, kind, mutant.number)? {
            Outcome::Failed(_) => return Ok(()),
            Outcome::Passed => {}
            Outcome::Broke(why) => bail!("{test}: {why}"),
        }
    }
    bail!("SURVIVED: {}", tests.join(" "))
}

impl MutantsArgs {
    fn takes(&self, mutant: &Entry) -> bool {
        let text = format!("{} {} {}", mutant.kind.file(), mutant.name(), mutant.claims);
        let is_taken = |filter: &String| match filter.parse::<usize>() {
            Ok(number) => mutant.number == number,
            Err(_) => text.contains(filter),
        };
        self.filters.is_empty() || self.filters.iter().any(is_taken)
    }
}

/// A line of the output.
fn say(mutant: &Entry, tests: &str, result: &str, began: Instant) -> Result<()> {
    let seconds = began.elapsed().as_secs();
    Ok(writeln!(stdout().lock(), "{} | {tests} | {result} | {seconds} s", mutant.name())?)
}
