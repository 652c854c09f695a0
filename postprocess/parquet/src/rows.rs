// SPDX-License-Identifier: BSD-3-Clause
//! Rows of spans, column by column, up to a group of each table; and the thread that writes full groups.
//!
//! Invariant: each table gathers one group, and one more group is being written; a third has to wait.

use std::collections::BTreeMap;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::{anyhow, Result};
use parquet::data_type::ByteArray;
use postprocess::span::{Span, NONE};

use crate::file::{Data, Place, TableFile, Values, GROUP, UNIT};
use crate::schema::{Table, ROWS};

/// Gathered rows of all tables.
pub struct Gather<'scope> {
    tables: BTreeMap<Table, Columns>,
    texts: Arc<Vec<ByteArray>>,
    /// Words of the column `kind` so far.
    kinds: Vec<&'static str>,
    full: SyncSender<(Table, Vec<Values>)>,
    writer: ScopedJoinHandle<'scope, Result<Files>>,
    trace: Arc<Vec<ByteArray>>,
    base: i64,
}

/// Bytes and checksum of the file of each table.
type Files = BTreeMap<&'static str, (u64, u32)>;

impl<'scope> Gather<'scope> {
    /// Starts without rows; times count from `base`, and `names` are the names of the spans.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn new(place: &Place, base: i64, names: &[String], scope: &'scope Scope<'scope, '_>) -> Result<Gather<'scope>> {
        let file = |table: Table| Ok((table, TableFile::new(place, table.folder(), ROWS)?));
        let files = Table::ALL.into_iter().map(file).collect::<Result<BTreeMap<Table, TableFile>>>()?;
        let (full, groups) = sync_channel(0);
        Ok(Gather {
            tables: Table::ALL.into_iter().map(|table| (table, Columns::default())).collect(),
            texts: Arc::new(names.iter().map(|name| ByteArray::from(name.as_str())).collect()),
            kinds: Vec::new(),
            full,
            writer: scope.spawn(|| write(files, groups)),
            trace: Arc::new(vec![ByteArray::from(place.trace)]),
            base,
        })
    }

    /// Adds a row. Returns false if the writer has ended; [`Gather::finish`] returns its error.
    pub fn push(&mut self, table: Table, kind: &'static str, span: &Span) -> bool {
        let kind = self.kinds.iter().position(|known| std::ptr::eq(*known, kind)).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        let columns = self.tables.entry(table).or_default();
        columns.push(span, kind as u32, self.base);
        columns.start.len() < GROUP || self.flush(table)
    }

    /// Writes the remaining rows; returns bytes and checksum of each file.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(mut self) -> Result<Files> {
        // If a group is refused, the writer has ended and returns the reason.
        let _ = Table::ALL.into_iter().all(|table| self.flush(table));
        drop(self.full);
        self.writer.join().map_err(|_| anyhow!("the writer of tables panicked"))?
    }

    fn flush(&mut self, table: Table) -> bool {
        let columns = self.tables.insert(table, Columns::default()).unwrap_or_default();
        let kinds = Arc::new(self.kinds.iter().map(|kind| ByteArray::from(*kind)).collect());
        columns.start.is_empty() || self.full.send((table, columns.values(&self.trace, kinds, &self.texts))).is_ok()
    }
}

/// Writes groups until there are no more.
fn write(mut files: BTreeMap<Table, TableFile>, groups: Receiver<(Table, Vec<Values>)>) -> Result<Files> {
    for (table, columns) in groups {
        files.get_mut(&table).map_or(Ok(()), |file| file.group(columns))?;
    }
    files.into_iter().map(|(table, file)| Ok((table.folder(), file.finish()?))).collect()
}

/// Rows of a table.
#[derive(Default)]
struct Columns {
    start: Vec<i64>,
    dur: Vec<i64>,
    cpu: Optional<i32>,
    pid: Optional<i64>,
    event: Vec<i32>,
    kind: Vec<u32>,
    name: Vec<u32>,
    arg: Optional<i64>,
    ret: Optional<i64>,
    ipc: Vec<i32>,
    rpc: Vec<i32>,
}

/// A column in which some rows have no value.
pub struct Optional<T> {
    values: Vec<T>,
    present: Vec<i16>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Optional { values: Vec::new(), present: Vec::new() }
    }
}

impl<T> Optional<T> {
    /// Adds the value of a row.
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    /// Returns all values.
    pub fn values(self, data: impl FnOnce(Vec<T>) -> Data) -> Values {
        Values { data: data(self.values), present: Some(self.present) }
    }
}

impl Columns {
    fn push(&mut self, span: &Span, kind: u32, base: i64) {
        let known = |value: i64| Some(value).filter(|value| *value != NONE);
        self.start.push(base.saturating_add(span.start.0.saturating_mul(UNIT)));
        self.dur.push(span.dur.0.saturating_mul(UNIT));
        self.cpu.push(span.cpu.map(|cpu| cpu.number() as i32));
        self.pid.push(span.pid.map(i64::from));
        let (arg, ret) = span.values();
        self.event.push(span.event());
        self.kind.push(kind);
        self.name.push(span.name.0);
        self.arg.push(known(arg));
        self.ret.push(known(ret));
        self.ipc.push(span.ipc.into());
        self.rpc.push(span.rpc);
    }

    fn values(
        self,
        trace: &Arc<Vec<ByteArray>>,
        kinds: Arc<Vec<ByteArray>>,
        texts: &Arc<Vec<ByteArray>>,
    ) -> Vec<Values> {
        vec![
            Values::words(trace.clone(), vec![0; self.start.len()]),
            Values::long(self.start),
            Values::long(self.dur),
            self.cpu.values(Data::Int),
            self.pid.values(Data::Long),
            Values::int(self.event),
            Values::words(kinds, self.kind),
            Values::words(texts.clone(), self.name),
            self.arg.values(Data::Long),
            self.ret.values(Data::Long),
            Values::int(self.ipc),
            Values::int(self.rpc),
        ]
    }
}
