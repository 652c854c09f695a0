// SPDX-License-Identifier: BSD-3-Clause
//! Requests: the stretches of threads' time to explain.

use std::collections::BTreeMap;
use std::hash::Hash;

use foldhash::HashMap;
use serde::Serialize;

use super::best::offered;
use super::exchange::{clients, of_program, served};
use super::rpc::rpcs;
use super::timeline::Timeline;
use crate::event::names::NameId;
use crate::event::number::Level;
use crate::event::point::Point;
use crate::id::Pid;
use crate::span::whole::{Whole, Wholes};
use crate::span::{Span, NONE};
use crate::time::Time;

/// A stretch of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The thread.
    pub pid: Pid,
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
}

impl Request {
    /// Returns the duration.
    pub fn dur(&self) -> Time {
        self.end - self.start
    }
}

/// Kind of request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    /// The kind for which the trace has most to report.
    #[default]
    Best,
    /// An RPC: from its request to its response, in one process; of this method, if there is one.
    Rpc(Option<String>),
    /// From the mark `LABEL` of a thread to the next mark `/LABEL`; if there are none, each part of a program named
    /// `LABEL`.
    Mark(String),
    /// Each instance of a system call or fault.
    Call(String),
    /// Each process whose last name is this one, from its start to its end.
    Run(String),
    /// A client's request: from its send on a descriptor to the next successful receive on it.
    Client(String),
    /// A server's request: from what ends its wait for the network, or a receive, to its send.
    Serve(String),
    /// One thread's time, from one moment to another.
    Range(Request),
}

impl Ask {
    /// Describes the kind in a sentence.
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

/// Requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Kind, as a sentence.
    pub asked: String,
    /// Requests that end in the trace.
    pub requests: Vec<Request>,
    /// Requests that had not ended when the trace did, up to its end.
    pub unfinished: Vec<Request>,
}

impl Found {
    pub(super) fn new(requests: Vec<Request>, unfinished: Vec<Request>) -> Found {
        Found { asked: String::new(), requests, unfinished }
    }

    /// Keeps the requests of some threads.
    pub fn of(mut self, is_its: impl Fn(Pid) -> bool) -> Found {
        for list in [&mut self.requests, &mut self.unfinished] {
            list.retain(|request| is_its(request.pid));
        }
        self
    }
}

/// Finds requests.
///
/// # Errors
/// A sentence, if the trace has none.
pub fn find(timeline: &Timeline, ask: &Ask) -> Result<Found, String> {
    let mut asked = ask.what(timeline);
    let found = match ask {
        Ask::Best => return Ok(offered(timeline)?.1),
        Ask::Rpc(method) => rpcs(timeline, method.as_deref()),
        Ask::Mark(label) => {
            let (marked, parts) = (marks(timeline).remove(label).unwrap_or_default(), parts(timeline, label));
            match marked.requests.is_empty() && !(parts.requests.is_empty() && parts.unfinished.is_empty()) {
                true => {
                    asked = format!("each part {label}, from its start to its end");
                    parts
                }
                false => marked,
            }
        }
        Ask::Call(name) => {
            let (ended, open) = calls(timeline, |whole| timeline.called(whole.name) == name);
            Found::new(ended.into_iter().map(|(_, request)| request).collect(), open)
        }
        Ask::Run(program) => runs(timeline, |name| name == program),
        Ask::Client(program) => of_program(|by| clients(timeline, by), timeline, program),
        Ask::Serve(program) => of_program(|by| served(timeline, by), timeline, program),
        Ask::Range(range) => Found::new(within(timeline, range), Vec::new()),
    };
    match (found.requests.is_empty(), found.unfinished.len()) {
        (false, _) => Ok(Found { asked, ..found }),
        (true, 0) => Err(format!("no requests: the trace has none of: {asked}")),
        (true, open) => Err(format!("no requests: the trace has no end of: {asked}; {open} had begun and not ended")),
    }
}

fn within(timeline: &Timeline, range: &Request) -> Vec<Request> {
    let (first, last) = timeline.extent;
    let request = Request { start: range.start.max(first), end: range.end.min(last), ..*range };
    let known = timeline.thread(range.pid).is_some() && request.start < request.end;
    known.then_some(request).into_iter().collect()
}

/// Things that threads have begun and not ended, by name. Another thread of the process may end one if only one thread
/// has begun it.
#[derive(Default)]
pub(super) struct Begun<K>(HashMap<(Pid, K), Vec<(Pid, Time)>>);

impl<K: Copy + Eq + Hash> Begun<K> {
    pub(super) fn begin(&mut self, timeline: &Timeline, pid: Pid, what: K, at: Time) {
        let begun = self.0.entry((timeline.spans.meta.process_of(pid), what)).or_default();
        begun.retain(|(by, _)| *by != pid);
        begun.push((pid, at));
    }

    /// Returns the start of what a thread ends.
    pub(super) fn end(&mut self, timeline: &Timeline, pid: Pid, what: K) -> Option<Time> {
        let begun = self.0.get_mut(&(timeline.spans.meta.process_of(pid), what))?;
        let own = begun.iter().position(|(by, _)| *by == pid);
        let which = own.or((begun.len() == 1).then_some(0))?;
        Some(begun.swap_remove(which).1)
    }

    /// Returns when a thread began what it turns away from.
    pub(super) fn leave(&mut self, timeline: &Timeline, pid: Pid, what: K) -> Option<Time> {
        let begun = self.0.get_mut(&(timeline.spans.meta.process_of(pid), what))?;
        let own = begun.iter().position(|(by, _)| *by == pid)?;
        Some(begun.swap_remove(own).1)
    }

    /// Returns what has not ended, up to the end of the trace.
    pub(super) fn left(self, timeline: &Timeline) -> impl Iterator<Item = (K, Request)> {
        let end = timeline.extent.1;
        let all = self.0.into_iter().flat_map(|((_, what), begun)| begun.into_iter().map(move |one| (what, one)));
        all.map(move |(what, (pid, start))| (what, Request { pid, start, end }))
    }
}

/// Finds pairs of marks by label, as time of the thread with the second mark.
pub fn marks(timeline: &Timeline) -> BTreeMap<String, Found> {
    let mut open = Begun::default();
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for s in timeline.points() {
        let (Some(pid), Some(point)) = (s.pid, s.point()) else { continue };
        let label = match point {
            Point::ProgramMark => timeline.text(&s),
            _ if point.is_text_mark() => timeline.text(&s).split_once('=').map_or("", |(_, label)| label),
            _ => continue,
        };
        match label.strip_prefix('/') {
            Some(label) => {
                let pair = open.end(timeline, pid, label).map(|start| Request { pid, start, end: s.start });
                found.entry(label.to_string()).or_default().requests.extend(pair);
            }
            None => open.begin(timeline, pid, label, s.start),
        }
    }
    for (label, request) in open.left(timeline) {
        found.entry(label.to_string()).or_default().unfinished.push(request);
    }
    found
}

/// Finds the parts of programs with this name, whatever their fields. The poll of a task, `LABEL(task=N)`, begins when
/// the task could proceed, with `LABEL.ready(id=N)`: until then the thread that polls it did something else, or
/// nothing.
fn parts(timeline: &Timeline, label: &str) -> Found {
    let ready = ready(timeline, label);
    let mut polled: HashMap<&str, Time> = HashMap::default();
    let named = timeline.points().filter(|s| s.point() == Some(Point::ProgramBegin));
    let request = |s: Span| {
        let (name, fields) = fields_of(timeline.text(&s));
        let pid = s.pid.filter(|_| name == label)?;
        let task = fields.strip_prefix("task=").unwrap_or_default();
        let before = polled.insert(task, s.start).unwrap_or_default();
        let is_for_this = |&&(_, until): &&(Time, Time)| before < until && until <= s.start + Time::UNIT;
        let since = ready.get(task).and_then(|times| times.iter().rfind(is_for_this));
        Some(Request { pid, start: since.map_or(s.start, |&(from, _)| from.min(s.start)), end: s.start + s.dur })
    };
    // A part that nothing has ended ends with the trace.
    let (requests, unfinished) = named.filter_map(request).partition(|request| request.end < timeline.extent.1);
    Found::new(requests, unfinished)
}

/// Returns when tasks of this name could proceed, by number.
fn ready<'t>(timeline: &'t Timeline, label: &str) -> HashMap<&'t str, Vec<(Time, Time)>> {
    let mut found: HashMap<&str, Vec<(Time, Time)>> = HashMap::default();
    for s in timeline.points().filter(|s| s.point() == Some(Point::ProgramAsyncBegin)) {
        let (name, fields) = fields_of(timeline.text(&s));
        if name.strip_suffix(".ready") == Some(label) {
            let number = fields.strip_prefix("id=").unwrap_or_default();
            found.entry(number).or_default().push((s.start, s.start + s.dur));
        }
    }
    found
}

/// Returns the name of a part, and its fields.
fn fields_of(text: &str) -> (&str, &str) {
    let fields = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    fields.unwrap_or((text, ""))
}

/// Finds each instance of calls and faults, with its name: a call up to its return or the thread's end, a fault up to
/// its last piece. Also returns those unfinished at the end of the trace. The end of a call is unknown if its return
/// was not seen.
pub fn calls(timeline: &Timeline, wanted: impl Fn(&Whole) -> bool) -> (Vec<(NameId, Request)>, Vec<Request>) {
    let mut under_way = Wholes::default();
    let (mut found, mut open) = (Vec::new(), Vec::new());
    let request = |whole: &Whole, end: Time| {
        let is_call = matches!(whole.work.level(), Level::Syscall | Level::Trap);
        let pid = whole.pid.filter(|pid| is_call && *pid != Pid::IDLE && wanted(whole))?;
        Some(Request { pid, start: whole.start, end })
    };
    for s in timeline.rows.iter() {
        if let Some(activity) = s.activity() {
            under_way.add(activity, &s, |whole| {
                let has_ended = whole.work.level() == Level::Trap || whole.ret != NONE;
                let ended = has_ended.then(|| request(whole, whole.end)).flatten();
                found.extend(ended.map(|request| (whole.name, request)));
            });
        } else if let (Some(Point::Exit), Some(pid)) = (s.point(), s.thread()) {
            under_way.leave(pid, |whole| {
                let ended = request(whole, s.start).filter(|request| request.end > request.start);
                found.extend(ended.map(|request| (whole.name, request)));
            });
        }
    }
    under_way.finish(|whole| match whole.ret {
        NONE => open.extend(request(whole, timeline.extent.1)),
        _ => found.extend(request(whole, whole.end).map(|request| (whole.name, request))),
    });
    (found, open)
}

/// Finds the time of each process that ends in the trace, from its first moment there under any name, if the program of
/// its last name is wanted. A process is represented by its first thread: what other threads do is reported where the
/// first waits for them.
pub fn runs(timeline: &Timeline, wanted: impl Fn(&str) -> bool) -> Found {
    let is_wanted = |pid: Pid| {
        let program = timeline.program(pid);
        !program.is_empty() && wanted(program)
    };
    let is_first = |pid: Pid| {
        let process = timeline.spans.meta.process_of(pid);
        process == pid || !is_wanted(process)
    };
    let mut found = Found::default();
    for (pid, thread) in timeline.threads().filter(|(pid, _)| is_wanted(*pid) && is_first(*pid)) {
        let Some(start) = thread.runs.first().map(|run| run.start) else { continue };
        match thread.exit {
            Some(end) => found.requests.extend((end > start).then_some(Request { pid, start, end })),
            None => found.unfinished.push(Request { pid, start, end: timeline.extent.1 }),
        }
    }
    found
}
