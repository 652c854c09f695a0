// SPDX-License-Identifier: GPL-2.0
//! Reserving words for an entry: lock-free, in any context of a CPU, NMI included.
//!
//! Each CPU has a *position*: the address of its next free word. A claim moves it forward by one compare-exchange that
//! only this CPU makes, so it needs no `lock` prefix. Contexts of a CPU nest strictly: an interrupt between any two
//! steps of a claim has finished all of its own claims when the claim continues. The *depth* counts the claims that are
//! under way. Everything that this file guarantees follows from that:
//!
//! * No word belongs to two claims: a claim that is interrupted before its exchange finds the position moved and starts
//!   again.
//! * Time never goes backwards along a CPU's words: the clock is read after the position and the exchange
//!   fails if anything was claimed since.
//! * Every claim is less than 2^20 counts later than *since*, the time of a block's begin or of a full time before it
//!   in the CPU's words, so 20 bits of time are enough: after that a new full time is claimed first.
//! * A counter that steps back to before that time is as far from it, in unsigned numbers, as one long after it, so the
//!   same comparison catches it: the following entries go into a block of their own, which is marked. The same happens
//!   to a claim that finds a gap while another claim is under way, whose full time may be later than since shows.
//! * A counter that steps back by less is not noticed: the following entries are read 2^20 counts too late, up to the
//!   next full time. No word, order, value or count depends on it.
//! * A block goes back to the pool only in an outermost claim, so never under a writer. And so no position ever
//!   returns to an address while a claim that saw it there is under way: an equal address is the same moment.
//! * With the depth seen at 0, every word before the position seen earlier is written.
//!
//! The unsafe code of the slow paths rests on three facts, which have these names below:
//!
//! * *Under way*: while a claim of a context is under way, no other claim gives a block of the CPU back. So the block
//!   of a position that the claim has read is still the CPU's, and prepared.
//! * *Moved*: where the exchange of a context has moved the position, the words that it moved over are that context's,
//!   and nothing else ends the block that it moved out of.
//! * *Held*: a block that `take` gave a context belongs to no other until the position is moved to it or it is put
//!   aside.
//!
//! Invariants: `core` only; nothing here locks, waits, allocates, prints or wakes. The same code runs on the
//! host under an explorer that interrupts it at every step (tests/host/recorder).

#![deny(unsafe_op_in_unsafe_fn)]

use crate::abi::event::{FULL_TIME, FULL_TIME_WORDS};
use crate::abi::word::{entry, EVENT_BITS, TIME_PERIOD};
use crate::lane::{Begin, Block, End, Lane, Position, NO_BLOCK};

/// The result of asking for a block.
enum Taken {
    /// This block.
    Block(Block),
    /// None is left.
    Empty,
    /// Recording has not begun, or has ended: the event is not part of the trace.
    Closed,
}

/// `WORDS` words reserved for entries of one time, the first of them written. Only a claim makes one, and lends it for
/// as long as it is under way: nothing writes into the words later. Counters are noted for the event in word `NOTED`.
///
/// ```
/// # use kutrace_recorder::{claim::{record, Claim}, lane::Lane};
/// # fn example<L: Lane>(lane: L) {
/// record::<L, 0, 2, 0>(lane, 1, |claim: &Claim<L, 2>| claim.set::<1>(7));
/// # }
/// ```
/// ```compile_fail,E0521
/// # use kutrace_recorder::{claim::{record, Claim}, lane::Lane};
/// # fn example<L: Lane>(lane: L) {
/// let kept = std::cell::Cell::new(None);
/// record::<L, 0, 2, 0>(lane, 1, |claim: &Claim<L, 2>| kept.set(Some(claim)));
/// # }
/// ```
pub struct Claim<L, const WORDS: usize, const NOTED: usize = 0> {
    lane: L,
    pub(crate) at: Position,
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
            // SAFETY: the words from `at` on are this context's until it leaves the claim, and this is one of them.
            unsafe { self.lane.store(self.at.after(N + n), word) };
        }
    }

    /// Writes another event of the same time into word `N`.
    #[inline(always)]
    pub fn put<const N: usize>(&self, event: u32) {
        self.set::<N>(stamped(event, self.first));
    }
}

/// Reserves `WORDS` words, writes event `BASE + number` into the first and has `write` fill the others; if there is no
/// room, counts a loss.
#[inline(always)]
pub fn record<L: Lane, const BASE: u16, const WORDS: usize, const NOTED: usize>(
    lane: L,
    number: u32,
    write: impl Fn(&Claim<L, WORDS, NOTED>),
) {
    // SAFETY: both paths leave the claim.
    unsafe { lane.enter() };
    // SAFETY: the position is read here, and a claim is under way.
    match unsafe { claim::<L, BASE, WORDS, NOTED>(lane, lane.position(), lane.now(), number) } {
        Some(claim) => {
            write(&claim);
            // SAFETY: entered above, and `write` is done with the claim.
            unsafe { lane.leave() };
        }
        // SAFETY: entered above, and nothing is claimed.
        None => unsafe { record_slow::<L, BASE, WORDS, NOTED>(lane, number, write) },
    }
}

/// Kept out of the common path, so that the common path needs no stack. Leaves the claim under way.
///
/// # Safety
/// See [`Lane::leave`].
#[cold]
#[inline(never)]
unsafe fn record_slow<L: Lane, const BASE: u16, const WORDS: usize, const NOTED: usize>(
    lane: L,
    number: u32,
    write: impl Fn(&Claim<L, WORDS, NOTED>),
) {
    // SAFETY: a claim is under way, as the caller guarantees; it is left when `write` is done with the words.
    unsafe {
        if let Some((claim, _)) = claim_late::<L, BASE, WORDS, NOTED>(lane, number) {
            write(&claim);
        }
        lane.leave()
    }
}

/// Like [`claim`], but handles whatever is in the way, and also returns the time. `None` is a counted loss, or an event
/// outside of the trace.
///
/// # Safety
/// See [`claim_slow`].
#[inline(always)]
pub(crate) unsafe fn claim_late<L: Lane, const BASE: u16, const WORDS: usize, const NOTED: usize>(
    lane: L,
    number: u32,
) -> Option<(Claim<L, WORDS, NOTED>, u64)> {
    // SAFETY: as the caller guarantees; what is returned is reserved.
    unsafe {
        let (at, time) = claim_slow(lane, WORDS)?;
        Some((reserved(lane, at, lane.entry::<BASE>(number, time)), time))
    }
}

/// Reserves words at `at` if nothing is in the way, and writes event `BASE + number` into the first.
///
/// # Safety
/// The calling context has read `at` as position, and nothing gives its block back to the pool before the claim is
/// written: a claim is under way, or the call's end is in it.
#[inline(always)]
pub(crate) unsafe fn claim<L: Lane, const BASE: u16, const WORDS: usize, const NOTED: usize>(
    lane: L,
    at: Position,
    time: u64,
    number: u32,
) -> Option<Claim<L, WORDS, NOTED>> {
    let first = lane.entry::<BASE>(number, time);
    // SAFETY: forward in the same block, from a position that the caller has read.
    if !unsafe { lane.try_advance::<WORDS>(at, time) } {
        return None;
    }
    // SAFETY: the exchange has reserved the words.
    Some(unsafe { reserved(lane, at, first) })
}

/// Makes the claim of words that are reserved; writes the first.
///
/// # Safety
/// The exchange of the calling context has moved the position over the words from `at` on.
#[inline(always)]
unsafe fn reserved<L: Lane, const WORDS: usize, const NOTED: usize>(
    lane: L,
    at: Position,
    first: u32,
) -> Claim<L, WORDS, NOTED> {
    let claim = Claim { lane, at, first };
    const { assert!(NOTED < WORDS) };
    // SAFETY: that word is one of them.
    unsafe { lane.note(at.after(NOTED)) };
    claim.set::<0>(first);
    claim
}

/// Returns whether there is room for `words` words.
const fn fits<L: Lane>(at: Position, words: usize) -> bool {
    at.offset() <= L::ROOM - 4 * words as u16
}

/// Reserves words after an interruption, after a gap in time, or in another block; returns position and time. One
/// function for all events.
///
/// # Safety
/// A claim of the calling context is under way, until the words are written.
#[cold]
#[inline(never)]
unsafe fn claim_slow<L: Lane>(lane: L, words: usize) -> Option<(Position, u64)> {
    let mut held = None;
    // SAFETY: under way, as the caller guarantees; moved; held.
    unsafe {
        let place = loop {
            let at = lane.position();
            let time = lane.now();
            let bridge = if lane.is_far(time) { FULL_TIME_WORDS } else { 0 };
            let back = may_be_back(lane, at, time);
            if !back && fits::<L>(at, bridge + words) {
                if !lane.try_move(at, at.after(bridge + words)) {
                    continue;
                }
                if bridge != 0 {
                    write_full_time(lane, at, time);
                }
                break Some((at.after(bridge), time));
            }
            let block = match take(lane, at, &mut held) {
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
                break Some((block.begin(), time));
            }
        };
        put_aside(lane, held);
        place
    }
}

/// Returns whether the counter may have stepped back to `time`: a time that is far from the last full time and before
/// it, before the block, or seen by a claim inside of another, whose clock was read earlier.
///
/// # Safety
/// A claim of the calling context is under way, which has read `at` as position.
unsafe fn may_be_back<L: Lane>(lane: L, at: Position, time: u64) -> bool {
    let block = at.block();
    if block == NO_BLOCK || !lane.is_far(time) {
        return false;
    }
    // SAFETY: under way.
    let begin = unsafe { lane.begin(block) };
    is_before(time, lane.since()) || !lane.is_outermost() || lane.counter(time) < begin
}

/// Returns whether a time is before another, if the two are less than half of all numbers apart.
const fn is_before(time: u64, other: u64) -> bool {
    (time.wrapping_sub(other) as i64) < 0
}

/// Writes the three words of a full time, and stores it as the last one. An interrupt that comes before that bridges
/// once more, and the time that it stores is later than this one: too early does no harm.
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

/// Finds a block to continue in. If the pool is empty, this CPU may have some to give back: claims inside of others,
/// which moved on from these blocks, do not give them back.
///
/// # Safety
/// The calling context holds what is `held`, and has read `at` as position in a claim that is under way.
unsafe fn take<L: Lane>(lane: L, at: Position, held: &mut Option<Block>) -> Taken {
    if !lane.is_open() {
        return Taken::Closed;
    }
    let current = at.block();
    // SAFETY: under way. Where blocks are retired no other claim that the depth counts is under way: in this claim the
    // position was in the block, and it has taken no other; any claim that came in between moved on from there.
    unsafe {
        hold(lane, held);
        if held.is_none() && lane.is_outermost() && current != NO_BLOCK && lane.oldest() != current {
            retire(lane, current);
            hold(lane, held);
        }
    }
    held.map_or(Taken::Empty, Taken::Block)
}

/// Gets hold of a block, if there is one: the one from an earlier attempt, the spare, or one from the pool; not that of
/// the last call, which an interrupted call may have seen before it was given back.
///
/// # Safety
/// The calling context holds what is `held`.
unsafe fn hold<L: Lane>(lane: L, held: &mut Option<Block>) {
    *held = held.or_else(|| lane.take_spare()).or_else(|| lane.take_block());
    if let Some(block) = *held {
        if block == lane.call_end().block() {
            *held = lane.take_block();
            // SAFETY: held, and nothing was done with it.
            unsafe { lane.give_block(block) };
        }
    }
}

/// Keeps the held block for later, if an interrupt got there first. If there is a spare already, the block goes back
/// unused.
///
/// # Safety
/// The calling context holds the block.
unsafe fn put_aside<L: Lane>(lane: L, held: Option<Block>) {
    let Some(block) = held else { return };
    // SAFETY: held, as the caller guarantees.
    unsafe {
        if !lane.keep_spare(block) {
            lane.give_block(block);
        }
    }
}

/// Ends the block of `old` and continues in `block`, with `words` words reserved. False if the position has moved
/// since.
///
/// # Safety
/// The calling context holds `block`, and no longer does so if this is true. A claim of it is under way, which has read
/// `old` as position.
unsafe fn move_to_block<L: Lane>(lane: L, old: Position, time: u64, block: Block, words: usize) -> bool {
    let (full, since) = (old.block(), lane.since());
    // SAFETY: under way and held, as the caller guarantees; from the exchange on moved.
    unsafe {
        let sequence = if full == NO_BLOCK { 0 } else { 1 + lane.sequence(full) };
        let how = if may_be_back(lane, old, time) { Begin::Back } else { Begin::Onward };
        lane.prepare_block(block, sequence, lane.counter(time), how);
        if !lane.try_move(old, block.begin().after(words)) {
            return false;
        }
        lane.begin_block(block);
        lane.set_since(time);
        if full == NO_BLOCK {
            lane.set_oldest(block);
            return true;
        }
        if !old.is_sealed() {
            lane.end_block(old, end(lane, full, since, time), End::Complete);
        } else {
            lane.end_loss(full);
        }
        lane.set_following(full, block);
        if lane.is_outermost() {
            retire(lane, block);
        }
    }
    true
}

/// Gives back the blocks before `current`, but not the one of the last call. Interrupts that come now leave the blocks
/// alone.
///
/// # Safety
/// The outermost claim is that of the calling context, in which the position was in `current`, and which uses no block
/// before it.
unsafe fn retire<L: Lane>(lane: L, current: Block) {
    let call = lane.call_end().block();
    let mut kept = None;
    let mut block = lane.oldest();
    // SAFETY: the blocks before `current` are this CPU's, each followed by another; as the caller guarantees, no claim
    // that the depth counts uses one, and no call uses those that are given back.
    unsafe {
        while block != current {
            let next = lane.following(block);
            if block == call {
                kept = Some(block);
            } else {
                lane.set_oldest(kept.unwrap_or(next));
                lane.give_block(block);
            }
            block = next;
        }
        if let Some(kept) = kept {
            lane.set_oldest(kept);
            lane.set_following(kept, current);
        }
    }
}

/// Returns the counter at the end of a block that ends at `time`: if the clock has stepped back since, one that none of
/// its entries reaches, except those after a full time that is not known yet. Nor need it be known yet when the block
/// has begun.
///
/// # Safety
/// A claim of the calling context is under way, in which the block was the position's.
unsafe fn end<L: Lane>(lane: L, block: Block, since: u64, time: u64) -> u64 {
    // SAFETY: under way.
    let begin = unsafe { lane.begin(block) };
    match is_before(time, since) || lane.counter(time) < begin {
        false => lane.counter(time),
        true => begin.max(lane.counter(since)) + TIME_PERIOD,
    }
}

/// Ends a CPU's block if no other follows now, so that no shorter event slips in after a missing one. False if the
/// position has moved since `at`: there may be room again.
///
/// # Safety
/// A claim of the calling context is under way, which has read `at` as position.
unsafe fn seal<L: Lane>(lane: L, at: Position, time: u64, why: End) -> bool {
    if at.is_sealed() {
        return lane.position() == at;
    }
    let since = lane.since();
    // SAFETY: to the end of the same block.
    let moved = unsafe { lane.try_move(at, at.block().sealed()) };
    if moved {
        // SAFETY: under way, and moved.
        unsafe { lane.end_block(at, end(lane, at.block(), since, time), why) };
    }
    moved
}

/// Ends the block that this CPU fills, for good: the lane is closed, and a claim under way that holds a block finds the
/// position moved.
pub fn close<L: Lane>(lane: L, why: End) {
    in_a_claim(lane, || loop {
        let at = lane.position();
        let time = lane.now();
        let since = lane.since();
        // SAFETY: to the end of the same block.
        if unsafe { lane.try_move(at, at.block().closed()) } {
            if !at.is_sealed() {
                // SAFETY: under way, and moved.
                unsafe { lane.end_block(at, end(lane, at.block(), since, time), why) };
            }
            break;
        }
    });
}

/// Ends the block that this CPU fills and continues in a new one, so that everything recorded so far can be read. False
/// if the pool is empty. Claims in contexts below may still write into the block that has ended: wait for depth 0 and
/// for the calls.
pub fn rotate<L: Lane>(lane: L) -> bool {
    in_a_claim(lane, || {
        let mut held = None;
        // SAFETY: under way; held.
        unsafe {
            let rotated = loop {
                let at = lane.position();
                let time = lane.now();
                let block = match take(lane, at, &mut held) {
                    Taken::Block(block) => block,
                    Taken::Empty | Taken::Closed => break false,
                };
                if move_to_block(lane, at, time, block, 0) {
                    held = None;
                    break true;
                }
            };
            put_aside(lane, held);
            rotated
        }
    })
}

/// Returns the number of the block that the next entry goes into, if it fits there.
pub fn block_number<L: Lane>(lane: L) -> Option<u64> {
    in_a_claim(lane, || {
        let block = lane.position().block();
        // SAFETY: under way.
        (block != NO_BLOCK).then(|| unsafe { lane.sequence(block) })
    })
}

/// Calls `work` while a claim is under way.
#[inline(always)]
pub(crate) fn in_a_claim<L: Lane, R>(lane: L, work: impl FnOnce() -> R) -> R {
    // SAFETY: left below.
    unsafe { lane.enter() };
    let result = work();
    // SAFETY: entered above, and `work` is done with its positions and blocks.
    unsafe { lane.leave() };
    result
}

/// The entry of `event` at the time that is in the highest 20 bits of `stamp`.
#[inline(always)]
pub const fn stamped(event: u32, stamp: u32) -> u32 {
    (stamp & !((1 << EVENT_BITS) - 1)).wrapping_add(event)
}
