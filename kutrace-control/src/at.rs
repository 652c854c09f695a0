// SPDX-License-Identifier: BSD-3-Clause
//! A time of the day to start at, so that several machines start at the same moment.

use std::thread;
use std::time::Duration;

use anyhow::{ensure, Result};
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan, Zoned};
use kutrace_cli::say;

/// A time of the day that has passed by less than this is not postponed to tomorrow.
const OVER: SignedDuration = SignedDuration::from_hours(12);

/// A time of the day: `16:30:00` on this machine, `16:30:00Z` on all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    time: Time,
    is_utc: bool,
}

impl TimeOfDay {
    /// Parses a time of the day.
    ///
    /// # Errors
    /// A sentence.
    pub fn parse(text: &str) -> Result<TimeOfDay, String> {
        let (time, is_utc) = text.strip_suffix('Z').map_or((text, false), |time| (time, true));
        // A date or a zone would be ignored.
        let is_plain = time.chars().all(|c| c.is_ascii_digit() || c == ':');
        let time = Some(time).filter(|_| is_plain).and_then(|time| time.parse().ok());
        let time =
            time.ok_or_else(|| format!("invalid time '{text}': expected something like 16:30:00 or 16:30:00Z"))?;
        Ok(TimeOfDay { time, is_utc })
    }

    /// The next occurrence after `now`.
    ///
    /// # Errors
    /// If it has just passed.
    pub fn next(&self, now: &Zoned) -> Result<Zoned> {
        let now = if self.is_utc { now.with_time_zone(TimeZone::UTC) } else { now.clone() };
        let today = now.with().time(self.time).build()?;
        if today >= now {
            return Ok(today);
        }
        let over = now.duration_since(&today);
        ensure!(over > OVER, "{} has passed; it is now {}", self.time, now.time());
        Ok(today.checked_add(1.day())?)
    }

    /// Waits until this time. The clock may be set during the wait: its current value counts.
    ///
    /// # Errors
    /// If it has just passed.
    pub fn wait(&self) -> Result<()> {
        let at = self.next(&Zoned::now())?;
        say(format_args!("waiting until {}", at.strftime("%Y-%m-%d %H:%M:%S %Z")));
        loop {
            let left = at.duration_since(&Zoned::now());
            let Ok(left) = Duration::try_from(left) else { return Ok(()) };
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(Duration::from_secs(1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_the_day_is_the_next_one() {
        let now: Zoned = "2026-11-24T16:10:00+01:00[Europe/Berlin]".parse().unwrap();
        let next = |text: &str| TimeOfDay::parse(text).unwrap().next(&now).map(|at| at.timestamp().to_string());
        assert_eq!(next("16:30:00").unwrap(), "2026-11-24T15:30:00Z");
        assert_eq!(next("16:30").unwrap(), "2026-11-24T15:30:00Z");
        assert_eq!(next("15:30:00Z").unwrap(), "2026-11-24T15:30:00Z");
        assert_eq!(next("03:00:00").unwrap(), "2026-11-25T02:00:00Z");
        assert!(next("16:09:59").unwrap_err().to_string().starts_with("16:09:59 has passed"));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "noon", "25:00:00", "16:30:00+01:00", "-1:00:00", "2026-11-24T16:30:00", "Z"] {
            assert!(TimeOfDay::parse(text).unwrap_err().starts_with("invalid time"), "{text}");
        }
    }
}
