// SPDX-License-Identifier: BSD-3-Clause
//! Reads the tables of tests/mutants: a line for each mutant, and below it, indented, the tests that claim it or the
//! reason why there is none.

use std::fmt;
use std::fs;

use anyhow::{bail, Context, Result};

use crate::place;

/// In front of a reason.
const EXCUSE: &str = "none: ";

/// Subject of a mutant, which decides its making.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A hook of the series: one kernel serves for all.
    Hook,
    /// An expression of the recorder: one program of tests of the host serves for all.
    Line,
    /// An expression of the probes on a stock kernel's tracepoints: a module for each.
    Probe,
    /// An expression of the rest of the module, only in a kernel: a module for each.
    Module,
}

impl Kind {
    /// All of them, in the order of their runs.
    pub const ALL: [Kind; 4] = [Kind::Hook, Kind::Line, Kind::Probe, Kind::Module];

    /// The table's name.
    pub fn file(self) -> &'static str {
        match self {
            Kind::Hook => "hooks.txt",
            Kind::Line => "recorder.txt",
            Kind::Probe => "probes.txt",
            Kind::Module => "module.txt",
        }
    }
}

/// A mutant and who fails with it.
#[derive(Clone)]
pub struct Entry {
    /// The table that it is in.
    pub kind: Kind,
    /// Its place in its table; the first is 1.
    pub number: usize,
    /// The removed text, and its place.
    pub what: String,
    /// The replacement.
    pub replacement: Option<String>,
    /// Tests that notice.
    pub claims: Claims,
}

/// Tests that notice a removal.
#[derive(Clone)]
pub enum Claims {
    /// Any of these tests.
    Tests(Vec<String>),
    /// No test, for this reason.
    Excuse(String),
}

impl Entry {
    /// Its name in the output.
    pub fn name(&self) -> String {
        let to = self.replacement.as_ref().map(|to| format!(" => {to}"));
        format!("{} {}{}", self.number, self.what, to.unwrap_or_default())
    }
}

impl fmt::Display for Claims {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Claims::Tests(tests) => write!(out, "{}", tests.join(" ")),
            Claims::Excuse(reason) => write!(out, "{EXCUSE}{reason}"),
        }
    }
}

impl Entry {
    /// The text of its file with the replacement, or what `change` makes of the expression and that; the file has the
    /// expression once.
    pub fn planted(&self, text: &str, change: impl FnOnce(&str, &str) -> String) -> Result<String> {
        let (_, from) = self.place()?;
        let to = self.replacement.as_ref().with_context(|| format!("{}: no replacement", self.what))?;
        match text.matches(from).count() {
            1 => Ok(text.replacen(from, &change(from, to), 1)),
            count => bail!("{}: is in the file {count} times", self.what),
        }
    }

    /// File and expression.
    pub fn place(&self) -> Result<(&str, &str)> {
        self.what.split_once(' ').with_context(|| format!("{}: not FILE EXPRESSION", self.what))
    }
}

/// The table of tests/mutants of this kind.
pub fn read(kind: Kind) -> Result<Vec<Entry>> {
    let path = place::checkout().join("tests/mutants").join(kind.file());
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    parse(kind, &text).with_context(|| format!("{}", path.display()))
}

fn parse(kind: Kind, text: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(claim) = line.strip_prefix("    ") else {
            let claims = Claims::Tests(Vec::new());
            entries.push(Entry { kind, number: entries.len() + 1, what: line.to_owned(), replacement: None, claims });
            continue;
        };
        let entry = entries.last_mut().with_context(|| format!("{claim}: no entry above it"))?;
        match (claim.strip_prefix("=> "), claim.strip_prefix(EXCUSE), &mut entry.claims) {
            (Some(replacement), ..) => entry.replacement = Some(replacement.to_owned()),
            (_, Some(reason), Claims::Tests(tests)) if tests.is_empty() => {
                entry.claims = Claims::Excuse(reason.to_owned());
            }
            (_, None, Claims::Tests(tests)) => tests.push(claim.to_owned()),
            _ => bail!("{}: both tests and an excuse", entry.what),
        }
    }
    match entries.iter().find(|entry| matches!(&entry.claims, Claims::Tests(tests) if tests.is_empty())) {
        Some(unclaimed) => bail!("{}: no test claims it, and no reason is given", unclaimed.what),
        None => Ok(entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_have_tests_or_an_excuse() {
        let entries =
            parse(Kind::Line, "# why\n\na.c f g()\n    m::t\n    m::u\nb.rs x += 1;\n    => ();\n    none: slow\n")
                .unwrap();
        let shown: Vec<_> = entries.iter().map(|entry| format!("{}: {}", entry.name(), entry.claims)).collect();
        assert_eq!(shown, ["1 a.c f g(): m::t m::u", "2 b.rs x += 1; => ();: none: slow"]);
        for bad in ["a", "    m::t", "a\n    m::t\n    none: x", "a\n    none: x\n    m::t"] {
            assert!(parse(Kind::Line, bad).is_err(), "{bad}");
        }
    }
}
