// SPDX-License-Identifier: BSD-3-Clause
//! Numbers that control the comparison of requests, on the terminal and on the page, which compares other requests.

use serde::{Deserialize, Serialize};

/// Least number of requests beyond a percentile: with fewer, it is just the duration of one of them.
pub const BEYOND: usize = 10;

/// Numbers that control the comparison of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Examined requests must exceed the others by this part of the others, or nothing stands out.
    pub excess_min: f64,
    /// Slow ones must also exceed normal ones by this time, which is usual now and then.
    pub time_min: i64,
    /// Or they must occur so often that their excess is this part of the time that all would take if they were like the
    /// others.
    pub share_min: f64,
    /// Least part of the excess at which a cause counts.
    pub worth: f64,
    /// Number of causes listed.
    pub causes: usize,
    /// Largest number of requests examined to find how many threads are to blame, and where.
    pub looked_at: usize,
    /// Number of names and CPUs shown.
    pub names: usize,
    /// Kinds of causes for which the CPU matters.
    pub of_cpus: Vec<String>,
    /// The frequency of a cause is reported if it is this many times as high, higher by this much, and at least this
    /// high.
    pub often: [f64; 3],
    /// Largest number of causes in the sentence before all tables.
    pub named: usize,
    /// Least share of the time of a cause named there, except for the first.
    pub named_min: f64,
    /// A percentile is reported if this many requests are beyond it.
    pub beyond: usize,
    /// Measure of how fast the same work was done.
    pub pace: Pace,
}

/// Measure of how fast work was done: a number for each unit of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Unit.
    pub unit: String,
    /// Amount of the number that is one unit.
    pub scale: f64,
    /// Part of the time that one unit takes; 0 if more units mean faster work.
    pub cost: f64,
    /// Work is done at another pace if it takes less than this part of the usual one.
    pub other: f64,
}
