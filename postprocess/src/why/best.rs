// SPDX-License-Identifier: BSD-3-Clause
//! The kind of request that suits a trace best, if none is given.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::exchange::{clients, served, By};
use super::request::{calls, find, marks, runs, Ask, Found, Request};
use super::rpc::rpcs;
use super::timeline::{Thread, Timeline};
use crate::event::number::Level;
use crate::time::Time;

/// Calls in which a thread has nothing to do.
const IDLING: [&str; 10] = [
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "wait4",
    "pause",
    "nanosleep",
    "clock_nanosleep",
];
/// Divisor of the trace's time: a system call takes much time if all its instances, in all threads, take that part.
const MUCH: i64 = 10;
/// The program that records.
const OURS: &str = "kutrace_control";
/// Least number of requests from which to conclude anything if no kind was given.
const ENOUGH: usize = 20;

/// Returns the kind of request that suits a trace best: RPCs, else marks that pair, else those of the program that
/// sends and receives most; else a program that starts and ends often, the system call that takes most time if that is
/// much, the program whose processes take most time from start to end, the busiest thread. The recording program is not
/// chosen unless nothing else runs.
///
/// # Errors
/// A sentence, if no thread runs in the trace.
pub fn best(timeline: &Timeline) -> Result<Ask, String> {
    if !rpcs(timeline, None).requests.is_empty() {
        return Ok(Ask::Rpc(None));
    }
    let marked = marks(timeline).into_iter().filter(|(_, found)| !found.requests.is_empty());
    if let Some((label, _)) = marked.max_by_key(|(_, found)| found.requests.len()) {
        return Ok(Ask::Mark(label));
    }
    let program = |request: &Request| timeline.program(request.pid);
    let often = |all| most(all, program, Vec::len).filter(|(_, found)| found.len() >= ENOUGH);
    if let Some((program, _)) = often(clients(timeline, By::Descriptor).requests) {
        return Ok(Ask::Client(program.to_string()));
    }
    if let Some((program, _)) = often(served(timeline, By::Descriptor).requests) {
        return Ok(Ask::Serve(program.to_string()));
    }
    let runs = runs(timeline, |program| !program.starts_with(OURS)).requests;
    if let Some((program, _)) = often(runs.clone()) {
        return Ok(Ask::Run(program.to_string()));
    }
    let time = |found: &Vec<Request>| found.iter().map(Request::dur).sum::<Time>();
    let much = (timeline.extent.1 - timeline.extent.0) / MUCH;
    let (mut called, _) = calls(timeline, |whole| {
        whole.work.level() == Level::Syscall
            && !IDLING.contains(&timeline.called(whole.name))
            && !whole.pid.is_some_and(|pid| timeline.program(pid).starts_with(OURS))
    });
    called.sort_by_key(|(name, _)| *name);
    let called = called
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| (same[0].0, same.iter().map(|(_, request)| *request).collect::<Vec<_>>()));
    let called = called.filter(|(_, found)| found.len() >= ENOUGH && time(found) > much).max_by_key(|(_, f)| time(f));
    if let Some((name, _)) = called {
        return Ok(Ask::Call(timeline.spans.names[name].clone()));
    }
    if let Some((program, _)) = most(runs, program, time) {
        return Ok(Ask::Run(program.to_string()));
    }
    let busy = |thread: &Thread| thread.runs.iter().map(|run| run.end - run.start).sum::<Time>();
    let is_other = |pid| !timeline.program(pid).starts_with(OURS);
    let busiest = timeline.threads().max_by_key(|(pid, thread)| (is_other(*pid), busy(thread), Reverse(*pid)));
    let (pid, _) = busiest.ok_or("no requests: no thread runs in the trace")?;
    Ok(Ask::Range(Request { pid, start: timeline.extent.0, end: timeline.extent.1 }))
}

/// Returns the requests that suit a trace best, without those of the recording program, unless it alone has some.
///
/// # Errors
/// A sentence, if no thread runs in the trace.
pub fn offered(timeline: &Timeline) -> Result<(Ask, Found), String> {
    let ask = best(timeline)?;
    let found = find(timeline, &ask)?;
    let others = found.clone().of(|pid| !timeline.program(pid).starts_with(OURS));
    Ok((ask, if others.requests.is_empty() { found } else { others }))
}

/// Returns the largest group.
fn most<'a, N: Ord>(
    all: Vec<Request>,
    group: impl Fn(&Request) -> &'a str,
    size: impl Fn(&Vec<Request>) -> N,
) -> Option<(&'a str, Vec<Request>)> {
    let mut groups: BTreeMap<&str, Vec<Request>> = BTreeMap::new();
    all.into_iter().for_each(|request| groups.entry(group(&request)).or_default().push(request));
    groups.into_iter().max_by_key(|(_, found)| size(found))
}
