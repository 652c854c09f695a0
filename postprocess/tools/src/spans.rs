// SPDX-License-Identifier: BSD-3-Clause
//! What the tools that read or write spans share: JSON or frames, and the faults that came with them said aloud.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use anyhow::{bail, Context, Result};
use postprocess::frame;
use postprocess::sink;
use postprocess::source::Stage;
use postprocess::span::limit::{Keep, SpanLimit};
use postprocess::span::runs::Runs;
use postprocess::span::{Span, Spans};

use crate::{Common, Output, Reader};

/// How spans are written.
#[derive(Clone, Debug, clap::Args)]
pub struct Form {
    /// Write frames, which tools read faster, not text
    #[arg(long)]
    pub binary: bool,
    /// Where to, and what is said.
    #[command(flatten)]
    pub common: Common,
}

/// Reads spans from a file, or from standard input; returns what to call the input, too.
pub fn read(file: Option<&PathBuf>) -> Result<(Spans, String)> {
    read_into(file, SpanLimit::new(usize::MAX))
}

/// As [`read`], handing the spans to `keep`.
pub fn read_into(file: Option<&PathBuf>, keep: impl Keep) -> Result<(Spans, String)> {
    let input = crate::open(file, Stage::Spans)?;
    let name = input.name.clone();
    let spans = input.spans(keep)?;
    if spans.spans.is_empty() && !spans.meta.quality.is_empty() {
        bail!("{name}: no spans");
    }
    Ok((spans, name))
}

/// Writes spans to the output.
pub fn write(spans: &Spans, form: &Form) -> Result<()> {
    Sink::new(form)?.finish(spans).map(drop)
}

/// Spans of JSON in memory before they go to a file in the folder for temporary files: 0.5 GB of them.
const SPANS_MAX: usize = 1 << 23;

/// Spans on their way to the output. JSON has them in order, so all are kept, in memory or in files, until the last is
/// there; frames need no order, and are written as they come.
pub struct Sink {
    name: String,
    to: To,
}

enum To {
    Json(Output, Runs<File>),
    Frames(frame::Writer<Output, Span>),
}

impl Sink {
    /// Opens the output.
    ///
    /// # Errors
    /// If it cannot be written, here and below.
    pub fn new(form: &Form) -> Result<Sink> {
        let out = form.common.open()?;
        let name = out.name();
        let to = match form.binary {
            true => To::Frames(frame::Writer::new(out).context(name.clone())?),
            false => To::Json(out, Runs::default()),
        };
        Ok(Sink { name, to })
    }

    /// Spans that may gather before some are taken.
    pub fn room(&self) -> usize {
        match self.to {
            To::Json(..) => SPANS_MAX,
            To::Frames(..) => 0,
        }
    }

    /// Takes spans, which come after those taken before; `names` are all names so far.
    pub fn take(&mut self, spans: Vec<Span>, names: &[impl AsRef<str>]) -> Result<()> {
        match &mut self.to {
            To::Json(_, runs) => tempfile::tempfile().and_then(|file| runs.add(spans, file)).with_context(|| {
                format!("temporary file in {} (TMPDIR names another folder)", std::env::temp_dir().display())
            }),
            To::Frames(frames) => spans.iter().try_for_each(|span| frames.row(span, names)).context(self.name.clone()),
        }
    }

    /// Takes the last spans, and what is known about all.
    pub fn finish(self, last: &Spans) -> Result<Reader> {
        let written = || -> io::Result<Reader> {
            match self.to {
                To::Json(mut out, runs) => {
                    let mut json = sink::json::Writer::new(&last.meta, &last.names, &mut out)?;
                    runs.merge(&last.spans, |span| json.span(span))?;
                    json.finish()?;
                    out.finish()
                }
                To::Frames(mut frames) => {
                    last.spans.iter().try_for_each(|span| frames.row(span, &last.names))?;
                    frames.finish(&last.meta, &last.names)?.finish()
                }
            }
        };
        written().context(self.name)
    }
}
