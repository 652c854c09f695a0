// SPDX-License-Identifier: GPL-2.0
//! The limit for insertions by programs on a CPU: a number a second, and at once as many as were not used in the last
//! second.
//!
//! Invariant: `core` only; comparisons and one addition, in any unit of time.

#![forbid(unsafe_code)]

/// A budget, and how much of it has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The time up to which it is used up.
    used: u64,
    second: u64,
    /// The time that one insertion uses up; 0 for no limit.
    cost: u64,
}

impl Budget {
    /// An unused budget of `rate` a `second`; 0 means no limit.
    pub const fn new(second: u64, rate: u32) -> Budget {
        let cost = match rate {
            0 => 0,
            _ if second < rate as u64 => 1,
            _ => second / rate as u64,
        };
        Budget { used: 0, second, cost }
    }

    /// Takes one at the time `now`; false if none is left.
    #[inline]
    pub fn take(&mut self, now: u64) -> bool {
        // Budget left over from more than a second ago has lapsed. A clock that stepped back has used up nothing.
        let used = if self.used > now { 0 } else { self.used };
        let after = used.max(now.saturating_sub(self.second)).saturating_add(self.cost);
        let is_there = after <= now;
        if is_there {
            self.used = after;
        }
        is_there
    }
}
