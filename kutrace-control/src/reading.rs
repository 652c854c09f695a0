// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's own counters, read while a trace runs: the section with the expected numbers of events.
//!
//! Invariant: reading never fails; counters that this machine does not provide are skipped.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use kutrace_format::file::{Section, COUNTERS};
use kutrace_format::reading::{CounterFile, Reading, NOTHING, TRACEPOINT};

use crate::sys;

/// The inode of the first namespace of pids, whose numbers are in the trace.
const FIRST_PIDS: u64 = 0xefff_fffc;
/// Initial buffer for the text of a file, in bytes.
const ROOM: usize = 1 << 16;

/// Current values of the kernel's counters.
pub fn now() -> Vec<u8> {
    let mut all = Vec::new();
    // A kernel without such namespaces has one set of numbers.
    let has_first_pids = fs::metadata("/proc/self/ns/pid").ok().is_none_or(|found| found.ino() == FIRST_PIDS);
    for file in CounterFile::ALL.into_iter().filter(|file| *file != CounterFile::Loadavg || has_first_pids) {
        let Ok((before, text, after)) = read(file) else { continue };
        let reading = Reading { file: file as u16, before, after, text: &text };
        all.extend_from_slice(&reading.head());
        all.extend_from_slice(&text);
    }
    all
}

/// A file's text, with the TSC before and after reading it.
fn read(file: CounterFile) -> io::Result<(u64, Vec<u8>, u64)> {
    let (mut opened, mut text) = (File::open(file.path())?, Vec::with_capacity(ROOM));
    let before = sys::tsc();
    opened.read_to_end(&mut text)?;
    Ok((before, text, sys::tsc()))
}

/// The section of a file with these readings; empty if there are none.
pub fn section(readings: &[u8]) -> Vec<u8> {
    let counted = counted(readings);
    let items = all(&counted).count() as u64;
    if items == 0 {
        return Vec::new();
    }
    let (crc32, bytes) = (crc32fast::hash(&counted), counted.len() as u64);
    [&Section { tag: COUNTERS, crc32, bytes, items }.to_bytes()[..], &counted].concat()
}

/// Like [`section`], padded as if the readings had `bytes` bytes, which is more.
pub fn filled_section(readings: &[u8], bytes: usize) -> Vec<u8> {
    let counted = counted(readings);
    if counted.is_empty() {
        return counted;
    }
    let blanks = vec![b' '; bytes.saturating_sub(counted.len())];
    let rest = Reading { file: NOTHING, before: 0, after: 0, text: &blanks };
    section(&[&counted, &rest.head()[..], &blanks].concat())
}

/// The kernel's counters among the data left with a trace.
pub fn counted(left: &[u8]) -> Vec<u8> {
    let of = all(left).filter(|reading| reading.file != TRACEPOINT);
    of.flat_map(|reading| [&reading.head()[..], reading.text].concat()).collect()
}

/// The first of these readings that was taken when a counter had this value or later; the first of all if there is
/// none.
pub fn first_from<'a>(taken: &[&'a [u8]], tsc: u64) -> &'a [u8] {
    let is_later = |readings: &&&[u8]| {
        let mut times = all(readings).map(|reading| reading.before).peekable();
        times.peek().is_some() && times.all(|before| before >= tsc)
    };
    taken.iter().find(is_later).or(taken.first()).copied().unwrap_or_default()
}

fn all(mut rest: &[u8]) -> impl Iterator<Item = Reading<'_>> {
    std::iter::from_fn(move || {
        let (reading, after) = Reading::split(rest)?;
        rest = after;
        Some(reading)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::file::SECTION_BYTES;
    use kutrace_format::reading::HEAD_BYTES;

    #[test]
    fn a_recording_begins_with_the_first_reading_that_it_has_whole() {
        let reading = |before: u64, text: &'static [u8]| {
            [&Reading { file: CounterFile::Stat as u16, before, after: before + 5, text }.head()[..], text].concat()
        };
        let tracepoint = Reading { file: TRACEPOINT, before: 0, after: 0, text: b"name" };
        let go = counted(&[&reading(10, b"at go")[..], &tracepoint.head(), b"name"].concat());
        assert_eq!(go, reading(10, b"at go"));
        let (second, third) = ([reading(20, b"a"), reading(22, b"b")].concat(), reading(30, b"a longer one"));
        let taken = [&go[..], &second, &third];
        for (tsc, expected) in
            [(0, &go), (10, &go), (11, &second), (20, &second), (21, &third), (30, &third), (31, &go)]
        {
            assert_eq!(first_from(&taken, tsc), expected, "{tsc}");
        }
        // No reading was taken at the start.
        assert_eq!(first_from(&[b"", &second], 0), second);
        let sizes = taken.map(|readings| filled_section(readings, 100).len());
        assert_eq!(sizes, [SECTION_BYTES + 100 + HEAD_BYTES; 3]);
        assert!(filled_section(&[], 100).is_empty());
    }

    #[test]
    fn this_machine_counts_between_two_times() {
        let readings = now();
        let mut rest = &readings[..];
        let mut files = Vec::new();
        let mut last = 0;
        while let Some((reading, after)) = Reading::split(rest) {
            assert!(last <= reading.before && reading.before < reading.after, "{reading:?}");
            (last, rest) = (reading.after, after);
            files.push(reading.of().unwrap());
        }
        assert!(rest.is_empty() && files.contains(&CounterFile::Stat), "{files:?}");
        let section = section(&readings);
        let head = Section::from_bytes(section[..32].try_into().unwrap());
        assert_eq!((head.tag, head.items, head.bytes), (COUNTERS, files.len() as u64, readings.len() as u64));
        assert!(super::section(&[]).is_empty());
    }
}
