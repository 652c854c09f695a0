// SPDX-License-Identifier: BSD-3-Clause
//! spantospan: a coarser picture of a long trace.

#![forbid(unsafe_code)]

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{outcome, spans, Named};
use postprocess::span::coarsen;

/// Merge, within steps of time, each CPU's spans of the same activity
///
/// A CPU's spans still cover its time, and every activity keeps its total time. Arcs, waits and points shorter
/// than a step are dropped, marks are kept.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Length of a step in microseconds, up to 10 seconds; 0 copies
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    granularity_usec: u32,
    /// The spans as JSON; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] =
    ["spantospan 100 t.json | spantohtml > coarse.html", "rawtoevent t.trace | eventtospan | spantospan 1000 > t.json"];

fn main() -> ExitCode {
    kutrace_tools::run("spantospan", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let (mut spans, place) = spans::read(args.named.or(&args.file))?;
    if let Some(step) = NonZeroU32::new(args.granularity_usec * 100) {
        coarsen::coarsen(&mut spans, step);
    }
    spans::write(&spans, &args.form)?;
    Ok(outcome(&place, &spans.meta))
}
