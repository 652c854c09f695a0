// SPDX-License-Identifier: BSD-3-Clause
//! A trace written while the recorder continues and recycles its oldest blocks.
//!
//! Blocks are copied oldest first, at the pace of the disk, in a race with the recorder. A block that it recycled first
//! is not in the file, nor is any earlier block of the same CPU: each CPU's blocks are without a gap up to its newest.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU32;

use anyhow::Result;
use kutrace_format::abi::block::BYTES;
use kutrace_format::file::Header;

use crate::dump::copy_block;
use crate::selection::{newest_runs, Selection};

/// Copies the blocks in `selection` to `file`, from the byte `start` on, and updates `selection` to the blocks that
/// were written. Calls `written` with the number of bytes after each write.
pub fn write_blocks(
    file: &File,
    start: u64,
    pool: &[AtomicU32],
    selection: &mut Selection,
    header: &Header,
    written: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    let place = |slot: usize| start + (slot * BYTES) as u64;
    let mut copy = vec![0; BYTES];
    let mut copied = Vec::new();
    for choice in &selection.blocks {
        if copy_block(pool, choice, header, &mut copy) {
            file.write_all_at(&copy, place(copied.len()))?;
            copied.push(*choice);
        }
        written(BYTES)?;
    }
    let kept = newest_runs(&selection.blocks, &copied);
    for (slot, _) in kept.iter().enumerate().filter(|(slot, from)| slot != *from) {
        file.read_exact_at(&mut copy, place(kept[slot]))?;
        file.write_all_at(&copy, place(slot))?;
    }
    file.set_len(place(kept.len()))?;
    selection.blocks = kept.into_iter().map(|from| copied[from]).collect();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump;
    use crate::pool::Id;
    use crate::selection::tests::{block, pool};
    use crate::selection::{Recycling, SelectedBlock};
    use kutrace_format::abi::block::{self, HEADER_WORDS, MAGIC, WORDS};
    use kutrace_format::abi::command::Info;
    use std::collections::HashMap;
    use std::mem::offset_of;
    use std::sync::atomic::{fence, Ordering};
    use std::thread;

    const CPUS: u32 = 3;
    const BLOCKS: u32 = 24;

    fn header() -> Header {
        dump::header(&Info::default(), &Selection::default(), [9; 16], [0; 16])
    }

    fn choices(ids: &[(u32, u64)]) -> Vec<SelectedBlock> {
        let choice = |(n, &(cpu, sequence)): (usize, &(u32, u64))| SelectedBlock {
            id: Id { begin: n as u64, cpu, sequence },
            index: n,
            content: BYTES,
            lost: 0,
        };
        ids.iter().enumerate().map(choice).collect()
    }

    #[test]
    fn a_cpu_keeps_what_it_has_without_a_gap_up_to_its_newest() {
        let all = choices(&[(0, 3), (1, 7), (0, 4), (1, 8), (0, 5), (1, 9), (2, 0)]);
        let without = |gone: &[usize]| {
            let copied: Vec<SelectedBlock> =
                all.iter().filter(|choice| !gone.contains(&choice.index)).copied().collect();
            let kept = newest_runs(&all, &copied);
            kept.into_iter().map(|at| copied[at].index).collect::<Vec<_>>()
        };
        assert_eq!(without(&[]), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(without(&[0]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(without(&[2]), [1, 3, 4, 5, 6]);
        assert_eq!(without(&[4, 3]), [5, 6]);
        assert_eq!(without(&[5]), [0, 2, 4, 6]);
    }

    #[test]
    fn blocks_that_are_left_out_leave_no_hole_in_the_file() {
        let pool =
            pool([block(0, 5, 10, BYTES), block(1, 0, 20, 256), block(0, 6, 30, 256), block(0, 7, 40, 512)].map(Some));
        let mut selection = Selection::of(&pool, Recycling::Oldest, u64::MAX);
        pool[2 * WORDS].store(0, Ordering::Relaxed);
        let file = tempfile::tempfile().unwrap();
        write_blocks(&file, 100, &pool, &mut selection, &header(), &mut |_| Ok(())).unwrap();
        assert_eq!(selection.blocks.iter().map(|choice| choice.index).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(file.metadata().unwrap().len(), 100 + 2 * BYTES as u64);
        for (slot, begin) in [20, 40].into_iter().enumerate() {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, (100 + slot * BYTES + offset_of!(block::Header, begin)) as u64).unwrap();
            assert_eq!(u64::from_le_bytes(bytes), begin);
        }
    }

    /// Recycles the blocks of `pool` in turn, like the module, up to the block that is `allowed`; 0 ends it. Each word
    /// after the header is the block's start.
    fn recycle(pool: &[AtomicU32], allowed: &AtomicU32) {
        for begin in 1.. {
            while (1..begin).contains(&allowed.load(Ordering::Relaxed)) {
                thread::yield_now();
            }
            if allowed.load(Ordering::Relaxed) == 0 {
                return;
            }
            let block = &pool[(begin as usize * WORDS) % pool.len()..][..WORDS];
            let put = |at: usize, value: u32| block[at / 4].store(value, Ordering::Relaxed);
            put(offset_of!(block::Header, magic), 0);
            fence(Ordering::Release);
            put(offset_of!(block::Header, begin), begin);
            put(offset_of!(block::Header, cpu), begin % CPUS);
            put(offset_of!(block::Header, sequence), begin / CPUS);
            put(offset_of!(block::Header, content_bits), 0);
            fence(Ordering::Release);
            put(offset_of!(block::Header, magic), MAGIC);
            fence(Ordering::Release);
            block[HEADER_WORDS..].iter().for_each(|word| word.store(begin, Ordering::Relaxed));
            put(offset_of!(block::Header, content_bits), BYTES as u32 * 8);
        }
    }

    /// Ends the recycling also when an assertion fails.
    struct Stop<'a>(&'a AtomicU32);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    #[test]
    fn no_block_of_a_running_recorder_is_torn() {
        let pool = pool((0..BLOCKS).map(|_| None));
        let allowed = AtomicU32::new(BLOCKS);
        let (mut kept, mut dropped) = (0, 0);
        thread::scope(|scope| {
            scope.spawn(|| recycle(&pool, &allowed));
            let _stop = Stop(&allowed);
            for round in 0..40 {
                let end = loop {
                    let begins = pool.chunks_exact(WORDS).filter_map(crate::pool::summary).map(|found| found.id.begin);
                    match begins.max() {
                        Some(newest @ 2..) => break newest,
                        _ => thread::yield_now(),
                    }
                };
                let mut selection = Selection::of(&pool, Recycling::Oldest, end);
                assert_eq!(selection.findings, []);
                let selected = selection.blocks.len();
                let file = tempfile::tempfile().unwrap();
                // In different rounds the recorder rests, keeps pace, or is faster.
                let mut written = |_| {
                    allowed.fetch_add(round % 3, Ordering::Relaxed);
                    Ok(())
                };
                write_blocks(&file, 0, &pool, &mut selection, &header(), &mut written).unwrap();
                kept += selection.blocks.len();
                dropped += selected - selection.blocks.len();
                check(&file, &selection);
            }
        });
        assert!(kept > 40 && dropped > 40, "{kept} blocks kept, {dropped} dropped");
    }

    fn check(file: &File, selection: &Selection) {
        let mut last = HashMap::new();
        for (slot, choice) in selection.blocks.iter().enumerate() {
            let mut bytes = vec![0; BYTES];
            file.read_exact_at(&mut bytes, (slot * BYTES) as u64).unwrap();
            let words = bytes[HEADER_WORDS * 4..].chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            assert!(words.clone().all(|word| u64::from(word) == choice.id.begin), "{:?}", choice.id);
            let before = last.insert(choice.id.cpu, choice.id.sequence);
            assert!(before.is_none_or(|before| before + 1 == choice.id.sequence), "{:?}", choice.id);
        }
    }
}
