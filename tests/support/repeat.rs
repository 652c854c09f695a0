// SPDX-License-Identifier: BSD-3-Clause
//! A long raw trace from a recorded one: its blocks again and again, each round later than the one before.
//!
//! The blocks are real; only the necessary parts change: counters move on by whole periods of the entries' 20 bits, so
//! that entries stay unchanged, sequence numbers continue, and checksums are computed again. If a round ends in another
//! thread than the next begins with, the CPU switches to that one.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem::offset_of;

use kutrace_format::abi::block::{self, FLAG_LOST, HEADER_WORDS};
use kutrace_format::abi::event::{self, argument_words};
use kutrace_format::abi::word;
use kutrace_format::file::{self, Header, Section, FLAG_IPC, FLAG_LLC, FLAG_WRAPPED};

use crate::sign;

/// A recorded trace, taken apart.
#[derive(Debug)]
pub struct Recorded {
    header: Header,
    /// The sections before the blocks, headers included.
    names: Vec<u8>,
    blocks: Vec<Block>,
    /// Counts by which each round is later.
    period: u64,
}

#[derive(Clone, Debug)]
struct Block {
    words: Vec<u32>,
    cpu: u32,
    /// Blocks of this CPU in a round.
    of_cpu: u64,
    /// The thread that the CPU must have switched to when a round ends, if this block is its last.
    before_next: Option<u32>,
}

impl Recorded {
    /// Takes a raw file of format 5 apart; `None` if it is not whole, or if its blocks carry counter bytes.
    pub fn new(bytes: &[u8]) -> Option<Recorded> {
        let header = Header::from_bytes(bytes.first_chunk()?)?;
        let (mut at, mut found) = (file::HEADER_BYTES, None);
        while let Some(head) = bytes.get(at..).and_then(|b| b.first_chunk()) {
            let section = Section::from_bytes(head);
            let payload = bytes.get(at + file::SECTION_BYTES..)?.get(..section.bytes as usize)?;
            if section.tag == file::BLOCKS {
                found = Some((at, payload));
                break;
            }
            at += file::SECTION_BYTES + payload.len();
        }
        let (end_of_names, payload) = found?;
        if header.lost > 0 || header.flags & (FLAG_IPC | FLAG_LLC | FLAG_WRAPPED) != 0 {
            return None;
        }
        let mut blocks: Vec<Block> = payload.chunks_exact(block::BYTES).map(Block::new).collect();
        if blocks.is_empty() || blocks.iter().any(|b| b.flags() & FLAG_LOST != 0) {
            return None;
        }
        join(&mut blocks);
        let end = blocks.iter().map(|b| b.long(END)).max()?.max(header.stop.tsc >> header.shift);
        let counts = end - (header.start.tsc >> header.shift) + 1;
        let period = counts.next_multiple_of(word::TIME_PERIOD);
        let names = bytes[file::HEADER_BYTES..end_of_names].to_vec();
        Some(Recorded { header, names, blocks, period })
    }

    /// Entries of one round.
    pub fn entries(&self) -> u64 {
        self.blocks.iter().map(|b| b.places().count() as u64).sum()
    }

    /// Writes a trace of as many rounds as give `entries` entries or more, and returns how many it has.
    ///
    /// # Errors
    /// Whatever error `out` returns.
    pub fn repeat(&self, entries: u64, out: &mut impl Write) -> io::Result<u64> {
        let rounds = entries.div_ceil(self.entries()).max(1);
        let blocks = rounds * self.blocks.len() as u64;
        out.write_all(&self.header(rounds))?;
        out.write_all(&self.names)?;
        let bytes = blocks * block::BYTES as u64;
        out.write_all(&Section { tag: file::BLOCKS, crc32: 0, bytes, items: blocks }.to_bytes())?;
        for round in 0..rounds {
            for block in &self.blocks {
                out.write_all(&block.later(round, round * self.period))?;
            }
        }
        Ok(rounds * self.entries())
    }

    fn header(&self, rounds: u64) -> [u8; file::HEADER_BYTES] {
        let Header { start, stop, shift, .. } = self.header;
        let more = ((rounds - 1) * self.period) << shift;
        let (counts, ns) = (stop.tsc - start.tsc, stop.monotonic_ns - start.monotonic_ns);
        let more_ns = (u128::from(more) * u128::from(ns) / u128::from(counts.max(1))) as u64;
        let mut header = Header { blocks: rounds * self.blocks.len() as u64, ..self.header };
        header.stop.tsc += more;
        header.stop.monotonic_ns += more_ns;
        header.stop.realtime_ns += more_ns;
        let mut bytes = header.to_bytes();
        let crc = crc32fast::hash(&bytes);
        bytes[file::CRC_AT..file::CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

const BEGIN: usize = offset_of!(block::Header, begin) / 4;
const END: usize = offset_of!(block::Header, end) / 4;
const CONTENT: usize = offset_of!(block::Header, content_bits) / 4;
const SEQUENCE: usize = offset_of!(block::Header, sequence) / 4;
const CPU: usize = offset_of!(block::Header, cpu) / 4;
const PID: usize = offset_of!(block::Header, pid) / 4;
const FLAGS: usize = offset_of!(block::Header, flags) / 4;

/// Words of a switch with what bridges the time before it: full time, scheduler, switch, return.
const SWITCH_WORDS: usize = event::FULL_TIME_WORDS + 4;

impl Block {
    fn new(bytes: &[u8]) -> Block {
        let mut words: Vec<u32> = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        let cpu = words[CPU];
        let content = u64::from(words[CONTENT]) / 32;
        words.truncate((content as usize).max(HEADER_WORDS));
        Block { words, cpu, of_cpu: 0, before_next: None }
    }

    fn long(&self, at: usize) -> u64 {
        u64::from(self.words[at]) | u64::from(self.words[at + 1]) << 32
    }

    fn flags(&self) -> u32 {
        self.words[FLAGS]
    }

    /// Places of the entries, without fillers.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let mut at = HEADER_WORDS;
        std::iter::from_fn(move || loop {
            let here = at;
            let event = word::event(*self.words.get(here)?);
            at += 1 + argument_words(event).unwrap_or_default();
            if event != event::NOP {
                return Some(here);
            }
        })
    }

    /// The thread that runs when the block ends.
    fn last_thread(&self) -> u32 {
        let switches = self.places().filter(|&at| word::event(self.words[at]) == event::SWITCH);
        switches.last().map_or(self.words[PID], |at| self.words[at + 1])
    }

    /// This block in another round: `counts` later.
    fn later(&self, round: u64, counts: u64) -> Vec<u8> {
        let mut words = self.words.clone();
        let full_times = self.places().filter(|&at| word::event(self.words[at]) == event::FULL_TIME).map(|at| at + 1);
        for at in full_times.chain([BEGIN, END]) {
            put(&mut words, at, self.long(at) + counts);
        }
        put(&mut words, SEQUENCE, self.long(SEQUENCE) + round * self.of_cpu);
        if let Some(pid) = self.before_next {
            let at = self.long(END) + counts;
            let room = words.len().min(block::WORDS - SWITCH_WORDS);
            words.truncate(self.places().map_while(|at| self.end_of(at, room)).last().unwrap_or(HEADER_WORDS));
            words.extend([word::entry(event::FULL_TIME, at), at as u32, (at >> 32) as u32]);
            words.extend([word::entry(event::SCHED, at), word::entry(event::SWITCH, at), pid]);
            words.push(word::entry(event::SCHED_RETURN, at));
            let bits = words.len() as u64 * 32;
            put(&mut words, CONTENT, bits);
        }
        words.resize(block::WORDS, 0);
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        sign(&mut bytes);
        bytes
    }

    /// End of the entry at `at`, if that is not beyond `room`.
    fn end_of(&self, at: usize, room: usize) -> Option<usize> {
        let end = at + 1 + argument_words(word::event(self.words[at])).unwrap_or_default();
        (end <= room).then_some(end)
    }
}

fn put(words: &mut [u32], at: usize, long: u64) {
    (words[at], words[at + 1]) = (long as u32, (long >> 32) as u32);
}

/// Returns for each CPU's last block the thread its first begins with, and for each block the number its CPU has.
fn join(blocks: &mut [Block]) {
    let mut cpus: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, block) in blocks.iter().enumerate() {
        cpus.entry(block.cpu).or_default().push(index);
    }
    for mut of_cpu in cpus.into_values() {
        of_cpu.sort_by_key(|&b| blocks[b].long(SEQUENCE));
        let first = blocks[of_cpu[0]].words[PID];
        let last = of_cpu[of_cpu.len() - 1];
        // The last switch of a CPU may be some blocks ago; the last block's header names that thread.
        blocks[last].before_next = Some(first).filter(|&pid| pid != blocks[last].last_thread());
        for &b in &of_cpu {
            blocks[b].of_cpu = of_cpu.len() as u64;
        }
    }
}
