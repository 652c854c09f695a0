// SPDX-License-Identifier: BSD-3-Clause
//! Two traces: whether requests of the second take longer than those of the first, and which causes are responsible.
//!
//! [`mod@change`] decides whether a percentile has changed. The causes come from the requests around that percentile:
//! the mean time of each cause in those of the second trace against that in those of the first. Causes of two traces
//! are the same if their texts are the same; programs appear by name, because threads have other numbers in each
//! recording.
//!
//! Invariant: over the requests around a percentile, the increases of the causes add up to the increase of the mean
//! duration.

use std::ops::Range;

use foldhash::HashMap;
use serde::Serialize;

use super::best::best;
use super::cause::{Causes, Kind};
use super::change::{self, Change, Verdict};
use super::compare::{self, Data, Side, Totals};
use super::detail;
use super::event::Events;
use super::example::{examples, Example};
use super::meter::Meter;
use super::request::{find, Ask, Found, Request};
use super::sweep::{sweep, Sum};
use super::timeline::Timeline;
use crate::time::Time;

/// Difference between two traces. docs/diff.schema.json describes the JSON form.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diff {
    /// Kind of request, as a sentence.
    pub asked: String,
    /// Number of requests in the first trace.
    pub before: usize,
    /// Number of requests in the second trace.
    pub after: usize,
    /// Least relative change that matters.
    pub above: f64,
    /// Largest part of the comparisons of equal traces that finds a difference.
    pub false_alarms: f64,
    /// Change of each percentile that has enough requests.
    pub percentiles: Vec<Change>,
    /// Conclusion: slower if one percentile is.
    pub verdict: Verdict,
    /// Requests around the percentile that has changed most; `None` if none has.
    pub through: Option<Through>,
}

/// Requests around a percentile, in both traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Through {
    /// The percentile, as in [`Change`].
    pub percentile: f64,
    /// Requests of the first trace.
    pub before: Side,
    /// Requests of the second trace.
    pub after: Side,
    /// Mean increase of the duration; negative for a decrease.
    pub excess: f64,
    /// Causes that increased, or that decreased if the duration did; largest first.
    pub causes: Vec<More>,
    /// Number of causes that matter but are not shown.
    pub left_out: usize,
    /// Share of the excess that belongs to no listed cause.
    pub unexplained: f64,
}

/// A cause with more time in the requests of the second trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct More {
    /// 1 for the largest.
    pub rank: usize,
    /// Cause, in words.
    pub cause: String,
    /// Kind of the cause.
    pub kind: Kind,
    /// Program, call or interrupt to blame; empty for none.
    pub culprit: String,
    /// Increase of its mean time per request; negative for a decrease.
    pub time: f64,
    /// The increase as a part of the whole excess.
    pub share: f64,
    /// Number of requests before that have it.
    pub in_before: usize,
    /// Number of requests after that have it.
    pub in_after: usize,
    /// Further details from the second trace.
    pub detail: Vec<String>,
    /// Requests of the second trace with the most time of it.
    pub examples: Vec<Example>,
}

/// A question about two traces.
#[derive(Clone, Debug)]
pub struct Question {
    /// Kind of request.
    pub ask: Ask,
    /// Least relative change that matters.
    pub above: f64,
    /// Number of causes shown.
    pub top: usize,
    /// Page that shows the second trace.
    pub page: String,
}

/// State of the first trace, kept for the comparison.
#[derive(Debug)]
pub struct Before {
    question: Question,
    lines: Lines,
    measured: Measured,
}

impl Before {
    /// Divides the time of the requests of the first trace. If the question names no kind of request, this trace
    /// decides the kind for both.
    ///
    /// # Errors
    /// A sentence, if the trace has no such requests, or too few.
    pub fn new(timeline: &Timeline, question: Question) -> Result<Before, String> {
        let ask = match question.ask {
            Ask::Best => best(timeline)?,
            ask => ask,
        };
        let question = Question { ask, ..question };
        let mut lines = Lines::default();
        let trace = Asked::new(timeline, &question.ask)?;
        let (measured, ..) = trace.measure(&mut lines);
        Ok(Before { question, lines, measured })
    }

    /// Compares the second trace with the first.
    ///
    /// # Errors
    /// A sentence, if the second trace has no such requests, or too few.
    pub fn diff(self, timeline: &Timeline) -> Result<Diff, String> {
        let Before { question, mut lines, measured: before } = self;
        let trace = Asked::new(timeline, &question.ask)?;
        let (after, mut causes, line_of) = trace.measure(&mut lines);
        let percentiles = change::changes(&before.durations, &after.durations, question.above);
        let is = |verdict| percentiles.iter().any(|change| change.verdict == verdict);
        let verdict = [Verdict::Slower, Verdict::Faster].into_iter().find(|verdict| is(*verdict)).unwrap_or_default();
        let changed = percentiles.iter().filter(|change| change.verdict == verdict && verdict != Verdict::Same);
        // A change to a third is as large as one to three times.
        let by = |change: &Change| (1.0 + change.change).ln().abs();
        let most = changed.max_by(|a, b| by(a).total_cmp(&by(b)));
        let through = most.map(|change| {
            let data = Data { timeline, requests: &trace.requests, page: &question.page, top: question.top };
            let around = Around { data, lines: &lines, line_of: &line_of, percentile: change.percentile };
            around.through(&mut causes, &before, &after)
        });
        Ok(Diff {
            asked: before.asked,
            before: before.durations.len(),
            after: after.durations.len(),
            above: question.above,
            false_alarms: change::FALSE_ALARMS,
            percentiles,
            verdict,
            through,
        })
    }
}

/// Causes by their texts.
#[derive(Debug, Default)]
struct Lines {
    list: Vec<Line>,
    numbers: HashMap<String, u32>,
}

#[derive(Debug)]
struct Line {
    text: String,
    kind: Kind,
    culprit: String,
}

impl Lines {
    /// Returns the number of the line that describes a cause.
    fn of(&mut self, timeline: &Timeline, causes: &Causes, cause: u32) -> u32 {
        let text = causes.text(cause, timeline, None);
        *self.numbers.entry(text).or_insert_with_key(|text| {
            let culprit = compare::culprit(timeline, causes, cause, None);
            self.list.push(Line { text: text.clone(), kind: causes.cause(cause).kind, culprit });
            self.list.len() as u32 - 1
        })
    }
}

/// Lines of a trace's causes, by number of cause.
#[derive(Debug, Default)]
struct LineOfCause(Vec<u32>);

impl LineOfCause {
    /// Returns sums by line, given sums by cause.
    fn sums(
        &mut self,
        lines: &mut Lines,
        timeline: &Timeline,
        causes: &Causes,
        sums: &[(u32, Sum)],
    ) -> Vec<(u32, Sum)> {
        for cause in self.0.len()..causes.count() {
            self.0.push(lines.of(timeline, causes, cause as u32));
        }
        let mut by_line: Vec<(u32, Sum)> = Vec::with_capacity(sums.len());
        for (cause, sum) in sums {
            let line = self.0[*cause as usize];
            match by_line.iter_mut().find(|(its, _)| *its == line) {
                Some((_, all)) => *all += *sum,
                None => by_line.push((line, *sum)),
            }
        }
        by_line
    }

    /// Returns the causes that a line describes.
    fn causes(&self, line: u32) -> Vec<u32> {
        (0..).zip(&self.0).filter(|(_, its)| **its == line).map(|(cause, _)| cause).collect()
    }
}

/// A trace with its requests.
struct Asked<'a> {
    timeline: &'a Timeline<'a>,
    asked: String,
    /// Ordered by thread and start.
    requests: Vec<Request>,
}

/// Requests of a trace.
#[derive(Debug)]
struct Measured {
    asked: String,
    /// Durations in the order of the requests' starts.
    durations: Vec<i64>,
    /// Time of each line in the requests around each percentile.
    around: Vec<Totals>,
    /// Quantity that the trace counts.
    meter: Meter,
}

impl<'a> Asked<'a> {
    fn new(timeline: &'a Timeline<'a>, ask: &Ask) -> Result<Asked<'a>, String> {
        let Found { asked, mut requests, .. } = find(timeline, ask)?;
        if requests.len() < change::FEWEST {
            let (count, fewest) = (requests.len(), change::FEWEST);
            return Err(format!("too few requests to compare: {count}, at least {fewest} are needed; {asked}"));
        }
        requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));
        Ok(Asked { timeline, asked, requests })
    }

    fn measure(&self, lines: &mut Lines) -> (Measured, Causes, LineOfCause) {
        let count = self.requests.len();
        let mut around = vec![0_u8; count];
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by_key(|&n| self.requests[n as usize].dur());
        for (n, part) in change::PERCENTILES.into_iter().enumerate() {
            order[ranks(count, part)].iter().for_each(|&request| around[request as usize] |= 1 << n);
        }
        let mut causes = Causes::default();
        let mut line_of = LineOfCause::default();
        let mut totals = vec![Totals::default(); change::PERCENTILES.len()];
        sweep(self.timeline, &mut causes, &self.requests, |causes, n, sums| {
            if around[n] != 0 {
                let sums = line_of.sums(lines, self.timeline, causes, sums);
                let of = totals.iter_mut().enumerate().filter(|(part, _)| around[n] >> part & 1 == 1);
                of.for_each(|(_, totals)| totals.add(self.requests[n].dur(), &sums));
            }
        });
        order.sort_by_key(|&n| self.requests[n as usize].start);
        let durations = order.iter().map(|&n| self.requests[n as usize].dur().0).collect();
        (Measured { asked: self.asked.clone(), durations, around: totals, meter: self.timeline.meter }, causes, line_of)
    }
}

/// Returns the range of requests, ordered by duration, around a percentile: a fifth of all around the median, else as
/// much as lies between the percentile and the longest, half of it on each side.
fn ranks(count: usize, part: f64) -> Range<usize> {
    let half = ((1.0 - part) / 2.0).min(0.1);
    let at = |part: f64| (count as f64 * part).round() as usize;
    let first = at(part - half).min(count - 1);
    first..at(part + half).clamp(first + 1, count)
}

/// The requests of the second trace around a percentile.
struct Around<'a> {
    data: Data<'a>,
    lines: &'a Lines,
    line_of: &'a LineOfCause,
    percentile: f64,
}

impl Around<'_> {
    fn through(&self, causes: &mut Causes, before: &Measured, after: &Measured) -> Through {
        let n = change::PERCENTILES.iter().position(|part| *part == self.percentile).unwrap_or_default();
        // Paces are comparable only if both traces count the same quantity.
        let pace = Some(after.meter).filter(|meter| *meter == before.meter).unwrap_or_default().pace();
        let (before, after) = (&before.around[n], &after.around[n]);
        let (before_side, after_side) = (before.side(), after.side());
        let excess = after_side.mean - before_side.mean;
        let mut list = compare::ranked(after, before, &pace);
        let left_out = list.len().saturating_sub(self.data.top);
        list.truncate(self.data.top);
        let sums = self.sums(causes);
        let numbers: Vec<u32> = sums.iter().map(|(number, _)| *number).collect();
        let wanted: Vec<Vec<u32>> = list.iter().map(|(line, ..)| self.line_of.causes(*line)).collect();
        let details = detail::of(&self.data, causes, &numbers, &wanted);
        let told = (1..).zip(list).zip(details).map(|((rank, (line, paces, time)), mut notes)| {
            let (its, was) = (after.of(line), before.of(line));
            let Line { text, kind, culprit } = &self.lines.list[line as usize];
            if its.parts.max(was.parts) >= 2.0 && (its.parts - was.parts).abs() >= 0.5 * was.parts.max(2.0) {
                notes.insert(0, format!("{:.1} per request, {:.1} before", its.parts, was.parts));
            }
            More {
                rank,
                cause: compare::with_pace(text.clone(), paces, &pace),
                kind: *kind,
                culprit: culprit.clone(),
                time,
                share: time / excess,
                in_before: was.requests,
                in_after: its.requests,
                detail: notes,
                examples: examples(&self.data, &sums, line, &Events::default()),
            }
        });
        let causes: Vec<More> = told.collect();
        let unexplained = 1.0 - causes.iter().map(|cause| cause.share).sum::<f64>();
        let (before, after) = (before_side, after_side);
        Through { percentile: self.percentile, before, after, excess, causes, left_out, unexplained }
    }

    /// Returns the numbers of the requests, and the time of each line in each of them.
    fn sums(&self, causes: &mut Causes) -> Vec<(u32, Vec<(u32, Time)>)> {
        let requests = self.data.requests;
        let mut numbers: Vec<u32> = (0..requests.len() as u32).collect();
        numbers.sort_by_key(|&n| requests[n as usize].dur());
        numbers = numbers[ranks(requests.len(), self.percentile)].to_vec();
        numbers.sort_unstable();
        let these: Vec<Request> = numbers.iter().map(|&n| requests[n as usize]).collect();
        let mut sums = Vec::new();
        sweep(self.data.timeline, causes, &these, |_, n, its| {
            let by_line = its.iter().map(|(cause, sum)| (self.line_of.0[*cause as usize], sum.time)).collect();
            sums.push((numbers[n], by_line));
        });
        sums
    }
}
