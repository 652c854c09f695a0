// SPDX-License-Identifier: BSD-3-Clause
//! Requests and the critical paths of their threads, as columns after those of the spans: the page adds up causes over
//! any of the requests, from what was computed once.
//!
//! Nearly every part ends where the next span of its CPU starts, and to say so takes few bytes.
//!
//! A page without requests has nothing of this, and a reader that does not know it finds the spans as before.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::pack::{self, Effort};

/// Requests, by thread and start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// What was taken for a request, as a sentence.
    pub asked: String,
    /// How many more had begun and not ended.
    pub unfinished: usize,
    /// The causes, by number.
    pub causes: Vec<CauseText>,
    /// Threads that have requests or that causes are about, by number.
    pub threads: BTreeMap<u32, String>,
    /// The slow ones and the normal ones, among all ordered by duration; none if there are too few.
    pub sides: Option<[Range<usize>; 2]>,
    /// Whether that is by their durations without the time in which CPUs stood still, which is told apart.
    pub apart: bool,
    /// What they are compared by.
    pub rules: Rules,
    /// The columns, in the order of [`Column::ALL`].
    pub columns: [Vec<i64>; Column::ALL.len()],
}

/// The numbers by which requests are compared: those that the terminal goes by.
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

/// A cause in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseText {
    /// What sort of cause it is.
    pub kind: String,
    /// The words; or those before the program to blame, the program, and those after it, where one of its threads can
    /// be named in its place.
    pub text: Vec<String>,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Column {
    /// Of each request: its thread.
    Pid,
    /// Its start, as the difference to the one before, 0 before the first.
    Start,
    /// Its duration.
    Dur,
    /// Of each run of requests that overlap, of one thread: the parts of the thread's path from the start of the first
    /// to the end of the last.
    Parts,
    /// Of each part, which begins where the one before it ends, where it ends: with the start of this span, counting
    /// those of its CPU that start after it begins, from one; 0 if that is not where it ends.
    Steps,
    /// Of each of the latter: its duration.
    Length,
    /// Of each part: its cause.
    Cause,
    /// Its CPU plus one, 0 for none.
    Cpu,
    /// The thread to blame plus one, 0 for none but the request's own.
    Culprit,
    /// What was counted meanwhile, of which [`Pace`] tells how fast it was done; 0 for nothing.
    Work,
}

impl Column {
    /// All, in the order they are stored.
    pub const ALL: [Self; 10] = [
        Self::Pid,
        Self::Start,
        Self::Dur,
        Self::Parts,
        Self::Steps,
        Self::Length,
        Self::Cause,
        Self::Cpu,
        Self::Culprit,
        Self::Work,
    ];
}

/// Where a column lies in the data, as [`super::columns::Part`] says it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    field: Column,
    rows: usize,
    width: usize,
    wide: usize,
    offset: usize,
    bytes: usize,
}

/// What the page's description of its data says of requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
    asked: String,
    #[serde(default)]
    unfinished: usize,
    causes: Vec<CauseText>,
    threads: BTreeMap<u32, String>,
    sides: Option<[Range<usize>; 2]>,
    #[serde(default)]
    apart: bool,
    #[serde(default)]
    rules: Rules,
    columns: Vec<Stored>,
}

impl Requests {
    /// Puts the columns after `data`; what there is to say about them.
    pub(super) fn encode(&self, data: &mut Vec<u8>) -> Carried {
        let packed = pack::on_all_cpus(&self.columns, |values| pack::pack(values, Effort::Usual));
        let mut columns = Vec::new();
        for ((field, values), packed) in Column::ALL.into_iter().zip(&self.columns).zip(packed) {
            let (offset, bytes) = (data.len(), packed.bytes.len());
            columns.push(Stored { field, rows: values.len(), width: packed.width, wide: packed.wide, offset, bytes });
            data.extend_from_slice(&packed.bytes);
        }
        let Requests { asked, unfinished, causes, threads, sides, apart, rules, .. } = self.clone();
        Carried { asked, unfinished, causes, threads, sides, apart, rules, columns }
    }
}
