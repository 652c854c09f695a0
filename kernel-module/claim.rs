// SPDX-License-Identifier: GPL-2.0
//! Reserving words for an entry: lock-free, in any context of a CPU, NMI included.
//!
//! Each CPU has a *position*: the address of its next free word. A claim moves it forward by one
//! compare-exchange that only this CPU makes, so it needs no `lock` prefix. Contexts of a CPU nest strictly: an
//! interrupt between any two steps of a claim has finished all of its own claims when the claim goes on. The
//! *depth* counts the claims that are under way. From that follows all that this file promises:
//!
//! * No word belongs to two claims: whoever is interrupted before its exchange finds the position moved
//!   and starts again.
//! * Time never goes backwards along a CPU's words: the clock is read after the position and the exchange
//!   fails if anything was claimed since.
//! * Every claim is less than 2^20 counts later than the last full time in the CPU's words, so 20 bits of
//!   time are enough: behind the *deadline* a new full time is claimed first.
//! * A block goes back to the pool only in an outermost claim, so never under a writer. And so no position ever
//!   returns to an address while a claim that saw it there is under way: an equal address is the same moment.
//! * With the depth seen at 0, every word before the position seen earlier is written.
//!
//! Invariants: `core` only; nothing here locks, waits, allocates, prints or wakes. The same code runs on the
//! host under an explorer that interrupts it at every step (tests/host/recorder).

#![forbid(unsafe_code)]

use crate::abi::block;
use crate::abi::event::{FULL_TIME, FULL_TIME_WORDS};
use crate::abi::word::{entry, TIME_PERIOD};

/// The address of a word in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(pub u64);

/// The address of a block, a multiple of its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block(pub u64);

/// What a CPU fills that has taken no block yet.
pub const NO_BLOCK: Block = Block(0);

impl Position {
    /// The position `words` further on.
    #[inline(always)]
    pub const fn after(self, words: u64) -> Position {
        Position(self.0.wrapping_add(words * 4))
    }

    /// The position `words` further back.
    #[inline(always)]
    pub const fn before(self, words: u64) -> Position {
        Position(self.0.wrapping_sub(words * 4))
    }

    /// Bytes of the block that lie before the position.
    #[inline(always)]
    pub const fn offset(self) -> u16 {
        self.0 as u16
    }

    /// Whether the block has ended.
    pub const fn is_sealed(self) -> bool {
        self.offset() >= SEALED
    }

    /// The block.
    #[inline(always)]
    pub const fn block(self) -> Block {
        Block(self.0 - self.offset() as u64)
    }
}

const _: () = assert!(block::BYTES == 1 << u16::BITS);

impl Block {
    /// Where the block's first entry goes.
    const fn begin(self) -> Position {
        Position(self.0 + 4 * block::HEADER_WORDS as u64)
    }

    /// A position where no entry fits, for as long as there is no other block.
    pub const fn sealed(self) -> Position {
        Position(self.0 + SEALED as u64)
    }

    /// A position where no entry fits, for good.
    const fn closed(self) -> Position {
        Position(self.0 + SEALED as u64 + 1)
    }
}

/// From this offset on, a position says that its block has ended.
const SEALED: u16 = (block::BYTES - 4) as u16;

/// The recorder state of the CPU this runs on, and the pool of blocks. Every method is one step: an
/// interrupt may come before and after it, not inside.
pub trait Lane: Copy {
    /// Bytes of a block that header and entries may fill, at most all but the last two words.
    const ROOM: u16;

    /// A claim is under way on this CPU, one more.
    fn enter(&self);
    /// And one less.
    fn leave(&self);
    /// Whether no other claim is under way.
    fn is_outermost(&self) -> bool;

    /// Where the next word goes.
    fn position(&self) -> Position;
    /// Moves the position from `old` to `new`; false, and no change, if it is not `old` any more.
    fn try_move(&self, old: Position, new: Position) -> bool;
    /// The counter.
    fn now(&self) -> u64;
    /// From this counter on, a full time must come first.
    fn deadline(&self) -> u64;
    /// Moves the deadline.
    fn set_deadline(&self, time: u64);
    /// Writes a word of a claim.
    fn store(&self, at: Position, word: u32);
    /// Told of each event once, when its time is known, with the word that stands for it.
    fn note(&self, at: Position);
    /// Counts an event that found no room.
    fn count_loss(&self);
    /// Counts an event that came before recording began or after it ended.
    fn count_outside(&self);

    /// Writes the header of a block this context holds, all but its magic number.
    fn prepare_block(&self, block: Block, sequence: u64, begin: u64);
    /// Completes the header: the block is part of the trace. No call before it can be folded any more.
    fn begin_block(&self, block: Block);
    /// Writes into the header how far the block of `at` is filled, when that was, and why it ends.
    fn end_block(&self, at: Position, time: u64, why: End);
    /// The block's number among its CPU's, as prepared.
    fn sequence(&self, block: Block) -> u64;
    /// Remembers which block follows on this CPU.
    fn set_following(&self, block: Block, following: Block);
    /// The block that follows `block` on this CPU.
    fn following(&self, block: Block) -> Block;

    /// Takes the block kept aside, if there is one.
    fn take_spare(&self) -> Option<Block>;
    /// Keeps a block aside; false if there is one already.
    fn keep_spare(&self, block: Block) -> bool;
    /// Whether recording has begun and not ended.
    fn is_open(&self) -> bool;
    /// Takes a block from the pool, unless none is left.
    fn take_block(&self) -> Option<Block>;
    /// Gives a block back to the pool.
    fn give_block(&self, block: Block);

    /// The oldest block not yet given back.
    fn oldest(&self) -> Block;
    /// Moves [`Lane::oldest`].
    fn set_oldest(&self, block: Block);
}

/// What a CPU gets that asks for a block.
enum Taken {
    /// This block.
    Block(Block),
    /// None is left.
    Empty,
    /// Recording has not begun, or has ended: what happens now is no part of the trace.
    Closed,
}

/// Why a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The CPU goes on in another block, or recording ends.
    Complete,
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
pub fn record<L: Lane>(lane: L, words: u64, write: impl Fn(L, Claim)) {
    lane.enter();
    match claim(lane, words) {
        Some(claim) => {
            write(lane, claim);
            lane.leave();
        }
        None => record_slow(lane, words, write),
    }
}

/// Out of the way of the common path, so that it needs no stack.
#[cold]
#[inline(never)]
fn record_slow<L: Lane>(lane: L, words: u64, write: impl Fn(L, Claim)) {
    if let Some(claim) = claim_slow(lane, words) {
        write(lane, claim);
    }
    lane.leave();
}

/// Reserves words if nothing is in the way.
#[inline(always)]
fn claim<L: Lane>(lane: L, words: u64) -> Option<Claim> {
    let at = lane.position();
    let time = lane.now();
    if time >= lane.deadline() || !fits::<L>(at, words) || !lane.try_move(at, at.after(words)) {
        return None;
    }
    Some(Claim { at, time })
}

/// Whether there is room for `words` words.
#[inline(always)]
const fn fits<L: Lane>(at: Position, words: u64) -> bool {
    at.offset() <= L::ROOM - 4 * words as u16
}

/// Reserves words after an interruption, after a gap in time, or in another block. `None` is a counted loss, or
/// an event outside of the trace.
fn claim_slow<L: Lane>(lane: L, words: u64) -> Option<Claim> {
    let mut held = None;
    let claim = loop {
        let at = lane.position();
        let time = lane.now();
        let bridge = if time >= lane.deadline() { FULL_TIME_WORDS as u64 } else { 0 };
        if fits::<L>(at, bridge + words) {
            if !lane.try_move(at, at.after(bridge + words)) {
                continue;
            }
            if bridge != 0 {
                write_full_time(lane, at, time);
            }
            break Some(Claim { at: at.after(bridge), time });
        }
        let block = match take(lane, &mut held) {
            Taken::Block(block) => block,
            Taken::Closed if seal(lane, at, time, End::Complete) => {
                lane.count_outside();
                break None;
            }
            Taken::Empty if seal(lane, at, time, End::Lost) => {
                lane.count_loss();
                break None;
            }
            Taken::Closed | Taken::Empty => continue,
        };
        if move_to_block(lane, at, time, block, words) {
            held = None;
            break Some(Claim { at: block.begin(), time });
        }
    };
    put_aside(lane, held);
    claim
}

/// Writes the three words of a full time and moves the deadline. An interrupt that comes before that bridges once
/// more, and the deadline that it sets is later than this one: too early does no harm.
fn write_full_time<L: Lane>(lane: L, at: Position, time: u64) {
    lane.store(at, entry(FULL_TIME, time));
    lane.store(at.after(1), time as u32);
    lane.store(at.after(2), (time >> 32) as u32);
    lane.set_deadline(time + TIME_PERIOD);
}

/// A block to go on in: the one `held` from an attempt before, the spare, or one from the pool.
fn take<L: Lane>(lane: L, held: &mut Option<Block>) -> Taken {
    if !lane.is_open() {
        return Taken::Closed;
    }
    *held = held.or_else(|| lane.take_spare()).or_else(|| lane.take_block());
    held.map_or(Taken::Empty, Taken::Block)
}

/// Where an interrupt was faster, the block in hand is kept for later. If there is a spare already, it goes back
/// unused.
fn put_aside<L: Lane>(lane: L, held: Option<Block>) {
    if let Some(block) = held {
        if !lane.keep_spare(block) {
            lane.give_block(block);
        }
    }
}

/// Ends the block of `old` and goes on in `block`, with `words` words reserved. False if the position moved since.
fn move_to_block<L: Lane>(lane: L, old: Position, time: u64, block: Block, words: u64) -> bool {
    let full = old.block();
    let sequence = if full == NO_BLOCK { 0 } else { lane.sequence(full) + 1 };
    lane.prepare_block(block, sequence, time);
    if !lane.try_move(old, block.begin().after(words)) {
        return false;
    }
    lane.begin_block(block);
    lane.set_deadline(time + TIME_PERIOD);
    if full == NO_BLOCK {
        lane.set_oldest(block);
        return true;
    }
    if !old.is_sealed() {
        lane.end_block(old, time, End::Complete);
    }
    lane.set_following(full, block);
    if lane.is_outermost() {
        retire(lane, block);
    }
    true
}

/// Gives back the blocks before `current`. In no other context is a claim under way, and interrupts that come
/// now leave the blocks alone.
fn retire<L: Lane>(lane: L, current: Block) {
    let mut oldest = lane.oldest();
    while oldest != current {
        let next = lane.following(oldest);
        lane.set_oldest(next);
        lane.give_block(oldest);
        oldest = next;
    }
}

/// Ends a CPU's block where no other follows now, so that nothing shorter slips in behind what is missing.
/// False if the position moved since `at`: there may be room again.
fn seal<L: Lane>(lane: L, at: Position, time: u64, why: End) -> bool {
    if at.is_sealed() {
        return lane.position() == at;
    }
    let moved = lane.try_move(at, at.block().sealed());
    if moved {
        lane.end_block(at, time, why);
    }
    moved
}

/// Ends the block that this CPU fills, for good: the pool is closed, and a claim under way that has a block in hand
/// finds the position moved.
pub fn close<L: Lane>(lane: L) {
    lane.enter();
    loop {
        let at = lane.position();
        let time = lane.now();
        if lane.try_move(at, at.block().closed()) {
            if !at.is_sealed() {
                lane.end_block(at, time, End::Complete);
            }
            break;
        }
    }
    lane.leave();
}

/// Ends the block that this CPU fills and goes on in a new one, so that all it has recorded can be read. False if
/// the pool is empty. Claims in contexts below may still write into the block ended: wait for depth 0.
pub fn rotate<L: Lane>(lane: L) -> bool {
    lane.enter();
    let mut held = None;
    let rotated = loop {
        let at = lane.position();
        let time = lane.now();
        let block = match take(lane, &mut held) {
            Taken::Block(block) => block,
            Taken::Empty | Taken::Closed => break false,
        };
        if move_to_block(lane, at, time, block, 0) {
            held = None;
            break true;
        }
    };
    put_aside(lane, held);
    lane.leave();
    rotated
}
