// SPDX-License-Identifier: BSD-3-Clause
//! Requests: which stretches of which threads' time are to be explained.

use std::collections::BTreeMap;

use foldhash::HashMap;
use kutrace_format::abi::event::Rpc;
use serde::Serialize;

use super::best::best;
use super::exchange::{clients, of_program, served};
use super::timeline::{end, Timeline};
use crate::event::names::NameId;
use crate::event::number::Level;
use crate::event::point::Point;
use crate::id::Pid;
use crate::span::what::Activity;
use crate::span::{Span, NONE};
use crate::time::Time;

/// A stretch of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The thread.
    pub pid: Pid,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
}

impl Request {
    /// How long it took.
    pub fn dur(&self) -> Time {
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
    /// From the mark `LABEL` of a thread to its next mark `/LABEL`; if there are none, each part of a program called `LABEL`.
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

impl Ask {
    /// What a request is, in a sentence.
    pub fn what(&self, timeline: &Timeline) -> String {
        match self {
            Ask::Best => "the best that the trace offers".to_string(),
            Ask::Rpc(None) => "RPCs".to_string(),
            Ask::Rpc(Some(method)) => format!("RPCs of {method}"),
            Ask::Mark(label) => format!("from mark {label} to mark /{label}"),
            Ask::Call(name) => format!("{name}: each from its start to its return"),
            Ask::Run(program) => format!("processes named {program}, from start to end"),
            Ask::Client(program) => {
                format!("requests of {program}: from a send on a descriptor to the next receive on it")
            }
            Ask::Serve(program) => format!("requests served by {program}: from their arrival to its send"),
            Ask::Range(range) => format!("thread {}", timeline.name(range.pid)),
        }
    }
}

/// Finds requests; what they are, in a sentence.
///
/// # Errors
/// A sentence, if there are none.
pub fn find(timeline: &Timeline, ask: &Ask) -> Result<(String, Vec<Request>), String> {
    let found = match ask {
        Ask::Best => {
            let (ask, found) = best(timeline)?;
            return Ok((ask.what(timeline), found));
        }
        Ask::Rpc(method) => rpcs(timeline, method.as_deref()),
        Ask::Mark(label) => match (marks(timeline).remove(label), parts(timeline, label)) {
            (Some(found), _) => found,
            (None, found) if found.is_empty() => found,
            (None, found) => return Ok((format!("each part {label}, from its start to its end"), found)),
        },
        Ask::Call(name) => {
            calls(timeline, |s| timeline.text(s) == name).into_iter().map(|(_, request)| request).collect()
        }
        Ask::Run(program) => runs(timeline, |name| name == program),
        Ask::Client(program) => of_program(|by| clients(timeline, by), timeline, program),
        Ask::Serve(program) => of_program(|by| served(timeline, by), timeline, program),
        Ask::Range(range) => within(timeline, range),
    };
    let what = ask.what(timeline);
    match found.is_empty() {
        true => Err(format!("no requests: the trace has none of: {what}")),
        false => Ok((what, found)),
    }
}

fn within(timeline: &Timeline, range: &Request) -> Vec<Request> {
    let (first, last) = timeline.extent;
    let request = Request { start: range.start.max(first), end: range.end.min(last), ..*range };
    let known = timeline.thread(range.pid).is_some() && request.start < request.end;
    known.then_some(request).into_iter().collect()
}

/// From a thread's request to its response of the same RPC; in a trace without responses, to when the thread turns to
/// no RPC.
pub fn rpcs(timeline: &Timeline, method: Option<&str>) -> Vec<Request> {
    let mut open: HashMap<(Pid, u32), Time> = HashMap::default();
    let mut turned: HashMap<Pid, Time> = HashMap::default();
    let (mut found, mut left) = (Vec::new(), Vec::new());
    let is_of = |s: &Span| method.is_none_or(|method| timeline.text(s).split(['.', ':']).any(|part| part == method));
    for s in timeline.points() {
        let Some(pid) = s.pid else { continue };
        let id = Rpc(s.arg as u32).id();
        match s.point() {
            Some(Point::RpcRequest) if id != 0 && is_of(&s) => {
                open.insert((pid, id), s.start);
                turned.insert(pid, s.start);
            }
            Some(Point::RpcRequest) if id != 0 => {}
            Some(Point::RpcRequest) => {
                left.extend(turned.remove(&pid).map(|start| Request { pid, start, end: end(&s) }));
            }
            Some(Point::RpcResponse) => {
                found.extend(open.remove(&(pid, id)).map(|start| Request { pid, start, end: end(&s) }));
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
pub fn marks(timeline: &Timeline) -> BTreeMap<String, Vec<Request>> {
    let mut open: HashMap<(Pid, &str), Time> = HashMap::default();
    let mut found: BTreeMap<String, Vec<Request>> = BTreeMap::new();
    for s in timeline.points() {
        let (Some(pid), Some(point)) = (s.pid, s.point()) else { continue };
        let label = match point {
            Point::ProgramMark => timeline.text(&s),
            _ if point.is_text_mark() => timeline.text(&s).split_once('=').map_or("", |(_, label)| label),
            _ => continue,
        };
        match label.strip_prefix('/') {
            Some(label) => {
                let pair = open.remove(&(pid, label)).map(|start| Request { pid, start, end: s.start });
                found.entry(label.to_string()).or_default().extend(pair);
            }
            None => drop(open.insert((pid, label), s.start)),
        }
    }
    found.retain(|_, pairs| !pairs.is_empty());
    found
}

/// The parts of programs that are called so.
fn parts(timeline: &Timeline, label: &str) -> Vec<Request> {
    let named = |s: &Span| s.point() == Some(Point::ProgramBegin) && timeline.text(s) == label;
    let named = timeline.points().filter(named);
    named.filter_map(|s| Some(Request { pid: s.pid?, start: s.start, end: s.start + s.dur })).collect()
}

/// Each instance of calls and faults, with its name: its pieces, up to the one that returns, or to what the thread does
/// after it, or to the thread's end.
pub fn calls(timeline: &Timeline, wanted: impl Fn(&Span) -> bool) -> Vec<(NameId, Request)> {
    let mut open: HashMap<Pid, (Level, NameId, Request)> = HashMap::default();
    let mut found = Vec::new();
    for s in timeline.rows.iter() {
        let Some(pid) = s.thread() else { continue };
        if s.point() == Some(Point::Exit) {
            let ended = open.remove(&pid).map(|(_, name, request)| (name, Request { end: s.start, ..request }));
            found.extend(ended.filter(|(_, request)| request.end > request.start));
            continue;
        }
        let at = match s.activity() {
            Some(Activity::Call(work)) => work.level(),
            Some(_) => Level::User,
            None => continue,
        };
        let is_call = matches!(at, Level::Syscall | Level::Trap);
        let goes_on = is_call && open.get(&pid).is_some_and(|(_, name, _)| *name == s.name);
        if !goes_on && matches!(at, Level::User | Level::Syscall) {
            // The thread has gone on: a fault is over, a call has returned and it is not known when.
            let over = open.remove(&pid).filter(|(at, ..)| *at == Level::Trap);
            found.extend(over.map(|(_, name, request)| (name, request)));
        }
        if is_call && (goes_on || wanted(&s)) {
            let new = (at, s.name, Request { pid, start: s.start, end: s.start });
            open.entry(pid).or_insert(new).2.end = end(&s);
            if at == Level::Syscall && s.ret != NONE {
                found.extend(open.remove(&pid).map(|(_, name, request)| (name, request)));
            }
        }
    }
    found
}

/// The time of each thread from its start to its end, of programs that are wanted.
pub fn runs(timeline: &Timeline, wanted: impl Fn(&str) -> bool) -> Vec<Request> {
    let mut starts: HashMap<Pid, Time> = HashMap::default();
    for s in timeline.rows.iter().filter(Span::is_own_code) {
        let Some(pid) = s.thread() else { continue };
        if timeline.text(&s).rsplit_once('.').is_some_and(|(name, _)| wanted(name)) {
            starts.entry(pid).or_insert(s.start);
        }
    }
    let whole = starts.into_iter().filter_map(|(pid, start)| {
        let end = timeline.thread(pid)?.exit?;
        (end > start).then_some(Request { pid, start, end })
    });
    whole.collect()
}
