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
use postprocess::raw::damage::NotATrace;
use postprocess::raw::decode::Counts;
use postprocess::raw::{self, original, Trace};

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

const EXAMPLES: [&str; 2] =
    ["rawtoevent t.trace | grep -w futex | head", "rawtoevent t.trace | eventtospan | spantohtml > t.html"];

fn main() -> ExitCode {
    cli::end("rawtoevent", run(&cli::parse(EXAMPLES)))
}

fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut input = cli::open(args.file.as_ref())?;
    let mut bytes = Vec::new();
    input.read.read_to_end(&mut bytes).with_context(|| input.name.clone())?;
    let refused = |e: NotATrace| anyhow!("{}: {e}", input.name);
    match raw::parse(&bytes) {
        Err(NotATrace::Original) => write(&original::parse(&bytes).map_err(refused)?, &input.name),
        raw => write(&raw.map_err(refused)?, &input.name),
    }
}

/// Writes the events of a trace from `input`.
fn write<T: Trace>(trace: &T, input: &str) -> anyhow::Result<Outcome> {
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let mut out = Writer::new(io::stdout().lock());
    let head = trace.head();
    out.head(head.format, head.flags, head.base, &head.blocks).context("stdout")?;
    while let Some(event) = T::next(&mut decoder, &mut names) {
        out.event(&event, &names).context("stdout")?;
    }
    let meta = trace.finish(&decoder);
    out.finish(&meta).context("stdout")?;
    for sentence in meta.quality.iter().take(SHOWN) {
        cli::say(format_args!("rawtoevent: {input}: {sentence}"));
    }
    if let Some(more @ 1..) = meta.quality.len().checked_sub(SHOWN) {
        cli::say(format_args!("rawtoevent: {input}: and {more} more"));
    }
    let Counts { events, unknown_returns: unknown, .. } = T::counts(&decoder);
    let (cpus, lost) = (meta.intervals.len(), meta.lost);
    cli::say(format_args!(
        "rawtoevent: {events} events on {cpus} CPUs, {lost} lost, {unknown} returns from unknown system calls"
    ));
    Ok(if meta.is_whole() { Outcome::Whole } else { Outcome::Damaged })
}
