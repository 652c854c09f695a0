// SPDX-License-Identifier: BSD-3-Clause
//! Tests that are skipped say so: on standard error, and in the file that `KUTRACE_SKIPPED` names, by which
//! `cargo xtask test` counts them.

use std::env;
use std::fs::File;
use std::io::{self, Write};

/// Says that `what` is not tested, and why.
///
/// # Panics
/// If it cannot be said: a test must not be skipped in silence.
pub fn skip(what: &str, why: &str) {
    let line = format!("skipped: {what}: {why}\n");
    // Not by a macro: the harness shows what those print only where a test fails.
    io::stderr().write_all(line.as_bytes()).expect("standard error");
    if let Some(path) = env::var_os("KUTRACE_SKIPPED") {
        let file = File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("KUTRACE_SKIPPED");
    }
}
