// SPDX-License-Identifier: BSD-3-Clause
//! Runs tests with a mutant and reports the result.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{bail, Context, Result};

use super::lines;
use super::table::{Entry, Kind};
use crate::place;
use crate::progress::{self, tied};

/// The mutant's number; for `xtask vm` between its table and the file for the reason why a guest broke, with colons.
pub const VARIABLE: &str = "KUTRACE_MUTANT";

/// Result of a mutant.
pub enum Verdict {
    /// A test failed, and how.
    Killed { test: String, said: String },
    /// All tests passed.
    Survived,
    /// A test cannot decide, with the reason.
    Unclear(String),
}

/// End of one run of one test.
#[derive(Clone)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed, with its message.
    Failed(String),
    /// The guest or the harness broke.
    Broke(String),
}

/// Known facts about the tests.
#[derive(Default)]
pub struct Runs {
    /// The program of the VM's tests.
    program: Option<PathBuf>,
    /// The program of the host's, with every line of the recorder's table a choice.
    host: Option<PathBuf>,
    /// Each test's outcome without a mutant, by the table's name: each table has a build of its own.
    whole: BTreeMap<(&'static str, String), Outcome>,
}

impl Runs {
    /// Runs the tests with the mutant until one fails.
    pub fn judge(&mut self, mutant: &Entry, tests: &[String]) -> Result<Verdict> {
        for test in tests {
            match self.whole(mutant, test)? {
                Outcome::Passed => {}
                Outcome::Failed(said) => return Ok(Verdict::Unclear(format!("{test} fails without it: {said}"))),
                Outcome::Broke(said) => return Ok(Verdict::Unclear(format!("{test} breaks without it: {said}"))),
            }
            match self.run(mutant, test, mutant.number)? {
                Outcome::Passed => {}
                Outcome::Failed(said) => return Ok(Verdict::Killed { test: test.clone(), said }),
                Outcome::Broke(said) => return Ok(Verdict::Unclear(format!("{test}: {said}"))),
            }
        }
        Ok(Verdict::Survived)
    }

    /// Result of `test` with everything in place, in the same build.
    fn whole(&mut self, mutant: &Entry, test: &str) -> Result<Outcome> {
        let key = (mutant.kind.file(), test.to_owned());
        if let Some(outcome) = self.whole.get(&key) {
            return Ok(outcome.clone());
        }
        let outcome = self.run(mutant, test, 0)?;
        self.whole.insert(key, outcome.clone());
        Ok(outcome)
    }

    fn run(&mut self, mutant: &Entry, test: &str, number: usize) -> Result<Outcome> {
        if mutant.kind == Kind::Line {
            let program = match &self.host {
                Some(program) => program.clone(),
                None => self.host.insert(lines::build()?).clone(),
            };
            return lines::run(&program, test, number);
        }
        let program = match &self.program {
            Some(program) => program.clone(),
            None => self.program.insert(build(&place::checkout(), &place::target(), &VM)?).clone(),
        };
        in_guest(&program, test, mutant.kind, number)
    }
}

/// Runs a test of the VM's with a hook skipped, or with another module.
pub fn in_guest(program: &Path, test: &str, kind: Kind, number: usize) -> Result<Outcome> {
    let folder = place::made(place::target().join("mutants"))?;
    let broken = folder.join(format!("broken-{}-{number}", kind.file()));
    if broken.exists() {
        fs::remove_file(&broken).context("mutants")?;
    }
    let output = tied(&program.to_string_lossy())
        .args(["--exact", "--nocapture", "--test-threads=1", test])
        .current_dir(place::checkout().join("tests"))
        .env("KUTRACE_XTASK", std::env::current_exe().context("mutants: xtask's own path")?)
        .env(VARIABLE, format!("{}:{number}:{}", kind.file(), broken.display()))
        .stdin(Stdio::null())
        .output()
        .context("mutants: the tests cannot be started")?;
    let text = [output.stdout, output.stderr].concat();
    fs::write(folder.join(format!("{number}-{}.log", test.replace("::", "-"))), &text).context("mutants")?;
    Ok(outcome(&String::from_utf8_lossy(&text), output.status.success(), &broken))
}

/// Reads the output of the tests' program.
fn outcome(text: &str, succeeded: bool, broken: &Path) -> Outcome {
    match fs::read_to_string(broken) {
        Ok(why) => Outcome::Broke(why),
        Err(_) if !text.contains("\nrunning 1 test\n") => Outcome::Broke("there is no such test".into()),
        Err(_) if succeeded => Outcome::Passed,
        Err(_) if !text.contains("\ntest result: FAILED.") => Outcome::Broke("the tests ended early".into()),
        Err(_) => Outcome::Failed(said(text)),
    }
}

/// Message of a failed test: the first line after the place.
pub fn said(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at ")).skip(1);
    let said = lines.find(|line| !line.trim().is_empty()).unwrap_or("without a word");
    said.chars().take(120).collect()
}

/// The VM's tests, those for the distribution kernel too.
const VM: [&str; 4] = ["--features", "vm", "--test", "vm"];

/// Builds a program of tests of the workspace in `checkout`, in `target`.
pub fn build(checkout: &Path, target: &Path, which: &[&str]) -> Result<PathBuf> {
    let log = place::made(place::target().join("mutants"))?.join("build.log");
    let mut cargo = tied("cargo");
    cargo.args(["test", "--locked", "--package", "kutrace-tests"]).args(which);
    cargo.args(["--no-run", "--message-format=json"]).current_dir(checkout).env("CARGO_TARGET_DIR", target);
    progress::run("mutants: building the tests", &mut cargo, &log)?;
    let said = fs::read_to_string(&log).context("mutants")?;
    let paths = said.lines().filter_map(|line| line.split_once(r#""executable":""#)?.1.split('"').next());
    match paths.reduce(|_, last| last) {
        Some(path) => Ok(path.into()),
        None => bail!("mutants: cargo named no program\nhint: see {}", log.display()),
    }
}

/// The mutant that `xtask vm` is to run with, 0 for none, and where to write why a guest broke.
pub fn asked() -> Result<Option<(Kind, usize, PathBuf)>> {
    let Some(value) = std::env::var_os(VARIABLE) else { return Ok(None) };
    let value = value.into_string().ok().context(VARIABLE)?;
    let [table, number, path] = value.splitn(3, ':').collect::<Vec<_>>()[..] else {
        bail!("KUTRACE_MUTANT is TABLE:NUMBER:FILE")
    };
    let kind = Kind::ALL.into_iter().find(|kind| kind.file() == table).context(VARIABLE)?;
    Ok(Some((kind, number.parse().context(VARIABLE)?, path.into())))
}
