// SPDX-License-Identifier: BSD-3-Clause
//! How the time of a CPU divides: user code, kernel, idle, and what is not known.

use serde::Serialize;

use std::ops::AddAssign;

use crate::span::what::{self, Activity};

/// Units of 10 ns of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// User code.
    pub user: i64,
    /// System calls, faults, interrupts, the scheduler.
    pub kernel: i64,
    /// Idle, or leaving idle.
    pub idle: i64,
    /// Nothing is known of it.
    pub lost: i64,
    /// The CPU stood still.
    pub stalled: i64,
    /// How often it did.
    pub stalls: u64,
    /// The CPU was offline; no part of its time.
    pub offline: i64,
}

impl Share {
    /// All of it.
    pub fn total(&self) -> i64 {
        self.user + self.kernel + self.idle + self.lost + self.stalled
    }

    /// Adds a span of execution.
    pub fn add(&mut self, activity: Activity, dur: i64) {
        *match activity.share() {
            what::Share::User => &mut self.user,
            what::Share::Kernel => &mut self.kernel,
            what::Share::Idle => &mut self.idle,
            what::Share::Lost => &mut self.lost,
            what::Share::Offline => &mut self.offline,
            what::Share::Stalled => {
                self.stalls += 1;
                &mut self.stalled
            }
        } += dur;
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Share) {
        self.user += other.user;
        self.kernel += other.kernel;
        self.idle += other.idle;
        self.lost += other.lost;
        self.offline += other.offline;
        self.stalled += other.stalled;
        self.stalls += other.stalls;
    }
}
