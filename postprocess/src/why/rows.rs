// SPDX-License-Identifier: BSD-3-Clause
//! Spans of a trace by number, independent of how they are stored.

use crate::span::dense::Dense;
use crate::span::Span;
use crate::time::Time;

/// Spans in order.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// As a list of spans.
    Spans(&'a [Span]),
    /// In half the memory.
    Dense(&'a Dense),
}

impl<'a> Rows<'a> {
    /// Returns the number of spans.
    pub fn len(&self) -> usize {
        match self {
            Rows::Spans(spans) => spans.len(),
            Rows::Dense(dense) => dense.len(),
        }
    }

    /// True if there are no spans.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a span.
    #[inline]
    pub fn get(&self, number: u32) -> Span {
        match self {
            Rows::Spans(spans) => spans[number as usize],
            Rows::Dense(dense) => dense.get(number as usize),
        }
    }

    /// Returns the start of a span.
    #[inline]
    pub fn start(&self, number: u32) -> Time {
        match self {
            Rows::Spans(spans) => spans[number as usize].start,
            Rows::Dense(dense) => dense.start(number as usize),
        }
    }

    /// Returns the end of a span.
    #[inline]
    pub fn end(&self, number: u32) -> Time {
        match self {
            Rows::Spans(spans) => {
                let span = &spans[number as usize];
                span.start.saturating_add(span.dur)
            }
            Rows::Dense(dense) => dense.end(number as usize),
        }
    }

    /// Returns all spans.
    pub fn iter(self) -> impl Iterator<Item = Span> + 'a {
        (0..self.len() as u32).map(move |number| self.get(number))
    }
}
