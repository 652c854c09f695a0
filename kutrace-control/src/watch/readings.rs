// SPDX-License-Identifier: BSD-3-Clause
//! What the kernel has counted, read again and again beside a flight recorder: once that has overwritten what it had when
//! it was started, a recording is compared from the first reading on that came after its oldest block.
//!
//! Invariant: there are [`KEPT`] readings at most.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Readings that are kept.
const KEPT: usize = 64;
/// How often they are taken, at the least and at the most: four times while the recorder's memory fills once.
const OFTEN: Duration = Duration::from_millis(250);
const SELDOM: Duration = Duration::from_secs(5);
const A_FILL: u32 = 4;

/// The readings of the last minutes.
#[derive(Debug, Default)]
pub struct Readings {
    taken: VecDeque<Arc<Vec<u8>>>,
    next: Option<Instant>,
}

impl Readings {
    /// Has `read` read, if it is time; the recorder has all of the time that `reaches` says.
    pub fn turn(&mut self, now: Instant, reaches: impl FnOnce() -> Duration, read: impl FnOnce() -> Vec<u8>) {
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + (reaches() / A_FILL).clamp(OFTEN, SELDOM));
        if self.taken.len() == KEPT {
            self.taken.pop_front();
        }
        self.taken.push_back(Arc::new(read()));
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> Vec<Arc<Vec<u8>>> {
        self.taken.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_as_often_as_the_memory_is_short_and_the_last_are_kept() {
        for (reaches, expected) in [(0, 40), (4, 10), (3600, 2)] {
            let (mut readings, start) = (Readings::default(), Instant::now());
            for ms in (0..10_000).step_by(50) {
                let now = start + Duration::from_millis(ms);
                readings.turn(now, || Duration::from_secs(reaches), || vec![ms as u8]);
            }
            assert_eq!(readings.all().len(), expected, "{reaches} s");
        }
        let (mut readings, start) = (Readings::default(), Instant::now());
        for second in 0..200 {
            readings.turn(start + Duration::from_secs(second), || Duration::ZERO, || vec![second as u8]);
        }
        let first: Vec<u8> = readings.all().iter().map(|reading| reading[0]).collect();
        assert_eq!(first, (136..200).collect::<Vec<u8>>());
    }
}
