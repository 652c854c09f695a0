// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's own counters, read while a trace runs: the section that says how many events there must be.
//!
//! Invariant: reading never fails; what this machine does not tell is left out.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use kutrace_format::file::{Section, COUNTERS};
use kutrace_format::reading::{CounterFile, Reading, TRACEPOINT};

use crate::sys;

/// The inode of the first namespace of pids, whose numbers are in the trace.
const FIRST_PIDS: u64 = 0xefff_fffc;
/// Bytes that are read of a file at once.
const ROOM: usize = 1 << 16;

/// What the kernel's counters say now.
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

/// A file's text, between two times.
fn read(file: CounterFile) -> io::Result<(u64, Vec<u8>, u64)> {
    let (mut opened, mut text) = (File::open(file.path())?, Vec::with_capacity(ROOM));
    let before = sys::tsc();
    opened.read_to_end(&mut text)?;
    Ok((before, text, sys::tsc()))
}

/// The section of a file that has these readings; nothing if there are none.
pub fn section(readings: &[u8]) -> Vec<u8> {
    let (mut items, mut counted) = (0, Vec::new());
    let mut rest = readings;
    while let Some((reading, after)) = Reading::split(rest) {
        if reading.file != TRACEPOINT {
            counted.extend_from_slice(&rest[..rest.len() - after.len()]);
            items += 1;
        }
        rest = after;
    }
    if items == 0 {
        return Vec::new();
    }
    let (crc32, bytes) = (crc32fast::hash(&counted), counted.len() as u64);
    [&Section { tag: COUNTERS, crc32, bytes, items }.to_bytes()[..], &counted].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

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
