// SPDX-License-Identifier: GPL-2.0
//! What an event becomes: an entry and its argument words, or a return folded into the call before it.
//!
//! Invariants: no hook fails, waits or calls the kernel; a return is folded only when nothing was claimed
//! on this CPU since its call.

#![forbid(unsafe_code)]

use crate::abi::event::{SMALL_RETURN, SWITCH, SYSCALL, SYSCALLS, SYSCALL_RETURN, TASK, TASK_WORDS};
use crate::abi::word::{entry, Call};
use crate::claim::{record, Lane, Position};

/// What folding needs besides a lane.
pub trait Fold: Lane {
    /// The position right behind this CPU's last call, or [`NO_CALL`].
    fn call_end(&self) -> Position;
    /// Remembers the position right behind a call.
    fn set_call_end(&self, position: Position);
    /// Reads back a word that this CPU wrote.
    fn load(&self, at: Position) -> u32;
}

/// A [`Fold::call_end`] that no position equals: no call can be folded.
pub const NO_CALL: Position = Position(0);

/// Records an event that its number says all about.
#[inline(always)]
pub fn event<L: Lane>(lane: &L, event: u16) {
    record(lane, 1, |lane, claim| lane.store(claim.at, entry(event, claim.time)));
}

/// Records an event with one value.
#[inline(always)]
pub fn value<L: Lane>(lane: &L, event: u16, value: u32) {
    record(lane, 2, |lane, claim| {
        lane.store(claim.at, entry(event, claim.time));
        lane.store(claim.word(1), value);
    });
}

/// Records the begin of system call `nr`, below 512, with its first argument.
#[inline(always)]
pub fn syscall<L: Fold>(lane: &L, nr: u32, arg: u64) {
    record(lane, 2, |lane, claim| {
        lane.store(claim.at, entry(SYSCALL | (nr as u16 % SYSCALLS as u16), claim.time));
        lane.store(claim.word(1), Call::open(arg));
        lane.set_call_end(claim.word(2));
    });
}

/// Records the return of system call `nr`: folded into the call if it is the last thing recorded.
#[inline(always)]
pub fn syscall_return<L: Fold>(lane: &L, nr: u32, value: i64) {
    if lane.position() != lane.call_end() || !fold(lane, value) {
        unfolded_return(lane, nr, value);
    }
}

/// Records a return on its own.
#[inline(never)]
fn unfolded_return<L: Lane>(lane: &L, nr: u32, value: i64) {
    if value as i8 as i64 == value {
        event(lane, SMALL_RETURN + (value as u8 ^ 128) as u16);
    } else {
        self::value(lane, SYSCALL_RETURN | (nr as u16 % SYSCALLS as u16), value as u32);
    }
}

/// Writes the return into the call's word; false if it does not fit or something was recorded meanwhile.
///
/// The clock is read before the position is looked at again: an interrupt that records something before
/// that look prevents the fold, one after it records later times than the return's. However much it
/// records, the block stays ours while we hold it.
#[inline(always)]
fn fold<L: Fold>(lane: &L, value: i64) -> bool {
    let end = lane.call_end();
    let time = lane.now();
    lane.set_holding(true);
    let folded = lane.position() == end && fold_into(lane, Position(end.0.wrapping_sub(1)), time, value);
    lane.set_holding(false);
    folded
}

/// Writes a return at `time` into the call's `word`, if it fits.
#[inline(always)]
fn fold_into<L: Fold>(lane: &L, word: Position, time: u64, value: i64) -> bool {
    match Call::fold(lane.load(word), time.wrapping_sub(lane.last_time()), value) {
        Some(folded) => {
            lane.store(word, folded);
            lane.set_call_end(NO_CALL);
            true
        }
        None => false,
    }
}

/// Records who a task is.
#[inline(always)]
pub fn task<L: Lane>(lane: &L, words: [u32; TASK_WORDS]) {
    record(lane, 1 + TASK_WORDS as u64, |lane, claim| {
        lane.store(claim.at, entry(TASK, claim.time));
        for (n, word) in (1..).zip(words) {
            lane.store(claim.word(n), word);
        }
    });
}

/// Records a switch to the task that `words` tell of, in the same block as who it is.
#[inline(always)]
pub fn switch_to_named<L: Lane>(lane: &L, words: [u32; TASK_WORDS]) {
    record(lane, 1 + TASK_WORDS as u64 + 2, |lane, claim| {
        lane.store(claim.at, entry(TASK, claim.time));
        for (n, word) in (1..).zip(words) {
            lane.store(claim.word(n), word);
        }
        lane.store(claim.word(1 + TASK_WORDS as u64), entry(SWITCH, claim.time));
        lane.store(claim.word(2 + TASK_WORDS as u64), words[0]);
    });
}
