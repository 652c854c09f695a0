// SPDX-License-Identifier: BSD-3-Clause
//! A limit on the number of spans: spans beyond it are coarsened, in steps that double until few enough are left.
//!
//! Invariant: the trace's [`super::Meta::quality`] states what was coarsened, and how to see all of a part.

use std::num::NonZeroU32;

use super::coarsen::Coarse;
use super::{Span, Spans};
use crate::id::CpuId;
use crate::time::Time;

/// The shortest step in units: 1 us.
const FIRST_STEP: u32 = 100;
/// The longest step: 42 s.
const LAST_STEP: u32 = FIRST_STEP << 25;
/// Command that makes a page of a part with every detail; the times are those that a page shows.
pub const OF_A_PART: &str = "rawtoevent t.trace | eventtospan | spantotrim START STOP | spantohtml > part.html";
/// Number of spans taken at a time once they are coarsened.
const TAKEN: usize = 1 << 16;

/// Coarsens spans beyond a limit. Each CPU's spans come in order.
#[derive(Debug)]
pub struct SpanLimit {
    max: usize,
    coarse: Option<Coarse>,
}

/// Destination of spans as they are read.
pub trait Keep {
    /// Number of spans to gather before they are added.
    fn room(&self) -> usize;

    /// Takes spans; each CPU's come in order.
    fn add(&mut self, spans: Vec<Span>);

    /// The spans kept, with those read last and the facts about the whole trace.
    fn finish(self, last: Spans) -> Spans;
}

impl SpanLimit {
    /// Keeps up to `max` spans as they are.
    pub fn new(max: usize) -> SpanLimit {
        SpanLimit { max, coarse: None }
    }

    /// Allows as many spans as fit into this many bytes of memory; coarsening them takes as much again.
    pub fn within(bytes: usize) -> SpanLimit {
        SpanLimit::new(bytes / (2 * size_of::<Span>()))
    }
}

impl Keep for SpanLimit {
    /// Up to the limit no spans need to be added.
    fn room(&self) -> usize {
        match self.coarse {
            Some(_) => TAKEN.min(self.max),
            None => self.max,
        }
    }

    /// Takes spans, and coarsens them.
    fn add(&mut self, spans: Vec<Span>) {
        let coarse = self.coarse.get_or_insert_with(|| Coarse::new(first_step(&spans, self.max)));
        coarse.take(spans);
        while coarse.count() > self.max && coarse.step().get() < LAST_STEP {
            let twice = Coarse::new(coarse.step().saturating_add(coarse.step().get()));
            let finer = std::mem::replace(coarse, twice);
            coarse.take(finer.finish());
        }
    }

    /// Puts the spans added before those of `all`, in order; if there are few enough, they stay as they are.
    fn finish(mut self, mut all: Spans) -> Spans {
        if self.coarse.is_some() || all.spans.len() > self.max {
            self.add(std::mem::take(&mut all.spans));
        }
        let Some(coarse) = self.coarse else { return all };
        let (max, us) = (self.max, coarse.step().get() / 100);
        all.meta.quality.push(format!(
            "there were more than {max} spans: each CPU's time is added up in steps of {us} us, other spans shorter \
             than a step are omitted; times add up, and starts are counted over the whole trace; for all details from \
             START to STOP, in seconds: `{OF_A_PART}`"
        ));
        all.spans = coarse.finish();
        all.meta.files.clear();
        all
    }
}

/// A step in which each CPU can do four things, and all of them fit.
fn first_step(spans: &[Span], max: usize) -> NonZeroU32 {
    let extent = |(first, last, cpus): (Time, Time, Option<CpuId>), s: &Span| {
        (first.min(s.start), last.max(s.start), cpus.max(s.cpu))
    };
    let (first, last, cpu) = spans.iter().fold((Time::MAX, Time::MIN, None), extent);
    let cpus = cpu.unwrap_or_default().index() as u64 + 1;
    let step = last.abs_diff(first).saturating_mul(4 * cpus) / max.max(1) as u64;
    let mut fits = FIRST_STEP;
    while u64::from(fits) < step && fits < LAST_STEP {
        fits *= 2;
    }
    NonZeroU32::new(fits).unwrap_or(NonZeroU32::MIN)
}
