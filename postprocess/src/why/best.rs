// SPDX-License-Identifier: BSD-3-Clause
//! What to ask of a trace, where nothing is asked.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::exchange::{clients, served, By};
use super::request::{calls, marks, rpcs, runs, Ask, Request};
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
/// A call takes much time if all of its kind take this part of the trace's, all threads together.
const MUCH: i64 = 10;
/// The program that records.
const OURS: &str = "kutrace_control";
/// Of fewer requests nothing is concluded where none were asked for.
const ENOUGH: usize = 20;

/// RPCs, else marks that pair, else of the programs that send and receive the one that does so most; else a program
/// that begins and ends often, the system call that takes most time if that is much, the program whose processes take
/// most time from begin to end, the busiest thread. With its requests, less those of the program that records.
///
/// # Errors
/// A sentence, if no thread runs in the trace.
pub fn best(timeline: &Timeline) -> Result<(Ask, Vec<Request>), String> {
    let rpcs = rpcs(timeline, None);
    if !rpcs.is_empty() {
        return Ok((Ask::Rpc(None), rpcs));
    }
    if let Some((label, found)) = marks(timeline).into_iter().max_by_key(|(_, found)| found.len()) {
        return Ok((Ask::Mark(label), found));
    }
    let program = |request: &Request| timeline.program(request.pid);
    let often = |all| most(all, program, Vec::len).filter(|(_, found)| found.len() >= ENOUGH);
    if let Some((program, found)) = often(clients(timeline, By::Descriptor)) {
        return Ok((Ask::Client(program.to_string()), found));
    }
    if let Some((program, found)) = often(served(timeline, By::Descriptor)) {
        return Ok((Ask::Serve(program.to_string()), found));
    }
    let runs = runs(timeline, |program| !program.starts_with(OURS));
    if let Some((program, found)) = often(runs.clone()) {
        return Ok((Ask::Run(program.to_string()), found));
    }
    let time = |found: &Vec<Request>| found.iter().map(Request::dur).sum::<Time>();
    let much = (timeline.extent.1 - timeline.extent.0) / MUCH;
    let mut called = calls(timeline, |s| {
        let is_call = s.level() == Some(Level::Syscall);
        is_call
            && !IDLING.contains(&timeline.text(s))
            && !s.pid.is_some_and(|pid| timeline.program(pid).starts_with(OURS))
    });
    called.sort_by_key(|(name, _)| *name);
    let called = called
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| (same[0].0, same.iter().map(|(_, request)| *request).collect::<Vec<_>>()));
    let called = called.filter(|(_, found)| found.len() >= ENOUGH && time(found) > much).max_by_key(|(_, f)| time(f));
    if let Some((name, found)) = called {
        return Ok((Ask::Call(timeline.spans.names[name].clone()), found));
    }
    if let Some((program, found)) = most(runs, program, time) {
        return Ok((Ask::Run(program.to_string()), found));
    }
    let busy = |thread: &Thread| thread.runs.iter().map(|run| run.end - run.start).sum::<Time>();
    let busiest = timeline.threads().max_by_key(|(pid, thread)| (busy(thread), Reverse(*pid)));
    let (pid, _) = busiest.ok_or("no requests: no thread runs in the trace")?;
    let range = Request { pid, start: timeline.extent.0, end: timeline.extent.1 };
    Ok((Ask::Range(range), vec![range]))
}

/// The group of most.
fn most<'a, N: Ord>(
    all: Vec<Request>,
    group: impl Fn(&Request) -> &'a str,
    size: impl Fn(&Vec<Request>) -> N,
) -> Option<(&'a str, Vec<Request>)> {
    let mut groups: BTreeMap<&str, Vec<Request>> = BTreeMap::new();
    all.into_iter().for_each(|request| groups.entry(group(&request)).or_default().push(request));
    groups.into_iter().max_by_key(|(_, found)| size(found))
}
