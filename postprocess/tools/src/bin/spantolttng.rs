// SPDX-License-Identifier: BSD-3-Clause
//! spantolttng: spans to a trace as LTTng's kernel tracer writes one.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::draw;

/// Convert spans to a folder that Trace Compass opens as a kernel trace of LTTng's
///
/// The folder has a file for each CPU, and metadata: CTF 1.8, with LTTng's names of events and fields. docs/data.md
/// says what becomes of what.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The spans as JSON or frames (standard input if absent or `-`), and the folder to create
    #[arg(required = true, num_args = 1..=2, value_names = ["FILE", "DIR"])]
    paths: Vec<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Replace a folder that this tool created
    #[arg(short, long)]
    force: bool,
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
    if args.input.is_some() && args.paths.len() > 1 {
        kutrace_tools::usage::<Args>("--input names FILE already; only DIR follows");
    }
    let (dir, file) = args.paths.split_last().context("no folder")?;
    draw::lttng(args.input.as_ref().or(file.first()), dir, args.force, args.quiet)
}
