// SPDX-License-Identifier: BSD-3-Clause
//! Things that are known by name: locks and queues, whose name becomes a number, and RPCs, which have one. The recorder
//! is told which name belongs to which.
//!
//! It is told when a trace begins to speak of the thing, and again every eighth of a second of that, because in wrap
//! mode a name goes with the block it stands in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::event::{DEQUEUE, ENQUEUE, LOCK_ACQUIRED, LOCK_RELEASED, LOCK_TRY, MARK_C, RESOURCE};
use super::insert::{self, Named};
use super::text;
use crate::state;

/// How many names are remembered as told. Two that share a place are told more often, no more.
const PLACES: usize = 256;
/// What was told and when: the low bits of the trace's number and of the time, then what is named, its number, and that
/// of its name.
static TOLD: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// The lock was not free: from here this thread waits for it.
#[inline]
pub fn lock_try(lock: &str) -> bool {
    state::trace() != 0 && event(LOCK_TRY, Named::Lock, lock.as_bytes()) > 0
}

/// This thread got the lock, after a try: from here it holds it.
#[inline]
pub fn lock_acquired(lock: &str) -> bool {
    state::trace() != 0 && event(LOCK_ACQUIRED, Named::Lock, lock.as_bytes()) > 0
}

/// This thread gives the lock up; to be called before it wakes who waits.
#[inline]
pub fn lock_released(lock: &str) -> bool {
    state::trace() != 0 && event(LOCK_RELEASED, Named::Lock, lock.as_bytes()) > 0
}

/// This thread puts the RPC that it works on into a queue; to be called before [`super::rpc_end`].
#[inline]
pub fn enqueue(queue: &str) -> bool {
    state::trace() != 0 && event(ENQUEUE, Named::Queue, queue.as_bytes()) > 0
}

/// This thread takes an RPC out of a queue; to be called before [`super::rpc_resume`].
#[inline]
pub fn dequeue(queue: &str) -> bool {
    state::trace() != 0 && event(DEQUEUE, Named::Queue, queue.as_bytes()) > 0
}

/// Asks for this moment to be kept, for a reason of up to 56 bytes: `kutrace_control watch --when keep` writes what led up
/// to it. In the trace it is the use of a resource called like the reason, and the mark c `keep`.
#[inline]
pub fn keep(reason: &str) -> bool {
    state::trace() != 0 && ask_to_keep(reason.as_bytes()) > 0
}

/// As [`keep`]: 1, 0 if nothing is traced, or a negative errno.
#[cold]
pub fn ask_to_keep(reason: &[u8]) -> i64 {
    if !reason.is_empty() {
        event(RESOURCE, Named::Resource, reason);
    }
    insert::event(MARK_C, text::base40(b"keep"))
}

/// Has an event of a named thing recorded: 1, 0 if nothing is traced, or a negative errno.
#[cold]
pub fn event(event: u16, named: Named, name: &[u8]) -> i64 {
    let number = text::number(name);
    tell(named, number, name);
    insert::event(event, number.into())
}

/// Sees to it that the trace knows this name.
pub fn tell(named: Named, number: u16, name: &[u8]) {
    let eighths = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64 / 125);
    let moment = u64::from(state::trace()) << 56 | (eighths & 0x3f_ffff) << 34;
    let stamp = moment | kind(named) << 32 | u64::from(number) << 16 | u64::from(text::number(name));
    let place = &TOLD[(usize::from(number) + (kind(named) << 6) as usize) % PLACES];
    // Another thread that comes between tells it, too: never is an event recorded before its name.
    if place.load(Ordering::Relaxed) != stamp && insert::name(named as u32, number.into(), name) > 0 {
        place.store(stamp, Ordering::Relaxed);
    }
}

/// What is named, in two bits.
fn kind(named: Named) -> u64 {
    match named {
        Named::Method => 0,
        Named::Lock => 1,
        Named::Queue => 2,
        Named::Resource => 3,
    }
}
