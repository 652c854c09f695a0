// SPDX-License-Identifier: BSD-3-Clause
//! perfettotospan: Perfetto's recording of the kernel to spans.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use kutrace_tools::build::{self, Build};

/// Convert the kernel's events in a Perfetto trace to spans on standard output; they list everything that such a
/// recording cannot show
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
