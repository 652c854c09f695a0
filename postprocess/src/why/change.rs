// SPDX-License-Identifier: BSD-3-Clause
//! Decides whether the requests of one trace take longer than those of another, or whether the difference may be
//! chance.
//!
//! Consecutive requests are alike, so the unit of chance is not a request but a tenth of a trace: ten blocks of
//! consecutive requests before, ten after. If nothing has changed, the ten blocks that came after are just one of
//! 184,756 choices of ten out of twenty, and all choices are counted. A change of a percentile by a ratio is excluded
//! if, with the earlier durations stretched by that ratio, few enough choices look as one-sided as the measured one.
//! The interval of a percentile is the range that is not excluded.
//!
//! Invariant: nothing here is random, and the order of the requests within a block does not matter.

use serde::Serialize;

/// Number of blocks that the consecutive requests of a trace are divided into.
const BLOCKS: usize = 10;
/// Traces with fewer requests are not compared.
pub const FEWEST: usize = 2 * BLOCKS;
/// Largest part of the comparisons of equal traces that finds a difference.
pub const FALSE_ALARMS: f64 = 0.01;
/// Percentiles, each as the part of the requests that do not exceed it.
pub const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
/// A percentile above the median is considered if at least this many requests exceed it.
const BEYOND: usize = 10;
/// Larger changes than this ratio are not distinguished.
const WIDEST: f64 = 1e4;
/// The fractional parts of its multiples are spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_8;
/// Relative precision of the ends of an interval.
const EXACT: f64 = 1e-3;

/// A percentile of the durations in two traces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Part of the requests that do not take longer: 0.5 for the median.
    pub percentile: f64,
    /// Value before.
    pub before: i64,
    /// Value after.
    pub after: i64,
    /// Relative increase; negative for a decrease.
    pub change: f64,
    /// Lower bound of the relative increase; `None` if it has no lower bound.
    pub at_least: Option<f64>,
    /// Upper bound of the relative increase; `None` if it has no upper bound.
    pub at_most: Option<f64>,
    /// Conclusion from these numbers.
    pub verdict: Verdict,
}

/// Difference of a trace from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No more than chance allows, or too little to matter.
    #[default]
    Same,
    /// Its requests take longer.
    Slower,
    /// Its requests take less time.
    Faster,
}

impl Verdict {
    /// Returns the verdict as one word; empty if nothing has changed.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Same => "",
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
        }
    }
}

/// Returns how the percentiles of request durations have changed. The durations are in the order of the requests'
/// starts; changes by less than the part `above` do not matter. Empty if either trace has fewer than [`FEWEST`]
/// requests.
pub fn changes(before: &[i64], after: &[i64], above: f64) -> Vec<Change> {
    let fewest = before.len().min(after.len());
    if fewest < FEWEST {
        return Vec::new();
    }
    let (before, after) = (Durations::new(before), Durations::new(after));
    let beyond = |part: f64| fewest - (fewest as f64 * part).ceil() as usize;
    let looked_at = |part: f64| part == PERCENTILES[0] || beyond(part) >= BEYOND;
    let parts: Vec<f64> = PERCENTILES.into_iter().filter(|part| looked_at(*part)).collect();
    // Each percentile may err on either side. Half of the level is a margin, as neighbouring blocks are not quite
    // independent.
    let level = FALSE_ALARMS / (4 * parts.len()) as f64;
    parts.into_iter().map(|part| change(&before, &after, part, level, above)).collect()
}

fn change(before: &Durations, after: &Durations, part: f64, level: f64, above: f64) -> Change {
    let [was, is] = [before, after].map(|durations| durations.percentile(part));
    let ratio = is.max(1) as f64 / was.max(1) as f64;
    let excluded = |side: Side, ratio: f64| chance(before, after, part, side, ratio) <= level;
    let at_least = last(ratio, 1.0 / WIDEST, |ratio| !excluded(Side::More, ratio)).map(|ratio| ratio - 1.0);
    let at_most = last(ratio, WIDEST, |ratio| !excluded(Side::Less, ratio)).map(|ratio| ratio - 1.0);
    let verdict = match (at_least, at_most) {
        (Some(least), _) if least > above => Verdict::Slower,
        (_, Some(most)) if most < -above => Verdict::Faster,
        _ => Verdict::Same,
    };
    Change { percentile: part, before: was, after: is, change: ratio - 1.0, at_least, at_most, verdict }
}

/// Returns the last ratio that holds, from `from`, which does, to `widest` times it; `None` if all hold.
fn last(from: f64, widest: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    if holds(from * widest) {
        return None;
    }
    let (mut holding, mut beyond) = (0.0, widest.ln());
    while (beyond - holding).abs() > EXACT {
        let middle = (holding + beyond) / 2.0;
        match holds(from * middle.exp()) {
            true => holding = middle,
            false => beyond = middle,
        }
    }
    Some(from * holding.exp())
}

/// Side of the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    More,
    Less,
}

/// Durations of the requests of a trace. They are known to a unit only; an even sequence sets where in its unit each
/// lies, so that few are equal.
struct Durations {
    /// All durations, in order.
    all: Vec<f64>,
    /// Durations of each block, in order.
    blocks: Vec<Vec<f64>>,
}

impl Durations {
    /// Takes the durations of at least [`FEWEST`] requests.
    fn new(durations: &[i64]) -> Durations {
        let even = durations.iter().enumerate().map(|(n, dur)| *dur as f64 + (n as f64 * GOLDEN).fract());
        let even: Vec<f64> = even.collect();
        let ordered = |list: &[f64]| {
            let mut list = list.to_vec();
            list.sort_unstable_by(f64::total_cmp);
            list
        };
        let at = |n: usize| n * even.len() / BLOCKS;
        let blocks = (0..BLOCKS).map(|n| ordered(&even[at(n)..at(n + 1)])).collect();
        Durations { all: ordered(&even), blocks }
    }

    /// Returns the least duration that this part of the requests does not exceed.
    fn percentile(&self, part: f64) -> i64 {
        let rank = (self.all.len() as f64 * part).ceil() as usize;
        self.all[rank.clamp(1, self.all.len()) - 1] as i64
    }
}

/// Counts the durations, which are in order, that do not exceed `limit` when stretched by a ratio.
fn within(ordered: &[f64], ratio: f64, limit: f64) -> usize {
    ordered.partition_point(|dur| dur * ratio <= limit)
}

/// Returns the part of a block that exceeds `limit`, in fixed point, so that sums do not depend on their order.
fn exceeding(block: &[f64], ratio: f64, limit: f64) -> i64 {
    (((block.len() - within(block, ratio, limit)) << 32) / block.len()) as i64
}

/// Returns the part of all choices of blocks in which as many requests or more (or less) exceed the percentile of both
/// traces together as in the blocks of the second trace, with the durations of the first stretched by `ratio`.
fn chance(before: &Durations, after: &Durations, part: f64, side: Side, ratio: f64) -> f64 {
    let limit = together(before, after, part, ratio);
    let sign = if side == Side::More { 1 } else { -1 };
    let exceed = |of: &Durations, ratio| -> Vec<i64> {
        of.blocks.iter().map(|block| sign * exceeding(block, ratio, limit)).collect()
    };
    as_large(&exceed(before, ratio), &exceed(after, 1.0))
}

/// Returns the percentile of two traces together; both have the same weight, and the first is stretched.
fn together(before: &Durations, after: &Durations, part: f64, ratio: f64) -> f64 {
    let (first, second) = (&before.all, &after.all);
    let below = |limit: f64| {
        within(first, ratio, limit) as f64 / first.len() as f64
            + within(second, 1.0, limit) as f64 / second.len() as f64
    };
    let least = |of: &[f64], ratio: f64| {
        let found = of.partition_point(|dur| below(dur * ratio) < 2.0 * part);
        of.get(found).map_or(f64::INFINITY, |dur| dur * ratio)
    };
    least(first, ratio).min(least(second, 1.0))
}

/// Returns the part of all choices of [`BLOCKS`] from these twice as many numbers whose sum is at least the sum of
/// `second`.
fn as_large(first: &[i64], second: &[i64]) -> f64 {
    let measured = second.iter().sum::<i64>();
    let (first, second) = (sums(first), sums(second));
    let (mut as_large, mut all) = (0, 0);
    for (count, some) in first.iter().enumerate() {
        let others = &second[BLOCKS - count];
        all += some.len() * others.len();
        // The larger the sum on one side, the less is needed on the other.
        let mut needed = others.len();
        for sum in some {
            while needed > 0 && sum + others[needed - 1] >= measured {
                needed -= 1;
            }
            as_large += others.len() - needed;
        }
    }
    as_large as f64 / all as f64
}

/// Returns, for each count, the sums of all choices of that many of these numbers, in order.
fn sums(of: &[i64]) -> Vec<Vec<i64>> {
    let mut sums = vec![Vec::new(); of.len() + 1];
    sums[0].push(0);
    for (chosen, number) in of.iter().enumerate() {
        for count in (0..=chosen).rev() {
            sums[count + 1] = merged(&sums[count + 1], &sums[count], *number);
        }
    }
    sums
}

/// Merges two ordered lists, adding `more` to each number of the second.
fn merged(first: &[i64], second: &[i64], more: i64) -> Vec<i64> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let mut at = 0;
    for number in second {
        while at < first.len() && first[at] <= number + more {
            merged.push(first[at]);
            at += 1;
        }
        merged.push(number + more);
    }
    merged.extend_from_slice(&first[at..]);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_counted_once() {
        let none = vec![0; BLOCKS];
        let one: Vec<i64> = (0..BLOCKS as i64).map(|n| n + 1).collect();
        assert_eq!(as_large(&none, &none), 1.0);
        // Only the ten themselves have a sum as large.
        assert_eq!(as_large(&none, &one), 1.0 / 184_756.0);
        assert_eq!(as_large(&one, &none), 1.0);
    }

    #[test]
    fn few_requests_are_not_compared_and_percentiles_need_requests_beyond_them() {
        let durations: Vec<i64> = (0..10_000).map(|n| 1_000 + n % 97).collect();
        let compared = |count: usize| changes(&durations[..count], &durations, 0.05).len();
        assert_eq!([19, 20, 99, 100, 999, 1_000, 10_000].map(compared), [0, 1, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn the_interval_holds_a_planted_change_and_little_more() {
        let before: Vec<i64> = (0..2_000).map(|n| 10_000 + n * 7_919 % 1_000).collect();
        let after: Vec<i64> = before.iter().rev().map(|dur| dur * 3 / 2).collect();
        for change in changes(&before, &after, 0.05) {
            let (least, most) = (change.at_least.unwrap(), change.at_most.unwrap());
            assert!(least > 0.45 && least <= 0.5 && (0.5..0.55).contains(&most), "{change:?}");
            assert_eq!(change.verdict, Verdict::Slower);
        }
        assert!(changes(&after, &before, 0.05).iter().all(|change| change.verdict == Verdict::Faster));
        assert!(changes(&before, &after, 0.6).iter().all(|change| change.verdict == Verdict::Same));
    }
}
