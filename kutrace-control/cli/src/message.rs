// SPDX-License-Identifier: BSD-3-Clause
//! Messages for the user: one line per fact, `tool: place: fact`, and a hint on the next line if there is one.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::OnceLock;

/// Clears the last line of a terminal.
pub(crate) const CLEAR: &str = "\r\x1b[K";

static TOOL: OnceLock<&str> = OnceLock::new();
/// True while the last line of the terminal shows progress.
pub(crate) static PROGRESS: AtomicBool = AtomicBool::new(false);

/// Sets the name that later messages begin with.
pub(crate) fn name(tool: &'static str) {
    // A process is one tool: a second name would be the same.
    let _ = TOOL.set(tool);
}

/// Name of the running tool.
pub fn tool() -> &'static str {
    TOOL.get().copied().unwrap_or("kutrace")
}

/// Text to print before a line, so that the line replaces the progress.
pub(crate) fn clear() -> &'static str {
    match PROGRESS.swap(false, Relaxed) {
        true => CLEAR,
        false => "",
    }
}

/// Prints a line on standard error, after the tool's name. Does nothing if that is closed.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}{}: {line}", clear(), tool());
}

/// Prints advice on the last message.
pub fn hint(advice: impl Display) {
    let _ = writeln!(io::stderr(), "{}hint: {advice}", clear());
}

/// A fact with advice.
#[derive(Debug)]
pub struct Failure {
    fact: String,
    hint: String,
}

impl Failure {
    /// An error that prints `fact`, and `hint` on the next line.
    pub fn new(fact: impl Display, hint: impl Display) -> Failure {
        Failure { fact: fact.to_string(), hint: hint.to_string() }
    }

    /// The advice.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fact)
    }
}

impl std::error::Error for Failure {}
