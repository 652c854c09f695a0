// SPDX-License-Identifier: BSD-3-Clause
//! checktrace: checks that a raw KUtrace file is complete and sound.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, bail, Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{Common, Named, Output};
use postprocess::inspect::verdict::{self, Verdict};
use postprocess::source::Stage;

/// Verify that a raw KUtrace file is complete and valid
///
/// Prints one finding per line, then the verdict: PASS (exit status 0); INCOMPLETE (3) if events were lost or are
/// missing; FAIL (1) if the file is damaged, or its content cannot be true.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; standard input to its end if absent
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    /// Print only the verdict
    #[arg(short, long)]
    quiet: bool,
    /// Write to this new file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: [&str; 2] = ["checktrace t.trace", "checktrace --quiet t.trace && kutrace_control html t.trace"];

fn main() -> ExitCode {
    kutrace_tools::run("checktrace", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let mut input = kutrace_tools::open(args.named.or(&args.file), Stage::Raw)?;
    let bytes = input.raw()?;
    let out = Common { output: args.output.clone(), quiet: args.quiet }.open()?;
    let place = out.name();
    let found = verdict::judge(&bytes).map_err(|e| anyhow!("{}: {e}", input.name))?;
    let verdict = verdict::verdict(&found);
    let shown = if args.quiet { &[][..] } else { &found };
    print(out, shown, verdict).context(place)?;
    match verdict {
        Verdict::Pass => Ok(Exit::Done),
        Verdict::Incomplete => Ok(Exit::Lost),
        Verdict::Fail => bail!("{}: the trace is damaged or invalid", input.name),
    }
}

fn print(mut out: Output, found: &[verdict::Finding], verdict: Verdict) -> io::Result<()> {
    for finding in found {
        writeln!(out, "{finding}")?;
    }
    writeln!(out, "{verdict}")?;
    out.finish().map(drop)
}
