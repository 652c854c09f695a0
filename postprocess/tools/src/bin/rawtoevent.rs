// SPDX-License-Identifier: BSD-3-Clause
//! rawtoevent: a raw KUtrace file to event lines.

#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{functions, say_damage, Common, Input, Named, Output, Reader};
use postprocess::event::names::Names;
use postprocess::event::write::Writer;
use postprocess::frame;
use postprocess::raw::decode::Counts;
use postprocess::raw::live::Live;
use postprocess::readable::count;
use postprocess::source::{Decode, Head, Stage};

/// Convert a raw KUtrace file to events on standard output, ordered by time: lines of text, or frames
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; standard input if absent, read to its end unless --live is given
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    /// Write frames, which eventtospan reads faster, instead of text
    #[arg(long)]
    binary: bool,
    /// Follow a growing stream, and write events as they arrive
    #[arg(long, conflicts_with = "binary")]
    live: bool,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: [&str; 2] = [
    "rawtoevent t.trace | eventtospan | spantohtml > t.html",
    "kutrace_control record --stream -o - | rawtoevent --live | grep -w futex",
];

fn main() -> ExitCode {
    kutrace_tools::run("rawtoevent", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let mut input = kutrace_tools::open(args.named.or(&args.file), Stage::Raw)?;
    if args.live {
        return live(input, &args.common);
    }
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

/// Writes lines of text as they come.
fn live(input: Input, common: &Common) -> Result<Exit> {
    let name = input.name.clone();
    let mut live = Live::open(input).with_context(|| name.clone())?;
    let (mut names, mut to) = (Names::default(), common.open()?);
    let place = to.name();
    let (mut out, head) = (Writer::new(&mut to), live.head());
    out.head(head.format, head.flags, head.base, &head.blocks)
        .and_then(|()| out.unseen(head.unseen))
        .context(place.clone())?;
    loop {
        let mut failed = None;
        let more = live.turn(&mut names, |event, names| match out.event(event, names) {
            Ok(()) => Ok(()),
            Err(error) => Err(failed.insert(error).kind().into()),
        });
        if let Some(error) = failed {
            return Err(error).context(place);
        }
        let more = more.with_context(|| name.clone())?;
        out.flush().context(place.clone())?;
        if out.get().is_gone() {
            return Ok(Exit::Done);
        }
        if !more {
            break;
        }
    }
    let meta = live.meta();
    out.finish(&meta).context(place.clone())?;
    to.finish().context(place)?;
    say_damage(&name, &meta.quality);
    common.tell(format_args!("{}, {} lost", count(live.counts().events, "event", "events"), meta.lost));
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
