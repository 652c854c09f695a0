// SPDX-License-Identifier: BSD-3-Clause
//! Contents of a row: sums of time by event and name, and their drawing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::event::names::{NameId, Names};
use crate::span::ipc::Mean;
use crate::span::what::{Activity, Lock, Share, What};
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

/// Sums of a row.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// First and last moment.
    pub extent: Option<(Time, Time)>,
    /// Sums by bar, event number and name.
    sums: BTreeMap<(Bar, i32, NameId), Sum>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    dur: Time,
    count: i64,
    /// Last argument; for idle it indicates low power.
    arg: i64,
    ipc: Mean,
}

impl Bar {
    /// Returns the bar that a span belongs to, if the span takes time.
    pub fn of(what: What) -> Option<Bar> {
        match what {
            What::Run(_) | What::Wait(_) => Some(Bar::Time),
            What::Point(point) if point.is_sample() => Some(Bar::Samples),
            What::Lock(Lock::Held) => Some(Bar::Locks),
            _ => None,
        }
    }
}

impl Row {
    /// Adds a span that counts as `count` spans.
    pub fn add(&mut self, bar: Bar, span: &Span, count: i64) {
        let end = span.start.saturating_add(span.dur);
        let (from, to) = self.extent.unwrap_or((span.start, end));
        self.extent = Some((from.min(span.start), to.max(end)));
        let mut ipc = Mean::default();
        ipc.add(span.ipc, span.dur);
        let sum = Sum { dur: span.dur, count, arg: span.arg, ipc };
        self.sums.entry((bar, span.event(), span.name)).or_default().merge(&sum);
    }

    /// Returns the same row with the new numbers of its names.
    pub fn renamed(self, ids: &[NameId]) -> Row {
        let mut sums: BTreeMap<(Bar, i32, NameId), Sum> = BTreeMap::new();
        for ((bar, event, name), sum) in self.sums {
            let name = ids.get(name.index()).copied().unwrap_or_default();
            sums.entry((bar, event, name)).or_default().merge(&sum);
        }
        Row { sums, ..self }
    }

    /// Adds another row of the same group. Rows differ by thread in their user code, which is one activity here.
    pub fn merge(&mut self, other: &Row, names: &mut Names) {
        for (&(bar, event, name), sum) in &other.sums {
            let mut one_of_all = |activity: Activity| {
                let stem = super::stem(names.text(name)).to_string();
                (bar, activity.number() as i32, names.id(&stem))
            };
            let key = match What::of(event) {
                What::Run(Activity::User(_)) => one_of_all(Activity::User(1)),
                What::Run(Activity::Thread(_)) => one_of_all(Activity::Thread(1)),
                _ => (bar, event, name),
            };
            self.sums.entry(key).or_default().merge(sum);
        }
    }

    /// Draws the bars of a row that is the average of `rows`. Other fields of all spans are those of `base`.
    pub fn draw(&self, rows: i64, base: Span, out: &mut Vec<Span>) {
        let mut sums: Vec<_> = self.sums.iter().collect();
        sums.sort_by_key(|((bar, event, _), sum)| (*bar, order(*event), Reverse(sum.dur)));
        let (mut start, mut current) = (Time::ZERO, Bar::Time);
        for (&(bar, event, name), sum) in sums {
            start = if bar == current { start } else { Time::ZERO };
            current = bar;
            let (dur, ipc) = (sum.dur / rows, sum.ipc.code());
            let what = What::of(event);
            let arg = if what == What::Run(Activity::Idle) { sum.arg } else { sum.count };
            let ret = if let What::Run(activity) = what { activity.no_value() } else { 0 };
            out.push(Span { start, dur, what, arg, ret, ipc, name, ..base });
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
