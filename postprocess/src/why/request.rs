// SPDX-License-Identifier: BSD-3-Clause
//! Requests: which stretches of which threads' time are to be explained.

use std::collections::BTreeMap;

use foldhash::HashMap;
use serde::Serialize;

use super::timeline::{end, Timeline};
use crate::event::number::{is_execution, is_thread, level, Level, MARK_A, RPC_REQUEST, RPC_RESPONSE, WAKEUP_ARC};
use crate::line::count;
use crate::span::wait::Reason;
use crate::span::{Span, Spans, NONE};

/// Calls that send on a descriptor.
const SENDS: [&str; 6] = ["write", "writev", "send", "sendto", "sendmsg", "sendmmsg"];
/// Calls that receive on one.
const RECEIVES: [&str; 6] = ["read", "readv", "recv", "recvfrom", "recvmsg", "recvmmsg"];
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
        Ask::Call(name) => (format!("{name}: each from its start to its return"), calls(spans, name)),
        Ask::Run(program) => (format!("processes named {program}, from start to end"), runs(timeline, program)),
        Ask::Client(program) => (
            format!("requests of {program}: from a send on a descriptor to the next receive on it"),
            of_program(clients(spans), timeline, program),
        ),
        Ask::Serve(program) => (
            format!("requests served by {program}: from their arrival to its send"),
            of_program(served(spans, timeline), timeline, program),
        ),
        Ask::Range(range) => (format!("thread {}", timeline.name(range.pid)), within(timeline, range)),
    };
    match found.is_empty() {
        true => Err(format!("no requests: the trace has none of: {what}")),
        false => Ok((what, found)),
    }
}

/// RPCs, else marks that pair, else the program that sends and receives most.
fn best(spans: &Spans, timeline: &Timeline) -> Result<(String, Vec<Request>), String> {
    let rpcs = rpcs(spans, None);
    if !rpcs.is_empty() {
        return Ok(("RPCs".to_string(), rpcs));
    }
    let most = marks(spans).into_iter().max_by_key(|(_, found)| found.len());
    if let Some((label, found)) = most.filter(|(_, found)| found.len() >= ENOUGH) {
        return Ok((format!("from mark {label} to mark /{label}"), found));
    }
    let sides: [(&str, Vec<Request>); 2] = [
        ("requests of {}: from a send on a descriptor to the next receive on it", clients(spans)),
        ("requests served by {}: from their arrival to its send", served(spans, timeline)),
    ];
    for (what, all) in sides {
        let mut by_program: BTreeMap<&str, Vec<Request>> = BTreeMap::new();
        for request in all {
            by_program.entry(timeline.program(request.pid)).or_default().push(request);
        }
        let most = by_program.into_iter().max_by_key(|(_, found)| found.len());
        if let Some((program, found)) = most.filter(|(_, found)| found.len() >= ENOUGH) {
            return Ok((what.replace("{}", program), found));
        }
    }
    Err(format!(
        "no requests: the trace has no RPCs, no pairs of marks, and no program that sends and receives {} or more",
        count(ENOUGH as u64, "time", "times")
    ))
}

fn of_program(mut found: Vec<Request>, timeline: &Timeline, program: &str) -> Vec<Request> {
    found.retain(|request| timeline.program(request.pid) == program);
    found
}

fn within(timeline: &Timeline, range: &Request) -> Vec<Request> {
    let (first, last) = timeline.extent;
    let request = Request { start: range.start.max(first), end: range.end.min(last), ..*range };
    let known = timeline.thread(range.pid).is_some() && request.start < request.end;
    known.then_some(request).into_iter().collect()
}

fn text<'a>(spans: &'a Spans, span: &Span) -> &'a str {
    spans.names.get(span.name as usize).map_or("", String::as_str)
}

fn rpcs(spans: &Spans, method: Option<&str>) -> Vec<Request> {
    let mut open: HashMap<(i32, i64), i64> = HashMap::default();
    let mut found = Vec::new();
    for s in &spans.spans {
        let key = (s.pid, s.arg & 0xffff);
        match s.event as u32 {
            RPC_REQUEST if key.1 != 0 => {
                let name = text(spans, s);
                if method.is_none_or(|method| name.split(['.', ':']).any(|part| part == method)) {
                    open.entry(key).or_insert(s.start);
                }
            }
            RPC_RESPONSE => {
                found.extend(open.remove(&key).map(|start| Request { pid: s.pid, start, end: end(s) }));
            }
            _ => {}
        }
    }
    found
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

/// Each instance of a call or fault: its pieces, up to the one that returns, or to what the thread does after it.
fn calls(spans: &Spans, name: &str) -> Vec<Request> {
    let mut open: HashMap<i32, (Level, Request)> = HashMap::default();
    let mut found = Vec::new();
    for s in spans.spans.iter().filter(|s| is_execution(s.event) && s.pid > 0) {
        let at = level(s.event as u32);
        if text(spans, s) == name && matches!(at, Level::Syscall | Level::Trap) {
            let new = (at, Request { pid: s.pid, start: s.start, end: s.start });
            open.entry(s.pid).or_insert(new).1.end = end(s);
            if at == Level::Syscall && s.ret != NONE {
                found.extend(open.remove(&s.pid).map(|(_, request)| request));
            }
        } else if matches!(at, Level::User | Level::Syscall) {
            // The thread has gone on: a fault is over, a call has returned and it is not known when.
            found.extend(open.remove(&s.pid).filter(|(at, _)| *at == Level::Trap).map(|(_, request)| request));
        }
    }
    found
}

fn runs(timeline: &Timeline, program: &str) -> Vec<Request> {
    let mut starts: HashMap<i32, i64> = HashMap::default();
    for s in timeline.spans.spans.iter().filter(|s| is_thread(s.event) && s.pid > 0) {
        if timeline.text(s).rsplit_once('.').is_some_and(|(name, _)| name == program) {
            starts.entry(s.pid).or_insert(s.start);
        }
    }
    let whole = starts.into_iter().filter_map(|(pid, start)| {
        let end = timeline.thread(pid)?.exit?;
        (end > start).then_some(Request { pid, start, end })
    });
    whole.collect()
}

fn clients(spans: &Spans) -> Vec<Request> {
    let mut open: HashMap<(i32, i64), i64> = HashMap::default();
    let mut found = Vec::new();
    let (sends, receives) = (numbers(spans, &SENDS), numbers(spans, &RECEIVES));
    for s in spans.spans.iter().filter(|s| is_call(s) && s.arg != NONE) {
        let key = (s.pid, s.arg);
        if sends.contains(&s.name) {
            open.entry(key).or_insert(s.start);
        } else if receives.contains(&s.name) && s.ret > 0 {
            found.extend(open.remove(&key).map(|start| Request { pid: s.pid, start, end: end(s) }));
        }
    }
    found
}

fn served(spans: &Spans, timeline: &Timeline) -> Vec<Request> {
    let mut open: HashMap<i32, i64> = HashMap::default();
    let mut found = Vec::new();
    let (sends, receives) = (numbers(spans, &SENDS), numbers(spans, &RECEIVES));
    for s in &spans.spans {
        match s.event {
            // What arrives wakes the thread; the wakeup's arc starts then, inside of the softirq that brought it.
            WAKEUP_ARC => {
                let pid = s.ret as i32;
                let waited = timeline.thread(pid).and_then(|thread| {
                    let after = thread.waits.partition_point(|&n| end(timeline.span(n)) < s.start);
                    let wait = timeline.span(*thread.waits.get(after)?);
                    (end(wait) == s.start && wait.event == Reason::Net.event()).then_some(s)
                });
                if let Some(arc) = waited {
                    let bringer = timeline
                        .before(arc.cpu, arc.start + 1)
                        .next()
                        .filter(|b| level(b.event as u32) == Level::Softirq);
                    open.insert(pid, bringer.map_or(arc.start, |b| b.start));
                }
            }
            _ if !is_call(s) => {}
            _ if receives.contains(&s.name) && s.ret > 0 => {
                open.entry(s.pid).or_insert(s.start);
            }
            _ if sends.contains(&s.name) && s.ret != NONE => {
                found.extend(open.remove(&s.pid).map(|start| Request { pid: s.pid, start, end: end(s) }));
            }
            _ => {}
        }
    }
    found
}

fn is_call(s: &Span) -> bool {
    s.pid > 0 && is_execution(s.event) && level(s.event as u32) == Level::Syscall
}

/// The numbers of names.
fn numbers(spans: &Spans, names: &[&str]) -> Vec<u32> {
    (0..).zip(&spans.names).filter(|(_, name)| names.contains(&name.as_str())).map(|(n, _)| n).collect()
}
