// SPDX-License-Identifier: BSD-3-Clause
//! Speed of work, from what a trace counts: instructions per cycle, else cache misses, else the frequency of the CPUs.
//!
//! A cycle here is one of the TSC: at half the frequency, each has half as many instructions.

use kutrace_format::flag::{IPC, LLC};

use super::rules::Pace;
use super::timeline::Timeline;
use crate::id::CpuId;
use crate::span::ipc::{sixteenths, sixteenths_of_class};
use crate::span::Span;
use crate::time::Time;

/// Work is slower if it is done at less than this part of the usual pace.
const OTHER: f64 = 0.9;
/// Part of each microsecond that one miss takes: memory responds after about 100 ns.
const MISS: f64 = 0.1;

/// Quantity that a trace counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meter {
    /// None of the following.
    #[default]
    Nothing,
    /// Instructions per cycle.
    Instructions,
    /// Instructions per cycle, in codes of two bits next to two bits of misses.
    Coarse,
    /// Cache misses.
    Misses,
    /// The frequency of the CPUs.
    Frequency,
}

impl Meter {
    /// Returns the quantity counted by a trace with these flags and, if `has_frequency`, samples of the frequency.
    pub fn of(flags: u32, has_frequency: bool) -> Meter {
        match (flags & IPC != 0, flags & LLC != 0, has_frequency) {
            (true, false, _) => Meter::Instructions,
            (true, true, _) => Meter::Coarse,
            (false, true, _) => Meter::Misses,
            (false, false, true) => Meter::Frequency,
            (false, false, false) => Meter::Nothing,
        }
    }

    /// Returns the work counted in a piece of a span: the pace in its smallest unit, times the time.
    pub fn work(self, timeline: &Timeline, span: &Span, from: Time, to: Time) -> i64 {
        let time = (to - from).0;
        match self {
            Meter::Nothing => 0,
            Meter::Instructions => sixteenths(span.ipc) * time,
            Meter::Coarse => sixteenths_of_class(span.ipc) * time,
            Meter::Misses => (misses(span.ipc) * 1_000).saturating_mul(time) / span.dur.0.max(1),
            Meter::Frequency => timeline.megahertz(span.cpu.unwrap_or(CpuId::new(0)), from, to),
        }
    }

    /// Returns the rules to compare paces and their unit.
    pub fn pace(self) -> Pace {
        let (unit, scale, cost) = match self {
            Meter::Nothing => ("", 1.0, 0.0),
            Meter::Instructions | Meter::Coarse => ("instructions per cycle", 16.0, 0.0),
            // In thousandths of a miss per 10 ns.
            Meter::Misses => ("cache misses per us", 10.0, MISS),
            Meter::Frequency => ("GHz", 1_000.0, 0.0),
        };
        Pace { unit: unit.to_string(), scale, cost, other: OTHER }
    }
}

/// Returns the middle of the range that a code of misses stands for.
const fn misses(code: u8) -> i64 {
    match code & 15 {
        0 => 0,
        1 => 4,
        code => 12 << (code - 2),
    }
}

impl Pace {
    /// Returns how much longer the same work took than at the usual pace, for work that is slower or, if `faster`,
    /// faster.
    pub fn longer(&self, (its, its_time): (f64, f64), (usual, usual_time): (f64, f64), faster: bool) -> f64 {
        let both = its_time > 0.0 && usual_time > 0.0;
        let ratio = match self.cost > 0.0 {
            true if both => (1.0 - (its - usual) / self.scale * self.cost).max(usual_time / its_time),
            false if both && its > 0.0 && usual > 0.0 => its / usual,
            _ => 1.0,
        };
        let another = if faster { ratio > 1.0 / self.other } else { ratio < self.other };
        if another {
            its_time * (1.0 - ratio)
        } else {
            0.0
        }
    }

    /// Describes the pace of a cause against the usual one.
    pub fn text(&self, its: f64, usual: f64) -> String {
        let slower = if (its < usual) == (self.cost == 0.0) { "slower" } else { "faster" };
        format!("{slower}: {:.2} {}, not {:.2}", its / self.scale, self.unit, usual / self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_cost_time_and_never_more_than_there_is() {
        let pace = Meter::Misses.pace();
        let per_us = |misses: f64| misses * pace.scale;
        let longer = |its: f64, usual: f64| pace.longer((per_us(its), 100.0), (per_us(usual), 40.0), false);
        // Each of two more misses in a microsecond takes a tenth of that.
        assert!((longer(5.0, 3.0) - 20.0).abs() < 1e-9);
        assert_eq!(longer(3.5, 3.0), 0.0);
        assert_eq!(longer(90.0, 3.0), 60.0);
        assert_eq!(pace.text(per_us(5.0), per_us(3.0)), "slower: 5.00 cache misses per us, not 3.00");
    }

    #[test]
    fn what_is_not_counted_in_both_is_at_no_other_pace() {
        for meter in [Meter::Instructions, Meter::Misses, Meter::Frequency] {
            let pace = meter.pace();
            assert_eq!(pace.longer((900.0, 10.0), (0.0, 0.0), false), 0.0);
            assert_eq!(pace.longer((0.0, 0.0), (900.0, 10.0), true), 0.0);
        }
        let pace = Meter::Frequency.pace();
        assert_eq!(pace.longer((1_000.0, 30.0), (2_000.0, 10.0), false), 15.0);
        assert_eq!(pace.longer((2_000.0, 10.0), (1_000.0, 30.0), true), -10.0);
    }
}
