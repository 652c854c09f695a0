// SPDX-License-Identifier: BSD-3-Clause
//! The order of spans: by start, then longest first, then by CPU.
//!
//! Spans are written when they end, which is almost the order of their starts. So pieces that stay in the cache are
//! sorted one by one; what must go before an earlier piece is few, and is merged in at the end.

use std::cmp::Reverse;

use super::Span;

/// Spans that are sorted at a time.
const PIECE: usize = 1 << 13;

/// Puts spans in the order of [`super::Spans::spans`]; equal keys keep their order.
pub fn order(spans: &mut [Span]) {
    let mut behind = Vec::new();
    let mut kept = 0usize;
    for start in (0..spans.len()).step_by(PIECE) {
        let end = spans.len().min(start + PIECE);
        spans[start..end].sort_by_key(key);
        let last = kept.checked_sub(1).map(|last| key(&spans[last]));
        let fits = start + last.map_or(0, |last| spans[start..end].partition_point(|s| key(s) < last));
        behind.extend_from_slice(&spans[start..fits]);
        spans.copy_within(fits..end, kept);
        kept += end - fits;
    }
    behind.sort_by_key(key);
    let mut end = spans.len();
    for late in behind.into_iter().rev() {
        let fits = kept - spans[..kept].iter().rev().take_while(|s| key(s) > key(&late)).count();
        spans.copy_within(fits..kept, end - (kept - fits));
        end -= kept - fits + 1;
        kept = fits;
        spans[end] = late;
    }
}

/// What spans are ordered by.
pub type Key = (i64, Reverse<i64>, i32);

/// The place of a span in the order.
#[inline]
pub fn key(span: &Span) -> Key {
    (span.start, Reverse(span.dur), span.cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn the_order_is_that_of_a_stable_sort(
            keys in proptest::collection::vec((0..20i64, 0..200i64, 0..3i64), 2 * PIECE..3 * PIECE)
        ) {
            let mut spans: Vec<Span> = (0..)
                .zip(keys)
                .map(|(n, (step, back, dur))| {
                    let back = if back == 0 { i64::from(n) * 9 } else { back };
                    Span { start: i64::from(n) * 10 + step - back, dur, name: n, ..Span::default() }
                })
                .collect();
            let mut expected = spans.clone();
            expected.sort_by_key(key);
            order(&mut spans);
            prop_assert!(spans == expected);
        }
    }
}
