// SPDX-License-Identifier: BSD-3-Clause
//! Makes a data set of spans, or adds a trace to one: `TABLE/host=HOST/date=YYYY-MM-DD/TRACE.parquet`.
//!
//! Invariants: a file has its name once it is complete, and that of the table of traces is the last; a trace that
//! exists already is refused. Memory is that of one group of rows for each table.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::{anyhow, Context, Result};
use kutrace_tools::ask::Requests;
use kutrace_tools::spans::InOrder;
use parquet::data_type::ByteArray;
use postprocess::line::count;
use postprocess::span::{Meta, Span, Spans, NONE};
use postprocess::why::request::Request;
use postprocess::why::Timeline;

use crate::file::{base, name, Data, Draft, Place, Values, GROUP, UNIT};
use crate::schema::{checksum, Cell, Table, ROWS, THREAD, THREADS, TRACE, TRACES, VERSION};
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
    let (last, threads, runs) = spans.split();
    let Spans { meta, names, spans } = &last;
    let trace = name(meta);
    let base = base(meta)?;
    let place = Place::new(folder, meta, &trace);
    let texts: Vec<ByteArray> = names.iter().map(|name| ByteArray::from(name.as_str())).collect();
    let mut tables = Table::ALL.into_iter().map(|table| Ok((table, Rows::new(&place, table)?)));
    let mut tables: BTreeMap<Table, Rows> = tables.by_ref().collect::<Result<_>>()?;
    let (mut extent, mut cpus, mut number) = ((i64::MAX, i64::MIN), 0, 0);
    let mut failed = None;
    let merged = runs.merge(spans, |span| {
        let (table, kind) = kind::of(span.what());
        number += 1;
        if let (Table::Spans, Some(cpu)) = (table, span.cpu) {
            extent = (extent.0.min(span.start.0), extent.1.max(span.start.0.saturating_add(span.dur.0)));
            cpus = cpus.max(cpu.number().saturating_add(1));
        }
        let Some(rows) = tables.get_mut(&table) else { return Ok(()) };
        rows.push(span, kind, texts.get(span.name.index()), base);
        rows.flush_full().map_err(|error| {
            failed = Some(error);
            io::Error::other("a table")
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    merged?;
    let requests = found.map(|found| requests::write(&last, &place, base, found)).transpose()?;
    let mut files = BTreeMap::new();
    for (table, rows) in tables {
        files.insert(table.folder(), rows.finish()?);
    }
    let names = threads.values().map(|name| texts.get(name.index()).cloned().unwrap_or_default()).collect();
    let pids = threads.keys().copied().map(i64::from).collect();
    let processes = threads.keys().map(|pid| i64::from(meta.process_of(*pid))).collect();
    let mut cgroups = Optional::default();
    threads.keys().for_each(|pid| cgroups.push(meta.cgroup_of(*pid).map(ByteArray::from)));
    let traces = vec![ByteArray::from(trace.as_str()); threads.len()];
    let mut file = Draft::new(&place, THREADS, THREAD)?;
    file.group(vec![
        Values::text(traces),
        Values::long(pids),
        Values::long(processes),
        Values::text(names),
        Values { data: Data::Text(cgroups.values), present: Some(cgroups.present) },
    ])?;
    file.finish()?;
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

/// Rows of a table, gathered up to a group.
struct Rows {
    file: Draft,
    trace: ByteArray,
    columns: Columns,
}

#[derive(Default)]
struct Columns {
    start: Vec<i64>,
    dur: Vec<i64>,
    cpu: Optional<i32>,
    pid: Optional<i64>,
    event: Vec<i32>,
    kind: Vec<ByteArray>,
    name: Vec<ByteArray>,
    arg: Optional<i64>,
    ret: Optional<i64>,
    ipc: Vec<i32>,
    rpc: Vec<i32>,
}

/// A column in which some rows have no value.
#[derive(Default)]
struct Optional<T> {
    values: Vec<T>,
    present: Vec<i16>,
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

impl Rows {
    fn new(place: &Place, table: Table) -> Result<Rows> {
        let file = Draft::new(place, table.folder(), ROWS)?;
        Ok(Rows { file, trace: ByteArray::from(place.trace), columns: Columns::default() })
    }

    fn push(&mut self, span: &Span, kind: &'static str, name: Option<&ByteArray>, base: i64) {
        let columns = &mut self.columns;
        let known = |value: i64| Some(value).filter(|value| *value != NONE);
        columns.start.push(base.saturating_add(span.start.0.saturating_mul(UNIT)));
        columns.dur.push(span.dur.0.saturating_mul(UNIT));
        columns.cpu.push(span.cpu.map(|cpu| cpu.number() as i32));
        columns.pid.push(span.pid.map(i64::from));
        let (arg, ret) = span.values();
        columns.event.push(span.event());
        columns.kind.push(ByteArray::from(kind.as_bytes().to_vec()));
        columns.name.push(name.cloned().unwrap_or_default());
        columns.arg.push(known(arg));
        columns.ret.push(known(ret));
        columns.ipc.push(span.ipc.into());
        columns.rpc.push(span.rpc);
    }

    fn flush_full(&mut self) -> Result<()> {
        if self.columns.start.len() < GROUP {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let c = std::mem::take(&mut self.columns);
        if c.start.is_empty() {
            return Ok(());
        }
        let present = |present| Some(present);
        self.file.group(vec![
            Values::text(vec![self.trace.clone(); c.start.len()]),
            Values::long(c.start),
            Values::long(c.dur),
            Values { data: Data::Int(c.cpu.values), present: present(c.cpu.present) },
            Values { data: Data::Long(c.pid.values), present: present(c.pid.present) },
            Values::int(c.event),
            Values::text(c.kind),
            Values::text(c.name),
            Values { data: Data::Long(c.arg.values), present: present(c.arg.present) },
            Values { data: Data::Long(c.ret.values), present: present(c.ret.present) },
            Values::int(c.ipc),
            Values::int(c.rpc),
        ])
    }

    fn finish(mut self) -> Result<(u64, u32)> {
        self.flush()?;
        self.file.finish()
    }
}
