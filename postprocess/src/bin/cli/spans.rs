// SPDX-License-Identifier: BSD-3-Clause
//! What the tools that read or write spans share: JSON or frames, and the faults that came with them said aloud.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{bail, Context};
use postprocess::frame;
use postprocess::span::held::Held;
use postprocess::span::runs::Runs;
use postprocess::span::{json, source, Meta, Spans};

use super::Outcome;

/// The form that spans are written in.
#[derive(Clone, Copy, clap::Args)]
pub struct Form {
    /// Write frames, which the next tool reads faster, in place of text
    #[arg(long)]
    pub binary: bool,
}

/// Reads spans from a file, or from standard input; answers what to call the input, too.
pub fn read(file: Option<&PathBuf>) -> anyhow::Result<(Spans, String)> {
    read_into(file, Held::new(usize::MAX))
}

/// As [`read`], as many spans as `held` holds.
pub fn read_into(file: Option<&PathBuf>, held: Held) -> anyhow::Result<(Spans, String)> {
    let input = super::open(file)?;
    let read = source::read(BufReader::with_capacity(1 << 16, input.read), held);
    let spans = read.with_context(|| input.name.clone())?;
    if spans.spans.is_empty() && !spans.meta.quality.is_empty() {
        bail!("{}: no spans", input.name);
    }
    Ok((spans, input.name))
}

/// Writes spans to standard output.
pub fn write(spans: &Spans, form: Form) -> anyhow::Result<()> {
    write_with(spans, Runs::<File>::default(), form)
}

/// Writes spans and those of runs to standard output, in one order.
pub fn write_with(spans: &Spans, runs: Runs<File>, form: Form) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let written = match form.binary {
        true => write_frames(spans, runs, &mut out),
        false => write_json(spans, runs, &mut out),
    };
    written.and_then(|()| out.flush()).context("stdout")
}

fn write_json(all: &Spans, runs: Runs<File>, out: &mut impl Write) -> io::Result<()> {
    let mut json = json::Writer::new(&all.meta, &all.names, out)?;
    runs.merge(&all.spans, |span| json.span(span))?;
    json.finish()
}

fn write_frames(all: &Spans, runs: Runs<File>, out: &mut impl Write) -> io::Result<()> {
    let mut frames = frame::Writer::new(out)?;
    runs.merge(&all.spans, |span| frames.row(span, &all.names))?;
    frames.finish(&all.meta, &all.names)
}

/// Says what is missing from spans read from `place`.
pub fn outcome(tool: &str, place: &str, meta: &Meta) -> Outcome {
    for sentence in &meta.quality {
        super::say(format_args!("{tool}: {place}: {sentence}"));
    }
    if meta.lost > 0 {
        super::say(format_args!("{tool}: {place}: {} events were lost while recording", meta.lost));
    }
    if meta.lost == 0 && meta.quality.is_empty() {
        Outcome::Whole
    } else {
        Outcome::Damaged
    }
}
