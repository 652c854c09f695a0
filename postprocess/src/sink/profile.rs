// SPDX-License-Identifier: BSD-3-Clause
//! Profiles: where the time of each row went, as bars that start at 0 and hold one span for each activity.
//!
//! A row is a CPU, a thread, or an RPC. Its bar holds execution and waits: what ran, most time first, then waits, then
//! idle. Program counter samples and held locks lie over that time, so they have bars of their own on the same row.
//!
//! In a profile [`Span::arg`] is the number of times that an activity began, except for idle; the pieces of an
//! interrupted call count once. Other numbers of a row are -1.

mod row;

use std::collections::BTreeMap;
use std::fmt;

use crate::event::names::{NameId, Names};
use crate::event::point::Point;
use crate::id::{CpuId, Pid};
use crate::span::limit::Keep;
use crate::span::order::order;
use crate::span::what::What;
use crate::span::whole::{Piece, Wholes};
use crate::span::{Span, Spans};
use crate::time::Time;
use row::{Bar, Row};

/// Rows of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The rows of the trace.
    Each,
    /// Averages of rows with the same name up to the last dot, `name_AVG (rows)`, and of those among them whose time
    /// from first to last is about the same, `name_64us (rows)`. An average is over this many rows or more.
    Groups(usize),
}

/// Thread number of the first row of groups.
const FIRST_GROUP: u32 = 1 << 17;

/// A row of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Cpu(CpuId),
    Thread(Pid),
    Rpc(i32),
}

/// Replaces `spans` by their profile. Averaged durations are rounded down.
pub fn profile(spans: &mut Spans, rows: Rows) {
    *spans = Adder::new(rows).finish(std::mem::take(spans));
}

/// Adds up spans as they come, without keeping any.
#[derive(Debug)]
pub struct Adder {
    wanted: Rows,
    rows: BTreeMap<Key, Row>,
    /// Name of each row: for a thread its label, else that of its user code; for an RPC that of its first point.
    labels: BTreeMap<Key, NameId>,
    /// Joins the pieces of a call.
    calls: Wholes,
}

/// Number of spans that are gathered before they are added.
const GATHERED: usize = 1 << 14;

impl Keep for Adder {
    fn room(&self) -> usize {
        GATHERED
    }

    fn add(&mut self, spans: Vec<Span>) {
        spans.iter().for_each(|span| self.span(span));
    }

    fn finish(mut self, mut last: Spans) -> Spans {
        self.add(std::mem::take(&mut last.spans));
        let mut names = Names::default();
        let ids: Vec<NameId> = last.names.iter().map(|n| names.id(n)).collect();
        let label = |key: &Key| match self.labels.get(key).and_then(|&name| last.names.get(name.index())) {
            Some(label) => label.clone(),
            None => key.to_string(),
        };
        let labels: BTreeMap<Key, String> = self.rows.keys().map(|key| (*key, label(key))).collect();
        let each: BTreeMap<Key, Row> = self.rows.into_iter().map(|(key, row)| (key, row.renamed(&ids))).collect();
        last.spans = drawn(self.wanted, &each, &labels, &mut names);
        last.names = names.into_texts();
        last.meta.counts.clear();
        last
    }
}

impl Adder {
    /// Makes an empty sum.
    pub fn new(wanted: Rows) -> Adder {
        Adder { wanted, rows: BTreeMap::new(), labels: BTreeMap::new(), calls: Wholes::default() }
    }

    fn span(&mut self, span: &Span) {
        self.label(span);
        let Some(bar) = Bar::of(span.what) else { return };
        let activity = span.activity().filter(|_| span.cpu.is_some());
        let piece = activity.map_or(Piece::None, |activity| self.calls.add(activity, span, |_| {}).0);
        let goes_on = matches!(piece, Piece::Next(_) | Piece::Unseen);
        let keys =
            [span.cpu.map(Key::Cpu), span.thread().map(Key::Thread), (span.rpc > 0).then_some(Key::Rpc(span.rpc))];
        for key in keys.into_iter().flatten() {
            self.rows.entry(key).or_default().add(bar, span, i64::from(!goes_on));
        }
    }

    fn label(&mut self, span: &Span) {
        let thread = span.pid.map(Key::Thread);
        match span.what {
            What::Point(Point::RowLabel) => self.labels.extend(thread.map(|key| (key, span.name))),
            What::Point(point) if point.is_rpc() => {
                self.labels.entry(Key::Rpc(span.rpc)).or_insert(span.name);
            }
            _ if span.is_own_code() => {
                thread.map(|key| *self.labels.entry(key).or_insert(span.name));
            }
            _ => {}
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Cpu(cpu) => write!(f, "cpu.{cpu}"),
            Key::Thread(pid) => write!(f, "pid.{pid}"),
            Key::Rpc(rpc) => write!(f, "rpc.{rpc}"),
        }
    }
}

/// Returns the spans of the requested rows.
fn drawn(wanted: Rows, each: &BTreeMap<Key, Row>, labels: &BTreeMap<Key, String>, names: &mut Names) -> Vec<Span> {
    let mut out = Vec::new();
    match wanted {
        Rows::Each => {
            for (&key, row) in each {
                let label = names.id(&labels[&key]);
                draw(key, row, 1, label, &mut out);
            }
        }
        Rows::Groups(min) => {
            let groups = group(each, labels).into_iter().filter(|(_, rows)| rows.len() >= min);
            for (pid, (name, rows)) in (FIRST_GROUP..).map(Pid::new).zip(groups) {
                let mut sum = Row::default();
                rows.iter().for_each(|row| sum.merge(row, names));
                let label = names.id(&format!("{name} ({})", rows.len()));
                draw(Key::Thread(pid), &sum, rows.len() as i64, label, &mut out);
            }
        }
    }
    order(&mut out);
    out
}

/// Returns a name up to its last dot.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Returns the rows of each group, with the group's name.
fn group<'a>(rows: &'a BTreeMap<Key, Row>, labels: &BTreeMap<Key, String>) -> Vec<(String, Vec<&'a Row>)> {
    let mut groups: BTreeMap<(&str, u32), Vec<&Row>> = BTreeMap::new();
    for (key, row) in rows {
        let (from, to) = row.extent.unwrap_or_default();
        let us = (to.saturating_sub(from).0 / 100).clamp(1, 1 << 23);
        for size in [us.ilog2(), ALL_SIZES] {
            groups.entry((stem(&labels[key]), size)).or_default().push(row);
        }
    }
    groups.into_iter().map(|((stem, size), rows)| (format!("{stem}_{}", size_name(size)), rows)).collect()
}

/// Stands for all sizes, in place of the power of two of one size.
const ALL_SIZES: u32 = u32::MAX;

/// Returns a power of two of a microsecond, with its unit.
fn size_name(power: u32) -> String {
    match power {
        ALL_SIZES => "AVG".to_string(),
        0..10 => format!("{}us", 1 << power),
        10..20 => format!("{}ms", 1 << (power - 10)),
        _ => format!("{}s", 1 << (power - 20)),
    }
}

/// Draws a row, with its name if the number alone does not identify it.
fn draw(key: Key, row: &Row, rows: i64, label: NameId, out: &mut Vec<Span>) {
    let base = match key {
        Key::Cpu(cpu) => Span { cpu: Some(cpu), ..Span::default() },
        Key::Thread(pid) => Span { pid: Some(pid), ..Span::default() },
        Key::Rpc(rpc) => Span { rpc, ..Span::default() },
    };
    row.draw(rows, base, out);
    if matches!(key, Key::Thread(_)) {
        out.push(Span { dur: Time::UNIT, what: What::Point(Point::RowLabel), name: label, ..base });
    }
}
