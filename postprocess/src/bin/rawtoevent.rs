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
use postprocess::event::Meta;
use postprocess::frame;
use postprocess::raw::damage::NotATrace;
use postprocess::raw::decode::Counts;
use postprocess::raw::{self, original, Trace};

use cli::Outcome;

/// Turns a raw KUtrace file into events, ordered by time, on standard output: lines of text, or frames
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; standard input if absent
    file: Option<PathBuf>,
    /// Write frames, which eventtospan reads faster, in place of text
    #[arg(long)]
    binary: bool,
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
        Err(NotATrace::Original) => write(&original::parse(&bytes).map_err(refused)?, &input.name, args),
        raw => write(&raw.map_err(refused)?, &input.name, args),
    }
}

/// Writes the events of a trace from `input`.
fn write<T: Trace>(trace: &T, input: &str, args: &Args) -> anyhow::Result<Outcome> {
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let written =
        if args.binary { frames(trace, &mut decoder, &mut names) } else { text(trace, &mut decoder, &mut names) };
    let meta = written.context("stdout")?;
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

/// Writes lines of text, and answers what is known at the end.
fn text<T: Trace>(trace: &T, decoder: &mut T::Decoder, names: &mut Names) -> io::Result<Meta> {
    let mut out = Writer::new(io::stdout().lock());
    let head = trace.head();
    out.head(head.format, head.flags, head.base, &head.blocks)?;
    out.cpus(&trace.finish(decoder).intervals)?;
    while let Some(event) = T::next(decoder, names) {
        out.event(&event, names)?;
    }
    let meta = trace.finish(decoder);
    out.finish(&meta)?;
    Ok(meta)
}

/// Writes frames, and answers what is known at the end.
fn frames<T: Trace>(trace: &T, decoder: &mut T::Decoder, names: &mut Names) -> io::Result<Meta> {
    let mut out = frame::Writer::new(io::stdout().lock())?;
    out.about(&trace.finish(decoder))?;
    while let Some(event) = T::next(decoder, names) {
        out.row(&event, names.since(0))?;
    }
    let meta = trace.finish(decoder);
    out.finish(&meta, names.since(0))?;
    Ok(meta)
}
