// SPDX-License-Identifier: BSD-3-Clause
//! From a raw trace straight to spans, to a page or to a summary: no text and no JSON between the stages, which run in
//! parallel.
//!
//! Invariant: memory is bounded. Apart from the raw bytes it holds a few batches of events, and no more spans than
//! asked for; [`SpanLimit`] describes what happens to more. A summary keeps none.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread;

use crate::event::batch::{Batch, Renumber};
use crate::event::names::Names;
use crate::event::{Event, Meta};
use crate::id::CpuId;
use crate::raw::damage::NotATrace;
use crate::sink::page;
use crate::sink::summary::{Adder, Summary};
use crate::source::{self, Batches, Decode, Trace};
use crate::span::build::Builder;
use crate::span::limit::{Keep, SpanLimit};
use crate::span::{Span, Spans, Tally};
use crate::time::Time;
use crate::why::carry::carried;

/// Number of events in a batch.
const BATCH: usize = 1 << 13;
/// Maximum number of batches that wait for the builder.
const WAITING: usize = 8;
/// Bytes of memory for raw bytes and spans; the rest of 2 GiB, 128 MiB, is for everything else.
const MEMORY: usize = (2 << 30) - (128 << 20);
/// Minimum bytes of memory for spans, for a raw trace of any length.
const MEMORY_MIN: usize = 1 << 29;

/// Reason why there is no page.
#[derive(Debug)]
pub enum Error {
    /// Not a raw trace.
    NotATrace(NotATrace),
    /// No page can be made of the spans.
    Page(page::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrace(e) => e.fmt(f),
            Self::Page(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Page(page::Error::Write(e)) => Some(e),
            _ => None,
        }
    }
}

/// Writes the page of a raw trace of any format, with this title, or its own if that is empty; returns the facts about
/// the trace.
///
/// # Errors
/// If `bytes` are not a raw trace, or any error of `out`.
pub fn page_of_raw(bytes: &[u8], title: &str, out: &mut impl Write) -> Result<(crate::span::Meta, Tally), Error> {
    let (mut spans, tally) = spans_of_raw(bytes, limit_for_page(bytes.len())).map_err(Error::NotATrace)?;
    if !title.is_empty() {
        spans.meta.title = title.to_string();
    }
    page::render_with(&spans, carried(&spans).as_ref(), out).map_err(Error::Page)?;
    Ok((spans.meta, tally))
}

/// Maximum number of spans on the page of a raw trace of this many bytes.
///
/// Memory: 2 GiB, including the raw bytes and the page's own needs; for raw bytes beyond 1.4 GiB, 0.6 GiB more than
/// their size.
pub fn limit_for_page(bytes: usize) -> SpanLimit {
    SpanLimit::within(MEMORY.saturating_sub(bytes).max(MEMORY_MIN))
}

/// Decodes a raw trace of any format and builds its spans, which `held` keeps.
///
/// # Errors
/// If `bytes` are not a raw trace.
pub fn spans_of_raw(bytes: &[u8], held: impl Keep) -> Result<(Spans, Tally), NotATrace> {
    Ok(spans_of(&*source::trace(bytes)?, held))
}

/// Decodes a trace and builds its spans, which `held` keeps.
pub fn spans_of(trace: &dyn Trace, mut held: impl Keep) -> (Spans, Tally) {
    let (spans, tally) = built(trace, |_, builder| {
        if builder.written().len() > held.room() {
            held.add(builder.take());
        }
    });
    (held.finish(spans), tally)
}

/// Decodes a raw trace of any format, and adds up all its events and spans; the `worst` waits for a CPU are reported in
/// full.
///
/// Memory: the raw bytes, and that of [`crate::sink::summary`].
///
/// # Errors
/// If `bytes` are not a raw trace.
pub fn summary_of_raw(bytes: &[u8], worst: usize) -> Result<Summary, NotATrace> {
    let (trace, mut adder) = (source::trace(bytes)?, Adder::new(worst));
    let (last, _) = built(&*trace, |events, builder| {
        events.iter().for_each(|event| adder.event(builder.said(event), event));
        builder.take().iter().for_each(|span| adder.span(span));
    });
    last.spans.iter().for_each(|span| adder.span(span));
    Ok(adder.finish(last.meta, &last.names, &mut |cpu, window, each| executed(&*trace, cpu, window, each)))
}

/// Builds the spans of all events of `source`, and also returns the facts about the trace. If there are more than
/// `max`, they are passed to `away`, with all names so far, and only the last are returned.
///
/// # Errors
/// Any error of the source's input, or of `away`.
pub fn build_from<E: From<io::Error>>(
    mut source: Batches<impl BufRead>,
    max: usize,
    mut away: impl FnMut(Vec<Span>, &Names) -> Result<(), E>,
) -> Result<(Spans, Tally, Meta), E> {
    let mut builder = Builder::new(source.meta(), Names::default());
    let mut renumber = Renumber::default();
    while let Some(mut batch) = source.batch()? {
        renumber.receive(&mut batch, &mut builder.names);
        batch.rows.iter().for_each(|event| builder.push(event));
        if builder.written().len() > max {
            away(builder.take(), &builder.names)?;
        }
    }
    let meta = source.finish();
    let (spans, tally) = builder.finish(meta.clone());
    Ok((spans, tally, meta))
}

/// Looks again at a CPU's activity in a range of time.
fn executed(trace: &dyn Trace, cpu: CpuId, window: (Time, Time), each: &mut dyn FnMut(&Span, &str)) {
    let mut those = |span: &Span, name: &str| {
        let within = span.start < window.1 && span.start.saturating_add(span.dur) > window.0;
        if within && span.cpu == Some(cpu) && span.is_execution() {
            each(span, name);
        }
    };
    let (last, _) = built(&*trace.part(cpu, window), |_, builder| {
        builder.take().iter().for_each(|span| those(span, builder.names.text(span.name)));
    });
    let name = |span: &Span| last.names.get(span.name.index()).map_or("", String::as_str);
    last.spans.iter().for_each(|span| those(span, name(span)));
}

/// Builds the spans of a trace; after each batch of events, `each` is called with the batch and the builder. Returns
/// the spans that it did not take.
fn built(trace: &dyn Trace, mut each: impl FnMut(&[Event], &mut Builder)) -> (Spans, Tally) {
    let mut names = Names::default();
    let decoder = trace.decoder(&mut names);
    let begun = decoder.meta();
    let (batches, received) = sync_channel(WAITING);
    thread::scope(|scope| {
        let decoding = scope.spawn(move || send(decoder, names, &batches));
        let mut builder = Builder::new(&begun, Names::default());
        let mut renumber = Renumber::default();
        for mut batch in &received {
            renumber.receive(&mut batch, &mut builder.names);
            batch.rows.iter().for_each(|event| builder.push(event));
            each(&batch.rows, &mut builder);
        }
        match decoding.join() {
            Ok(meta) => builder.finish(meta),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Sends all events of a trace, and returns the facts about it at the end.
fn send(mut decoder: Box<dyn Decode + '_>, mut names: Names, batches: &SyncSender<Batch<Event>>) -> Meta {
    let mut sent = 0;
    loop {
        let rows = decoder.batch(&mut names, BATCH);
        let new = names.since(sent).to_vec();
        sent += new.len();
        // The receiver goes away only if it panics, and then no one is left to notify.
        if rows.is_empty() || batches.send(Batch { names: new, rows }).is_err() {
            return decoder.meta();
        }
    }
}
