// SPDX-License-Identifier: BSD-3-Clause
//! Verdict: whether a raw trace is whole, and whether what it says can be true.

use std::fmt;

use crate::event::number::{class, Class, Level, OPEN_CALL};
use crate::event::{Event, Meta};
use crate::raw::{self, damage::NotATrace};
use crate::span::{self, check, Tally};

/// What is to be thought of a raw trace, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Whole and sound.
    Pass,
    /// Events were lost while recording, or others say that they are missing; what is there is sound.
    Incomplete,
    /// Damaged, or what it says cannot be true.
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "PASS",
            Self::Incomplete => "INCOMPLETE",
            Self::Fail => "FAIL",
        })
    }
}

/// A fact about the trace, and the best verdict it leaves possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// [`Verdict::Pass`] for a fact that is no fault.
    pub verdict: Verdict,
    /// The fact, a sentence.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grade = match self.verdict {
            Verdict::Pass => "info",
            Verdict::Incomplete => "warn",
            Verdict::Fail => "FAIL",
        };
        write!(f, "{grade}  {}", self.text)
    }
}

/// Decodes a raw trace, builds its spans, and says what is wrong with either.
///
/// # Errors
/// If `bytes` are no raw trace.
pub fn judge(bytes: &[u8]) -> Result<Vec<Finding>, NotATrace> {
    let events = raw::decode(bytes)?;
    let meta = events.meta.clone();
    let mut found: Vec<Finding> = contents(&events.events, &meta).map(info).into();
    let (spans, tally) = span::build(events);
    found.push(info(shares(&tally)));
    found.extend(meta.quality.iter().cloned().map(|text| Finding { verdict: Verdict::Fail, text }));
    // The original does not record every return.
    let of_repairs = if meta.format >= 5 { Verdict::Incomplete } else { Verdict::Pass };
    let counted = [
        (Verdict::Incomplete, meta.lost, "events were lost while recording"),
        (of_repairs, tally.repairs, "calls, returns or switches are missing and were supplied"),
        (Verdict::Fail, tally.unknown, "events have a number or a CPU that cannot be"),
        (Verdict::Fail, tally.late, "events are earlier than what came before them on their CPU"),
    ];
    let counted = counted.into_iter().filter(|c| c.1 > 0);
    found.extend(counted.map(|(verdict, n, what)| Finding { verdict, text: format!("{n} {what}") }));
    let violations = check(&spans, &meta.intervals, &tally).into_iter();
    found.extend(violations.map(|text| Finding { verdict: Verdict::Fail, text }));
    Ok(found)
}

/// The verdict that all findings together leave possible.
pub fn verdict(found: &[Finding]) -> Verdict {
    found.iter().map(|f| f.verdict).max().unwrap_or(Verdict::Pass)
}

fn info(text: String) -> Finding {
    Finding { verdict: Verdict::Pass, text }
}

/// What the trace holds: its extent, and how many of which events.
fn contents(events: &[Event], meta: &Meta) -> [String; 2] {
    let count = |wanted: fn(Class) -> bool| events.iter().filter(|e| wanted(class(e.event))).count();
    let names = events.iter().filter(|e| class(e.event) == Class::Name && e.event != OPEN_CALL).count();
    let cpus = meta.intervals.len();
    let from = meta.intervals.iter().map(|i| i.from).min().unwrap_or_default();
    let to = meta.intervals.iter().map(|i| i.to).max().unwrap_or_default();
    let (format, seconds) = (meta.format, (to - from) as f64 / 1e8);
    let calls = count(|c| c == Class::Call(Level::Syscall));
    let traps = count(|c| c == Class::Call(Level::Trap));
    let irqs = count(|c| matches!(c, Class::Call(Level::Irq | Level::Softirq)));
    let (switches, points) = (count(|c| c == Class::Switch), count(|c| c == Class::Point));
    [
        format!("format {format}, {cpus} CPUs, {seconds:.6} s, {} events, {names} names", events.len() - names),
        format!("{calls} system calls, {traps} faults, {irqs} interrupts, {switches} switches, {points} points"),
    ]
}

/// How the CPUs' time divides.
fn shares(tally: &Tally) -> String {
    let all = (tally.user + tally.system + tally.idle + tally.lost).max(1) as f64;
    let [user, system, idle, lost] =
        [tally.user, tally.system, tally.idle, tally.lost].map(|part| part as f64 * 100.0 / all);
    format!("{user:.1}% user, {system:.1}% kernel, {idle:.1}% idle, {lost:.1}% lost; {} wakeups", tally.wakeups)
}
