// SPDX-License-Identifier: GPL-2.0
//! Reserving words for an entry: lock-free, in any context of a CPU, NMI included.
//!
//! Each CPU has a *position*: the block it fills and the offset of the next free word. A claim moves it
//! forward by one compare-exchange that only this CPU makes, so it needs no `lock` prefix. Contexts of a
//! CPU nest strictly: an interrupt between any two steps of a claim has finished all of its own claims when
//! the claim goes on. From that follows all that this file promises:
//!
//! * No word belongs to two claims: whoever is interrupted before its exchange finds the position moved
//!   and starts again.
//! * Time never goes backwards along a CPU's words: the clock is read after the position and the exchange
//!   fails if anything was claimed since.
//! * Below the *done* mark every word is written: only the outermost claim, the one that found done equal
//!   to the position, moves the mark, and then everything claimed meanwhile is finished too.
//! * A block goes back to the pool only when the done mark has left it, so never under a writer.
//!
//! Invariants: `core` only; nothing here locks, waits, allocates, prints or wakes. The same code runs on the
//! host under an explorer that interrupts it at every step (tests/host/recorder).

#![forbid(unsafe_code)]

use crate::abi::event::{FULL_TIME, FULL_TIME_WORDS};
use crate::abi::word::{entry, TIME_PERIOD};

/// Where the next word of a CPU goes.
///
/// ```text
///  63          34 33        14 13         0
/// | sequence 30  |  block 20  |  offset 14 |
/// ```
///
/// The low 34 bits are an index into the pool's words. `sequence` counts the CPU's blocks from 1, so no value
/// ever returns; 0 means that the CPU has no block yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(pub u64);

const OFFSET_BITS: u32 = 14;
const BLOCK_BITS: u32 = 20;
/// Most blocks a pool can have.
pub const BLOCKS_MAX: u32 = 1 << BLOCK_BITS;

impl Position {
    /// The position of a CPU that has no block: no word fits behind it.
    pub const fn none(block_words: u64) -> Position {
        Position(block_words - 1)
    }

    /// Index of the word in the pool.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.0 & ((1 << (OFFSET_BITS + BLOCK_BITS)) - 1)
    }

    /// Words used in the block, header included.
    #[inline(always)]
    pub const fn offset(self) -> u64 {
        self.0 & ((1 << OFFSET_BITS) - 1)
    }

    /// The block.
    pub const fn block(self) -> u32 {
        (self.0 >> OFFSET_BITS) as u32 & (BLOCKS_MAX - 1)
    }

    /// The block's number among its CPU's, from 1; 0 for none.
    pub const fn sequence(self) -> u64 {
        self.0 >> (OFFSET_BITS + BLOCK_BITS)
    }

    /// The position `words` further on.
    #[inline(always)]
    pub const fn after(self, words: u64) -> Position {
        Position(self.0.wrapping_add(words))
    }

    const fn in_next_block(self, block: u32, offset: u64) -> Position {
        let sequence = self.sequence() + 1;
        Position(sequence << (OFFSET_BITS + BLOCK_BITS) | (block as u64) << OFFSET_BITS | offset)
    }

    const fn with_offset(self, offset: u64) -> Position {
        Position(self.0 & !((1 << OFFSET_BITS) - 1) | offset)
    }
}

/// The recorder state of the CPU this runs on, and the pool of blocks. Every method is one step: an
/// interrupt may come before and after it, not inside.
pub trait Lane {
    /// Words of a block. The last two are never used: the offset of the last says that the block is sealed.
    const BLOCK_WORDS: u64;
    /// Words of a block's header.
    const HEADER_WORDS: u64;

    /// Where the next word goes.
    fn position(&self) -> Position;
    /// Moves the position from `old` to `new`; false, and no change, if it is not `old` any more.
    fn try_move(&self, old: Position, new: Position) -> bool;
    /// Every word before this position is written.
    fn done(&self) -> Position;
    /// Moves the done mark.
    fn set_done(&self, position: Position);
    /// A time not after that of the last claim.
    fn last_time(&self) -> u64;
    /// Remembers the time of a claim.
    fn set_last_time(&self, time: u64);
    /// The counter.
    fn now(&self) -> u64;
    /// Writes a word of a claim.
    fn store(&self, at: Position, word: u32);
    /// Counts an event that found no room.
    fn count_loss(&self);

    /// Writes the header of a block this context holds, all but its magic number.
    fn prepare_block(&self, block: u32, sequence: u64, begin: u64);
    /// Completes the header: the block is part of the trace.
    fn begin_block(&self, block: u32);
    /// Writes into the header how far the block of `at` is filled, when that was, and why it ends.
    fn end_block(&self, at: Position, time: u64, why: End);
    /// Remembers which block follows on this CPU.
    fn set_following(&self, block: u32, following: u32);
    /// The block that follows `block` on this CPU.
    fn following(&self, block: u32) -> u32;

    /// Takes the block kept aside, if there is one.
    fn take_spare(&self) -> Option<u32>;
    /// Keeps a block aside; false if there is one already.
    fn keep_spare(&self, block: u32) -> bool;
    /// Takes a block from the pool.
    fn take_block(&self) -> Taken;
    /// Gives a block back to the pool.
    fn give_block(&self, block: u32);

    /// The oldest block not yet given back: its block and sequence.
    fn oldest(&self) -> Position;
    /// Moves [`Lane::oldest`].
    fn set_oldest(&self, position: Position);
    /// Whether blocks must stay: a context below this one is giving some back, or writes behind the done mark.
    fn holding(&self) -> bool;
    /// Says whether blocks must stay.
    fn set_holding(&self, on: bool);
}

/// What a CPU gets that asks the pool for a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// This block.
    Block(u32),
    /// None is left.
    Empty,
    /// Recording has not begun: what happens now is no part of the trace.
    Closed,
}

/// Why a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It is full.
    Full,
    /// It is full and the pool was empty: events are lost behind it.
    Lost,
}

/// Words reserved for one entry: `at` is the first, `time` goes into it.
#[derive(Clone, Copy)]
pub struct Claim {
    /// The first word.
    pub at: Position,
    /// The counter when the words were reserved.
    pub time: u64,
    outermost: bool,
}

impl Claim {
    /// The position of the claim's word number `n`.
    #[inline(always)]
    pub const fn word(&self, n: u64) -> Position {
        self.at.after(n)
    }
}

/// Reserves `words` words and has `write` fill all of them; where there is no room, counts a loss.
#[inline(always)]
pub fn record<L: Lane>(lane: &L, words: u64, write: impl Fn(&L, Claim)) {
    match claim(lane, words) {
        Some(claim) => finish(lane, claim, write),
        None => record_slow(lane, words, write),
    }
}

/// Out of the way of the common path, so that it needs no stack.
#[cold]
#[inline(never)]
fn record_slow<L: Lane>(lane: &L, words: u64, write: impl Fn(&L, Claim)) {
    if let Some(claim) = claim_slow(lane, words) {
        finish(lane, claim, write);
    }
}

/// Writes a claim's words and makes them count as written.
#[inline(always)]
fn finish<L: Lane>(lane: &L, claim: Claim, write: impl Fn(&L, Claim)) {
    write(lane, claim);
    if claim.outermost {
        publish(lane);
    }
}

/// Reserves words if nothing is in the way.
#[inline(always)]
fn claim<L: Lane>(lane: &L, words: u64) -> Option<Claim> {
    let old = lane.position();
    let time = lane.now();
    let fits = old.offset() < L::BLOCK_WORDS - 1 - words;
    if !fits || time.wrapping_sub(lane.last_time()) >= TIME_PERIOD || !lane.try_move(old, old.after(words)) {
        return None;
    }
    lane.set_last_time(time);
    Some(Claim { at: old, time, outermost: lane.done() == old })
}

/// Moves the done mark to the position, for the outermost claim. An interrupt between reading and marking
/// claims as a nested one and leaves the mark to us: hence the loop.
#[inline(always)]
fn publish<L: Lane>(lane: &L) {
    loop {
        let position = lane.position();
        lane.set_done(position);
        if lane.position() == position {
            return;
        }
    }
}

/// Reserves words after an interruption, after a gap in time, or in another block. `None` is a counted loss, or
/// recording has not begun.
fn claim_slow<L: Lane>(lane: &L, words: u64) -> Option<Claim> {
    let mut held = None;
    let claim = loop {
        let old = lane.position();
        let time = lane.now();
        let bridge = match time.wrapping_sub(lane.last_time()) >= TIME_PERIOD {
            true => FULL_TIME_WORDS as u64,
            false => 0,
        };
        if old.offset() + bridge + words < L::BLOCK_WORDS - 1 {
            if lane.try_move(old, old.after(bridge + words)) {
                break Some(claim_here(lane, old, time, bridge));
            }
            continue;
        }
        let taken = match held.or_else(|| lane.take_spare()) {
            Some(block) => Taken::Block(block),
            None => lane.take_block(),
        };
        let block = match taken {
            Taken::Block(block) => block,
            Taken::Closed => break None,
            Taken::Empty if seal(lane, old, time) => {
                lane.count_loss();
                break None;
            }
            Taken::Empty => continue,
        };
        held = Some(block);
        let new = old.in_next_block(block, L::HEADER_WORDS + words);
        lane.prepare_block(block, new.sequence() - 1, time);
        if lane.try_move(old, new) {
            held = None;
            break Some(claim_in_new_block(lane, old, new.with_offset(L::HEADER_WORDS), time));
        }
    };
    if let Some(block) = held {
        // An interrupt was faster. If it left a spare as well, this one goes back unused.
        if !lane.keep_spare(block) {
            lane.give_block(block);
        }
    }
    claim
}

/// After the position moved within its block: writes the full time first if a gap calls for it.
fn claim_here<L: Lane>(lane: &L, old: Position, time: u64, bridge: u64) -> Claim {
    lane.set_last_time(time);
    if bridge != 0 {
        lane.store(old, entry(FULL_TIME, time));
        lane.store(old.after(1), time as u32);
        lane.store(old.after(2), (time >> 32) as u32);
    }
    Claim { at: old.after(bridge), time, outermost: lane.done() == old }
}

/// After the position moved from `old` to the new block whose first free word is `at`.
fn claim_in_new_block<L: Lane>(lane: &L, old: Position, at: Position, time: u64) -> Claim {
    lane.set_last_time(time);
    lane.begin_block(at.block());
    if old.sequence() == 0 {
        lane.set_oldest(at);
    } else {
        if old != sealed::<L>(old) {
            lane.end_block(old, time, End::Full);
        }
        lane.set_following(old.block(), at.block());
        retire(lane);
    }
    Claim { at, time, outermost: lane.done() == old }
}

/// Ends a CPU's block because the pool is empty, so that nothing shorter slips in behind a loss. False if
/// the position moved since `old`: there may be room again.
fn seal<L: Lane>(lane: &L, old: Position, time: u64) -> bool {
    if old == sealed::<L>(old) {
        return lane.position() == old;
    }
    if !lane.try_move(old, sealed::<L>(old)) {
        return false;
    }
    lane.end_block(old, time, End::Lost);
    if lane.done() == old {
        publish(lane);
    }
    true
}

/// The position in the same block behind which no word fits.
fn sealed<L: Lane>(at: Position) -> Position {
    at.with_offset(L::BLOCK_WORDS - 1)
}

/// Gives back the blocks that lie wholly before the done mark.
fn retire<L: Lane>(lane: &L) {
    if lane.holding() {
        return;
    }
    lane.set_holding(true);
    let done = lane.done();
    let mut oldest = lane.oldest();
    while oldest.sequence() < done.sequence() {
        let next = oldest.in_next_block(lane.following(oldest.block()), 0);
        lane.set_oldest(next);
        lane.give_block(oldest.block());
        oldest = next;
    }
    lane.set_holding(false);
}
