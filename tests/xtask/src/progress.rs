// SPDX-License-Identifier: BSD-3-Clause
//! Runs a long step with its output in a log file, and shows its name and how long it has been going.

use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use kutrace_cli::signal::{Interrupted, SignalGuard};

/// Interval between two lines about a step that continues, if there is no terminal to animate.
const REMINDER: Duration = Duration::from_secs(60);
/// A step shorter than this is not shown at all, so a warm run is quiet.
const SHORT: Duration = Duration::from_secs(1);
/// Lines of the log shown when the step fails.
const TAIL: usize = 25;

/// `program`, to be killed when this process dies, however it dies: no build and no guest outlives its xtask.
pub fn tied(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// Runs `command` to its end under the name `step`, its output in `log`; fails with [`Interrupted`] if the user wants to
/// stop, and ends it then.
pub fn run(step: &str, command: &mut Command, log: &Path) -> Result<()> {
    let file = File::create(log).with_context(|| format!("{}", log.display()))?;
    let errors = file.try_clone()?;
    let name = program_of(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("{step}: {name}: cannot be started"))?;
    let began = Instant::now();
    let guard = SignalGuard::new()?;
    let mut display = None;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if guard.is_requested() => {
                child.kill()?;
                child.wait()?;
                return Err(Interrupted.into());
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
        if began.elapsed() >= SHORT {
            display.get_or_insert_with(|| Display::begin(step, began)).remind();
        }
    };
    if let Some(display) = display {
        display.end(if status.success() { "done" } else { "failed" });
    }
    if status.success() {
        return Ok(());
    }
    eprint!("{}", tail_of(&std::fs::read(log)?));
    bail!("{step}: {name}: {status}\nhint: the whole log is {}", log.display())
}

/// Standard output of `command`, without the last line end.
pub fn output(command: &mut Command) -> Result<String> {
    let name = program_of(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("{name}: cannot be started"))?;
    if !output.status.success() {
        bail!("{name}: {}", output.status);
    }
    Ok(String::from_utf8(output.stdout).with_context(|| name)?.trim_end().to_owned())
}

/// The program a person would name: not the `setpriv` in front of it.
fn program_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut named = words.skip_while(|word| *word != "--").skip(1);
    let program = named.next().unwrap_or(command.get_program());
    PathBuf::from(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

/// The last lines of a log.
fn tail_of(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].iter().map(|line| format!("  | {line}\n")).collect()
}

/// A step on the screen: a spinner on a terminal, lines anywhere else.
struct Display {
    step: String,
    began: Instant,
    spinner: Option<ProgressBar>,
    said: Instant,
}

impl Display {
    fn begin(step: &str, began: Instant) -> Self {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("a constant template");
            let bar = ProgressBar::new_spinner().with_style(style).with_message(step.to_owned());
            bar.with_elapsed(began.elapsed())
        });
        match &spinner {
            Some(bar) => bar.enable_steady_tick(Duration::from_millis(120)),
            None => eprintln!("{step} ..."),
        }
        Self { step: step.to_owned(), began, spinner, said: Instant::now() }
    }

    /// Reports that the step continues, if nothing else shows it.
    fn remind(&mut self) {
        if self.spinner.is_none() && self.said.elapsed() >= REMINDER {
            self.said = Instant::now();
            eprintln!("{} ... ({})", self.step, minutes(self.began.elapsed()));
        }
    }

    fn end(self, how: &str) {
        if let Some(bar) = &self.spinner {
            bar.finish_and_clear();
        }
        eprintln!("{}: {how} ({})", self.step, minutes(self.began.elapsed()));
    }
}

/// `5m12s`, or `12.3s` below a minute.
pub fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        _ => format!("{}m{:02}s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_named_is_the_one_that_was_meant() {
        assert_eq!(program_of(tied("make").arg("-j2")), "make");
        assert_eq!(program_of(Command::new("/usr/bin/tar").arg("-x")), "tar");
    }

    #[test]
    fn only_the_end_of_a_long_log_is_shown() {
        let log: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let tail = tail_of(log.as_bytes());
        assert_eq!(tail.lines().count(), TAIL);
        assert!(tail.ends_with("  | line 99\n"));
        assert_eq!(tail_of(b""), "");
    }

    #[test]
    fn times_read_well() {
        assert_eq!(minutes(Duration::from_millis(2340)), "2.3s");
        assert_eq!(minutes(Duration::from_secs(312)), "5m12s");
    }
}
