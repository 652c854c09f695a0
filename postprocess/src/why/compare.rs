// SPDX-License-Identifier: BSD-3-Clause
//! Slow requests against normal ones: by how much each cause is larger, and in how many of them it occurs.

use foldhash::HashMap;
use serde::Serialize;

use super::cause::Cause;
use super::path::Part;
use super::request::Request;
use super::timeline::Timeline;

/// Slow requests, at least.
const FEWEST: usize = 5;
/// Slow ones must take longer than normal ones by this part of those, or nothing stands out.
const LEAST: f64 = 0.2;
/// A cause counts that makes this part of the excess at least.
const WORTH: f64 = 0.02;
/// Requests shown for each cause.
const SHOWN: usize = 3;

/// Time by cause.
pub type Sums = HashMap<Cause, i64>;

/// Slow requests against normal ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// How many slow ones, and their mean duration.
    pub slow: (usize, f64),
    /// How many normal ones, and their mean duration.
    pub normal: (usize, f64),
    /// What the slow ones have more of, most first; none if nothing stands out.
    pub causes: Vec<Excess>,
}

/// A cause, and how much time went into it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Excess {
    /// The cause.
    pub cause: String,
    /// Time of it in a slow request more than in a normal one; or of all requests, in each.
    pub time: f64,
    /// That as a part of the whole excess, or of all time.
    pub share: f64,
    /// In how many of the slow ones it is; or in how many requests.
    pub in_slow: usize,
    /// In how many of the normal ones.
    pub in_normal: usize,
    /// Slow requests with most of it: start, duration, thread.
    pub examples: Vec<(i64, i64, i32)>,
}

/// The time of each cause.
pub fn sums(parts: &[Part]) -> Sums {
    let mut sums = Sums::default();
    for part in parts {
        *sums.entry(part.cause).or_default() += part.end - part.start;
    }
    sums
}

/// Where the time of all went.
pub fn totals(all: &[Sums], timeline: &Timeline) -> Vec<Excess> {
    let total: i64 = all.iter().flat_map(|sums| sums.values()).sum();
    let mean = means(all.iter());
    let mut causes: Vec<Excess> = mean
        .iter()
        .map(|(cause, &(time, count))| Excess {
            cause: cause.text(timeline),
            time,
            share: time * all.len() as f64 / (total.max(1) as f64),
            in_slow: count,
            ..Excess::default()
        })
        .collect();
    causes.sort_by(|a, b| b.time.total_cmp(&a.time).then_with(|| a.cause.cmp(&b.cause)));
    causes
}

/// Compares the `slow` part of requests, ordered by duration, with those in the middle; nothing of too few.
pub fn compare(requests: &[Request], all: &[Sums], timeline: &Timeline, slow: f64) -> Option<Compared> {
    let count = ((requests.len() as f64 * slow).ceil() as usize).max(FEWEST);
    if requests.len() < 4 * FEWEST {
        return None;
    }
    // As many normal ones as make a fair mean: those between the 30 and the 60 of a hundred.
    let middle = requests.len() * 3 / 10..requests.len() * 6 / 10;
    let rest = requests.len() - count.min(requests.len() - middle.end);
    let mean = |range: std::ops::Range<usize>| {
        let sum: i64 = requests[range.clone()].iter().map(Request::dur).sum();
        (range.len(), sum as f64 / range.len() as f64)
    };
    let (slow, normal) = (mean(rest..requests.len()), mean(middle.clone()));
    let excess = slow.1 - normal.1;
    let mut compared = Compared { slow, normal, causes: Vec::new() };
    if excess < LEAST * normal.1 {
        return Some(compared);
    }
    let (of_slow, of_normal) = (means(all[rest..].iter()), means(all[middle].iter()));
    for (cause, &(time, in_slow)) in &of_slow {
        let (usual, in_normal) = of_normal.get(cause).copied().unwrap_or_default();
        let share = (time - usual) / excess;
        if share >= WORTH {
            let examples = examples(&requests[rest..], &all[rest..], cause);
            let cause = cause.text(timeline);
            compared.causes.push(Excess { cause, time: time - usual, share, in_slow, in_normal, examples });
        }
    }
    compared.causes.sort_by(|a, b| b.time.total_cmp(&a.time).then_with(|| a.cause.cmp(&b.cause)));
    Some(compared)
}

/// The mean time of each cause, and in how many it is.
fn means<'a>(all: impl ExactSizeIterator<Item = &'a Sums>) -> HashMap<Cause, (f64, usize)> {
    let count = all.len().max(1) as f64;
    let mut means: HashMap<Cause, (f64, usize)> = HashMap::default();
    for (cause, &time) in all.flatten() {
        let (sum, count) = means.entry(*cause).or_default();
        *sum += time as f64;
        *count += 1;
    }
    means.values_mut().for_each(|(sum, _)| *sum /= count);
    means
}

fn examples(requests: &[Request], all: &[Sums], cause: &Cause) -> Vec<(i64, i64, i32)> {
    let mut those: Vec<_> = requests.iter().zip(all).filter_map(|(r, s)| Some((*s.get(cause)?, r))).collect();
    those.sort_by_key(|(time, r)| (std::cmp::Reverse(*time), r.start));
    those.iter().take(SHOWN).map(|(_, r)| (r.start, r.dur(), r.pid)).collect()
}
