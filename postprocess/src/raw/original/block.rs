// SPDX-License-Identifier: BSD-3-Clause
//! One block of the original's: its header, and its words as entries.
//!
//! ```text
//! word 0  cpu 8 | counter at the start 56        the first block of a file has six words more here:
//!      1  flags 8 | usec since 1970 56           2 start counter  3 start usec  4 stop counter  5 stop usec  6, 7 zero
//!      2  MHz 32 | pid 32
//!      3  zero
//!   4, 5  name of the thread
//!      6  entries
//!
//!  63            44 43        32 31     24 23     16 15            0
//! |    time 20     |  event 12  | dur 8   | return 8|    arg 16    |   calls
//! |    time 20     |  event 12  |             arg 32               |   everything else
//! ```

use byteorder::{ByteOrder, LittleEndian};

use kutrace_format::abi::event::original::{NAMES, NAMES_LAST, PC_OLD, TIMEPAIR};
use kutrace_format::abi::event::NAME_LENGTH;
use kutrace_format::abi::user::WORDS;

use super::Record;
use crate::event::fact::Fact;
use crate::event::number;
use crate::id::CpuId;

/// Bytes of a block without its counters.
pub const BYTES: usize = 65536;
/// Bytes of counters after a block, one for each word.
pub const COUNTER_BYTES: usize = BYTES / 8;
/// The first words of the first block of a file, up to the words that all blocks have.
const FILE_WORDS: usize = 6;
/// Words of a block header.
const HEADER_WORDS: usize = 6;
/// A word after which the rest of the block is not used.
const ABANDONED: u64 = u64::MAX;
/// Time and event of a word that is not used.
const HOLE: u64 = u64::MAX >> 32;

/// A block.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Index in the file.
    pub index: usize,
    /// Byte offset in the file.
    pub offset: usize,
    /// CPU that recorded it.
    pub cpu: CpuId,
    /// Counter at its start.
    pub begin: u64,
    /// Thread running at its start.
    pub pid: u32,
    /// Frequency at its start in MHz, 0 if unknown.
    pub mhz: u32,
    /// Name of that thread.
    pub comm: &'a [u8],
    /// True if the file ends inside it.
    pub cut: bool,
    first: usize,
    words: &'a [u8],
    counters: &'a [u8],
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Low 20 bits of the counter.
    pub time: u64,
    /// Event number; for a name, with its length.
    pub event: u32,
    /// The low half of its first word.
    pub arg: u32,
    /// The words after the first.
    pub payload: &'a [u8],
    /// Its counter byte.
    pub counter: u8,
}

/// Reason why the entries of a block end before the block does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Senseless {
    /// Place, in bytes from the start of the file.
    pub offset: usize,
    /// Content found there.
    pub fact: String,
}

impl<'a> Block<'a> {
    /// The block of these bytes, which may be cut short; `None` if its header is.
    pub fn new(index: usize, offset: usize, bytes: &'a [u8]) -> Option<Block<'a>> {
        let (words, counters) = bytes.split_at(bytes.len().min(BYTES) & !7);
        let head = if index == 0 { FILE_WORDS } else { 0 };
        let first = head + HEADER_WORDS;
        if words.len() < first * 8 {
            return None;
        }
        let word = |n: usize| LittleEndian::read_u64(&words[n * 8..]);
        Some(Block {
            index,
            offset,
            cpu: CpuId::new((word(0) >> 56) as u32),
            begin: counter(word(0)),
            pid: word(head + 2) as u32,
            mhz: (word(head + 2) >> 32) as u32,
            comm: text(&words[(head + 4) * 8..first * 8]),
            cut: words.len() < BYTES,
            first,
            words,
            counters,
        })
    }

    /// The entries in the order they were claimed.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, Senseless>> {
        let block = *self;
        let mut at = block.first;
        std::iter::from_fn(move || loop {
            let head = LittleEndian::read_u64(block.words.get(at * 8..at * 8 + 8)?);
            match head {
                ABANDONED => return None,
                0 => at += 1,
                _ if head >> 32 == HOLE => at += 1,
                _ => {
                    let entry = block.entry(at, head);
                    at = entry.as_ref().map_or(block.words.len(), |e| at + 1 + e.payload.len() / 8);
                    return Some(entry);
                }
            }
        })
    }

    fn entry(&self, at: usize, head: u64) -> Result<Entry<'a>, Senseless> {
        let event = event(head);
        let senseless = |fact| Senseless { offset: self.offset + at * 8, fact };
        let Some(words) = words(event) else {
            return Err(senseless(format!("event number {event:#05x} has an impossible length")));
        };
        let Some(payload) = self.words.get(at * 8 + 8..(at + words) * 8) else {
            return Err(senseless(format!("an entry of event {event:#05x} is cut short")));
        };
        let counter = self.counters.get(at).copied().unwrap_or(0);
        Ok(Entry { time: head >> 44, event, arg: head as u32, payload, counter })
    }
}

impl<'a> Entry<'a> {
    /// The name record; `None` for any other entry, and for a name without text.
    pub fn name(&self) -> Option<Record<'a>> {
        self.record().filter(|(kind, ..)| Fact::is_name(*kind))
    }

    /// True if it looks like a name record, but of a kind that names nothing.
    pub fn is_strange(&self) -> bool {
        self.record().is_some_and(|(kind, ..)| !Fact::is_name(kind))
    }

    fn record(&self) -> Option<Record<'a>> {
        let text = text(self.payload);
        let is_name = (NAMES..=NAMES_LAST).contains(&self.event) && !matches!(self.event, PC_OLD | TIMEPAIR);
        (is_name && !text.is_empty()).then_some((self.event & !NAME_LENGTH, self.arg, text))
    }
}

/// The low 56 bits, which hold the counter or the time in a header.
pub fn counter(word: u64) -> u64 {
    word & u64::MAX >> 8
}

/// The bytes before the zeros that fill the last word.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|&c| c == 0).next().unwrap_or_default()
}

/// The event number of an entry's first word.
pub fn event(head: u64) -> u32 {
    (head >> 32) as u32 % number::NUMBERS
}

/// Number of words of an entry, if it is possible.
fn words(event: u32) -> Option<usize> {
    match event {
        NAMES..=NAMES_LAST if event & NAME_LENGTH == 0 => None,
        _ => Some(1 + words_behind(event)).filter(|words| *words <= WORDS),
    }
}

/// Number of words after the first. The length of a name is the middle digit of its number; a sample has a word for its
/// PC.
pub fn words_behind(event: u32) -> usize {
    match event {
        PC_OLD | number::PC_USER | number::PC_KERNEL => 1,
        NAMES..=NAMES_LAST => ((event & NAME_LENGTH) >> NAME_LENGTH.trailing_zeros()).saturating_sub(1) as usize,
        _ => 0,
    }
}
