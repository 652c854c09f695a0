// SPDX-License-Identifier: BSD-3-Clause
//! Runs tasks, as many at a time as there are lanes, and reads their programs' output line by line.
//!
//! No program is alive when this returns, also when the user wants to stop.

use std::io::{pipe, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use kutrace_cli::signal::SignalGuard;
use rustix::process::{kill_process_group, Pid, Signal};

use super::plan::{Task, Tier, Time, What};
use super::report::{Report, Verdict};

/// Between two looks at what sends no event.
const TICK: Duration = Duration::from_millis(50);

/// Runs `tasks` in their order; fails only if the user wants to stop, or the harness cannot go on.
pub fn run(
    tasks: Vec<Task>,
    lanes: usize,
    variables: &[(&'static str, String)],
    report: &Report,
    guard: &SignalGuard,
) -> Result<()> {
    let queue = Mutex::new(tasks.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<()> {
        while let Some(task) = next() {
            run_one(&task, variables, report, guard)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(work)).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().expect("a lane does not panic"))
    })
}

/// Runs a task to its end, and reports each of its tests.
fn run_one(task: &Task, variables: &[(&'static str, String)], report: &Report, guard: &SignalGuard) -> Result<()> {
    let began = Instant::now();
    let failed = report.folder(task);
    let mut command = task.command();
    command.envs(variables.iter().map(|(name, value)| (name, value))).env("KUTRACE_FAILED", &failed);
    if task.time == Time::Beside {
        command.env("KUTRACE_BESIDE", "1");
    }
    let (reader, writer) = pipe().context("test: no pipe")?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let mut child = command.spawn().with_context(|| format!("test: {}: cannot be started", task.name()))?;
    // Its writing ends are the child's alone from now on.
    drop(command);
    let reading = thread::scope(|scope| {
        let reading = scope.spawn(|| read(task, reader, report));
        let status = wait(&mut child, guard);
        let log = reading.join().expect("reading does not panic");
        status.map(|succeeded| (succeeded, log))
    });
    let (succeeded, log) = reading?;
    let verdict = if succeeded && log.has_run(task) { Verdict::Passed } else { Verdict::Failed };
    report.ended(task, verdict, began.elapsed(), &log)
}

/// Waits for the program, all of whose processes end when the user wants to stop.
fn wait(child: &mut Child, guard: &SignalGuard) -> Result<bool> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if guard.is_requested() {
            kill_process_group(Pid::from_child(child), Signal::TERM).context("test")?;
            child.wait()?;
            bail!("test: interrupted");
        }
        thread::sleep(TICK);
    }
}

/// Output of a program.
#[derive(Default)]
pub struct Log {
    /// All of it.
    pub text: String,
    /// True if it named a test that failed.
    pub names_failed: bool,
}

impl Log {
    /// True if it ran the requested tests: a test that does not exist passes nothing.
    fn has_run(&self, task: &Task) -> bool {
        match task.what {
            What::Test { .. } => self.text.contains("test result: ok. 1 passed"),
            What::Program { .. } | What::Examples => true,
        }
    }
}

/// Reads a program's output to its end; reports its lines about tests as they come.
fn read(task: &Task, from: impl std::io::Read, report: &Report) -> Log {
    let mut log = Log::default();
    let mut since = Instant::now();
    for line in BufReader::new(from).split(b'\n') {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line).into_owned();
        log.text.push_str(&line);
        log.text.push('\n');
        let Some((name, verdict, took)) = (if is_single(task) { None } else { outcome(&line) }) else { continue };
        log.names_failed |= verdict == Verdict::Failed;
        // Where tests run one after the other, the time between two lines is that of a test.
        let took = took.unwrap_or_else(|| since.elapsed());
        since = Instant::now();
        report.test(task, &name, verdict, took);
    }
    log
}

fn is_single(task: &Task) -> bool {
    task.tier == Tier::Vm || matches!(task.what, What::Examples)
}

/// The result of a test in a line: `test NAME ... ok <0.012s>`.
fn outcome(line: &str) -> Option<(String, Verdict, Option<Duration>)> {
    let (name, said) = line.strip_prefix("test ")?.split_once(" ... ")?;
    // A test's own output to the terminal may come between the two.
    let (said, took) = match said.rsplit_once(" <") {
        Some((said, took)) => (said, took.strip_suffix("s>").and_then(|took| took.parse().ok())),
        None => (said, None),
    };
    let verdict = match said.rsplit(' ').next()? {
        said if said.ends_with("ok") => Verdict::Passed,
        said if said.ends_with("FAILED") => Verdict::Failed,
        _ => return None,
    };
    Some((name.trim_end_matches(" - should panic").to_owned(), verdict, took.map(Duration::from_secs_f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_harness_prints_of_a_test_is_understood() {
        let of =
            |line: &str| outcome(line).map(|(name, verdict, took)| (name, verdict, took.map(|took| took.as_millis())));
        assert_eq!(of("test a::b ... ok"), Some(("a::b".into(), Verdict::Passed, None)));
        assert_eq!(of("test a::b ... ok <0.012s>"), Some(("a::b".into(), Verdict::Passed, Some(12))));
        assert_eq!(of("test a::b ... FAILED <1.5s>"), Some(("a::b".into(), Verdict::Failed, Some(1500))));
        assert_eq!(of("test a - should panic ... ok"), Some(("a".into(), Verdict::Passed, None)));
        for other in ["test result: ok. 3 passed", "running 3 tests", "test a has been running for over 60 seconds"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
