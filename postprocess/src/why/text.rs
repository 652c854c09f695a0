// SPDX-License-Identifier: BSD-3-Clause
//! The answer for people. A line that tells a cause begins with its rank and is never wrapped.

use std::fmt::{Result, Write};

use super::compare::{Compared, Excess};
use super::{Durations, Why};
use crate::line::count;
use crate::summary::text::{percent, seconds, time};

/// The widest bar of the histogram.
const BAR: usize = 50;
/// Columns before a cause.
const BEFORE: usize = 49;

impl Why {
    /// The answer.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // A string takes everything.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> Result {
        let Durations { median, p90, p99, p999, longest } = self.durations;
        let [median, p90, p99, p999, longest] = [median, p90, p99, p999, longest].map(time);
        writeln!(out, "{}", self.asked)?;
        let requests = count(self.count as u64, "request", "requests");
        writeln!(out, "{requests}: median {median}, 90 % {p90}, 99 % {p99}, 99.9 % {p999}, longest {longest}\n")?;
        let most = self.histogram.iter().map(|step| step.count).max().unwrap_or(1);
        for step in &self.histogram {
            let bar = "#".repeat((step.count * BAR).div_ceil(most));
            writeln!(out, "{:>10} {:>8}  {bar}", time(step.least), step.count)?;
        }
        writeln!(out)?;
        match &self.compared {
            Some(compared) => self.against(out, compared)?,
            None => self.all(out)?,
        }
        match self.remainder {
            0 => Ok(()),
            left => writeln!(out, "{} of {} is in no cause: a fault of this program", time(left), time(self.total)),
        }
    }

    fn against(&self, out: &mut String, compared: &Compared) -> Result {
        let Compared { slow, normal, excess, causes, left_out, unexplained } = compared;
        let means = [slow.mean, normal.mean, *excess].map(|mean| time(mean as i64));
        let [slow_mean, normal_mean, more] = means;
        let (slow, normal) = (slow.count, normal.count);
        writeln!(
            out,
            "The slowest {slow}, {slow_mean} on average, against {normal} normal ones, {normal_mean}: {more} more\n"
        )?;
        if causes.is_empty() {
            writeln!(out, "nothing stands out\n")?;
            return self.all(out);
        }
        writeln!(out, "{:>14}{:>9}{:>12}{:>12}  CAUSE", "more time", "share", "in slow", "in normal")?;
        for cause in causes {
            let Excess { rank, time: more, share, in_slow, in_normal, detail, examples, .. } = cause;
            let (in_slow, in_normal) = (format!("{in_slow}/{slow}"), format!("{in_normal}/{normal}"));
            let (rank, share) = (format!("{rank}."), format!("{:.0} %", share * 100.0));
            writeln!(
                out,
                "{rank:<3}{:>11}{share:>9}{in_slow:>12}{in_normal:>12}  {}",
                time(*more as i64),
                cause.cause
            )?;
            if !detail.is_empty() {
                writeln!(out, "{:BEFORE$}{}", "", detail.join("; "))?;
            }
            for example in examples {
                let at = format!("{} s", seconds(example.start - self.base));
                let of = format!("{at:>14} {:>10}  {}", time(example.dur), example.thread);
                writeln!(out, "{of:<width$} {}", example.address, width = BEFORE - 1)?;
            }
        }
        if *left_out > 0 {
            writeln!(out, "... {} more, see --top", count(*left_out as u64, "cause", "causes"))?;
        }
        writeln!(out, "{:>14}{:>9}{:26}all else, together", "", format!("{:.0} %", unexplained * 100.0), "")
    }

    /// Where the time of all requests went.
    fn all(&self, out: &mut String) -> Result {
        writeln!(out, "{:>14}{:>9}{:>12}  CAUSE, of all requests", "time each", "share", "in")?;
        for cause in &self.causes {
            let share = percent((cause.share * 1e6) as i64, 1_000_000);
            let many = format!("{}/{}", cause.requests, self.count);
            writeln!(out, "{:>14}{share:>9}{many:>12}  {}", time(cause.time as i64), cause.cause)?;
        }
        match self.left_out {
            0 => Ok(()),
            left => writeln!(out, "... {} more, see --top", count(left as u64, "cause", "causes")),
        }
    }
}
