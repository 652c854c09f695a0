// SPDX-License-Identifier: BSD-3-Clause
//! A trace that is written while it is recorded, so that its length is limited by the disk, not by memory.
//!
//! The recorder hands over full blocks, which are written and given back. Sections are written in order of arrival, so
//! the file can be read as a trace up to its last complete block at any time, even if this process dies
//! (docs/format.md).
//!
//! A ring of files is cut at one moment: every CPU ends its block then. A block that began before the moment is in the
//! older file, any other block in the newer one. Each file is a trace of its own, whose CPUs count their blocks and
//! losses from 0.
//!
//! A CPU keeps a block that it has ended while it runs one thread that makes no call, and while it is offline. The
//! block is then written without being handed over: otherwise it would be missing on the disk, and no file could be
//! cut, for as long as this lasts.
//!
//! Invariants: a block is given back after it was written, and is in exactly one file; memory does not grow with the
//! trace.

mod kept;
pub mod sink;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU32;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use kutrace_cli::say;
use kutrace_format::abi::block::{BYTES, HEADER_WORDS, WORDS};
use kutrace_format::abi::command::{Blocks, Info, Moment};
use kutrace_format::file::{
    moment_to_bytes, Header, Section, BLOCKS, FLAG_CONTINUED, FLAG_CONTINUES, FLAG_IPC, FLAG_LLC, MOMENT, NAMES, STOP,
};

use crate::areas::Areas;
use crate::device::{BlocksEnd, Recorder};
use crate::dump::{self, copy_block_from, Base};
use crate::names::symbols;
use crate::names::Names;
use crate::output::Output;
use crate::pool;
use crate::reading;
use crate::selection::{Recycling, SelectedBlock, Selection};
use crate::sys;
use kept::Kept;
pub use sink::{Ring, Sink};

/// Interval between requests for full blocks.
pub const PERIOD: Duration = Duration::from_millis(50);
/// Number of periods after which the blocks of CPUs that fill them slowly are ended, and the moment is written.
const FLUSH: u32 = 5;
/// Age at which a block is ended: no event is older than a second when it is written.
const AGE: Duration = Duration::from_millis(500);

/// Number of turns without requests to the CPUs after one did not respond.
const PAUSE: u32 = 20;

/// Maximum number of blocks in a section.
const BATCH: usize = 31;
/// Maximum number of sampled addresses in a file: addresses beyond it are not named.
const SAMPLED: usize = 1 << 20;

/// A stream that is being written.
#[derive(Debug)]
pub struct Stream<P> {
    pool: P,
    part: Part,
    /// The ring, if there is more than one file.
    ring: Option<Ring>,
    /// The moment at which the next file begins, once known, and the kernel's counts at that moment.
    cut: Option<(Moment, Vec<u8>)>,
    /// Blocks that were handed over and belong to the next file.
    aside: Vec<u32>,
    /// Blocks that CPUs keep.
    kept: Kept,
    /// Records of programs in their own memory, and the sections of these that also start the next file.
    areas: Areas,
    sections: Vec<u8>,
    /// Number of the last block of each CPU, and the CPU's losses at the end of that block.
    last: BTreeMap<u32, (u64, u64)>,
    /// The end of the previous file, written in a thread: recording must not wait for the disk.
    ending: Option<JoinHandle<Result<()>>>,
    /// Number of blocks written to all files.
    blocks: u64,
    turn: u32,
    /// Number of turns until the CPUs get the next request.
    pause: u32,
    /// Time before which everything is written, in ns of the monotonic clock.
    written: u64,
}

/// A file that is being written.
#[derive(Debug)]
struct Part {
    header: Header,
    sink: Sink,
    output: Output,
    /// Program counters in the kernel that were sampled so far.
    sampled: BTreeSet<u64>,
    blocks: u64,
    /// Start values of each CPU's counts.
    bases: BTreeMap<u32, Base>,
    /// The kernel's counts at the start of the file; empty for the first file, whose counts the recorder has.
    counted: Vec<u8>,
    /// Number of bytes that were left with the recorder before this file, which are not part of it.
    left: usize,
}

/// Result of a stream.
#[derive(Debug)]
pub struct Ended {
    /// Final state of the recorder.
    pub info: Info,
    /// Number of blocks written.
    pub blocks: u64,
    /// Losses: what is not in the file.
    pub losses: Vec<String>,
}

impl<P: std::ops::Deref<Target = [AtomicU32]>> Stream<P> {
    /// Begins to write a trace that has just been started.
    ///
    /// # Errors
    /// The recorder's error, or a failure to write; the same for the functions below.
    pub fn begin<R: Recorder<Pool = P>>(
        recorder: &R,
        names: &Names,
        ids: [[u8; 16]; 2],
        (output, sink): (Output, Sink),
        ring: Option<Ring>,
    ) -> Result<Stream<P>> {
        let info = recorder.info()?;
        let pool = recorder.pool(info.blocks)?;
        let header = dump::header(&info, &Selection::default(), ids[0], ids[1]);
        let part = Part::begin(header, output, sink, names, &recorder.left()?)?;
        Ok(Stream {
            pool,
            part,
            ring,
            cut: None,
            aside: Vec::new(),
            kept: Kept::default(),
            areas: Areas::default(),
            sections: Vec::new(),
            last: BTreeMap::new(),
            ending: None,
            blocks: 0,
            turn: 0,
            pause: 0,
            written: 0,
        })
    }

    /// Writes all blocks that are full. Must be called once in a [`PERIOD`]. Returns true if the next file is to begin:
    /// call it again after [`Stream::next`].
    pub fn turn<R: Recorder<Pool = P>>(&mut self, recorder: &R) -> Result<bool> {
        self.turn += 1;
        self.pause = self.pause.saturating_sub(1);
        let flushes = self.turn.is_multiple_of(FLUSH);
        // Threads that were recording at that time have written their events when the look returns.
        let before = sys::tsc() >> self.part.header.shift;
        let looked = flushes && self.pause == 0 && self.look(recorder)?;
        loop {
            let full = recorder.full()?;
            self.take(recorder, &full)?;
            // A slow disk makes this take long, so the file may also be cut inside the loop.
            if self.is_long() && self.cut.is_none() && self.pause == 0 {
                self.begin_cut(recorder)?;
            }
            if self.cut.is_some() && self.is_whole() {
                self.part.sink.complete()?;
                return Ok(true);
            }
            if (full.count as usize) < full.index.len() {
                break;
            }
        }
        if flushes || self.areas.are_busy() {
            self.write_areas(recorder)?;
        }
        if looked {
            self.write_kept()?;
            let (moment, whole) = (sys::moment(), self.whole_before(before));
            self.written = ns_of(whole << self.part.header.shift, &moment, self.part.header.tsc_hz);
            let payload = [&moment_to_bytes(&moment)[..], &whole.to_le_bytes()].concat();
            self.part.sink.put(&dump::section(MOMENT, &payload, 1))?;
        }
        self.part.sink.complete()?;
        Ok(false)
    }

    /// Has each CPU report the fill level of its block, and ends the blocks that fill slowly. Returns true if all CPUs
    /// responded. If one CPU is stuck, the blocks of the others are written anyway, and its own once it responds again.
    fn look<R: Recorder<Pool = P>>(&mut self, recorder: &R) -> Result<bool> {
        let age = AGE.as_nanos() * u128::from(self.part.header.tsc_hz) / 1_000_000_000;
        let old = || sys::tsc().saturating_sub(age as u64) >> self.part.header.shift;
        let done = recorder.look()?.is_some() && (self.cut.is_some() || recorder.flush(old())?);
        if !done {
            self.put_off();
        }
        Ok(done)
    }

    /// Stops requests to the CPUs for a while because one is stuck.
    fn put_off(&mut self) {
        say(format_args!(
            "{}: a CPU takes no interrupts, or runs no other thread: its events are written later",
            self.part.output
        ));
        self.pause = PAUSE;
    }

    /// Time before which all samples of the file are known, in ns of the monotonic clock; `None` while some are kept
    /// for the next file.
    pub fn written(&self) -> Option<u64> {
        // The two clocks differ slightly.
        self.cut.is_none().then(|| self.written.saturating_sub(AGE.as_nanos() as u64))
    }

    /// Addresses sampled in the file so far.
    pub fn sampled(&self) -> &BTreeSet<u64> {
        &self.part.sampled
    }

    /// Writes blocks that CPUs have ended and keep; must be called after a look.
    fn write_kept(&mut self) -> Result<()> {
        let found = kept::ended(&self.pool);
        let is_here = |at: usize| u32::try_from(at).is_ok_and(|at| self.aside.contains(&at));
        let found: Vec<SelectedBlock> = (found.into_iter())
            .filter(|&(at, id)| !is_here(at) && !self.is_later(id.begin))
            .filter_map(|(at, id)| self.selected(at).filter(|block| block.id == id))
            .collect();
        let blocks = self.kept.choose(found);
        self.write(blocks)
    }

    /// Writes the new records of programs; during a cut also into the next file, since either file has a part of them.
    fn write_areas<R: Recorder<Pool = P>>(&mut self, recorder: &R) -> Result<()> {
        let fresh = self.areas.fresh(recorder)?;
        self.part.sink.put(&fresh.sections).with_context(|| self.part.output.to_string())?;
        if self.cut.is_some() {
            self.sections.extend(fresh.sections);
        }
        for taken in fresh.taken {
            recorder.take_back(taken)?;
        }
        Ok(())
    }

    /// The counter before which everything is written, at most `before`: a block in the pool holds events since it
    /// began, or since it was seen empty.
    fn whole_before(&self, before: u64) -> u64 {
        let since = |block: &[AtomicU32]| {
            let id = pool::id(block).filter(|id| !self.kept.is_written(*id))?;
            let empty = pool::seen(block, id).filter(|(_, bytes)| *bytes as usize <= 4 * HEADER_WORDS);
            let ended = pool::summary(block).is_some_and(|found| found.content_bits as usize > 32 * HEADER_WORDS);
            Some(empty.filter(|_| !ended).map_or(id.begin, |(when, _)| when.max(id.begin)))
        };
        self.pool.chunks_exact(WORDS).filter_map(since).fold(before, u64::min)
    }

    fn is_long(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| self.part.sink.bytes() >= ring.size)
    }

    /// Ends the block of every CPU, if each finds a free one: blocks that begin from now on belong to the next file.
    fn begin_cut<R: Recorder<Pool = P>>(&mut self, recorder: &R) -> Result<()> {
        let (counted, moment) = (reading::now(), sys::moment());
        match recorder.end_blocks()? {
            BlocksEnd::All => self.cut = Some((moment, counted)),
            BlocksEnd::NoneFree => {}
            BlocksEnd::Stuck => self.put_off(),
        }
        Ok(())
    }

    /// Writes these blocks and gives them back, except those that belong to the next file.
    fn take<R: Recorder<Pool = P>>(&mut self, recorder: &R, full: &Blocks) -> Result<()> {
        let (mut now, mut blocks) = (Vec::new(), Blocks::default());
        for &index in full.index.iter().take(full.count as usize) {
            let selected = self.selected(index as usize).filter(|block| !self.kept.take(block.id));
            if selected.is_some_and(|block| self.is_later(block.id.begin)) {
                self.aside.push(index);
                continue;
            }
            now.extend(selected);
            blocks.index[blocks.count as usize] = index;
            blocks.count += 1;
        }
        self.write(now)?;
        if blocks.count > 0 {
            recorder.free(&blocks)?;
        }
        Ok(())
    }

    /// True if a block with this start counter belongs to the next file.
    fn is_later(&self, begin: u64) -> bool {
        self.cut.as_ref().is_some_and(|(moment, _)| begin >= moment.tsc >> self.part.header.shift)
    }

    /// True if all blocks of the file before the cut were written.
    fn is_whole(&self) -> bool {
        let is_there = |id: pool::Id| self.is_later(id.begin) || self.kept.is_written(id);
        self.pool.chunks_exact(WORDS).filter_map(pool::id).all(is_there)
    }

    /// Ends the file before the cut and begins the next one. Returns the moment of the cut.
    pub fn next<R: Recorder<Pool = P>>(
        &mut self,
        recorder: &R,
        names: Names,
        uuid: [u8; 16],
        no_symbols: bool,
    ) -> Result<Moment> {
        let (Some((moment, counted)), Some(ring)) = (self.cut.take(), &mut self.ring) else {
            return Ok(self.part.header.start);
        };
        join(self.ending.take())?;
        let output = ring.next_file();
        let sink = Sink::open(&output)?;
        let bases: BTreeMap<u32, Base> = self
            .last
            .iter()
            .map(|(cpu, (sequence, lost))| (*cpu, Base { sequence: sequence + 1, lost: *lost }))
            .collect();
        let flags = self.part.header.flags | FLAG_CONTINUES;
        let header = Header { flags, start: moment, uuid, ..self.part.header };
        let next = Part::begin(header, output, sink, &names, &reading::now())?;
        let part = std::mem::replace(&mut self.part, next);
        (self.part.bases, self.part.left) = (bases, recorder.left()?.len());
        self.part.sink.put(&std::mem::take(&mut self.sections))?;
        let before: u64 = part.bases.values().map(|base| base.lost).sum();
        let lost = self.last.values().map(|(_, lost)| lost).sum::<u64>().saturating_sub(before);
        let Info { refused_names, refused_marks, .. } = recorder.info()?;
        let flags = part.header.flags | FLAG_CONTINUED;
        let stop = Header { flags, stop: moment, lost, refused_names, refused_marks, ..part.header };
        let counted = [part.counted.clone(), counted].concat();
        let (programs, place) = (self.areas.rest(recorder)?, part.output.to_string());
        self.ending =
            Some(thread::spawn(move || part.finish(stop, names, &counted, &programs, no_symbols).context(place)));
        for index in std::mem::take(&mut self.aside) {
            let mut one = Blocks { count: 1, ..Blocks::default() };
            one.index[0] = index;
            self.take(recorder, &one)?;
        }
        Ok(moment)
    }

    /// Writes the blocks left in the stopped recorder, and the final names and counts.
    pub fn finish<R: Recorder<Pool = P>>(mut self, recorder: &R, names: Names, no_symbols: bool) -> Result<Ended> {
        let info = recorder.info()?;
        self.pool = recorder.pool(info.blocks)?;
        // A stop during a cut cancels the cut.
        self.cut = None;
        let selection = Selection::of(&self.pool, Recycling::Read, u64::MAX);
        let left: Vec<_> = selection.blocks.iter().filter(|block| !self.kept.is_written(block.id)).copied().collect();
        for some in left.chunks(BATCH) {
            self.write(some.to_vec())?;
        }
        let Part { header, blocks, .. } = &self.part;
        let stop = Header {
            blocks: *blocks,
            start: header.start,
            lost: info.lost.saturating_sub(self.part.bases.values().map(|base| base.lost).sum()),
            ..dump::header(&info, &selection, header.uuid, header.boot_id)
        };
        let left = recorder.left()?;
        let counted = [&self.part.counted, left.get(self.part.left..).unwrap_or_default()].concat();
        join(self.ending)?;
        let programs = self.areas.rest(recorder)?;
        self.part.finish(stop, names, &counted, &programs, no_symbols)?;
        Ok(Ended { info, blocks: self.blocks, losses: [selection.losses(&programs), self.areas.losses()].concat() })
    }

    fn selected(&self, index: usize) -> Option<SelectedBlock> {
        let block = self.pool.get(index * WORDS..(index + 1) * WORDS)?;
        let found = pool::summary(block)?;
        let content = (found.content_bits / 8) as usize;
        (content <= BYTES).then_some(SelectedBlock { id: found.id, index, content, lost: found.lost })
    }

    fn write(&mut self, mut blocks: Vec<SelectedBlock>) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        blocks.sort_unstable();
        self.part.write(&self.pool, &blocks).with_context(|| self.part.output.to_string())?;
        for block in &blocks {
            let last = self.last.entry(block.id.cpu).or_default();
            *last = (last.0.max(block.id.sequence), last.1.max(block.lost));
        }
        self.blocks += blocks.len() as u64;
        if self.part.sampled.len() < SAMPLED {
            self.part.sampled.extend(symbols::sampled(&self.pool, &Selection { blocks, findings: Vec::new() }));
        }
        Ok(())
    }
}

impl Part {
    fn begin(header: Header, output: Output, mut sink: Sink, names: &Names, counted: &[u8]) -> Result<Part> {
        let head = [dump::sealed_header(&header), dump::section(NAMES, &names.payload(), names.len())].concat();
        sink.put(&[head, reading::section(counted)].concat())?;
        sink.complete()?;
        let counted = counted.to_vec();
        let left = counted.len();
        Ok(Part { header, sink, output, sampled: BTreeSet::new(), blocks: 0, bases: BTreeMap::new(), counted, left })
    }

    fn write(&mut self, pool: &[AtomicU32], blocks: &[SelectedBlock]) -> Result<()> {
        let (bytes, items) = ((blocks.len() * BYTES) as u64, blocks.len() as u64);
        self.sink.put(&Section { tag: BLOCKS, crc32: 0, bytes, items }.to_bytes())?;
        let mut copy = vec![0; BYTES];
        for choice in blocks {
            let base = self.bases.get(&choice.id.cpu).copied().unwrap_or_default();
            let is_there = copy_block_from(pool, choice, &self.header, base, &mut copy);
            anyhow::ensure!(is_there, dump::STARTED_AGAIN);
            let counted = self.header.flags & (FLAG_IPC | FLAG_LLC) != 0;
            let used = if counted { BYTES } else { choice.content };
            self.sink.put_block(&copy, used)?;
        }
        self.blocks += items;
        Ok(())
    }

    /// Writes the sections at the end of a file.
    fn finish(
        mut self,
        stop: Header,
        mut names: Names,
        counted: &[u8],
        programs: &[u8],
        no_symbols: bool,
    ) -> Result<()> {
        if !no_symbols {
            symbols::gather(&mut names, &self.sampled);
        }
        let stop = Header { blocks: self.blocks, ..stop };
        self.sink.put(&dump::section(NAMES, &names.payload(), names.len()))?;
        self.sink.put(&reading::section(counted))?;
        self.sink.put(programs)?;
        self.sink.put(&dump::section(STOP, &dump::sealed_header(&stop), 1))?;
        self.sink.finish()
    }
}

/// Converts a TSC shortly before `moment` to ns of the monotonic clock.
pub(crate) fn ns_of(tsc: u64, moment: &Moment, tsc_hz: u64) -> u64 {
    let ago = u128::from(moment.tsc.saturating_sub(tsc)) * 1_000_000_000 / u128::from(tsc_hz.max(1));
    moment.monotonic_ns.saturating_sub(ago as u64)
}

/// Waits until the end of a file is written.
fn join(ending: Option<JoinHandle<Result<()>>>) -> Result<()> {
    let ended = ending.map(|ending| ending.join().unwrap_or_else(|_| bail!("the end of a file was not written")));
    ended.transpose().map(drop)
}
