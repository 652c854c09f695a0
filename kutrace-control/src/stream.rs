// SPDX-License-Identifier: BSD-3-Clause
//! A trace that is written while it is recorded, so that the disk limits its length and not the memory.
//!
//! The recorder hands over full blocks, which are written and given back. Sections follow each other as they come, so the
//! file reads as a trace up to its last whole block at any time, whatever becomes of this process (docs/format.md).
//!
//! Invariants: a block is given back after it was written; memory does not grow with the trace.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use anyhow::{Context, Result};
use kutrace_format::abi::block::{BYTES, WORDS};
use kutrace_format::abi::command::Info;
use kutrace_format::file::{moment_to_bytes, Header, Section, BLOCKS, FLAG_IPC, FLAG_LLC, MOMENT, NAMES, STOP};

use crate::device::Recorder;
use crate::dump::{self, copy_block};
use crate::names::symbols;
use crate::names::Names;
use crate::output::{IfExists, Output};
use crate::pool;
use crate::reading;
use crate::selection::{Finding, Recycling, SelectedBlock, Selection};
use crate::sys;

/// How often the recorder is asked for full blocks.
pub const PERIOD: Duration = Duration::from_millis(50);
/// Every how many of these the blocks of CPUs that fill them slowly are ended, and the moment is written.
const FLUSH: u32 = 5;
/// Blocks are ended that began this long ago: then no event is older than a second when it is written.
const AGE: Duration = Duration::from_millis(500);

/// Blocks in a section at most.
const BATCH: usize = 31;

/// Where a stream goes.
#[derive(Debug)]
pub enum Sink {
    /// A file, and how much is in it. What is zero at the end of a block takes no room on the disk.
    File(File, u64),
    /// Standard output, or whatever else cannot be moved about in.
    Pipe(io::Stdout),
}

impl Sink {
    /// Opens the place. A file has its name from the start.
    pub fn open(output: &Output) -> Result<Sink> {
        let Output::File { path, existing } = output else { return Ok(Sink::Pipe(io::stdout())) };
        let mut options = File::options();
        match existing {
            IfExists::Keep => options.write(true).create_new(true),
            IfExists::Replace => options.write(true).create(true).truncate(true),
        };
        Ok(Sink::File(options.open(path).with_context(|| path.display().to_string())?, 0))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::File(file, at) => {
                file.write_all_at(bytes, *at)?;
                *at += bytes.len() as u64;
                Ok(())
            }
            Sink::Pipe(out) => Ok(out.write_all(bytes)?),
        }
    }

    /// Writes a block, which is zero after its first `used` bytes.
    fn put_block(&mut self, block: &[u8], used: usize) -> Result<()> {
        match self {
            Sink::File(file, at) => {
                file.write_all_at(&block[..used], *at)?;
                *at += block.len() as u64;
                Ok(())
            }
            Sink::Pipe(out) => Ok(out.write_all(block)?),
        }
    }

    /// All that was put can be read.
    fn complete(&mut self) -> Result<()> {
        match self {
            Sink::File(file, at) => Ok(file.set_len(*at)?),
            Sink::Pipe(out) => Ok(out.flush()?),
        }
    }

    fn finish(mut self) -> Result<()> {
        self.complete()?;
        match self {
            Sink::File(file, _) => Ok(file.sync_all()?),
            Sink::Pipe(_) => Ok(()),
        }
    }
}

/// A stream on its way.
#[derive(Debug)]
pub struct Stream<P> {
    pool: P,
    header: Header,
    sink: Sink,
    /// The kernel's program counters so far.
    sampled: BTreeSet<u64>,
    /// Blocks written.
    blocks: u64,
    turn: u32,
}

impl<P: std::ops::Deref<Target = [AtomicU32]>> Stream<P> {
    /// Begins to write a trace that has just been started.
    pub fn begin<R: Recorder<Pool = P>>(
        recorder: &R,
        names: &Names,
        ids: [[u8; 16]; 2],
        mut sink: Sink,
    ) -> Result<Stream<P>> {
        let info = recorder.info()?;
        let pool = recorder.pool(info.blocks)?;
        let header = dump::header(&info, &Selection::default(), ids[0], ids[1]);
        let head = [dump::sealed_header(&header), dump::section(NAMES, &names.payload(), names.len())].concat();
        sink.put(&[head, reading::section(&recorder.left()?)].concat())?;
        sink.complete()?;
        Ok(Stream { pool, header, sink, sampled: BTreeSet::new(), blocks: 0, turn: 0 })
    }

    /// Writes what is full by now. To be called once in a [`PERIOD`].
    pub fn turn<R: Recorder<Pool = P>>(&mut self, recorder: &R) -> Result<()> {
        self.turn += 1;
        let flushes = self.turn.is_multiple_of(FLUSH);
        if flushes {
            let age = AGE.as_nanos() * u128::from(self.header.tsc_hz) / 1_000_000_000;
            recorder.flush(sys::tsc().saturating_sub(age as u64) >> self.header.shift)?;
        }
        loop {
            let full = recorder.full()?;
            let slots = full.index.iter().take(full.count as usize).map(|&index| index as usize);
            self.write(slots.filter_map(|index| self.selected(index)).collect())?;
            recorder.free(&full)?;
            if (full.count as usize) < full.index.len() {
                break;
            }
        }
        if flushes {
            self.sink.put(&dump::section(MOMENT, &moment_to_bytes(&sys::moment()), 1))?;
        }
        self.sink.complete()
    }

    /// Writes what is left in the recorder, which has stopped, and what is known now. How many blocks there are, and what
    /// is wrong with them.
    pub fn finish<R: Recorder<Pool = P>>(
        mut self,
        recorder: &R,
        mut names: Names,
        no_symbols: bool,
    ) -> Result<(Info, u64, Vec<Finding>)> {
        let info = recorder.info()?;
        self.pool = recorder.pool(info.blocks)?;
        let selection = Selection::of(&self.pool, Recycling::Oldest, u64::MAX);
        for some in selection.blocks.chunks(BATCH) {
            self.write(some.to_vec())?;
        }
        if !no_symbols {
            symbols::gather(&mut names, &self.sampled);
        }
        let Header { uuid, boot_id, .. } = self.header;
        let header = Header { blocks: self.blocks, ..dump::header(&info, &selection, uuid, boot_id) };
        self.sink.put(&dump::section(NAMES, &names.payload(), names.len()))?;
        self.sink.put(&reading::section(&recorder.left()?))?;
        self.sink.put(&recorder.programs()?)?;
        self.sink.put(&dump::section(STOP, &dump::sealed_header(&header), 1))?;
        self.sink.finish()?;
        Ok((info, header.blocks, selection.findings))
    }

    fn selected(&self, index: usize) -> Option<SelectedBlock> {
        let block = self.pool.get(index * WORDS..(index + 1) * WORDS)?;
        let found = pool::summary(block)?;
        let content = (found.content_bits / 8) as usize;
        (content <= BYTES).then_some(SelectedBlock { id: found.id, index, content, lost: found.lost })
    }

    fn write(&mut self, blocks: Vec<SelectedBlock>) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let (bytes, items) = ((blocks.len() * BYTES) as u64, blocks.len() as u64);
        self.sink.put(&Section { tag: BLOCKS, crc32: 0, bytes, items }.to_bytes())?;
        let mut copy = vec![0; BYTES];
        for choice in &blocks {
            anyhow::ensure!(copy_block(&self.pool, choice, &self.header, &mut copy), dump::STARTED_AGAIN);
            let counted = self.header.flags & (FLAG_IPC | FLAG_LLC) != 0;
            let used = if counted { BYTES } else { choice.content };
            self.sink.put_block(&copy, used)?;
        }
        self.blocks += items;
        self.sampled.extend(symbols::sampled(&self.pool, &Selection { blocks, findings: Vec::new() }));
        Ok(())
    }
}
