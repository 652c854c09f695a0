// SPDX-License-Identifier: BSD-3-Clause
//! Why: divides the time of a request into causes, and finds those that slow requests have and normal ones lack.
//!
//! Requests and spans: [`mod@request`] finds requests of a given kind in the spans, and [`mod@best`] chooses the kind
//! if none is given. [`exchange`] finds the requests that clients and servers send each other, through which [`calls`].
//! [`rows`] are the spans, [`lookup`] finds them by time, and [`timeline`] records what each thread and each CPU did.
//! [`again`] joins waits that a timeout split, [`meter`] measures how fast work was done, [`files`] names the files of
//! descriptors, and [`waker`] finds who ended a wait.
//!
//! Causes: [`path`] divides a thread's time into causes along its critical path, [`cause`] names them, [`sweep`] adds
//! them up for each request. [`compare`] sets slow requests against normal ones by the numbers in [`rules`], [`detail`]
//! takes a closer look at the causes that are shown, [`event`] groups slow requests with a common origin, and
//! [`verdict`] puts it all into one sentence.
//!
//! [`change`] decides whether one trace is slower than another, [`mod@diff`] finds the causes. [`carry`] stores
//! everything for a page. [`mod@check`] states what must hold. Times are units of 10 ns.
//!
//! Invariant: the causes of a request follow each other without gap or overlap, from its start to its end: their sum is
//! its duration. Unknown time is a cause like any other.

pub mod request;
mod rpc;
pub mod best;
pub mod calls;
pub mod exchange;
pub mod again;
pub mod rows;
pub mod lookup;
mod stolen;
pub mod files;
pub mod timeline;
pub mod rules;
pub mod meter;
pub mod cause;
pub mod message;
pub mod waker;
pub mod path;
pub mod sweep;
pub mod compare;
pub mod event;
pub mod example;
pub mod detail;
mod verdict;
pub mod change;
pub mod diff;
pub mod check;
pub mod carry;

use std::ops::Range;

use serde::Serialize;

use crate::time::Time;
use cause::Causes;
use compare::{Compared, Data, Part, Totals};
use request::{Ask, Found, Request};
use sweep::{sweep_together, Sum};
pub use timeline::Timeline;

/// A question about a trace.
#[derive(Clone, Debug)]
pub struct Question {
    /// Kind of request.
    pub ask: Ask,
    /// Part of the requests that counts as slow: the slowest ones.
    pub slow: f64,
    /// Range of requests, ordered by duration, that counts as normal; both ends are parts of all.
    pub normal: Range<f64>,
    /// Least time by which slow requests must exceed normal ones; otherwise nothing stands out.
    pub excess_min: Time,
    /// Number of causes shown.
    pub top: usize,
    /// Page that shows the trace.
    pub page: String,
}

impl Default for Question {
    fn default() -> Question {
        let (slow, normal, page) = (0.01, 0.4..0.6, "page.html".to_string());
        Question { ask: Ask::Best, slow, normal, excess_min: compare::EXCESS_TIME_MIN, top: 10, page }
    }
}

/// Requests, and what made the slow ones slow. docs/why.schema.json describes the JSON form.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Why {
    /// Kind of request, as a sentence.
    pub asked: String,
    /// The answer in one sentence: the excess of slow requests, and the causes of most of it.
    pub verdict: String,
    /// Number of requests.
    pub count: usize,
    /// Number of further requests that had started but not ended when the trace ended.
    pub unfinished: usize,
    /// Durations of the requests.
    pub durations: Durations,
    /// Requests by duration.
    pub histogram: Vec<Step>,
    /// Time of all requests.
    pub total: Time,
    /// Time of requests that belongs to no cause: always 0.
    pub remainder: Time,
    /// Causes of the time of all requests, most first.
    pub causes: Vec<Part>,
    /// Number of causes of all requests that are not shown.
    pub left_out: usize,
    /// Slow requests against normal ones; `None` if there are too few requests.
    pub compared: Option<Compared>,
}

/// Percentiles of the durations: each is not exceeded by the given part of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// Half of the requests.
    pub median: Time,
    /// 90 of 100 requests.
    pub p90: Time,
    /// 99 of 100 requests.
    pub p99: Time,
    /// 999 of 1000 requests.
    pub p999: Time,
    /// All requests.
    pub longest: Time,
}

/// A step of the histogram. Steps begin at 1, 2 and 5 times a power of ten; none between the first and the last is
/// missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Least duration in the step.
    pub least: Time,
    /// Number of requests.
    pub count: usize,
}

/// Finds requests of the given kind in a trace, or of the most suitable kind if none is given, and divides their time.
///
/// # Errors
/// A sentence, if the trace has no such requests or none that can be compared.
pub fn explain(timeline: &Timeline, question: &Question) -> Result<Why, String> {
    let Found { asked, mut requests, unfinished } = request::find(timeline, &question.ask)?;
    compare::comparable(requests.len(), question)?;
    requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));
    Ok(Why { asked, unfinished: unfinished.len(), ..of_requests(timeline, &requests, question) })
}

/// Divides the time of `requests`, which are ordered by thread and start.
fn of_requests(timeline: &Timeline, requests: &[Request], question: &Question) -> Why {
    let mut causes = Causes::default();
    let mut all = Totals::default();
    let mut still = Vec::with_capacity(requests.len());
    let each = |(all, still): &mut (Totals, Vec<Time>), causes: &Causes, n: usize, sums: &[(u32, Sum)]| {
        all.add(requests[n].dur(), sums);
        still.push(compare::stood_still(causes, sums));
    };
    let done = |(totals, times): (Totals, Vec<Time>), numbers: &[u32]| {
        all.add_all(&totals, numbers);
        still.extend(times);
    };
    let blamed = sweep_together(timeline, &mut causes, requests, Default::default, each, done);
    let by_duration = compare::order(requests, &[]);
    let total = requests.iter().map(Request::dur).sum::<Time>();
    let data = Data { timeline, requests, page: &question.page, top: question.top };
    let compared = compare::compare(&data, &mut causes, question, &still);
    let (parts, left_out) = compare::parts(&data, &causes, &all, &blamed);
    let duration =
        |part: usize| requests[by_duration[(requests.len() * part).div_ceil(1000).max(1) - 1] as usize].dur();
    Why {
        verdict: verdict::sentence(&parts, compared.as_ref()),
        count: requests.len(),
        durations: Durations {
            median: duration(500),
            p90: duration(900),
            p99: duration(990),
            p999: duration(999),
            longest: duration(1000),
        },
        histogram: histogram(by_duration.iter().map(|&n| requests[n as usize].dur())),
        total,
        remainder: total - all.divided(),
        causes: parts,
        left_out,
        compared,
        ..Why::default()
    }
}

/// Returns the step that a duration lies in: 1, 2 or 5, and the power of ten.
fn step_of(dur: Time) -> (i64, i64) {
    let dur = dur.0.max(1);
    let power = 10_i64.pow(dur.ilog10());
    let digit = [5, 2].into_iter().find(|digit| digit * power <= dur).unwrap_or(1);
    (digit, power)
}

/// Returns the histogram of durations that are in order.
fn histogram(durations: impl Iterator<Item = Time>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for dur in durations {
        let (digit, power) = step_of(dur);
        let least = Time(digit * power);
        while let Some(last) = steps.last().filter(|step| step.least < least) {
            let next = match step_of(last.least) {
                (2, power) => 5 * power,
                (digit, power) => 2 * digit * power,
            };
            steps.push(Step { least: Time(next), count: 0 });
        }
        match steps.last_mut() {
            Some(step) => step.count += 1,
            None => steps.push(Step { least, count: 1 }),
        }
    }
    steps
}
