// SPDX-License-Identifier: BSD-3-Clause
//! End of a run: prints the error in one line, with a hint if there is one, and returns the exit status.

use std::process::ExitCode;

use anyhow::Result;

use crate::signal::Interrupted;
use crate::{hint, message, say, standard, Failure};

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Completely done.
    Done = 0,
    /// Not done; or two traces were compared and differ.
    Failed = 1,
    /// Wrong usage; or two traces could not be compared.
    Usage = 2,
    /// Done, but events were lost, or data were damaged.
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

/// Runs `tool`. Prints the error if there is one, and returns the status of the process.
pub fn run<S: Into<Status>>(tool: &'static str, run: impl FnOnce() -> Result<S>) -> ExitCode {
    message::name(tool);
    let status = run().map_or_else(|error| fail(&error).into(), Into::into);
    ExitCode::from(status.0)
}

/// Prints an error, and its hint if it has one. A closed pipe is the reader's choice, and not an error.
pub fn fail(error: &anyhow::Error) -> Exit {
    if standard::is_broken_pipe(error) {
        return Exit::Done;
    }
    say(format_args!("{error:#}"));
    if error.chain().any(|cause| cause.is::<Interrupted>()) {
        return Exit::Interrupted;
    }
    if let Some(failure) = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()) {
        hint(failure.hint());
    }
    Exit::Failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::tests::LINE;
    use anyhow::Context;
    use std::io;

    #[test]
    fn a_closed_pipe_is_a_quiet_end() {
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("standard output");
        assert_eq!(fail(&error), Exit::Done);
    }

    #[test]
    fn an_interrupt_has_a_status_of_its_own_whatever_stands_around_it() {
        let _line = LINE.lock();
        let error = anyhow::Error::from(Interrupted).context("t.trace").context("stop");
        assert_eq!(fail(&error), Exit::Interrupted);
        assert_eq!(Status::from(Exit::Interrupted), Status(130));
    }

    #[test]
    fn a_failure_stands_behind_its_place() {
        let _line = LINE.lock();
        let error = Err::<(), _>(Failure::new("busy", "wait")).context("/dev/kutrace").unwrap_err();
        assert_eq!(format!("{error:#}"), "/dev/kutrace: busy");
        assert_eq!(fail(&error), Exit::Failed);
    }
}
