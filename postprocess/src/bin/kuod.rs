// SPDX-License-Identifier: BSD-3-Clause
//! kuod: the words of a raw KUtrace file.

#![forbid(unsafe_code)]

mod cli;

use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, Context};
use clap::Parser;
use postprocess::raw::dump::dump;

use cli::Outcome;

/// Shows the words of a raw KUtrace file, damaged or not, ours or the original's
///
/// A line is 32 bytes with their place in the file. An entry is `time.event`, all in hexadecimal; a word behind `_`
/// belongs to the entry before it, and one behind `?` makes no sense.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; standard input if absent or `-`
    file: Option<PathBuf>,
}

const EXAMPLES: [&str; 2] = ["kuod t.trace | less", "kutrace_control stop - | kuod | head"];

fn main() -> ExitCode {
    cli::end("kuod", run(&cli::parse(EXAMPLES)))
}

fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut input = cli::open(args.file.as_ref())?;
    let mut bytes = Vec::new();
    input.read.read_to_end(&mut bytes).with_context(|| input.name.clone())?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let written = dump(&bytes, &mut out).map_err(|e| anyhow!("{}: {e}", input.name))?;
    written.and_then(|()| out.flush()).context("stdout")?;
    Ok(Outcome::Whole)
}
