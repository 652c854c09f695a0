// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Reading what a program recorded into its area: of a copy, since the program may still write. Nothing is trusted.
//!
//! A section [`crate::file::PROGRAM`] holds one process:
//!
//! ```text
//! 0 serial u32   4 tgid u32   8 grants u32   12 zero u32   16 refused u64   24 bytes of the area u64   32 comm [16]
//! 48 grants of 32 bytes, then the area
//! ```

use crate::abi::programs::{kind, name, payload, BEGIN, END, FULL_TIME, MARK, NAME_MAX, NAME_OPEN, OPEN, VALUE};

/// Bytes of the head of the section.
pub const HEAD_BYTES: usize = 48;
/// Bytes of a grant.
pub const GRANT_BYTES: usize = 32;

/// An entry of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, whole TSC.
    pub tsc: u64,
    /// [`MARK`], [`BEGIN`], [`END`] or [`VALUE`].
    pub kind: u32,
    /// The number of its name.
    pub name: u32,
    /// What a [`VALUE`] is, else 0.
    pub value: i64,
}

/// The entries of a grant, in the order in which they were recorded. Time never goes back among them.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
    /// Time of the last entry.
    last: u64,
    /// Entries that were being written when the program ended or the copy was made.
    pub unfinished: u32,
    /// Words that no library wrote.
    pub strange: u32,
}

impl<'a> Entries<'a> {
    /// Those of a grant whose bytes these are, granted at `tsc`.
    pub fn new(words: &'a [u8], tsc: u64) -> Entries<'a> {
        Entries { rest: words, last: tsc, unfinished: 0, strange: 0 }
    }

    /// The next `words` words.
    fn take(&mut self, words: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(8 * words)?;
        self.rest = rest;
        Some(head)
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let word = number(self.take(1)?);
            if word == 0 {
                continue;
            }
            let Some(values) = self.take(payload(word)) else {
                self.strange += 1;
                self.rest = &[];
                return None;
            };
            if word & OPEN != 0 {
                self.unfinished += 1;
                continue;
            }
            let step = (word as u32).wrapping_sub(self.last as u32) as i32;
            let tsc = self.last.saturating_add(step.max(0) as u64);
            match (kind(word), values.len() / 8) {
                // The kernel says when the grant was made, so nothing in it is earlier.
                (FULL_TIME, 1) if number(values) >= self.last => self.last = number(values),
                (MARK | BEGIN | END, 0) | (VALUE, 1) => {
                    self.last = tsc;
                    let value = if values.is_empty() { 0 } else { number(values) as i64 };
                    return Some(Entry { tsc, kind: kind(word), name: name(word), value });
                }
                _ => self.strange += 1,
            }
        }
    }
}

/// The name of this number in an area; `None` if there is none, or it was being written.
pub fn name_at(area: &[u8], number: u32) -> Option<&[u8]> {
    let at = usize::try_from(number).ok()?.checked_mul(8)?;
    let head = area.get(at..at.checked_add(2)?)?;
    let len = u16::from_le_bytes([head[0], head[1]]);
    if len & NAME_OPEN != 0 || len == 0 || usize::from(len) > NAME_MAX {
        return None;
    }
    area.get(at + 2..at + 2 + usize::from(len))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
