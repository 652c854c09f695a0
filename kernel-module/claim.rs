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
//! * Every claim is less than 2^20 counts later than *since*, the time of a block's begin or a full time that stands
//!   before it in the CPU's words, so 20 bits of time are enough: after that a new full time is claimed first.
//! * A counter that steps back to before that time is as far from it, in unsigned numbers, as one long after it, so
//!   the same comparison catches it: what follows goes into a block of its own, which says so. So does what finds a
//!   gap while a claim is under way, whose full time may be later than since says.
//! * A block goes back to the pool only in an outermost claim, so never under a writer. And so no position ever
//!   returns to an address while a claim that saw it there is under way: an equal address is the same moment.
//! * With the depth seen at 0, every word before the position seen earlier is written.
//!
//! System calls are most of what there is to record, so they do without the depth. They come from a task, with
//! preemption off, so no two of them nest: one word a CPU, the *call's end*, says which block one of them uses.
//!
//! * A call says where its words will end after it has looked for the position and before it reads the clock. From
//!   then on the block of the call's end neither goes back to the pool nor is begun. So the position cannot come round
//!   to the same address once more, and if it moved before, the exchange fails, or the block came round before the
//!   clock was read. Either way the words are the call's, and its time is in order.
//! * A return is folded into the call only if the position is still the call's end. The block stays until the next
//!   call or switch, so an interrupt between that look and the store takes nothing away.
//! * Nothing shows when they are done. Who waits for the words of an earlier position waits for the depth to be 0
//!   and for an RCU grace period, since preemption is off in them and RCU watches.
//!
//! Invariants: `core` only; nothing here locks, waits, allocates, prints or wakes. The same code runs on the
//! host under an explorer that interrupts it at every step (tests/host/recorder).

#![deny(unsafe_op_in_unsafe_fn)]

use crate::abi::block;
use crate::abi::event::{FULL_TIME, FULL_TIME_WORDS};
use crate::abi::word::{entry, EVENT_BITS, TIME_PERIOD};

/// The address of a word in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(u64);

/// The address of a block, a multiple of its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block(u64);

/// What a CPU fills that has taken no block yet.
pub const NO_BLOCK: Block = Block(0);

/// A call's end that no position equals: no call can be folded.
pub const NO_CALL: Position = Position(0);

impl Position {
    /// The position of this address.
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
    const fn after(self, words: usize) -> Position {
        Position(self.0.wrapping_add(words as u64 * 4))
    }

    /// The position `words` further back.
    #[inline(always)]
    const fn before(self, words: usize) -> Position {
        Position(self.0.wrapping_sub(words as u64 * 4))
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

/// From this offset on, which no word has, a position says that its block has ended.
const SEALED: u16 = (block::BYTES - 2) as u16;

/// The recorder state of the CPU this runs on, and the pool of blocks. Every method is one step: an
/// interrupt may come before and after it, not inside.
///
/// # Safety
/// Only contexts of one CPU use a lane, nested strictly. A position or block that a method returns was given to it, or
/// is in a block that [`Lane::take_block`] has returned on this CPU. That returns no block twice unless
/// [`Lane::give_block`] was called with it in between.
pub unsafe trait Lane: Copy {
    /// Bytes of a block that header and entries may fill, at most all but the last word.
    const ROOM: u16;

    /// A claim is under way on this CPU, one more.
    ///
    /// # Safety
    /// The context that calls ends it with [`Lane::leave`] before it is gone.
    unsafe fn enter(&self);
    /// And one less.
    ///
    /// # Safety
    /// It ends the [`Lane::enter`] of the same context, whose positions and blocks are used no more.
    unsafe fn leave(&self);
    /// Whether no other claim is under way.
    fn is_outermost(&self) -> bool;

    /// Where the next word goes.
    fn position(&self) -> Position;
    /// Moves the position from `old` to `new`; false, and no change, if it is not `old` any more.
    ///
    /// # Safety
    /// `new` is in the block of `old`, not before it, or in a block that the context holds, and prepared.
    unsafe fn try_move(&self, old: Position, new: Position) -> bool;
    /// Moves the position from `old` on by so many words; false, and no change, if it is not `old` any more or the
    /// block has no room for them.
    ///
    /// # Safety
    /// As of [`Lane::try_move`]: the context that calls has read `old` as position.
    unsafe fn try_advance<const WORDS: usize>(&self, old: Position) -> bool;
    /// The clock.
    fn now(&self) -> u64;
    /// What the clock's time is as counter.
    fn counter(&self, time: u64) -> u64;
    /// The entry of event `BASE + number` at the clock's time `time`.
    fn entry<const BASE: u16>(&self, number: u32, time: u64) -> u32;
    /// The clock's time of the last full time, or of the block's begin.
    fn since(&self) -> u64;
    /// Moves [`Lane::since`].
    fn set_since(&self, time: u64);
    /// Whether `time` is not less than 2^20 - 1 counts after [`Lane::since`], or before it.
    fn is_far(&self, time: u64) -> bool;
    /// Told of each event once, when its time is known, with the word that stands for it.
    ///
    /// # Safety
    /// As of [`Lane::store`].
    unsafe fn note(&self, at: Position);
    /// Counts an event that found no room.
    fn count_loss(&self);
    /// Counts an event that came before recording began or after it ended.
    fn count_outside(&self);

    /// Writes a word.
    ///
    /// # Safety
    /// The word lies in a block that is this CPU's, and belongs to a claim of the context that calls.
    unsafe fn store(&self, at: Position, word: u32);
    /// Reads back a word.
    ///
    /// # Safety
    /// As of [`Lane::store`], and the word was written.
    unsafe fn load(&self, at: Position) -> u32;
    /// Adds to the word before `end`.
    ///
    /// # Safety
    /// As of [`Lane::load`].
    unsafe fn add_before(&self, end: Position, value: u32);

    /// Writes the header of a block, all but its magic number.
    ///
    /// # Safety
    /// The context that calls holds the block, and nobody writes into it.
    unsafe fn prepare_block(&self, block: Block, sequence: u64, begin: u64, how: Begin);
    /// Completes the header: the block is part of the trace.
    ///
    /// # Safety
    /// The block is this CPU's, and prepared.
    unsafe fn begin_block(&self, block: Block);
    /// Writes into the header how far the block of `at` is filled, when that was, and why it ends.
    ///
    /// # Safety
    /// The block is this CPU's, prepared, and nobody else ends it.
    unsafe fn end_block(&self, at: Position, time: u64, why: End);
    /// When the block began, as prepared.
    ///
    /// # Safety
    /// The block is this CPU's, and prepared; a claim is under way.
    unsafe fn begin(&self, block: Block) -> u64;
    /// The block's number among its CPU's, as prepared.
    ///
    /// # Safety
    /// As of [`Lane::begin`].
    unsafe fn sequence(&self, block: Block) -> u64;
    /// Remembers which block follows on this CPU.
    ///
    /// # Safety
    /// `block` is one of the pool's.
    unsafe fn set_following(&self, block: Block, following: Block);
    /// The block that follows `block` on this CPU.
    ///
    /// # Safety
    /// As of [`Lane::set_following`], which was called for it.
    unsafe fn following(&self, block: Block) -> Block;

    /// Takes the block kept aside, if there is one.
    fn take_spare(&self) -> Option<Block>;
    /// Keeps a block aside; false if there is one already.
    ///
    /// # Safety
    /// The context that calls holds the block, and holds it no more if that is true.
    unsafe fn keep_spare(&self, block: Block) -> bool;
    /// Whether recording has begun and not ended.
    fn is_open(&self) -> bool;
    /// Takes a block from the pool, unless none is left.
    fn take_block(&self) -> Option<Block>;
    /// Gives a block back to the pool.
    ///
    /// # Safety
    /// The block is this CPU's, and nobody will use it any more.
    unsafe fn give_block(&self, block: Block);

    /// The oldest block not yet given back.
    fn oldest(&self) -> Block;
    /// Moves [`Lane::oldest`].
    ///
    /// # Safety
    /// The block is this CPU's, and all others of the CPU that are not given back follow it.
    unsafe fn set_oldest(&self, block: Block);

    /// Where this CPU's last call ends, or [`NO_CALL`].
    fn call_end(&self) -> Position;
    /// Whether that is the position.
    fn ends_at(&self, end: Position) -> bool;
    /// Remembers where a call ends: its block is kept until this moves on.
    ///
    /// # Safety
    /// The task's call ends there, and is written before the task looks for it, or forgotten.
    unsafe fn set_call_end(&self, end: Position);
    /// Makes that [`NO_CALL`].
    fn forget_call(&self);
    /// Remembers the clock's time of that call.
    fn set_call_time(&self, time: u64);
    /// Counts from that call to `time`.
    fn since_call(&self, time: u64) -> u64;
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

/// How a block begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// Later than all before it on its CPU.
    Onward,
    /// The counter has stepped back, or may have.
    Back,
}

/// Why a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The CPU goes on in another block, or recording ends.
    Complete,
    /// It is full and the pool was empty: events are lost after it.
    Lost,
    /// The CPU goes offline.
    Offline,
}

/// `WORDS` words reserved for entries of one time, the first of them written. Only a claim makes one, so they are the
/// holder's, to be written before the claim is left. What is counted is counted for the event in word `NOTED`.
pub struct Claim<L, const WORDS: usize, const NOTED: usize = 0> {
    lane: L,
    at: Position,
    first: u32,
}

impl<L: Lane, const WORDS: usize, const NOTED: usize> Claim<L, WORDS, NOTED> {
    /// Writes word `N`.
    #[inline(always)]
    pub fn set<const N: usize>(&self, word: u32) {
        const { assert!(N < WORDS) };
        // SAFETY: the words from `at` on are this context's until it leaves the claim, and `N` is one of them.
        unsafe { self.lane.store(self.at.after(N), word) };
    }

    /// Writes the words after `N`.
    #[inline(always)]
    pub fn set_after<const N: usize, const M: usize>(&self, words: [u32; M]) {
        const { assert!(N + M < WORDS) };
        for (n, word) in (1..).zip(words) {
            // SAFETY: as in `set`.
            unsafe { self.lane.store(self.at.after(N + n), word) };
        }
    }

    /// Writes another event of the same time into word `N`.
    #[inline(always)]
    pub fn put<const N: usize>(&self, event: u32) {
        self.set::<N>(stamped(event, self.first));
    }
}

/// Reserves `WORDS` words, writes event `BASE + number` into the first and has `write` fill the others; where there is
/// no room, counts a loss.
#[inline(always)]
pub fn record<L: Lane, const BASE: u16, const WORDS: usize, const NOTED: usize>(
    lane: L,
    number: u32,
    write: impl Fn(Claim<L, WORDS, NOTED>),
) {
    // SAFETY: both ways leave it.
    unsafe { lane.enter() };
    match claim::<L, BASE, WORDS, NOTED>(lane, lane.position(), lane.now(), number) {
        Some(claim) => {
            write(claim);
            // SAFETY: entered above, and `write` has had the claim.
            unsafe { lane.leave() };
        }
        // SAFETY: entered above, and nothing is claimed.
        None => unsafe { record_slow::<L, BASE, WORDS, NOTED>(lane, number, write) },
    }
}

/// Out of the way of the common path, so that it needs no stack. Leaves the claim under way.
///
/// # Safety
/// As of [`Lane::leave`].
#[cold]
#[inline(never)]
unsafe fn record_slow<L: Lane, const BASE: u16, const WORDS: usize, const NOTED: usize>(
    lane: L,
    number: u32,
    write: impl Fn(Claim<L, WORDS, NOTED>),
) {
    if let Some((claim, _)) = claim_slow::<L, BASE, WORDS, NOTED>(lane, number) {
        write(claim);
    }
    // SAFETY: as the caller says, and `write` has had the claim.
    unsafe { lane.leave() };
}

/// A lane in the hands of a task's system call or switch.
#[derive(Clone, Copy)]
pub struct TaskLane<L>(L);

impl<L: Lane> TaskLane<L> {
    /// The lane, in a hook that a task came to.
    ///
    /// # Safety
    /// No other context of the CPU uses such a value until this one is gone: it is the task's own, not that of an
    /// interrupt, and preemption is off.
    #[inline(always)]
    pub unsafe fn new(lane: L) -> TaskLane<L> {
        TaskLane(lane)
    }

    /// The lane.
    #[inline(always)]
    pub fn lane(self) -> L {
        self.0
    }

    /// Reserves the words of a call and fills them, as [`record`] does.
    #[inline(always)]
    pub fn record<const BASE: u16, const WORDS: usize, const NOTED: usize>(
        self,
        number: u32,
        write: impl Fn(Claim<L, WORDS, NOTED>),
    ) {
        let TaskLane(lane) = self;
        let at = lane.position();
        // SAFETY: either the call is written there, or `record_slow` forgets it.
        unsafe { lane.set_call_end(at.after(WORDS)) };
        let time = lane.now();
        lane.set_call_time(time);
        match claim::<L, BASE, WORDS, NOTED>(lane, at, time, number) {
            Some(claim) => write(claim),
            None => self.record_slow::<BASE, WORDS, NOTED>(number, write),
        }
    }

    #[cold]
    #[inline(never)]
    fn record_slow<const BASE: u16, const WORDS: usize, const NOTED: usize>(
        self,
        number: u32,
        write: impl Fn(Claim<L, WORDS, NOTED>),
    ) {
        let TaskLane(lane) = self;
        // SAFETY: left below.
        unsafe { lane.enter() };
        lane.forget_call();
        if let Some((claim, time)) = claim_slow::<L, BASE, WORDS, NOTED>(lane, number) {
            lane.set_call_time(time);
            // SAFETY: the call is written there, next.
            unsafe { lane.set_call_end(claim.at.after(WORDS)) };
            write(claim);
        }
        // SAFETY: entered above, and `write` has had the claim.
        unsafe { lane.leave() };
    }

    /// Has `change` say what to add to the last word of the call before, given the counts since; false if that says
    /// nothing, or something was recorded meanwhile.
    ///
    /// The clock is read before the position: an interrupt that records something before that look prevents the
    /// fold, one after it records later times than the return's.
    #[inline(always)]
    pub fn fold(self, change: impl FnOnce(u64) -> Option<u32>) -> bool {
        let TaskLane(lane) = self;
        let end = lane.call_end();
        let duration = lane.since_call(lane.now());
        if !lane.ends_at(end) {
            return false;
        }
        let Some(value) = change(duration) else { return false };
        // SAFETY: the word before the call's end is the call's last: this context, or the same at an earlier time, has
        // written it, and its block stays this CPU's as long as the call's end does.
        unsafe { lane.note(end.before(1)) };
        // SAFETY: as above.
        unsafe { lane.add_before(end, value) };
        lane.forget_call();
        true
    }

    /// As [`TaskLane::fold`]; `change` is given the word as it is, and says what it becomes.
    pub fn fold_long(self, change: impl FnOnce(u32, u64) -> Option<u32>) -> bool {
        let TaskLane(lane) = self;
        let end = lane.call_end();
        self.fold(|duration| {
            // SAFETY: as in `fold`, which has looked.
            let open = unsafe { lane.load(end.before(1)) };
            change(open, duration).map(|word| word.wrapping_sub(open))
        })
    }

    /// Forgets the call, so that its block need not be kept.
    #[inline(always)]
    pub fn forget_call(self) {
        self.0.forget_call();
    }
}

/// Reserves words at `at` if nothing is in the way, and writes event `BASE + number` into the first.
#[inline(always)]
fn claim<L: Lane, const BASE: u16, const WORDS: usize, const NOTED: usize>(
    lane: L,
    at: Position,
    time: u64,
    number: u32,
) -> Option<Claim<L, WORDS, NOTED>> {
    let first = lane.entry::<BASE>(number, time);
    // SAFETY: on in the same block.
    if lane.is_far(time) || !unsafe { lane.try_advance::<WORDS>(at) } {
        return None;
    }
    // SAFETY: the exchange has reserved the words.
    Some(unsafe { reserved(lane, at, first) })
}

/// The claim of words that are reserved; writes the first.
///
/// # Safety
/// The exchange of the context that calls has moved the position over the words from `at` on.
#[inline(always)]
unsafe fn reserved<L: Lane, const WORDS: usize, const NOTED: usize>(
    lane: L,
    at: Position,
    first: u32,
) -> Claim<L, WORDS, NOTED> {
    let claim = Claim { lane, at, first };
    const { assert!(NOTED < WORDS) };
    // SAFETY: as in `Claim::set`.
    unsafe { lane.note(at.after(NOTED)) };
    claim.set::<0>(first);
    claim
}

/// Whether there is room for `words` words.
#[inline(always)]
const fn fits<L: Lane>(at: Position, words: usize) -> bool {
    at.offset() <= L::ROOM - 4 * words as u16
}

/// Reserves words after an interruption, after a gap in time, or in another block, and says when. `None` is a counted
/// loss, or an event outside of the trace. The depth is counted.
fn claim_slow<L: Lane, const BASE: u16, const WORDS: usize, const NOTED: usize>(
    lane: L,
    number: u32,
) -> Option<(Claim<L, WORDS, NOTED>, u64)> {
    let mut held = None;
    let place = loop {
        let at = lane.position();
        let time = lane.now();
        let bridge = if lane.is_far(time) { FULL_TIME_WORDS } else { 0 };
        if !may_be_back(lane, at, time) && fits::<L>(at, bridge + WORDS) {
            // SAFETY: on in the same block, which has room.
            if !unsafe { lane.try_move(at, at.after(bridge + WORDS)) } {
                continue;
            }
            if bridge != 0 {
                // SAFETY: the exchange has reserved the words.
                unsafe { write_full_time(lane, at, time) };
            }
            break Some((at.after(bridge), time));
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
        // SAFETY: `take` gave this context the block.
        if unsafe { move_to_block(lane, at, time, block, WORDS) } {
            held = None;
            break Some((block.begin(), time));
        }
    };
    put_aside(lane, held);
    let (at, time) = place?;
    // SAFETY: the exchange has reserved the words.
    Some((unsafe { reserved(lane, at, lane.entry::<BASE>(number, time)) }, time))
}

/// Whether the counter may have stepped back to `time`. If not, the position has moved since `at` or no time before
/// `at` is later. The depth is counted.
fn may_be_back<L: Lane>(lane: L, at: Position, time: u64) -> bool {
    let block = at.block();
    if block == NO_BLOCK || !lane.is_far(time) {
        return false;
    }
    // SAFETY: the block was the position's, so it was prepared; a claim is under way, so it is this CPU's still.
    let begin = unsafe { lane.begin(block) };
    is_before(time, lane.since()) || !lane.is_outermost() || lane.counter(time) < begin
}

/// Whether a time is before another, of times that are less than half of all numbers apart.
const fn is_before(time: u64, other: u64) -> bool {
    (time.wrapping_sub(other) as i64) < 0
}

/// Writes the three words of a full time, and that it is the last. An interrupt that comes before that bridges once
/// more, and the time that it keeps is later than this one: too early does no harm.
///
/// # Safety
/// The three words from `at` on are reserved for that.
unsafe fn write_full_time<L: Lane>(lane: L, at: Position, time: u64) {
    let counter = lane.counter(time);
    for (n, word) in [entry(FULL_TIME, counter), counter as u32, (counter >> 32) as u32].into_iter().enumerate() {
        // SAFETY: the caller reserved the words.
        unsafe { lane.store(at.after(n), word) };
    }
    lane.set_since(time);
}

/// A block to go on in: the one `held` from an attempt before, the spare, or one from the pool; not that of the last
/// call, which an interrupted call may have seen before it was given back.
fn take<L: Lane>(lane: L, held: &mut Option<Block>) -> Taken {
    if !lane.is_open() {
        return Taken::Closed;
    }
    *held = held.or_else(|| lane.take_spare()).or_else(|| lane.take_block());
    if let Some(block) = *held {
        if block == lane.call_end().block() {
            *held = lane.take_block();
            // SAFETY: it was taken, and nothing was done with it.
            unsafe { lane.give_block(block) };
        }
    }
    held.map_or(Taken::Empty, Taken::Block)
}

/// Where an interrupt was faster, the block in hand is kept for later. If there is a spare already, it goes back
/// unused.
fn put_aside<L: Lane>(lane: L, held: Option<Block>) {
    if let Some(block) = held {
        // SAFETY: `take` gave this context the block, and it was not moved to.
        let kept = unsafe { lane.keep_spare(block) };
        if !kept {
            // SAFETY: as above.
            unsafe { lane.give_block(block) };
        }
    }
}

/// Ends the block of `old` and goes on in `block`, with `words` words reserved. False if the position moved since. The
/// depth is counted.
///
/// # Safety
/// The context that calls holds `block`; if this is true, no more.
unsafe fn move_to_block<L: Lane>(lane: L, old: Position, time: u64, block: Block, words: usize) -> bool {
    let full = old.block();
    // SAFETY: the block was the position's, so it was prepared; a claim is under way, so it is this CPU's still.
    let sequence = if full == NO_BLOCK { 0 } else { 1 + unsafe { lane.sequence(full) } };
    let since = lane.since();
    let how = if may_be_back(lane, old, time) { Begin::Back } else { Begin::Onward };
    // SAFETY: the caller holds it.
    unsafe { lane.prepare_block(block, sequence, lane.counter(time), how) };
    // SAFETY: the caller holds the block, which is prepared.
    if !unsafe { lane.try_move(old, block.begin().after(words)) } {
        return false;
    }
    // SAFETY: the exchange made it the CPU's.
    unsafe { lane.begin_block(block) };
    lane.set_since(time);
    if full == NO_BLOCK {
        // SAFETY: it is the first.
        unsafe { lane.set_oldest(block) };
        return true;
    }
    if !old.is_sealed() {
        // SAFETY: this context has moved the position out of it.
        unsafe { lane.end_block(old, end(lane, since, time), End::Complete) };
    }
    // SAFETY: every block but NO_BLOCK is one of the pool's.
    unsafe { lane.set_following(full, block) };
    if lane.is_outermost() {
        retire(lane, block);
    }
    true
}

/// Gives back the blocks before `current`, but not the one of the last call. In no other context is a claim under way
/// that counts, and interrupts that come now leave the blocks alone.
fn retire<L: Lane>(lane: L, current: Block) {
    let call = lane.call_end().block();
    let mut kept = None;
    let mut block = lane.oldest();
    while block != current {
        // SAFETY: blocks before the current one were followed by another.
        let next = unsafe { lane.following(block) };
        if block == call {
            kept = Some(block);
        } else {
            // SAFETY: `block`, which does not follow it, is given back next.
            unsafe { lane.set_oldest(kept.unwrap_or(next)) };
            // SAFETY: no claim that counts is under way, and no call uses it.
            unsafe { lane.give_block(block) };
        }
        block = next;
    }
    if let Some(kept) = kept {
        // SAFETY: of those before `current` it alone is left.
        unsafe { lane.set_oldest(kept) };
        // SAFETY: it is one of the pool's.
        unsafe { lane.set_following(kept, current) };
    }
}

/// The counter when a block ends at `time`: if the clock has stepped back since, one that none of its entries reaches.
fn end<L: Lane>(lane: L, since: u64, time: u64) -> u64 {
    match is_before(time, since) {
        false => lane.counter(time),
        true => lane.counter(since) + TIME_PERIOD,
    }
}

/// Ends a CPU's block where no other follows now, so that nothing shorter slips in after what is missing.
/// False if the position moved since `at`: there may be room again.
fn seal<L: Lane>(lane: L, at: Position, time: u64, why: End) -> bool {
    if at.is_sealed() {
        return lane.position() == at;
    }
    let since = lane.since();
    // SAFETY: to the end of the same block.
    let moved = unsafe { lane.try_move(at, at.block().sealed()) };
    if moved {
        // SAFETY: this context has moved the position out of it; a claim is under way, so the block is this CPU's
        // still.
        unsafe { lane.end_block(at, end(lane, since, time), why) };
    }
    moved
}

/// Ends the block that this CPU fills, for good: the lane is closed, and a claim under way that has a block in hand
/// finds the position moved.
pub fn close<L: Lane>(lane: L, why: End) {
    // SAFETY: left below.
    unsafe { lane.enter() };
    loop {
        let at = lane.position();
        let time = lane.now();
        let since = lane.since();
        // SAFETY: to the end of the same block.
        if unsafe { lane.try_move(at, at.block().closed()) } {
            if !at.is_sealed() {
                // SAFETY: as in `seal`.
                unsafe { lane.end_block(at, end(lane, since, time), why) };
            }
            break;
        }
    }
    // SAFETY: entered above, and nothing is claimed.
    unsafe { lane.leave() };
}

/// Ends the block that this CPU fills and goes on in a new one, so that all it has recorded can be read. False if the
/// pool is empty. Claims in contexts below may still write into the block ended: wait for depth 0 and for the calls.
pub fn rotate<L: Lane>(lane: L) -> bool {
    // SAFETY: left below.
    unsafe { lane.enter() };
    let mut held = None;
    let rotated = loop {
        let at = lane.position();
        let time = lane.now();
        let block = match take(lane, &mut held) {
            Taken::Block(block) => block,
            Taken::Empty | Taken::Closed => break false,
        };
        // SAFETY: `take` gave this context the block.
        if unsafe { move_to_block(lane, at, time, block, 0) } {
            held = None;
            break true;
        }
    };
    put_aside(lane, held);
    // SAFETY: entered above, and nothing is claimed.
    unsafe { lane.leave() };
    rotated
}

/// The number of the block that the next entry goes into, if it fits there.
pub fn block_number<L: Lane>(lane: L) -> Option<u64> {
    // SAFETY: left below.
    unsafe { lane.enter() };
    let block = lane.position().block();
    // SAFETY: the block is the position's, so it was prepared; a claim is under way, so it is this CPU's still.
    let number = (block != NO_BLOCK).then(|| unsafe { lane.sequence(block) });
    // SAFETY: entered above, and nothing is claimed.
    unsafe { lane.leave() };
    number
}

/// The entry of `event` at the time that is in the highest 20 bits of `stamp`.
#[inline(always)]
pub const fn stamped(event: u32, stamp: u32) -> u32 {
    (stamp & !((1 << EVENT_BITS) - 1)).wrapping_add(event)
}
