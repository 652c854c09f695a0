// SPDX-License-Identifier: BSD-3-Clause
//! Counter values to units of 10 ns: one straight line from the start of the trace to its stop.
//!
//! Invariant: later counters never give earlier times, no counter overflows, and no time is before the minute, where
//! the names known from the start are.

use crate::time::Time;
use kutrace_format::abi::command::MAX_SHIFT;
use kutrace_format::file::Header;

/// Fractional bits of [`Clock::slope`].
const POINT: u32 = 48;
const MINUTE_NS: u64 = 60_000_000_000;
/// Rates beyond these are damage: 1 MHz and 100 GHz.
const RATES: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000_000;
/// Largest time, in ns, so that differences of times still fit.
const FAR: i128 = 1 << 62;

/// The line from counter to time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    shift: u32,
    /// TSC at the start; in the original's traces, the counter at the minute, which may be before 0.
    origin: i128,
    /// Nanoseconds from the minute to the start.
    offset_ns: u64,
    /// Nanoseconds per TSC count.
    slope: i128,
    /// The minute that times count from, in Unix seconds.
    pub base: i64,
}

impl Clock {
    /// The clock of a trace, and a sentence for each thing about it that had to be guessed.
    ///
    /// The rate is that between start and stop on the monotonic clock. If they are too near, if there is no stop, or if
    /// this rate contradicts the kernel's own calibration by more than 1 %, the calibration is used.
    pub fn new(header: &Header) -> (Clock, Vec<&'static str>) {
        let mut notes = Vec::new();
        let shift = if header.shift > MAX_SHIFT {
            notes.push("the counter's shift is out of range; 4 is used");
            4
        } else {
            header.shift
        };
        let calibrated =
            RATES.contains(&header.tsc_hz).then(|| (1_000_000_000i128 << POINT) / i128::from(header.tsc_hz));
        let slope = match (measured(header), calibrated) {
            (Some(m), Some(c)) if (m - c).abs() <= c / 100 => m,
            (Some(_), Some(c)) => {
                notes.push("the clock rate between start and stop is not the processor's; the latter is used");
                c
            }
            (None, Some(c)) if header.stop.tsc > header.start.tsc && !is_long(header) => c,
            (None, Some(c)) => {
                notes.push("there is no usable stop time; the processor's clock rate is used");
                c
            }
            (Some(m), None) => m,
            (None, None) => {
                notes.push("no usable clock rate; 1 GHz is assumed");
                1 << POINT
            }
        };
        let start = header.start.realtime_ns;
        let base = (start / MINUTE_NS * 60) as i64;
        (Clock { shift, origin: header.start.tsc.into(), offset_ns: start % MINUTE_NS, slope, base }, notes)
    }

    /// Value of CLOCK_MONOTONIC at the minute, ns.
    pub fn monotonic(header: &Header) -> Option<i64> {
        let since_minute = (header.start.realtime_ns % MINUTE_NS) as i64;
        i64::try_from(header.start.monotonic_ns).ok()?.checked_sub(since_minute)
    }

    /// The clock of one of the original's traces, whose start and stop are each a counter and a time in us since 1970;
    /// `None` if the rate is impossible for a counter. The minute is at a whole count, rounded up, like the original's.
    pub fn of_original((from, from_us): (u64, u64), (to, to_us): (u64, u64)) -> Option<Clock> {
        let counts = to.checked_sub(from).filter(|&counts| counts > 0 && counts >> 56 == 0)?;
        let us = to_us.checked_sub(from_us).filter(|&us| us > 0 && us >> 40 == 0)?;
        if !(us * 9 / 10..us * 110).contains(&counts) {
            return None;
        }
        let base = from_us / 60_000_000 * 60;
        let since_minute = i128::from(from_us % 60_000_000) * i128::from(counts) / i128::from(us);
        let slope = ((i128::from(us) * 1000) << POINT) / i128::from(counts);
        Some(Clock { shift: 0, origin: i128::from(from) - since_minute, offset_ns: 0, slope, base: base as i64 })
    }

    /// The clock of one of these traces from its start alone: 50 counts a us.
    pub fn assumed((from, from_us): (u64, u64)) -> Clock {
        let (slope, base) = (20 << POINT, from_us / 60_000_000 * 60);
        Clock { shift: 0, origin: from.into(), offset_ns: from_us % 60_000_000 * 1000, slope, base: base as i64 }
    }

    /// Number of low bits of the TSC that the counter lacks.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The last TSC that has one of these counter values, or `stop` if that is later.
    pub fn last_tsc(&self, counters: impl Iterator<Item = u64>, stop: u64) -> u64 {
        counters.map(|counter| (counter << self.shift) | ((1 << self.shift) - 1)).fold(stop, u64::max)
    }

    /// The counter's rate in Hz, rounded.
    pub fn counter_hz(&self) -> u64 {
        let ns_per_count = self.slope << self.shift;
        (((1_000_000_000 << POINT) + ns_per_count / 2) / ns_per_count).max(1) as u64
    }

    /// The time of a counter value after the minute.
    #[inline]
    pub fn units(&self, counter: u64) -> Time {
        let tsc = i128::from(counter) << self.shift;
        self.tsc_units(tsc)
    }

    /// The time of an unshifted counter value after the minute.
    pub fn tsc_units(&self, tsc: i128) -> Time {
        let from_origin = (tsc - self.origin).clamp(-(1 << 62), 1 << 62);
        let ns = ((from_origin * self.slope) >> POINT) + i128::from(self.offset_ns);
        Time(ns.clamp(0, FAR) as i64 / 10)
    }

    /// The same in picoseconds, also for times before the minute.
    pub fn picoseconds(&self, tsc: i128) -> i128 {
        let from_origin = (tsc - self.origin).clamp(-(1 << 55), 1 << 55);
        ((from_origin * self.slope * 1000) >> POINT) + i128::from(self.offset_ns) * 1000
    }

    /// The unshifted counter value at a time after the minute.
    pub fn counter_at(&self, at: Time) -> i128 {
        let ns = i128::from(at.0) * 10 - i128::from(self.offset_ns);
        self.origin + (ns << POINT) / self.slope
    }
}

/// True if start and stop are far enough apart, 1 ms, to measure the clock by.
fn is_long(header: &Header) -> bool {
    header.stop.monotonic_ns.saturating_sub(header.start.monotonic_ns) >= 1_000_000
}

/// Nanoseconds per TSC count between start and stop, if both make sense.
fn measured(header: &Header) -> Option<i128> {
    let counts = header.stop.tsc.checked_sub(header.start.tsc)?;
    let ns = header.stop.monotonic_ns.checked_sub(header.start.monotonic_ns)?;
    if !is_long(header) || ns >> 62 != 0 || counts == 0 {
        return None;
    }
    let rate = u128::from(counts) * 1_000_000_000 / u128::from(ns);
    RATES.contains(&u64::try_from(rate).ok()?).then(|| (i128::from(ns) << POINT) / i128::from(counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::abi::command::Moment;
    use kutrace_format::capability::Unseen;

    fn header(shift: u32, tsc_hz: u64, start: Moment, stop: Moment) -> Header {
        let (flags, cpus, block_bytes, blocks, lost) = (0, 1, 65536, 0, 0);
        Header {
            flags,
            shift,
            tsc_hz,
            cpus,
            block_bytes,
            blocks,
            lost,
            start,
            stop,
            uuid: [0; 16],
            boot_id: [0; 16],
            refused_names: 0,
            refused_marks: 0,
            unseen: Unseen::default(),
        }
    }

    const START: Moment = Moment { tsc: 1 << 40, realtime_ns: 120_000_000_050, monotonic_ns: 7 };
    const STOP: Moment = Moment { tsc: (1 << 40) + 32_000_000, realtime_ns: 0, monotonic_ns: 10_000_007 };

    #[test]
    fn times_count_from_the_minute_before_the_start() {
        let (clock, notes) = Clock::new(&header(4, 3_200_000_000, START, STOP));
        assert_eq!((clock.base, notes.len()), (120, 0));
        assert_eq!((clock.units(1 << 36), clock.units(7)), (Time(5), Time::ZERO));
        assert_eq!(clock.units((1 << 36) + 2_000_000), Time(1_000_005));
    }

    #[test]
    fn the_monotonic_clock_may_have_begun_after_the_minute() {
        assert_eq!(Clock::monotonic(&header(4, 0, START, STOP)), Some(7 - 50));
        let late = Moment { realtime_ns: 179_999_999_999, monotonic_ns: 90_000_000_000, ..START };
        assert_eq!(Clock::monotonic(&header(4, 0, late, STOP)), Some(90_000_000_000 - 59_999_999_999));
        let beyond = Moment { monotonic_ns: u64::MAX, ..START };
        assert_eq!(Clock::monotonic(&header(4, 0, beyond, STOP)), None);
    }

    #[test]
    fn a_trace_without_a_stop_uses_the_calibrated_rate() {
        let (clock, notes) = Clock::new(&header(4, 3_200_000_000, START, Moment::default()));
        assert_eq!(notes.len(), 1);
        assert_eq!(clock.units((1 << 36) + 2_000_000), Time(1_000_005));
    }

    #[test]
    fn an_absurd_stop_is_not_believed() {
        let stop = Moment { monotonic_ns: 99_000_000_007, ..STOP };
        let (clock, notes) = Clock::new(&header(4, 3_200_000_000, START, stop));
        assert_eq!(notes.len(), 1);
        assert_eq!(clock.units((1 << 36) + 2_000_000), Time(1_000_005));
    }

    #[test]
    fn no_counter_overflows_and_order_is_kept() {
        let (clock, _) =
            Clock::new(&header(u32::MAX, 0, Moment { tsc: u64::MAX, realtime_ns: u64::MAX, ..START }, STOP));
        let times = [0, 1, 1 << 20, 1 << 40, u64::MAX].map(|c| clock.units(c));
        assert!(times.is_sorted(), "{times:?}");
    }
}
