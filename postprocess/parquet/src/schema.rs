// SPDX-License-Identifier: BSD-3-Clause
//! The tables, version [`VERSION`]: docs/data.md describes each column. A reader refuses tables with other columns.

/// Version of all tables; it changes when a table or column is added or changes its meaning.
pub const VERSION: i32 = 6;

/// A table: a folder of this name in a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Activity of each CPU.
    Spans,
    /// Waits of threads.
    Waits,
    /// Wakeups and interrupts from CPU to CPU.
    Arcs,
    /// Marks, samples, locks, and everything else that has a time.
    Points,
}

impl Table {
    /// All tables that have rows of spans.
    pub const ALL: [Table; 4] = [Table::Spans, Table::Waits, Table::Arcs, Table::Points];

    /// Returns the name of its folder.
    pub const fn folder(self) -> &'static str {
        match self {
            Table::Spans => "spans",
            Table::Waits => "waits",
            Table::Arcs => "arcs",
            Table::Points => "points",
        }
    }
}

/// Folder of the table of traces, which has one row for each.
pub const TRACES: &str = "traces";
/// Folder of the table of threads.
pub const THREADS: &str = "threads";
/// Folder of the table of CPUs.
pub const CPUS: &str = "cpus";
/// Folder of the table of durations, with the number of times that each occurred.
pub const DURATIONS: &str = "durations";

/// Folder of the table of requests.
pub const REQUESTS: &str = "requests";
/// Folder of the table of the causes of their time.
pub const CAUSES: &str = "causes";

/// Columns of [`Table`].
pub const ROWS: &str = "message rows {
    required binary trace (STRING);
    required int64 start_ns;
    required int64 dur_ns;
    optional int32 cpu;
    optional int64 pid;
    required int32 event;
    required binary kind (STRING);
    required binary name (STRING);
    optional int64 arg;
    optional int64 ret;
    required int32 ipc;
    required int32 rpc;
}";

/// Columns of [`TRACES`]. `files` has bytes and checksum of the trace's file in each [`Table`].
pub const TRACE: &str = "message trace {
    required binary trace (STRING);
    required int32 schema_version;
    required binary host (STRING);
    required binary kernel (STRING);
    required binary cpu_model (STRING);
    required binary title (STRING);
    required int64 base_ns;
    required int64 start_ns;
    required int64 end_ns;
    required int32 cpus;
    required int64 rows;
    required int64 lost;
    required binary quality (STRING);
    required binary unseen (STRING);
    required binary meta (STRING);
    required binary files (STRING);
    optional int64 monotonic_base_ns;
    required binary boot_id (STRING);
    required binary source (STRING);
    required int64 row_crc32;
}";

/// A value in the row of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A 32-bit number.
    Int(i32),
    /// A 64-bit number.
    Long(i64),
    /// A 64-bit number, or none.
    Maybe(Option<i64>),
}

/// Returns the checksum of the row of a trace, which is the value of its last column.
pub fn checksum(row: &[Cell]) -> i64 {
    crc32fast::hash(format!("{row:?}").as_bytes()).into()
}

/// Columns of [`THREADS`].
pub const THREAD: &str = "message thread {
    required binary trace (STRING);
    required int64 pid;
    required int64 tgid;
    required binary name (STRING);
    optional binary cgroup (STRING);
}";

/// Columns of [`CPUS`]: the sums of a CPU add up to the time from `start_ns` to `end_ns`.
pub const CPU: &str = "message cpu {
    required binary trace (STRING);
    required int32 cpu;
    required binary machine (STRING);
    required int64 start_ns;
    required int64 end_ns;
    required int64 busy_ns;
    required int64 idle_ns;
    required int64 stalled_ns;
    required int64 offline_ns;
    required int64 lost_ns;
}";

/// Columns of [`DURATIONS`]. `shared` is 1 if the thread waited in that time for a CPU that others had.
pub const DURATION: &str = "message duration {
    required binary trace (STRING);
    required binary kind (STRING);
    required binary name (STRING);
    optional int32 shared;
    required int64 dur_ns;
    required int64 times;
}";

/// Columns of [`REQUESTS`]. `request` is a number within the trace.
pub const REQUEST: &str = "message request {
    required binary trace (STRING);
    required int64 request;
    required binary what (STRING);
    required int64 pid;
    required int64 start_ns;
    required int64 dur_ns;
}";

/// Columns of [`CAUSES`]: those of a request add up to its `dur_ns`, which is `request_ns` here.
pub const CAUSE: &str = "message cause {
    required binary trace (STRING);
    required int64 request;
    required binary kind (STRING);
    required binary cause (STRING);
    required int64 dur_ns;
    required int64 parts;
    required int64 request_ns;
}";
