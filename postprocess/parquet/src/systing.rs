// SPDX-License-Identifier: BSD-3-Clause
//! systing's recording of the kernel, as the text that perf would have written for it, so that the rules for
//! [tracepoints](postprocess::source::tracepoint) apply to it, too.
//!
//! systing writes a folder of tables: `sched_slice` for each thread's time on a CPU, `irq_slice` and `softirq_slice`
//! for interrupts, `wakeup_new` and `process_exit` for threads that start and end, `thread` and `process` for their
//! identity. Its other tables are not read: `thread_state` has no waker, and nothing records the return value of a
//! system call.
//!
//! Columns are selected by name, so tables of older and newer versions look the same here. The rows of a table are not
//! ordered by time, so all are kept: 48 bytes for each start with its end, and half as much again while they are
//! sorted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};
use parquet::basic::Type;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use postprocess::event::CPUS_MAX;
use postprocess::readable::count;
use postprocess::source::tracepoint::convert::SYSTING;
use postprocess::source::tracepoint::line::{one_word, state, NANOSECONDS_MAX};

use crate::read::optional;

/// The kernel's numbers of clocks.
const REALTIME: i64 = 0;
const BOOTTIME: i64 = 7;
/// Number of lines written at a time.
const LINES: usize = 1000;

/// Starts and ends, in their order at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    IrqEnd,
    SoftirqEnd,
    /// A thread ends: it will soon leave its CPU for the last time.
    Exit,
    /// A thread leaves its CPU in a state, or without a known successor.
    Leave,
    /// A thread gets a CPU.
    Run,
    /// A new thread starts.
    New,
    Softirq,
    Irq,
}

/// A start or an end.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: i64,
    what: What,
    cpu: u32,
    /// Number of the thread in systing's tables, or of the interrupt.
    of: i64,
    /// State of a thread.
    state: u16,
}

/// A thread, and its process.
#[derive(Clone, Debug, Default)]
struct Thread {
    tid: u32,
    name: String,
    process: Option<u32>,
}

/// A recording, read from its tables.
#[derive(Debug, Default)]
pub struct Recording {
    moments: Vec<Moment>,
    threads: BTreeMap<i64, Thread>,
    devices: BTreeMap<i64, String>,
    kernel: String,
    /// Nanoseconds to add to its times to count from 1970.
    since_1970: i64,
    /// Number of invalid rows.
    skipped: u64,
    /// Missing or damaged parts.
    pub damage: Vec<String>,
}

impl Recording {
    /// Reads the tables of `folder`. Unreadable parts of any table except `sched_slice` are reported and skipped.
    ///
    /// # Errors
    /// If `sched_slice` is missing or cannot be read.
    pub fn read(folder: &Path) -> Result<Recording> {
        let mut all = Recording::default();
        all.names(folder);
        table(folder, "sched_slice", |rows| all.slices(rows)).with_context(|| folder.display().to_string())?;
        for (name, begin, end, number) in
            [("irq_slice", What::Irq, What::IrqEnd, "irq"), ("softirq_slice", What::Softirq, What::SoftirqEnd, "vec")]
        {
            all.rest(folder, name, |all, rows| all.interrupts(rows, begin, end, number));
        }
        for (name, what) in [("wakeup_new", What::New), ("process_exit", What::Exit)] {
            all.rest(folder, name, |all, rows| all.points(rows, what));
        }
        all.rest(folder, "clock_snapshot", Recording::clocks);
        all.rest(folder, "sysinfo", |all, rows| {
            all.kernel = rows.text("release")?.into_iter().flatten().next().unwrap_or_default();
            Ok(())
        });
        if all.skipped > 0 {
            all.damage.push(format!("{}; skipped", count(all.skipped, "row is invalid", "rows are invalid")));
        }
        all.moments.sort_by_key(|moment| (moment.at, moment.what));
        Ok(all)
    }

    /// Returns the text that perf would have written for it.
    pub fn into_text(self) -> impl Read {
        Text {
            recording: self,
            next: 0,
            cpus: BTreeMap::new(),
            ends: BTreeSet::new(),
            text: format!("{SYSTING}\n"),
            read: 0,
        }
    }

    /// Takes a table that the others can do without.
    fn rest(&mut self, folder: &Path, name: &str, mut take: impl FnMut(&mut Self, &Rows) -> Result<()>) {
        if folder.join(format!("{name}.parquet")).exists() {
            if let Err(error) = table(folder, name, |rows| take(self, rows)) {
                self.damage.push(format!("{error:#}; skipped from there on"));
            }
        }
    }

    fn names(&mut self, folder: &Path) {
        let mut processes = BTreeMap::new();
        self.rest(folder, "process", |_, rows| {
            for (process, pid) in rows.number("upid")?.into_iter().zip(rows.number("pid")?) {
                processes.extend(process.zip(pid.and_then(|pid| u32::try_from(pid).ok())));
            }
            Ok(())
        });
        self.rest(folder, "thread", |all, rows| {
            let (numbers, tids) = (rows.number("utid")?, rows.number("tid")?);
            let (names, of) = (rows.text("name")?, rows.number("upid")?);
            for (((number, tid), name), process) in numbers.into_iter().zip(tids).zip(names).zip(of) {
                let tid = tid.and_then(|tid| u32::try_from(tid).ok());
                let thread = number.zip(tid).map(|(number, tid)| {
                    let process = process.and_then(|process| processes.get(&process).copied());
                    (number, Thread { tid, name: one_word(&name.unwrap_or_default()), process })
                });
                all.threads.extend(thread);
            }
            Ok(())
        });
    }

    fn slices(&mut self, rows: &Rows) -> Result<()> {
        let (of, states) = (rows.number("utid")?, rows.number("end_state")?);
        for ((place, of), state) in rows.places(rows.number("dur")?)?.into_iter().zip(of).zip(states) {
            let (Some(place), Some(of)) = (place, of.filter(|of| self.threads.contains_key(of))) else {
                self.skipped += 1;
                continue;
            };
            if place.from == place.to {
                continue;
            }
            let state = state.unwrap_or(0) as u16;
            self.moments.push(Moment { at: place.from, what: What::Run, cpu: place.cpu, of, state });
            self.moments.push(Moment { at: place.to, what: What::Leave, cpu: place.cpu, of, state });
        }
        Ok(())
    }

    /// Takes interrupts; one without a length had not ended.
    fn interrupts(&mut self, rows: &Rows, begin: What, end: What, number: &str) -> Result<()> {
        let numbers = rows.number(number)?;
        let names = if begin == What::Irq { rows.text("name")? } else { vec![None; numbers.len()] };
        for ((place, of), name) in rows.places(rows.number("dur")?)?.into_iter().zip(numbers).zip(names) {
            let (Some(place), Some(of)) = (place, of) else {
                self.skipped += 1;
                continue;
            };
            self.devices.extend(name.map(|name| (of, one_word(&name))));
            self.moments.push(Moment { at: place.from, what: begin, cpu: place.cpu, of, state: 0 });
            if place.to > place.from {
                self.moments.push(Moment { at: place.to, what: end, cpu: place.cpu, of, state: 0 });
            }
        }
        Ok(())
    }

    fn points(&mut self, rows: &Rows, what: What) -> Result<()> {
        let of = rows.number("utid")?;
        for (place, of) in rows.places(vec![Some(0); of.len()])?.into_iter().zip(of) {
            match (place, of.filter(|of| self.threads.contains_key(of))) {
                (Some(Place { from: at, cpu, .. }), Some(of)) => {
                    self.moments.push(Moment { at, what, cpu, of, state: 0 });
                }
                _ => self.skipped += 1,
            }
        }
        Ok(())
    }

    fn clocks(&mut self, rows: &Rows) -> Result<()> {
        let clocks = rows.number("clock_id")?.into_iter().zip(rows.number("timestamp_ns")?);
        let clocks: BTreeMap<i64, i64> = clocks.filter_map(|(clock, at)| clock.zip(at)).collect();
        if let (Some(real), Some(boot)) = (clocks.get(&REALTIME), clocks.get(&BOOTTIME)) {
            self.since_1970 = real.saturating_sub(*boot);
        }
        Ok(())
    }
}

/// A range of time on a CPU.
#[derive(Clone, Copy)]
struct Place {
    from: i64,
    to: i64,
    cpu: u32,
}

/// Some rows of a table.
struct Rows<'a>(&'a dyn RowGroupReader);

impl Rows<'_> {
    /// Returns the number of the column with this name, and its type.
    fn column(&self, name: &str) -> Result<(usize, Type)> {
        let columns = self.0.metadata().columns();
        let found = columns.iter().position(|column| column.column_path().string() == name);
        let n = found.with_context(|| format!("no column {name}"))?;
        ensure!(columns[n].column_descr().max_rep_level() == 0, "column {name} has lists");
        Ok((n, columns[n].column_type()))
    }

    fn number(&self, name: &str) -> Result<Vec<Option<i64>>> {
        match self.column(name)? {
            (n, Type::INT32) => Ok(optional::<Int32Type>(self.0, n)?.map(|value| value.map(i64::from)).collect()),
            (n, Type::INT64) => Ok(optional::<Int64Type>(self.0, n)?.collect()),
            (_, other) => bail!("column {name} is {other}"),
        }
    }

    fn text(&self, name: &str) -> Result<Vec<Option<String>>> {
        let (n, kind) = self.column(name)?;
        ensure!(kind == Type::BYTE_ARRAY, "column {name} is {kind}");
        let text = |text: ByteArray| String::from_utf8_lossy(text.data()).into_owned();
        Ok(optional::<ByteArrayType>(self.0, n)?.map(|value| value.map(text)).collect())
    }

    /// Returns the places of rows of these lengths; `None` for invalid ones.
    fn places(&self, lengths: Vec<Option<i64>>) -> Result<Vec<Option<Place>>> {
        let (from, cpus) = (self.number("ts")?, self.number("cpu")?);
        let place = |((from, length), cpu): ((Option<i64>, Option<i64>), Option<i64>)| {
            let (from, cpu) = (from?, u32::try_from(cpu?).ok().filter(|cpu| *cpu < CPUS_MAX)?);
            let to = from.checked_add(length.filter(|length| *length >= 0)?)?;
            (from >= 0 && to.unsigned_abs() < NANOSECONDS_MAX).then_some(Place { from, to, cpu })
        };
        Ok(from.into_iter().zip(lengths).zip(cpus).map(place).collect())
    }
}

/// Passes on all rows of a table, one group at a time.
fn table(folder: &Path, name: &str, mut take: impl FnMut(&Rows) -> Result<()>) -> Result<()> {
    let file = format!("{name}.parquet");
    let path = folder.join(&file);
    let all = || -> Result<()> {
        let reader = SerializedFileReader::new(File::open(&path)?)?;
        (0..reader.num_row_groups()).try_for_each(|n| take(&Rows(&*reader.get_row_group(n)?)))
    };
    // The `parquet` crate panics on some damaged bytes.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let read = panic::catch_unwind(AssertUnwindSafe(all));
    panic::set_hook(hook);
    read.unwrap_or_else(|_| bail!("damaged")).with_context(|| file)
}

/// State of a CPU at the current place in the text.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    running: Option<i64>,
    /// Time at which that thread left it, and its state.
    left: Option<(i64, char)>,
}

/// Text of a recording, a few lines at a time.
struct Text {
    recording: Recording,
    /// Number of moments written.
    next: usize,
    cpus: BTreeMap<u32, Cpu>,
    /// Threads that end.
    ends: BTreeSet<i64>,
    text: String,
    /// Number of bytes of it that were read.
    read: usize,
}

impl Text {
    /// Writes the lines of a moment.
    fn moment(&mut self, moment: Moment) -> std::fmt::Result {
        let Text { recording, cpus, ends, text, .. } = self;
        let Moment { at, what, cpu: number, of, state: bits } = moment;
        let unknown = Thread::default();
        let thread = |of: &i64| recording.threads.get(of).unwrap_or(&unknown);
        let cpu = cpus.entry(number).or_default();
        let lost = what == What::Run && cpu.running.is_some() && cpu.left.is_none_or(|(left, _)| left != at);
        if lost {
            writeln!(text, "CPU:{number} [EVENTS DROPPED]")?;
            *cpu = Cpu::default();
        }
        match what {
            What::Exit => {
                ends.insert(of);
                return Ok(());
            }
            What::Leave => {
                let ends = ends.remove(&of);
                cpu.left = Some((at, if ends { 'X' } else { state(i64::from(bits)) }));
                return Ok(());
            }
            _ => {}
        }
        match cpu.running.as_ref().map(thread) {
            Some(Thread { tid, name, process }) => write!(text, "{name} {}/{tid}", process.unwrap_or(*tid))?,
            None => write!(text, ":-1    -1")?,
        }
        let time = i128::from(at) + i128::from(recording.since_1970);
        let (seconds, part) = (time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000));
        write!(text, " [{number:03}] {seconds}.{part:09}: ")?;
        match what {
            What::Run => {
                // Before the first thread on a CPU, it is unknown which thread ran there.
                let (before, state) = (cpu.running.unwrap_or(of), cpu.left.map_or('R', |(_, state)| state));
                let (old, new) = (thread(&before), thread(&of));
                write!(text, "sched:sched_switch: prev_comm={} prev_pid={} prev_state={state}", old.name, old.tid)?;
                writeln!(text, " ==> next_comm={} next_pid={}", new.name, new.tid)?;
                *cpu = Cpu { running: Some(of), left: None };
                Ok(())
            }
            What::New => {
                let Thread { tid, name, .. } = thread(&of);
                writeln!(text, "sched:sched_wakeup_new: comm={name} pid={tid}")
            }
            What::Irq => {
                let name = recording.devices.get(&of).map_or("", String::as_str);
                writeln!(text, "irq:irq_handler_entry: irq={of} name={name}")
            }
            What::IrqEnd => writeln!(text, "irq:irq_handler_exit: irq={of} ret=handled"),
            What::Softirq => writeln!(text, "irq:softirq_entry: vec={of}"),
            _ => writeln!(text, "irq:softirq_exit: vec={of}"),
        }
    }

    /// Writes the next lines, if any remain.
    fn more(&mut self) -> std::fmt::Result {
        (self.read, self.text) = (0, String::new());
        if self.next == 0 {
            writeln!(self.text, "# ========")?;
            if !self.recording.kernel.is_empty() {
                writeln!(self.text, "# os release : {}", self.recording.kernel)?;
            }
        }
        for _ in 0..LINES {
            let Some(moment) = self.recording.moments.get(self.next).copied() else { break };
            self.next += 1;
            self.moment(moment)?;
        }
        Ok(())
    }
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.text.len() && self.next < self.recording.moments.len() {
            self.more().map_err(io::Error::other)?;
        }
        let read = (&self.text.as_bytes()[self.read..]).read(buffer)?;
        self.read += read;
        Ok(read)
    }
}
