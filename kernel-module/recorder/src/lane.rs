// SPDX-License-Identifier: GPL-2.0
//! A CPU as the recorder sees it: its state, its blocks and its clock, with one method for each step. The kernel's
//! implementation is `this_cpu.rs`; the explorer's machine and the bench have their own.
//!
//! Invariant: `core` only.

use crate::abi::block;

/// The address of a word in a block.
///
/// Safe code cannot make one from a number, since words are written there:
///
/// ```
/// use kutrace_recorder::lane::Position;
/// // SAFETY: nothing is written there.
/// let position = unsafe { Position::new(0x1_0080) };
/// assert_eq!(position.offset(), 0x80);
/// ```
/// ```compile_fail,E0133
/// use kutrace_recorder::lane::Position;
/// let position = Position::new(0x1_0080);
/// ```
/// ```compile_fail,E0423
/// use kutrace_recorder::lane::Position;
/// let position = Position(0x1_0080);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(u64);

/// The address of a block, a multiple of its size.
///
/// Safe code cannot make one from a number:
///
/// ```
/// use kutrace_recorder::lane::Block;
/// // SAFETY: nothing is written there.
/// let block = unsafe { Block::new(0x1_0000) };
/// assert_eq!(block.address(), 0x1_0000);
/// ```
/// ```compile_fail,E0133
/// use kutrace_recorder::lane::Block;
/// let block = Block::new(0x1_0000);
/// ```
/// ```compile_fail,E0423
/// use kutrace_recorder::lane::Block;
/// let block = Block(0x1_0000);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block(u64);

/// The block of a CPU that has not taken one yet.
pub const NO_BLOCK: Block = Block(0);

/// A call's end that no position equals: no call can be folded.
pub const NO_CALL: Position = Position(0);

impl Position {
    /// Returns the position of this address.
    ///
    /// # Safety
    /// [`Position::address`] gave the address.
    #[inline(always)]
    pub const unsafe fn new(address: u64) -> Position {
        Position(address)
    }

    /// The address.
    #[inline(always)]
    pub const fn address(self) -> u64 {
        self.0
    }

    /// The position `words` further on.
    #[inline(always)]
    pub(crate) const fn after(self, words: usize) -> Position {
        Position(self.0.wrapping_add(words as u64 * 4))
    }

    /// The position `words` further back.
    #[inline(always)]
    pub(crate) const fn before(self, words: usize) -> Position {
        Position(self.0.wrapping_sub(words as u64 * 4))
    }

    /// Returns the number of bytes of the block before the position.
    #[inline(always)]
    pub const fn offset(self) -> u16 {
        self.0 as u16
    }

    /// Returns whether the block has ended.
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
    /// The block at this address.
    ///
    /// # Safety
    /// It is one of the pool's, or [`Block::address`] gave the address.
    #[inline(always)]
    pub const unsafe fn new(address: u64) -> Block {
        Block(address)
    }

    /// The address.
    #[inline(always)]
    pub const fn address(self) -> u64 {
        self.0
    }

    /// The block's header.
    #[inline(always)]
    pub const fn header(self) -> *mut block::Header {
        self.0 as *mut block::Header
    }

    /// The position of the block's first entry.
    pub(crate) const fn begin(self) -> Position {
        Position(self.0 + 4 * block::HEADER_WORDS as u64)
    }

    /// A position where no entry fits, for as long as there is no other block. No position is 1 or 2 more than another:
    /// [`Lane::try_advance`] may expect the position there if it is not to move.
    pub const fn sealed(self) -> Position {
        Position(self.0 + block::BYTES as u64 - 1)
    }

    /// A position where no entry fits, for good.
    pub(crate) const fn closed(self) -> Position {
        Position(self.0 + SEALED as u64)
    }
}

/// From this offset on, past the end of any entry, a position means that its block has ended.
const SEALED: u16 = (block::BYTES - 5) as u16;

/// The recorder state of the CPU this runs on, and the pool of blocks. Every method is one step: an
/// interrupt may come before and after it, not inside.
///
/// # Safety
/// Only contexts of one CPU use a lane, nested strictly. A position or block that a method returns was given to it, or
/// is in a block that [`Lane::take_block`] has returned on this CPU. That returns no block twice unless
/// [`Lane::give_block`] was called with it in between.
pub unsafe trait Lane: Copy {
    /// Bytes of a block that header and entries may fill, at most all but the last two words.
    const ROOM: u16;

    /// Counts one more claim under way on this CPU.
    ///
    /// # Safety
    /// The calling context ends it with [`Lane::leave`] before it is gone.
    unsafe fn enter(&self);
    /// Counts one claim less.
    ///
    /// # Safety
    /// It ends the [`Lane::enter`] of the same context, whose positions and blocks are not used any more.
    unsafe fn leave(&self);
    /// Returns whether no other claim is under way.
    fn is_outermost(&self) -> bool;

    /// The position of the next word.
    fn position(&self) -> Position;
    /// Moves the position from `old` to `new`; false, and no change, if it is no longer `old`.
    ///
    /// # Safety
    /// `new` is in the block of `old`, not before it, or in a block that the context holds, and prepared.
    unsafe fn try_move(&self, old: Position, new: Position) -> bool;
    /// Moves the position `old` forward by this many words; false, and no change, if it is no longer `old`, the block
    /// has no room for them, or `time` [is far](Lane::is_far), which may be checked before the position.
    ///
    /// # Safety
    /// See [`Lane::try_move`]: the calling context has read `old` as position.
    unsafe fn try_advance<const WORDS: usize>(&self, old: Position, time: u64) -> bool;
    /// The clock.
    fn now(&self) -> u64;
    /// Converts the clock's time to a counter.
    fn counter(&self, time: u64) -> u64;
    /// The entry of event `BASE + number` at the clock's time `time`.
    fn entry<const BASE: u16>(&self, number: u32, time: u64) -> u32;
    /// The clock's time at the last full time, or at the block's begin.
    fn since(&self) -> u64;
    /// Moves [`Lane::since`].
    fn set_since(&self, time: u64);
    /// Returns whether `time` is 2^20 - 1 counts or more after [`Lane::since`], or before it.
    fn is_far(&self, time: u64) -> bool;
    /// Called once for each event, when its time is known, with the word that stands for it.
    ///
    /// # Safety
    /// See [`Lane::store`].
    unsafe fn note(&self, at: Position);
    /// Counts an event that found no room.
    fn count_loss(&self);
    /// Counts an event that came before recording began or after it ended.
    fn count_outside(&self);

    /// Writes a word.
    ///
    /// # Safety
    /// The word is in a block of this CPU, and belongs to a claim of the calling context.
    unsafe fn store(&self, at: Position, word: u32);
    /// Reads back a word.
    ///
    /// # Safety
    /// See [`Lane::store`]; the word was written.
    unsafe fn load(&self, at: Position) -> u32;
    /// Adds to the word before `end`.
    ///
    /// # Safety
    /// See [`Lane::load`].
    unsafe fn add_before(&self, end: Position, value: u32);

    /// Writes the header of a block, all but its magic number.
    ///
    /// # Safety
    /// The calling context holds the block, and nothing writes into it.
    unsafe fn prepare_block(&self, block: Block, sequence: u64, begin: u64, how: Begin);
    /// Completes the header: the block is part of the trace.
    ///
    /// # Safety
    /// The block is this CPU's, and prepared.
    unsafe fn begin_block(&self, block: Block);
    /// Writes into the header how far the block of `at` is filled, when that was, and why it ends.
    ///
    /// # Safety
    /// The block is this CPU's, prepared, and nothing else ends it.
    unsafe fn end_block(&self, at: Position, time: u64, why: End);
    /// Writes into the header of a block that has ended how many events the CPU has lost since the start, now that another
    /// follows.
    ///
    /// # Safety
    /// The block is this CPU's, and ended by it.
    unsafe fn end_loss(&self, block: Block);
    /// Returns the time when the block began, as prepared.
    ///
    /// # Safety
    /// The block is this CPU's, and prepared; a claim is under way.
    unsafe fn begin(&self, block: Block) -> u64;
    /// Returns the block's number among its CPU's, as prepared.
    ///
    /// # Safety
    /// See [`Lane::begin`].
    unsafe fn sequence(&self, block: Block) -> u64;
    /// Stores which block follows on this CPU.
    ///
    /// # Safety
    /// `block` is one of the pool's.
    unsafe fn set_following(&self, block: Block, following: Block);
    /// The block that follows `block` on this CPU.
    ///
    /// # Safety
    /// See [`Lane::set_following`], which was called for `block`.
    unsafe fn following(&self, block: Block) -> Block;

    /// Takes the spare block, if there is one.
    fn take_spare(&self) -> Option<Block>;
    /// Keeps a block as the spare; false if there is one already.
    ///
    /// # Safety
    /// The calling context holds the block, and no longer holds it if the result is true.
    unsafe fn keep_spare(&self, block: Block) -> bool;
    /// Returns whether recording has begun and not ended.
    fn is_open(&self) -> bool;
    /// Takes a block from the pool, unless none is left.
    fn take_block(&self) -> Option<Block>;
    /// Gives a block back to the pool.
    ///
    /// # Safety
    /// The block is this CPU's, and is not used any more.
    unsafe fn give_block(&self, block: Block);

    /// The oldest block not yet given back.
    fn oldest(&self) -> Block;
    /// Moves [`Lane::oldest`].
    ///
    /// # Safety
    /// The block is this CPU's, and all others of the CPU that are not given back follow it.
    unsafe fn set_oldest(&self, block: Block);

    /// The end of this CPU's last call, or [`NO_CALL`].
    fn call_end(&self) -> Position;
    /// Returns whether `end` is the position.
    fn ends_at(&self, end: Position) -> bool;
    /// Stores where a call ends: its block is kept until this moves on.
    ///
    /// # Safety
    /// The task's call ends there, and is written before the task looks for it, or forgotten.
    unsafe fn set_call_end(&self, end: Position);
    /// Sets it to [`NO_CALL`].
    fn forget_call(&self);
    /// Stores the clock's time of that call.
    fn set_call_time(&self, time: u64);
    /// Returns the counts from that call to `time`.
    fn since_call(&self, time: u64) -> u64;
}

/// The way a block begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// It is later than all before it on its CPU.
    Onward,
    /// The counter has stepped back, or may have.
    Back,
}

/// The reason why a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The CPU continues in another block, or recording ends.
    Complete,
    /// It is full and the pool was empty: events are lost after it.
    Lost,
    /// The CPU goes offline.
    Offline,
}
