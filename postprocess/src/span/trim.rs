// SPDX-License-Identifier: BSD-3-Clause
//! A part of a trace: the spans of a range of time, cut at its edges.
//!
//! Invariant: spans that covered the whole trace cover the range.

use std::collections::HashSet;

use super::order::order;
use super::what::What;
use super::{Span, Spans};
use crate::event::point::Point;
use crate::id::Pid;
use crate::time::Time;

/// A range of time, relative to the trace's base minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First moment.
    pub from: Time,
    /// The moment after the last.
    pub to: Time,
}

/// The range from the first mark with this text to the end of the mark `/text` after it, or to the end of the trace if
/// there is none; `None` if no mark has this text. Case is ignored.
pub fn labelled(spans: &Spans, text: &str) -> Option<Range> {
    let text = text.to_lowercase();
    let is = |s: &&Span, wanted: &str| label(spans, s).is_some_and(|l| l.to_lowercase() == wanted);
    let mut rest = spans.spans.iter();
    let from = rest.find(|s| is(s, &text))?.start;
    let to = rest.find(|s| is(s, &format!("/{text}"))).map_or(Time::MAX, |s| s.start.saturating_add(s.dur));
    Some(Range { from, to })
}

/// The text of a mark a, b or c, as in `mark_a=text`.
pub fn label<'a>(spans: &'a Spans, span: &Span) -> Option<&'a str> {
    let is_text = span.point().is_some_and(Point::is_text_mark);
    spans.names.get(span.name.index()).filter(|_| is_text)?.split_once('=').map(|(_, text)| text)
}

/// Keeps the spans in `range`, and cuts those that are open at its edges. Labels stay if their rows do.
pub fn trim(spans: &mut Spans, range: Range) {
    let is_within = |s: &Span| s.start >= range.from && s.start.saturating_add(s.dur) <= range.to;
    if !spans.spans.iter().all(is_within) {
        spans.meta.counts.clear();
        spans.meta.files.clear();
    }
    let (mut labels, mut kept): (Vec<Span>, Vec<Span>) =
        std::mem::take(&mut spans.spans).into_iter().partition(|s| s.what == What::Point(Point::RowLabel));
    kept.retain_mut(|s| cut(s, range));
    let threads: HashSet<Option<Pid>> = kept.iter().map(|s| s.pid).collect();
    labels.retain(|l| threads.contains(&l.pid));
    kept.extend(labels.into_iter().map(|l| Span { start: l.start.max(range.from), ..l }));
    order(&mut kept);
    spans.spans = kept;
}

/// Cuts a span at the edges; false if no part of it is in `range`. A span of zero length belongs where it starts.
fn cut(span: &mut Span, range: Range) -> bool {
    let end = span.start.saturating_add(span.dur);
    let within = span.start < range.to && (end > range.from || span.start == range.from);
    if let Some(activity) = span.activity().filter(|_| end > range.to) {
        // The call returns later.
        span.ret = activity.no_value();
    }
    span.start = span.start.max(range.from);
    span.dur = end.min(range.to).saturating_sub(span.start);
    within
}
