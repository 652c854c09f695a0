// SPDX-License-Identifier: GPL-2.0
//! System calls are the most frequent events, so they do without the depth. They come from a task, with preemption off,
//! so no two of them nest: one word per CPU, the *call's end*, names the block that one of them uses.
//!
//! * A call stores where its words will end after it has read the position and before it reads the clock. From then on
//!   the block of the call's end neither goes back to the pool nor is begun. So the position cannot come round to the
//!   same address once more, and if it moved before, the exchange fails, or the block came round before the clock was
//!   read. Either way the words are the call's, and its time is in order.
//! * A return is folded into the call only if the position is still the call's end. The block stays until the next call
//!   or switch, so an interrupt between that check and the store takes nothing away.
//! * Nothing shows when they are done. To wait for the words of an earlier position, wait for the depth to be 0 and for
//!   an RCU grace period, since preemption is off in them and RCU watches.
//!
//! Invariants: those of [`crate::claim`].

use crate::claim::{claim, claim_late, in_a_claim, Claim};
use crate::lane::Lane;

/// A lane as a task's system call or switch uses it.
#[derive(Clone, Copy)]
pub struct TaskLane<L>(L);

impl<L: Lane> TaskLane<L> {
    /// Wraps the lane, in a hook that a task has reached.
    ///
    /// # Safety
    /// No other context of the CPU uses such a value until this one is gone: the hook is a task's own, not that of an
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

    /// Reserves the words of a call and fills them, as [`crate::claim::record`] does.
    #[inline(always)]
    pub fn record<const BASE: u16, const WORDS: usize, const NOTED: usize>(
        self,
        number: u32,
        write: impl Fn(&Claim<L, WORDS, NOTED>),
    ) {
        let TaskLane(lane) = self;
        let at = lane.position();
        // SAFETY: either the call is written there, or `record_slow` forgets it.
        unsafe { lane.set_call_end(at.after(WORDS)) };
        let time = lane.now();
        lane.set_call_time(time);
        // SAFETY: the position was read here, and its block stays for as long as it is the call's end.
        match unsafe { claim::<L, BASE, WORDS, NOTED>(lane, at, time, number) } {
            Some(claim) => write(&claim),
            None => self.record_slow::<BASE, WORDS, NOTED>(number, write),
        }
    }

    #[cold]
    #[inline(never)]
    fn record_slow<const BASE: u16, const WORDS: usize, const NOTED: usize>(
        self,
        number: u32,
        write: impl Fn(&Claim<L, WORDS, NOTED>),
    ) {
        let TaskLane(lane) = self;
        in_a_claim(lane, || {
            lane.forget_call();
            // SAFETY: a claim is under way until `write` is done with the words.
            if let Some((claim, time)) = unsafe { claim_late::<L, BASE, WORDS, NOTED>(lane, number) } {
                lane.set_call_time(time);
                // SAFETY: the call is written there, next.
                unsafe { lane.set_call_end(claim.at.after(WORDS)) };
                write(&claim);
            }
        });
    }

    /// Adds what `change` returns, given the counts since, to the last word of the call before; false if that is
    /// `None`, or if an event was recorded in between.
    ///
    /// The clock is read before the position is checked: an interrupt that records something before that check prevents
    /// the fold, one after it records later times than the return's.
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
        // written it, and its block stays this CPU's as long as it has the call's end.
        unsafe {
            lane.note(end.before(1));
            lane.add_before(end, value);
        }
        lane.forget_call();
        true
    }

    /// Like [`TaskLane::fold`], but `change` is given the word as it is, and returns the new word.
    pub fn fold_long(self, change: impl FnOnce(u32, u64) -> Option<u32>) -> bool {
        let TaskLane(lane) = self;
        let end = lane.call_end();
        self.fold(|duration| {
            // SAFETY: the word is the call's last, as `fold` has seen.
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
