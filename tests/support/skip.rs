// SPDX-License-Identifier: BSD-3-Clause
//! Lines that `cargo xtask test` prints at its end: the tests that were skipped, and other notes of tests that passed.
//! They go to the file that `KUTRACE_SKIPPED` names, since on standard error they would appear among the harness's
//! lines; without the variable, to standard error.

use std::env;
use std::fs::File;
use std::io::{self, Write};

/// Reports that `what` is not tested, and the reason.
///
/// # Panics
/// If the report fails: a test must not be skipped silently.
pub fn skip(what: &str, why: &str) {
    note(&format!("skipped: {what}: {why}"));
}

/// Notes a fact of a test that passes.
///
/// # Panics
/// As [`skip`].
pub fn note(line: &str) {
    let line = format!("{line}\n");
    match env::var_os("KUTRACE_SKIPPED") {
        Some(path) => {
            let file = File::options().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("KUTRACE_SKIPPED");
        }
        // Not by a macro: the harness shows what those print only where a test fails.
        None => io::stderr().write_all(line.as_bytes()).expect("standard error"),
    }
}
