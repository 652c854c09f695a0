// SPDX-License-Identifier: BSD-3-Clause
//! What the tools that read or write spans share: JSON or frames, and the faults that came with them said aloud.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{bail, Context};
use postprocess::frame;
use postprocess::span::held::Held;
use postprocess::span::runs::Runs;
use postprocess::span::{json, source, Meta, Span, Spans};

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
    Sink::new(form).and_then(|sink| sink.finish(spans)).context("stdout")
}

/// Spans of JSON in memory before they go to a file in the folder for temporary files: 0.5 GB of them.
const MOST: usize = 1 << 23;

type Stdout = BufWriter<io::StdoutLock<'static>>;

/// Spans on their way to standard output. JSON has them in order, so all are kept, in memory or in files, until the last
/// is there; frames need no order, and are written as they come.
pub enum Sink {
    Json(Stdout, Runs<File>),
    Frames(frame::Writer<Stdout, Span>),
}

impl Sink {
    pub fn new(form: Form) -> io::Result<Sink> {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Ok(match form.binary {
            true => Sink::Frames(frame::Writer::new(out)?),
            false => Sink::Json(out, Runs::default()),
        })
    }

    /// Spans that may gather before some are taken.
    pub fn most(&self) -> usize {
        match self {
            Sink::Json(..) => MOST,
            Sink::Frames(..) => 0,
        }
    }

    /// Takes spans, which come behind those taken before; `names` are all names so far.
    pub fn take(&mut self, spans: Vec<Span>, names: &[impl AsRef<str>]) -> anyhow::Result<()> {
        match self {
            Sink::Json(_, runs) => {
                tempfile::tempfile().and_then(|file| runs.add(spans, file)).context("temporary file")
            }
            Sink::Frames(frames) => spans.iter().try_for_each(|span| frames.row(span, names)).context("stdout"),
        }
    }

    /// Takes the last spans, and what is known about all.
    pub fn finish(self, last: &Spans) -> io::Result<()> {
        match self {
            Sink::Json(mut out, runs) => {
                let mut json = json::Writer::new(&last.meta, &last.names, &mut out)?;
                runs.merge(&last.spans, |span| json.span(span))?;
                json.finish()?;
                out.flush()
            }
            Sink::Frames(mut frames) => {
                last.spans.iter().try_for_each(|span| frames.row(span, &last.names))?;
                frames.finish(&last.meta, &last.names)
            }
        }
    }
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
