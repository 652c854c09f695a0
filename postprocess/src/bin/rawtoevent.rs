// SPDX-License-Identifier: BSD-3-Clause
//! rawtoevent: a raw KUtrace file to event lines.

#![forbid(unsafe_code)]

mod cli;

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, Context};
use clap::Parser;
use postprocess::event::names::Names;
use postprocess::event::write::Writer;
use postprocess::raw;

use cli::Outcome;

/// Turns a raw KUtrace file into event lines, ordered by time, on standard output
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; standard input if absent
    file: Option<PathBuf>,
}

/// Sentences about damage shown before the rest is only counted.
const SHOWN: usize = 20;

fn main() -> ExitCode {
    cli::end("rawtoevent", run(&Args::parse()))
}

fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut input = cli::open(args.file.as_ref())?;
    let mut bytes = Vec::new();
    input.read.read_to_end(&mut bytes).with_context(|| input.name.clone())?;
    let raw = raw::parse(&bytes).map_err(|e| anyhow!("{}: {e}", input.name))?;
    let mut names = Names::default();
    let mut decoder = raw.decoder(&mut names);
    let mut out = Writer::new(io::stdout().lock());
    out.head(5, raw.flags(), raw.clock.base, &raw.block_lines()).context("stdout")?;
    while let Some(event) = decoder.next(&mut names) {
        out.event(&event, &names).context("stdout")?;
    }
    let meta = raw.finish(&decoder);
    out.finish(&meta).context("stdout")?;
    for sentence in meta.quality.iter().take(SHOWN) {
        eprintln!("rawtoevent: {}: {sentence}", input.name);
    }
    if let Some(more @ 1..) = meta.quality.len().checked_sub(SHOWN) {
        eprintln!("rawtoevent: {}: and {more} more", input.name);
    }
    let (events, unknown) = (decoder.counts.events, decoder.counts.unknown_returns);
    let (cpus, lost) = (meta.intervals.len(), meta.lost);
    eprintln!("rawtoevent: {events} events on {cpus} CPUs, {lost} lost, {unknown} returns from unknown system calls");
    Ok(if meta.is_whole() { Outcome::Whole } else { Outcome::Damaged })
}
