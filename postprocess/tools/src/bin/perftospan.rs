// SPDX-License-Identifier: BSD-3-Clause
//! perftospan: a recording of perf, as text, to spans.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use kutrace_tools::build::{self, Build};

/// Convert the text of perf script to spans on standard output; they list everything that such a recording cannot show
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    build: Build,
}

const EXAMPLES: [&str; 2] = [
    "perf script --header --ns --show-lost-events | perftospan > t.json",
    "perftospan --title 'a slow request' perf.txt > t.json",
];

fn main() -> ExitCode {
    kutrace_tools::run("perftospan", EXAMPLES, |args: Args| build::run(args.build))
}
