// SPDX-License-Identifier: BSD-3-Clause
//! The rows that answer a query, as a table for people, as JSON, or as CSV.
//!
//! Invariant: JSON and CSV go out as the rows come. Only the table waits for all of them, since the widest value of a
//! column says how wide it is.

use std::io::{self, BufWriter, Write};

use anyhow::{anyhow, Context, Result};
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use kutrace_cli::standard;

use crate::said;

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Aligned columns, numbers to the right.
    Text,
    /// An object for each row.
    Json,
    /// As of RFC 4180, with the columns' names; no value is nothing, an empty text is `""`.
    Csv,
}

/// Prints all rows on standard output.
///
/// # Errors
/// If a row cannot be made, or not be written.
pub async fn print(mut rows: SendableRecordBatchStream, form: Form) -> Result<()> {
    let schema = rows.schema();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    if form == Form::Csv {
        writeln!(out, "{}", names.iter().map(|name| csv(name)).collect::<Vec<_>>().join(","))
            .context(standard::OUTPUT)?;
    }
    let mut table = vec![names.clone()];
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(|error| anyhow!("query: {}", said(&error)))?;
        each(&batch, |row| {
            match form {
                Form::Text => table.push(row.iter().map(Cell::plain).collect()),
                Form::Json => {
                    let pairs = names.iter().zip(row).map(|(name, cell)| format!("{}:{}", quoted(name), cell.json()));
                    writeln!(out, "{{{}}}", pairs.collect::<Vec<_>>().join(","))?;
                }
                Form::Csv => writeln!(out, "{}", row.iter().map(Cell::csv).collect::<Vec<_>>().join(","))?,
            }
            Ok(())
        })?;
    }
    if form == Form::Text {
        aligned(&table, &schema, &mut out).context(standard::OUTPUT)?;
    }
    out.flush().context(standard::OUTPUT)
}

/// A value.
enum Cell {
    Null,
    /// As JSON has it, too: a number, true or false.
    Bare(String),
    Text(String),
}

/// The rows of a batch.
fn each(batch: &RecordBatch, mut row: impl FnMut(&[Cell]) -> io::Result<()>) -> Result<()> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter().map(|column| Ok((column, ArrayFormatter::try_new(column, &options)?)));
    let columns: Vec<_> = columns.collect::<Result<_>>()?;
    let mut cells = Vec::with_capacity(columns.len());
    for at in 0..batch.num_rows() {
        cells.clear();
        for (column, values) in &columns {
            cells.push(match column.data_type() {
                _ if column.is_null(at) => Cell::Null,
                DataType::Null => Cell::Null,
                kind if is_bare(kind) => Cell::Bare(values.value(at).try_to_string()?),
                _ => Cell::Text(values.value(at).try_to_string()?),
            });
        }
        row(&cells).context(standard::OUTPUT)?;
    }
    Ok(())
}

fn is_bare(kind: &DataType) -> bool {
    kind.is_numeric() || *kind == DataType::Boolean
}

impl Cell {
    /// Names in traces are chosen by programs: what would move a terminal's cursor is spelled out.
    fn plain(&self) -> String {
        match self {
            Cell::Null => "null".to_string(),
            Cell::Bare(text) => text.clone(),
            Cell::Text(text) => spelled(text),
        }
    }

    fn csv(&self) -> String {
        match self {
            Cell::Null => String::new(),
            Cell::Bare(text) => text.clone(),
            Cell::Text(text) => csv(text),
        }
    }

    fn json(&self) -> String {
        match self {
            // JSON has no infinity.
            Cell::Bare(text) if serde_json::from_str::<serde_json::Value>(text).is_ok() => text.clone(),
            Cell::Null | Cell::Bare(_) => "null".to_string(),
            Cell::Text(text) => quoted(text),
        }
    }
}

fn spelled(text: &str) -> String {
    let one = |c: char| if c.is_control() { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(one).collect()
}

fn csv(text: &str) -> String {
    match text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Columns as wide as their widest value, two spaces apart.
fn aligned(table: &[Vec<String>], schema: &Schema, out: &mut impl Write) -> io::Result<()> {
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let columns: Vec<(usize, bool)> =
        schema.fields().iter().enumerate().map(|(at, field)| (width(at), is_bare(field.data_type()))).collect();
    for row in table {
        let cell = |(text, (width, bare)): (&String, &(usize, bool))| match bare {
            true => format!("{text:>width$}"),
            false => format!("{text:<width$}"),
        };
        let line: Vec<String> = row.iter().zip(&columns).map(cell).collect();
        writeln!(out, "{}", line.join("  ").trim_end())?;
    }
    Ok(())
}
