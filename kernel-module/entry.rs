// SPDX-License-Identifier: GPL-2.0
//! What an event becomes: an entry and its argument words, or a return folded into the call before it.
//!
//! Invariants: no hook fails, waits or calls the kernel; a return is folded only when nothing was claimed
//! on this CPU since its call.

#![forbid(unsafe_code)]

use crate::abi::event::{SMALL_RETURN, SWITCH, SYSCALL, SYSCALL_RETURN, TASK, TASK_WORDS};
use crate::abi::word::{entry, entry_of, Call};
use crate::claim::{record, Claim, Lane, Position};

/// What folding needs besides a lane.
pub trait Fold: Lane {
    /// The position right behind this CPU's last call, or [`NO_CALL`].
    fn call_end(&self) -> Position;
    /// How long after that call `time` is.
    fn since_call(&self, time: u64) -> u64;
    /// Remembers the position right behind a call, and its time.
    fn set_call(&self, end: Position, time: u64);
    /// Forgets the call.
    fn forget_call(&self);
    /// Reads back a word that this CPU wrote.
    fn load(&self, at: Position) -> u32;
    /// Adds to the word before `end`, which this CPU wrote.
    fn add_before(&self, end: Position, value: u32);
}

/// A [`Fold::call_end`] that no position equals: no call can be folded.
pub const NO_CALL: Position = Position(0);

/// Records an event that its number says all about.
#[inline(always)]
pub fn event<L: Lane>(lane: L, event: u32) {
    record(lane, 1, move |lane, claim| put(lane, claim.at, event, claim.time));
}

/// Records an event with one value.
#[inline(always)]
pub fn value<L: Lane>(lane: L, event: u32, value: u32) {
    record(lane, 2, move |lane, claim| {
        put(lane, claim.at, event, claim.time);
        lane.store(claim.word(1), value);
    });
}

/// Records the begin of system call `nr`, below 512, with its first argument.
#[inline(always)]
pub fn syscall<L: Fold>(lane: L, nr: u32, arg: u64) {
    record(lane, 2, move |lane, claim| {
        lane.set_call(claim.word(2), claim.time);
        put(lane, claim.at, nr.wrapping_add(SYSCALL.into()), claim.time);
        lane.store(claim.word(1), Call::open(arg));
    });
}

/// Records the return of system call `nr`, below 512: folded into the call if that is the last thing recorded.
#[inline(always)]
pub fn syscall_return<L: Fold>(lane: L, nr: u32, value: i64) {
    let folded = fold(lane, |end, duration| {
        let short = Call::short_return(duration, value)?;
        lane.note(end.before(1));
        lane.add_before(end, short);
        Some(())
    });
    if !folded {
        long_return(lane, nr, value);
    }
}

/// Records a return that is not short: folded all the same, or on its own.
#[cold]
#[inline(never)]
fn long_return<L: Fold>(lane: L, nr: u32, value: i64) {
    let folded = fold(lane, |end, duration| {
        let long = Call::fold(lane.load(end.before(1)), duration, value)?;
        lane.note(end.before(1));
        lane.store(end.before(1), long);
        Some(())
    });
    if folded {
        return;
    }
    if value as i8 as i64 == value {
        event(lane, u32::from(SMALL_RETURN) + u32::from(value as u8 ^ 128));
    } else {
        self::value(lane, nr.wrapping_add(SYSCALL_RETURN.into()), value as u32);
    }
}

/// Has `write` put the return into the word before a call's end; false if it does not fit or something was recorded meanwhile.
///
/// The clock is read before the position: an interrupt that records something before that look prevents the
/// fold, one after it records later times than the return's. However much it records, the call's block stays
/// ours until we leave.
#[inline(always)]
fn fold<L: Fold>(lane: L, write: impl Fn(Position, u64) -> Option<()>) -> bool {
    lane.enter();
    let end = lane.call_end();
    let duration = lane.since_call(lane.now());
    let folded = lane.position() == end && write(end, duration).is_some();
    if folded {
        lane.forget_call();
    }
    lane.leave();
    folded
}

/// Records an event with `N` argument words.
#[inline(always)]
pub fn words<L: Lane, const N: usize>(lane: L, event: u16, words: [u32; N]) {
    record(lane, 1 + N as u64, |lane, claim| {
        lane.note(claim.at);
        write(lane, claim, event, words);
    });
}

/// Records a switch to the task that `words` tell of, in the same block as who it is.
#[inline(always)]
pub fn switch_to_named<L: Lane>(lane: L, words: [u32; TASK_WORDS]) {
    record(lane, 1 + TASK_WORDS as u64 + 2, |lane, claim| {
        write(lane, claim, TASK, words);
        put(lane, claim.word(1 + TASK_WORDS as u64), SWITCH.into(), claim.time);
        lane.store(claim.word(2 + TASK_WORDS as u64), words[0]);
    });
}

/// Writes the word of an event that is to be noted.
#[inline(always)]
fn put<L: Lane>(lane: L, at: Position, event: u32, time: u64) {
    lane.note(at);
    lane.store(at, entry_of(event, time));
}

/// Writes an entry and its argument words.
#[inline(always)]
fn write<L: Lane, const N: usize>(lane: L, claim: Claim, event: u16, words: [u32; N]) {
    lane.store(claim.at, entry(event, claim.time));
    for (n, word) in (1..).zip(words) {
        lane.store(claim.word(n), word);
    }
}
