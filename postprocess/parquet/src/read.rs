// SPDX-License-Identifier: BSD-3-Clause
//! Restores the spans of a trace from a data set.
//!
//! Invariant: the result equals the input, except for the order of rows with the same start, duration and CPU. A file
//! with other columns is refused, and one whose checksum differs from that in the table of traces is skipped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use parquet::basic::Type;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use postprocess::event::names::Names;
use postprocess::id::{CpuId, Pid};
use postprocess::readable::count;
use postprocess::span::{Meta, Span, NONE};
use postprocess::time::Time;

use crate::file::sums;
use crate::schema::{checksum, Cell, Table, ROWS, TRACE, TRACES, VERSION};

/// Nanoseconds in a unit of time.
const UNIT: i64 = 10;

/// A trace of a data set.
#[derive(Clone, Debug)]
pub struct Found {
    /// Name of the trace.
    pub trace: String,
    /// Data about the trace.
    pub meta: Meta,
    base: i64,
    /// Number of rows in its tables.
    rows: i64,
    /// Bytes and checksum of its file in each table.
    files: BTreeMap<String, (u64, u32)>,
    /// Path below the folder of a table.
    below: PathBuf,
}

/// Returns the traces of the data set `folder`, ordered by path.
///
/// # Errors
/// If a file of the table of traces cannot be read, or is of another version.
pub fn traces(folder: &Path) -> Result<Vec<Found>> {
    let root = folder.join(TRACES);
    let mut paths = Vec::new();
    for host in entries(&root)? {
        for date in entries(&host)? {
            paths.extend(entries(&date)?.into_iter().filter(|path| path.extension().is_some_and(|e| e == "parquet")));
        }
    }
    paths.sort();
    paths.iter().map(|path| found(&root, path).with_context(|| path.display().to_string())).collect()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let name = || folder.display().to_string();
    if folder.is_file() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(name)?;
    entries.map(|entry| Ok(entry.with_context(name)?.path())).collect()
}

fn found(root: &Path, path: &Path) -> Result<Found> {
    let reader = open(path, TRACE)?;
    ensure!(reader.num_row_groups() == 1, "not one row");
    let group = reader.get_row_group(0)?;
    ensure!(group.metadata().num_rows() == 1, "not one row");
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    let cell = |n: usize| -> Result<Cell> {
        Ok(match columns[n].physical_type() {
            Type::BYTE_ARRAY => {
                Cell::Text(String::from_utf8(column::<ByteArrayType>(&*group, n)?.0[0].data().to_vec())?)
            }
            Type::INT32 => Cell::Int(column::<Int32Type>(&*group, n)?.0[0]),
            _ if columns[n].max_def_level() > 0 => Cell::Maybe(optional::<Int64Type>(&*group, n)?.next().flatten()),
            _ => Cell::Long(column::<Int64Type>(&*group, n)?.0[0]),
        })
    };
    let mut row = (0..columns.len()).map(cell).collect::<Result<Vec<Cell>>>()?;
    let sum = row.pop();
    ensure!(sum == Some(Cell::Long(checksum(&row))), "the row is damaged: its checksum does not match");
    let (text, long) = (
        |n: usize| if let Cell::Text(text) = &row[n] { text.as_str() } else { "" },
        |n: usize| if let Cell::Long(value) = row[n] { value } else { 0 },
    );
    ensure!(row[1] == Cell::Int(VERSION), "tables of another version; this program reads {VERSION}");
    let below = path.strip_prefix(root)?.to_owned();
    let meta = serde_json::from_str(text(14)).context("column meta")?;
    let files = serde_json::from_str(text(15)).context("column files")?;
    Ok(Found { trace: text(0).to_string(), meta, base: long(6), rows: long(10), files, below })
}

impl Found {
    /// Passes on the rows of all tables, each table by start, with all names so far. Returns the data about the trace,
    /// including reports of missing or damaged parts.
    ///
    /// # Errors
    /// If a file cannot be read or has other columns, or whatever error `each` returns.
    pub fn spans(
        mut self,
        folder: &Path,
        mut each: impl FnMut(Vec<Span>, &Names) -> Result<()>,
    ) -> Result<(Meta, Names)> {
        let (mut names, mut read) = (Names::default(), 0);
        for table in Table::ALL {
            let path = folder.join(table.folder()).join(&self.below);
            if !path.exists() {
                self.meta.quality.push(format!("the table {} is missing", table.folder()));
                continue;
            }
            let sums = File::open(&path).and_then(|mut file| sums(&mut file));
            let sums = sums.with_context(|| path.display().to_string())?;
            if self.files.get(table.folder()) != Some(&sums) {
                self.meta.quality.push(format!("the table {} is damaged, and skipped", table.folder()));
                continue;
            }
            let mut read_all = || -> Result<()> {
                let reader = open(&path, ROWS)?;
                for n in 0..reader.num_row_groups() {
                    let spans = group(&*reader.get_row_group(n)?, self.base, &mut names)?;
                    read += spans.len() as i64;
                    each(spans, &names)?;
                }
                Ok(())
            };
            read_all().with_context(|| path.display().to_string())?;
        }
        if read != self.rows {
            let rows = count(read as u64, "row is", "rows are");
            self.meta.quality.push(format!("{rows} there, of {}", self.rows));
        }
        Ok((self.meta, names))
    }
}

/// Opens a file that must have these columns.
fn open(path: &Path, schema: &str) -> Result<SerializedFileReader<File>> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let fields = |schema: &parquet::schema::types::Type| format!("{:?}", schema.get_fields());
    let expected = fields(&parse_message_type(schema)?);
    if fields(reader.metadata().file_metadata().schema()) != expected {
        bail!("has other columns than a table of KUtrace, version {VERSION}");
    }
    Ok(reader)
}

/// Returns the values of a column, and which rows have one; the latter is empty if every row must.
fn column<T: DataType>(group: &dyn RowGroupReader, n: usize) -> Result<(Vec<T::T>, Vec<i16>)> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(n)?);
    let optional = group.metadata().column(n).column_descr().max_def_level() > 0;
    let (mut values, mut present) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, ..) = reader.read_records(rows - read, optional.then_some(&mut present), None, &mut values)?;
        ensure!(records > 0, "column {n} ends at row {read}");
        read += records;
    }
    ensure!(
        values.len() == if optional { present.iter().filter(|p| **p > 0).count() } else { rows },
        "column {n} is cut"
    );
    Ok((values, present))
}

/// Returns the values of a column, one or none for each row.
///
/// # Errors
/// If the column cannot be read, or is too short.
pub fn optional<T: DataType>(group: &dyn RowGroupReader, n: usize) -> Result<impl Iterator<Item = Option<T::T>>> {
    let (values, present) = column::<T>(group, n)?;
    let rows = if present.is_empty() { values.len() } else { present.len() };
    let mut values = values.into_iter();
    Ok((0..rows).map(move |row| if present.get(row).is_none_or(|present| *present > 0) { values.next() } else { None }))
}

fn group(group: &dyn RowGroupReader, base: i64, names: &mut Names) -> Result<Vec<Span>> {
    let (start, dur) = (column::<Int64Type>(group, 1)?.0, column::<Int64Type>(group, 2)?.0);
    let (mut cpu, mut pid) = (optional::<Int32Type>(group, 3)?, optional::<Int64Type>(group, 4)?);
    let (event, texts) = (column::<Int32Type>(group, 5)?.0, column::<ByteArrayType>(group, 7)?.0);
    let (mut arg, mut ret) = (optional::<Int64Type>(group, 8)?, optional::<Int64Type>(group, 9)?);
    let (ipc, rpc) = (column::<Int32Type>(group, 10)?.0, column::<Int32Type>(group, 11)?.0);
    let mut spans = Vec::with_capacity(start.len());
    for n in 0..start.len() {
        let mut span = Span {
            start: Time(start[n].saturating_sub(base).div_euclid(UNIT)),
            dur: Time((dur[n] / UNIT).max(0)),
            cpu: cpu.next().flatten().map(|cpu| CpuId::new(cpu as u32)),
            pid: pid.next().flatten().map(|pid| Pid::new(pid as u32)),
            ipc: ipc[n] as u8 & 15,
            rpc: rpc[n],
            name: names.id(&String::from_utf8_lossy(texts[n].data())),
            ..Span::default()
        };
        let value = |column: &mut dyn Iterator<Item = Option<i64>>| column.next().flatten().unwrap_or(NONE);
        span.set_columns(event[n], value(&mut arg), value(&mut ret));
        spans.push(span);
    }
    Ok(spans)
}
