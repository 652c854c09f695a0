// SPDX-License-Identifier: BSD-3-Clause
//! Properties of the causes of every request that must hold for any trace.

use super::cause::Causes;
use super::path::path;
use super::request::{find, Ask, Request};
use super::sweep::{sweep, Sum};
use super::timeline::Timeline;
use crate::time::Time;

/// Largest number of violations reported; the rest is dropped.
const SHOWN: usize = 20;

/// Divides the time of each request on its own and checks the result against the sums over all requests. Returns a
/// sentence for each violation of:
///
/// * The parts of a request follow each other without gap or overlap, from its start to its end.
/// * Their sums by cause equal those of [`sweep`], and all together the request's duration.
///
/// # Errors
/// A sentence, if the trace has no such requests.
pub fn check(timeline: &Timeline, ask: &Ask) -> Result<Vec<String>, String> {
    let mut requests = find(timeline, ask)?.requests;
    requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));
    Ok(check_requests(timeline, &requests))
}

/// Like [`check`], for requests ordered by thread and start.
pub fn check_requests(timeline: &Timeline, requests: &[Request]) -> Vec<String> {
    let mut causes = Causes::default();
    let mut all: Vec<Vec<(u32, Sum)>> = Vec::with_capacity(requests.len());
    sweep(timeline, &mut causes, requests, |_, _, sums| all.push(sums.to_vec()));
    let mut found = Vec::new();
    for (request, sums) in requests.iter().zip(&all) {
        if found.len() < SHOWN {
            found.extend(wrong(timeline, &mut causes, request, sums));
        }
    }
    found
}

fn wrong(timeline: &Timeline, causes: &mut Causes, request: &Request, sums: &[(u32, Sum)]) -> Option<String> {
    let Request { pid, start, end } = *request;
    let said = |fact: String| Some(format!("thread {pid} from {start} to {end}: {fact}"));
    let mut at = start;
    let mut alone: Vec<(u32, Time)> = Vec::new();
    for part in path(timeline, causes, request) {
        if part.start != at || part.end <= part.start {
            return said(format!("a part from {} to {} follows one that ends at {at}", part.start, part.end));
        }
        at = part.end;
        match alone.iter_mut().find(|(cause, _)| *cause == part.cause) {
            Some((_, time)) => *time += part.end - part.start,
            None => alone.push((part.cause, part.end - part.start)),
        }
    }
    if at != end {
        return said(format!("its parts end at {at}"));
    }
    let mut together: Vec<(u32, Time)> =
        sums.iter().map(|(cause, sum)| (*cause, sum.time)).filter(|s| s.1 != Time::ZERO).collect();
    together.sort_unstable();
    alone.sort_unstable();
    if alone != together {
        return said(format!("alone its causes are {alone:?}, together with others {together:?}"));
    }
    let sum: Time = together.iter().map(|(_, time)| *time).sum();
    (sum != end - start).then(|| said(format!("its causes add up to {sum} of {}", end - start))).flatten()
}
