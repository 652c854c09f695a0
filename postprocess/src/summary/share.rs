// SPDX-License-Identifier: BSD-3-Clause
//! How the time of a CPU divides: user code, kernel, idle, and what is not known.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::event::number::{is_execution, IDLE_EXIT, LOST, USER, USER_FIRST};
use crate::span::Span;

/// Units of 10 ns of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// User code.
    pub user: i64,
    /// System calls, faults, interrupts, the scheduler.
    pub kernel: i64,
    /// Idle, or leaving idle.
    pub idle: i64,
    /// Nothing is known of it.
    pub lost: i64,
}

impl Share {
    /// All of it.
    pub fn total(&self) -> i64 {
        self.user + self.kernel + self.idle + self.lost
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Share) {
        self.user += other.user;
        self.kernel += other.kernel;
        self.idle += other.idle;
        self.lost += other.lost;
    }
}

/// The share of each CPU.
pub fn shares(spans: &[Span]) -> Vec<(i32, Share)> {
    let mut cpus: BTreeMap<i32, Share> = BTreeMap::new();
    for span in spans.iter().filter(|s| s.cpu >= 0 && is_execution(s.event)) {
        let share = cpus.entry(span.cpu).or_default();
        match span.event as u32 {
            LOST => share.lost += span.dur,
            USER | IDLE_EXIT => share.idle += span.dur,
            USER_FIRST.. => share.user += span.dur,
            _ => share.kernel += span.dur,
        }
    }
    cpus.into_iter().collect()
}
