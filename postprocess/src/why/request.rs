// SPDX-License-Identifier: BSD-3-Clause
//! Requests: which stretches of which threads' time are to be explained.

use std::collections::BTreeMap;

use foldhash::HashMap;
use serde::Serialize;

use super::timeline::{end, Thread, Timeline};
use crate::event::number::{
    is_execution, is_thread, level, Level, EXIT, MARK_A, RPC_REQUEST, RPC_RESPONSE, WAKEUP_ARC,
};
use crate::span::wait::Reason;
use crate::span::{Span, Spans, NONE};

/// Calls that send on a descriptor.
const SENDS: [&str; 8] = ["write", "writev", "send", "sendto", "sendmsg", "sendmmsg", "sendfile", "sendfile64"];
/// Calls that receive on one.
const RECEIVES: [&str; 6] = ["read", "readv", "recv", "recvfrom", "recvmsg", "recvmmsg"];
/// Calls that wait for any of several descriptors.
const POLLS: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
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

/// A stretch of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The thread.
    pub pid: i32,
    /// From when.
    pub start: i64,
    /// Until when.
    pub end: i64,
}

impl Request {
    /// How long it took.
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}

/// What a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    /// Whatever the trace has most to tell of.
    #[default]
    Best,
    /// An RPC: from its request to its response, in one thread; of this method, if there is one.
    Rpc(Option<String>),
    /// From the mark `LABEL` of a thread to its next mark `/LABEL`.
    Mark(String),
    /// Each instance of a system call or fault.
    Call(String),
    /// Each process of this name, from its start to its end.
    Run(String),
    /// A client's: from its send on a descriptor to the next successful receive on it.
    Client(String),
    /// A server's: from what ends its wait for the network, or a receive, to its send.
    Serve(String),
    /// One thread's time, from one moment to another.
    Range(Request),
}

/// Finds requests; what they are, in a sentence.
///
/// # Errors
/// A sentence, if there are none.
pub fn find(spans: &Spans, timeline: &Timeline, ask: &Ask) -> Result<(String, Vec<Request>), String> {
    let (what, found) = match ask {
        Ask::Best => return best(spans, timeline),
        Ask::Rpc(method) => {
            let found = rpcs(spans, method.as_deref());
            (method.as_ref().map_or_else(|| "RPCs".to_string(), |method| format!("RPCs of {method}")), found)
        }
        Ask::Mark(label) => {
            (format!("from mark {label} to mark /{label}"), marks(spans).remove(label).unwrap_or_default())
        }
        Ask::Call(name) => {
            (of_calls(name), calls(spans, |s| text(spans, s) == name).into_iter().map(|(_, request)| request).collect())
        }
        Ask::Run(program) => (of_runs(program), runs(timeline, |name| name == program)),
        Ask::Client(program) => (
            format!("requests of {program}: from a send on a descriptor to the next receive on it"),
            of_program(|by| clients(spans, by), timeline, program),
        ),
        Ask::Serve(program) => (
            format!("requests served by {program}: from their arrival to its send"),
            of_program(|by| served(spans, timeline, by), timeline, program),
        ),
        Ask::Range(range) => (of_thread(timeline, range.pid), within(timeline, range)),
    };
    match found.is_empty() {
        true => Err(format!("no requests: the trace has none of: {what}")),
        false => Ok((what, found)),
    }
}

fn of_calls(name: &str) -> String {
    format!("{name}: each from its start to its return")
}

fn of_runs(program: &str) -> String {
    format!("processes named {program}, from start to end")
}

/// RPCs, else marks that pair, else of the programs that send and receive the one that does so most; else a program that
/// begins and ends often, the system call that takes most time if that is much, the program whose processes take most
/// time from begin to end, the busiest thread.
fn best(spans: &Spans, timeline: &Timeline) -> Result<(String, Vec<Request>), String> {
    let rpcs = rpcs(spans, None);
    if !rpcs.is_empty() {
        return Ok(("RPCs".to_string(), rpcs));
    }
    if let Some((label, found)) = marks(spans).into_iter().max_by_key(|(_, found)| found.len()) {
        return Ok((format!("from mark {label} to mark /{label}"), found));
    }
    let sides: [(&str, Vec<Request>); 2] = [
        ("requests of {}: from a send on a descriptor to the next receive on it", clients(spans, By::Descriptor)),
        ("requests served by {}: from their arrival to its send", served(spans, timeline, By::Descriptor)),
    ];
    let program = |request: &Request| timeline.program(request.pid).to_string();
    for (what, all) in sides {
        if let Some((program, found)) = most(all, program, Vec::len).filter(|(_, found)| found.len() >= ENOUGH) {
            return Ok((what.replace("{}", &program), found));
        }
    }
    let runs = runs(timeline, |program| !program.starts_with(OURS));
    if let Some((program, found)) = most(runs.clone(), program, Vec::len).filter(|(_, found)| found.len() >= ENOUGH) {
        return Ok((of_runs(&program), found));
    }
    let time = |found: &Vec<Request>| found.iter().map(Request::dur).sum::<i64>();
    let much = (timeline.extent.1 - timeline.extent.0) / MUCH;
    let mut called = calls(spans, |s| {
        let is_call = level(s.event as u32) == Level::Syscall;
        is_call && !IDLING.contains(&text(spans, s)) && !timeline.program(s.pid).starts_with(OURS)
    });
    called.sort_by_key(|(name, _)| *name);
    let called = called.chunk_by(|a, b| a.0 == b.0).map(|same| {
        (text_of(spans, same[0].0).to_string(), same.iter().map(|(_, request)| *request).collect::<Vec<_>>())
    });
    let called = called.filter(|(_, found)| found.len() >= ENOUGH && time(found) > much).max_by_key(|(_, f)| time(f));
    if let Some((name, found)) = called {
        return Ok((of_calls(&name), found));
    }
    if let Some((program, found)) = most(runs, program, time) {
        return Ok((of_runs(&program), found));
    }
    let busy = |thread: &Thread| thread.runs.iter().map(|run| run.end - run.start).sum::<i64>();
    let busiest = timeline.threads().max_by_key(|(pid, thread)| (busy(thread), -pid));
    let (pid, _) = busiest.ok_or("no requests: no thread runs in the trace")?;
    let range = Request { pid, start: timeline.extent.0, end: timeline.extent.1 };
    Ok((of_thread(timeline, pid), within(timeline, &range)))
}

/// The group of most.
fn most<N: Ord>(
    all: Vec<Request>,
    group: impl Fn(&Request) -> String,
    size: impl Fn(&Vec<Request>) -> N,
) -> Option<(String, Vec<Request>)> {
    let mut groups: BTreeMap<String, Vec<Request>> = BTreeMap::new();
    all.into_iter().for_each(|request| groups.entry(group(&request)).or_default().push(request));
    groups.into_iter().max_by_key(|(_, found)| size(found))
}

fn of_thread(timeline: &Timeline, pid: i32) -> String {
    format!("thread {}", timeline.name(pid))
}

/// Those of a program; where it uses one descriptor for what it sends and another for what it receives, of any.
fn of_program(find: impl Fn(By) -> Vec<Request>, timeline: &Timeline, program: &str) -> Vec<Request> {
    let one_way = !goes_both_ways(timeline, program);
    let mut found = find(if one_way { By::Thread } else { By::Descriptor });
    found.retain(|request| timeline.program(request.pid) == program);
    found
}

/// Whether a program sends and receives on one descriptor.
fn goes_both_ways(timeline: &Timeline, program: &str) -> bool {
    let calls = Calls::new(timeline.spans);
    let mut ways: HashMap<(i32, i64), Call> = HashMap::default();
    timeline.spans.spans.iter().filter(|s| is_call(s) && timeline.program(s.pid) == program).any(|s| {
        match calls.of(s).filter(|call| matches!(call, Call::Send | Call::Receive)) {
            Some(call) => *ways.entry((s.pid, s.arg)).or_insert(call) != call,
            None => false,
        }
    })
}

/// What a send and a receive must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Thread and descriptor; and the side that the thread is on is known by that.
    Descriptor,
    /// The thread.
    Thread,
}

impl By {
    fn key(self, s: &Span) -> (i32, i64) {
        (s.pid, if self == By::Descriptor { s.arg } else { 0 })
    }
}

fn within(timeline: &Timeline, range: &Request) -> Vec<Request> {
    let (first, last) = timeline.extent;
    let request = Request { start: range.start.max(first), end: range.end.min(last), ..*range };
    let known = timeline.thread(range.pid).is_some() && request.start < request.end;
    known.then_some(request).into_iter().collect()
}

fn text<'a>(spans: &'a Spans, span: &Span) -> &'a str {
    text_of(spans, span.name)
}

fn text_of(spans: &Spans, name: u32) -> &str {
    spans.names.get(name as usize).map_or("", String::as_str)
}

/// From a thread's request to its response of the same RPC; in a trace without responses, to when the thread turns to no
/// RPC.
fn rpcs(spans: &Spans, method: Option<&str>) -> Vec<Request> {
    let mut open: HashMap<(i32, i64), i64> = HashMap::default();
    let mut turned: HashMap<i32, i64> = HashMap::default();
    let (mut found, mut left) = (Vec::new(), Vec::new());
    let is_of = |s: &Span| method.is_none_or(|method| text(spans, s).split(['.', ':']).any(|part| part == method));
    for s in &spans.spans {
        let (pid, id) = (s.pid, s.arg & 0xffff);
        match s.event as u32 {
            RPC_REQUEST if id != 0 && is_of(s) => {
                open.insert((pid, id), s.start);
                turned.insert(pid, s.start);
            }
            RPC_REQUEST if id != 0 => {}
            RPC_REQUEST => {
                left.extend(turned.remove(&pid).map(|start| Request { pid, start, end: end(s) }));
            }
            RPC_RESPONSE => {
                found.extend(open.remove(&(pid, id)).map(|start| Request { pid, start, end: end(s) }));
            }
            _ => {}
        }
    }
    if found.is_empty() {
        left
    } else {
        found
    }
}

/// Pairs of marks by label.
fn marks(spans: &Spans) -> BTreeMap<String, Vec<Request>> {
    let mut open: HashMap<(i32, &str), i64> = HashMap::default();
    let mut found: BTreeMap<String, Vec<Request>> = BTreeMap::new();
    for s in spans.spans.iter().filter(|s| (MARK_A as i32..MARK_A as i32 + 3).contains(&s.event)) {
        let label = text(spans, s).split_once('=').map_or("", |(_, label)| label);
        match label.strip_prefix('/') {
            Some(label) => {
                let pair = open.remove(&(s.pid, label)).map(|start| Request { pid: s.pid, start, end: s.start });
                found.entry(label.to_string()).or_default().extend(pair);
            }
            None => drop(open.insert((s.pid, label), s.start)),
        }
    }
    found.retain(|_, pairs| !pairs.is_empty());
    found
}

/// Each instance of calls and faults, with its name: its pieces, up to the one that returns, or to what the thread does
/// after it, or to the thread's end.
fn calls(spans: &Spans, wanted: impl Fn(&Span) -> bool) -> Vec<(u32, Request)> {
    let mut open: HashMap<i32, (Level, u32, Request)> = HashMap::default();
    let mut found = Vec::new();
    for s in spans.spans.iter().filter(|s| s.pid > 0) {
        if s.event == EXIT as i32 {
            let ended = open.remove(&s.pid).map(|(_, name, request)| (name, Request { end: s.start, ..request }));
            found.extend(ended.filter(|(_, request)| request.end > request.start));
            continue;
        }
        if !is_execution(s.event) {
            continue;
        }
        let at = level(s.event as u32);
        let is_call = matches!(at, Level::Syscall | Level::Trap);
        let goes_on = is_call && open.get(&s.pid).is_some_and(|(_, name, _)| *name == s.name);
        if !goes_on && matches!(at, Level::User | Level::Syscall) {
            // The thread has gone on: a fault is over, a call has returned and it is not known when.
            let over = open.remove(&s.pid).filter(|(at, ..)| *at == Level::Trap);
            found.extend(over.map(|(_, name, request)| (name, request)));
        }
        if is_call && (goes_on || wanted(s)) {
            let new = (at, s.name, Request { pid: s.pid, start: s.start, end: s.start });
            open.entry(s.pid).or_insert(new).2.end = end(s);
            if at == Level::Syscall && s.ret != NONE {
                found.extend(open.remove(&s.pid).map(|(_, name, request)| (name, request)));
            }
        }
    }
    found
}

fn runs(timeline: &Timeline, wanted: impl Fn(&str) -> bool) -> Vec<Request> {
    let mut starts: HashMap<i32, i64> = HashMap::default();
    for s in timeline.spans.spans.iter().filter(|s| is_thread(s.event) && s.pid > 0) {
        if timeline.text(s).rsplit_once('.').is_some_and(|(name, _)| wanted(name)) {
            starts.entry(s.pid).or_insert(s.start);
        }
    }
    let whole = starts.into_iter().filter_map(|(pid, start)| {
        let end = timeline.thread(pid)?.exit?;
        (end > start).then_some(Request { pid, start, end })
    });
    whole.collect()
}

/// From a send on a descriptor to the next receive on it that returns something, of descriptors on which a thread begins
/// by sending.
fn clients(spans: &Spans, by: By) -> Vec<Request> {
    let mut open: HashMap<(i32, i64), i64> = HashMap::default();
    let mut found = Vec::new();
    let calls = Calls::new(spans);
    let mut sides = Sides::new(by);
    for s in spans.spans.iter().filter(|s| is_call(s) && s.arg != NONE) {
        let (key, call) = (by.key(s), calls.of(s));
        match call {
            Some(Call::Send) if sides.is(Side::Client, key, call) => drop(open.entry(key).or_insert(s.start)),
            Some(Call::Receive) if s.ret > 0 && sides.is(Side::Client, key, call) => {
                found.extend(open.remove(&key).map(|start| Request { pid: s.pid, start, end: end(s) }));
            }
            Some(Call::Close) => sides.closed(key),
            _ => {}
        }
        sides.learn(s, call);
        if call == Some(Call::Close) {
            open.remove(&key);
        }
    }
    found
}

/// From the arrival of what a thread receives on a descriptor to the last send on it before the thread receives again on
/// it or waits; of descriptors on which a thread begins by receiving.
///
/// What ends the thread's wait for the network has arrived by then: the first thing that it receives afterwards arrived
/// with the softirq that woke it. The rest had arrived when the thread last asked which descriptors are ready; where it
/// does not ask, when it began to receive.
fn served(spans: &Spans, timeline: &Timeline, by: By) -> Vec<Request> {
    let mut threads: HashMap<i32, Serving> = HashMap::default();
    let mut found = Vec::new();
    let calls = Calls::new(spans);
    let mut sides = Sides::new(by);
    for s in &spans.spans {
        if s.event == WAKEUP_ARC {
            let pid = s.ret as i32;
            if let Some(arrival) = arrival(timeline, pid, s) {
                let serving = threads.entry(pid).or_default();
                serving.flush(pid, &mut found);
                serving.arrival = Some(arrival);
            }
        } else if is_call(s) {
            let (key, call) = (by.key(s), calls.of(s));
            let serving = threads.entry(s.pid).or_default();
            match call {
                Some(Call::Poll) => {
                    serving.flush(s.pid, &mut found);
                    match s.ret {
                        NONE => serving.arrival = None,
                        _ => serving.polled = Some(end(s)),
                    }
                }
                Some(Call::Receive) if s.ret > 0 && sides.is(Side::Server, key, call) => {
                    serving.flush_one(key, &mut found);
                    let start = serving.arrival.take().or(serving.polled).unwrap_or(s.start);
                    serving.open.entry(key.1).or_insert((start, None));
                }
                Some(Call::Send) if s.ret != NONE && sides.is(Side::Server, key, call) => {
                    if let Some((_, sent)) = serving.open.get_mut(&key.1) {
                        *sent = Some(end(s));
                    }
                }
                Some(Call::Accept) => serving.arrival = None,
                Some(Call::Close) => {
                    serving.flush_one(key, &mut found);
                    serving.open.remove(&key.1);
                    sides.closed(key);
                }
                _ => {}
            }
            sides.learn(s, call);
        }
    }
    threads.iter_mut().for_each(|(pid, serving)| serving.flush(*pid, &mut found));
    found.sort_by_key(|request| (request.start, request.end, request.pid));
    found
}

/// When what a wakeup brings had arrived, if the thread waited for the network or another program: the begin of the softirq
/// that brought it.
fn arrival(timeline: &Timeline, pid: i32, arc: &Span) -> Option<i64> {
    let thread = timeline.thread(pid)?;
    let after = thread.waits.partition_point(|&n| end(timeline.span(n)) < arc.start);
    let wait = timeline.span(*thread.waits.get(after)?);
    let is_message = [Reason::Net.event(), Reason::Pipe.event()].contains(&wait.event);
    let bringer = timeline.before(arc.cpu, arc.start + 1).next().filter(|b| level(b.event as u32) == Level::Softirq);
    (is_message && end(wait) == arc.start).then(|| bringer.map_or(arc.start, |b| b.start))
}

/// What a thread that serves has under way.
#[derive(Debug, Default)]
struct Serving {
    /// When what it receives next arrived, if it was woken for that.
    arrival: Option<i64>,
    /// When it last was told which descriptors are ready.
    polled: Option<i64>,
    /// By descriptor: when a request arrived, and when it was last sent an answer.
    open: HashMap<i64, (i64, Option<i64>)>,
}

impl Serving {
    /// What is answered is over.
    fn flush(&mut self, pid: i32, found: &mut Vec<Request>) {
        self.polled = None;
        self.open.retain(|_, (start, sent)| {
            found.extend(sent.map(|end| Request { pid, start: *start, end }));
            sent.is_none()
        });
    }

    fn flush_one(&mut self, (pid, descriptor): (i32, i64), found: &mut Vec<Request>) {
        if let Some(&(start, Some(end))) = self.open.get(&descriptor) {
            found.push(Request { pid, start, end });
            self.open.remove(&descriptor);
        }
    }
}

/// What a call does with its descriptor, as far as requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Send,
    Receive,
    Poll,
    Close,
    Connect,
    Accept,
}

/// What the names of a trace stand for.
#[derive(Debug)]
struct Calls(Vec<Option<Call>>);

impl Calls {
    fn new(spans: &Spans) -> Calls {
        let call = |name: &String| match name.as_str() {
            name if SENDS.contains(&name) => Some(Call::Send),
            name if RECEIVES.contains(&name) => Some(Call::Receive),
            name if POLLS.contains(&name) => Some(Call::Poll),
            "close" => Some(Call::Close),
            "connect" => Some(Call::Connect),
            "accept" | "accept4" => Some(Call::Accept),
            _ => None,
        };
        Calls(spans.names.iter().map(call).collect())
    }

    fn of(&self, span: &Span) -> Option<Call> {
        self.0.get(span.name as usize).copied().flatten()
    }
}

/// On which side of a descriptor a thread is: the client's if it connected it, or did not accept it and began by sending.
#[derive(Debug)]
struct Sides {
    by: By,
    known: HashMap<(i32, i64), Side>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl Sides {
    fn new(by: By) -> Sides {
        Sides { by, known: HashMap::default() }
    }

    fn is(&mut self, side: Side, key: (i32, i64), call: Option<Call>) -> bool {
        let begins = if call == Some(Call::Send) { Side::Client } else { Side::Server };
        self.by == By::Thread || *self.known.entry(key).or_insert(begins) == side
    }

    fn learn(&mut self, s: &Span, call: Option<Call>) {
        match call {
            Some(Call::Connect) => drop(self.known.insert((s.pid, s.arg), Side::Client)),
            Some(Call::Accept) if s.ret >= 0 => drop(self.known.insert((s.pid, s.ret), Side::Server)),
            _ => {}
        }
    }

    fn closed(&mut self, key: (i32, i64)) {
        self.known.remove(&key);
    }
}

fn is_call(s: &Span) -> bool {
    s.pid > 0 && is_execution(s.event) && level(s.event as u32) == Level::Syscall
}
