// SPDX-License-Identifier: BSD-3-Clause
//! ftracetospan: a recording of ftrace or trace-cmd, as text, to spans.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use kutrace_tools::build::{self, Build};

/// Convert the text of /sys/kernel/tracing/trace or of trace-cmd report to spans on standard output; they list
/// everything that such a recording cannot show
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    build: Build,
}

const EXAMPLES: [&str; 2] = [
    "ftracetospan /sys/kernel/tracing/trace | spantohtml > t.html",
    "trace-cmd report -t | ftracetospan | spantohtml > t.html",
];

fn main() -> ExitCode {
    kutrace_tools::run("ftracetospan", EXAMPLES, |args: Args| build::run(args.build))
}
