// SPDX-License-Identifier: BSD-3-Clause
//! A recording in trace-cmd's format: the kernel's own pages of its tracepoints, with the description of each
//! tracepoint.
//!
//! [`file`](self::file) finds the parts of the file, [`format`](self::format) reads the descriptions, [`page`] the
//! pages, and [`record`] makes lines of [`tracepoint`](super::tracepoint) of the records, which follow the same rules as
//! lines of text. Which tracepoints occur is known before the first event.
//!
//! Invariant: no content of a page is an error; invalid content is counted.

mod file;
mod format;
mod page;
mod record;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use kutrace_format::capability::Unseen;

use super::tracepoint::convert::Converter;
use super::tracepoint::line::{Line, NANOSECONDS_MAX};
use crate::event::names::Names;
use crate::event::{Event, Interval, Meta};
use crate::id::CpuId;
use crate::merge::Merge;
use crate::raw::damage::NotATrace;
use crate::raw::decode::Counts;
use crate::raw::trace::{within, Decode, Head, Trace};
use crate::readable::count;
use crate::time::Time;
use file::File;
pub use file::{
    BUFFER, CLOCK, CMDLINES, CPUCOUNT, CPUSTAT, DATE, DONE, EVENT_FORMATS, FTRACE_EVENTS, HEADER_INFO, KALLSYMS,
    PRINTK, PROCESSES, UNAME, WRAPPED,
};
use page::Pages;
pub use page::COMMIT;

/// The first bytes of such a file.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Seconds of a minute, in ns.
const MINUTE: u64 = 60_000_000_000;

/// A recording, opened but not decoded.
#[derive(Debug)]
pub struct Ftrace<'a> {
    file: Arc<File<'a>>,
    /// Only this CPU, in this range of time.
    only: Option<(CpuId, (Time, Time))>,
    /// Numbers of the tracepoints that occur.
    occur: Arc<Vec<u16>>,
    /// First moment of each CPU, and the last of all, of the recording's clock.
    begins: BTreeMap<u32, u64>,
    end: u64,
    /// The minute that times count from, in Unix seconds.
    base: i64,
}

/// Opens the bytes of a recording.
///
/// # Errors
/// If the file has no pages that can be read.
pub fn parse(bytes: &[u8]) -> Result<Ftrace<'_>, NotATrace> {
    let file = File::read(bytes).map_err(NotATrace::Ftrace)?;
    let (mut occurs, mut begins, mut end) = (vec![false; 1 << 16], BTreeMap::new(), 0);
    for pages in file.pages() {
        let cpu = pages.cpu;
        for part in pages {
            let begin = begins.entry(cpu).or_insert(part.at);
            (*begin, end) = (part.at.min(*begin), part.at.max(end));
            part.contents.and_then(format::id).into_iter().for_each(|id| occurs[usize::from(id)] = true);
        }
    }
    let begin = begins.values().min().copied().unwrap_or_default();
    let occur = (0..=u16::MAX).filter(|id| occurs[usize::from(*id)]).collect();
    let base = file.time_of_day(begin) / MINUTE * 60;
    Ok(Ftrace { file: Arc::new(file), only: None, occur: Arc::new(occur), begins, end, base: base as i64 })
}

impl Ftrace<'_> {
    /// A time of the recording's clock since the base.
    fn units(&self, at: u64) -> Time {
        Time((self.file.time_of_day(at) / 10) as i64) - Time(self.base * Time::SECOND.0)
    }

    /// The time of each CPU: from its first event on, up to the last of all.
    fn intervals(&self) -> Vec<Interval> {
        let to = self.units(self.end);
        let of = |(cpu, begin): (&u32, &u64)| Interval { cpu: CpuId::new(*cpu), from: self.units(*begin), to };
        self.begins.iter().map(of).collect()
    }

    /// A converter that knows which tracepoints occur.
    fn converter(&self, names: &mut Names) -> Converter {
        let mut converter = Converter::new(names);
        converter.recorder = Some("ftrace");
        for line in self.file.head() {
            converter.other(&line, names);
        }
        for format in self.occur.iter().filter_map(|id| self.file.formats.get(*id)) {
            converter.expect(&format.name, format.field("vector").is_some());
        }
        converter
    }

    /// The pages that are decoded.
    fn pages(&self) -> Vec<Pages<'_>> {
        let Some((cpu, range)) = self.only else { return self.file.pages().collect() };
        let units = |at: u64| self.units(at);
        let those = self.file.pages().filter(|pages| pages.cpu == cpu.number());
        those.map(|pages| pages.only(within(pages.begins().map(units), range))).collect()
    }
}

impl Trace for Ftrace<'_> {
    fn head(&self) -> Head {
        let Meta { format, flags, unseen, .. } = self.converter(&mut Names::default()).meta();
        Head { format, flags, unseen: Unseen(unseen), base: self.base, blocks: Vec::new() }
    }

    fn decoder<'t>(&'t self, names: &mut Names) -> Box<dyn Decode + 't> {
        Box::new(Decoder {
            file: &self.file,
            intervals: if self.only.is_none() { self.intervals() } else { Vec::new() },
            merge: Merge::new(self.pages()),
            processes: self.file.processes.clone(),
            converter: self.converter(names),
            ready: VecDeque::new(),
            events: 0,
            unread: 0,
        })
    }

    fn part<'t>(&'t self, cpu: CpuId, range: (Time, Time)) -> Box<dyn Trace + 't> {
        let (file, occur, begins) = (Arc::clone(&self.file), Arc::clone(&self.occur), self.begins.clone());
        Box::new(Ftrace { file, only: Some((cpu, range)), occur, begins, ..*self })
    }
}

/// A decoder of a recording.
struct Decoder<'t> {
    file: &'t File<'t>,
    intervals: Vec<Interval>,
    merge: Merge<Pages<'t>>,
    /// Processes of threads so far.
    processes: HashMap<u32, u32>,
    converter: Converter,
    ready: VecDeque<Event>,
    /// Number of events returned.
    events: u64,
    /// Number of records that made no sense.
    unread: u64,
}

impl Decode for Decoder<'_> {
    fn next(&mut self, names: &mut Names) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.events += u64::from(event.what.is_event());
                return Some(event);
            }
            let (stream, part) = self.merge.next()?;
            let cpu = self.merge.streams()[stream].cpu;
            let taken = match part.contents {
                Some(record) => self.record(part.at, cpu, record, names),
                // What was replaced on purpose, before all pages.
                None if self.file.wraps && self.merge.streams()[stream].is_first() => {
                    self.converter.overwritten = true;
                    Some(())
                }
                None => self.converter.other(&format!("CPU:{cpu} [LOST {} EVENTS]", part.lost), names),
            };
            self.unread += u64::from(taken.is_none());
            self.ready.extend(self.converter.events.drain(..));
        }
    }

    fn counts(&self) -> Counts {
        Counts { events: self.events, ..Counts::default() }
    }

    fn meta(&self) -> Meta {
        let mut meta = Meta { intervals: self.intervals.clone(), ..self.converter.meta() };
        meta.quality.extend(self.file.quality.iter().cloned());
        let damaged = self.merge.streams().iter().map(|pages| pages.damaged).sum();
        for (number, one, many) in [
            (damaged, "page is damaged: the rest of it is missing", "pages are damaged: the rest of them is missing"),
            (self.unread, "event could not be read", "events could not be read"),
        ] {
            meta.quality.extend((number > 0).then(|| count(number, one, many)));
        }
        meta
    }
}

impl Decoder<'_> {
    /// Takes a record of a CPU; `None` if it is invalid.
    fn record(&mut self, at: u64, cpu: u32, record: &[u8], names: &mut Names) -> Option<()> {
        let format = self.file.formats.get(format::id(record)?)?;
        let pid = u32::try_from(format.number(record, "common_pid")?).ok()?;
        let fields = record::fields(format, record)?;
        let at = self.file.nanoseconds(at).filter(|at| *at < NANOSECONDS_MAX)?;
        if let Some((child, is_thread)) = record::born(format, record) {
            let process = if is_thread { self.processes.get(&pid).copied().unwrap_or(pid) } else { child };
            self.processes.insert(child, process);
        }
        let line = Line {
            comm: self.file.threads.get(&pid).map_or("", String::as_str),
            pid: Some(pid),
            process: self.processes.get(&pid).copied(),
            cpu,
            time: Time((at / 10) as i64),
            decimals: 9,
            event: record::event(format),
            fields: &fields,
            perf: false,
        };
        self.converter.line(&line, names)
    }
}
