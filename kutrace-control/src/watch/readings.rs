// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's counters, read periodically next to a flight recorder: once that has overwritten the counts of its
//! start, a recording is compared from the first reading after its oldest block on.
//!
//! Invariant: at most [`KEPT`] readings are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of kept readings.
const KEPT: usize = 64;
/// Minimum and maximum time between two readings.
const OFTEN: Duration = Duration::from_millis(250);
const SELDOM: Duration = Duration::from_secs(5);
/// Number of readings while the recorder's memory fills once, unless the limits give more.
const A_FILL: u32 = 4;

/// The readings of the last minutes.
#[derive(Debug, Default)]
pub struct Readings {
    taken: VecDeque<Arc<Vec<u8>>>,
    /// Time of the last reading, and the number of blocks that the recorder had filled since its start.
    last: Option<(Instant, u32)>,
}

impl Readings {
    /// Calls `read` if a reading is due. The recorder has filled `filled` blocks since its start, and has memory for
    /// `blocks`.
    pub fn turn(&mut self, now: Instant, filled: u32, blocks: u32, read: impl FnOnce() -> Vec<u8>) {
        let is_early = |(at, before): (Instant, u32)| {
            // At the largest number the count is saturated, and the true number unknown.
            let is_full = filled == u32::MAX || filled.wrapping_sub(before) >= blocks / A_FILL;
            now - at < if is_full { OFTEN } else { SELDOM }
        };
        if self.last.is_some_and(is_early) {
            return;
        }
        self.last = Some((now, filled));
        if self.taken.len() == KEPT {
            self.taken.pop_front();
        }
        self.taken.push_back(Arc::new(read()));
    }

    /// All readings, the oldest first.
    pub fn all(&self) -> Vec<Arc<Vec<u8>>> {
        self.taken.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_as_often_as_the_memory_fills_and_the_last_are_kept() {
        let take = |ms: u64, blocks: u32, filled: fn(u64) -> u32| {
            let (mut readings, start) = (Readings::default(), Instant::now());
            for ms in (0..ms).step_by(50) {
                let reading = || ms.to_le_bytes().to_vec();
                readings.turn(start + Duration::from_millis(ms), filled(ms), blocks, reading);
            }
            let bytes = |reading: &Arc<Vec<u8>>| u64::from_le_bytes(reading[..].try_into().unwrap());
            readings.all().iter().map(bytes).collect::<Vec<_>>()
        };
        assert_eq!(take(10_000, 100, |_| 7), [0, 5000]);
        assert_eq!(take(10_000, 100, |ms| ms as u32), (0..40).map(|n| n * 250).collect::<Vec<_>>());
        // A fill takes four seconds.
        assert_eq!(take(10_000, 100, |ms| ms as u32 / 40), (0..10).map(|n| n * 1000).collect::<Vec<_>>());
        assert_eq!(take(600, 100, |_| u32::MAX), [0, 250, 500]);
        // After a quiet time it fills at once.
        let storm = |ms| if ms < 6000 { 0 } else { ms as u32 };
        assert_eq!(take(6600, 100, storm), [0, 5000, 6000, 6250, 6500]);
        assert_eq!(take(200_000, 1, |ms| ms as u32), (736..800).map(|n| n * 250).collect::<Vec<_>>());
    }
}
