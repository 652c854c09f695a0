// SPDX-License-Identifier: BSD-3-Clause
//! eventtospan: events to spans, as JSON or frames.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use kutrace_tools::build::{self, Build};

/// Convert events to spans on standard output; events are lines of KUtrace or the original, sorted or not, or frames
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    build: Build,
}

const EXAMPLES: [&str; 2] = [
    "rawtoevent t.trace | eventtospan | spantohtml > t.html",
    "rawtoevent t.trace | eventtospan --check --title 'a slow request' > t.json",
];

fn main() -> ExitCode {
    kutrace_tools::run("eventtospan", EXAMPLES, |args: Args| build::run(args.build))
}
