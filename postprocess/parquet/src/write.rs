// SPDX-License-Identifier: BSD-3-Clause
//! Makes a data set of spans, or adds a trace to one: `TABLE/host=HOST/date=YYYY-MM-DD/TRACE.parquet`.
//!
//! Invariants: a file has its name once it is complete, and that of the table of traces is the last; a trace that
//! exists already is refused. Memory is that of one group of rows for each table.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, ensure, Context, Result};
use kutrace_tools::spans::InOrder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use postprocess::event::date;
use postprocess::line::count;
use postprocess::span::{Meta, Span, Spans, NONE};
use tempfile::NamedTempFile;

use crate::kind;
use crate::schema::{checksum, Cell, Table, ROWS, THREAD, THREADS, TRACE, TRACES, VERSION};

/// Rows of a group.
const GROUP: usize = 1 << 19;
/// Nanoseconds of a unit of time.
const UNIT: i64 = 10;

/// Writes all spans into the data set `folder`; returns what is known about the trace, what it is called there, and how
/// many rows there are.
///
/// # Errors
/// If the trace already exists there, or if a file cannot be written.
pub fn write(spans: InOrder, folder: &Path) -> Result<(Meta, String, u64)> {
    let (last, threads, runs) = spans.split();
    let Spans { meta, names, spans } = last;
    let trace = name(&meta);
    let base = base(&meta)?;
    let place = Place { folder, meta: &meta, trace: &trace };
    let texts: Vec<ByteArray> = names.iter().map(|name| ByteArray::from(name.as_str())).collect();
    let mut tables = Table::ALL.into_iter().map(|table| Ok((table, Rows::new(&place, table)?)));
    let mut tables: BTreeMap<Table, Rows> = tables.by_ref().collect::<Result<_>>()?;
    let (mut extent, mut cpus, mut number) = ((i64::MAX, i64::MIN), 0, 0);
    let mut failed = None;
    let merged = runs.merge(&spans, |span| {
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
        Cell::Text(serde_json::to_string(&meta)?),
        Cell::Text(serde_json::to_string(&files)?),
    ];
    row.push(Cell::Long(checksum(&row)));
    let mut file = Draft::new(&place, TRACES, TRACE)?;
    file.group(row.into_iter().map(Values::of).collect())?;
    file.finish()?;
    Ok((meta, trace, number))
}

/// As [`write`]; returns what is known about the trace, and what is to be said of the tables.
///
/// # Errors
/// As [`write`].
pub fn tables(spans: InOrder, folder: &Path) -> Result<(Meta, Vec<String>)> {
    let (meta, trace, rows) = write(spans, folder)?;
    let told = format!("{}: {}, trace {trace}", folder.display(), count(rows, "row", "rows"));
    let untold = "the monotonic clock is not in spans, and so in no table";
    Ok((meta, vec![told, untold.to_string()]))
}

/// What a trace is called in a data set: its minute and a number that tells it from others.
fn name(meta: &Meta) -> String {
    let minute: String = meta.tracebase.chars().filter(char::is_ascii_digit).collect();
    format!("{minute}-{:08x}", meta.randomid)
}

/// Nanoseconds since 1970 of the moment from which times count.
fn base(meta: &Meta) -> Result<i64> {
    let seconds = if meta.tracebase.is_empty() { Some(0) } else { date::seconds(&meta.tracebase) };
    seconds
        .and_then(|seconds| seconds.checked_mul(1_000_000_000))
        .ok_or_else(|| anyhow!("tracebase {:?} is not a minute that nanoseconds since 1970 reach", meta.tracebase))
}

/// Where the files of a trace are.
struct Place<'a> {
    folder: &'a Path,
    meta: &'a Meta,
    trace: &'a str,
}

impl Place<'_> {
    fn folder(&self, table: &str) -> PathBuf {
        let date = self.meta.tracebase.split_once('_').map_or("unknown", |(date, _)| date);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let host: String = self.meta.host.chars().map(plain).collect();
        let host = if host.trim_matches('.').is_empty() { "unknown" } else { &host };
        self.folder.join(table).join(format!("host={host}")).join(format!("date={date}"))
    }
}

/// A file of a table, which has no name yet.
struct Draft {
    writer: SerializedFileWriter<File>,
    file: NamedTempFile,
    path: PathBuf,
}

impl Draft {
    fn new(place: &Place, table: &str, schema: &str) -> Result<Draft> {
        let folder = place.folder(table);
        let name = || folder.display().to_string();
        fs::create_dir_all(&folder).with_context(name)?;
        let path = folder.join(format!("{}.parquet", place.trace));
        ensure!(path.symlink_metadata().is_err(), "{}: already exists", path.display());
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let file = tempfile::Builder::new().prefix(".ku_").permissions(permissions).tempfile_in(&folder);
        let file = file.with_context(name)?;
        let schema = Arc::new(parse_message_type(schema)?);
        let writer = SerializedFileWriter::new(file.reopen().with_context(name)?, schema, properties()?)?;
        Ok(Draft { writer, file, path })
    }

    /// Writes a group of rows, column by column.
    fn group(&mut self, columns: Vec<Values>) -> Result<()> {
        let written = || -> parquet::errors::Result<()> {
            let mut group = self.writer.next_row_group()?;
            for values in columns {
                if let Some(mut column) = group.next_column()? {
                    values.write(&mut column)?;
                    column.close()?;
                }
            }
            group.close().map(drop)
        };
        written().with_context(|| self.path.display().to_string())
    }

    /// Gives the file its name; returns its bytes and their checksum.
    fn finish(self) -> Result<(u64, u32)> {
        let name = self.path.display().to_string();
        self.writer.close().context(name.clone())?;
        let sums = sums(&mut self.file.reopen().context(name.clone())?).context(name.clone())?;
        self.file.persist_noclobber(&self.path).context(name)?;
        Ok(sums)
    }
}

/// How many bytes a file has, and their checksum.
///
/// # Errors
/// Whatever error `file` returns.
pub(crate) fn sums(file: &mut File) -> io::Result<(u64, u32)> {
    let (mut hasher, mut bytes, mut buffer) = (crc32fast::Hasher::new(), 0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((bytes, hasher.finalize())),
            read => {
                hasher.update(&buffer[..read]);
                bytes += read as u64;
            }
        }
    }
}

fn properties() -> Result<WriterPropertiesPtr> {
    let delta = |builder: parquet::file::properties::WriterPropertiesBuilder, column: &str| {
        let path = ColumnPath::from(column);
        builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
    };
    let builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("kutrace ", env!("CARGO_PKG_VERSION")).to_string());
    Ok(Arc::new(delta(builder, "start_ns").build()))
}

/// The values of a column, and which rows have one if not all do.
struct Values {
    data: Data,
    present: Option<Vec<i16>>,
}

enum Data {
    Text(Vec<ByteArray>),
    Int(Vec<i32>),
    Long(Vec<i64>),
}

impl Values {
    /// The one value of a column.
    fn of(cell: Cell) -> Values {
        match cell {
            Cell::Text(text) => Values::text(vec![ByteArray::from(text.as_str())]),
            Cell::Int(value) => Values::int(vec![value]),
            Cell::Long(value) => Values::long(vec![value]),
        }
    }

    fn text(values: Vec<ByteArray>) -> Values {
        Values { data: Data::Text(values), present: None }
    }

    fn int(values: Vec<i32>) -> Values {
        Values { data: Data::Int(values), present: None }
    }

    fn long(values: Vec<i64>) -> Values {
        Values { data: Data::Long(values), present: None }
    }

    fn write(self, column: &mut SerializedColumnWriter<'_>) -> parquet::errors::Result<()> {
        let present = self.present.as_deref();
        match self.data {
            Data::Text(values) => column.typed::<ByteArrayType>().write_batch(&values, present, None),
            Data::Int(values) => column.typed::<Int32Type>().write_batch(&values, present, None),
            Data::Long(values) => column.typed::<Int64Type>().write_batch(&values, present, None),
        }
        .map(drop)
    }
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
