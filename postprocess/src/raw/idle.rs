// SPDX-License-Identifier: BSD-3-Clause
//! Idle time of each CPU between two readings of /proc/stat, and the time that its host took, by the kernel's own
//! count.
//!
//! ```text
//! cpuN user nice system idle iowait irq softirq steal ...    in hundredths of a second
//! ```
//!
//! A count may be off by one at each edge. The kernel does not count the entry and exit code of interrupts, which is
//! outside of the hooks, and may count a part of the idle time as a wait for a disk, or as the interrupt that ended it:
//! its count is therefore a range.

use kutrace_format::reading::{CounterFile, Reading};

use super::clock::Clock;
use crate::id::CpuId;
use crate::time::Time;

/// Units of [`Time`] in one unit of the kernel's count.
const HUNDREDTH: i64 = 1_000_000;
/// Possible error of the two edges.
const EDGES: i64 = 2 * HUNDREDTH;
/// Index of `idle` among the counts of a CPU; iowait, irq and softirq follow.
const IDLE: usize = 3;
const STEAL: usize = 7;

/// The kernel's count for one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleTime {
    /// The CPU.
    pub cpu: CpuId,
    /// Start and end of the counted time.
    pub window: (Time, Time),
    /// Least and most time that it was idle.
    pub counted: (Time, Time),
    /// Time that its host took.
    pub stolen: Time,
}

impl IdleTime {
    /// True if a trace that has the CPU idle for this time may be right.
    pub fn allows(&self, traced: Time) -> bool {
        let (least, most) = (self.counted.0 .0, self.counted.1 .0);
        (least - EDGES..=most + most / 20 + EDGES).contains(&traced.0)
    }
}

/// The counts of each CPU that is in the first and the last reading.
pub fn counted(readings: &[Reading], clock: &Clock) -> Vec<IdleTime> {
    let mut of = readings.iter().filter(|reading| reading.file == CounterFile::Stat as u16);
    let (Some(first), Some(last)) = (of.next(), of.next_back()) else { return Vec::new() };
    let window = (clock.tsc_units(first.after.into()), clock.tsc_units(last.before.into()));
    let grown = |(cpu, after): (u32, Vec<i64>)| {
        let (_, before) = cpus(first.text).find(|(other, _)| *other == cpu)?;
        let grown = |at: usize| {
            let (after, before) = after.get(at).zip(before.get(at)).unwrap_or((&0, &0));
            after.saturating_sub(*before).max(0).saturating_mul(HUNDREDTH)
        };
        let most = (IDLE..IDLE + 4).map(grown).fold(0, i64::saturating_add);
        Some(IdleTime {
            cpu: CpuId::new(cpu),
            window,
            counted: (Time(grown(IDLE)), Time(most)),
            stolen: Time(grown(STEAL)),
        })
    };
    cpus(last.text).filter_map(grown).collect()
}

/// The counts of each CPU that has enough of them.
fn cpus(stat: &[u8]) -> impl Iterator<Item = (u32, Vec<i64>)> + '_ {
    std::str::from_utf8(stat).unwrap_or_default().lines().filter_map(|line| {
        let (cpu, counts) = line.strip_prefix("cpu")?.split_once(' ')?;
        let counts: Vec<i64> = counts.split_whitespace().map_while(|count| count.parse().ok()).collect();
        Some((cpu.parse().ok()?, counts)).filter(|(_, counts)| counts.len() >= IDLE + 4)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cpus_with_all_their_counts_are_read() {
        let stat = b"cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8\ncpu12 1 2 3 4 5 6 7\ncpu13 1 2 3\nctxt 7\ncpux 1 2 3 4 5 6 7\n";
        let read: Vec<_> = cpus(stat).map(|(cpu, counts)| (cpu, counts[IDLE])).collect();
        assert_eq!(read, [(0, 4), (12, 4)]);
    }

    #[test]
    fn two_hundredths_and_a_twentieth_of_the_most_are_allowed() {
        let time = |hundredths: i64| Time(hundredths * HUNDREDTH);
        let (cpu, window, counted) = (CpuId::new(0), (Time(0), time(500)), (time(100), time(200)));
        let idle = IdleTime { cpu, window, counted, stolen: Time::ZERO };
        let allowed = [97, 98, 150, 200, 212, 213].map(|traced| idle.allows(time(traced)));
        assert_eq!(allowed, [false, true, true, true, true, false]);
    }
}
