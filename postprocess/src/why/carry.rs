// SPDX-License-Identifier: BSD-3-Clause
//! The requests of a trace for its page, which compares any of them with any others as [`super::compare`] does: the same
//! requests, causes and sums as [`super::explain`] has for the default question.

use std::collections::BTreeSet;

use super::best::offered;
use super::cause::Causes;
use super::compare;
use super::path::Part;
use super::request::{Ask, Found};
use super::sweep::stretches;
use super::{of_requests, Question, Timeline};
use crate::event::point::Point;
use crate::id::{CpuId, Pid};
use crate::sink::page::requests::CauseText;
use crate::sink::page::Requests;
use crate::span::limit::OF_A_PART;
use crate::span::what::{What, STALLED};
use crate::span::Spans;
use crate::time::Time;

/// A part that ends with the start of a later span than this says how long it is: a byte holds the others.
const STEPS_MAX: usize = 254;
/// No name of a program has it.
const HOLE: &str = "\0";
const STEAL: What = What::Point(Point::Steal);

/// The requests that a trace offers best, with the causes of their time. None if nothing in the trace is a request, and
/// of spans that were coarsened, which do not say who waited for what.
#[must_use]
pub fn carried(spans: &Spans) -> Option<Requests> {
    if spans.meta.quality.iter().any(|fact| fact.contains(OF_A_PART)) {
        return None;
    }
    let timeline = &Timeline::new(spans);
    let (ask, Found { asked, mut requests, unfinished }) = offered(timeline).ok()?;
    if matches!(ask, Ask::Range(_)) {
        return None;
    }
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
    Some(carried)
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
