// SPDX-License-Identifier: BSD-3-Clause
//! Why: where the time of a request went, and what slow requests have that normal ones lack.
//!
//! [`mod@request`] finds requests in spans, as they are [`mod@ask`]ed for, [`mod@best`] what to ask for, [`exchange`]
//! what clients and servers send to each other in which [`calls`]; [`rows`] are the spans, [`lookup`] finds them
//! by time, [`timeline`] is what each thread and each CPU did, [`again`] which of its waits are one, [`meter`] how fast work was done, [`rules`] by which numbers it goes, [`waker`] who ended waits, [`path`] divides a thread's time into
//! causes along its critical path, [`cause`] names them, [`sweep`] adds them up for each request, [`compare`] sets slow requests against normal ones,
//! [`detail`] looks once more at what is shown, [`event`] says which slow requests are one, [`verdict`] puts it all into one sentence. [`change`] says whether one trace is slower than another, [`mod@diff`]
//! through what. [`carry`] has it all for a page. [`mod@check`] says what must hold. Times are units of 10 ns.
//!
//! Invariant: the causes of a request follow each other without gap or overlap, from its start to its end: their sum is
//! its duration. What is not known is a cause like the others.

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

/// What is asked of a trace.
#[derive(Clone, Debug)]
pub struct Question {
    /// What a request is.
    pub ask: Ask,
    /// The part of them that counts as slow: the slowest.
    pub slow: f64,
    /// Which count as normal, of those ordered by duration: from this part to that.
    pub normal: Range<f64>,
    /// By this much slow ones must take longer than normal ones at least, or nothing stands out.
    pub excess_min: Time,
    /// Causes shown.
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

/// Requests, and what made the slow ones slow. docs/why.schema.json describes its JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Why {
    /// What was taken for a request, as a sentence.
    pub asked: String,
    /// The answer in one sentence: how much longer slow ones take, and the causes that make most of that.
    pub verdict: String,
    /// How many there are.
    pub count: usize,
    /// How many more had begun and not ended when the trace did.
    pub unfinished: usize,
    /// How long they took.
    pub durations: Durations,
    /// Requests by duration.
    pub histogram: Vec<Step>,
    /// Time of all requests, and what of that is in no cause: none.
    pub total: Time,
    /// Time of requests that is in no cause: none.
    pub remainder: Time,
    /// Where the time of all requests went, most first.
    pub causes: Vec<Part>,
    /// Causes of all requests that are not shown.
    pub left_out: usize,
    /// The slow ones against the normal ones; nothing if there are too few.
    pub compared: Option<Compared>,
}

/// Durations that this many of the requests do not exceed.
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
    /// All.
    pub longest: Time,
}

/// A step of the histogram. Steps begin at 1, 2 and 5 times a power of ten; none between the first and the last is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The least duration.
    pub least: Time,
    /// How many.
    pub count: usize,
}

/// Finds the requests that are asked for, or what is the best guess, in a trace, and divides their time.
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

/// Of durations in order.
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
