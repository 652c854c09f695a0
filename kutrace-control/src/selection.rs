// SPDX-License-Identifier: BSD-3-Clause
//! Which blocks of the pool belong to the trace, and in which order they go to the file.
//!
//! Invariant: of every header only what is checked here is believed; no content makes this fail.

use std::collections::HashMap;
use std::fmt;
use std::mem::offset_of;

use kutrace_format::abi::block::{Header, BYTES, HEADER_WORDS, MAGIC};

/// The blocks to write, and what was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// In the order of their begin.
    pub blocks: Vec<Choice>,
    /// Anything that should not be.
    pub findings: Vec<Finding>,
}

/// A block of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    /// Counter when it was begun.
    pub begin: u64,
    /// Its CPU.
    pub cpu: u32,
    /// Its number among its CPU's.
    pub sequence: u64,
    /// Its place in the pool.
    pub index: usize,
    /// Bytes used, header included; whole words.
    pub content: usize,
}

/// Whether a CPU's blocks must be there from the first on, or may have been overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recycling {
    /// Every block is kept.
    Never,
    /// The oldest are gone.
    Oldest,
}

/// A fault in the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A block without an end: left out.
    Size {
        /// Its place in the pool.
        index: usize,
        /// Its CPU.
        cpu: u32,
        /// The bits it claims.
        bits: u64,
    },
    /// In the order of begin, this block of the CPU came where `expected` or a later one should.
    Order {
        /// The CPU.
        cpu: u32,
        /// The number found.
        found: u64,
        /// The lowest number possible here.
        expected: u64,
    },
    /// Blocks from `first` up to `next` are not in the pool.
    Missing {
        /// The CPU.
        cpu: u32,
        /// The first missing number.
        first: u64,
        /// The next number found.
        next: u64,
    },
}

impl Selection {
    /// Selects from a pool of whole blocks.
    pub fn of(pool: &[u8], recycling: Recycling) -> Selection {
        let mut selection = Selection::default();
        for (index, block) in pool.chunks_exact(BYTES).enumerate() {
            if u32_at(block, offset_of!(Header, magic)) == MAGIC {
                selection.add(index, block);
            }
        }
        selection.blocks.sort_unstable();
        selection.check_order(recycling);
        selection
    }

    fn add(&mut self, index: usize, block: &[u8]) {
        let cpu = u32_at(block, offset_of!(Header, cpu));
        let bits = u64_at(block, offset_of!(Header, content_bits));
        let content = (bits / 8) as usize;
        if !bits.is_multiple_of(32) || !(HEADER_WORDS * 4..=BYTES).contains(&content) {
            self.findings.push(Finding::Size { index, cpu, bits });
            return;
        }
        let begin = u64_at(block, offset_of!(Header, begin));
        let sequence = u64_at(block, offset_of!(Header, sequence));
        self.blocks.push(Choice { begin, cpu, sequence, index, content });
    }

    /// Per CPU, the order of begin is the order of sequence numbers, none is twice, and none is missing
    /// unless the recorder recycles.
    fn check_order(&mut self, recycling: Recycling) {
        let mut expected = HashMap::<u32, u64>::new();
        for block in &self.blocks {
            let expected = expected.entry(block.cpu).or_default();
            let (cpu, found) = (block.cpu, block.sequence);
            if found < *expected {
                self.findings.push(Finding::Order { cpu, found, expected: *expected });
                continue;
            }
            if found > *expected && recycling == Recycling::Never {
                self.findings.push(Finding::Missing { cpu, first: *expected, next: found });
            }
            *expected = found.saturating_add(1);
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Size { index, cpu, bits } => {
                write!(f, "block {index} of the pool, CPU {cpu}: a content of {bits} bits cannot be; left out")
            }
            Finding::Order { cpu, found, expected } => {
                write!(f, "CPU {cpu}: block {found} begins where block {expected} or a later one should")
            }
            Finding::Missing { cpu, first, next } => {
                write!(f, "CPU {cpu}: blocks {first} to {} are missing", next - 1)
            }
        }
    }
}

fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| block[at + i]))
}

fn u64_at(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| block[at + i]))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A block whose bytes behind the header are all `0xee`, of which `content` count, header included.
    pub(crate) fn block(cpu: u32, sequence: u64, begin: u64, content: usize) -> Vec<u8> {
        let mut block = vec![0; HEADER_WORDS * 4];
        block.resize(BYTES, 0xee);
        let mut put = |at: usize, field: &[u8]| block[at..at + field.len()].copy_from_slice(field);
        put(offset_of!(Header, magic), &MAGIC.to_le_bytes());
        put(offset_of!(Header, begin), &begin.to_le_bytes());
        put(offset_of!(Header, end), &(begin + 9).to_le_bytes());
        put(offset_of!(Header, content_bits), &(content as u64 * 8).to_le_bytes());
        put(offset_of!(Header, packet_bits), &(BYTES as u64 * 8).to_le_bytes());
        put(offset_of!(Header, sequence), &sequence.to_le_bytes());
        put(offset_of!(Header, cpu), &cpu.to_le_bytes());
        block
    }

    #[test]
    fn used_blocks_are_taken_in_the_order_of_their_begin() {
        let pool = [block(1, 0, 30, 256), vec![0; BYTES], block(0, 1, 40, 128), block(0, 0, 20, BYTES)].concat();
        let selection = Selection::of(&pool, Recycling::Never);
        let taken: Vec<_> = selection.blocks.iter().map(|block| (block.index, block.content)).collect();
        assert_eq!(taken, [(3, BYTES), (0, 256), (2, 128)]);
        assert_eq!(selection.findings, []);
    }

    #[test]
    fn a_block_without_a_possible_end_is_left_out_and_reported() {
        let pool = [block(0, 0, 1, 0), block(1, 0, 2, 126), block(2, 0, 3, BYTES + 4), block(3, 0, 4, 130)].concat();
        let selection = Selection::of(&pool, Recycling::Never);
        assert_eq!(selection.blocks, []);
        assert_eq!(selection.findings.len(), 4);
        assert_eq!(selection.findings[0], Finding::Size { index: 0, cpu: 0, bits: 0 });
    }

    #[test]
    fn sequence_numbers_against_the_order_of_begin_are_reported() {
        let pool = [block(0, 1, 10, 128), block(0, 0, 20, 128)].concat();
        let selection = Selection::of(&pool, Recycling::Oldest);
        assert_eq!(selection.findings, [Finding::Order { cpu: 0, found: 0, expected: 2 }]);
        assert_eq!(selection.blocks.len(), 2);
    }

    #[test]
    fn a_missing_block_is_reported_unless_the_recorder_recycles() {
        let pool = [block(0, 0, 10, 128), block(0, 3, 20, 128)].concat();
        let selection = Selection::of(&pool, Recycling::Never);
        assert_eq!(selection.findings, [Finding::Missing { cpu: 0, first: 1, next: 3 }]);
        assert_eq!(selection.findings[0].to_string(), "CPU 0: blocks 1 to 2 are missing");
        assert_eq!(Selection::of(&pool, Recycling::Oldest).findings, []);
    }

    #[test]
    fn blocks_begun_at_the_same_count_keep_their_sequence() {
        let pool = [block(0, 1, 10, 128), block(0, 0, 10, 128)].concat();
        let selection = Selection::of(&pool, Recycling::Never);
        assert_eq!(selection.findings, []);
        assert_eq!(selection.blocks[0].index, 1);
    }
}
