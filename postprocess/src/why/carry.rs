// SPDX-License-Identifier: BSD-3-Clause
//! The requests of a trace for its page, which compares any of them with any others as [`super::compare`] does: the same
//! requests, causes and sums as [`super::explain`] has for the default question.

use std::collections::{BTreeMap, BTreeSet};

use super::best::best;
use super::cause::Causes;
use super::compare;
use super::request::Ask;
use super::sweep::stretches;
use super::{Question, Timeline};
use crate::id::{CpuId, Pid};
use crate::sink::page::requests::CauseText;
use crate::sink::page::Requests;
use crate::span::limit::OF_A_PART;
use crate::span::Spans;
use crate::time::Time;

/// No name of a program has it.
const HOLE: &str = "\0";

/// The requests that a trace offers best, with the causes of their time. None if nothing in the trace is a request, and
/// of spans that were coarsened, which do not say who waited for what.
#[must_use]
pub fn carried(spans: &Spans) -> Option<Requests> {
    if spans.meta.quality.iter().any(|fact| fact.contains(OF_A_PART)) {
        return None;
    }
    let timeline = &Timeline::new(spans);
    let (ask, mut requests) = best(spans, timeline).ok()?;
    if matches!(ask, Ask::Range(_)) {
        return None;
    }
    requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));
    let question = Question::default();
    let ranges = compare::ranges(requests.len(), question.slow, &question.normal);
    let mut carried = Requests {
        asked: ask.what(timeline),
        sides: ranges.map(|(slow, normal)| [slow, normal]),
        ..Requests::default()
    };
    let mut causes = Causes::default();
    let mut threads: BTreeSet<Pid> = requests.iter().map(|request| request.pid).collect();
    let [pid, start, dur, counts, length, cause, cpu, culprit, work] = &mut carried.columns;
    let mut before = Time::ZERO;
    for request in &requests {
        pid.push(request.pid.into());
        start.push((request.start - std::mem::replace(&mut before, request.start)).0);
        dur.push(request.dur().0);
    }
    stretches(timeline, &mut causes, &requests, |_, _, parts| {
        counts.push(parts.len() as i64);
        for part in parts {
            length.push((part.end - part.start).0);
            cause.push(part.cause.into());
            cpu.push(CpuId::column(part.cpu) + 1);
            culprit.push(Pid::column(part.culprit) + 1);
            work.push(part.work);
            threads.extend(part.culprit);
        }
    });
    let names: BTreeMap<u32, String> = threads.into_iter().map(|pid| (pid.number(), timeline.name(pid))).collect();
    carried.threads = names;
    carried.causes = (0..causes.count() as u32).map(|id| in_words(&causes, id, timeline)).collect();
    Some(carried)
}

/// A cause in words, with the place of its culprit.
fn in_words(causes: &Causes, id: u32, timeline: &Timeline) -> CauseText {
    let (whole, open) = (causes.text(id, timeline, None), causes.text(id, timeline, Some(HOLE)));
    let text = match open.split_once(HOLE) {
        None => vec![whole],
        Some((before, after)) => {
            let program = whole[before.len()..whole.len() - after.len()].to_string();
            vec![before.to_string(), program, after.to_string()]
        }
    };
    // Its name is one word.
    CauseText { kind: format!("{:?}", causes.cause(id).kind).to_lowercase(), text }
}
