// SPDX-License-Identifier: BSD-3-Clause
//! One use of the recorder: the sequence of operations for each command.
//!
//! Invariants: the recorder is opened by the first command that needs it and stays open to the end; names are gathered
//! while it does not trace, or after the end of a snapshot, so that gathering is not in the trace; a trace stays in the
//! recorder until the next start, even if writing its file fails; no other process can start a trace while one is
//! written.

use std::io::Write;
use std::iter;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::Arc;

use anyhow::{bail, ensure, Context, Result};
use kutrace_cli::progress::Watch;
use kutrace_cli::signal::SignalGuard;
use kutrace_cli::{say, Exit, Failure};
use kutrace_format::abi::block;
use kutrace_format::abi::command::{
    Cpu, Info, Ports, Setup, CPU_MUTE, STATE_EMPTY, STATE_STOPPED, STATE_TRACING, STREAM,
};
use kutrace_format::abi::programs::Quota;
use kutrace_format::file::Header;
use kutrace_tools::say_damage;
use postprocess::readable::count;
use rustix::time::{clock_gettime, ClockId};

use crate::areas;
use crate::device::{held_by, Recorder, PATH};
use crate::dump;
use crate::names::mapped::Mapped;
use crate::names::maps::Maps;
use crate::names::{machine, symbols, Names, Start};
use crate::output::Output;
use crate::programs;
use crate::reading;
use crate::selection::{Recycling, Selection};
use crate::snapshot;
use crate::status;
use crate::stream::{ns_of, Ended, Ring, Sink, Stream};
use crate::tracepoint::{self, Wanted};

/// Mode of recording: the valid values of [`Setup::flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

/// A recorder in use.
#[derive(Debug)]
pub struct Session<R> {
    recorder: Option<R>,
    at_start: Start,
    /// Loaded programs; the kernel reports them while this process holds the recorder.
    mapped: Mapped,
    no_symbols: bool,
    packets: Option<Ports>,
    wanted: Wanted,
}

impl<R: Recorder> Session<R> {
    /// A session that has opened nothing yet.
    pub fn new() -> Session<R> {
        Session {
            recorder: None,
            at_start: Start::default(),
            mapped: Mapped::default(),
            no_symbols: false,
            packets: None,
            wanted: Wanted::default(),
        }
    }

    /// Sets whether later traces are written without the names of functions of the kernel and of programs.
    pub fn without_symbols(&mut self, asked: bool) -> &mut Session<R> {
        self.no_symbols = asked;
        self
    }

    /// True if traces are written without the names of functions.
    pub fn is_without_symbols(&self) -> bool {
        self.no_symbols
    }

    /// Sets the ports whose packets later traces have, if any.
    pub fn with_packets(&mut self, ports: Option<Ports>) -> &mut Session<R> {
        self.packets = ports;
        self
    }

    /// Sets the tracepoints that later traces have.
    pub fn with_tracepoints(&mut self, wanted: Wanted) -> &mut Session<R> {
        self.wanted = wanted;
        self
    }

    /// Empties the recorder for a trace with this setup.
    fn prepare(&mut self, setup: Setup) -> Result<()> {
        // Unknown tracepoints are reported while the recorder still has the previous trace.
        let (packets, tracepoints) = (self.packets, self.wanted.find()?);
        let recorder = self.recorder()?;
        recorder.reset(setup)?;
        packets.map_or(Ok(()), |ports| recorder.choose(&ports))?;
        tracepoints.choose(recorder)
    }

    /// The recorder, opened if necessary.
    pub fn recorder(&mut self) -> Result<&R> {
        let recorder = match self.recorder.take() {
            Some(recorder) => recorder,
            None => R::open()?,
        };
        Ok(self.recorder.insert(recorder))
    }

    /// Sets how much memory programs may have for their own records in the next trace.
    pub fn allow(&mut self, quota: Option<Quota>) -> Result<()> {
        let Some(quota) = quota else { return Ok(()) };
        self.refuse_while_tracing()?;
        self.recorder()?.allow(quota)
    }

    /// Empties the recorder and starts it.
    pub fn go(&mut self, mode: Mode) -> Result<()> {
        self.refuse_while_tracing()?;
        self.prepare(Setup { flags: mode.0, blocks: 0 })?;
        self.start()
    }

    /// Reserves the recorder for this process from now on, empties it and starts it with this number of blocks; 0 for
    /// the number set when the module was loaded.
    pub fn go_held(&mut self, mode: Mode, blocks: u32) -> Result<()> {
        self.refuse_while_tracing()?;
        self.recorder()?.acquire()?;
        self.prepare(Setup { flags: mode.0, blocks })?;
        self.hear();
        self.start()
    }

    /// Like [`Session::go_held`], and writes the trace as it is recorded. For a ring of files, `output` is the first
    /// file.
    pub fn go_stream(
        &mut self,
        mode: Mode,
        blocks: u32,
        output: Output,
        ring: Option<Ring>,
    ) -> Result<Stream<R::Pool>> {
        self.refuse_while_tracing()?;
        self.recorder()?.acquire()?;
        self.prepare(Setup { flags: mode.0 | STREAM, blocks })?;
        self.hear();
        let info = self.recorder()?.info()?;
        // The names at the start; those at the end replace them.
        self.at_start = Start::now();
        let names = self.names_at(&info, &Start::default())?;
        let (sink, ids) = (Sink::open(&output)?, [machine::random_uuid()?, machine::boot_id()?]);
        self.start()?;
        Stream::begin(self.recorder()?, &names, ids, (output, sink), ring)
    }

    /// Writes the blocks of a stream that are ready.
    pub fn turn_stream(&mut self, stream: &mut Stream<R::Pool>) -> Result<()> {
        while stream.turn(self.recorder()?)? {
            let (info, now) = (self.recorder()?.info()?, Start::now());
            let names = self.names_at(&info, &now)?;
            let no_symbols = self.no_symbols;
            let begin = stream.next(self.recorder()?, names, machine::random_uuid()?, no_symbols)?;
            // The next file starts with the current names.
            self.at_start = now;
            self.mapped.begin_file(begin.monotonic_ns);
        }
        if let Some(written) = stream.written() {
            self.mapped.forget(written, stream.sampled());
        }
        Ok(())
    }

    /// Stops the recorder and completes a stream.
    pub fn stop_stream(&mut self, stream: Stream<R::Pool>, output: &Output) -> Result<Exit> {
        let no_symbols = self.no_symbols;
        end(self.recorder()?)?;
        let info = self.recorder()?.info()?;
        let names = self.names_now(&info)?;
        let Ended { info, blocks, losses } = stream.finish(self.recorder()?, names, no_symbols)?;
        Ok(tally(output, &info, blocks, &losses))
    }

    /// Starts the recorder without emptying it.
    pub fn on(&mut self) -> Result<()> {
        self.refuse_while_tracing()?;
        if self.recorder()?.info()?.state == STATE_STOPPED {
            bail!(Failure::new("the recorder holds a trace", "save it with `stop`, or discard it with `reset`"));
        }
        self.start()
    }

    /// Stops the recorder and writes nothing.
    pub fn off(&mut self) -> Result<()> {
        let recorder = self.recorder()?;
        match recorder.info()?.state {
            STATE_TRACING => end(recorder),
            _ => recorder.stop(),
        }
    }

    /// Empties the recorder and restores the memory size that it was loaded with; its mode stays.
    pub fn reset(&mut self) -> Result<()> {
        self.refuse_while_tracing()?;
        self.mapped = Mapped::default();
        let recorder = self.recorder()?;
        let flags = recorder.info()?.flags;
        recorder.reset(Setup { flags, blocks: 0 })
    }

    /// Like [`Session::reset`], also while tracing: the recording is discarded.
    pub fn force_reset(&mut self) -> Result<()> {
        self.off()?;
        self.reset()
    }

    /// State of the recorder, as text.
    pub fn status(&mut self) -> Result<String> {
        let recorder = self.recorder()?;
        let refused = programs::sentences(&recorder.refused()?);
        Ok(status::lines(&recorder.info()?, &refused, recorder.kept()?, monotonic_ns()))
    }

    /// Stops the recorder if it traces, and writes its content.
    pub fn stop(&mut self, output: &Output) -> Result<Exit> {
        self.recorder()?.acquire()?;
        let written = self.stop_held(output);
        self.recorder()?.release()?;
        written
    }

    /// Like [`Session::stop`], in a process that already holds the recorder.
    pub fn stop_held(&mut self, output: &Output) -> Result<Exit> {
        let recorder = self.recorder()?;
        let state = recorder.info()?.state;
        if state == STATE_TRACING {
            end(recorder)?;
        }
        ensure!(state != STATE_EMPTY, nothing());
        output.check().and_then(|()| self.dump(output)).context(KEPT)
    }

    /// Releases a stopped and unwritten trace, so that another process can write it.
    pub fn leave(&mut self) -> Result<()> {
        let recorder = self.recorder()?;
        match recorder.info()?.state {
            STATE_STOPPED => recorder.release(),
            _ => Ok(()),
        }
    }

    /// Writes the content of the recorder while it continues, in wrap mode.
    pub fn snapshot(&mut self, output: &Output) -> Result<Exit> {
        Ok(self.snapshot_since(output, &[], |_| Ok(()))?.0)
    }

    /// Like [`Session::snapshot`]; `readings` are earlier readings of the kernel's counts. Calls `room` with the
    /// maximum size of the file in bytes. Also returns the counter from which on the file has events of every CPU.
    pub fn snapshot_since(
        &mut self,
        output: &Output,
        readings: &[Arc<Vec<u8>>],
        room: impl FnOnce(u64) -> Result<()>,
    ) -> Result<(Exit, u64)> {
        let recorder = self.recorder()?;
        let (left, last) = (reading::counted(&recorder.left()?), reading::now());
        let stop = recorder.snapshot()?;
        let info = recorder.info()?;
        let pool = recorder.pool(info.blocks)?;
        let mut selection = Selection::of(&pool, Recycling::Oldest, stop.tsc >> info.shift);
        let programs = areas::sections(recorder, selection.oldest() << info.shift)?;
        let taken: Vec<&[u8]> = iter::once(&left[..]).chain(readings.iter().map(|reading| &reading[..])).collect();
        let counted = last.len() + taken.iter().map(|reading| reading.len()).max().unwrap_or_default();
        let sections = |selection: &Selection| {
            let first = reading::first_from(&taken, selection.whole_from() << info.shift);
            [reading::filled_section(&[first, &last].concat(), counted), programs.clone()].concat()
        };
        let names = self.names(&info, &pool, &selection)?;
        // The next snapshot has no older block.
        let oldest = selection.blocks.first().map_or(stop.tsc, |block| block.id.begin << info.shift);
        self.mapped.begin_file(ns_of(oldest, &stop, u64::from(info.tsc_khz) * 1000));
        let recorder = self.recorder()?;
        let (uuid, boot_id) = (machine::random_uuid()?, machine::boot_id()?);
        let header = |selection: &Selection| -> Result<Header> {
            let now = recorder.info()?;
            ensure!(now.start == info.start, dump::STARTED_AGAIN);
            ensure!(!selection.blocks.is_empty(), overwritten());
            let info = Info { stop, lost: selection.lost(), ..now };
            Ok(dump::header(&info, selection, uuid, boot_id))
        };
        let before = header(&selection)?;
        let start = dump::head(&before, &names, &sections(&selection)).len() as u64;
        room(start + (selection.blocks.len() * block::BYTES) as u64)?;
        output.write_file(|file| {
            let mut written = progress(&selection)?;
            snapshot::write_blocks(file, start, &pool, &mut selection, &before, &mut written)?;
            Ok(file.write_all_at(&dump::head(&header(&selection)?, &names, &sections(&selection)), 0)?)
        })?;
        let info = Info { state: STATE_STOPPED, stop, lost: selection.lost(), ..info };
        let exit = tally(output, &info, selection.blocks.len() as u64, &selection.losses(&programs));
        Ok((exit, selection.whole_from()))
    }

    /// Begins to receive the kernel's reports of loaded programs.
    fn hear(&mut self) {
        self.mapped = if self.no_symbols { Mapped::default() } else { Mapped::begin() };
    }

    fn start(&mut self) -> Result<()> {
        if !self.no_symbols {
            self.mapped.now();
            self.mapped.begin_file(u64::MAX);
        }
        let at_start = Start::now();
        let recorder = self.recorder()?;
        recorder.start()?;
        leave(recorder, &reading::now());
        self.at_start = at_start;
        Ok(())
    }

    /// Fails if a trace is running.
    ///
    /// # Errors
    /// A trace is running, with its holder.
    pub fn refuse_while_tracing(&mut self) -> Result<()> {
        let info = self.recorder()?.info()?;
        match (info.state, info.holder) {
            (STATE_TRACING, 0) => bail!(Failure::new("a trace is running", "end it first: kutrace_control stop")),
            (STATE_TRACING, holder) => Err(held_by(holder)).context(PATH),
            _ => Ok(()),
        }
    }

    /// Names for the file of a trace of these blocks.
    fn names(&mut self, info: &Info, pool: &[AtomicU32], selection: &Selection) -> Result<Names> {
        let mut names = self.names_now(info)?;
        if !self.no_symbols {
            symbols::gather(&mut names, &symbols::sampled(pool, selection));
        }
        Ok(names)
    }

    /// Names except those for samples, which need the sampled addresses first.
    fn names_now(&mut self, info: &Info) -> Result<Names> {
        self.names_at(info, &Start::now())
    }

    /// Like [`Session::names_now`], with the tasks and processes of `now`.
    fn names_at(&mut self, info: &Info, now: &Start) -> Result<Names> {
        let recorder = self.recorder()?;
        let cpus = (0..info.cpus).map(|cpu| recorder.cpu(cpu)).collect::<Result<Vec<_>>>()?;
        let vectors = recorder.vectors()?;
        for Cpu { cpu, .. } in cpus.iter().filter(|cpu| cpu.flags & CPU_MUTE != 0) {
            say(format_args!("CPU {cpu} takes no interrupts: its last block ends at the last event seen"));
        }
        let left = recorder.left()?;
        let mut names = Names::gather(&self.at_start, now, &cpus, &vectors);
        tracepoint::describe(&mut names, &left);
        Ok(if self.no_symbols { names } else { names.with_maps(self.maps_now()) })
    }

    /// The parts of programs' files that processes have executed so far, as far as known.
    fn maps_now(&self) -> Maps {
        let (maps, lost) = self.mapped.now();
        if lost > 0 {
            let events = count(lost, "event", "events");
            say(format_args!("{events} of programs being loaded came too fast: some samples will have no function"));
        }
        maps
    }

    fn dump(&mut self, output: &Output) -> Result<Exit> {
        let info = self.recorder()?.info()?;
        let pool = self.recorder()?.pool(info.blocks)?;
        let selection = Selection::of(&pool, dump::recycling(&info), u64::MAX);
        ensure!(!selection.blocks.is_empty() || !selection.findings.is_empty(), nothing());
        let names = self.names(&info, &pool, &selection)?;
        let recorder = self.recorder()?;
        let programs = areas::sections(recorder, selection.oldest() << info.shift)?;
        let sections = [reading::section(&recorder.left()?), programs].concat();
        let header = dump::header(&info, &selection, machine::random_uuid()?, machine::boot_id()?);
        output.write(|out: &mut dyn Write| {
            let mut written = progress(&selection)?;
            dump::write_trace(&header, &pool, &selection, &names, &sections, out, &mut written)?;
            let after = recorder.info()?;
            ensure!(after.start == info.start && after.state == info.state, dump::STARTED_AGAIN);
            Ok(())
        })?;
        Ok(tally(output, &info, selection.blocks.len() as u64, &selection.losses(&sections)))
    }
}

impl<R: Recorder> Default for Session<R> {
    fn default() -> Session<R> {
        Session::new()
    }
}

/// Stops the recorder; the kernel's counts up to the stop are left with the trace.
fn end<R: Recorder>(recorder: &R) -> Result<()> {
    let readings = reading::now();
    recorder.stop()?;
    tracepoint::clear();
    leave(recorder, &readings);
    Ok(())
}

/// Leaves readings with the trace; the trace is useful without them, so errors are only reported.
fn leave<R: Recorder>(recorder: &R, readings: &[u8]) {
    if let Err(error) = recorder.leave(readings) {
        say(format_args!("the kernel's counters will not be in the file: {error:#}"));
    }
}

fn nothing() -> Failure {
    Failure::new("nothing has been recorded", "start with: kutrace_control go")
}

fn overwritten() -> Failure {
    Failure::new(
        "the recorder overwrote every block before it was copied",
        "write to a faster disk, or use a larger buffer: insmod kutrace.ko tracemb=...",
    )
}

/// A callback that takes the number of bytes written: shows the progress if standard error is a terminal, and fails if
/// a signal requests the end.
pub(crate) fn progress(selection: &Selection) -> Result<impl FnMut(usize) -> Result<()>> {
    let guard = SignalGuard::new()?;
    let (all, done) = (selection.blocks.len() * block::BYTES, Arc::new(AtomicUsize::new(0)));
    let shown = done.clone();
    let watch = Watch::at_terminal(move || Some((shown.load(Relaxed) * 100).checked_div(all)? as u64));
    Ok(move |bytes: usize| {
        // Shown as long as more bytes may follow.
        let _watch = &watch;
        done.fetch_add(bytes, Relaxed);
        guard.check()
    })
}

const KEPT: &str = "the trace is still in the recorder";

/// Reports the size of the written file and the losses.
pub(crate) fn tally(output: &Output, info: &Info, blocks: u64, losses: &[String]) -> Exit {
    say_damage(&output.to_string(), losses);
    let (megabytes, seconds) = (status::megabytes(u32::try_from(blocks).unwrap_or(u32::MAX)), status::seconds(info, 0));
    status::notes(info).iter().for_each(|note| say(format_args!("{output}: {note}")));
    let lost = info.lost;
    say(format_args!("{output}: {megabytes:.1} MB, {blocks} blocks, {seconds:.3} s traced, {lost} events lost"));
    if lost == 0 && losses.is_empty() && status::notes(info).is_empty() {
        Exit::Done
    } else {
        Exit::Lost
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
pub(crate) mod tests;
