// SPDX-License-Identifier: BSD-3-Clause
//! spantowhy: where the time of requests went, and why some are slow.

#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::ask::Asked;
use kutrace_tools::{outcome, spans, Common, Output};
use postprocess::why::Timeline;

/// Explain where requests spent their time, and why some are slow
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The spans as JSON, or -i FILE; standard input to its end if absent
    file: Option<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", hide = true)]
    input: Option<PathBuf>,
    #[command(flatten)]
    asked: Asked,
    /// Write to this new file instead of standard output
    #[arg(short, long, value_name = "FILE", hide = true)]
    output: Option<PathBuf>,
    /// Print only problems
    #[arg(short, long, hide = true)]
    quiet: bool,
}

const EXAMPLES: [&str; 2] =
    ["rawtoevent t.trace | eventtospan | spantowhy --client wget", "spantowhy --call fsync --slow 5 t.json"];

fn main() -> ExitCode {
    kutrace_tools::run("spantowhy", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let file = args.input.as_ref().or(args.file.as_ref());
    let (about, dense, place) = spans::read_dense(file)?;
    let named = file.filter(|file| file.as_os_str() != "-").map(PathBuf::as_path);
    let answer =
        args.asked.answer(&Timeline::dense(&about, &dense), named).map_err(|fact| anyhow!("{place}: {fact}"))?;
    let mut out: Output = Common { output: args.output, quiet: args.quiet }.open()?;
    let name = out.name();
    out.write_all(answer.as_bytes()).and_then(|()| out.finish()).context(name)?;
    Ok(outcome(&place, &about.meta))
}
