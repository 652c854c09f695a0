// SPDX-License-Identifier: BSD-3-Clause
//! `kutrace_control`: start and stop the recorder, and write its trace.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use kutrace_control::arguments::Arguments;
use kutrace_control::command;

fn main() -> ExitCode {
    kutrace_cli::run("kutrace_control", || command::run(Arguments::of_process()))
}
