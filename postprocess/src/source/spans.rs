// SPDX-License-Identifier: BSD-3-Clause
//! Spans from JSON or frames, whichever the input has.

use std::io::{self, BufRead};

use super::json;
use crate::event::batch::Renumber;
use crate::event::names::Names;
use crate::frame;
use crate::readable::count;
use crate::span::limit::Keep;
use crate::span::{order, Span, Spans};
use crate::time::Time;

/// Reads all spans, and passes them to `keep`.
///
/// # Errors
/// Any error of `input`, or that the frames are of an unknown version.
pub fn read(mut input: impl BufRead, mut keep: impl Keep) -> io::Result<Spans> {
    if !frame::begins::<Span>(&mut input)? {
        return json::read_into(&mut input, keep);
    }
    let mut frames = frame::Reader::new(input)?;
    let (mut names, mut spans, mut renumber) = (Names::default(), Vec::new(), Renumber::default());
    let mut backward = Backward::default();
    while let Some(mut batch) = frames.batch()? {
        renumber.receive(&mut batch, &mut names);
        backward.end(&mut batch.rows);
        spans.append(&mut batch.rows);
        if spans.len() > keep.room() {
            keep.add(std::mem::take(&mut spans));
        }
    }
    order::order(&mut spans);
    let mut meta = frames.finish();
    meta.quality.extend(backward.sentence());
    Ok(keep.finish(Spans { meta, names: names.into_texts(), spans }))
}

/// Spans that end before they begin, which no tool of ours writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backward(u64);

impl Backward {
    /// Makes those among `spans` end where they begin.
    pub fn end(&mut self, spans: &mut [Span]) {
        for span in spans.iter_mut().filter(|span| span.dur < Time::ZERO) {
            span.dur = Time::ZERO;
            self.0 += 1;
        }
    }

    /// Sentence about these spans, if there were any.
    pub fn sentence(self) -> Option<String> {
        let spans = count(self.0, "span ends before it begins", "spans end before they begin");
        Some(format!("{spans}; treated as having no length")).filter(|_| self.0 > 0)
    }
}
