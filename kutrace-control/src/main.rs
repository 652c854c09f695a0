// SPDX-License-Identifier: BSD-3-Clause
//! `kutrace_control`: start and stop the recorder, and write its trace.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

use kutrace_control::command::{self, Arguments};
use kutrace_control::report;

fn main() -> ExitCode {
    report::exit(command::run(Arguments::parse()))
}
