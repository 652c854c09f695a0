// SPDX-License-Identifier: BSD-3-Clause
//! spantolttng: spans to a trace as LTTng's kernel tracer writes one.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::draw;
use kutrace_tools::folder::{How, Paths};

/// Convert spans to a folder that Trace Compass opens as a kernel trace of LTTng's
///
/// The folder has a file for each CPU, and metadata: CTF 1.8, with LTTng's names of events and fields. docs/data.md
/// says what becomes of what.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    paths: Paths,
    #[command(flatten)]
    how: How,
    /// Do not say what LTTng's events cannot tell
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: [&str; 2] =
    ["spantolttng t.json t.lttng; babeltrace2 t.lttng", "rawtoevent t.trace | eventtospan | spantolttng t.lttng"];

fn main() -> ExitCode {
    kutrace_tools::run("spantolttng", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let (file, dir) = args.paths.split::<Args>()?;
    draw::lttng(file, dir, &args.how, args.quiet)
}
