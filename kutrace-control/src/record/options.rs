// SPDX-License-Identifier: BSD-3-Clause
//! Command line of `record`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use kutrace_cli::Failure;
use kutrace_format::abi::command::{Ports, IPC, LLC, WRAP};
use kutrace_format::abi::programs::Quota;

use super::Plan;
use crate::device::PATH;
use crate::output::{IfExists, Output};
use crate::ports;
use crate::quantity::{blocks, duration, file_size, quota};
use crate::session::Mode;
use crate::tracepoint::Wanted;

/// Default number of files in a ring.
const FILES: usize = 10;

/// Hint where the module is needed.
const MODULE: &str = "as root: insmod kutrace.ko, or modprobe kutrace";

/// Text after the help.
pub const AFTER_RECORD: &str = "\
Examples:
  kutrace_control record -d 500ms -b 256M -o t.trace
  kutrace_control record --wrap -o t.trace -- ./server --port 80";

/// Options of `record`.
#[derive(Debug, Args)]
pub struct Record {
    /// Stop after this time: 2, 500ms, 1m; COMMAND runs on
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Memory for the trace: 64M, 2G [default: the module's]
    #[arg(short, long, value_name = "SIZE", value_parser = blocks)]
    buffer: Option<u32>,
    /// Memory for marks: of each program, of all [default: 4M,64M]
    #[arg(long, hide = true, value_name = "EACH,ALL", value_parser = quota)]
    marks_memory: Option<Quota>,
    /// Count instructions per cycle (experimental)
    #[arg(long)]
    ipc: bool,
    /// Count misses of the last-level cache (experimental)
    #[arg(long)]
    llc: bool,
    /// Record TCP and UDP packets too: all, or ports 80,6379
    #[arg(long, value_name = "PORTS", value_parser = ports::parse)]
    pub packets: Option<Ports>,
    /// Additional events to record.
    #[command(flatten)]
    pub wanted: Wanted,
    /// When the buffer is full, keep the newest events
    #[arg(long)]
    wrap: bool,
    /// Write while recording; --rotate SIZE --keep N: a ring
    #[arg(long, conflicts_with = "wrap")]
    stream: bool,
    /// With --stream: begin a new file at this size
    #[arg(long, hide = true, value_name = "SIZE", requires = "stream", value_parser = file_size)]
    rotate: Option<u64>,
    /// Record as the background process of `go --stream`.
    #[arg(long, hide = true, requires = "stream")]
    pub background: bool,
    /// With --rotate: number of files kept, the newest [default: 10]
    #[arg(long, hide = true, value_name = "N", requires = "rotate", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Output, or `-` [default: ku_DATE_TIME_host_pid.trace]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(short, long)]
    force: bool,
    /// Omit the names of functions
    #[arg(long)]
    pub no_symbols: bool,
    /// Record by module or tracefs [default: module, if loaded]
    #[arg(long, hide = true, hide_possible_values = true, value_name = "SOURCE")]
    source: Option<Source>,
    /// Command to run and record; its exit status is passed on
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    Module,
    // The kernel's own tracepoints, without a module.
    Tracefs,
}

impl Record {
    /// True if tracefs is to record: it was chosen, or there is no module.
    ///
    /// # Errors
    /// An option needs the module.
    pub fn is_by_tracefs(&self) -> Result<bool> {
        if !self.source.map_or_else(|| !Path::new(PATH).exists(), |source| source == Source::Tracefs) {
            return Ok(false);
        }
        let needed = [
            (self.ipc, "--ipc"),
            (self.llc, "--llc"),
            (self.packets.is_some(), "--packets"),
            (!self.wanted.arguments().is_empty(), "additional events"),
            (self.marks_memory.is_some(), "--marks-memory"),
            (self.rotate.is_some(), "--rotate"),
            (self.background, "go --stream"),
        ];
        match needed.into_iter().find(|(is_asked, _)| *is_asked) {
            Some((_, option)) => Err(Failure::new(format_args!("{option}: tracefs has none of it"), MODULE).into()),
            None => Ok(true),
        }
    }

    /// The plan that these options describe.
    pub fn plan(self) -> Plan {
        let flags = [(self.ipc, IPC), (self.llc, LLC), (self.wrap, WRAP)];
        Plan {
            mode: Mode(flags.iter().filter(|(asked, _)| *asked).map(|(_, flag)| flag).sum()),
            stream: self.stream,
            background: self.background,
            rotate: self.rotate.map(|size| (size, self.keep.map_or(FILES, |keep| keep as usize))),
            blocks: self.buffer.unwrap_or_default(),
            marks: self.marks_memory,
            duration: self.duration,
            output: Output::new(self.output, IfExists::of(self.force)),
            command: self.command,
        }
    }
}
