// SPDX-License-Identifier: BSD-3-Clause
//! perfettotospan: Perfetto's recording of the kernel to spans.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use kutrace_tools::build::{self, Build};

/// Turn the kernel's events in a trace of Perfetto's into spans on standard output; what such a recording cannot show is
/// said in them
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    build: Build,
}

const EXAMPLES: [&str; 2] =
    ["perfettotospan t.pftrace | spantohtml > t.html", "perfettotospan --title 'a slow start' t.pftrace > t.json"];

fn main() -> ExitCode {
    kutrace_tools::run("perfettotospan", EXAMPLES, |args: Args| build::run(args.build))
}
