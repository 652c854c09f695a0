// SPDX-License-Identifier: BSD-3-Clause
//! What threads waited for.

use serde::Serialize;

use foldhash::HashMap;
use std::cmp::Reverse;

use super::Threads;
use crate::event::names::NameId;
use crate::span::what::What;
use crate::span::Span;
use crate::time::Time;

/// All waits for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The reason, as on the page: `wait_disk`.
    pub name: String,
    /// How often.
    pub count: u64,
    /// For how long altogether.
    pub total: Time,
    /// The longest.
    pub longest: Time,
    /// When that began.
    pub at: Time,
    /// Who waited so long.
    pub thread: String,
}

/// Waits by name, with the longest of each.
#[derive(Debug, Default)]
pub struct Waits {
    reasons: HashMap<NameId, (Wait, Span)>,
}

impl Waits {
    /// Adds a span, if it is a wait.
    pub fn add(&mut self, span: &Span) {
        let What::Wait(_) = span.what() else { return };
        let (wait, longest) = self.reasons.entry(span.name).or_default();
        if span.dur > longest.dur || wait.count == 0 {
            *longest = *span;
        }
        wait.count += 1;
        wait.total += span.dur;
    }

    /// Waits by reason, longest altogether first.
    pub fn finish(self, threads: &Threads, names: &[String]) -> Vec<Wait> {
        let told = |(wait, longest): (Wait, Span)| Wait {
            name: names.get(longest.name.index()).cloned().unwrap_or_default(),
            longest: longest.dur,
            at: longest.start,
            thread: longest.pid.map_or_else(|| "?".to_string(), |pid| threads.name(pid)),
            ..wait
        };
        let mut waits: Vec<Wait> = self.reasons.into_values().map(told).collect();
        waits.sort_by(|a, b| (Reverse(a.total), &a.name).cmp(&(Reverse(b.total), &b.name)));
        waits
    }
}
