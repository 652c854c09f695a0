// SPDX-License-Identifier: BSD-3-Clause
//! Links between spans that belong together, a small number for each span, so that the page need not search for them.

use crate::span::what::{Arc, What};
use crate::span::whole::{Piece, Wholes};
use crate::span::{Span, Spans};
use crate::why::waker::Origin;

/// Number of spans searched for the source of a wakeup: more than any CPU has begun since.
const LOOK_BACK: usize = 1 << 12;

/// Returns the link of each span, 0 for none:
///
/// * a piece of a call, fault, interrupt, softirq or run of the scheduler continues the last call of its kind on its
///   thread or CPU, 1, or the one before, 2;
/// * a wakeup came from what its CPU was executing, 1, or what the CPU had begun before that, 2; points in time do not
///   count.
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
