// SPDX-License-Identifier: BSD-3-Clause
//! Waits of threads, and spans that programs recorded.

use serde::Serialize;

use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Threads;
use crate::event::names::NameId;
use crate::event::point::Point;
use crate::span::what::What;
use crate::span::Span;
use crate::time::Time;

/// All waits for one reason, or spans of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The reason, as on the page: `wait_disk`; or the name, without fields.
    pub name: String,
    /// Number of waits.
    pub count: u64,
    /// Total time.
    pub total: Time,
    /// Longest time.
    pub longest: Time,
    /// Start of the longest.
    pub at: Time,
    /// Thread of the longest.
    pub thread: String,
}

/// Waits by name, or spans of programs, with the longest of each name.
#[derive(Debug, Default)]
pub struct Waits {
    names: HashMap<NameId, (Wait, Span)>,
}

impl Waits {
    /// True if a span is a wait.
    pub fn is_wait(span: &Span) -> bool {
        matches!(span.what(), What::Wait(_))
    }

    /// True if a program recorded the span.
    pub fn is_of_program(span: &Span) -> bool {
        matches!(span.point(), Some(Point::ProgramBegin | Point::ProgramAsyncBegin))
    }

    /// Adds a span.
    pub fn add(&mut self, span: &Span) {
        let (wait, longest) = self.names.entry(span.name).or_default();
        if span.dur > longest.dur || wait.count == 0 {
            *longest = *span;
        }
        wait.count += 1;
        wait.total += span.dur;
    }

    /// Returns the waits by name without fields, largest total first.
    pub fn finish(self, threads: &Threads, names: &[String]) -> Vec<Wait> {
        let mut by_name: BTreeMap<&str, (Wait, Span)> = BTreeMap::new();
        for (id, (wait, span)) in self.names {
            let name = names.get(id.index()).map_or("", String::as_str);
            let (all, longest) = by_name.entry(name.split('(').next().unwrap_or(name)).or_default();
            // Among equal ones the first counts, whatever the order of the names.
            if all.count == 0 || (Reverse(span.dur), span.start) < (Reverse(longest.dur), longest.start) {
                *longest = span;
            }
            all.count += wait.count;
            all.total += wait.total;
        }
        let told = |(name, (wait, longest)): (&str, (Wait, Span))| Wait {
            name: name.to_string(),
            longest: longest.dur,
            at: longest.start,
            thread: longest.pid.map_or_else(|| "?".to_string(), |pid| threads.name(pid)),
            ..wait
        };
        let mut waits: Vec<Wait> = by_name.into_iter().map(told).collect();
        waits.sort_by(|a, b| (Reverse(a.total), &a.name).cmp(&(Reverse(b.total), &b.name)));
        waits
    }
}
