// SPDX-License-Identifier: BSD-3-Clause
//! A list that only grows, and whose items never move: found by number without a lock.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

/// Number of items in the first room; each further room has twice as many as the one before.
const FIRST: u32 = 64;
const ROOMS: usize = 20;

/// Items that are created when their room is first needed.
#[derive(Debug)]
pub struct Growing<T> {
    rooms: [OnceLock<Box<[T]>>; ROOMS],
    used: AtomicU32,
}

impl<T: Default> Growing<T> {
    pub const fn new() -> Growing<T> {
        Growing { rooms: [const { OnceLock::new() }; ROOMS], used: AtomicU32::new(0) }
    }

    /// The item with this number, if there is one.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        let (room, at) = place(number)?;
        self.rooms.get(room)?.get()?.get(at)
    }

    /// The first number of `count` new items; `None` if there is no room. `count` divides the number of items in the
    /// first room.
    pub fn add(&self, count: u32) -> Option<u32> {
        let more = |used: u32| place(used).filter(|(room, _)| *room < ROOMS).map(|_| used + count);
        let first = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let (room, _) = place(first)?;
        self.rooms[room].get_or_init(|| (0..FIRST << room).map(|_| T::default()).collect());
        Some(first)
    }
}

/// The room of an item, and its place there.
#[inline]
fn place(number: u32) -> Option<(usize, usize)> {
    let from_first = number.checked_add(FIRST)?;
    let room = from_first.ilog2() - FIRST.ilog2();
    Some((room as usize, (from_first - (FIRST << room)) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_an_item_of_its_own() {
        let all: Growing<AtomicU32> = Growing::new();
        assert!(all.get(0).is_none());
        for n in 0..1000 {
            assert_eq!(all.add(1), Some(n));
            all.get(n).unwrap().store(n, Ordering::Relaxed);
        }
        assert!((0..1000).all(|n| all.get(n).unwrap().load(Ordering::Relaxed) == n));
        assert!(all.get(u32::MAX).is_none() && all.get(FIRST << ROOMS).is_none());
    }
}
