// SPDX-License-Identifier: BSD-3-Clause
//! Named objects: locks and queues, whose names become numbers, and RPCs, which have a number. The recorder gets the
//! name of each number.
//!
//! A name is recorded at its first use in a trace, and again in every eighth of a second in which it is used, because
//! in wrap mode a name is lost with the block that contains it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::event::{DEQUEUE, ENQUEUE, LOCK_ACQUIRED, LOCK_RELEASED, LOCK_TRY, MARK_C, RESOURCE};
use super::insert::{self, Named};
use super::text;
use crate::state;

/// Number of names remembered as recorded. Two that share a place are recorded more often; there is no other effect.
const PLACES: usize = 256;
/// Recorded names with their times: the low bits of the trace's number and of the time, then the kind of the name, its
/// number, and the number of its text.
static TOLD: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// The lock was not free: this thread waits for it from now on.
#[inline]
pub fn lock_try(lock: &str) -> bool {
    state::trace() != 0 && event(LOCK_TRY, Named::Lock, lock.as_bytes()) > 0
}

/// This thread got the lock, after a try: it holds the lock from now on.
#[inline]
pub fn lock_acquired(lock: &str) -> bool {
    state::trace() != 0 && event(LOCK_ACQUIRED, Named::Lock, lock.as_bytes()) > 0
}

/// This thread releases the lock; must be called before it wakes waiting threads.
#[inline]
pub fn lock_released(lock: &str) -> bool {
    state::trace() != 0 && event(LOCK_RELEASED, Named::Lock, lock.as_bytes()) > 0
}

/// This thread puts its current RPC into a queue; must be called before [`super::rpc_end`].
#[inline]
pub fn enqueue(queue: &str) -> bool {
    state::trace() != 0 && event(ENQUEUE, Named::Queue, queue.as_bytes()) > 0
}

/// This thread takes an RPC out of a queue; must be called before [`super::rpc_resume`].
#[inline]
pub fn dequeue(queue: &str) -> bool {
    state::trace() != 0 && event(DEQUEUE, Named::Queue, queue.as_bytes()) > 0
}

/// Requests a snapshot of this moment, with a reason of up to 56 bytes: `kutrace_control watch --when keep` writes the
/// events that led to it. In the trace it is the use of a resource with the reason as its name, and the mark c `keep`.
#[inline]
pub fn keep(reason: &str) -> bool {
    state::trace() != 0 && ask_to_keep(reason.as_bytes()) > 0
}

/// Like [`keep`]. Returns 1, 0 if nothing is traced, or a negative errno.
#[cold]
pub fn ask_to_keep(reason: &[u8]) -> i64 {
    if !reason.is_empty() {
        event(RESOURCE, Named::Resource, reason);
    }
    insert::event(MARK_C, text::base40(b"keep"))
}

/// Records an event of a named object. Returns 1, 0 if nothing is traced, or a negative errno.
#[cold]
pub fn event(event: u16, named: Named, name: &[u8]) -> i64 {
    let number = text::number(name);
    tell(named, number, name);
    insert::event(event, number.into())
}

/// Makes sure that the trace has this name.
pub fn tell(named: Named, number: u16, name: &[u8]) {
    let eighths = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64 / 125);
    let moment = u64::from(state::trace()) << 56 | (eighths & 0x3f_ffff) << 34;
    let stamp = moment | kind(named) << 32 | u64::from(number) << 16 | u64::from(text::number(name));
    let place = &TOLD[(usize::from(number) + (kind(named) << 6) as usize) % PLACES];
    // A thread that interrupts this also records the name: an event is never recorded before its name.
    if place.load(Ordering::Relaxed) != stamp && insert::name(named as u32, number.into(), name) > 0 {
        place.store(stamp, Ordering::Relaxed);
    }
}

/// Kind of a name, in two bits.
fn kind(named: Named) -> u64 {
    match named {
        Named::Method => 0,
        Named::Lock => 1,
        Named::Queue => 2,
        Named::Resource => 3,
    }
}
