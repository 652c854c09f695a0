// SPDX-License-Identifier: BSD-3-Clause
//! What the user is told: one line per error, a hint below it, and the exit status.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use postprocess::standard;

use crate::interrupt::Interrupted;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All done.
    Done = 0,
    /// Not done; or two traces were compared and differ.
    Failed = 1,
    /// Not understood; or two traces could not be compared.
    Usage = 2,
    /// Done, but events were lost or blocks were damaged.
    Lost = 3,
    /// Ended by Ctrl-C or another signal.
    Interrupted = 130,
}

/// The status of the process: that of an [`Exit`], or of a command that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u8);

impl From<Exit> for Status {
    fn from(exit: Exit) -> Status {
        Status(exit as u8)
    }
}

/// A fact with advice.
#[derive(Debug)]
pub struct Failure {
    fact: String,
    hint: String,
}

impl Failure {
    /// What to do about it.
    pub fn hint(&self) -> &str {
        &self.hint
    }

    /// An error that says `fact`, and `hint` on the next line.
    pub fn new(fact: impl Display, hint: impl Display) -> Failure {
        Failure { fact: fact.to_string(), hint: hint.to_string() }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fact)
    }
}

impl std::error::Error for Failure {}

/// One line on standard error. Where even that is closed there is nobody to tell.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "kutrace_control: {line}");
}

/// Text on standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    standard::output().context("standard output")?;
    let mut out = io::stdout().lock();
    unless_gone(out.write_all(text.as_bytes()).and_then(|()| out.flush())).context("standard output")
}

/// A reader that goes away wants no more: that is no fault, and hides none.
pub fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says an error, and its hint if it has one. A closed pipe is the reader's wish, and no error.
pub fn fail(error: &anyhow::Error) -> Exit {
    if is_broken_pipe(error) {
        return Exit::Done;
    }
    say(format_args!("{error:#}"));
    if error.chain().any(|cause| cause.is::<Interrupted>()) {
        return Exit::Interrupted;
    }
    if let Some(failure) = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()) {
        let _ = writeln!(io::stderr(), "hint: {}", failure.hint);
    }
    Exit::Failed
}

/// The status of the process, after saying the error if there is one.
pub fn exit(result: anyhow::Result<Status>) -> ExitCode {
    let status = result.unwrap_or_else(|error| fail(&error).into());
    ExitCode::from(status.0)
}

/// Whether the reader of what was written has gone.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_a_quiet_end() {
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("standard output");
        assert_eq!(fail(&error), Exit::Done);
    }

    #[test]
    fn an_interrupt_has_a_status_of_its_own_whatever_stands_around_it() {
        let error = anyhow::Error::from(Interrupted).context("t.trace").context("stop");
        assert_eq!(fail(&error), Exit::Interrupted);
        assert_eq!(Status::from(Exit::Interrupted), Status(130));
    }

    #[test]
    fn a_failure_stands_behind_its_place() {
        let error = Err::<(), _>(Failure::new("busy", "wait")).context("/dev/kutrace").unwrap_err();
        assert_eq!(format!("{error:#}"), "/dev/kutrace: busy");
        assert_eq!(fail(&error), Exit::Failed);
    }
}
