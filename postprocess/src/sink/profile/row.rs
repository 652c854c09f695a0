// SPDX-License-Identifier: BSD-3-Clause
//! What a row did: sums of time by event and name, and how they are drawn.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::event::names::{NameId, Names};
use crate::event::number;
use crate::id::Pid;
use crate::span::ipc::Mean;
use crate::span::stack::no_value;
use crate::span::what::{Activity, Share, What};
use crate::span::Span;
use crate::time::Time;

/// A bar of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bar {
    /// Execution and waits.
    Time,
    /// Program counter samples.
    Samples,
    /// Locks held.
    Locks,
}

/// Everything a row did.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// First and last moment.
    pub extent: Option<(Time, Time)>,
    /// By bar, event number and name.
    sums: BTreeMap<(Bar, i32, NameId), Sum>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    dur: Time,
    count: i64,
    /// The last argument; of idle it tells low power.
    arg: i64,
    ipc: Mean,
}

impl Bar {
    /// The bar that an event belongs to, if it takes time.
    pub fn of(event: i32) -> Option<Bar> {
        match (What::of(event), event as u32) {
            (What::Run(_) | What::Wait(_), _) => Some(Bar::Time),
            (_, number::PC_USER..=number::PC_KERNEL) => Some(Bar::Samples),
            (_, number::LOCK_HELD) => Some(Bar::Locks),
            _ => None,
        }
    }
}

impl Row {
    /// Adds a span, which counts as this many.
    pub fn add(&mut self, bar: Bar, span: &Span, count: i64) {
        let end = span.start.saturating_add(span.dur);
        let (from, to) = self.extent.unwrap_or((span.start, end));
        self.extent = Some((from.min(span.start), to.max(end)));
        let mut ipc = Mean::default();
        ipc.add(span.ipc, span.dur);
        let sum = Sum { dur: span.dur, count, arg: span.arg, ipc };
        self.sums.entry((bar, span.event, span.name)).or_default().merge(&sum);
    }

    /// The same row, whose names have these numbers now.
    pub fn renamed(self, ids: &[NameId]) -> Row {
        let mut sums: BTreeMap<(Bar, i32, NameId), Sum> = BTreeMap::new();
        for ((bar, event, name), sum) in self.sums {
            let name = ids.get(name.index()).copied().unwrap_or_default();
            sums.entry((bar, event, name)).or_default().merge(&sum);
        }
        Row { sums, ..self }
    }

    /// Adds another row of the same group. What differs by thread there is user code, and is one thing here.
    pub fn merge(&mut self, other: &Row, names: &mut Names) {
        for (&(bar, event, name), sum) in &other.sums {
            let mut one_of_all = |event: u32| {
                let stem = super::stem(names.text(name)).to_string();
                (bar, event as i32, names.id(&stem))
            };
            let key = match What::of(event) {
                What::Run(Activity::User) => one_of_all(number::USER_FIRST),
                What::Run(Activity::Thread) => one_of_all(number::kernel(Pid::new(1))),
                _ => (bar, event, name),
            };
            self.sums.entry(key).or_default().merge(sum);
        }
    }

    /// Draws the bars of a row that is the average of `rows`; the other fields of all spans are those of `base`.
    pub fn draw(&self, rows: i64, base: Span, out: &mut Vec<Span>) {
        let mut sums: Vec<_> = self.sums.iter().collect();
        sums.sort_by_key(|((bar, event, _), sum)| (*bar, order(*event), Reverse(sum.dur)));
        let (mut start, mut current) = (Time::ZERO, Bar::Time);
        for (&(bar, event, name), sum) in sums {
            start = if bar == current { start } else { Time::ZERO };
            current = bar;
            let (dur, ipc) = (sum.dur / rows, sum.ipc.code());
            let arg = if event == number::USER as i32 { sum.arg } else { sum.count };
            let ret = no_value(event as u32);
            out.push(Span { start, dur, event, arg, ret, ipc, name, ..base });
            start = start.saturating_add(dur);
        }
    }
}

impl Sum {
    fn merge(&mut self, other: &Sum) {
        self.dur = self.dur.saturating_add(other.dur);
        self.count += other.count;
        self.arg = other.arg;
        self.ipc.merge(&other.ipc);
    }
}

/// Running before waiting before idle.
fn order(event: i32) -> u8 {
    match What::of(event) {
        What::Run(activity) if !matches!(activity.share(), Share::User | Share::Kernel) => 2,
        What::Wait(_) => 1,
        _ => 0,
    }
}
