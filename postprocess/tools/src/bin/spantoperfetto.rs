// SPDX-License-Identifier: BSD-3-Clause
//! spantoperfetto: spans to a trace that Perfetto opens.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::draw;
use kutrace_tools::{Common, Named};

/// Convert spans to a trace for Perfetto (ui.perfetto.dev and trace_processor)
///
/// The trace has threads on CPUs with their states, nested calls and interrupts, waits, wakeups, counters, marks,
/// samples and requests. For the mapping see docs/data.md.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The spans as JSON or frames; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: [&str; 2] =
    ["spantoperfetto t.json > t.pftrace", "rawtoevent t.trace | eventtospan | spantoperfetto -o t.pftrace"];

fn main() -> ExitCode {
    kutrace_tools::run("spantoperfetto", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    draw::run(args.named.or(&args.file), &args.common)
}
