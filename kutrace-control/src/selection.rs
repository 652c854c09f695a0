// SPDX-License-Identifier: BSD-3-Clause
//! Selects the blocks of the pool that belong to the trace, and their order in the file.
//!
//! Invariant: no field of a header is trusted unless it is checked here; no content makes this fail.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicU32;

use kutrace_format::abi::block::{BYTES, HEADER_WORDS, WORDS};

use crate::pool::{self, Id};
use crate::programs;

/// The blocks to write, and the faults found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// In the order of their start.
    pub blocks: Vec<SelectedBlock>,
    /// Faults in the pool.
    pub findings: Vec<Finding>,
}

/// A block of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SelectedBlock {
    /// Identity of the block.
    pub id: Id,
    /// Index of the block in the pool.
    pub index: usize,
    /// Bytes used, including the header; whole words.
    pub content: usize,
    /// Number of events its CPU lost up to its end.
    pub lost: u64,
}

/// Rule for missing blocks of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recycling {
    /// Every block is kept.
    Never,
    /// The oldest blocks are gone.
    Oldest,
    /// Any block may be gone: the reader of a stream has given it back.
    Read,
}

/// A fault in the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A block without an end: skipped.
    Size {
        /// Index of the block in the pool.
        index: usize,
        /// The CPU.
        cpu: u32,
        /// The size in bits that the block claims.
        bits: u64,
    },
    /// In the order of starts, this block of the CPU follows a later one.
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
    /// Selects the blocks of a pool that began before the counter `end`. The pool consists of whole blocks.
    pub fn of(pool: &[AtomicU32], recycling: Recycling, end: u64) -> Selection {
        let mut selection = Selection::default();
        for (index, block) in pool.chunks_exact(WORDS).enumerate() {
            let Some(found) = pool::summary(block).filter(|found| found.id.begin < end) else { continue };
            let (id, bits, content) = (found.id, found.content_bits, (found.content_bits / 8) as usize);
            if bits.is_multiple_of(32) && (HEADER_WORDS * 4..=BYTES).contains(&content) {
                selection.blocks.push(SelectedBlock { id, index, content, lost: found.lost });
            } else {
                selection.findings.push(Finding::Size { index, cpu: id.cpu, bits });
            }
        }
        selection.blocks.sort_unstable();
        selection.check_order(recycling);
        if recycling == Recycling::Oldest {
            // The recorder keeps the block of a call that has not returned longer than later blocks.
            let runs = newest_runs(&selection.blocks, &selection.blocks);
            selection.blocks = runs.into_iter().map(|at| selection.blocks[at]).collect();
        }
        selection
    }

    /// Losses of a file of these blocks and these sections of programs: one sentence each.
    pub fn losses(&self, sections: &[u8]) -> Vec<String> {
        self.findings.iter().map(Finding::to_string).chain(programs::losses(sections)).collect()
    }

    /// The counter from which on these blocks are complete: the start of the first block of the CPU that lost most. 0
    /// if nothing is gone.
    pub fn whole_from(&self) -> u64 {
        let mut oldest = HashMap::<u32, Id>::new();
        for block in &self.blocks {
            oldest.entry(block.id.cpu).or_insert(block.id);
        }
        oldest.values().filter(|id| id.sequence > 0).map(|id| id.begin).max().unwrap_or(0)
    }

    /// The counter before which these blocks have no events of any CPU. 0 if nothing is gone.
    pub fn oldest(&self) -> u64 {
        let first = self.blocks.first().filter(|_| self.whole_from() > 0);
        first.map_or(0, |block| block.id.begin)
    }

    /// Number of events lost up to the newest block of each CPU.
    pub fn lost(&self) -> u64 {
        let newest: HashMap<u32, u64> = self.blocks.iter().map(|block| (block.id.cpu, block.lost)).collect();
        newest.values().sum()
    }

    /// Checks each CPU: the order of starts is the order of sequence numbers, no number occurs twice, and none is
    /// missing unless the recorder recycles.
    fn check_order(&mut self, recycling: Recycling) {
        let mut expected = HashMap::<u32, u64>::new();
        for block in &self.blocks {
            let (cpu, found) = (block.id.cpu, block.id.sequence);
            let expected = expected.entry(cpu).or_default();
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

/// Indices of the `copied` blocks that are in a contiguous run of their CPU which ends in its newest block of `all`.
pub(crate) fn newest_runs(all: &[SelectedBlock], copied: &[SelectedBlock]) -> Vec<usize> {
    let mut expected = HashMap::<u32, u64>::new();
    for Id { cpu, sequence, .. } in all.iter().map(|choice| choice.id) {
        let newest = expected.entry(cpu).or_default();
        *newest = sequence.max(*newest);
    }
    let mut kept: Vec<usize> = (0..copied.len()).collect();
    kept.sort_by_key(|&at| Reverse(copied[at].id.sequence));
    kept.retain(|&at| {
        let Id { cpu, sequence, .. } = copied[at].id;
        let expected = expected.get_mut(&cpu).filter(|expected| **expected == sequence);
        expected.map(|expected| *expected = expected.wrapping_sub(1)).is_some()
    });
    kept.sort_unstable();
    kept
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Size { index, cpu, bits } => {
                write!(f, "block {index} of the pool, CPU {cpu}: invalid content size of {bits} bits; skipped")
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    use kutrace_format::abi::block::{Header, MAGIC};
    use std::mem::offset_of;

    /// Words of a block whose bytes after the header are all `0xee`; `content` bytes of it count, including the header.
    pub(crate) fn block(cpu: u32, sequence: u64, begin: u64, content: usize) -> Vec<AtomicU32> {
        let mut block = vec![0; HEADER_WORDS];
        block.resize(WORDS, 0xeeee_eeee);
        block[offset_of!(Header, magic) / 4] = MAGIC;
        block[offset_of!(Header, cpu) / 4] = cpu;
        for (at, field) in [
            (offset_of!(Header, begin), begin),
            (offset_of!(Header, end), begin + 9),
            (offset_of!(Header, content_bits), content as u64 * 8),
            (offset_of!(Header, packet_bits), BYTES as u64 * 8),
            (offset_of!(Header, sequence), sequence),
        ] {
            block[at / 4] = field as u32;
            block[at / 4 + 1] = (field >> 32) as u32;
        }
        block.into_iter().map(AtomicU32::new).collect()
    }

    /// A pool of these blocks; `None` is a block that was never used.
    pub(crate) fn pool(blocks: impl IntoIterator<Item = Option<Vec<AtomicU32>>>) -> Vec<AtomicU32> {
        let unused = || (0..WORDS).map(|_| AtomicU32::new(0)).collect();
        blocks.into_iter().flat_map(|block| block.unwrap_or_else(unused)).collect()
    }

    fn select(blocks: impl IntoIterator<Item = Vec<AtomicU32>>, recycling: Recycling) -> Selection {
        Selection::of(&pool(blocks.into_iter().map(Some)), recycling, u64::MAX)
    }

    #[test]
    fn used_blocks_are_taken_in_the_order_of_their_begin() {
        let pool = pool([Some(block(1, 0, 30, 256)), None, Some(block(0, 1, 40, 128)), Some(block(0, 0, 20, BYTES))]);
        let selection = Selection::of(&pool, Recycling::Never, u64::MAX);
        let taken: Vec<_> = selection.blocks.iter().map(|block| (block.index, block.content)).collect();
        assert_eq!(taken, [(3, BYTES), (0, 256), (2, 128)]);
        assert_eq!(selection.findings, []);
    }

    #[test]
    fn a_block_of_a_stream_is_kept_though_those_after_it_were_given_back() {
        let kept = select([block(0, 3, 30, 256), block(0, 7, 70, 256)], Recycling::Read);
        assert_eq!((kept.blocks.len(), kept.findings), (2, vec![]));
    }

    #[test]
    fn blocks_begun_later_are_left_out_whatever_they_hold() {
        let pool = pool([block(0, 0, 30, 256), block(0, 1, 40, 256), block(0, 2, 41, 0)].map(Some));
        let selection = Selection::of(&pool, Recycling::Oldest, 41);
        assert_eq!(selection.blocks.len(), 2);
        assert_eq!(selection.findings, []);
    }

    #[test]
    fn a_selection_has_everything_from_where_the_cpu_begins_of_which_the_most_is_gone() {
        let whole_from = |blocks: [Vec<AtomicU32>; 4]| select(blocks, Recycling::Oldest).whole_from();
        let all = || [block(0, 0, 10, 128), block(1, 0, 12, 128), block(0, 1, 20, 128), block(1, 1, 24, 128)];
        assert_eq!(whole_from(all()), 0);
        let [.., third, fourth] = all();
        assert_eq!(whole_from([block(0, 2, 30, 128), block(1, 2, 31, 128), third, fourth]), 24);
        let [first, ..] = all();
        assert_eq!(whole_from([first, block(1, 5, 40, 128), block(2, 7, 35, 128), block(2, 8, 50, 128)]), 40);
    }

    #[test]
    fn a_block_without_a_possible_end_is_left_out_and_reported() {
        let blocks = [block(0, 0, 1, 0), block(1, 0, 2, 126), block(2, 0, 3, BYTES + 4), block(3, 0, 4, 130)];
        let selection = select(blocks, Recycling::Never);
        assert_eq!(selection.blocks, []);
        assert_eq!(selection.findings.len(), 4);
        assert_eq!(selection.findings[0], Finding::Size { index: 0, cpu: 0, bits: 0 });
    }

    #[test]
    fn sequence_numbers_against_the_order_of_begin_are_reported() {
        let selection = select([block(0, 1, 10, 128), block(0, 0, 20, 128)], Recycling::Oldest);
        assert_eq!(selection.findings, [Finding::Order { cpu: 0, found: 0, expected: 2 }]);
        assert_eq!(selection.blocks.len(), 2);
    }

    #[test]
    fn a_missing_block_is_reported_unless_the_recorder_recycles() {
        let blocks = || [block(0, 0, 10, 128), block(0, 3, 20, 128)];
        let findings = select(blocks(), Recycling::Never).findings;
        assert_eq!(findings, [Finding::Missing { cpu: 0, first: 1, next: 3 }]);
        assert_eq!(findings[0].to_string(), "CPU 0: blocks 1 to 2 are missing");
        assert_eq!(select(blocks(), Recycling::Oldest).findings, []);
    }

    #[test]
    fn blocks_begun_at_the_same_count_keep_their_sequence() {
        let selection = select([block(0, 1, 10, 128), block(0, 0, 10, 128)], Recycling::Never);
        assert_eq!(selection.findings, []);
        assert_eq!(selection.blocks[0].index, 1);
    }
}
