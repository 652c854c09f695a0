// SPDX-License-Identifier: BSD-3-Clause
//! Division of a CPU's time: user code, kernel, idle, and unknown time.

use std::ops::AddAssign;

use crate::span::what::{self, Activity};
use crate::time::Time;

/// Time of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// User code.
    pub user: Time,
    /// System calls, faults, interrupts, the scheduler.
    pub kernel: Time,
    /// Idle, or leaving idle.
    pub idle: Time,
    /// Unknown.
    pub lost: Time,
    /// The CPU stood still.
    pub stalled: Time,
    /// Number of times that it did.
    pub stalls: u64,
    /// Time that the host took, from any of these.
    pub stolen: Time,
    /// Number of pieces of that time.
    pub steals: u64,
    /// The CPU was offline; not a part of its time.
    pub offline: Time,
}

impl Share {
    /// Returns the total time.
    pub fn total(&self) -> Time {
        self.user + self.kernel + self.idle + self.lost + self.stalled
    }

    /// Adds a span of execution.
    pub fn add(&mut self, activity: Activity, dur: Time) {
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
        self.stolen += other.stolen;
        self.steals += other.steals;
    }
}
