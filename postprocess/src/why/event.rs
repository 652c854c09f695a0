// SPDX-License-Identifier: BSD-3-Clause
//! Events: one origin makes several requests slow. Two slow requests belong to one event if they share half of their
//! time, or if the longest parts of both have the same cause at the same time.

use std::collections::BTreeMap;

use foldhash::HashMap;
use serde::Serialize;

use super::cause::Causes;
use super::compare::Data;
use super::example::address;
use super::path::{path, Part};
use super::request::Request;
use crate::time::Time;

/// Some slow requests, represented by the longest of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Start of that request.
    pub start: Time,
    /// Its duration.
    pub dur: Time,
    /// Its thread.
    pub thread: String,
    /// Number of requests in the event.
    pub requests: usize,
    /// Cause of its longest part, in words.
    pub cause: String,
    /// Length of that part.
    pub time: Time,
    /// Address of the page that shows the request.
    pub address: String,
}

/// All events of some requests.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Events with the longest requests, longest first.
    pub list: Vec<Event>,
    /// Number of all events.
    pub count: usize,
    /// Event of each request, both by number.
    of: HashMap<u32, usize>,
}

/// A slow request and its longest part.
struct Slow {
    number: u32,
    request: Request,
    part: Option<Part>,
}

impl Events {
    /// Finds the events of these requests, given by number; lists as many of them as causes are shown.
    pub fn new(data: &Data, causes: &mut Causes, numbers: impl Iterator<Item = u32>) -> Events {
        let mut slow: Vec<Slow> = numbers
            .map(|number| {
                let request = data.requests[number as usize];
                let parts = path(data.timeline, causes, &request);
                let part = parts.into_iter().max_by_key(|part| (part.end - part.start, std::cmp::Reverse(part.start)));
                Slow { number, request, part }
            })
            .collect();
        slow.sort_by_key(|slow| (slow.request.start, slow.number));
        let event = grouped(&slow);
        // For each first request of an event, the event's longest request and its number of requests.
        let mut longest: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (n, &first) in event.iter().enumerate() {
            let (most, requests) = longest.entry(first).or_insert((n, 0));
            *requests += 1;
            if slow[n].request.dur() > slow[*most].request.dur() {
                *most = n;
            }
        }
        let of = slow.iter().zip(&event).map(|(slow, &first)| (slow.number, first)).collect();
        let mut longest: Vec<(usize, usize)> = longest.into_values().collect();
        let count = longest.len();
        longest.sort_by_key(|&(n, _)| std::cmp::Reverse(slow[n].request.dur()));
        longest.truncate(data.top);
        let told = |(n, requests): (usize, usize)| {
            let Slow { request, part, .. } = &slow[n];
            let culprit = part.and_then(|part| part.culprit).map(|pid| data.timeline.name(pid));
            let cause = part.map(|part| causes.text(part.cause, data.timeline, culprit.as_deref()));
            Event {
                start: request.start,
                dur: request.dur(),
                thread: data.timeline.name(request.pid),
                requests,
                cause: cause.unwrap_or_default(),
                time: part.map_or(Time::ZERO, |part| part.end - part.start),
                address: address(data, request),
            }
        };
        Events { list: longest.into_iter().map(told).collect(), count, of }
    }

    /// Returns the event of a request; the request's own number if it belongs to no event.
    pub fn of(&self, number: u32) -> usize {
        self.of.get(&number).copied().unwrap_or(number as usize)
    }
}

/// Returns, for each request in the order of their starts, the first request of its event.
fn grouped(slow: &[Slow]) -> Vec<usize> {
    let mut first: Vec<usize> = (0..slow.len()).collect();
    let mut under_way: Vec<usize> = Vec::new();
    for n in 0..slow.len() {
        under_way.retain(|&other| slow[other].request.end > slow[n].request.start);
        for &other in under_way.iter().filter(|&&other| slow[n].is_of_one_with(&slow[other])) {
            let (a, b) = (root(&mut first, n), root(&mut first, other));
            first[a.max(b)] = a.min(b);
        }
        under_way.push(n);
    }
    (0..slow.len()).map(|n| root(&mut first, n)).collect()
}

fn root(first: &mut [usize], mut n: usize) -> usize {
    while first[n] != n {
        first[n] = first[first[n]];
        n = first[n];
    }
    n
}

impl Slow {
    fn is_of_one_with(&self, other: &Slow) -> bool {
        let (a, b) = (&self.request, &other.request);
        let common = a.end.min(b.end) - a.start.max(b.start);
        let same =
            self.part.zip(other.part).is_some_and(|(a, b)| a.cause == b.cause && a.start < b.end && b.start < a.end);
        same || common * 2 >= a.dur().max(b.dur())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Pid;

    fn slow(number: u32, (start, end): (i64, i64), (cause, from, to): (u32, i64, i64)) -> Slow {
        let request = Request { pid: Pid::new(7), start: Time(start), end: Time(end) };
        let (start, end) = (Time(from), Time(to));
        Slow { number, request, part: Some(Part { start, end, cpu: None, culprit: None, cause, work: 0 }) }
    }

    #[test]
    fn requests_are_of_one_event_if_they_share_half_of_their_time_or_their_longest_part() {
        let all = [
            slow(0, (0, 100), (1, 10, 60)),
            // Half of the time of both.
            slow(1, (50, 150), (2, 100, 150)),
            // The same part as in that one.
            slow(2, (140, 400), (2, 145, 300)),
            // A short one within a long one, for another reason.
            slow(3, (200, 220), (3, 201, 219)),
            // The same cause at another time.
            slow(4, (390, 500), (2, 400, 490)),
        ];
        assert_eq!(grouped(&all), [0, 0, 0, 3, 4]);
        assert_eq!(grouped(&[]), [0; 0]);
    }
}
