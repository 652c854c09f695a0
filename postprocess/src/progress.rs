// SPDX-License-Identifier: BSD-3-Clause
//! Progress: the part of a long task that is done. The worker counts, the watcher reads; a process has one task at a
//! time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static DONE: AtomicU64 = AtomicU64::new(0);
static ALL: AtomicU64 = AtomicU64::new(0);

/// Begins a task of this many parts.
pub fn begin(parts: u64) {
    DONE.store(0, Relaxed);
    ALL.store(parts, Relaxed);
}

/// Counts this many parts as done.
pub fn advance(parts: u64) {
    DONE.fetch_add(parts, Relaxed);
}

/// Percentage done, if the whole is known.
pub fn percent() -> Option<u64> {
    percent_of(DONE.load(Relaxed), ALL.load(Relaxed))
}

fn percent_of(done: u64, all: u64) -> Option<u64> {
    (all > 0).then(|| (u128::from(done) * 100 / u128::from(all)).min(100) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_work_is_a_part_of_a_hundred() {
        assert_eq!(percent_of(74, 200), Some(37));
        assert_eq!(percent_of(u64::MAX, u64::MAX / 2), Some(100));
        assert_eq!(percent_of(74, 0), None);
    }
}
