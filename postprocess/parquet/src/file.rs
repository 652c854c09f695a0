// SPDX-License-Identifier: BSD-3-Clause
//! Files of tables: their places, and the writing of columns.
//!
//! Invariant: a file gets its name when it is complete, and the file in the table of traces is the last of a trace.
//! Without it, the others are remains of an interrupted writer, and are replaced.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, ensure, Context, Result};
use kutrace_cli::Draft;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use postprocess::event::date;
use postprocess::span::Meta;

use crate::schema::{Cell, Table, CAUSES, CPUS, DURATIONS, REQUESTS, THREADS, TRACES};
use crate::words;

/// Tables derived from those of spans.
const MADE: [&str; 5] = [CPUS, THREADS, DURATIONS, REQUESTS, CAUSES];
/// Number of rows in a group.
pub const GROUP: usize = 1 << 19;
/// Compression level of zstd.
const LEVEL: i32 = 3;
/// Nanoseconds in a unit of time.
pub const UNIT: i64 = 10;

/// Returns the name of a trace in a data set: its minute and a number that distinguishes it from others.
pub fn name(meta: &Meta) -> String {
    let minute: String = meta.tracebase.chars().filter(char::is_ascii_digit).collect();
    format!("{minute}-{:08x}", meta.randomid)
}

/// Returns the origin of times in nanoseconds since 1970.
pub fn base(meta: &Meta) -> Result<i64> {
    let seconds = if meta.tracebase.is_empty() { Some(0) } else { date::seconds(&meta.tracebase) };
    seconds
        .and_then(|seconds| seconds.checked_mul(1_000_000_000))
        .ok_or_else(|| anyhow!("tracebase {:?} is not within the range of nanoseconds since 1970", meta.tracebase))
}

/// Place of the files of a trace.
pub struct Place<'a> {
    folder: &'a Path,
    meta: &'a Meta,
    /// Name of the trace.
    pub trace: &'a str,
}

impl<'a> Place<'a> {
    /// Makes the place of a trace in this data set.
    pub fn new(folder: &'a Path, meta: &'a Meta, trace: &'a str) -> Place<'a> {
        Place { folder, meta, trace }
    }

    /// Refuses a trace that already exists.
    ///
    /// # Errors
    /// If it exists.
    pub fn refuse_known(&self) -> Result<()> {
        let path = self.path(TRACES);
        ensure!(path.symlink_metadata().is_err(), "{}: already exists", path.display());
        Ok(())
    }

    /// Removes the files of a trace, unless another writer has completed it in the meantime.
    pub fn remove(&self) {
        if self.refuse_known().is_err() {
            return;
        }
        for table in Table::ALL.map(Table::folder).into_iter().chain(MADE) {
            // The file may not have been created yet.
            let _ = fs::remove_file(self.path(table));
        }
    }

    fn path(&self, table: &str) -> PathBuf {
        self.folder(table).join(format!("{}.parquet", self.trace))
    }

    fn folder(&self, table: &str) -> PathBuf {
        let date = self.meta.tracebase.split_once('_').map_or("unknown", |(date, _)| date);
        let host = if self.meta.host.is_empty() { "unknown".to_string() } else { value(&self.meta.host) };
        self.folder.join(table).join(format!("host={host}")).join(format!("date={date}"))
    }
}

/// Encodes a text as the name of a folder after `host=`: characters that paths or readers of these names interpret
/// differently become `%XX`, as in Hive; DuckDB and Spark read this.
fn value(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c) || !c.is_ascii();
    let one = |c: char| if plain(c) { c.to_string() } else { format!("%{:02X}", u32::from(c)) };
    text.chars().map(one).collect()
}

/// A file of a table that has no name yet.
pub struct TableFile {
    writer: SerializedFileWriter<Draft>,
    path: PathBuf,
}

impl TableFile {
    /// Creates a file of a table with these columns.
    pub fn new(place: &Place, table: &str, schema: &str) -> Result<TableFile> {
        let folder = place.folder(table);
        let name = || folder.display().to_string();
        fs::create_dir_all(&folder).with_context(name)?;
        let path = place.path(table);
        let draft = Draft::new(&path).with_context(name)?;
        let schema = Arc::new(parse_message_type(schema)?);
        Ok(TableFile { writer: SerializedFileWriter::new(draft, schema, properties()?)?, path })
    }

    /// Writes a group of rows, column by column.
    pub fn group(&mut self, columns: Vec<Values>) -> Result<()> {
        let described = self.writer.schema_descr().columns().to_vec();
        let written = || -> parquet::errors::Result<()> {
            let mut group = self.writer.next_row_group()?;
            for (values, described) in columns.into_iter().zip(described) {
                if let Data::Words(texts, rows) = values.data {
                    let (bytes, close) = words::chunk(&texts, &rows, (described, LEVEL))?;
                    group.append_column(&bytes, close)?;
                } else if let Some(mut column) = group.next_column()? {
                    values.write(&mut column)?;
                    column.close()?;
                }
            }
            group.close().map(drop)
        };
        written().with_context(|| self.path.display().to_string())
    }

    /// Gives the file its name; returns its size in bytes and its checksum.
    pub fn finish(self) -> Result<(u64, u32)> {
        let name = self.path.display().to_string();
        let mut draft = self.writer.into_inner().context(name.clone())?;
        let file = draft.file();
        let sums = file.rewind().and_then(|()| sums(file)).context(name.clone())?;
        draft.replace().context(name)?;
        Ok(sums)
    }
}

/// Returns the size of a file in bytes, and its checksum.
///
/// # Errors
/// Whatever error `file` returns.
pub fn sums(file: &mut File) -> io::Result<(u64, u32)> {
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
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("kutrace ", env!("CARGO_PKG_VERSION")).to_string());
    Ok(Arc::new(delta(builder, "start_ns").build()))
}

/// Values of a column, and which rows have one if not all do.
pub struct Values {
    /// The values.
    pub data: Data,
    /// 1 for each row that has one, 0 for the others.
    pub present: Option<Vec<i16>>,
}

/// Values by their type.
pub enum Data {
    /// Texts.
    Text(Vec<ByteArray>),
    /// Texts, and for each row the number of its text.
    Words(Arc<Vec<ByteArray>>, Vec<u32>),
    /// 32-bit numbers.
    Int(Vec<i32>),
    /// 64-bit numbers.
    Long(Vec<i64>),
}

impl Values {
    /// Makes a column of one value.
    pub fn of(cell: Cell) -> Values {
        match cell {
            Cell::Text(text) => Values::text(vec![ByteArray::from(text.as_str())]),
            Cell::Int(value) => Values::int(vec![value]),
            Cell::Long(value) => Values::long(vec![value]),
            Cell::Maybe(value) => {
                Values { data: Data::Long(value.into_iter().collect()), present: Some(vec![value.is_some().into()]) }
            }
        }
    }

    /// Makes a column of texts, one for each row.
    pub fn text(values: Vec<ByteArray>) -> Values {
        Values { data: Data::Text(values), present: None }
    }

    /// Makes a column with one of these texts for each row, by number.
    pub fn words(texts: Arc<Vec<ByteArray>>, rows: Vec<u32>) -> Values {
        Values { data: Data::Words(texts, rows), present: None }
    }

    /// Makes a column of 32-bit numbers, one for each row.
    pub fn int(values: Vec<i32>) -> Values {
        Values { data: Data::Int(values), present: None }
    }

    /// Makes a column of 64-bit numbers, one for each row.
    pub fn long(values: Vec<i64>) -> Values {
        Values { data: Data::Long(values), present: None }
    }

    fn write(self, column: &mut SerializedColumnWriter<'_>) -> parquet::errors::Result<()> {
        let present = self.present.as_deref();
        match self.data {
            Data::Text(values) => column.typed::<ByteArrayType>().write_batch(&values, present, None),
            // These are already chunks.
            Data::Words(..) => return Ok(()),
            Data::Int(values) => column.typed::<Int32Type>().write_batch(&values, present, None),
            Data::Long(values) => column.typed::<Int64Type>().write_batch(&values, present, None),
        }
        .map(drop)
    }
}
