// SPDX-License-Identifier: BSD-3-Clause
//! Dump: the words of a raw file, unprocessed, for readers who know the format.
//!
//! ```text
//! block 0 at 10a8  cpu 1  2026-11-20_15:14:00.000001  sequence 0  lost 0  pid 66 bash
//! 00001128  2f3a1.200 _00000042  2f3b0.fff 2f3c2.86e _80010000
//! ```
//! A line is 32 bytes, with its offset in the file. An entry is `time.event`; a word after `_` belongs to the entry
//! before it, one after `?` is invalid. In the original's files an entry is `time.` and the rest of its word.

use std::io::{self, Write};

use byteorder::{ByteOrder, LittleEndian};
use kutrace_format::abi::{block, event, word};
use kutrace_format::flag;

use crate::event::date;
use crate::raw::clock::Clock;
use crate::raw::damage::NotATrace;
use crate::raw::file;
use crate::raw::original::block as entry;
use crate::source;

/// Number of bytes in a line.
const LINE: usize = 32;

/// Writes the words of a raw trace of any format, damaged or not.
///
/// # Errors
/// If `bytes` are not a raw trace; inside, whatever error `out` returns.
pub fn write(bytes: &[u8], out: &mut impl Write) -> Result<io::Result<()>, NotATrace> {
    match source::is_original(bytes) {
        true => Ok(original(bytes, out)),
        false => Ok(format_5(&file::split(bytes)?, out)),
    }
}

/// Writes the contents of a raw file of format 5, damaged or not.
fn format_5(layout: &file::Layout, out: &mut impl Write) -> io::Result<()> {
    let header = &layout.header;
    let clock = Clock::new(header).0;
    let (flags, shift, rate, cpus) = (header.flags, header.shift, header.tsc_hz, header.cpus);
    writeln!(out, "file  flags {flags}  shift {shift}  tsc_hz {rate}  cpus {cpus}  lost {}", header.lost)?;
    for (what, moment) in [("start", header.start), ("stop", header.stop)] {
        writeln!(out, "{what}  tsc {}  realtime_ns {}", moment.tsc, moment.realtime_ns)?;
    }
    for name in &layout.names {
        let text = name.text.escape_ascii();
        writeln!(out, "name {:03x}  {} {}  {text}", name.kind, name.number, name.second)?;
    }
    for (index, &(offset, bytes)) in layout.blocks.iter().enumerate() {
        let word = |at| LittleEndian::read_u32(&bytes[at..]);
        let long = |at| LittleEndian::read_u64(&bytes[at..]);
        let time = time(clock.base, clock.units(long(24)).0);
        let (cpu, sequence, lost, pid) = (word(72), long(56), long(64), word(76));
        let comm = bytes[88..104].split(|&c| c == 0).next().unwrap_or_default().escape_ascii();
        let back = if word(104) & block::FLAG_BACK != 0 { "  the clock stepped back" } else { "" };
        writeln!(
            out,
            "block {index} at {offset:x}  cpu {cpu}  {time}  sequence {sequence}  lost {lost}  pid {pid} {comm}{back}"
        )?;
        let content = usize::try_from(long(40) / 8).unwrap_or(usize::MAX);
        let words = &bytes[block::HEADER_WORDS * 4..content.clamp(block::HEADER_WORDS * 4, bytes.len())];
        entries(offset + block::HEADER_WORDS * 4, words, out)?;
    }
    Ok(())
}

/// Writes entries of four bytes, each with as many words as its event number has.
fn entries(offset: usize, words: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut behind = Some(0);
    for (n, bytes) in words.chunks_exact(4).enumerate() {
        begin(offset, n * 4, out)?;
        let entry = LittleEndian::read_u32(bytes);
        match behind {
            None => write!(out, " ?{entry:08x}")?,
            Some(0) => {
                behind = event::argument_words(word::event(entry));
                write!(out, " {:05x}.{:03x}", word::time(entry), word::event(entry))?;
            }
            Some(more) => {
                behind = Some(more - 1);
                write!(out, " _{entry:08x}")?;
            }
        }
    }
    writeln!(out)
}

/// Starts a new line if the last one is full.
fn begin(offset: usize, at: usize, out: &mut impl Write) -> io::Result<()> {
    if !at.is_multiple_of(LINE) {
        return Ok(());
    }
    if at > 0 {
        writeln!(out)?;
    }
    write!(out, "{:08x} ", offset + at)
}

/// Writes words of eight bytes of the original's blocks, and the counters that follow a block with counters.
fn original(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    const COUNTERS: usize = block::BYTES / 8;
    let mut at = 0;
    for index in 0.. {
        let Some(words) = bytes.get(at..at + block::BYTES) else { break };
        let long = |n: usize| LittleEndian::read_u64(&words[n * 8..]);
        let (cpu, flags) = (long(0) >> 56, long(1) >> 56);
        let usec = (long(1) & ((1 << 56) - 1)) as i64;
        let header = if index == 0 { 12 } else { 6 };
        let (pid, time) = (long(header - 4) as u32, time(usec / 1_000_000, usec % 1_000_000 * 100));
        writeln!(out, "block {index} at {at:x}  cpu {cpu}  {time}  flags {flags:02x}  pid {pid}")?;
        original_entries(at + header * 8, &words[header * 8..], out)?;
        at += block::BYTES + if flags as u32 & flag::COUNTERS == 0 { 0 } else { COUNTERS };
    }
    Ok(())
}

/// Writes entries of eight bytes and, after names and samples, their words. Lines of zeros are skipped.
fn original_entries(offset: usize, words: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut behind = 0;
    for (n, line) in words.chunks(LINE).enumerate().filter(|(_, line)| line.iter().any(|&b| b != 0)) {
        write!(out, "{:08x} ", offset + n * LINE)?;
        for word in line.chunks_exact(8).map(LittleEndian::read_u64) {
            if behind > 0 {
                behind -= 1;
                write!(out, " _{word:016x}")?;
                continue;
            }
            behind = entry::words_behind(entry::event(word));
            write!(out, " {:05x}.{:011x}", word >> 44, word & 0xfff_ffff_ffff)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Formats a time of day, UTC, `units` of 10 ns after `base` in Unix seconds.
fn time(base: i64, units: i64) -> String {
    let (seconds, part) = (units.div_euclid(100_000_000), units.rem_euclid(100_000_000) / 100);
    format!("{}.{part:06}", date::utc(base.saturating_add(seconds)))
}
