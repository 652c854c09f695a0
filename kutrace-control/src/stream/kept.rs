// SPDX-License-Identifier: BSD-3-Clause
//! Blocks of a stream that CPUs have ended and keep.
//!
//! Invariant: a block is chosen once, and only after its last write. This holds if it has ended, and its CPU has since
//! been seen in a later block, with no claim in progress, by a look that has waited for calls; or if the CPU is
//! offline. To be sure that the look has waited, a block is chosen at the look after the one that found it.

use std::collections::{BTreeSet, HashMap};
use std::mem::offset_of;
use std::sync::atomic::AtomicU32;

use kutrace_format::abi::block::{Header, FLAG_OFFLINE, WORDS};

use crate::pool::{self, Id};
use crate::selection::SelectedBlock;

/// State of kept blocks.
#[derive(Debug, Default)]
pub struct Kept {
    /// Blocks that the previous look found.
    found: BTreeSet<Id>,
    /// Blocks that were chosen, and are not given back yet.
    written: BTreeSet<Id>,
}

/// The blocks of the pool, with their places, that have ended and are no longer written, as far as a look has shown
/// this.
pub fn ended(pool: &[AtomicU32]) -> Vec<(usize, Id)> {
    let blocks = || pool.chunks_exact(WORDS).enumerate().filter_map(|(at, block)| Some((at, block, pool::id(block)?)));
    let has_ended = |block: &[AtomicU32]| pool::u64_at(block, offset_of!(Header, content_bits)) != 0;
    let is_gone = |block: &[AtomicU32]| pool::u32_at(block, offset_of!(Header, flags)) & FLAG_OFFLINE != 0;
    // For each CPU, the number below which all blocks are complete.
    let mut over: HashMap<u32, u64> = HashMap::new();
    for (_, block, id) in blocks() {
        let below = match (has_ended(block) && is_gone(block), pool::seen(block, id)) {
            (true, _) => id.sequence + 1,
            (false, Some(_)) => id.sequence,
            (false, None) => continue,
        };
        let newest = over.entry(id.cpu).or_default();
        *newest = below.max(*newest);
    }
    let is_over =
        |block: &[AtomicU32], id: Id| has_ended(block) && over.get(&id.cpu).is_some_and(|below| id.sequence < *below);
    blocks().filter(|(_, block, id)| is_over(block, *id)).map(|(at, _, id)| (at, id)).collect()
}

impl Kept {
    /// Chooses the blocks to write now from those that this look has found.
    pub fn choose(&mut self, mut found: Vec<SelectedBlock>) -> Vec<SelectedBlock> {
        found.retain(|block| !self.written.contains(&block.id));
        let before = std::mem::replace(&mut self.found, found.iter().map(|block| block.id).collect());
        found.retain(|block| before.contains(&block.id));
        self.written.extend(found.iter().map(|block| block.id));
        found
    }

    /// Returns whether a block was chosen and is still in the pool.
    pub fn is_written(&self, id: Id) -> bool {
        self.written.contains(&id)
    }

    /// Returns whether a block that is handed over now was chosen, and is to be given back without being written again.
    pub fn take(&mut self, id: Id) -> bool {
        self.written.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::tests::{block, pool};
    use kutrace_format::abi::block::BYTES;
    use std::sync::atomic::Ordering;

    fn put(pool: &[AtomicU32], index: usize, at: usize, value: u32) {
        pool[index * WORDS + at / 4].store(value, Ordering::Relaxed);
    }

    /// Simulates another CPU that looked at the block when 256 bytes were filled.
    fn look(pool: &[AtomicU32], index: usize, when: u32) {
        put(pool, index, offset_of!(Header, for_now), when);
        put(pool, index, offset_of!(Header, for_now) + 8, 256);
    }

    fn places(pool: &[AtomicU32]) -> Vec<usize> {
        ended(pool).into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn a_block_is_over_once_its_cpu_was_seen_in_a_later_one_or_is_offline() {
        // CPU 0: two blocks that have ended and the one that it fills; CPU 1: one that has ended and one that it fills;
        // CPU 2: two.
        let pool = pool(
            [(0, 5, 10), (0, 6, 20), (0, 7, 30), (1, 3, 15), (1, 4, 25), (2, 0, 40), (2, 1, 41)]
                .map(|(cpu, sequence, begin)| Some(block(cpu, sequence, begin, BYTES))),
        );
        for index in [2, 4] {
            put(&pool, index, offset_of!(Header, content_bits), 0);
        }
        assert_eq!(places(&pool), [0; 0]);
        // A look before the block began proves nothing about it.
        look(&pool, 2, 29);
        look(&pool, 0, 11);
        assert_eq!(places(&pool), [0; 0]);
        look(&pool, 2, 31);
        assert_eq!(places(&pool), [0, 1]);
        put(&pool, 6, offset_of!(Header, flags), FLAG_OFFLINE);
        assert_eq!(places(&pool), [0, 1, 5, 6]);
    }

    #[test]
    fn a_block_is_chosen_once_at_the_second_look() {
        let one = |sequence| SelectedBlock {
            id: Id { begin: 7, cpu: 0, sequence },
            index: sequence as usize,
            content: BYTES,
            lost: 0,
        };
        let mut kept = Kept::default();
        assert_eq!(kept.choose(vec![one(1), one(2)]), []);
        assert_eq!(kept.choose(vec![one(2), one(3)]), [one(2)]);
        assert_eq!(kept.choose(vec![one(2), one(3)]), [one(3)]);
        assert!(kept.is_written(one(2).id) && !kept.is_written(one(1).id));
        assert!(kept.take(one(2).id) && !kept.take(one(2).id) && kept.take(one(3).id));
    }
}
