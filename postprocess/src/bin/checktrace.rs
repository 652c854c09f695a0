// SPDX-License-Identifier: BSD-3-Clause
//! checktrace: whether a raw KUtrace file is whole and sound.

#![forbid(unsafe_code)]

mod cli;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, bail, Context};
use clap::Parser;
use postprocess::verdict::{self, Verdict};

use cli::Outcome;

/// Says whether a raw KUtrace file is whole and sound
///
/// One finding a line on standard output, the verdict last: PASS (exit status 0); INCOMPLETE (3) if events were lost
/// or are missing; FAIL (1) if the file is damaged, or if what it says cannot be true.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; standard input if absent
    file: Option<PathBuf>,
    /// Print the verdict only
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: [&str; 2] = ["checktrace t.trace", "checktrace --quiet t.trace && kutrace_control html t.trace"];

fn main() -> ExitCode {
    cli::end("checktrace", run(&cli::parse(EXAMPLES)))
}

fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut input = cli::open(args.file.as_ref())?;
    let mut bytes = Vec::new();
    input.read.read_to_end(&mut bytes).with_context(|| input.name.clone())?;
    let found = verdict::judge(&bytes).map_err(|e| anyhow!("{}: {e}", input.name))?;
    let verdict = verdict::verdict(&found);
    let shown = if args.quiet { &[][..] } else { &found };
    print(shown, verdict).context("stdout")?;
    match verdict {
        Verdict::Pass => Ok(Outcome::Whole),
        Verdict::Incomplete => Ok(Outcome::Damaged),
        Verdict::Fail => bail!("{}: the trace is damaged or not sound", input.name),
    }
}

fn print(found: &[verdict::Finding], verdict: Verdict) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for finding in found {
        writeln!(out, "{finding}")?;
    }
    writeln!(out, "{verdict}")?;
    out.flush()
}
