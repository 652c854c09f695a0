// SPDX-License-Identifier: BSD-3-Clause
//! What the tools that read or write spans share: JSON or frames, and the faults that came with them said aloud.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use anyhow::{bail, Context, Result};
use postprocess::event::names::NameId;
use postprocess::frame;
use postprocess::id::Pid;
use postprocess::sink;
use postprocess::source::Stage;
use postprocess::span::dense::Dense;
use postprocess::span::limit::{Keep, SpanLimit};
use postprocess::span::runs::Runs;
use postprocess::span::{Span, Spans};
use postprocess::why::best::offered;
use postprocess::why::request::{Ask, Found};
use postprocess::why::Timeline;

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
    let none = spans.spans.is_empty();
    some(spans, none, name)
}

/// As [`read`], with the spans in little memory and apart from all else.
pub fn read_dense(file: Option<&PathBuf>) -> Result<(Spans, Dense, String)> {
    let input = crate::open(file, Stage::Spans)?;
    let (mut dense, name) = (Dense::default(), input.name.clone());
    let about = input.spans(&mut dense)?;
    let (about, name) = some(about, dense.is_empty(), name)?;
    Ok((about, dense, name))
}

/// What was read, unless it is nothing and that is due to its faults.
fn some(about: Spans, none: bool, name: String) -> Result<(Spans, String)> {
    if none && !about.meta.quality.is_empty() {
        bail!("{name}: no spans");
    }
    Ok((about, name))
}

/// Writes spans to the output.
pub fn write(spans: &Spans, form: &Form) -> Result<()> {
    Sink::new(form)?.finish(spans).map(drop)
}

/// Spans of JSON in memory before they go to a file in the folder for temporary files: 0.5 GB of them.
const SPANS_MAX: usize = 1 << 23;

/// Spans in their order, in memory or, where there are many, in files in the folder for temporary files.
#[derive(Debug)]
pub struct InOrder {
    /// What is known about all, and the spans that are in no file.
    pub last: Spans,
    /// The last name of the own code of each thread.
    pub threads: BTreeMap<Pid, NameId>,
    runs: Runs<File>,
}

impl InOrder {
    /// All spans, if they are in memory.
    pub fn whole(&self) -> Option<&Spans> {
        Some(&self.last).filter(|_| self.runs.spans() == 0)
    }

    /// The requests that the trace offers best, and what they are; none if nothing in it is a request, or if there are
    /// too many spans to look for them.
    pub fn requests(&self) -> Option<Found> {
        let spans = self.whole()?;
        let timeline = Timeline::new(spans);
        offered(&timeline).ok().filter(|(ask, _)| !matches!(ask, Ask::Range(_))).map(|(_, found)| found)
    }

    /// These, and the spans in files.
    pub fn split(self) -> (Spans, BTreeMap<Pid, NameId>, Runs<File>) {
        (self.last, self.threads, self.runs)
    }
}

/// What keeps spans so.
#[derive(Debug, Default)]
pub struct Ordering {
    runs: Runs<File>,
    threads: BTreeMap<Pid, NameId>,
    failed: Option<io::Error>,
}

impl Ordering {
    fn name(&mut self, spans: &[Span]) {
        for span in spans.iter().filter(|span| span.is_own_code()) {
            self.threads.extend(span.thread().map(|pid| (pid, span.name)));
        }
    }
}

impl Keep for &mut Ordering {
    fn room(&self) -> usize {
        SPANS_MAX
    }

    fn add(&mut self, spans: Vec<Span>) {
        self.name(&spans);
        let added = || self.runs.add(spans, tempfile::tempfile()?);
        if self.failed.is_none() {
            self.failed = added().err();
        }
    }

    fn finish(self, last: Spans) -> Spans {
        self.name(&last.spans);
        last
    }
}

impl Ordering {
    /// The spans, of which these are the last.
    ///
    /// # Errors
    /// If a file could not be written.
    pub fn finish(self, last: Spans) -> Result<InOrder> {
        let Ordering { runs, threads, failed } = self;
        match failed {
            Some(error) => Err(error).with_context(temporary),
            None => Ok(InOrder { last, threads, runs }),
        }
    }
}

/// Reads spans from a file, or from standard input, for their order; returns what to call the input, too.
///
/// # Errors
/// If they cannot be read, or kept.
pub fn in_order(file: Option<&PathBuf>) -> Result<(InOrder, String)> {
    let mut ordering = Ordering::default();
    let (last, name) = read_into(file, &mut ordering)?;
    Ok((ordering.finish(last)?, name))
}

/// Where temporary files are.
fn temporary() -> String {
    format!("temporary file in {} (TMPDIR names another folder)", std::env::temp_dir().display())
}

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
            To::Json(_, runs) => tempfile::tempfile().and_then(|file| runs.add(spans, file)).with_context(temporary),
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
