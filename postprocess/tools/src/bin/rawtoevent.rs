// SPDX-License-Identifier: BSD-3-Clause
//! rawtoevent: a raw KUtrace file to event lines.

#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{functions, say_damage, Common, Named, Output, Reader};
use postprocess::event::names::Names;
use postprocess::event::write::Writer;
use postprocess::frame;
use postprocess::line::count;
use postprocess::raw::decode::Counts;
use postprocess::source::{Decode, Head, Stage};

/// Turn a raw KUtrace file into events, ordered by time, on standard output: lines of text, or frames
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; standard input if absent
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    /// Write frames, which eventtospan reads faster, instead of text
    #[arg(long)]
    binary: bool,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: [&str; 2] =
    ["rawtoevent t.trace | grep -w futex | head", "rawtoevent t.trace | eventtospan | spantohtml > t.html"];

fn main() -> ExitCode {
    kutrace_tools::run("rawtoevent", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let mut input = kutrace_tools::open(args.named.or(&args.file), Stage::Raw)?;
    let bytes = input.raw()?;
    let trace = functions::trace(&bytes, &input.name)?;
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let out = args.common.open()?;
    let place = out.name();
    let written = match args.binary {
        true => frames(&mut *decoder, &mut names, out),
        false => text(&trace.head(), &mut *decoder, &mut names, out),
    };
    let reader = written.context(place)?;
    let meta = decoder.meta();
    say_damage(&input.name, &meta.quality);
    let Counts { events, unknown_returns: unknown, .. } = decoder.counts();
    let (cpus, lost) = (meta.intervals.len(), meta.lost);
    if reader == Reader::Stayed {
        let (events, cpus) = (count(events, "event", "events"), count(cpus as u64, "CPU", "CPUs"));
        let unknown = count(unknown, "return from an unknown system call", "returns from unknown system calls");
        args.common.tell(format_args!("{events} on {cpus}, {lost} lost, {unknown}"));
    }
    Ok(if meta.is_whole() { Exit::Done } else { Exit::Lost })
}

/// Writes lines of text.
fn text(head: &Head, decoder: &mut dyn Decode, names: &mut Names, mut to: Output) -> io::Result<Reader> {
    let mut out = Writer::new(&mut to);
    out.head(head.format, head.flags, head.base, &head.blocks)?;
    out.unseen(head.unseen)?;
    let begun = decoder.meta();
    out.machines(&begun.machines)?;
    out.cpus(&begun.intervals)?;
    while let Some(event) = decoder.next(names) {
        out.event(&event, names)?;
        if out.get().is_gone() {
            return Ok(Reader::Gone);
        }
    }
    out.finish(&decoder.meta())?;
    to.finish()
}

/// Writes frames.
fn frames(decoder: &mut dyn Decode, names: &mut Names, to: Output) -> io::Result<Reader> {
    let mut out = frame::Writer::new(to)?;
    out.about(&decoder.meta())?;
    while let Some(event) = decoder.next(names) {
        out.row(&event, names.since(0))?;
        if out.get().is_gone() {
            return Ok(Reader::Gone);
        }
    }
    out.finish(&decoder.meta(), names.since(0))?.finish()
}
