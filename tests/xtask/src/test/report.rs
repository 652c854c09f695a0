// SPDX-License-Identifier: BSD-3-Clause
//! Results of the tests: a line for each as it ends, failures with all their files, and the closing lines.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

use super::lane::Log;
use super::plan::{Form, Task, Tier, Time, What};
use crate::place;
use crate::progress::minutes;

/// Message of a test that does not run next to others.
const ALONE: &str = "alone: ";
/// Message of a test that cannot decide.
const INCONCLUSIVE: &str = "inconclusive: ";
/// Lines shown of a test that failed; all of them are kept.
const SHOWN: usize = 60;
/// Some of those: lines that are shown again at the end.
const REASON: usize = 12;

/// Result of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Passed,
    Failed,
}

/// Results so far, shared by the lanes.
pub struct Report {
    /// The file in which tests note that they skip.
    skipped: PathBuf,
    /// Duration of each test in the last run.
    times: BTreeMap<String, f64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    passed: usize,
    failed: Vec<(Tier, String)>,
    /// Why a failed test failed, in a few lines.
    reasons: BTreeMap<String, String>,
    steps_failed: Vec<String>,
    alone: Vec<Task>,
    inconclusive: Vec<Task>,
    /// Number of repeated tests.
    repeated: usize,
    /// Seconds of each tier's tests, two of which may run at a time.
    tiers: BTreeMap<Tier, f64>,
    times: BTreeMap<String, f64>,
}

impl Report {
    /// A new one; the files of failed tests from the last run are removed.
    pub fn new(skipped: PathBuf) -> Result<Report> {
        let times = fs::read_to_string(times_file()).unwrap_or_default();
        let time =
            |line: &str| line.split_once(' ').and_then(|(took, name)| Some((name.to_owned(), took.parse().ok()?)));
        Ok(Report { skipped, times: times.lines().filter_map(time).collect(), state: Mutex::default() })
    }

    /// Duration of each test in the last run.
    pub fn times(&self) -> &BTreeMap<String, f64> {
        &self.times
    }

    /// The folder for the files of a task when it fails.
    pub fn folder(&self, task: &Task) -> PathBuf {
        failed_folder().join(format!("{}-{}", task.tier.name(), task.name().replace("::", "-")))
    }

    /// Something that is not a test has ended.
    pub fn step(&self, name: &str, result: Result<(), String>, took: Duration) {
        let mut state = self.state();
        match result {
            Ok(()) => {
                state.passed += 1;
                say(&format!("{name} ... ok ({})", minutes(took)));
            }
            Err(said) => {
                state.steps_failed.push(name.to_owned());
                say(&format!("{name} ... FAILED ({})\n{said}", minutes(took)));
            }
        }
    }

    /// A test of a program that has several has ended.
    pub fn test(&self, task: &Task, name: &str, verdict: Verdict, took: Duration) {
        self.state().note(task.tier, name, verdict, took);
    }

    /// A task has ended; `log` is all of its output.
    pub fn ended(&self, task: &Task, verdict: Verdict, took: Duration, log: &Log) -> Result<()> {
        let mut state = self.state();
        let name = task.name();
        let is_whole = matches!(task.what, What::Program { .. });
        if verdict == Verdict::Passed {
            if !is_whole {
                state.note(task.tier, &name, verdict, took);
            }
            return Ok(());
        }
        if task.tier == Tier::Vm && task.time == Time::Beside && log.text.lines().any(|line| line.starts_with(ALONE)) {
            state.alone.push(Task { time: Time::Alone, ..task.clone() });
            return Ok(());
        }
        let doubt = log.text.lines().find(|line| line.starts_with(INCONCLUSIVE)).filter(|_| task.time != Time::Again);
        if let Some(doubt) = doubt {
            say(&format!("test {} {name} ... {doubt} ({})", task.tier.name(), minutes(took)));
            state.repeated += 1;
            state.inconclusive.push(Task { time: Time::Again, ..task.clone() });
            return Ok(());
        }
        if !is_whole {
            state.note(task.tier, &name, verdict, took);
        } else if !log.names_failed {
            // It died without a word about a test.
            state.failed.push((task.tier, name.clone()));
        }
        state.reasons.insert(name.clone(), reason(&log.text));
        let folder = place::made(self.folder(task))?;
        fs::write(folder.join("output"), &log.text).with_context(|| folder.display().to_string())?;
        say(&format!(
            "{}\nkept:   {}\nrepeat: cargo xtask test {} {name}",
            shown(&log.text),
            folder.display(),
            task.tier.name()
        ));
        Ok(())
    }

    /// The tasks that want to be alone, each once.
    pub fn take_alone(&self) -> Vec<Task> {
        std::mem::take(&mut self.state().alone)
    }

    /// The tasks that could not decide, each once.
    pub fn take_inconclusive(&self) -> Vec<Task> {
        std::mem::take(&mut self.state().inconclusive)
    }

    /// Prints the closing lines, and stores data for the next run; the status is 1 if anything failed.
    pub fn end(self, command: &str, form: Form, took: Duration) -> Result<u8> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut times = self.times;
        times.extend(state.times);
        if form == Form::Gate {
            let lines: String = times.iter().map(|(name, took)| format!("{took:.1} {name}\n")).collect();
            fs::write(times_file(), lines).context("times")?;
        }
        let failed: String = state.failed.iter().map(|(tier, name)| format!("{} {name}\n", tier.name())).collect();
        fs::write(place::made(failed_folder())?.join("list"), &failed).context("failed")?;

        let notes = fs::read_to_string(&self.skipped).with_context(|| self.skipped.display().to_string())?;
        notes.lines().for_each(say);
        let skipped = notes.lines().filter(|line| line.starts_with("skipped: ")).count();
        for (tier, seconds) in &state.tiers {
            say(&format!("{}: {} of tests", tier.name(), minutes(Duration::from_secs_f64(*seconds))));
        }
        state.steps_failed.iter().for_each(|step| say(&format!("FAILED: {step}")));
        for (tier, name) in &state.failed {
            say(&format!("FAILED: {} {name}\n{}", tier.name(), state.reasons.get(name).map_or("", |why| why)));
        }
        if !failed.is_empty() {
            say("repeat: cargo xtask test --failed");
        }
        let failures = state.failed.len() + state.steps_failed.len();
        say(&format!("xtask {command}: {} in all, {} inconclusive and repeated", minutes(took), state.repeated));
        say(&format!("{command}: {} passed, {failures} failed, {} skipped", state.passed, skipped));
        Ok(u8::from(failures > 0))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, tier: Tier, name: &str, verdict: Verdict, took: Duration) {
        let said = match verdict {
            Verdict::Passed => {
                self.passed += 1;
                "ok"
            }
            Verdict::Failed => {
                self.failed.push((tier, name.to_owned()));
                "FAILED"
            }
        };
        *self.tiers.entry(tier).or_default() += took.as_secs_f64();
        self.times.insert(name.to_owned(), took.as_secs_f64());
        say(&format!("test {} {name} ... {said} ({})", tier.name(), minutes(took)));
    }
}

/// Failures of the last run, by tier.
pub fn failed_last() -> Result<Vec<(Tier, Vec<String>)>> {
    let list = failed_folder().join("list");
    let text = fs::read_to_string(&list).with_context(|| format!("{}: no run before", list.display()))?;
    let mut tiers: BTreeMap<Tier, Vec<String>> = BTreeMap::new();
    for (tier, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        tiers
            .entry(Tier::parse(tier).with_context(|| format!("{}: {tier}", list.display()))?)
            .or_default()
            .push(name.to_owned());
    }
    Ok(tiers.into_iter().collect())
}

/// Folder of the files of failures.
fn failed_folder() -> PathBuf {
    place::target().join("failed")
}

fn times_file() -> PathBuf {
    place::target().join("times")
}

/// The part of a program's output with the reason of its failure.
fn shown(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let says_why = |line: &&str| line.contains("panicked at ") || *line == "failures:";
    let from = lines.iter().position(says_why).unwrap_or(lines.len().saturating_sub(SHOWN));
    let mut shown: String = lines[from..].iter().take(SHOWN).map(|line| format!("  | {line}\n")).collect();
    if lines.len() - from > SHOWN {
        shown += &format!("  | ... {} more lines\n", lines.len() - from - SHOWN);
    }
    shown
}

/// The beginning and the end of a panic's message: if a log is shortened, its last lines still show the reason of a
/// failure.
fn reason(text: &str) -> String {
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.contains("panicked at ")).collect();
    let end = lines.iter().position(|line| line.starts_with("stack backtrace:")).unwrap_or(lines.len());
    let (first, rest) = lines[..end].split_at(end.min(REASON / 2));
    let last = &rest[rest.len().saturating_sub(REASON / 2)..];
    first.iter().chain(last).map(|line| format!("  | {}\n", line.chars().take(240).collect::<String>())).collect()
}

/// A line of the output.
pub fn say(line: &str) {
    // A reader that is gone does not stop the tests.
    let _ = writeln!(std::io::stdout().lock(), "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_both_ends_of_the_panic_s_message() {
        let lines: String = (0..40).map(|line| format!("line {line}\n")).collect();
        let text = format!("boot\nthread 'x' panicked at tests/x.rs:1:2:\n{lines}stack backtrace:\n   0: begin\n");
        let said = reason(&text);
        assert!(said.starts_with("  | thread 'x' panicked at tests/x.rs:1:2:\n  | line 0\n"), "{said}");
        assert!(said.ends_with("  | line 38\n  | line 39\n"), "{said}");
        assert_eq!(said.lines().count(), REASON);
        assert_eq!(reason("panicked at a:\nb\n"), "  | panicked at a:\n  | b\n");
        assert_eq!(reason("no panic\n"), "");
    }
}
