// SPDX-License-Identifier: BSD-3-Clause
//! Whether requests of one trace take longer than those of another, or whether that may be chance.
//!
//! Requests that follow each other are alike, so what is left to chance is not the request but a tenth of a trace: ten
//! blocks of consecutive requests before, ten after. If nothing has changed, which ten of the twenty came after is one
//! choice of 184,756, and all are counted. A change of a percentile by a ratio is excluded if, with what came before
//! stretched by that ratio, few enough choices look as one-sided as what was measured. The interval of a percentile is
//! what is not excluded.
//!
//! Invariant: nothing here is random, and the order of the requests within a block does not matter.

use serde::Serialize;

/// Consecutive requests of a trace are divided into this many blocks.
const BLOCKS: usize = 10;
/// Fewer requests of a trace are not compared.
pub const FEWEST: usize = 2 * BLOCKS;
/// Of comparisons of traces that do not differ, this part at most finds a difference.
pub const FALSE_ALARMS: f64 = 0.01;
/// The parts of the requests that a percentile is not exceeded by.
pub const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
/// A percentile above the median is considered if at least this many requests exceed it.
const BEYOND: usize = 10;
/// Changes by more than this ratio are not told from each other.
const WIDEST: f64 = 1e4;
/// Multiples of it are spread evenly over the units.
const GOLDEN: f64 = 0.618_033_988_749_894_8;
/// To what part of itself the end of an interval is found.
const EXACT: f64 = 1e-3;

/// A percentile of the durations in two traces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The part of the requests that do not take longer: 0.5 for the median.
    pub percentile: f64,
    /// The percentile before.
    pub before: i64,
    /// And after.
    pub after: i64,
    /// By which part of what it was it is more; negative if it is less.
    pub change: f64,
    /// By which part at least; nothing if it may be any less.
    pub at_least: Option<f64>,
    /// By which part at most; nothing if it may be any more.
    pub at_most: Option<f64>,
    /// What that comes to.
    pub verdict: Verdict,
}

/// How a trace differs from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Not by more than may be chance, or than matters.
    #[default]
    Same,
    /// Its requests take longer.
    Slower,
    /// They take less long.
    Faster,
}

impl Verdict {
    /// In a word; none where nothing has changed.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Same => "",
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
        }
    }
}

/// How the durations of requests, in the order of their start, have changed; less than the part `above` does not
/// matter. Nothing if there are fewer than [`FEWEST`] of one of them.
pub fn changes(before: &[i64], after: &[i64], above: f64) -> Vec<Change> {
    let fewest = before.len().min(after.len());
    if fewest < FEWEST {
        return Vec::new();
    }
    let (before, after) = (Durations::new(before), Durations::new(after));
    let beyond = |part: f64| fewest - (fewest as f64 * part).ceil() as usize;
    let looked_at = |part: f64| part == PERCENTILES[0] || beyond(part) >= BEYOND;
    let parts: Vec<f64> = PERCENTILES.into_iter().filter(|part| looked_at(*part)).collect();
    // Each percentile may err on either side; and half is left, because neighbouring blocks are not quite independent.
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

/// From a ratio that holds away to `widest` times it, the last that holds; nothing if all do.
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

/// On which side of what is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    More,
    Less,
}

/// Durations of the requests of a trace. They are known to a unit: where in it each lies is told by an even sequence,
/// so that two seldom equal each other.
struct Durations {
    /// In order.
    all: Vec<f64>,
    /// Of the blocks, each in order.
    blocks: Vec<Vec<f64>>,
}

impl Durations {
    /// Of [`FEWEST`] requests at least.
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

    /// The least duration that this part of them does not exceed.
    fn percentile(&self, part: f64) -> i64 {
        let rank = (self.all.len() as f64 * part).ceil() as usize;
        self.all[rank.clamp(1, self.all.len()) - 1] as i64
    }
}

/// How many of these, which are in order, are no longer than `limit` when stretched by a ratio.
fn within(ordered: &[f64], ratio: f64, limit: f64) -> usize {
    ordered.partition_point(|dur| dur * ratio <= limit)
}

/// The part of a block that exceeds `limit`, in fixed point: sums must not depend on their order.
fn exceeding(block: &[f64], ratio: f64, limit: f64) -> i64 {
    (((block.len() - within(block, ratio, limit)) << 32) / block.len()) as i64
}

/// The part of all choices of blocks in which as many requests or more (or less) exceed the percentile of both traces
/// together as in the blocks of the second trace, if the durations of the first are stretched by `ratio`.
fn chance(before: &Durations, after: &Durations, part: f64, side: Side, ratio: f64) -> f64 {
    let limit = together(before, after, part, ratio);
    let sign = if side == Side::More { 1 } else { -1 };
    let exceed = |of: &Durations, ratio| -> Vec<i64> {
        of.blocks.iter().map(|block| sign * exceeding(block, ratio, limit)).collect()
    };
    as_large(&exceed(before, ratio), &exceed(after, 1.0))
}

/// The percentile of two traces together, of which each counts as much as the other, and the first is stretched.
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

/// The part of all ways to choose [`BLOCKS`] of these two times as many numbers whose sum is as large as that of the
/// second ones, or larger.
fn as_large(first: &[i64], second: &[i64]) -> f64 {
    let measured = second.iter().sum::<i64>();
    let (first, second) = (sums(first), sums(second));
    let (mut as_large, mut all) = (0, 0);
    for (count, some) in first.iter().enumerate() {
        let others = &second[BLOCKS - count];
        all += some.len() * others.len();
        // The larger of one, the less is needed of the other.
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

/// For each count, the sums of all choices of that many of these numbers, in order.
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

/// Two lists in order as one; to each number of the second one is added.
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
        // Only the ten themselves are as large.
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
