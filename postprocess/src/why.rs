// SPDX-License-Identifier: BSD-3-Clause
//! Why: divides the time of a request into causes, and finds those that slow requests have and normal ones lack.
//!
//! [`mod@request`] finds requests in spans, as they are [`mod@ask`]ed for, [`mod@best`] what to ask for, [`exchange`]
//! the messages between clients and servers, and the [`calls`] that carry them; [`rows`] are the spans, [`lookup`]
//! finds them by time, [`timeline`] is the activity of each thread and each CPU, [`again`] finds waits that are one,
//! [`meter`] has the speed of work, [`rules`] the numbers used, [`waker`] finds who ended waits, [`path`] divides a
//! thread's time into causes along its critical path, [`cause`] names them, [`sweep`] adds them up for each request,
//! [`compare`] sets slow requests against normal ones, [`detail`] looks again at those shown, [`event`] finds slow
//! requests that are one, [`verdict`] puts everything into one sentence. [`change`] decides whether one trace is slower
//! than another, [`mod@diff`] names the causes. [`carry`] has all of it for a page. [`mod@check`] tests the properties.
//! Times are units of 10 ns.
//!
//! Invariant: the causes of a request follow each other without gap or overlap, from its start to its end: their sum is
//! its duration. Unknown time is a cause like the others.

pub mod request;
mod rpc;
pub mod best;
pub mod calls;
pub mod exchange;
pub mod again;
pub mod rows;
pub mod lookup;
mod stolen;
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

/// The question asked of a trace.
#[derive(Clone, Debug)]
pub struct Question {
    /// Definition of a request.
    pub ask: Ask,
    /// Share of the requests that counts as slow: the slowest.
    pub slow: f64,
    /// Range of the requests, ordered by duration, that counts as normal.
    pub normal: Range<f64>,
    /// Minimum excess of slow requests over normal ones; below it nothing stands out.
    pub excess_min: Time,
    /// Number of causes shown.
    pub top: usize,
    /// The page that shows the trace.
    pub page: String,
}

impl Default for Question {
    fn default() -> Question {
        let (slow, normal, page) = (0.01, 0.4..0.6, "page.html".to_string());
        Question { ask: Ask::Best, slow, normal, excess_min: compare::EXCESS_TIME_MIN, top: 10, page }
    }
}

/// Requests, and the reasons why the slow ones were slow. docs/why.schema.json describes its JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Why {
    /// Definition of a request that was used, as a sentence.
    pub asked: String,
    /// The answer in one sentence: the excess of slow requests, and the causes of most of it.
    pub verdict: String,
    /// Number of requests.
    pub count: usize,
    /// Number of further requests that had not ended when the trace did.
    pub unfinished: usize,
    /// Durations of the requests.
    pub durations: Durations,
    /// Requests by duration.
    pub histogram: Vec<Step>,
    /// Time of all requests.
    pub total: Time,
    /// Time of requests that is in no cause: none.
    pub remainder: Time,
    /// Time of all requests by cause, most first.
    pub causes: Vec<Part>,
    /// Number of causes of all requests that are not shown.
    pub left_out: usize,
    /// The slow ones against the normal ones; `None` if there are too few.
    pub compared: Option<Compared>,
}

/// Durations that this share of the requests does not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// Half of them.
    pub median: Time,
    /// 90 of 100.
    pub p90: Time,
    /// 99 of 100.
    pub p99: Time,
    /// 999 of 1000.
    pub p999: Time,
    /// All of them.
    pub longest: Time,
}

/// A step of the histogram. Steps begin at 1, 2 and 5 times a power of ten; none between the first and the last is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The minimum duration.
    pub least: Time,
    /// Number of requests.
    pub count: usize,
}

/// Finds the requests that are asked for, or those of the best guess, in a trace, and divides their time.
///
/// # Errors
/// A sentence, if there are none, or none to compare.
pub fn explain(timeline: &Timeline, question: &Question) -> Result<Why, String> {
    let Found { asked, mut requests, unfinished } = request::find(timeline, &question.ask)?;
    compare::comparable(requests.len(), question)?;
    requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));
    Ok(Why { asked, unfinished: unfinished.len(), ..of_requests(timeline, &requests, question) })
}

/// Divides the time of these requests, ordered by thread and start.
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

/// The step that a duration lies in: 1, 2 or 5, and the power of ten.
fn step_of(dur: Time) -> (i64, i64) {
    let dur = dur.0.max(1);
    let power = 10_i64.pow(dur.ilog10());
    let digit = [5, 2].into_iter().find(|digit| digit * power <= dur).unwrap_or(1);
    (digit, power)
}

/// Histogram of ordered durations.
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
