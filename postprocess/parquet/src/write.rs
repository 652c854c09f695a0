// SPDX-License-Identifier: BSD-3-Clause
//! Makes a data set of spans, or adds a trace to one: `TABLE/host=HOST/date=YYYY-MM-DD/TRACE.parquet`.
//!
//! Invariants: a file has its name once it is complete, and that of the table of traces is the last; a trace that
//! exists already is refused. Memory is that of one group of rows for each table, and one that is written.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::thread;

use anyhow::{anyhow, Context, Result};
use kutrace_tools::ask::Requests;
use kutrace_tools::spans::InOrder;
use parquet::data_type::ByteArray;
use postprocess::event::names::NameId;
use postprocess::id::Pid;
use postprocess::line::count;
use postprocess::span::{Meta, Spans};
use postprocess::why::request::Request;
use postprocess::why::Timeline;

use crate::durations::Durations;
use crate::file::{base, name, Data, Draft, Place, Values, UNIT};
use crate::rows::{Gather, Optional};
use crate::schema::{checksum, Cell, Table, THREAD, THREADS, TRACE, TRACES, VERSION};
use crate::{kind, requests};

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// What the trace is called in the data set.
    pub trace: String,
    /// Rows of spans.
    pub rows: u64,
    /// Requests, if there are any: what they are, and how many.
    pub requests: Option<(String, u64)>,
}

/// Writes all spans into the data set `folder`, with the requests that are asked for, or if none are, those that the
/// trace offers best; returns what is known about the trace.
///
/// # Errors
/// If the trace already exists there, if a file cannot be written, or if there are no such requests as are asked for.
pub fn write(spans: InOrder, folder: &Path, asked: Option<&Requests>) -> Result<(Meta, Written)> {
    let found = found(&spans, asked)?;
    let (last, names_of, runs) = spans.split();
    let Spans { meta, names, spans } = &last;
    let trace = name(meta);
    let base = base(meta)?;
    let place = Place::new(folder, meta, &trace);
    let mut durations = Durations::new(&place, meta.flags, names, &names_of)?;
    let (mut extent, mut cpus, mut number) = ((i64::MAX, i64::MIN), 0, 0);
    let (requests, files) = thread::scope(|scope| {
        // Neither needs the other.
        let requests = found.map(|found| scope.spawn(|| requests::write(&last, &place, base, found)));
        let mut rows = Gather::new(&place, base, names, scope)?;
        let mut failed = None;
        let merged = runs.merge(spans, |span| {
            let (table, kind) = kind::of(span.what());
            number += 1;
            if let (Table::Spans, Some(cpu)) = (table, span.cpu) {
                extent = (extent.0.min(span.start.0), extent.1.max(span.start.0.saturating_add(span.dur.0)));
                cpus = cpus.max(cpu.number().saturating_add(1));
            }
            failed = durations.span(span).err();
            match failed.is_none() && rows.push(table, kind, span) {
                true => Ok(()),
                false => Err(io::Error::other("a table")),
            }
        });
        let files = rows.finish()?;
        failed.map_or(Ok(()), Err)?;
        merged?;
        let requests =
            requests.map(|requests| requests.join().map_err(|_| anyhow!("the search for causes panicked"))?);
        Ok::<_, anyhow::Error>((requests.transpose()?, files))
    })?;
    durations.finish()?;
    threads(&place, &last, &names_of)?;
    let (start, end) = if extent.0 > extent.1 { (0, 0) } else { extent };
    let ns = |units: i64| base.saturating_add(units.saturating_mul(UNIT));
    let text = |text: &str| Cell::Text(text.to_string());
    let mut row = vec![
        text(&trace),
        Cell::Int(VERSION),
        text(&meta.host),
        text(&meta.kernel),
        text(&meta.cpu_model),
        text(&meta.title),
        Cell::Long(base),
        Cell::Long(ns(start)),
        Cell::Long(ns(end)),
        Cell::Int(cpus as i32),
        Cell::Long(number as i64),
        Cell::Long(meta.lost as i64),
        Cell::Text(serde_json::to_string(&meta.quality)?),
        Cell::Text(serde_json::to_string(&meta.unseen)?),
        Cell::Text(serde_json::to_string(meta)?),
        Cell::Text(serde_json::to_string(&files)?),
    ];
    row.push(Cell::Long(checksum(&row)));
    let mut file = Draft::new(&place, TRACES, TRACE)?;
    file.group(row.into_iter().map(Values::of).collect())?;
    file.finish()?;
    Ok((last.meta, Written { trace, rows: number, requests }))
}

/// Writes the table of threads, which have these names.
fn threads(place: &Place, Spans { meta, names, .. }: &Spans, names_of: &BTreeMap<Pid, NameId>) -> Result<()> {
    let text = |name: &NameId| ByteArray::from(names.get(name.index()).map_or("", String::as_str));
    let mut cgroups = Optional::default();
    names_of.keys().for_each(|pid| cgroups.push(meta.cgroup_of(*pid).map(ByteArray::from)));
    let mut file = Draft::new(place, THREADS, THREAD)?;
    file.group(vec![
        Values::text(vec![ByteArray::from(place.trace); names_of.len()]),
        Values::long(names_of.keys().copied().map(i64::from).collect()),
        Values::long(names_of.keys().map(|pid| i64::from(meta.process_of(*pid))).collect()),
        Values::text(names_of.values().map(text).collect()),
        cgroups.values(Data::Text),
    ])?;
    file.finish().map(drop)
}

/// The requests of a trace, and what they are.
fn found(spans: &InOrder, asked: Option<&Requests>) -> Result<Option<(String, Vec<Request>)>> {
    let Some(asked) = asked.filter(|asked| asked.is_said()) else { return Ok(spans.requests()) };
    let whole = spans.whole().context("there are too many spans to look for requests")?;
    asked.find(&Timeline::new(whole)).map(Some).map_err(|fact| anyhow!(fact))
}

/// As [`write`]; returns what is known about the trace, and what is to be said of the tables.
///
/// # Errors
/// As [`write`].
pub fn tables(spans: InOrder, folder: &Path, asked: Option<&Requests>) -> Result<(Meta, Vec<String>)> {
    let searched = spans.whole().is_some();
    let (meta, Written { trace, rows, requests }) = write(spans, folder, asked)?;
    let told = format!("{}: {}, trace {trace}", folder.display(), count(rows, "row", "rows"));
    let requests = match requests {
        Some((what, number)) => format!("{} ({what})", count(number, "request", "requests")),
        None if searched => "nothing in the trace is a request".to_string(),
        None => "there are too many spans to look for requests".to_string(),
    };
    let untold = "the monotonic clock is not in spans, and so in no table";
    Ok((meta, vec![told, requests, untold.to_string()]))
}
