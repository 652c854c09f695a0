// SPDX-License-Identifier: BSD-3-Clause
//! Which spans belong together, as a small number of each, so that the page need not find it out again.

use crate::span::what::{Arc, What};
use crate::span::whole::{Piece, Wholes};
use crate::span::{Span, Spans};
use crate::why::waker::Origin;

/// Spans that are looked at for what a wakeup came out of: more than any CPU has begun since.
const LOOK_BACK: usize = 1 << 12;

/// Of each span, what it belongs to, 0 for none:
///
/// * a piece of a call, fault, interrupt, softirq or run of the scheduler continues the call of its kind that began last
///   of its thread or CPU, 1, or of those the one before, 2;
/// * a wakeup came out of what its CPU was executing, 1, or what it had begun before, 2; points in time do not count.
#[must_use]
pub fn links(spans: &Spans) -> Vec<i64> {
    let mut calls = Wholes::default();
    let link = |(n, span): (usize, &Span)| match span.what {
        What::Run(activity) => match calls.add(activity, span, |_| {}).0 {
            Piece::Next(calls_back) => calls_back as i64,
            Piece::None | Piece::First | Piece::Unseen => 0,
        },
        What::Arc(Arc::Wakeup { .. }) => {
            let with_it = spans.spans[n..].iter().take_while(|s| s.start == span.start).count();
            let before = spans.spans[..n + with_it].iter().rev().take(with_it + LOOK_BACK);
            let executed = before.filter(|s| s.cpu == span.cpu && s.is_execution()).copied();
            Origin::of(&spans.names, span, executed).place().map_or(0, |(_, back)| back as i64 + 1)
        }
        _ => 0,
    };
    spans.spans.iter().enumerate().map(link).collect()
}
