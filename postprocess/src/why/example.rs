// SPDX-License-Identifier: BSD-3-Clause
//! Requests to look at: for each cause those with most of it, with the address of the page that shows them.

use std::collections::BTreeSet;

use serde::Serialize;

use super::compare::Data;
use super::event::Events;
use super::request::Request;
use crate::time::Time;

/// Number of requests shown for each cause.
const SHOWN: usize = 3;

/// A request to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// Start.
    pub start: Time,
    /// Duration.
    pub dur: Time,
    /// Thread.
    pub thread: String,
    /// Address of the page that shows it.
    pub address: String,
}

/// Returns, from requests with the time of each cause, those with most time of this one, from different events.
pub fn examples(data: &Data, slowest: &[(u32, Vec<(u32, Time)>)], cause: u32, events: &Events) -> Vec<Example> {
    let time = |sums: &[(u32, Time)]| sums.iter().find(|(its, _)| *its == cause).map(|(_, time)| *time);
    let of = |(number, sums): &(u32, Vec<(u32, Time)>)| Some((time(sums)?, *number));
    let mut those: Vec<(Time, u32)> = slowest.iter().filter_map(of).collect();
    those.sort_by_key(|(time, number)| (std::cmp::Reverse(*time), data.requests[*number as usize].start));
    let mut seen = BTreeSet::new();
    let another = those.iter().filter(|(_, number)| seen.insert(events.of(*number)));
    another.take(SHOWN).map(|(_, number)| example(data, &data.requests[*number as usize])).collect()
}

fn example(data: &Data, request: &Request) -> Example {
    Example {
        start: request.start,
        dur: request.dur(),
        thread: data.timeline.name(request.pid),
        address: address(data, request),
    }
}

/// Returns the address of the page that shows a request, in the page's own form: `#request=PID@START..END`, both in
/// seconds after the base minute.
pub fn address(data: &Data, request: &Request) -> String {
    let Request { pid, start, end } = request;
    format!("{}#request={}@{:.8}..{:.8}", data.page, pid.number(), start.seconds(), end.seconds())
}
