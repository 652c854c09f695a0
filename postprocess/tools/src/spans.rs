// SPDX-License-Identifier: BSD-3-Clause
//! Reading and writing of spans in the tools: JSON or frames, with reports of the faults that came with them.

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

/// Form of written spans.
#[derive(Clone, Debug, clap::Args)]
pub struct Form {
    /// Write frames, which tools read faster, not text
    #[arg(long)]
    pub binary: bool,
    /// Output and messages.
    #[command(flatten)]
    pub common: Common,
}

/// Reads spans from a file, or from standard input; also returns the name of the input for messages.
pub fn read(file: Option<&PathBuf>) -> Result<(Spans, String)> {
    read_into(file, SpanLimit::new(usize::MAX))
}

/// Like [`read`], but passes the spans to `keep`.
pub fn read_into(file: Option<&PathBuf>, keep: impl Keep) -> Result<(Spans, String)> {
    let input = crate::open(file, Stage::Spans)?;
    let name = input.name.clone();
    let spans = input.spans(keep)?;
    let none = spans.spans.is_empty();
    some(spans, none, name)
}

/// Like [`read`], with the spans in compact form, separate from everything else.
pub fn read_dense(file: Option<&PathBuf>) -> Result<(Spans, Dense, String)> {
    let input = crate::open(file, Stage::Spans)?;
    let (mut dense, name) = (Dense::default(), input.name.clone());
    let about = input.spans(&mut dense)?;
    let (about, name) = some(about, dense.is_empty(), name)?;
    Ok((about, dense, name))
}

/// Returns what was read; fails if there are no spans because of faults.
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

/// Number of spans held in memory for JSON before they go to a file in the folder for temporary files: 0.5 GB.
const SPANS_MAX: usize = 1 << 23;

/// Spans in order, in memory or, if there are many, in files in the folder for temporary files.
#[derive(Debug)]
pub struct InOrder {
    /// Data about the whole trace, and the spans that are in no file.
    pub last: Spans,
    /// Last name of each thread's own code.
    pub threads: BTreeMap<Pid, NameId>,
    runs: Runs<File>,
}

impl InOrder {
    /// Returns all spans, if they are in memory.
    pub fn whole(&self) -> Option<&Spans> {
        Some(&self.last).filter(|_| self.runs.spans() == 0)
    }

    /// Returns the requests that suit the trace best, with their kind; `None` if nothing in it is a request, or if the
    /// spans are too many to search.
    pub fn requests(&self) -> Option<Found> {
        let spans = self.whole()?;
        let timeline = Timeline::new(spans);
        offered(&timeline).ok().filter(|(ask, _)| !matches!(ask, Ask::Range(_))).map(|(_, found)| found)
    }

    /// Returns the last spans and the threads, and the spans in files.
    pub fn split(self) -> (Spans, BTreeMap<Pid, NameId>, Runs<File>) {
        (self.last, self.threads, self.runs)
    }
}

/// Collects spans in order.
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
    /// Returns all spans; `last` are the last of them.
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

/// Reads spans from a file, or from standard input, to put them in order; also returns the name of the input for
/// messages.
///
/// # Errors
/// If they cannot be read, or cannot be kept.
pub fn in_order(file: Option<&PathBuf>) -> Result<(InOrder, String)> {
    let mut ordering = Ordering::default();
    let (last, name) = read_into(file, &mut ordering)?;
    Ok((ordering.finish(last)?, name))
}

/// Describes a temporary file and its folder.
fn temporary() -> String {
    format!("temporary file in {} (TMPDIR names another folder)", std::env::temp_dir().display())
}

/// Spans on their way to the output. JSON needs them in order, so all are kept, in memory or in files, until the last
/// has arrived; frames need no order, and are written as they come.
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

    /// Returns the number of spans that may gather before some are taken.
    pub fn room(&self) -> usize {
        match self.to {
            To::Json(..) => SPANS_MAX,
            To::Frames(..) => 0,
        }
    }

    /// Takes spans that follow those taken before; `names` are all names so far.
    pub fn take(&mut self, spans: Vec<Span>, names: &[impl AsRef<str>]) -> Result<()> {
        match &mut self.to {
            To::Json(_, runs) => tempfile::tempfile().and_then(|file| runs.add(spans, file)).with_context(temporary),
            To::Frames(frames) => spans.iter().try_for_each(|span| frames.row(span, names)).context(self.name.clone()),
        }
    }

    /// Takes the last spans, and the data about the whole trace.
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
