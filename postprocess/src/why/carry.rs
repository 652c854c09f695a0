// SPDX-License-Identifier: BSD-3-Clause
//! The requests of a trace, stored for its page. The page compares any of them with any others as [`super::compare`]
//! does, with the same requests, causes and sums as [`super::explain`] finds for the same question.

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
    /// Kind of request, as a sentence.
    pub asked: String,
    /// Number of further requests that had started but not ended.
    pub unfinished: usize,
    /// Causes, by number.
    pub causes: Vec<CauseText>,
    /// Threads that have requests or that causes mention, by number.
    pub threads: BTreeMap<u32, String>,
    /// Slow and normal requests, as ranges among all ordered by duration; `None` if there are too few.
    pub sides: Option<[Range<usize>; 2]>,
    /// True if the order ignores the time in which CPUs stood still, which is then reported separately.
    pub apart: bool,
    /// Rules of the comparison.
    pub rules: Rules,
    /// Columns, in the order of [`Column::ALL`].
    pub columns: [Vec<i64>; Column::ALL.len()],
}

/// A cause in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseText {
    /// Kind of the cause, in one word.
    pub kind: String,
    /// The words. If one thread of the program to blame can be named in its place: the words before the program, the
    /// program, and the words after it.
    pub text: Vec<String>,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Column {
    /// Thread of each request.
    Pid,
    /// Start of each request, as the difference from the one before, or from 0 for the first.
    Start,
    /// Duration of each request.
    Dur,
    /// Number of parts for each run of overlapping requests of one thread: the parts of the thread's path from the
    /// start of the first to the end of the last.
    Parts,
    /// End of each part, which begins where the one before it ends: the count of spans of its CPU, from one, that start
    /// after the part begins, up to the span at whose start it ends; 0 if it does not end with one.
    Steps,
    /// Duration of each part with step 0.
    Length,
    /// Cause of each part.
    Cause,
    /// CPU of each part plus one; 0 for none.
    Cpu,
    /// Thread to blame plus one; 0 for none but the request's own.
    Culprit,
    /// Amount counted in the part, whose speed [`Pace`](super::rules::Pace) gives; 0 if nothing was counted.
    Work,
}

impl Column {
    /// All columns, in storage order.
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

/// Largest step that is stored, so that a byte holds it; parts that need a larger one store their duration.
const STEPS_MAX: usize = 254;
/// Character that no program's name contains.
const HOLE: &str = "\0";
const STEAL: What = What::Point(Point::Steal);

/// Returns the requests of the kind that suits the trace best, with the causes of their time. `None` if nothing in the
/// trace is a request, or if the spans were coarsened, as those do not record who waited for what.
#[must_use]
pub fn carried(spans: &Spans) -> Option<Requests> {
    if is_coarse(spans) {
        return None;
    }
    let timeline = &Timeline::new(spans);
    let (ask, found) = offered(timeline).ok()?;
    (!matches!(ask, Ask::Range(_))).then(|| of_found(timeline, found))
}

/// Returns the requests of the given kind, with the causes of their time.
///
/// # Errors
/// A sentence, if the trace has no such requests, or its spans were coarsened.
pub fn asked(spans: &Spans, ask: &Ask) -> Result<Requests, String> {
    if is_coarse(spans) {
        return Err(
            "no requests: the trace has too many spans, and merged ones do not record who waited for what".into()
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

/// Returns the count of spans of the part's CPU, from the first that starts after the part begins, up to the one at
/// whose start the part ends; `None` if it does not end at one of the next few.
fn step_to(spans: &Spans, part: &Part) -> Option<i64> {
    let cpu = part.cpu?;
    let after = spans.spans.partition_point(|span| span.start <= part.start);
    let those =
        spans.spans[after..].iter().take_while(|span| span.start <= part.end).filter(|span| span.cpu == Some(cpu));
    let at = those.take(STEPS_MAX).position(|span| span.start == part.end)?;
    Some(at as i64 + 1)
}

/// Returns a cause in words, with the place of its culprit.
fn in_words(causes: &Causes, id: u32, timeline: &Timeline) -> CauseText {
    let (whole, open) = (causes.text(id, timeline, None), causes.text(id, timeline, Some(HOLE)));
    let parts = open.split_once(HOLE).and_then(|(before, after)| {
        // A damaged trace may have any names.
        let program = whole.get(before.len()..whole.len().checked_sub(after.len())?)?;
        Some([before, program, after].map(ToString::to_string).to_vec())
    });
    let text = parts.unwrap_or_else(|| vec![whole.clone()]);
    CauseText { kind: compare::word(causes.cause(id).kind), text }
}
