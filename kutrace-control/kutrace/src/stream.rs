// SPDX-License-Identifier: BSD-3-Clause
//! Recording into a thread's own memory: no system call, no lock; safe in signal handlers and if the thread is killed.
//!
//! A thread has a *position*: the offset of its next word and the space left in its grant, in one number. An entry is
//! claimed by moving the position with one compare-exchange that only this thread and its signal handlers make, so it
//! needs no `lock` prefix. Handlers nest strictly: one that runs between any two steps has finished its own entries
//! when the next step runs. This gives all guarantees of this file:
//!
//! * No word belongs to two entries: a context that is interrupted before its exchange finds the position moved, and
//!   starts again.
//! * Time never goes back along the words: the clock is read after the position, and the exchange fails if anything was
//!   claimed since.
//! * An entry becomes visible to every reader by one store, the last of the call. A thread that is killed at any step
//!   loses the entry that it was writing and none before it: a claimed and unwritten part is zero, or open.
//! * Every word is less than 2^31 counts later than the preceding full time, which is *deadline* minus that number. A
//!   grant begins with the deadline at 0, and therefore with a full time.
//!
//! If a thread has requested a grant, and a handler has got another one in between, the thread's grant stays unused.
//!
//! Invariants: nothing here waits, allocates or makes a system call. The same code runs under an explorer, which kills,
//! interrupts and reads it at every step.

#![forbid(unsafe_code)]

use kutrace_format::abi::programs::{word, FULL_TIME, OPEN, SPAN};

/// Low half: byte offset of a thread's next free word in the area. High half: number of words left in its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(pub u64);

impl Position {
    /// Position of a thread that has no grant.
    pub const NONE: Position = Position(0);

    /// The start of a grant.
    pub const fn new(offset: u32, bytes: u32) -> Position {
        Position((bytes as u64 / 8) << 32 | offset as u64)
    }

    /// Byte offset of the next free word.
    pub const fn offset(self) -> u32 {
        self.0 as u32
    }

    /// The position after this many words, if they fit: the number is negative if they do not.
    #[inline(always)]
    const fn after_if_fits(self, words: usize) -> Option<Position> {
        let after = self.after(words);
        if after.0 as i64 >= 0 {
            Some(after)
        } else {
            None
        }
    }

    /// The position after this many words, which must fit: more bytes, and fewer words.
    #[inline(always)]
    const fn after(self, words: usize) -> Position {
        Position(self.0.wrapping_add((8 * words as u64).wrapping_sub((words as u64) << 32)))
    }
}

/// The operations that recording needs. Each function except `grant` and `lose` is one step: a load, a store or an
/// instruction.
pub trait Lane: Copy {
    /// Position of the next word.
    fn position(self) -> Position;
    /// Replaces the position, if it is still `old`.
    fn exchange(self, old: Position, new: Position) -> bool;
    /// The TSC.
    fn now(self) -> u64;
    /// The TSC from which on a full time is needed.
    fn deadline(self) -> u64;
    /// Sets the deadline.
    fn set_deadline(self, tsc: u64);
    /// Writes a word that this context has claimed.
    fn store(self, offset: u32, word: u64);
    /// Requests another grant, in which no other thread has anything.
    fn grant(self) -> Option<Position>;
    /// Counts an entry that has no room.
    fn lose(self);
}

/// Records a word, whose time is 0, and its payload of at most [`kutrace_format::abi::programs::PAYLOAD_MAX`] words, on
/// the fast path. Returns false, with nothing recorded, if that is not possible.
#[inline(always)]
pub fn record<L: Lane>(lane: L, what: u64, payload: &[u64]) -> bool {
    let at = lane.position();
    let Some(after) = at.after_if_fits(1 + payload.len()) else { return false };
    let now = lane.now();
    if now >= lane.deadline() {
        return false;
    }
    if !lane.exchange(at, after) {
        return false;
    }
    write(lane, at, what | u64::from(now as u32), payload);
    true
}

/// Like [`record`], also after an interruption, after a gap in time, or in another grant; false if there is no room,
/// which is counted.
#[cold]
#[inline(never)]
pub fn record_slowly<L: Lane>(lane: L, what: u64, payload: &[u64]) -> bool {
    let words = 1 + payload.len();
    loop {
        let at = lane.position();
        // A thread that may not read the clock has no grant.
        if at.after_if_fits(words).is_some() {
            let now = lane.now();
            let low = u64::from(now as u32);
            let bridge = if now < lane.deadline() { 0 } else { 2 };
            if let Some(after) = at.after_if_fits(bridge + words) {
                if !lane.exchange(at, after) {
                    continue;
                }
                if bridge != 0 {
                    write(lane, at, word(FULL_TIME, 1, 0) | low, &[now]);
                    // A handler that runs before this also writes a full time: one that is too early does no harm.
                    lane.set_deadline(now.saturating_add(SPAN));
                }
                write(lane, at.after(bridge), what | low, payload);
                return true;
            }
        }
        let Some(grant) = lane.grant() else {
            lane.lose();
            return false;
        };
        // Before the exchange, so that the first record in the grant writes a full time.
        lane.set_deadline(0);
        lane.exchange(at, grant);
    }
}

/// Writes a claimed entry. The length comes first, so that a reader can skip an incomplete entry.
#[inline(always)]
fn write<L: Lane>(lane: L, at: Position, head: u64, payload: &[u64]) {
    if !payload.is_empty() {
        lane.store(at.offset(), head | OPEN);
        for (&value, n) in payload.iter().zip(1..) {
            lane.store(at.offset() + 8 * n, value);
        }
    }
    lane.store(at.offset(), head);
}

#[cfg(test)]
mod explore;
