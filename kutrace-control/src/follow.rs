// SPDX-License-Identifier: BSD-3-Clause
//! New words in the pool of a running recorder: each CPU's words, once, shortly after they were written.
//!
//! The recorder reports how far every block is filled ([`Recorder::look`]) without disturbing the CPUs: no interrupt is
//! taken, and no block ends early. Blocks that it used again before they were read are counted.
//!
//! Invariant: memory is one block, plus a little for each CPU.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use kutrace_format::abi::block::{Header, BYTES, FLAG_LOST, HEADER_WORDS, WORDS};
use kutrace_format::abi::command::Info;
use kutrace_format::abi::event::TaskState;

use crate::device::Recorder;
use crate::pool::{self, Id};

/// Minimum number of looks between two scans of all blocks for a block that was not found.
const SCAN: u32 = 10;

/// A part of a block that was read.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The CPU.
    pub cpu: u32,
    /// Start of the block, if these are its first words.
    pub begin: Option<Begin>,
    /// The words.
    pub words: &'a [u32],
    /// True if more words may follow in the block.
    pub open: bool,
    /// True if events are missing after the words.
    pub lost: bool,
}

/// Start of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// The counter.
    pub counter: u64,
    /// The running thread.
    pub pid: u32,
    /// Name of the thread, NUL-padded.
    pub comm: [u8; 16],
    /// The call that the thread is in, and whether the thread is one of the kernel.
    pub state: TaskState,
    /// True if events are missing before the block.
    pub gap: bool,
}

/// Read position of a CPU.
#[derive(Clone, Copy, Debug)]
struct Place {
    id: Id,
    index: usize,
    /// Number of bytes read from the block; 0 before its first word.
    read: usize,
    /// True if blocks before this one were skipped.
    gap: bool,
    /// True if all blocks were searched for the next one.
    searched: bool,
}

/// Follows the blocks of a pool.
#[derive(Debug, Default)]
pub struct Follow {
    places: BTreeMap<u32, Place>,
    /// Blocks that were found and are not read yet, by CPU and number.
    found: BTreeMap<(u32, u64), (Id, usize)>,
    /// Number of blocks taken from the pool, at the last two looks.
    taken: [u32; 2],
    /// `lost_track`: a CPU's next block is not where it is expected, so all blocks must be scanned. `searching`: a scan
    /// is needed for this before the look is complete.
    lost_track: bool,
    searching: bool,
    /// True if the last look scanned all blocks.
    scanned: bool,
    /// Number of looks since the last scan; `None` before the first.
    since_scan: Option<u32>,
    copy: Vec<u32>,
    /// Number of blocks that the recorder used again before they were read.
    pub missed: u64,
}

impl Follow {
    /// Passes the new words of the pool to `each`, which returns how many of them it has used; the others are passed
    /// again with the words after them. Returns the counter up to which all words were passed; `None`, and nothing is
    /// read, while a CPU does not let the look run.
    ///
    /// # Errors
    /// If nothing is recorded.
    pub fn turn<R: Recorder>(
        &mut self,
        recorder: &R,
        pool: &[AtomicU32],
        each: impl FnMut(Piece) -> usize,
    ) -> Result<Option<u64>> {
        let end = recorder.look()?;
        if let Some(end) = end {
            self.read_new(end, &recorder.info()?, pool, each);
        }
        Ok(end)
    }

    fn read_new(&mut self, end: u64, info: &Info, pool: &[AtomicU32], mut each: impl FnMut(Piece) -> usize) {
        self.find(end, info, pool);
        self.read_all(pool, &mut each);
        // The result must be complete: a block that a CPU had kept aside may have begun by now.
        if std::mem::take(&mut self.searching) && !self.scanned {
            self.look_at(0..pool.len() / WORDS, pool);
            (self.scanned, self.since_scan) = (true, Some(0));
            self.read_all(pool, &mut each);
        }
    }

    fn read_all(&mut self, pool: &[AtomicU32], each: &mut impl FnMut(Piece) -> usize) {
        let cpus: Vec<u32> = self.found.keys().map(|(cpu, _)| *cpu).chain(self.places.keys().copied()).collect();
        for cpu in BTreeSet::from_iter(cpus) {
            while self.read(cpu, pool, each) {}
        }
    }

    /// Number of blocks that the recorder had begun since its start, at the last look.
    pub fn filled(&self) -> u32 {
        self.taken[1]
    }

    /// Finds the blocks that began since the last look. Blocks are taken in the order of their places, so only these
    /// are looked at; but a CPU may have kept one aside.
    fn find(&mut self, end: u64, info: &Info, pool: &[AtomicU32]) {
        let blocks = pool.len() / WORDS;
        let [since, last] = self.taken;
        let new = info.blocks_taken.wrapping_sub(since) as usize;
        self.taken = [last, info.blocks_taken];
        let first = self.since_scan.is_none();
        let is_due = self.since_scan.is_none_or(|looks| looks + 1 >= SCAN);
        let all = self.lost_track && is_due || first || new >= blocks || info.blocks_taken == u32::MAX;
        let (from, count) = if all { (0, blocks) } else { (since as usize % blocks, new) };
        self.look_at((from..from + count).map(|at| at % blocks), pool);
        if first {
            // At the start the pool's blocks are history, except the block that each CPU was in at `end`. Another block
            // may have begun since.
            let begun = self.found.iter().filter(|(_, (id, _))| id.begin <= end);
            let newest: BTreeMap<u32, u64> = begun.map(|(&key, _)| key).collect();
            self.found.retain(|(cpu, sequence), _| newest.get(cpu).is_none_or(|newest| sequence >= newest));
        }
        self.since_scan = Some(if all { 0 } else { self.since_scan.unwrap_or_default().saturating_add(1) });
        (self.scanned, self.lost_track) = (all, false);
    }

    /// Notes the blocks at these places that are newer than the block being read of their CPU.
    fn look_at(&mut self, places: impl Iterator<Item = usize>, pool: &[AtomicU32]) {
        for index in places {
            let Some(id) = pool::id(block(pool, index)) else { continue };
            if self.places.get(&id.cpu).is_none_or(|place| place.id.sequence < id.sequence) {
                self.found.insert((id.cpu, id.sequence), (id, index));
            }
        }
    }

    /// Notes that a CPU's next block was not found.
    fn lose_track(&mut self, cpu: u32, place: Place) {
        self.lost_track = true;
        self.searching |= !place.searched;
        self.places.insert(cpu, Place { searched: true, ..place });
    }

    /// Reads the new words of the CPU's block, and moves to its next block if it has ended. Returns true if there may
    /// be more.
    fn read(&mut self, cpu: u32, pool: &[AtomicU32], each: &mut impl FnMut(Piece) -> usize) -> bool {
        let Some(mut place) = self.places.get(&cpu).copied().or_else(|| self.next(cpu, None)) else { return false };
        let words = block(pool, place.index);
        let header = |at: usize| u64::from(words[at / 4].load(Ordering::Relaxed));
        let bits = pool::u64_at(words, offset_of!(Header, content_bits));
        let ended = bits != 0;
        let filled = match bits {
            0 => pool::seen(words, place.id).map_or(0, |(_, bytes)| bytes as usize),
            bits => (bits / 8) as usize,
        };
        let begin = (place.read == 0).then(|| {
            let mut comm = [0; 16];
            for (n, bytes) in comm.chunks_exact_mut(4).enumerate() {
                bytes.copy_from_slice(&(header(offset_of!(Header, comm) + 4 * n) as u32).to_le_bytes());
            }
            let pid = header(offset_of!(Header, pid)) as u32;
            let state = TaskState(header(offset_of!(Header, task_state)) as u32);
            Begin { counter: place.id.begin, pid, comm, state, gap: place.gap }
        });
        let lost = ended && header(offset_of!(Header, flags)) as u32 & FLAG_LOST != 0;
        let from = place.read.max(4 * HEADER_WORDS);
        self.copy.clear();
        if (from..=BYTES).contains(&filled) {
            self.copy.extend(words[from / 4..filled / 4].iter().map(|word| word.load(Ordering::Relaxed)));
        }
        if !pool::is_still(words, place.id) {
            // The recorder has used this block again, and therefore all older ones too.
            self.missed += u64::from(!place.gap);
            return match self.next(cpu, Some(place)) {
                Some(next) => {
                    self.places.insert(cpu, Place { gap: true, ..next });
                    true
                }
                None => {
                    self.lose_track(cpu, Place { gap: true, ..place });
                    false
                }
            };
        }
        if !self.copy.is_empty() || (begin.is_some() && filled > 0) {
            let used = each(Piece { cpu, begin, words: &self.copy, open: !ended, lost });
            place.read = from + 4 * used.min(self.copy.len());
        }
        if !ended {
            self.places.insert(cpu, place);
            return false;
        }
        place.read = filled.max(4 * HEADER_WORDS);
        match self.next(cpu, Some(place)) {
            Some(next) => {
                self.places.insert(cpu, next);
                true
            }
            None => {
                self.lose_track(cpu, place);
                false
            }
        }
    }

    /// Read position of the CPU in the block after this one.
    fn next(&mut self, cpu: u32, after: Option<Place>) -> Option<Place> {
        let from = after.map_or(0, |place| place.id.sequence + 1);
        let (&key, &(id, index)) = self.found.range((cpu, from)..=(cpu, u64::MAX)).next()?;
        if after.is_some() && id.sequence > from && !self.scanned {
            // The block in between may have been kept aside: all blocks are scanned before it counts as missed.
            return None;
        }
        self.found.remove(&key);
        self.found.retain(|(other, sequence), _| *other != cpu || *sequence > id.sequence);
        let gap = after.is_some() && id.sequence > from;
        self.missed += after.map_or(0, |_| id.sequence - from);
        Some(Place { id, index, read: 0, gap, searched: false })
    }
}

fn block(pool: &[AtomicU32], index: usize) -> &[AtomicU32] {
    &pool[index * WORDS..][..WORDS]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::tests::block as full;

    const BLOCKS: usize = 4;

    /// A recorder of one CPU, which counts its words, and its follower.
    struct Machine {
        pool: Vec<AtomicU32>,
        taken: u32,
        begun: u64,
        /// Index of the block that is being filled, and its number of filled bytes.
        at: usize,
        filled: usize,
        word: u32,
        follow: Follow,
        read: Vec<u32>,
        gaps: usize,
    }

    impl Machine {
        fn new() -> Machine {
            let pool = (0..BLOCKS * WORDS).map(|_| AtomicU32::new(0)).collect();
            let (follow, read) = (Follow::default(), Vec::new());
            let mut machine = Machine { pool, taken: 0, begun: 0, at: 0, filled: 0, word: 0, follow, read, gaps: 0 };
            machine.take();
            machine
        }

        fn put(&self, at: usize, value: u64) {
            let words = &block(&self.pool, self.at)[at / 4..];
            words[0].store(value as u32, Ordering::Relaxed);
            words[1].store((value >> 32) as u32, Ordering::Relaxed);
        }

        fn take(&mut self) {
            let at = self.keep_aside();
            self.begin(at);
        }

        fn keep_aside(&mut self) -> usize {
            self.taken += 1;
            (self.taken as usize - 1) % BLOCKS
        }

        fn begin(&mut self, at: usize) {
            self.at = at;
            self.begun += 1;
            let fresh = full(0, self.begun - 1, u64::from(self.word), 0);
            let words = block(&self.pool, self.at);
            words.iter().zip(&fresh).for_each(|(word, new)| word.store(new.load(Ordering::Relaxed), Ordering::Relaxed));
            words[offset_of!(Header, flags) / 4].store(0, Ordering::Relaxed);
            words[offset_of!(Header, for_now) / 4 + 2].store(0, Ordering::Relaxed);
            self.filled = 4 * HEADER_WORDS;
        }

        fn record(&mut self, words: usize) {
            for _ in 0..words {
                if self.filled == BYTES {
                    self.put(offset_of!(Header, content_bits), BYTES as u64 * 8);
                    self.take();
                }
                block(&self.pool, self.at)[self.filled / 4].store(self.word, Ordering::Relaxed);
                (self.word, self.filled) = (self.word + 1, self.filled + 4);
            }
        }

        /// Looks, and reads all but the last word of an open block.
        fn look(&mut self) {
            self.read_after(self.word);
        }

        /// Like `look`, when the CPU has recorded more since the recorder looked.
        fn read_after(&mut self, end: u32) {
            self.put(offset_of!(Header, for_now), u64::from(self.word));
            let last = &block(&self.pool, self.at)[offset_of!(Header, for_now) / 4 + 2];
            last.store(self.filled as u32, Ordering::Relaxed);
            let info = Info { blocks_taken: self.taken, ..Info::default() };
            let (read, gaps) = (&mut self.read, &mut self.gaps);
            self.follow.read_new(end.into(), &info, &self.pool, |piece| {
                *gaps += usize::from(piece.begin.is_some_and(|begin| begin.gap));
                let used = piece.words.len() - usize::from(piece.open && !piece.words.is_empty());
                read.extend(&piece.words[..used]);
                used
            });
        }
    }

    #[test]
    fn every_word_is_read_once_while_blocks_are_filled_and_used_again() {
        let mut machine = Machine::new();
        for step in 0..400 {
            machine.record(step * 97 % 20_000);
            machine.look();
        }
        let words = machine.read.len() as u32;
        assert!(machine.read.iter().copied().eq(0..words) && words + 1 == machine.word, "{words} of {}", machine.word);
        assert_eq!((machine.gaps, machine.follow.missed), (0, 0));
        assert!(machine.taken as usize > 50 * BLOCKS);
    }

    #[test]
    fn what_a_cpu_records_after_the_first_look_is_read_although_it_has_begun_another_block() {
        let mut machine = Machine::new();
        machine.record(10);
        machine.record(WORDS);
        machine.read_after(10);
        assert!(machine.read.iter().copied().eq(0..machine.word - 1));
    }

    #[test]
    fn a_block_that_was_kept_aside_is_read_at_the_look_after_it_is_begun() {
        let mut machine = Machine::new();
        machine.record(10);
        machine.look();
        let aside = machine.keep_aside();
        for _ in 0..3 {
            machine.record(10);
            machine.look();
        }
        machine.put(offset_of!(Header, content_bits), machine.filled as u64 * 8);
        machine.begin(aside);
        machine.record(10);
        machine.look();
        assert!(machine.read.iter().copied().eq(0..machine.word - 1), "{} of {}", machine.read.len(), machine.word);
        assert_eq!((machine.gaps, machine.follow.missed), (0, 0));
    }

    #[test]
    fn what_was_overwritten_first_is_counted_and_leaves_a_gap() {
        let mut machine = Machine::new();
        machine.record(10);
        machine.look();
        machine.record(WORDS * 7);
        // The next block is not the expected one, so all are scanned later.
        (0..2 * SCAN).for_each(|_| machine.look());
        assert_eq!((machine.gaps, machine.follow.missed > 2), (1, true), "{} missed", machine.follow.missed);
        let after = machine.read.iter().copied().skip(9).collect::<Vec<_>>();
        assert!(after.windows(2).all(|pair| pair[1] == pair[0] + 1) && after[0] > 9);
        assert_eq!(machine.read.last(), Some(&(machine.word - 2)));
    }
}
