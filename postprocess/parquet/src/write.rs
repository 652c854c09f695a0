// SPDX-License-Identifier: BSD-3-Clause
//! Makes a data set from spans, or adds a trace to one: `TABLE/host=HOST/date=YYYY-MM-DD/TRACE.parquet`.
//!
//! Invariants: a file gets its name when it is complete, and the one in the table of traces is the last; a trace that
//! already exists is refused. Memory is that of one group of rows for each table, and of one group that is being
//! written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver};
use std::thread;

use anyhow::{anyhow, Context, Result};
use kutrace_format::capability::Capability;
use kutrace_format::flag;
use kutrace_tools::ask::Requests;
use kutrace_tools::spans::InOrder;
use parquet::data_type::ByteArray;
use postprocess::event::names::NameId;
use postprocess::id::Pid;
use postprocess::readable::count;
use postprocess::span::runs::Runs;
use postprocess::span::{Meta, Span, Spans};
use postprocess::time::Time;
use postprocess::why::request::Found;
use postprocess::why::Timeline;

use crate::cpus::Cpus;
use crate::durations::Durations;
use crate::file::{base, name, Data, Place, TableFile, Values, UNIT};
use crate::rows::{Gather, Optional};
use crate::schema::{checksum, Cell, THREAD, THREADS, TRACE, TRACES, VERSION};
use crate::{kind, requests};

/// Number of spans passed on at a time to be counted.
const BATCH: usize = 1 << 14;

/// Summary of what was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Name of the trace in the data set.
    pub trace: String,
    /// Number of rows of spans.
    pub rows: u64,
    /// Kind and number of the requests, if there are any.
    pub requests: Option<(String, u64)>,
}

/// Writes all spans to the data set `folder`, with the requests asked for, or if none are, those that suit the trace
/// best. Returns the data about the trace.
///
/// # Errors
/// If the trace already exists there, if a file cannot be written, or if the trace has no requests of the kind asked
/// for.
pub fn write(spans: InOrder, folder: &Path, asked: Option<&Requests>) -> Result<(Meta, Written)> {
    let found = found(&spans, asked)?;
    let (last, names_of, runs) = spans.split();
    let trace = name(&last.meta);
    let place = Place::new(folder, &last.meta, &trace);
    place.refuse_known()?;
    place.remove();
    let (rows, requests) = write_all(&place, &last, (&names_of, runs), found).inspect_err(|_| place.remove())?;
    Ok((last.meta, Written { trace, rows, requests }))
}

/// Kind and number of the requests that were written.
type Told = Option<(String, u64)>;

/// Writes all tables of a trace; returns the number of rows of spans, and the requests.
fn write_all(
    place: &Place,
    last: &Spans,
    (names_of, runs): (&BTreeMap<Pid, NameId>, Runs<File>),
    found: Option<Found>,
) -> Result<(u64, Told)> {
    let Spans { meta, names, spans } = last;
    let base = base(meta)?;
    let durations = Durations::new(place, meta.flags, names, names_of)?;
    let (mut cpus, mut number) = (Cpus::default(), 0);
    let (requests, files) = thread::scope(|scope| {
        // Requests and rows do not depend on each other.
        let requests = found.map(|found| scope.spawn(|| requests::write(last, place, base, found)));
        let mut rows = Gather::new(place, base, names, scope)?;
        let (some, batches) = sync_channel(1);
        let counted = scope.spawn(|| count_all(durations, batches));
        let mut batch = Vec::with_capacity(BATCH);
        let merged = runs.merge(spans, |span| {
            let (table, kind) = kind::of(span.what());
            number += 1;
            cpus.span(span);
            batch.push(*span);
            let full = batch.len() == BATCH;
            let counts = !full || some.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))).is_ok();
            match counts && rows.push(table, kind, span) {
                true => Ok(()),
                false => Err(io::Error::other("a table")),
            }
        });
        // If the batch is refused, the counter has ended and returns the reason.
        let _ = some.send(batch);
        drop(some);
        counted.join().map_err(|_| anyhow!("the counter of durations panicked"))??;
        let files = rows.finish()?;
        merged?;
        let requests =
            requests.map(|requests| requests.join().map_err(|_| anyhow!("the search for causes panicked"))?);
        Ok::<_, anyhow::Error>((requests.transpose()?, files))
    })?;
    threads(place, last, names_of)?;
    cpus.write(place, meta, base)?;
    let (start, end) = cpus.extent().unwrap_or_default();
    let ns = |time: Time| base.saturating_add(time.0.saturating_mul(UNIT));
    let text = |text: &str| Cell::Text(text.to_string());
    let mut row = vec![
        text(place.trace),
        Cell::Int(VERSION),
        text(&meta.host),
        text(&meta.kernel),
        text(&meta.cpu_model),
        text(&meta.title),
        Cell::Long(base),
        Cell::Long(ns(start)),
        Cell::Long(ns(end)),
        Cell::Int(cpus.count() as i32),
        Cell::Long(number as i64),
        Cell::Long(meta.lost as i64),
        Cell::Text(serde_json::to_string(&meta.quality)?),
        Cell::Text(serde_json::to_string(&meta.unseen)?),
        Cell::Text(serde_json::to_string(meta)?),
        Cell::Text(serde_json::to_string(&files)?),
        Cell::Maybe(meta.monotonic),
        text(&meta.boot_id),
        text(source(meta)),
    ];
    row.push(Cell::Long(checksum(&row)));
    let mut file = TableFile::new(place, TRACES, TRACE)?;
    file.group(row.into_iter().map(Values::of).collect())?;
    file.finish()?;
    Ok((number, requests))
}

/// Returns the source of a trace: another recorder, the original, or in our case the patch's hooks or a kernel's
/// tracepoints.
fn source(meta: &Meta) -> &str {
    match () {
        () if !meta.recorder.is_empty() => &meta.recorder,
        () if meta.flags & flag::VERSION == 3 => "original",
        () if meta.sees(Capability::EntryCode) => "hooks",
        () => "tracepoints",
    }
}

/// Counts the durations of spans, which come in batches and in order.
fn count_all(mut durations: Durations, batches: Receiver<Vec<Span>>) -> Result<()> {
    batches.into_iter().flatten().try_for_each(|span| durations.span(&span))?;
    durations.finish()
}

/// Writes the table of threads, which have these names.
fn threads(place: &Place, Spans { meta, names, .. }: &Spans, names_of: &BTreeMap<Pid, NameId>) -> Result<()> {
    let text = |name: &NameId| ByteArray::from(names.get(name.index()).map_or("", String::as_str));
    let mut cgroups = Optional::default();
    names_of.keys().for_each(|pid| cgroups.push(meta.cgroup_of(*pid).map(ByteArray::from)));
    let mut file = TableFile::new(place, THREADS, THREAD)?;
    file.group(vec![
        Values::text(vec![ByteArray::from(place.trace); names_of.len()]),
        Values::long(names_of.keys().copied().map(i64::from).collect()),
        Values::long(names_of.keys().map(|pid| i64::from(meta.process_of(*pid))).collect()),
        Values::text(names_of.values().map(text).collect()),
        cgroups.values(Data::Text),
    ])?;
    file.finish().map(drop)
}

/// Returns the requests of a trace, with their kind.
fn found(spans: &InOrder, asked: Option<&Requests>) -> Result<Option<Found>> {
    let Some(asked) = asked.filter(|asked| asked.is_given()) else { return Ok(spans.requests()) };
    let whole = spans.whole().context("there are too many spans to look for requests")?;
    asked.find(&Timeline::new(whole)).map(Some).map_err(|fact| anyhow!(fact))
}

/// Like [`write()`], but returns the data about the trace, and notes about the tables.
///
/// # Errors
/// As [`write()`].
pub fn tables(spans: InOrder, folder: &Path, asked: Option<&Requests>) -> Result<(Meta, Vec<String>)> {
    let searched = spans.whole().is_some();
    let (meta, Written { trace, rows, requests }) = write(spans, folder, asked)?;
    let told = format!("{}: {}, trace {trace}", folder.display(), count(rows, "row", "rows"));
    let requests = match requests {
        Some((what, number)) => format!("{} ({what})", count(number, "request", "requests")),
        None if searched => "nothing in the trace is a request".to_string(),
        None => "there are too many spans to look for requests".to_string(),
    };
    Ok((meta, vec![told, requests]))
}
