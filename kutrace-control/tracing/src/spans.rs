// SPDX-License-Identifier: BSD-3-Clause
//! Live spans with data to keep: the place and the fields that each was created with, by its id, without a lock and in
//! memory that is reused.
//!
//! A span has a room, whose number is the lower half of its id. The upper half is the number of spans that had the room
//! before, so that an id kept for longer than its span lives is invalid. Only the thread that creates or closes a span
//! knows its id at that time; every other user was given the id, so a room only has to order the last close.
//!
//! A span without fields has no room: its id has its place.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kutrace::Fields;
use tracing::span::Id;

use crate::growing::Growing;
use crate::place::Shape;

/// A span's room.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Room {
    handles: AtomicU32,
    before: AtomicU32,
    shape: AtomicU32,
    /// Number of words in its fields.
    used: AtomicU32,
    words: [AtomicU64; 15],
}

/// Bit in the id of a span without a room; the bits below it are the number of its place.
const PLAIN: u64 = 1 << 63;
/// Number of rooms that a thread takes at a time; it keeps at most twice this number for itself.
const BATCH: usize = 32;

static ROOMS: Growing<Room> = Growing::new();
/// Rooms that no thread keeps.
static SHARED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

thread_local! {
    static FREE: Free = const { Free { count: Cell::new(0), rooms: [const { Cell::new(0) }; 2 * BATCH] } };
    static LEFT: Left = const { Left };
}

/// Rooms that this thread may give to its next spans.
struct Free {
    count: Cell<usize>,
    rooms: [Cell<u32>; 2 * BATCH],
}

/// Gives the thread's rooms to others when the thread ends.
struct Left;

/// A span, by its id.
pub enum Span {
    /// A span of which only the place is known.
    Plain(&'static Shape),
    /// A span that has a room.
    Kept(&'static Room),
}

/// The id of a span of which only the place is needed.
#[inline]
pub fn plain(shape: &Shape) -> Id {
    Id::from_u64(PLAIN | u64::from(shape.number))
}

/// Creates a span and returns its id; `None` if there is no room.
#[inline]
pub fn create(shape: &Shape, fields: &Fields) -> Option<Id> {
    let number = FREE.with(Free::take)?;
    let room = ROOMS.get(number)?;
    room.handles.store(1, Ordering::Relaxed);
    room.shape.store(shape.number, Ordering::Relaxed);
    room.used.store(fields.words().len() as u32, Ordering::Relaxed);
    for (to, word) in room.words.iter().zip(fields.words()) {
        to.store(*word, Ordering::Relaxed);
    }
    Some(Id::from_u64(u64::from(room.before.load(Ordering::Relaxed)) << 32 | u64::from(number + 1)))
}

/// The span with this id, if it is alive.
#[inline]
pub fn span(id: u64) -> Option<Span> {
    if id & PLAIN == 0 {
        room(id).map(Span::Kept)
    } else {
        Shape::of(id as u32).map(Span::Plain)
    }
}

#[inline]
fn room(id: u64) -> Option<&'static Room> {
    let room = ROOMS.get((id as u32).wrapping_sub(1))?;
    (room.before.load(Ordering::Relaxed) == (id >> 32) as u32).then_some(room)
}

/// Adds a handle to a span.
#[inline]
pub fn share(id: u64) {
    if let Some(Span::Kept(room)) = span(id) {
        room.handles.fetch_add(1, Ordering::Relaxed);
    }
}

/// Drops a handle. Returns whether it was the last, and the room is released.
#[inline]
pub fn close(id: u64, at_end: impl FnOnce(&Room)) -> bool {
    if id & PLAIN != 0 {
        return false;
    }
    let Some(room) = room(id) else { return false };
    // The owner of the only handle is alone; no other thread can make another in between.
    let is_only = room.handles.load(Ordering::Acquire) == 1;
    if !is_only && room.handles.fetch_sub(1, Ordering::AcqRel) != 1 {
        return false;
    }
    at_end(room);
    // Never a number that would make the id one of a place.
    room.before.store(((id >> 32) as u32 + 1) & (u32::MAX >> 1), Ordering::Relaxed);
    FREE.with(|free| free.give(id as u32 - 1));
    true
}

impl Span {
    /// The place of the span.
    #[inline]
    pub fn shape(&self) -> Option<&'static Shape> {
        match self {
            Span::Plain(shape) => Some(shape),
            Span::Kept(room) => room.shape(),
        }
    }
}

impl Room {
    /// The place of the span.
    #[inline]
    pub fn shape(&self) -> Option<&'static Shape> {
        Shape::of(self.shape.load(Ordering::Relaxed))
    }

    /// The fields that the span was created with.
    #[inline]
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        for word in self.words.iter().take(self.used.load(Ordering::Relaxed) as usize) {
            fields.push(word.load(Ordering::Relaxed));
        }
        fields
    }
}

impl Free {
    #[inline]
    fn take(&self) -> Option<u32> {
        if self.count.get() == 0 {
            self.refill();
        }
        let last = self.count.get().checked_sub(1)?;
        self.count.set(last);
        Some(self.rooms[last].get())
    }

    #[cold]
    fn refill(&self) {
        let _ = LEFT.try_with(|_| ());
        let mut shared = shared();
        while self.count.get() < BATCH {
            let Some(number) = shared.pop() else { break };
            self.push(number);
        }
        drop(shared);
        if self.count.get() == 0 {
            if let Some(first) = ROOMS.add(BATCH as u32) {
                (first..first + BATCH as u32).rev().for_each(|number| self.push(number));
            }
        }
    }

    #[inline]
    fn give(&self, number: u32) {
        if self.count.get() == 0 || self.count.get() == 2 * BATCH {
            self.spill();
        }
        self.push(number);
    }

    /// Gives half of the rooms to other threads.
    #[cold]
    fn spill(&self) {
        let _ = LEFT.try_with(|_| ());
        let keep = self.count.get() / 2;
        shared().extend(self.rooms[keep..self.count.get()].iter().map(Cell::get));
        self.count.set(keep);
    }

    #[inline]
    fn push(&self, number: u32) {
        self.rooms[self.count.get()].set(number);
        self.count.set(self.count.get() + 1);
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        FREE.with(|free| shared().extend(free.rooms[..free.count.replace(0)].iter().map(Cell::get)));
    }
}

fn shared() -> MutexGuard<'static, Vec<u32>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::place;

    fn of_some_place() -> &'static Shape {
        let span = tracing::subscriber::with_default(tracing_subscriber::registry(), || tracing::info_span!("some"));
        place::plain(span.metadata().unwrap())
    }

    #[test]
    fn a_span_lives_until_its_last_handle_is_closed_and_its_id_means_nothing_afterwards() {
        let shape = of_some_place();
        let id = create(shape, &Fields::new().u64(7).u64(u64::MAX)).unwrap().into_u64();
        let Some(Span::Kept(room)) = span(id) else { panic!("{id:x}") };
        assert_eq!(room.fields().words(), [7, u64::MAX]);
        assert!(std::ptr::eq(span(id).unwrap().shape().unwrap(), shape));
        share(id);
        let mut ended = 0;
        assert!(!close(id, |_| ended += 1) && close(id, |_| ended += 1) && !close(id, |_| ended += 1));
        assert!(ended == 1 && span(id).is_none());
        let next = create(shape, &Fields::new()).unwrap().into_u64();
        assert!(next as u32 == id as u32 && next != id);
        assert!(close(next, |_| {}));
        let plain = plain(shape).into_u64();
        assert!(matches!(span(plain), Some(Span::Plain(of)) if std::ptr::eq(of, shape)));
        share(plain);
        assert!(!close(plain, |_| panic!("nothing ends")));
        for id in [0, 1, u64::MAX, PLAIN - 1] {
            assert!(id == 1 || span(id).is_none());
            share(id);
            close(id, |_| {});
        }
    }

    #[test]
    fn threads_use_each_other_s_rooms_again_and_never_the_same_at_a_time() {
        let shape = of_some_place();
        let mut seen = HashSet::new();
        for _ in 0..50 {
            let ids = std::thread::spawn(move || {
                (0..100).map(|_| create(shape, &Fields::new()).unwrap().into_u64()).collect()
            });
            let ids: Vec<u64> = ids.join().unwrap();
            assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 100);
            seen.extend(ids.iter().map(|id| *id as u32));
            let closed = std::thread::spawn(move || ids.into_iter().filter(|id| close(*id, |_| {})).count());
            assert_eq!(closed.join().unwrap(), 100);
        }
        assert!(seen.len() < 500, "{}", seen.len());
    }
}
