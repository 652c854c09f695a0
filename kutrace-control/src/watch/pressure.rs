// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's pressure files: for how much of a second threads waited for a resource.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::condition::{Condition, What};

/// How often they are read, and so over how long the percentage is.
const PERIOD: Duration = Duration::from_secs(1);

/// What was read last.
#[derive(Debug)]
pub struct Pressure {
    /// Of each condition the microseconds so far, and when they were asked for. The kernel adds up to a moment after that
    /// and before the answer: the time from one question to the next answer covers both moments, and nobody waits for more
    /// than all of it, however long this process has to wait for a CPU.
    last: Vec<Option<(u64, Instant)>>,
    read: Instant,
}

impl Pressure {
    /// Reads what conditions are about.
    ///
    /// # Errors
    /// If this kernel does not tell it.
    pub fn new(conditions: &[Condition]) -> Result<Pressure> {
        let last = conditions.iter().map(|condition| match &condition.what {
            What::Pressure { resource, full, .. } => {
                let path = format!("/proc/pressure/{resource}");
                let asked = Instant::now();
                Ok(Some((total(resource, *full).with_context(|| path)?, asked)))
            }
            _ => Ok(None),
        });
        Ok(Pressure { last: last.collect::<Result<_>>()?, read: Instant::now() })
    }

    /// Of each condition that holds, the place and the percentage, once a second.
    pub fn turn(&mut self, conditions: &[Condition]) -> Vec<(usize, f64)> {
        if self.read.elapsed() < PERIOD {
            return Vec::new();
        }
        self.read = Instant::now();
        let mut found = Vec::new();
        for (place, (condition, last)) in conditions.iter().zip(&mut self.last).enumerate() {
            let (What::Pressure { resource, full, percent }, Some((before, since))) = (&condition.what, *last) else {
                continue;
            };
            let asked = Instant::now();
            let Ok(now) = total(resource, *full) else { continue };
            let part = now.saturating_sub(before) as f64 / since.elapsed().as_micros().max(1) as f64 * 100.0;
            if part > *percent {
                found.push((place, part));
            }
            *last = Some((now, asked));
        }
        found
    }
}

/// Microseconds that threads have waited, some or all.
fn total(resource: &str, full: bool) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/pressure/{resource}"))?;
    parse(&text, full).context("no total of this kind")
}

fn parse(text: &str, full: bool) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(if full { "full " } else { "some " }))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_by_kind() {
        let text =
            "some avg10=0.00 avg60=1.20 avg300=0.00 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        assert_eq!((parse(text, false), parse(text, true), parse("", true)), (Some(4711), Some(12), None));
    }
}
