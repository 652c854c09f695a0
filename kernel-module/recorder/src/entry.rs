// SPDX-License-Identifier: GPL-2.0
//! Turns events into entries: an entry and its argument words, or a return folded into the call before it.
//!
//! Invariants: no hook fails, waits or calls the kernel; a return is folded only when nothing was claimed
//! on this CPU since its call; every block names each task it switches to, before the switch or right after it.

#![forbid(unsafe_code)]

use crate::abi::event::{
    MEMBER, NAME, NAME_WORDS, SMALL_RETURN, SWITCH, SYSCALL, SYSCALL_RETURN, TASK, TASK_WORDS, TRACEPOINT, TRAP,
    TRAP_RETURN,
};
use crate::abi::word::Call;
use crate::call::TaskLane;
use crate::claim::{block_number, record, Claim};
use crate::lane::Lane;

/// Methods that naming tasks needs in addition to a lane.
pub trait Naming: Lane {
    /// A task that is about to run.
    type Task;

    /// Its thread id.
    fn pid(&self, task: &Self::Task) -> u32;
    /// The argument words of its task entry.
    fn words(&self, task: &Self::Task) -> [u32; TASK_WORDS];
    /// Returns whether the block of this number has no name of the task yet, and notes that it has one now. Interrupts
    /// are off.
    fn must_name(&self, block: Option<u64>, task: &Self::Task) -> bool;
    /// Counts an entry that the recorder makes on its own, without a call of the kernel.
    fn count_more(&self);
}

/// Records an event that is fully described by its number.
#[inline(always)]
pub fn event<L: Lane>(lane: L, event: u32) {
    record::<L, 0, _, _>(lane, event, |_: &Claim<L, 1>| ());
}

/// Records an exception and its return at one moment.
#[inline(always)]
pub fn point<L: Lane>(lane: L, event: u32) {
    record::<L, 0, _, _>(lane, event, move |claim: &Claim<L, 2>| claim.put::<1>(event + u32::from(TRAP_RETURN - TRAP)));
}

/// Records an event with one value.
#[inline(always)]
pub fn value<L: Lane>(lane: L, event: u32, value: u32) {
    record::<L, 0, _, _>(lane, event, move |claim: &Claim<L, 2>| claim.set::<1>(value));
}

/// Records an event with an address.
#[inline(always)]
pub fn address<L: Lane>(lane: L, event: u32, address: u64) {
    let words = [address as u32, (address >> 32) as u32];
    record::<L, 0, _, _>(lane, event, move |claim: &Claim<L, 3>| claim.set_after::<0, 2>(words));
}

/// Records the start of system call `nr`, below 512, or 0x600 more if it is a 32-bit one, with its first argument.
#[inline(always)]
pub fn syscall<L: Lane>(lane: TaskLane<L>, nr: u32, arg: u64) {
    lane.record::<SYSCALL, _, _>(nr, move |claim: &Claim<L, 2>| claim.set::<1>(Call::open(arg)));
}

/// Records the return of a system call: folded into the call if that was recorded last. Calls `number` for the call's
/// number, below 512, only if needed.
#[inline(always)]
pub fn syscall_return<L: Lane>(lane: TaskLane<L>, value: i64, number: impl FnOnce() -> u32) {
    if !lane.fold(|duration| Call::short_return(duration, value)) {
        long_return(lane, value, number);
    }
}

/// Records a return that is not short: still folded if possible, else on its own.
#[cold]
#[inline(never)]
fn long_return<L: Lane>(lane: TaskLane<L>, value: i64, number: impl FnOnce() -> u32) {
    if Call::fits(value) && lane.fold_long(|open, duration| Call::fold(open, duration, value)) {
        return;
    }
    lane.forget_call();
    let lane = lane.lane();
    if value as i8 as i64 == value {
        event(lane, u32::from(SMALL_RETURN) + u32::from(value as u8 ^ 128));
    } else {
        self::value(lane, number() + u32::from(SYSCALL_RETURN), value as u32);
    }
}

/// Records a switch to `next`, and the identity of `next` if its block does not have it yet.
#[inline(always)]
pub fn switch_to<L: Naming>(lane: TaskLane<L>, next: &L::Task) {
    lane.forget_call();
    let lane = lane.lane();
    let pid = lane.pid(next);
    let block = block_number(lane);
    if pid == 0 {
        value(lane, SWITCH.into(), pid);
    } else if lane.must_name(block, next) {
        switch_to_named(lane, lane.words(next));
    } else {
        value(lane, SWITCH.into(), pid);
        // The switch may have gone into a block that has no name of the task yet.
        if block_number(lane) != block {
            lane.count_more();
            task(lane, lane.words(next));
        }
    }
}

/// Records a switch to the task that `words` describe, in the same block as its identity.
#[inline(always)]
fn switch_to_named<L: Lane>(lane: L, words: [u32; TASK_WORDS]) {
    record::<L, TASK, _, _>(lane, 0, move |claim: &Claim<L, { 1 + TASK_WORDS + 2 }, { 1 + TASK_WORDS }>| {
        claim.set_after::<0, TASK_WORDS>(words);
        claim.put::<{ 1 + TASK_WORDS }>(SWITCH.into());
        claim.set::<{ 2 + TASK_WORDS }>(words[0]);
    });
}

/// Records the identity of a task.
#[inline(always)]
pub fn task<L: Lane>(lane: L, words: [u32; TASK_WORDS]) {
    record::<L, TASK, _, _>(lane, 0, move |claim: &Claim<L, { 1 + TASK_WORDS }>| {
        claim.set_after::<0, TASK_WORDS>(words)
    });
}

/// Records the control group of a task: pid, id.
#[inline(always)]
pub fn member<L: Lane>(lane: L, words: [u32; 2]) {
    record::<L, MEMBER, _, _>(lane, 0, move |claim: &Claim<L, 3>| claim.set_after::<0, 2>(words));
}

/// Records a packet of a flow.
#[inline(always)]
pub fn packet<L: Lane>(lane: L, event: u32, words: [u32; 4]) {
    record::<L, 0, _, _>(lane, event, move |claim: &Claim<L, 5>| claim.set_after::<0, 4>(words));
}

/// Records the words of a tracepoint, by its number among those chosen: in the smallest entry that has room for them,
/// filled with zeros; or as many as the largest has room for.
pub fn tracepoint<L: Lane>(lane: L, number: u32, words: &[u32]) {
    // The first of the entries with 1, 3, 7, 15 and 31 words that has as many.
    let size = (words.len().max(1).ilog2()).min(4);
    let event = u32::from(TRACEPOINT) + size * 16 + (number & 15);
    match size {
        0 => record::<L, 0, _, _>(lane, event, |claim: &Claim<L, 2>| claim.set_after::<0, 1>(first(words))),
        1 => record::<L, 0, _, _>(lane, event, |claim: &Claim<L, 4>| claim.set_after::<0, 3>(first(words))),
        2 => record::<L, 0, _, _>(lane, event, |claim: &Claim<L, 8>| claim.set_after::<0, 7>(first(words))),
        3 => record::<L, 0, _, _>(lane, event, |claim: &Claim<L, 16>| claim.set_after::<0, 15>(first(words))),
        _ => record::<L, 0, _, _>(lane, event, |claim: &Claim<L, 32>| claim.set_after::<0, 31>(first(words))),
    }
}

/// Returns the first `N` words, filled with zeros if there are fewer.
#[inline(always)]
fn first<const N: usize>(words: &[u32]) -> [u32; N] {
    let mut first = [0; N];
    for (to, from) in first.iter_mut().zip(words) {
        *to = *from;
    }
    first
}

/// Records a name that a program gave.
#[inline(always)]
pub fn name<L: Lane>(lane: L, words: [u32; NAME_WORDS]) {
    record::<L, NAME, _, _>(lane, 0, move |claim: &Claim<L, { 1 + NAME_WORDS }>| {
        claim.set_after::<0, NAME_WORDS>(words)
    });
}
