// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's pressure files: share of a second in which threads waited for a resource.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::condition::{Condition, What};

/// Interval between readings, and therefore the period of the percentage.
const PERIOD: Duration = Duration::from_secs(1);

/// The last readings.
#[derive(Debug)]
pub struct Pressure {
    /// For each condition: the microseconds so far, and the time of the request. The kernel's total refers to a moment
    /// between request and answer: the time from one request to the next answer covers both moments, and no thread
    /// waits for longer than this time, however long this process has to wait for a CPU.
    last: Vec<Option<(u64, Instant)>>,
    read: Instant,
}

impl Pressure {
    /// Reads the files that the conditions need.
    ///
    /// # Errors
    /// If this kernel does not provide them.
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

    /// Index and percentage of each condition that holds, once a second.
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

/// Microseconds that some or all threads have waited.
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
