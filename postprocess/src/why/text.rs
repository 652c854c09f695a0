// SPDX-License-Identifier: BSD-3-Clause
//! The answer for people; at most 100 columns wide.

use std::fmt::Write;

use super::compare::Excess;
use super::Why;
use crate::line::count;
use crate::summary::text::{percent, seconds, time};

/// The widest bar of the histogram.
const BAR: usize = 50;

impl Why {
    /// The answer, with at most `top` causes; times count from `base`, the start of the trace.
    pub fn text(&self, top: usize, base: i64, name: impl Fn(i32) -> String) -> String {
        let mut out = String::new();
        // A string takes everything.
        let _ = self.write(&mut out, top, base, name);
        out
    }

    fn write(&self, out: &mut String, top: usize, base: i64, name: impl Fn(i32) -> String) -> std::fmt::Result {
        let Why { asked, count: requests, percentiles: [median, p90, p99, p999, longest], .. } = self;
        writeln!(out, "{asked}")?;
        writeln!(
            out,
            "{}: median {}, 90 % {}, 99 % {}, 99.9 % {}, longest {}\n",
            count(*requests as u64, "request", "requests"),
            time(*median),
            time(*p90),
            time(*p99),
            time(*p999),
            time(*longest)
        )?;
        let most = self.histogram.iter().map(|(_, count)| *count).max().unwrap_or(1);
        for (least, count) in &self.histogram {
            writeln!(out, "{:>10} {:>8}  {}", time(*least), count, "#".repeat((count * BAR).div_ceil(most)))?;
        }
        let Some(compared) = &self.compared else {
            writeln!(out)?;
            return self.all(out, top);
        };
        let ((slow, slow_mean), (normal, normal_mean)) = (compared.slow, compared.normal);
        writeln!(
            out,
            "\nThe slowest {slow}, {} on average, against {normal} normal ones, {}: {} more\n",
            time(slow_mean as i64),
            time(normal_mean as i64),
            time((slow_mean - normal_mean) as i64)
        )?;
        if compared.causes.is_empty() {
            writeln!(out, "nothing stands out\n")?;
            return self.all(out, top);
        }
        writeln!(out, "{:>14}{:>9}{:>12}{:>12}  CAUSE", "more time", "", "in slow", "in normal")?;
        for (rank, cause) in (1..).zip(compared.causes.iter().take(top)) {
            let Excess { time: more, share, in_slow, in_normal, .. } = cause;
            let (in_slow, in_normal) = (format!("{in_slow}/{slow}"), format!("{in_normal}/{normal}"));
            let share = format!("{:.0} %", share * 100.0);
            writeln!(out, "{rank}.{:>12}{share:>9}{in_slow:>12}{in_normal:>12}  {}", time(*more as i64), cause.cause)?;
            let each = cause.examples.iter();
            let each: Vec<_> = each
                .map(|(at, dur, pid)| format!("{} s for {} ({})", seconds(at - base), time(*dur), name(*pid)))
                .collect();
            writeln!(out, "{:>16}for example at {}", "", each.join(", "))?;
        }
        if compared.causes.len() > top {
            writeln!(out, "... {} more", compared.causes.len() - top)?;
        }
        Ok(())
    }

    /// Where the time of all requests went.
    fn all(&self, out: &mut String, top: usize) -> std::fmt::Result {
        let total: f64 = self.causes.iter().map(|cause| cause.time).sum();
        writeln!(out, "{:>12}{:>9}{:>12}  CAUSE, of all requests", "time each", "", "in")?;
        for cause in self.causes.iter().take(top) {
            let share = percent(cause.time as i64, total as i64);
            let many = format!("{}/{}", cause.in_slow, self.count);
            writeln!(out, "{:>12}{share:>9}{many:>12}  {}", time(cause.time as i64), cause.cause)?;
        }
        if self.causes.len() > top {
            writeln!(out, "... {} more", self.causes.len() - top)?;
        }
        Ok(())
    }
}
