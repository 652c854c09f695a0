// SPDX-License-Identifier: BSD-3-Clause
//! Moments and lengths of time in events and spans.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A moment or a length of time, in units of 10 ns. Moments count from the minute in
/// [`Meta::base`](crate::event::Meta::base).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// No time; the minute itself.
    pub const ZERO: Time = Time(0);
    /// The far future.
    pub const MAX: Time = Time(i64::MAX);
    /// The far past.
    pub const MIN: Time = Time(i64::MIN);
    /// The smallest length: that of a point in time.
    pub const UNIT: Time = Time(1);
    /// A second.
    pub const SECOND: Time = Time(100_000_000);

    /// A number of seconds, rounded.
    pub fn of_seconds(seconds: f64) -> Time {
        Time((seconds * Time::SECOND.0 as f64).round() as i64)
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / Time::SECOND.0 as f64
    }

    /// The sum, or the far future or past if it is beyond them.
    #[inline]
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }

    /// The difference, or the far future or past if it is beyond them.
    #[inline]
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }

    /// Distance of two moments.
    #[inline]
    pub const fn abs_diff(self, other: Time) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// The length of a difference.
    #[inline]
    pub const fn abs(self) -> Time {
        Time(self.0.abs())
    }
}

impl Add for Time {
    type Output = Time;

    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl Sub for Time {
    type Output = Time;

    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl SubAssign for Time {
    #[inline]
    fn sub_assign(&mut self, other: Time) {
        self.0 -= other.0;
    }
}

impl Mul<i64> for Time {
    type Output = Time;

    fn mul(self, times: i64) -> Time {
        Time(self.0 * times)
    }
}

impl Div<i64> for Time {
    type Output = Time;

    fn div(self, parts: i64) -> Time {
        Time(self.0 / parts)
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}
