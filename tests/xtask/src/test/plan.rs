// SPDX-License-Identifier: BSD-3-Clause
//! Programs of tests, and the parts of them to run: a program as a whole, or each of its tests in a process of its own
//! if that has a guest.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::place;
use crate::progress::{self, output, tied};

/// Form of the tests: which of them are compiled, and with which constants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Required of every change.
    Gate,
    /// Too long for that, or left to chance.
    Night,
    /// Takes hours.
    Soak,
}

impl Form {
    /// The feature of kutrace-tests.
    fn feature(self) -> &'static str {
        match self {
            Form::Gate => "kutrace-tests/vm",
            Form::Night => "kutrace-tests/night",
            Form::Soak => "kutrace-tests/soak",
        }
    }
}

/// Tests by their requirements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum Tier {
    /// Nothing but the checkout
    Host,
    /// Chromium, Firefox and the page of the demo
    Browser,
    /// The results of `cargo xtask dist`
    Packages,
    /// Readers from PyPI
    Data,
    /// Callgrind
    Costs,
    /// Guests
    Vm,
}

impl Tier {
    /// In the order in which they are begun: the indivisible ones first.
    pub const ALL: [Tier; 6] = [Tier::Host, Tier::Browser, Tier::Packages, Tier::Data, Tier::Costs, Tier::Vm];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Host => "host",
            Tier::Browser => "browser",
            Tier::Packages => "packages",
            Tier::Data => "data",
            Tier::Costs => "costs",
            Tier::Vm => "vm",
        }
    }

    /// The tier of a line of the file of failures.
    pub fn parse(name: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

/// The part that one process runs.
#[derive(Clone)]
pub struct Task {
    /// Its tier.
    pub tier: Tier,
    /// The test or program that is run.
    pub what: What,
    /// The folder in which it runs: that of its package.
    pub folder: PathBuf,
    /// While other tests run.
    pub time: Time,
}

/// Time at which a task runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// With any others.
    Beside,
    /// When no other test has a guest, as it has requested.
    Alone,
    /// Once more with nothing next to it, since the first run could not decide.
    Again,
}

/// A program of tests, or a part of it.
#[derive(Clone)]
pub enum What {
    /// All tests of a program whose names have one of these texts, or all.
    Program { path: PathBuf, names: Vec<String> },
    /// One test of a program.
    Test { path: PathBuf, name: String },
    /// The examples in doc comments, which cargo builds and runs.
    Examples,
}

impl Task {
    /// The program with its arguments.
    pub fn command(&self) -> Command {
        let mut command = match &self.what {
            What::Program { path, names } => {
                let mut command = tied(&path.to_string_lossy());
                command.args(names);
                if self.tier == Tier::Host {
                    // The harness times tests only if it takes itself for an unstable one.
                    command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
                } else {
                    command.arg("--test-threads=1");
                }
                command
            }
            What::Test { path, name } => {
                let mut command = tied(&path.to_string_lossy());
                command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
                command
            }
            What::Examples => {
                let mut command = tied("cargo");
                command.args([
                    "test",
                    "--quiet",
                    "--workspace",
                    "--locked",
                    "--doc",
                    "--features",
                    Form::Gate.feature(),
                ]);
                command
            }
        };
        command.current_dir(&self.folder);
        command
    }

    /// Its name in the output.
    pub fn name(&self) -> String {
        match &self.what {
            What::Program { path, .. } => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                stem.rsplit_once('-').map_or(&*stem, |(name, _)| name).to_owned()
            }
            What::Test { name, .. } => name.clone(),
            What::Examples => "examples".to_owned(),
        }
    }
}

/// The programs of tests, built.
pub struct Programs(Vec<Program>);

struct Program {
    tier: Tier,
    path: PathBuf,
    folder: PathBuf,
}

impl Programs {
    /// Builds all of them in one go, so that their dependencies are built once.
    pub fn build(form: Form) -> Result<Programs> {
        let log = place::made(place::target())?.join("tests.log");
        let mut cargo = tied("cargo");
        cargo.args(["test", "--workspace", "--locked", "--no-run", "--features", form.feature()]);
        cargo.arg("--message-format=json-render-diagnostics").current_dir(place::checkout());
        progress::run("tests: building", &mut cargo, &log)?;
        let said = fs::read_to_string(&log).context("tests.log")?;
        Ok(Programs(said.lines().filter_map(program).collect()))
    }

    /// The program of a tier that has one.
    pub fn of(&self, tier: Tier) -> Result<&Path> {
        let found = self.0.iter().find(|program| program.tier == tier);
        found.map(|program| program.path.as_path()).with_context(|| format!("test: no program for {}", tier.name()))
    }

    /// All tasks, of a guest's tests the longest first.
    pub fn tasks(&self, selected: &[(Tier, Vec<String>)], times: &BTreeMap<String, f64>) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        for (tier, names) in selected {
            for Program { path, folder, .. } in self.0.iter().filter(|program| program.tier == *tier) {
                let whats = match tier {
                    Tier::Vm => tests(path, names, times)?,
                    _ => vec![What::Program { path: path.clone(), names: names.clone() }],
                };
                tasks.extend(whats.into_iter().map(|what| Task {
                    tier: *tier,
                    what,
                    folder: folder.clone(),
                    time: Time::Beside,
                }));
            }
            if *tier == Tier::Host && names.is_empty() {
                tasks.push(Task { tier: *tier, what: What::Examples, folder: place::checkout(), time: Time::Beside });
            }
        }
        Ok(tasks)
    }
}

/// The tests of a program whose names have one of these texts, or all.
fn tests(path: &Path, names: &[String], times: &BTreeMap<String, f64>) -> Result<Vec<What>> {
    let listed = output(tied(&path.to_string_lossy()).args(["--list", "--format", "terse"]))?;
    let all = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut wanted: Vec<&str> =
        all.filter(|test| names.is_empty() || names.iter().any(|name| test.contains(name.as_str()))).collect();
    // One without a known time may be long.
    let took = |test: &str| times.get(test).copied().unwrap_or(f64::MAX);
    wanted.sort_by(|a, b| took(b).total_cmp(&took(a)).then(a.cmp(b)));
    Ok(wanted.into_iter().map(|name| What::Test { path: path.to_owned(), name: name.to_owned() }).collect())
}

/// The program that a line of cargo's names.
fn program(line: &str) -> Option<Program> {
    let field = |name: &str| Some(line.split_once(&format!(r#""{name}":""#))?.1.split('"').next()?.to_owned());
    if !line.contains(r#""reason":"compiler-artifact""#) || !line.contains(r#""test":true},"features""#) {
        return None;
    }
    let path = PathBuf::from(field("executable")?);
    let folder = PathBuf::from(field("manifest_path")?).parent()?.to_owned();
    let is_ours = folder == place::checkout().join("tests");
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    let name = stem.rsplit_once('-').map_or(stem.as_str(), |(name, _)| name);
    let tier = Tier::parse(name).filter(|_| is_ours).unwrap_or(Tier::Host);
    Some(Program { tier, path, folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_tests_is_told_from_what_else_cargo_builds() {
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"x","manifest_path":"{}/tests/Cargo.toml","target":{{"kind":["test"],"name":"vm"}},"profile":{{"opt_level":"0","test":{test}}},"features":[],"executable":{executable},"fresh":true}}"#,
                place::checkout().display()
            )
        };
        let found = program(&line(true, r#""/t/debug/deps/vm-0123""#)).unwrap();
        assert_eq!((found.tier, found.folder), (Tier::Vm, place::checkout().join("tests")));
        assert!(program(&line(false, r#""/t/debug/vm""#)).is_none());
        assert!(program(&line(true, "null")).is_none());
    }
}
