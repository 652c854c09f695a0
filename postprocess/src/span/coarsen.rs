// SPDX-License-Identifier: BSD-3-Clause
//! A coarser picture of a long trace: within each step of time, one span for each activity of a CPU.
//!
//! Invariants: a CPU's spans cover the same time as before, and every activity has as much time as before.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::ipc::Mean;
use super::what::{Activity, What};
use super::{order, Span, Spans};
use crate::event::names::NameId;
use crate::event::point::Point;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Merges each CPU's spans of the same activity (the same event, name, thread and RPC) within steps of `step` units of
/// 10 ns. Within a step, activities are in the order in which they began.
///
/// A span that fills a step is left alone. A span that is not execution stays if it lasts a step; marks and row labels
/// stay. An argument or return value stays if all merged spans have the same; IPC codes are averaged.
pub fn coarsen(spans: &mut Spans, step: NonZeroU32) {
    let mut coarse = Coarse::new(step);
    coarse.take(std::mem::take(&mut spans.spans));
    spans.spans = coarse.finish();
    spans.meta.files.clear();
}

/// Spans that are coarsened as they arrive, each CPU's in order; see [`coarsen`].
#[derive(Debug)]
pub struct Coarse {
    step: NonZeroU32,
    cpus: BTreeMap<CpuId, Cpu>,
    others: Vec<Span>,
}

impl Coarse {
    /// Starts without spans.
    pub fn new(step: NonZeroU32) -> Coarse {
        Coarse { step, cpus: BTreeMap::new(), others: Vec::new() }
    }

    /// The step that spans are coarsened to.
    pub fn step(&self) -> NonZeroU32 {
        self.step
    }

    /// Upper limit of the number of spans so far.
    pub fn count(&self) -> usize {
        self.others.len() + self.cpus.values().map(|cpu| cpu.done.len() + cpu.open.len()).sum::<usize>()
    }

    /// Adds spans.
    pub fn take(&mut self, spans: Vec<Span>) {
        spans.iter().for_each(|span| self.add(span));
    }

    fn add(&mut self, span: &Span) {
        let step = Time(self.step.get().into());
        if let Some(cpu) = span.cpu.filter(|_| span.is_execution()) {
            self.cpus.entry(cpu).or_default().add(span, step);
        } else if span.dur >= step || span.point().is_some_and(|point| point == Point::RowLabel || point.is_mark()) {
            self.others.push(*span);
        }
    }

    /// All spans, in order.
    pub fn finish(self) -> Vec<Span> {
        let mut out = self.others;
        for cpu in self.cpus.into_values() {
            out.extend(cpu.finish());
        }
        // Each CPU's spans are already in order.
        out.sort_by_key(order::key);
        out
    }
}

/// The spans of a CPU.
#[derive(Debug, Default)]
struct Cpu {
    done: Vec<Span>,
    /// The step being filled, and its activities.
    step: i64,
    open: Vec<Sum>,
}

/// The spans of one activity within a step.
#[derive(Debug)]
struct Sum {
    span: Span,
    ipc: Mean,
}

impl Cpu {
    /// Adds a span in up to three parts: in the step where it starts, in the steps that it fills, in the step where it
    /// ends.
    fn add(&mut self, span: &Span, step: Time) {
        let end = span.start.saturating_add(span.dur);
        let (first, last) = (span.start.0.div_euclid(step.0), end.0.div_euclid(step.0));
        if first >= last {
            return self.part(first, *span);
        }
        let edges = [span.start, step * (first + 1), step * last, end];
        for (number, edge) in [first, first + 1, last].into_iter().zip(edges.windows(2)) {
            self.part(number, Span { start: edge[0], dur: edge[1] - edge[0], ..*span });
        }
    }

    fn part(&mut self, step: i64, part: Span) {
        if part.dur <= Time::ZERO {
            return;
        }
        if step != self.step {
            self.flush();
            self.step = step;
        }
        let same = self.open.iter_mut().find(|sum| activity(&sum.span) == activity(&part));
        match same {
            Some(sum) => sum.add(&part),
            None => self.open.push(Sum::new(part)),
        }
    }

    /// Lays the activities of the step end to end; an activity that continues from the step before joins it.
    fn flush(&mut self) {
        let Some(mut start) = self.open.first().map(|sum| sum.span.start) else { return };
        for sum in self.open.drain(..) {
            let span = Span { start, ipc: sum.ipc.code(), ..sum.span };
            start = start.saturating_add(span.dur);
            match self.done.last_mut() {
                Some(last) if joins(last, &span) => last.dur = last.dur.saturating_add(span.dur),
                _ => self.done.push(span),
            }
        }
    }

    fn finish(mut self) -> Vec<Span> {
        self.flush();
        self.done
    }
}

impl Sum {
    fn new(span: Span) -> Sum {
        let mut ipc = Mean::default();
        ipc.add(span.ipc, span.dur);
        Sum { span, ipc }
    }

    fn add(&mut self, part: &Span) {
        self.ipc.add(part.ipc, part.dur);
        self.span.dur = self.span.dur.saturating_add(part.dur);
        let many = part.activity().map_or(0, Activity::no_value);
        self.span.arg = if self.span.arg == part.arg { part.arg } else { many };
        self.span.ret = if self.span.ret == part.ret { part.ret } else { many };
    }
}

/// Fields that must agree for two spans to be the same activity.
fn activity(span: &Span) -> (What, NameId, Option<Pid>, i32) {
    (span.what, span.name, span.pid, span.rpc)
}

fn joins(last: &Span, span: &Span) -> bool {
    let rest = |s: &Span| (activity(s), s.arg, s.ret, s.ipc);
    rest(last) == rest(span) && last.start.saturating_add(last.dur) == span.start
}
