// SPDX-License-Identifier: BSD-3-Clause
//! The numbers by which requests are compared, for the terminal and for the page, which compares others.

use serde::{Deserialize, Serialize};

/// Requests beyond a percentile, at least: of fewer it says nothing but how long one of them took.
pub const BEYOND: usize = 10;

/// The numbers by which requests are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Some must take longer than the others by this part of those, or nothing stands out.
    pub excess_min: f64,
    /// And slow ones by this time than normal ones: so much is usual now and then.
    pub time_min: i64,
    /// Or so often that what they take longer is this part of what all would take if they were like the others.
    pub share_min: f64,
    /// A cause counts that makes this part of the excess at least.
    pub worth: f64,
    /// Causes that are listed.
    pub causes: usize,
    /// Requests that are looked at to tell how many are to blame and where, at most.
    pub looked_at: usize,
    /// Names and CPUs that are said.
    pub names: usize,
    /// Kinds of causes of which it matters on which CPU they happened.
    pub of_cpus: Vec<String>,
    /// How often a cause occurs is said if it is this many times as often, this many times more, and this often at least.
    pub often: [f64; 3],
    /// Causes that the sentence before all tables names at most.
    pub named: usize,
    /// The part of the time that one of them makes at least, but for the first.
    pub named_min: f64,
    /// A percentile is told if this many requests are beyond it.
    pub beyond: usize,
    /// How fast the same work was done.
    pub pace: Pace,
}

/// What tells how fast work was done: a number for each unit of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// In what it is said.
    pub unit: String,
    /// How much of the number is one of these.
    pub scale: f64,
    /// Which part of the time one of these takes; 0 where more of them is faster.
    pub cost: f64,
    /// Work is done at another pace if it takes less than this part of the usual one.
    pub other: f64,
}
