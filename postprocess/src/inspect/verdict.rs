// SPDX-License-Identifier: BSD-3-Clause
//! Verdict: checks that a raw trace is complete, and that its contents can be true.

mod idle;

use std::fmt;

use kutrace_format::capability::{Capability, Unseen};

use crate::event::names::Names;
use crate::event::number::Level;
use crate::event::what::What;
use crate::event::{Event, Meta};
use crate::raw::damage::NotATrace;
use crate::readable::count;
use crate::source;
use crate::span::build::Builder;
use crate::span::check::Check;
use crate::span::{stall, steal};
use crate::span::{Span, Tally};
use idle::Comparison;

/// Number of spans checked at a time.
const WRITTEN_MAX: usize = 1 << 14;

/// Verdict on a raw trace, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Complete and sound.
    Pass,
    /// Events were lost while recording, or other events show that some are missing; the contents are sound.
    Incomplete,
    /// Damaged, or its contents cannot be true.
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
    /// [`Verdict::Pass`] for a fact that is not a fault.
    pub verdict: Verdict,
    /// The fact, as a sentence.
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

/// Decodes a raw trace, builds its spans, and reports what is wrong with either. Events and spans are checked as they
/// come, and not kept.
///
/// # Errors
/// If `bytes` are not a raw trace.
pub fn judge(bytes: &[u8]) -> Result<Vec<Finding>, NotATrace> {
    let (trace, mut names) = (source::trace(bytes)?, Names::default());
    let mut decoder = trace.decoder(&mut names);
    let mut builder = Builder::new(&decoder.meta(), names);
    let (mut contents, mut check) = (Contents::default(), Check::default());
    let mut idle = Comparison::new(trace.idle());
    let mut look = |span: &Span| {
        check.span(span);
        idle.span(span);
    };
    while let Some(event) = decoder.next(&mut builder.names) {
        contents.count(&event);
        builder.push(&event);
        if builder.written().len() > WRITTEN_MAX {
            builder.take().iter().for_each(&mut look);
        }
    }
    let meta = decoder.meta();
    let (spans, tally) = builder.finish(meta.clone());
    spans.spans.iter().for_each(&mut look);
    let unseen = meta.unseen();
    let mut found = vec![info(extent(&contents, &meta)), info(contents.text(unseen)), info(shares(&tally, unseen))];
    found.extend(meta.unseen().texts().map(|text| info(format!("cannot show {text}"))));
    found.extend(stall::sentence(tally.stalls, tally.stalled).map(info));
    found.extend(steal::sentence(tally.steals, tally.stolen).map(info));
    found.extend(meta.counted.iter().cloned().map(info));
    found.extend(idle.finish(&meta).into_iter().map(info));
    let notes = [trace.notes(), decoder.notes()].concat();
    found.extend(meta.quality.iter().cloned().map(|text| {
        let verdict = if notes.contains(&text) { Verdict::Incomplete } else { Verdict::Fail };
        Finding { verdict, text }
    }));
    let seen = !meta.unseen().has(Capability::Returns);
    let of_repairs = if seen { Verdict::Incomplete } else { Verdict::Pass };
    let first = tally.first.map_or_else(String::new, |first| first.text(&spans.names));
    let repair = |what| format!("{what} missing and supplied; the first: {first}");
    let repairs = [repair("call, return or switch was"), repair("calls, returns or switches were")];
    let counted = [
        (Verdict::Incomplete, meta.lost, ["event was lost while recording", "events were lost while recording"]),
        (of_repairs, tally.repairs, repairs.each_ref().map(String::as_str)),
        (
            Verdict::Fail,
            tally.unknown,
            ["event has an impossible number or CPU", "events have an impossible number or CPU"],
        ),
        (
            Verdict::Fail,
            tally.late,
            [
                "event is earlier than the one before it on its CPU",
                "events are earlier than the one before them on their CPU",
            ],
        ),
    ];
    let counted = counted.into_iter().filter(|c| c.1 > 0);
    found.extend(counted.map(|(verdict, n, [one, many])| Finding { verdict, text: count(n, one, many) }));
    let violations = check.finish(&meta.intervals, &tally).into_iter();
    found.extend(violations.map(|text| Finding { verdict: Verdict::Fail, text }));
    Ok(found)
}

/// Returns the best verdict that all findings together leave possible.
pub fn verdict(found: &[Finding]) -> Verdict {
    found.iter().map(|f| f.verdict).max().unwrap_or(Verdict::Pass)
}

fn info(text: String) -> Finding {
    Finding { verdict: Verdict::Pass, text }
}

/// Numbers of events in a trace, by kind.
#[derive(Debug, Default)]
struct Contents {
    names: usize,
    events: usize,
    calls: usize,
    traps: usize,
    irqs: usize,
    switches: usize,
    points: usize,
}

impl Contents {
    fn count(&mut self, event: &Event) {
        if !event.what.is_event() {
            self.names += 1;
            return;
        }
        self.events += 1;
        match event.what {
            What::Call(work) => match work.level() {
                Level::Syscall => self.calls += 1,
                Level::Trap => self.traps += 1,
                Level::Irq | Level::Softirq => self.irqs += 1,
                Level::Sched | Level::User => {}
            },
            What::Switch => self.switches += 1,
            What::Point(_) => self.points += 1,
            _ => {}
        }
    }
}

impl Contents {
    /// Describes the numbers, except for kinds without events that the source cannot see.
    fn text(&self, unseen: Unseen) -> String {
        let Contents { calls, traps, irqs, switches, points, .. } = *self;
        let counts = [
            (calls, "system call", "system calls", None),
            (traps, "fault", "faults", Some(Capability::Faults)),
            (irqs, "interrupt", "interrupts", Some(Capability::Interrupts)),
            (switches, "switch", "switches", None),
            (points, "point", "points", None),
        ];
        let told = counts.into_iter().filter(|c| c.0 > 0 || c.3.is_none_or(|capability| !unseen.has(capability)));
        told.map(|(number, one, many, _)| count(number as u64, one, many)).collect::<Vec<_>>().join(", ")
    }
}

fn extent(contents: &Contents, meta: &Meta) -> String {
    let from = meta.intervals.iter().map(|i| i.from).min().unwrap_or_default();
    let to = meta.intervals.iter().map(|i| i.to).max().unwrap_or_default();
    let (format, seconds) = (meta.format, (to - from).seconds());
    let [cpus, events, names] = [
        (meta.intervals.len(), "CPU", "CPUs"),
        (contents.events, "event", "events"),
        (contents.names, "name", "names"),
    ]
    .map(|(number, one, many)| count(number as u64, one, many));
    format!("format {format}, {cpus}, {seconds:.6} s, {events}, {names}")
}

/// Describes the division of the CPUs' time, as far as the source can see it.
fn shares(tally: &Tally, unseen: Unseen) -> String {
    let all = (tally.user + tally.system + tally.idle + tally.lost + tally.stalled).0.max(1) as f64;
    let parts = [
        (tally.user, "user", None),
        (tally.system, "kernel", None),
        (tally.idle, "idle", Some(Capability::Idle)),
        (tally.lost, "lost", Some(Capability::Losses)),
    ];
    let told = |amount: i64, seen_by: Option<Capability>| amount > 0 || seen_by.is_none_or(|one| !unseen.has(one));
    let parts = parts.into_iter().filter(|&(part, _, seen_by)| told(part.0, seen_by));
    let parts: Vec<String> =
        parts.map(|(part, what, _)| format!("{:.1}% {what}", part.0 as f64 * 100.0 / all)).collect();
    let mut text = parts.join(", ");
    if told(tally.wakeups as i64, Some(Capability::Wakeups)) {
        text += &format!("; {}", count(tally.wakeups, "wakeup", "wakeups"));
    }
    text
}
