// SPDX-License-Identifier: BSD-3-Clause
//! The order of spans: by start, then longest first, then by CPU.
//!
//! Spans are written when they end, which is almost the order of their starts. Most spans therefore find their place a
//! few steps back; the few others are sorted separately, and merged in at the end.

use std::cmp::Reverse;

use super::Span;
use crate::id::CpuId;
use crate::time::Time;

/// Maximum number of steps back.
const STEPS: usize = 32;

/// Puts spans in the order of [`super::Spans::spans`]; equal keys keep their order.
pub fn order(spans: &mut [Span]) {
    order_by(spans, key);
}

/// Sorts a list that is almost in the order of its keys; equal keys keep their order.
pub fn order_by<T: Copy, K: Ord>(spans: &mut [T], key: impl Fn(&T) -> K) {
    if spans.is_sorted_by_key(&key) {
        return;
    }
    let mut behind = Vec::new();
    let mut kept = 0usize;
    for n in 0..spans.len() {
        let span = spans[n];
        let before = &spans[kept.saturating_sub(STEPS)..kept];
        let steps = before.iter().rev().take_while(|s| key(s) > key(&span)).count();
        // Later spans of the same key are too far out of place as well, so equal keys keep their order.
        if steps == STEPS {
            behind.push(span);
            continue;
        }
        if steps > 0 {
            spans.copy_within(kept - steps..kept, kept - steps + 1);
        }
        spans[kept - steps] = span;
        kept += 1;
    }
    behind.sort_by_key(&key);
    let mut end = spans.len();
    for late in behind.into_iter().rev() {
        let fits = kept - spans[..kept].iter().rev().take_while(|s| key(s) > key(&late)).count();
        spans.copy_within(fits..kept, end - (kept - fits));
        end -= kept - fits + 1;
        kept = fits;
        spans[end] = late;
    }
}

/// Sort key of spans.
pub type Key = (Time, Reverse<Time>, Option<CpuId>);

/// The sort key of a span.
#[inline]
pub fn key(span: &Span) -> Key {
    (span.start, Reverse(span.dur), span.cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::names::NameId;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_order_is_that_of_a_stable_sort(
            keys in proptest::collection::vec((0..20i64, 0..600i64, 0..3i64), 2_000..3_000)
        ) {
            let mut spans: Vec<Span> = (0..)
                .zip(keys)
                .map(|(n, (step, back, dur))| {
                    let back = if back == 0 { i64::from(n) * 9 } else { back };
                    Span { start: Time(i64::from(n) * 10 + step - back), dur: Time(dur), name: NameId(n), ..Span::default() }
                })
                .collect();
            let mut expected = spans.clone();
            expected.sort_by_key(key);
            order(&mut spans);
            prop_assert!(spans == expected);
        }
    }
}
