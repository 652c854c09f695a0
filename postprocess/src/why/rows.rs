// SPDX-License-Identifier: BSD-3-Clause
//! The spans of a trace by number, however they are held.

use crate::span::dense::Dense;
use crate::span::Span;
use crate::time::Time;

/// Spans in their order.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// As a list of spans.
    Spans(&'a [Span]),
    /// In half of the memory.
    Dense(&'a Dense),
}

impl<'a> Rows<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Rows::Spans(spans) => spans.len(),
            Rows::Dense(dense) => dense.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    #[inline]
    pub fn get(&self, number: u32) -> Span {
        match self {
            Rows::Spans(spans) => spans[number as usize],
            Rows::Dense(dense) => dense.get(number as usize),
        }
    }

    /// When one starts.
    #[inline]
    pub fn start(&self, number: u32) -> Time {
        match self {
            Rows::Spans(spans) => spans[number as usize].start,
            Rows::Dense(dense) => dense.start(number as usize),
        }
    }

    /// When one ends.
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

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Span> + 'a {
        (0..self.len() as u32).map(move |number| self.get(number))
    }
}
