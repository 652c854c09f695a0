// SPDX-License-Identifier: BSD-3-Clause
//! The table of the recorder's slow paths, and the copy of the tree in which each of its lines can be another.
//!
//! As with the hooks one build serves for all: where the table has an expression, the copy has a choice between that
//! and the replacement, by the number in the environment. The tests that claim it run on the host.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::table::{self, Entry, Kind};
use super::verdict::{self, said, Outcome};
use crate::progress::tied;
use crate::{module, place};

/// A run that does not end in this time is in an endless loop.
const LONG: &str = "600";
/// Asks for the number of the mutant.
const CHOICE: &str = "\
//! The selected expression of the recorder that is replaced.

use std::sync::LazyLock;

static NUMBER: LazyLock<usize> =
    LazyLock::new(|| std::env::var(\"KUTRACE_MUTANT\").map_or(0, |number| number.parse().unwrap()));

pub fn is(number: usize) -> bool {
    *NUMBER == number
}
";

/// One entry for each expression, FILE and expression, which the file has once.
pub fn table() -> Result<Vec<Entry>> {
    table::read(Kind::Line)
}

/// Builds the tests of the host with every expression of the table a choice.
pub fn build() -> Result<PathBuf> {
    let tree = place::made(place::target().join("mutants/tree"))?;
    let checkout = place::checkout();
    module::copy(&checkout, &module::files_below(&checkout)?, &tree)?;
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for entry in &table()? {
        let (file, _) = entry.place()?;
        if !texts.contains_key(file) {
            texts.insert(file.to_owned(), read(&tree, file)?);
        }
        let text = texts.get_mut(file).context("recorder.txt")?;
        *text = planted(text, entry).context("recorder.txt")?;
    }
    let root = "kernel-module/recorder/src/lib.rs";
    texts.insert(root.to_owned(), read(&tree, root)? + "\nextern crate std;\nmod mutant;\n");
    texts.insert("kernel-module/recorder/src/mutant.rs".to_owned(), CHOICE.to_owned());
    for (file, text) in texts {
        fs::write(tree.join(&file), text).with_context(|| file)?;
    }
    // A folder of its own: cargo takes the copy for the same workspace.
    verdict::build(&tree, &place::target().join("mutants/build"), &["--test", "host"])
}

fn read(tree: &Path, file: &str) -> Result<String> {
    fs::read_to_string(tree.join(file)).with_context(|| format!("recorder.txt: {file}"))
}

/// The text with the choice in the one place of the expression.
fn planted(text: &str, entry: &Entry) -> Result<String> {
    entry.planted(text, |from, to| format!("(if crate::mutant::is({}) {{ {to} }} else {{ {from} }})", entry.number))
}

/// Runs a test with a mutant.
pub fn run(program: &Path, test: &str, number: usize) -> Result<Outcome> {
    let mut command = tied("timeout");
    command.arg(LONG).arg(program).args(["--exact", test]).env(verdict::VARIABLE, number.to_string());
    // As `cargo xtask test` does: some faults show only where everything is explored.
    command.env("KUTRACE_CASES", "10");
    let ended = command.current_dir(place::checkout().join("tests")).output().context("mutants: cannot be started")?;
    let text = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    Ok(match ended.status.code() {
        _ if !text.contains("\nrunning 1 test\n") => Outcome::Broke("there is no such test".into()),
        Some(0) => Outcome::Passed,
        Some(124) => Outcome::Failed("does not end".into()),
        _ => Outcome::Failed(said(&text)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::table::Claims;
    use crate::progress::output;

    #[test]
    fn every_expression_of_the_table_is_there_once_and_every_test_of_it() {
        let checkout = place::checkout();
        let tests = output(tied("grep").args(["-rhoE", "^fn [a-z0-9_]+"]).arg(checkout.join("tests/host"))).unwrap();
        for entry in table().unwrap() {
            let (file, _) = entry.place().unwrap();
            planted(&read(&checkout, file).unwrap(), &entry).unwrap_or_else(|error| panic!("{error}"));
            let Claims::Tests(claims) = &entry.claims else { continue };
            for test in claims {
                let name = test.rsplit("::").next().unwrap();
                assert!(tests.lines().any(|line| line == format!("fn {name}")), "{test}");
            }
        }
    }
}
