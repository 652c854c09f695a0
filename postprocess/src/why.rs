// SPDX-License-Identifier: BSD-3-Clause
//! Why: where the time of a request went, and what slow requests have that normal ones lack.
//!
//! [`mod@request`] finds requests in spans, [`timeline`] is what each thread and each CPU did, [`path`] divides a request's
//! time into causes along its critical path, [`cause`] names them, [`compare`] sets slow requests against normal ones,
//! [`text`] prints it. Times are units of 10 ns.
//!
//! Invariant: the causes of a request follow each other without gap or overlap, from its start to its end: their sum is
//! its duration. What is not known is a cause like the others.

pub mod request;
pub mod timeline;
pub mod path;
pub mod cause;
pub mod compare;
pub mod text;

use serde::Serialize;

use compare::{Compared, Excess};
use request::{Ask, Request};
pub use timeline::Timeline;

pub use cause::Cause;

/// Requests, and what made the slow ones slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Why {
    /// What was taken for a request, as a sentence.
    pub asked: String,
    /// How many there are.
    pub count: usize,
    /// Durations: the median, 90, 99 and 99.9 percent, and the longest.
    pub percentiles: [i64; 5],
    /// Requests by duration: the least duration of each step, and how many; steps double.
    pub histogram: Vec<(i64, usize)>,
    /// Where the time of all requests went, most first.
    pub causes: Vec<Excess>,
    /// The slow ones against the normal ones.
    pub compared: Option<Compared>,
}

/// Finds the requests that are asked for, or what is the best guess, in a trace, and divides their time; `slow` is the share of
/// them that counts as slow.
///
/// # Errors
/// A sentence, if there are none.
pub fn explain(timeline: &Timeline, ask: &Ask, slow: f64) -> Result<Why, String> {
    let (asked, mut requests) = request::find(timeline.spans, timeline, ask)?;
    requests.sort_by_key(|r| (r.end - r.start, r.start));
    let all: Vec<_> = requests.iter().map(|r| compare::sums(&path::path(timeline, r))).collect();
    Ok(Why {
        asked,
        count: requests.len(),
        percentiles: [500, 900, 990, 999, 1000].map(|part| quantile(&requests, part)),
        histogram: histogram(&requests),
        causes: compare::totals(&all, timeline),
        compared: compare::compare(&requests, &all, timeline, slow),
    })
}

/// The duration that `part` of a thousand do not exceed; of requests ordered by duration, of which there is one at least.
fn quantile(requests: &[Request], part: usize) -> i64 {
    let nth = (requests.len() * part).div_ceil(1000).max(1) - 1;
    requests[nth].dur()
}

fn histogram(requests: &[Request]) -> Vec<(i64, usize)> {
    let mut steps: Vec<(i64, usize)> = Vec::new();
    for r in requests {
        let least = 1 << r.dur().max(1).ilog2();
        match steps.last_mut().filter(|(step, _)| *step == least) {
            Some((_, count)) => *count += 1,
            None => steps.push((least, 1)),
        }
    }
    steps
}
