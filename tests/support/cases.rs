// SPDX-License-Identifier: BSD-3-Clause
//! Number of cases that a search tries: few, so that `cargo test` takes seconds, or `KUTRACE_CASES` times as many.

use std::env;

/// `KUTRACE_CASES`, or 1; `cargo xtask test` sets 3, `night` 10.
fn times() -> usize {
    env::var("KUTRACE_CASES").map_or(1, |times| times.parse().expect("KUTRACE_CASES: not a number"))
}

/// `few` cases, times `KUTRACE_CASES`.
pub fn cases(few: usize) -> usize {
    few * times()
}

/// The step of a walk that takes one case in `step`, or `KUTRACE_CASES` times as many, up to every one.
pub fn one_in(step: usize) -> usize {
    (step / times()).max(1)
}
