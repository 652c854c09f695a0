// SPDX-License-Identifier: BSD-3-Clause
//! Times, shares and counts as people read them.

use crate::time::Time;

/// A number and the counted thing: `1 gap`, `2 gaps`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The average of `count` times.
pub fn average(total: Time, count: u64) -> Time {
    total / count.max(1) as i64
}

/// A part of all, in percent.
pub fn percent(part: Time, all: Time) -> String {
    format!("{:.1} %", part.0 as f64 * 100.0 / all.0.max(1) as f64)
}

/// A moment in seconds.
pub fn seconds(at: Time) -> String {
    format!("{:.6}", at.seconds())
}

/// A duration that is a whole number of the unit that leaves one to three digits.
pub fn whole_time(time: Time) -> String {
    match time.0 {
        units @ ..100 => format!("{} ns", units * 10),
        units @ 100..100_000 => format!("{} us", units / 100),
        units @ 100_000..100_000_000 => format!("{} ms", units / 100_000),
        units => format!("{} s", units / 100_000_000),
    }
}

/// A duration with the unit that leaves one to three digits before the point.
pub fn time(time: Time) -> String {
    let ns = time.0 as f64 * 10.0;
    match time.0 {
        ..100 => format!("{ns:.0} ns"),
        100..100_000 => format!("{:.2} us", ns / 1e3),
        100_000..100_000_000 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.3} s", ns / 1e9),
    }
}
