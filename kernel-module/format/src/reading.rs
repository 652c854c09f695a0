// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Readings of the kernel's own counters while a trace ran: the payload of the section [`crate::file::COUNTERS`].
//!
//! ```text
//! reading:  0 file u16   2 zero u16   4 text bytes u32   8 before u64   16 after u64   24 text
//! ```
//!
//! A reading is the whole text of one of the kernel's files, and the TSC right before and right after it was read. The
//! first reading of each file is from the start of the trace, the last from its end.

/// Most bytes that the recorder keeps of readings.
pub const READINGS_MAX: usize = 4 << 20;

/// Bytes before the text of a reading.
pub const HEAD_BYTES: usize = 24;

/// [`Reading::file`] of no file: its text only fills a section up.
pub const NOTHING: u16 = 0;

/// [`Reading::file`] of other data that is left with a trace, and that becomes a name of its file: the description of
/// the tracepoint whose place among those chosen is [`Reading::before`].
pub const TRACEPOINT: u16 = 0x100;

/// A file of the kernel that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum CounterFile {
    /// /proc/interrupts.
    Interrupts = 1,
    /// /proc/softirqs.
    Softirqs = 2,
    /// /proc/stat.
    Stat = 3,
    /// /proc/vmstat.
    Vmstat = 4,
    /// /proc/loadavg, whose last number is the last pid that was given.
    Loadavg = 5,
}

impl CounterFile {
    /// All of them, in the order in which they are read.
    pub const ALL: [CounterFile; 5] =
        [CounterFile::Loadavg, CounterFile::Interrupts, CounterFile::Softirqs, CounterFile::Stat, CounterFile::Vmstat];

    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            CounterFile::Interrupts => "/proc/interrupts",
            CounterFile::Softirqs => "/proc/softirqs",
            CounterFile::Stat => "/proc/stat",
            CounterFile::Vmstat => "/proc/vmstat",
            CounterFile::Loadavg => "/proc/loadavg",
        }
    }
}

/// One reading, borrowed from the section's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading<'a> {
    /// Number of the file; see [`CounterFile`].
    pub file: u16,
    /// The TSC before it was read.
    pub before: u64,
    /// The TSC after that.
    pub after: u64,
    /// Its text.
    pub text: &'a [u8],
}

impl<'a> Reading<'a> {
    /// The bytes before the text. The caller cuts text of 4 GiB or more.
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..2].copy_from_slice(&self.file.to_le_bytes());
        bytes[4..8].copy_from_slice(&(self.text.len() as u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.before.to_le_bytes());
        bytes[16..].copy_from_slice(&self.after.to_le_bytes());
        bytes
    }

    /// Reads the reading at the start of `payload` and what follows it; `None` if it is cut short.
    pub fn split(payload: &'a [u8]) -> Option<(Reading<'a>, &'a [u8])> {
        let (head, rest) = payload.split_at_checked(HEAD_BYTES)?;
        let long = |at: usize| head.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let first = long(0)?;
        let (text, rest) = rest.split_at_checked((first >> 32) as usize)?;
        Some((Reading { file: first as u16, before: long(8)?, after: long(16)?, text }, rest))
    }

    /// The file it is of, if that is known.
    pub fn of(&self) -> Option<CounterFile> {
        CounterFile::ALL.into_iter().find(|file| *file as u16 == self.file)
    }
}
