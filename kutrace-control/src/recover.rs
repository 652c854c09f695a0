// SPDX-License-Identifier: BSD-3-Clause
//! `recover`: extracts the trace from the memory image of a crashed machine, or from what an earlier kernel left in
//! memory that survives a reboot, into an ordinary file.
//!
//! The module's landmark leads to the blocks and to the state of each CPU. Then the trace is written like that of a
//! stopped recorder: the blocks are copied into a temporary file, where the steps that the CPUs could no longer do are
//! completed, and this file is used as the pool.
//!
//! Invariant: no content of the image is trusted unless it is checked; missing parts are counted and reported.

mod image;
mod kdump;
mod lzo;
mod memory;
mod programs;

use std::fs::File;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};
use jiff::Timestamp;
use kutrace_cli::{say, Exit, Failure};
use kutrace_format::abi::block::{Header, BYTES, FLAG_LOST, HEADER_WORDS, MAGIC};
use kutrace_format::abi::command::{
    Info, Moment, BLOCKS_MAX, KEPT_AT, MAX_SHIFT, STATE_EMPTY, STATE_STOPPED, STATE_TRACING, STREAM, VERSION, WRAP,
};
use kutrace_format::abi::event::{argument_words, FULL_TIME};
use kutrace_format::abi::landmark::Landmark;
use kutrace_format::abi::word;
use kutrace_format::file::{NameKind, CPU_OFFLINE};
use postprocess::readable::count;

use self::image::Image;
use self::memory::{landmarks, Memory};
use self::programs::find;
use crate::device::{self, Device, Recorder};
use crate::dump;
use crate::names::{machine, Names};
use crate::output::Output;
use crate::selection::{Recycling, Selection};
use crate::session::{progress, tally};
use crate::sys::Mapping;

/// State of a CPU's recorder.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    number: u32,
    /// Address of the next free word.
    position: u64,
    lost: u64,
    refused: (u64, u64),
    is_claiming: bool,
    was_offline: bool,
    /// The counter when the position was seen, if that is not the final one.
    seen: Option<u64>,
}

/// Copies of the pool's blocks that hold a trace.
#[derive(Debug)]
struct Copied {
    file: File,
    /// Number of blocks.
    blocks: u64,
    /// The counter of the last entry in all blocks.
    last: u64,
    /// Number of blocks with unknown content.
    missing: u64,
    /// Number of blocks that end before a page that is not in the image.
    cut: u64,
    /// Number of blocks that were begun after their CPU's state was last seen.
    unseen: u64,
}

/// Maximum number of CPUs of Linux.
const CPUS_MAX: u32 = 8192;

/// Maximum time that a program can run on its CPU after the last entry of the kernel, in milliseconds: two ticks. A
/// program's records of later times do not belong to the trace, whose CPUs would seem to end long before them.
const ALONE: u64 = 20;

/// Writes the trace in an image.
///
/// # Errors
/// If the image has no trace, or cannot be read, or the file cannot be written.
pub fn recover(path: &Path, output: &Output) -> Result<Exit> {
    output.check()?;
    recover_from(&Image::open(path)?, &path.display().to_string(), output)
}

/// Writes the trace that an earlier kernel left, and then makes the module discard it.
///
/// # Errors
/// If there is no trace, or it cannot be read, or the file cannot be written; then the trace stays.
pub fn recover_boot(device: &Device, output: &Output) -> Result<Exit> {
    output.check()?;
    let bytes = device.kept()?;
    if bytes == 0 {
        bail!(Failure::new(
            "no trace of an earlier kernel is kept",
            "the kernel's command line must reserve memory for it: reserve_mem=64M:65536:kutrace"
        ));
    }
    let image = Image::kept(device.file()?, KEPT_AT, bytes).context(device::PATH)?;
    let exit = recover_from(&image, device::PATH, output)?;
    device.forget()?;
    Ok(exit)
}

fn recover_from(image: &Image, place: &str, output: &Output) -> Result<Exit> {
    let named = || place.to_string();
    let landmark = newest(landmarks(image).with_context(named)?).with_context(named)?;
    let memory = Memory::new(image, landmark.machine);
    let cpus = cpus(&memory, &landmark).with_context(named)?;
    let copied = copy(&memory, &landmark, &cpus).with_context(named)?;
    let last = copied.last << landmark.info.shift;
    let programs = find(&memory, &landmark.programs, last.saturating_add(ALONE * u64::from(landmark.info.tsc_khz)));
    let programs = programs.with_context(named)?;
    let info = info(&memory, &landmark, &cpus, last.max(programs.last)).with_context(named)?;
    let exit = write(output, &landmark, &info, &cpus, &copied, &programs.sections)?;
    let mut facts = losses(image, &landmark, &cpus, &copied);
    facts.extend(programs.losses());
    facts.iter().for_each(|fact| say(format_args!("{place}: {fact}")));
    Ok(if facts.is_empty() { exit } else { Exit::Lost })
}

/// The landmark of the trace that was started last: memory may still hold the landmark of an earlier kernel.
fn newest(found: Vec<Landmark>) -> Result<Landmark> {
    let Some(landmark) = found.into_iter().max_by_key(|one| one.info.start.realtime_ns) else {
        bail!(Failure::new(
            "no recorder in this image",
            "the module must have been loaded, in a version with `recover`; makedumpfile must keep the kernel's pages"
        ));
    };
    let info = &landmark.info;
    ensure!(info.version == VERSION, "the module had version {}, this program has version {VERSION}", info.version);
    ensure!(info.state != STATE_EMPTY, "nothing had been recorded");
    ensure!(
        (1..=BLOCKS_MAX).contains(&info.blocks)
            && info.cpus <= CPUS_MAX
            && info.shift <= MAX_SHIFT
            && info.tsc_khz > 0
            && landmark.blocks.is_multiple_of(BYTES as u64),
        "the recorder's memory is damaged"
    );
    Ok(landmark)
}

/// The CPUs whose state is in the image.
fn cpus(memory: &Memory<'_>, landmark: &Landmark) -> Result<Vec<Cpu>> {
    let (machine, fields) = (&landmark.machine, &landmark.fields);
    let mut cpus = Vec::new();
    for number in 0..landmark.info.cpus {
        let Some(offset) = memory.number::<8>(machine.offsets.wrapping_add(8 * u64::from(number)))? else { continue };
        let state = machine.states.wrapping_add(offset);
        let field = |at: u32| state.wrapping_add(at.into());
        if memory.number::<8>(field(fields.this))? != Some(state) {
            continue;
        }
        let long = |at: u32| Ok::<_, std::io::Error>(memory.number::<8>(field(at))?.unwrap_or_default());
        cpus.push(Cpu {
            number,
            position: long(fields.position)?,
            lost: long(fields.lost)?,
            refused: (long(fields.refused_names)?, long(fields.refused_marks)?),
            is_claiming: memory.number::<4>(field(fields.depth))? != Some(0),
            was_offline: memory.number::<1>(field(fields.gone_at_start))? == Some(1),
            seen: (fields.seen != 0).then(|| long(fields.seen)).transpose()?,
        });
    }
    ensure!(!cpus.is_empty(), "the recorder's memory is not in this image");
    Ok(cpus)
}

/// Copies the pool. Ends the blocks that CPUs were filling.
fn copy(memory: &Memory<'_>, landmark: &Landmark, cpus: &[Cpu]) -> Result<Copied> {
    let file = tempfile::tempfile().context("a temporary file")?;
    let mut copied = Copied { file, blocks: 0, last: 0, missing: 0, cut: 0, unseen: 0 };
    let mut block = vec![0; BYTES];
    for index in 0..u64::from(landmark.info.blocks) {
        let Some(address) = landmark.blocks.checked_add(index * BYTES as u64) else { break };
        let there = memory.read(address, &mut block)?;
        if there < 4 * HEADER_WORDS {
            copied.missing += 1;
            continue;
        }
        if long(&block, offset_of!(Header, magic)) as u32 != MAGIC {
            continue;
        }
        if long(&block, offset_of!(Header, content_bits)) == 0 {
            match cpus.iter().find(|cpu| cpu.fills(address, long(&block, offset_of!(Header, begin)))) {
                Some(cpu) => {
                    put(&mut block, offset_of!(Header, content_bits), cpu.position % BYTES as u64 * 8);
                    put(&mut block, offset_of!(Header, lost), cpu.lost);
                }
                None if cpus.iter().any(|cpu| cpu.seen.is_some()) => {
                    copied.unseen += 1;
                    continue;
                }
                None => {}
            }
        }
        let content = (long(&block, offset_of!(Header, content_bits)) / 8) as usize;
        let (end, last) = last_entry(&block, content.min(there));
        if content > there {
            copied.cut += 1;
            put(&mut block, offset_of!(Header, content_bits), end as u64 * 8);
            block[offset_of!(Header, flags)] |= FLAG_LOST as u8;
        }
        if long(&block, offset_of!(Header, end)) == 0 {
            put(&mut block, offset_of!(Header, end), last);
        }
        copied.last = copied.last.max(last);
        copied.file.write_all_at(&block, copied.blocks * BYTES as u64)?;
        copied.blocks += 1;
    }
    Ok(copied)
}

impl Cpu {
    /// Returns whether the CPU fills the block at this address with this start counter.
    fn fills(&self, address: u64, begin: u64) -> bool {
        self.position >> 16 == address >> 16
            && self.position.is_multiple_of(4)
            && self.seen.is_none_or(|seen| begin <= seen)
    }
}

/// End of the last complete entry before byte `to` of a block, and its counter.
fn last_entry(block: &[u8], to: usize) -> (usize, u64) {
    let word = |at: usize| long(block, at) as u32;
    let (mut at, mut time) = (4 * HEADER_WORDS, long(block, offset_of!(Header, begin)));
    while at + 4 <= to {
        let event = word::event(word(at));
        let next = argument_words(event).map_or(usize::MAX, |words| at + 4 + 4 * words);
        if next > to {
            break;
        }
        let later = word::time(word(at)).wrapping_sub(time as u32) & ((1 << word::TIME_BITS) - 1);
        time = time.saturating_add(later.into());
        if event == FULL_TIME {
            time = time.max(long(block, at + 4));
        }
        at = next;
    }
    (at, time)
}

/// The eight bytes at `at`, or fewer at the end.
fn long(block: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(&block[at..]).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(bytes)
}

fn put(block: &mut [u8], at: usize, value: u64) {
    block[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// State of the recorder as if it had been stopped at the last entry, whose time `last` is a full TSC.
fn info(memory: &Memory<'_>, landmark: &Landmark, cpus: &[Cpu], last: u64) -> Result<Info> {
    let found = landmark.info;
    // A stream's memory has only the blocks that its reader had not read yet.
    let flags = if found.flags & STREAM != 0 { found.flags & !STREAM | WRAP } else { found.flags };
    let stop = match found.state {
        STATE_STOPPED => found.stop,
        _ => stop(&found, [&landmark.panic, &landmark.sighted], last),
    };
    let sum = |of: fn(&Cpu) -> u64| cpus.iter().map(of).fold(0, u64::saturating_add);
    Ok(Info {
        state: STATE_STOPPED,
        flags,
        stop,
        lost: sum(|cpu| cpu.lost),
        refused_names: sum(|cpu| cpu.refused.0),
        refused_marks: sum(|cpu| cpu.refused.1),
        blocks_taken: memory.number::<8>(landmark.blocks_taken)?.unwrap_or_default().min(u32::MAX.into()) as u32,
        ..found
    })
}

/// The moment of the last entry, extrapolated at the calibrated rate from the last known moment.
fn stop(info: &Info, later: [&Moment; 2], last: u64) -> Moment {
    let known = later.into_iter().fold(&info.start, |known, one| if one.tsc > known.tsc { one } else { known });
    let tsc = known.tsc.max(last);
    let later = (u128::from(tsc - known.tsc) * 1_000_000 / u128::from(info.tsc_khz)) as u64;
    let [realtime_ns, monotonic_ns] = [known.realtime_ns, known.monotonic_ns].map(|ns| ns.saturating_add(later));
    Moment { tsc, realtime_ns, monotonic_ns }
}

fn write(
    output: &Output,
    landmark: &Landmark,
    info: &Info,
    cpus: &[Cpu],
    copied: &Copied,
    programs: &[u8],
) -> Result<Exit> {
    ensure!(copied.blocks > 0, "no block of the trace is in this image");
    let pool = Mapping::new(copied.file.as_fd(), copied.blocks as usize * BYTES)?;
    // If blocks are missing, those before them are kept, and every gap is reported.
    let recycling = if copied.missing == 0 { dump::recycling(info) } else { Recycling::Never };
    let selection = Selection::of(&pool, recycling, u64::MAX);
    let header = dump::header(info, &selection, machine::random_uuid()?, [0; 16]);
    let names = names(landmark, cpus);
    output.write(|out| {
        let mut written = progress(&selection)?;
        dump::write_trace(&header, &pool, &selection, &names, programs, out, &mut written)
    })?;
    let exit = tally(output, info, header.blocks, &selection.losses(programs));
    if landmark.panic.tsc != 0 {
        let time = Timestamp::from_nanosecond(landmark.panic.realtime_ns.into()).unwrap_or_default();
        say(format_args!("{output}: the kernel panicked at {time:.6}, mark `panic`"));
    }
    let unknown = if landmark.programs.processes == 0 { ", and the marks of programs" } else { "" };
    say(format_args!(
        "{output}: an image lacks facts that only the running machine has: names of vectors not named in these \
         blocks, names of kernel functions, the kernel's counters, the programs that were refused marks{unknown}"
    ));
    Ok(exit)
}

fn names(landmark: &Landmark, cpus: &[Cpu]) -> Names {
    let mut names = Names::of_tables();
    for cpu in cpus {
        names.add_cpu(cpu.number, if cpu.was_offline { CPU_OFFLINE } else { 0 });
    }
    let machine = &landmark.machine;
    for (kind, text) in [
        (NameKind::Kernel, &machine.kernel[..]),
        (NameKind::Host, &machine.host[..]),
        (NameKind::CpuModel, &machine.model[..]),
    ] {
        names.add(kind, 0, 0, text.split(|byte| *byte == 0).next().unwrap_or_default());
    }
    names
}

/// Losses of the trace, one sentence each.
fn losses(image: &Image, landmark: &Landmark, cpus: &[Cpu], copied: &Copied) -> Vec<String> {
    let mut facts = Vec::from_iter(image.damage());
    if landmark.sighted.tsc != 0 && landmark.info.state == STATE_TRACING && landmark.panic.tsc == 0 {
        let time = Timestamp::from_nanosecond(landmark.sighted.realtime_ns.into()).unwrap_or_default();
        facts.push(format!(
            "the machine was reset while it recorded: events after {time:.6} are missing{}",
            match copied.unseen {
                0 => String::new(),
                blocks => format!(", with the {} just begun", count(blocks, "block", "blocks")),
            }
        ));
    } else if copied.unseen > 0 {
        facts.push(format!("{} without an end, and skipped", count(copied.unseen, "block is", "blocks are")));
    }
    if copied.missing > 0 {
        facts.push(format!("{} of the pool not in the image", count(copied.missing, "block is", "blocks are")));
    }
    if copied.cut > 0 {
        facts.push(format!("{} in part, and cut there", count(copied.cut, "block is present", "blocks are present")));
    }
    for cpu in cpus.iter().filter(|cpu| cpu.is_claiming) {
        facts.push(format!("CPU {} stopped while it recorded an event: that event may be wrong", cpu.number));
    }
    facts
}

#[cfg(test)]
mod tests;
