// SPDX-License-Identifier: BSD-3-Clause
//! Events to text: the original's columns, one event a line, ordered by time.
//!
//! ```text
//! # ## VERSION: 3
//! # ## FORMAT: 5                                   of the raw trace; absent in the original's text
//! # ## EVENTS: ?                                   their number comes at the end
//! # [1] 2026-11-20_15:14:24.885828 cpu 02 flags 05 block 0
//! # TS DUR EVENT CPU PID RPC ARG0 RETVAL IPC NAME (t and dur multiples of 10ns)
//! -1 1 34 70 sleep                                 names: ts 1 event argument name
//! 2488582818 0 512 2  70 0  70 0 0 sleep.70 (200)  events: ts dur event cpu  pid rpc  arg ret ipc name (hex)
//! # ## UNSEEN: wakeups                             what the source cannot see, if it reports that; before the events
//! # ## MACHINE: {"name":"db","first_cpu":4,...}    one of several
//! # ## CPU: 2 2488582818 2593916933                the traced interval
//! # ## BOOT_ID: 6f1c1d0e-33c2-4f0c-a57c-2a4c5e7f9b10   the kernel's id of its run, if that is known
//! # ## MONOTONIC: 5533291000                       CLOCK_MONOTONIC at the minute, ns, if that is known
//! # ## LOST: 0
//! # ## QUALITY: a sentence
//! # ## EVENTS: 2                                   lines of names and events
//! ```
//!
//! A return value has the low 32 bits of the full value, signed; the original's has the low 16, unsigned.

use std::io::{self, Write};

use kutrace_format::capability::Unseen;

use super::digits::Line;
use super::fact::Fact;
use super::names::Names;
use super::what::What;
use super::{date, number, BlockLine, Event, Interval, Machine, Meta};
use crate::time::Time;

/// Number of bytes gathered before they are passed on.
const CHUNK: usize = 64 * 1024;

/// Writes events as text.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    line: Vec<u8>,
    /// The numbers of a line: kept, because a new one would be zeroed.
    numbers: Line,
    /// Number of lines of names and events.
    count: u64,
}

impl<W: Write> Writer<W> {
    /// A writer to `out`, which need not be buffered.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, line: Vec::with_capacity(CHUNK + 1024), numbers: Line::empty(), count: 0 }
    }

    /// The output.
    pub fn get(&self) -> &W {
        &self.out
    }

    /// Writes the lines that come before all events. `base` is the minute that times count from, in Unix seconds.
    ///
    /// # Errors
    /// Any error of the output, here and below.
    pub fn head(&mut self, format: u32, flags: u32, base: i64, blocks: &[BlockLine]) -> io::Result<()> {
        writeln!(self.line, "# ## VERSION: 3\n# ## FORMAT: {format}\n# ## EVENTS: ?")?;
        for block in blocks {
            let (seconds, part) = (block.ts.0.div_euclid(Time::SECOND.0), block.ts.0.rem_euclid(Time::SECOND.0) / 100);
            let day = date::utc(base.saturating_add(seconds));
            let (cpu, index) = (block.cpu.number(), block.index);
            writeln!(self.line, "# [1] {day}.{part:06} cpu {cpu:02x} flags {flags:02x} block {index}")?;
            self.flush_full()?;
        }
        writeln!(self.line, "# TS DUR EVENT CPU PID RPC ARG0 RETVAL IPC NAME (t and dur multiples of 10ns)")
    }

    /// Writes the capabilities that the source lacks; after the head.
    ///
    /// # Errors
    /// As [`Writer::head`].
    pub fn unseen(&mut self, unseen: Unseen) -> io::Result<()> {
        unseen.texts().try_for_each(|text| writeln!(self.line, "# ## UNSEEN: {text}"))
    }

    /// Writes the interval of each traced CPU; after the head, only its start is known.
    ///
    /// # Errors
    /// As [`Writer::head`].
    pub fn cpus(&mut self, intervals: &[Interval]) -> io::Result<()> {
        intervals.iter().try_for_each(|i| writeln!(self.line, "# ## CPU: {} {} {}", i.cpu, i.from, i.to))
    }

    /// Writes the machines, if there are several; after the head.
    ///
    /// # Errors
    /// As [`Writer::head`].
    pub fn machines(&mut self, machines: &[Machine]) -> io::Result<()> {
        machines.iter().try_for_each(|machine| {
            self.line.extend_from_slice(b"# ## MACHINE: ");
            serde_json::to_writer(&mut self.line, machine)?;
            self.line.push(b'\n');
            Ok(())
        })
    }

    /// Writes one event or fact.
    ///
    /// # Errors
    /// As [`Writer::head`].
    #[inline]
    pub fn event(&mut self, e: &Event, names: &Names) -> io::Result<()> {
        let (event, name) = (e.what.number(), names.text(e.name));
        self.count += 1;
        if let What::Fact(fact) = e.what {
            self.fact(e, fact, &fact.text(name));
            return self.flush_full();
        }
        let line = &mut self.numbers;
        line.clear();
        line.signed(e.ts.0);
        for field in [e.dur.0, i64::from(event), i64::from(e.cpu)] {
            line.put(b" ");
            line.signed(field);
        }
        line.put(b" ");
        for field in [e.pid.number(), e.rpc] {
            line.put(b" ");
            line.unsigned(field.into());
        }
        line.put(b" ");
        for field in [e.arg.into(), e.ret.into(), i64::from(e.ipc)] {
            line.put(b" ");
            line.signed(field);
        }
        line.put(b" ");
        self.line.extend_from_slice(line.text());
        self.line.extend_from_slice(name.as_bytes());
        if event == number::PROGRAM_VALUE {
            write!(self.line, "={}", e.value())?;
        }
        match [8, 4, 0].map(|shift| b"0123456789abcdef"[(event >> shift & 15) as usize]) {
            [a, b, c] if event < number::NUMBERS => self.line.extend_from_slice(&[b' ', b'(', a, b, c, b')', b'\n']),
            _ => writeln!(self.line, " ({:x})", event)?,
        }
        self.flush_full()
    }

    /// Passes on everything written.
    ///
    /// # Errors
    /// As [`Writer::head`].
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        self.out.flush()
    }

    /// Writes the lines that come after all events, and flushes.
    ///
    /// # Errors
    /// As [`Writer::head`].
    pub fn finish(mut self, meta: &Meta) -> io::Result<()> {
        writeln!(self.line, "# ## FLAGS: {}", meta.flags)?;
        self.cpus(&meta.intervals)?;
        if !meta.boot_id.is_empty() {
            writeln!(self.line, "# ## BOOT_ID: {}", meta.boot_id)?;
        }
        if let Some(ns) = meta.monotonic {
            writeln!(self.line, "# ## MONOTONIC: {ns}")?;
        }
        if !meta.recorder.is_empty() {
            writeln!(self.line, "# ## RECORDER: {}", meta.recorder)?;
        }
        writeln!(self.line, "# ## LOST: {}", meta.lost)?;
        for sentence in &meta.quality {
            writeln!(self.line, "# ## QUALITY: {sentence}")?;
        }
        for sentence in &meta.counted {
            writeln!(self.line, "# ## COUNTED: {sentence}")?;
        }
        writeln!(self.line, "# ## EVENTS: {}", self.count)?;
        self.out.write_all(&self.line)?;
        self.out.flush()
    }

    /// The line of a fact; its number carries the text's length in words of eight bytes, as in the original.
    fn fact(&mut self, e: &Event, fact: Fact, text: &str) {
        let words = (text.len().div_ceil(8) + 1).min(8) as i64;
        let mut line = Line::empty();
        for field in [e.ts.0, 1, i64::from(fact.number()) | words << 4, i64::from(e.arg)] {
            line.signed(field);
            line.put(b" ");
        }
        self.line.extend_from_slice(line.text());
        self.line.extend_from_slice(text.as_bytes());
        self.line.push(b'\n');
    }

    #[inline]
    fn flush_full(&mut self) -> io::Result<()> {
        if self.line.len() >= CHUNK {
            self.out.write_all(&self.line)?;
            self.line.clear();
        }
        Ok(())
    }
}
