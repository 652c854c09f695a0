// SPDX-License-Identifier: BSD-3-Clause
//! Profiles: where the time of each row went, as bars that start at 0 and hold one span for each thing done.
//!
//! A row is a CPU, a thread, or an RPC. Its bar holds execution and waits: what ran, most time first, then waits, then
//! idle. Program counter samples and held locks lie over that time, so they have bars of their own on the same row.
//!
//! In a profile [`Span::arg`] is the number of spans added up, except of idle; and a row's other numbers are -1.

mod row;

use std::collections::BTreeMap;

use super::{json, Span, Spans};
use crate::event::names::Names;
use crate::event::number;
use row::{Bar, Row};

/// Which rows a profile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Those of the trace.
    Each,
    /// Averages of rows with the same name up to the last dot, `name_AVG (rows)`; and of those among them whose time
    /// from first to last is about the same, `name_64us (rows)`. An average is of this many rows or more.
    Groups(usize),
}

/// The thread number of the first row of groups.
const FIRST_GROUP: i32 = 0x20000;

/// A row of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Cpu(i32),
    Thread(i32),
    Rpc(i32),
}

/// Replaces `spans` by their profile. Durations of an average are rounded down.
pub fn profile(spans: &mut Spans, rows: Rows) {
    let mut names = Names::default();
    let each = add_up(spans, &mut names);
    let labels = name_rows(spans, &each);
    let mut out = Vec::new();
    match rows {
        Rows::Each => {
            for (&key, row) in &each {
                let label = names.id(&labels[&key]);
                draw(key, row, 1, label, &mut out);
            }
        }
        Rows::Groups(least) => {
            let groups = group(&each, &labels).into_iter().filter(|(_, rows)| rows.len() >= least);
            for (pid, (name, rows)) in (FIRST_GROUP..).zip(groups) {
                let mut sum = Row::default();
                rows.iter().for_each(|row| sum.merge(row, &mut names));
                let label = names.id(&format!("{name} ({})", rows.len()));
                draw(Key::Thread(pid), &sum, rows.len() as i64, label, &mut out);
            }
        }
    }
    json::order(&mut out);
    (spans.names, spans.spans) = (names.into_texts(), out);
}

/// The rows of a trace.
fn add_up(spans: &Spans, names: &mut Names) -> BTreeMap<Key, Row> {
    let ids: Vec<u32> = spans.names.iter().map(|n| names.id(n)).collect();
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    for span in &spans.spans {
        let Some(bar) = Bar::of(span.event) else { continue };
        let name = ids.get(span.name as usize).copied().unwrap_or_default();
        let keys = [
            (span.cpu >= 0).then_some(Key::Cpu(span.cpu)),
            (span.pid > 0).then_some(Key::Thread(span.pid)),
            (span.rpc > 0).then_some(Key::Rpc(span.rpc)),
        ];
        for key in keys.into_iter().flatten() {
            rows.entry(key).or_default().add(bar, span, name);
        }
    }
    rows
}

/// The rows' names: of a thread its label, or else the name of its user code; of an RPC that of its first point.
fn name_rows(spans: &Spans, rows: &BTreeMap<Key, Row>) -> BTreeMap<Key, String> {
    let mut labels: BTreeMap<Key, String> = BTreeMap::new();
    for span in &spans.spans {
        let Some(name) = spans.names.get(span.name as usize) else { continue };
        match span.event as u32 {
            number::ROW_LABEL => drop(labels.insert(Key::Thread(span.pid), name.clone())),
            number::RPC_REQUEST..=number::RPC_MIDDLE => {
                labels.entry(Key::Rpc(span.rpc)).or_insert_with(|| name.clone());
            }
            number::USER_FIRST..number::IDLE_EXIT => {
                labels.entry(Key::Thread(span.pid)).or_insert_with(|| name.clone());
            }
            _ => {}
        }
    }
    for &key in rows.keys() {
        labels.entry(key).or_insert_with(|| match key {
            Key::Cpu(cpu) => format!("cpu.{cpu}"),
            Key::Thread(pid) => format!("pid.{pid}"),
            Key::Rpc(rpc) => format!("rpc.{rpc}"),
        });
    }
    labels
}

/// A name up to its last dot.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The rows of each group, by its name.
fn group<'a>(rows: &'a BTreeMap<Key, Row>, labels: &BTreeMap<Key, String>) -> Vec<(String, Vec<&'a Row>)> {
    let mut groups: BTreeMap<(&str, u32), Vec<&Row>> = BTreeMap::new();
    for (key, row) in rows {
        let (from, to) = row.extent.unwrap_or_default();
        let us = (to.saturating_sub(from) / 100).clamp(1, 1 << 23);
        for size in [us.ilog2(), ALL_SIZES] {
            groups.entry((stem(&labels[key]), size)).or_default().push(row);
        }
    }
    groups.into_iter().map(|((stem, size), rows)| (format!("{stem}_{}", size_name(size)), rows)).collect()
}

/// In place of the power of two of a size.
const ALL_SIZES: u32 = u32::MAX;

/// A power of two of a microsecond, with its unit.
fn size_name(power: u32) -> String {
    match power {
        ALL_SIZES => "AVG".to_string(),
        0..10 => format!("{}us", 1 << power),
        10..20 => format!("{}ms", 1 << (power - 10)),
        _ => format!("{}s", 1 << (power - 20)),
    }
}

/// Draws a row, and says what it is called where the number alone would not.
fn draw(key: Key, row: &Row, rows: i64, label: u32, out: &mut Vec<Span>) {
    let nobody = Span { cpu: -1, pid: -1, ..Span::default() };
    let base = match key {
        Key::Cpu(cpu) => Span { cpu, ..nobody },
        Key::Thread(pid) => Span { pid, ..nobody },
        Key::Rpc(rpc) => Span { rpc, ..nobody },
    };
    row.draw(rows, base, out);
    if matches!(key, Key::Thread(_)) {
        out.push(Span { dur: 1, event: number::ROW_LABEL as i32, name: label, ..base });
    }
}
