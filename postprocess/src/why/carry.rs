// SPDX-License-Identifier: BSD-3-Clause
//! The requests of a trace for its page, which compares any of them with any others as [`super::compare`] does: the same
//! requests, causes and sums as [`super::explain`] has for the same question.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::best::offered;
use super::cause::Causes;
use super::compare;
use super::path::Part;
use super::request::{find, Ask, Found};
use super::rules::Rules;
use super::sweep::stretches;
use super::{of_requests, Question, Timeline};
use crate::event::point::Point;
use crate::id::{CpuId, Pid};
use crate::span::limit::OF_A_PART;
use crate::span::what::{What, STALLED};
use crate::span::Spans;
use crate::time::Time;

/// Requests, by thread and start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// What was taken for a request, as a sentence.
    pub asked: String,
    /// How many more had begun and not ended.
    pub unfinished: usize,
    /// The causes, by number.
    pub causes: Vec<CauseText>,
    /// Threads that have requests or that causes are about, by number.
    pub threads: BTreeMap<u32, String>,
    /// The slow ones and the normal ones, among all ordered by duration; none if there are too few.
    pub sides: Option<[Range<usize>; 2]>,
    /// Whether that is by their durations without the time in which CPUs stood still, which is told apart.
    pub apart: bool,
    /// What they are compared by.
    pub rules: Rules,
    /// The columns, in the order of [`Column::ALL`].
    pub columns: [Vec<i64>; Column::ALL.len()],
}

/// A cause in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseText {
    /// What sort of cause it is.
    pub kind: String,
    /// The words; or those before the program to blame, the program, and those after it, where one of its threads can
    /// be named in its place.
    pub text: Vec<String>,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Column {
    /// Of each request: its thread.
    Pid,
    /// Its start, as the difference to the one before, 0 before the first.
    Start,
    /// Its duration.
    Dur,
    /// Of each run of requests that overlap, of one thread: the parts of the thread's path from the start of the first
    /// to the end of the last.
    Parts,
    /// Of each part, which begins where the one before it ends, where it ends: with the start of this span, counting
    /// those of its CPU that start after it begins, from one; 0 if that is not where it ends.
    Steps,
    /// Of each of the latter: its duration.
    Length,
    /// Of each part: its cause.
    Cause,
    /// Its CPU plus one, 0 for none.
    Cpu,
    /// The thread to blame plus one, 0 for none but the request's own.
    Culprit,
    /// What was counted meanwhile, of which [`Pace`] tells how fast it was done; 0 for nothing.
    Work,
}

impl Column {
    /// All, in the order they are stored.
    pub const ALL: [Self; 10] = [
        Self::Pid,
        Self::Start,
        Self::Dur,
        Self::Parts,
        Self::Steps,
        Self::Length,
        Self::Cause,
        Self::Cpu,
        Self::Culprit,
        Self::Work,
    ];
}

/// A part that ends with the start of a later span than this says how long it is: a byte holds the others.
const STEPS_MAX: usize = 254;
/// No name of a program has it.
const HOLE: &str = "\0";
const STEAL: What = What::Point(Point::Steal);

/// The requests that a trace offers best, with the causes of their time. None if nothing in the trace is a request, and
/// of spans that were coarsened, which do not say who waited for what.
#[must_use]
pub fn carried(spans: &Spans) -> Option<Requests> {
    if is_coarse(spans) {
        return None;
    }
    let timeline = &Timeline::new(spans);
    let (ask, found) = offered(timeline).ok()?;
    (!matches!(ask, Ask::Range(_))).then(|| of_found(timeline, found))
}

/// The requests that are asked for, with the causes of their time.
///
/// # Errors
/// A sentence, if the trace has none of these, or its spans were coarsened.
pub fn asked(spans: &Spans, ask: &Ask) -> Result<Requests, String> {
    if is_coarse(spans) {
        return Err(
            "no requests: the spans are too many to keep, and merged ones do not say who waited for what".into()
        );
    }
    let timeline = &Timeline::new(spans);
    Ok(of_found(timeline, find(timeline, ask)?))
}

fn is_coarse(spans: &Spans) -> bool {
    spans.meta.quality.iter().any(|fact| fact.contains(OF_A_PART))
}

fn of_found(timeline: &Timeline, Found { asked, mut requests, unfinished }: Found) -> Requests {
    let spans = timeline.spans;
    requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));
    let question = Question::default();
    let ranges = compare::ranges(requests.len(), question.slow, &question.normal);
    let is_apart = || of_requests(timeline, &requests, &question).compared?.apart;
    let mut carried = Requests {
        asked,
        unfinished: unfinished.len(),
        sides: ranges.map(|(slow, normal)| [slow, normal]),
        rules: compare::rules(timeline, requests.len()),
        apart: spans.spans.iter().any(|s| matches!(s.what(), STALLED | STEAL)) && is_apart().is_some(),
        ..Requests::default()
    };
    let mut causes = Causes::default();
    let mut threads: BTreeSet<Pid> = requests.iter().map(|request| request.pid).collect();
    let [pid, start, dur, counts, steps, length, cause, cpu, culprit, work] = &mut carried.columns;
    let mut before = Time::ZERO;
    for request in &requests {
        pid.push(request.pid.into());
        start.push(request.start.0.wrapping_sub(std::mem::replace(&mut before, request.start).0));
        dur.push(request.dur().0);
    }
    stretches(timeline, &mut causes, &requests, |_, _, parts| {
        counts.push(parts.len() as i64);
        for part in parts {
            let step = step_to(spans, part);
            steps.push(step.unwrap_or(0));
            length.extend(step.is_none().then_some((part.end - part.start).0));
            cause.push(part.cause.into());
            cpu.push(CpuId::column(part.cpu) + 1);
            culprit.push(Pid::column(part.culprit) + 1);
            work.push(part.work);
            threads.extend(part.culprit);
        }
    });
    carried.threads = threads.into_iter().map(|pid| (pid.number(), timeline.name(pid))).collect();
    carried.causes = (0..causes.count() as u32).map(|id| in_words(&causes, id, timeline)).collect();
    carried
}

/// With the start of which span of its CPU a part ends, counting those that start after it begins; none if with that of
/// none of the next few.
fn step_to(spans: &Spans, part: &Part) -> Option<i64> {
    let cpu = part.cpu?;
    let after = spans.spans.partition_point(|span| span.start <= part.start);
    let those =
        spans.spans[after..].iter().take_while(|span| span.start <= part.end).filter(|span| span.cpu == Some(cpu));
    let at = those.take(STEPS_MAX).position(|span| span.start == part.end)?;
    Some(at as i64 + 1)
}

/// A cause in words, with the place of its culprit.
fn in_words(causes: &Causes, id: u32, timeline: &Timeline) -> CauseText {
    let (whole, open) = (causes.text(id, timeline, None), causes.text(id, timeline, Some(HOLE)));
    let parts = open.split_once(HOLE).and_then(|(before, after)| {
        // Whatever names a damaged trace has.
        let program = whole.get(before.len()..whole.len().checked_sub(after.len())?)?;
        Some([before, program, after].map(ToString::to_string).to_vec())
    });
    let text = parts.unwrap_or_else(|| vec![whole.clone()]);
    CauseText { kind: compare::word(causes.cause(id).kind), text }
}
