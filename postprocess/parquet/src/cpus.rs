// SPDX-License-Identifier: BSD-3-Clause
//! The table of CPUs: the time range in which each was traced, and its activity in that time.

use anyhow::Result;
use parquet::data_type::ByteArray;
use postprocess::span::what::{Activity, What};
use postprocess::span::{Meta, Span};
use postprocess::time::Time;

use crate::file::{Place, TableFile, Values, UNIT};
use crate::schema::{CPU, CPUS};

/// Number of sums of a CPU's activity, in the order of their columns: worked, idle, stood still, offline, lost.
const SUMS: usize = 5;

/// State of a CPU, in units of time.
#[derive(Clone, Copy)]
struct Cpu {
    start: Time,
    end: Time,
    sums: [i64; SUMS],
}

/// All CPUs, by number.
#[derive(Default)]
pub struct Cpus(Vec<Option<Cpu>>);

impl Cpus {
    /// Adds an activity of a CPU. Spans without a CPU, or that are not execution, count for nothing.
    pub fn span(&mut self, span: &Span) {
        let (What::Run(activity), Some(cpu)) = (span.what(), span.cpu) else { return };
        if cpu.index() >= self.0.len() {
            self.0.resize(cpu.index() + 1, None);
        }
        let end = span.start.saturating_add(span.dur);
        let cpu = self.0[cpu.index()].get_or_insert(Cpu { start: span.start, end, sums: [0; SUMS] });
        (cpu.start, cpu.end) = (cpu.start.min(span.start), cpu.end.max(end));
        let sum = match activity {
            Activity::User(_) | Activity::Thread(_) | Activity::Call(_) => 0,
            Activity::Idle | Activity::IdleExit => 1,
            Activity::Stalled => 2,
            Activity::Offline => 3,
            Activity::Lost => 4,
        };
        cpu.sums[sum] = cpu.sums[sum].saturating_add(span.dur.0);
    }

    /// Returns the number of CPUs, up to the highest number.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the time range in which any CPU was traced; `None` without CPUs.
    pub fn extent(&self) -> Option<(Time, Time)> {
        let all = || self.0.iter().flatten();
        all().map(|cpu| cpu.start).min().zip(all().map(|cpu| cpu.end).max())
    }

    /// Writes the table; times count from `base`, in ns.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, place: &Place, meta: &Meta, base: i64) -> Result<()> {
        let all: Vec<(usize, Cpu)> = self.0.iter().enumerate().filter_map(|(n, cpu)| Some((n, (*cpu)?))).collect();
        let machine = |n: usize| {
            let machine = meta.machines.iter().rfind(|machine| machine.first_cpu as usize <= n);
            ByteArray::from(machine.map_or(meta.host.as_str(), |machine| machine.name.as_str()))
        };
        let column = |of: &dyn Fn(&Cpu) -> i64| Values::long(all.iter().map(|(_, cpu)| of(cpu)).collect());
        let at = |time: Time| base.saturating_add(time.0.saturating_mul(UNIT));
        let mut columns = vec![
            Values::text(vec![ByteArray::from(place.trace); all.len()]),
            Values::int(all.iter().map(|(n, _)| *n as i32).collect()),
            Values::text(all.iter().map(|(n, _)| machine(*n)).collect()),
            column(&|cpu| at(cpu.start)),
            column(&|cpu| at(cpu.end)),
        ];
        columns.extend((0..SUMS).map(|sum| column(&|cpu| cpu.sums[sum].saturating_mul(UNIT))));
        let mut file = TableFile::new(place, CPUS, CPU)?;
        file.group(columns)?;
        file.finish().map(drop)
    }
}
