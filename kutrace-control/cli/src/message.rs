// SPDX-License-Identifier: BSD-3-Clause
//! What the user is told: one line per fact, `tool: place: fact`, and a hint on the next line where there is one.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::OnceLock;

/// Clears the last line of a terminal.
pub(crate) const CLEAR: &str = "\r\x1b[K";

static TOOL: OnceLock<&str> = OnceLock::new();
/// The last line of the terminal shows progress.
pub(crate) static PROGRESS: AtomicBool = AtomicBool::new(false);

/// From here on messages begin with this name.
pub(crate) fn name(tool: &'static str) {
    // A process is one tool: a second name would be the same.
    let _ = TOOL.set(tool);
}

/// The name of the tool that runs.
pub fn tool() -> &'static str {
    TOOL.get().copied().unwrap_or("kutrace")
}

/// To be printed before a line, so that it does not follow the progress on its line.
pub(crate) fn clear() -> &'static str {
    match PROGRESS.swap(false, Relaxed) {
        true => CLEAR,
        false => "",
    }
}

/// One line on standard error, after the tool's name. Where that is closed there is nobody to tell.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}{}: {line}", clear(), tool());
}

/// What to do about what was just said.
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
    /// An error that says `fact`, and `hint` on the next line.
    pub fn new(fact: impl Display, hint: impl Display) -> Failure {
        Failure { fact: fact.to_string(), hint: hint.to_string() }
    }

    /// What to do about it.
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
