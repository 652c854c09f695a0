// SPDX-License-Identifier: BSD-3-Clause
//! Limit of programs' inserts: a burst, and then a number per second. The module's own code.

use proptest::prelude::*;

use crate::module_budget::Budget;

const SECOND: u64 = 1_000_000;

/// Number of inserts accepted at the moments from `from` to `to`, one requested at each.
fn taken(budget: &mut Budget, from: u64, to: u64) -> usize {
    (from..to).filter(|now| budget.take(*now)).count()
}

#[test]
fn a_burst_of_a_second_is_taken_and_then_as_many_as_the_rate_says() {
    let mut budget = Budget::new(SECOND, 1000);
    assert_eq!(taken(&mut budget, 5 * SECOND, 5 * SECOND + 1000), 1000);
    assert_eq!(taken(&mut budget, 5 * SECOND + 1000, 6 * SECOND + 1000), 1000);
    assert_eq!(taken(&mut budget, 9 * SECOND, 9 * SECOND + 2000), 1001);
}

#[test]
fn no_rate_is_no_limit() {
    let mut budget = Budget::new(SECOND, 0);
    assert!((0..5000).all(|_| budget.take(7)));
}

#[test]
fn a_clock_that_steps_back_stops_nobody() {
    let mut budget = Budget::new(SECOND, 1000);
    assert!(taken(&mut budget, 50 * SECOND, 51 * SECOND) > 1000);
    assert!(budget.take(20 * SECOND));
}

proptest! {
    #[test]
    fn never_more_than_the_rate_and_one_burst(
        rate in 1u32..100_000,
        steps in prop::collection::vec(0u64..SECOND / 50, 1..2000),
    ) {
        let mut budget = Budget::new(SECOND, rate);
        let (mut now, mut count) = (3 * SECOND, 0);
        for step in &steps {
            now += step;
            count += u64::from(budget.take(now));
        }
        let cost = SECOND / u64::from(rate);
        prop_assert!(count * cost <= now - 3 * SECOND + SECOND);
    }
}
