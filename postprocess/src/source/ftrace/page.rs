// SPDX-License-Identifier: BSD-3-Clause
//! The pages of a CPU's ring buffer, as the kernel gives them: a time, the number of bytes, and records, each with the
//! time since the one before it.

use std::ops::Range;

use crate::merge::When;

/// Bytes before the records of a page: its time, and the number of bytes in it.
const HEAD: usize = 16;
/// Bits of the number of bytes of a page's records, in its second long.
pub const COMMIT: u64 = (1 << 27) - 1;
/// Flags next to it: events are missing before the page, and their number is after its records.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Kinds of records without contents of their own: unused bytes, a longer time since the last, the time itself. Smaller
/// numbers are that of the words of the contents, or 0 for a length in the first word.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time in a record's head, and in a record of the time itself with the word after it.
const DELTA: u32 = 27;
const STAMP: u32 = 59;

/// A record; without contents, this many events are missing here, 0 if that is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Time, of the recording's clock.
    pub at: u64,
    /// Contents of the record.
    pub contents: Option<&'a [u8]>,
    /// Number of missing events.
    pub lost: u64,
}

impl When for Part<'_> {
    type Time = u64;

    fn when(&self) -> u64 {
        self.at
    }
}

/// The parts of a CPU's pages.
#[derive(Clone, Debug)]
pub struct Pages<'a> {
    /// The CPU.
    pub cpu: u32,
    /// Number of pages that were left before their end.
    pub damaged: u64,
    bytes: &'a [u8],
    /// Start of the next page, and the size of each.
    next: usize,
    size: usize,
    /// The records that are left of this page.
    records: Range<usize>,
    now: u64,
    /// Time of the last part: none is earlier.
    last: u64,
}

impl<'a> Pages<'a> {
    /// The pages of a CPU, each of `size` bytes.
    pub fn new(cpu: u32, bytes: &'a [u8], size: usize) -> Pages<'a> {
        Pages { cpu, damaged: 0, bytes, next: 0, size: size.max(HEAD), records: 0..0, now: 0, last: 0 }
    }

    /// True if no page but the first was begun.
    pub fn is_first(&self) -> bool {
        self.next <= self.size
    }

    /// Times at which the pages begin.
    pub fn begins(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.bytes.chunks_exact(self.size).map(|page| long(page, 0).unwrap_or_default())
    }

    /// Only these pages.
    pub fn only(&self, pages: Range<usize>) -> Pages<'a> {
        let place = self.size * pages.start..self.size * pages.end;
        Pages::new(self.cpu, self.bytes.get(place).unwrap_or_default(), self.size)
    }

    /// Begins the next page: `None` at the end, else the part for events that are missing before it.
    fn page(&mut self) -> Option<Option<Part<'a>>> {
        let (start, end) = (self.next, self.next.checked_add(self.size)?);
        let page = self.bytes.get(start..end)?;
        self.next = end;
        let (time, commit) = (long(page, 0)?, long(page, 8)?);
        let used = (commit & COMMIT) as usize;
        self.records = start + HEAD..(start + HEAD).saturating_add(used).min(end);
        self.damaged += u64::from(used > self.size - HEAD);
        self.now = time;
        let count = match commit & MISSED_STORED {
            0 => 0,
            _ => long(page, self.records.end - start).unwrap_or(0),
        };
        Some((commit & MISSED != 0).then(|| self.part(None, count)))
    }

    fn part(&mut self, contents: Option<&'a [u8]>, lost: u64) -> Part<'a> {
        self.last = self.last.max(self.now);
        Part { at: self.last, contents, lost }
    }

    /// The next record of this page; `None` at its end.
    fn record(&mut self) -> Option<Part<'a>> {
        while let Some(head) = self.word(self.records.start) {
            let (kind, delta) = (head & 0x1f, head >> 5);
            let first = self.word(self.records.start + 4);
            let (skipped, before) = match kind {
                PADDING if delta == 0 => return None,
                PADDING => (4 + first? as usize, None),
                TIME_EXTEND | TIME_STAMP => (8, None),
                0 => (4 + first? as usize, Some(8)),
                words => (4 + 4 * words as usize, Some(4)),
            };
            let from = self.records.start;
            let next = from.saturating_add(skipped.next_multiple_of(4));
            if next > self.records.end {
                self.damaged += 1;
                self.records = 0..0;
                return None;
            }
            self.records.start = next;
            self.now = match kind {
                TIME_EXTEND => self.now.wrapping_add(u64::from(first?) << DELTA | u64::from(delta)),
                TIME_STAMP => stamped(self.now, u64::from(first?) << DELTA | u64::from(delta)),
                _ => self.now.wrapping_add(delta.into()),
            };
            let contents = before.and_then(|before| self.bytes.get(from + before..from + skipped));
            if let Some(contents) = contents.filter(|contents| !contents.is_empty()) {
                return Some(self.part(Some(contents), 0));
            }
        }
        None
    }

    /// A word of the records.
    fn word(&self, at: usize) -> Option<u32> {
        let rest = self.bytes.get(at..self.records.end)?;
        Some(u32::from_le_bytes(*rest.first_chunk()?))
    }
}

fn long(page: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*page.get(at..)?.first_chunk()?))
}

/// A time of which a record has the lower bits.
fn stamped(before: u64, bits: u64) -> u64 {
    let time = before >> STAMP << STAMP | bits;
    if time < before && bits != 0 {
        time.wrapping_add(1 << STAMP)
    } else {
        time
    }
}

impl<'a> Iterator for Pages<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        loop {
            if let Some(part) = self.record() {
                return Some(part);
            }
            if let Some(missed) = self.page()? {
                return Some(missed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(time: u64, flags: u64, records: &[u32]) -> Vec<u8> {
        let mut page = [time, flags | (records.len() as u64 * 4)].map(u64::to_le_bytes).concat();
        page.extend(records.iter().flat_map(|word| word.to_le_bytes()));
        page.resize(64, 0);
        page
    }

    fn parts(pages: &[Vec<u8>]) -> (Vec<(u64, usize, u64)>, u64) {
        let bytes = pages.concat();
        let mut pages = Pages::new(3, &bytes, 64);
        let length = |part: Part| part.contents.map_or(0, <[u8]>::len);
        let parts = pages.by_ref().map(|part| (part.at, length(part), part.lost)).collect();
        (parts, pages.damaged)
    }

    const fn head(kind: u32, delta: u32) -> u32 {
        kind | delta << 5
    }

    #[test]
    fn records_have_the_time_since_the_one_before() {
        let first = page(1_000, 0, &[head(1, 5), 7, head(0, 2), 12, 8, 9, head(TIME_EXTEND, 1), 1, head(2, 0), 1, 2]);
        let second = page(1 << 40, 0, &[head(TIME_STAMP, 3), 1 << 20, head(1, 1), 7, head(PADDING, 0), 1]);
        let long = 1_008 + (1 << 27);
        let stamp = (1 << 47) + 3;
        assert_eq!(parts(&[first, second]), (vec![(1_005, 4, 0), (1_007, 8, 0), (long, 8, 0), (stamp + 1, 4, 0)], 0));
    }

    #[test]
    fn events_that_are_missing_before_a_page_are_a_part() {
        let mut counted = page(20, MISSED | MISSED_STORED, &[head(1, 1), 7]);
        counted[24..32].copy_from_slice(&12u64.to_le_bytes());
        let unknown = page(30, MISSED, &[head(1, 1), 7]);
        assert_eq!(parts(&[counted, unknown]), (vec![(20, 0, 12), (21, 4, 0), (30, 0, 0), (31, 4, 0)], 0));
    }

    #[test]
    fn a_damaged_page_ends_where_it_makes_no_sense() {
        let over = page(10, 0, &[head(1, 1), 7, head(20, 1), 7]);
        let mut long = page(20, 0, &[head(1, 1), 7]);
        long[8] = 0xff;
        assert_eq!(parts(&[over, long, page(5, 0, &[head(1, 1), 7])]).1, 2);
        let bytes: Vec<u8> = (0..=255).cycle().take(64 * 100).map(|n: u8| n.wrapping_mul(37)).collect();
        assert!(Pages::new(0, &bytes, 64).count() > 0);
    }
}
