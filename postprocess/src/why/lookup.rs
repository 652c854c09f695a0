// SPDX-License-Identifier: BSD-3-Clause
//! Numbers of spans by time, and the place of a moment in them: an index limits a search in millions of spans to a few.

use std::ops::Range;

use super::rows::Rows;
use crate::time::Time;

/// Approximate number of spans in each step of time.
const EACH: usize = 8;

/// Consecutive spans by number, with an index of where each step of time begins.
#[derive(Debug, Default)]
pub struct Lookup {
    /// The spans, in the order of their starts.
    pub numbers: Vec<u32>,
    first: Time,
    /// Binary logarithm of a step.
    step: u32,
    /// For each step, the place of the first span that starts in it or later.
    places: Vec<u32>,
}

impl Lookup {
    /// Takes spans in the order of their starts.
    pub fn new(numbers: Vec<u32>, rows: Rows) -> Lookup {
        let start = |at: Option<&u32>| at.map_or(Time::ZERO, |&number| rows.start(number));
        let (first, last) = (start(numbers.first()), start(numbers.last()));
        let length = last.abs_diff(first) / (numbers.len() / EACH).max(1) as u64;
        let step = (u64::BITS - length.leading_zeros()).min(u64::BITS - 1);
        let mut lookup = Lookup { first, step, places: Vec::new(), numbers: Vec::new() };
        for (place, &number) in (0..).zip(&numbers) {
            let step = lookup.step_of(rows.start(number));
            while lookup.places.len() <= step {
                lookup.places.push(place);
            }
        }
        Lookup { numbers, ..lookup }
    }

    fn step_of(&self, at: Time) -> usize {
        (at.saturating_sub(self.first).0.max(0) as u64 >> self.step) as usize
    }

    /// Returns the range of places in which the step of a moment lies.
    fn around(&self, at: Time) -> Range<usize> {
        let step = self.step_of(at);
        let place = |step: usize| self.places.get(step).map_or(self.numbers.len(), |&place| place as usize);
        place(step)..place(step + 1)
    }

    /// Counts the spans that start before a moment.
    pub fn starting_before(&self, at: Time, rows: Rows) -> usize {
        let Range { start, end } = self.around(at);
        start + self.numbers[start..end].partition_point(|&number| rows.start(number) < at)
    }

    /// Returns the place of the first span that ends after a moment. Among spans that start together, one of no length
    /// comes last although it ends first.
    pub fn first_after(&self, at: Time, rows: Rows) -> usize {
        let Range { start, end } = self.around(at);
        let mut place = start + self.numbers[start..end].partition_point(|&number| rows.start(number) <= at);
        let mut first = place;
        while place > 0 {
            place -= 1;
            let number = self.numbers[place];
            match rows.end(number) {
                end if end > at => first = place,
                end if end > rows.start(number) => break,
                _ => {}
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::order::order;
    use crate::span::Span;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_moment_is_where_a_search_through_all_finds_it(
            times in proptest::collection::vec((0..3_i64, prop_oneof![Just(0), 0..9_i64, Just(5_000)]), 0..300),
            moments in proptest::collection::vec(-5..40_000_i64, 20),
        ) {
            let mut at = 0;
            let made = |(gap, dur): (i64, i64)| {
                let start = at + gap;
                at = start + dur;
                Span { start: Time(start), dur: Time(dur), ..Span::default() }
            };
            let mut spans: Vec<Span> = times.into_iter().map(made).collect();
            order(&mut spans);
            let rows = Rows::Spans(&spans);
            let lookup = Lookup::new((0..spans.len() as u32).collect(), rows);
            let edges = spans.iter().flat_map(|s| [s.start, s.start + s.dur, s.start + Time::UNIT]);
            for at in edges.chain(moments.into_iter().map(Time)) {
                prop_assert_eq!(lookup.starting_before(at, rows), spans.partition_point(|s| s.start < at));
                let first = spans.iter().position(|s| s.start + s.dur > at).unwrap_or(spans.len());
                prop_assert_eq!(lookup.first_after(at, rows), first);
            }
        }
    }
}
