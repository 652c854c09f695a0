// SPDX-License-Identifier: BSD-3-Clause
//! Requests that programs send to each other, by descriptor: clients', and servers'.

use foldhash::HashMap;

use super::calls::{Call, Calls};
use super::request::Request;
use super::timeline::{end, Timeline};
use crate::event::number::Level;
use crate::id::Pid;
use crate::span::wait::Reason;
use crate::span::what::What;
use crate::span::{Span, NONE};
use crate::time::Time;

/// Those of a program; where it uses one descriptor for what it sends and another for what it receives, of any.
pub fn of_program(find: impl Fn(By) -> Vec<Request>, timeline: &Timeline, program: &str) -> Vec<Request> {
    let one_way = !goes_both_ways(timeline, program);
    let mut found = find(if one_way { By::Thread } else { By::Descriptor });
    found.retain(|request| timeline.program(request.pid) == program);
    found
}

/// Whether a program sends and receives on one descriptor.
fn goes_both_ways(timeline: &Timeline, program: &str) -> bool {
    let calls = Calls::new(timeline.spans);
    let mut ways: HashMap<(Pid, i64), Call> = HashMap::default();
    let its = |s: &Span| caller(s).is_some_and(|pid| timeline.program(pid) == program);
    timeline.calls().filter(its).any(|s| match calls.of(&s).filter(|call| matches!(call, Call::Send | Call::Receive)) {
        Some(call) => *ways.entry(By::Descriptor.key(s.pid.unwrap_or_default(), &s)).or_insert(call) != call,
        None => false,
    })
}

/// What a send and a receive must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Thread and descriptor; and the side that the thread is on is known by that.
    Descriptor,
    /// The thread.
    Thread,
}

impl By {
    fn key(self, pid: Pid, s: &Span) -> (Pid, i64) {
        (pid, if self == By::Descriptor { s.arg } else { 0 })
    }
}

/// From a send on a descriptor to the next receive on it that returns something, of descriptors on which a thread
/// begins by sending.
pub fn clients(timeline: &Timeline, by: By) -> Vec<Request> {
    let mut open: HashMap<(Pid, i64), Time> = HashMap::default();
    let mut found = Vec::new();
    let calls = Calls::new(timeline.spans);
    let mut sides = Sides::new(by);
    for s in timeline.calls().filter(|s| s.arg != NONE) {
        let Some(pid) = caller(&s) else { continue };
        let (key, call) = (by.key(pid, &s), calls.of(&s));
        match call {
            Some(Call::Send) if sides.is(Side::Client, key, call) => drop(open.entry(key).or_insert(s.start)),
            Some(Call::Receive) if s.ret > 0 && sides.is(Side::Client, key, call) => {
                found.extend(open.remove(&key).map(|start| Request { pid, start, end: end(&s) }));
            }
            Some(Call::Close) => sides.closed(key),
            _ => {}
        }
        sides.learn(pid, &s, call);
        if call == Some(Call::Close) {
            open.remove(&key);
        }
    }
    found
}

/// From the arrival of what a thread receives on a descriptor to the last send on it before the thread receives again
/// on it or waits; of descriptors on which a thread begins by receiving.
///
/// What ends the thread's wait for the network has arrived by then: the first thing that it receives afterwards arrived
/// with the softirq that woke it. The rest had arrived when the thread last asked which descriptors are ready; where it
/// does not ask, when it began to receive.
pub fn served(timeline: &Timeline, by: By) -> Vec<Request> {
    let mut threads: HashMap<Pid, Serving> = HashMap::default();
    let mut found = Vec::new();
    let calls = Calls::new(timeline.spans);
    let mut sides = Sides::new(by);
    for s in timeline.calls() {
        if let Some(pid) = s.woken() {
            if let Some(arrival) = arrival(timeline, pid, &s) {
                let serving = threads.entry(pid).or_default();
                serving.flush(pid, &mut found);
                serving.arrival = Some(arrival);
            }
        } else if let Some(pid) = caller(&s) {
            let (key, call) = (by.key(pid, &s), calls.of(&s));
            let serving = threads.entry(pid).or_default();
            match call {
                Some(Call::Poll) => {
                    serving.flush(pid, &mut found);
                    match s.ret {
                        NONE => serving.arrival = None,
                        _ => serving.polled = Some(end(&s)),
                    }
                }
                Some(Call::Receive) if s.ret > 0 && sides.is(Side::Server, key, call) => {
                    serving.flush_one(key, &mut found);
                    let start = serving.arrival.take().or(serving.polled).unwrap_or(s.start);
                    serving.open.entry(key.1).or_insert((start, None));
                }
                Some(Call::Send) if s.ret != NONE && sides.is(Side::Server, key, call) => {
                    if let Some((_, sent)) = serving.open.get_mut(&key.1) {
                        *sent = Some(end(&s));
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
            sides.learn(pid, &s, call);
        }
    }
    threads.iter_mut().for_each(|(pid, serving)| serving.flush(*pid, &mut found));
    found.sort_by_key(|request| (request.start, request.end, request.pid));
    found
}

/// When what a wakeup brings had arrived, if the thread waited for the network or another program: the start of the
/// softirq that brought it.
fn arrival(timeline: &Timeline, pid: Pid, arc: &Span) -> Option<Time> {
    let thread = timeline.thread(pid)?;
    let after = thread.waits.partition_point(|&n| timeline.rows.end(n) < arc.start);
    let wait = timeline.span(*thread.waits.get(after)?);
    let is_message = matches!(wait.what(), What::Wait(Reason::Net | Reason::Pipe));
    let is_softirq = |b: &Span| b.level() == Some(Level::Softirq);
    let bringer = timeline.before(arc.cpu?, arc.start + Time::UNIT).next().filter(is_softirq);
    (is_message && end(&wait) == arc.start).then(|| bringer.map_or(arc.start, |b| b.start))
}

/// What a thread that serves has under way.
#[derive(Debug, Default)]
struct Serving {
    /// When what it receives next arrived, if it was woken for that.
    arrival: Option<Time>,
    /// When it last was told which descriptors are ready.
    polled: Option<Time>,
    /// By descriptor: when a request arrived, and when it was last sent an answer.
    open: HashMap<i64, (Time, Option<Time>)>,
}

impl Serving {
    /// What it has responded to is over.
    fn flush(&mut self, pid: Pid, found: &mut Vec<Request>) {
        self.polled = None;
        self.open.retain(|_, (start, sent)| {
            found.extend(sent.map(|end| Request { pid, start: *start, end }));
            sent.is_none()
        });
    }

    fn flush_one(&mut self, (pid, descriptor): (Pid, i64), found: &mut Vec<Request>) {
        if let Some(&(start, Some(end))) = self.open.get(&descriptor) {
            found.push(Request { pid, start, end });
            self.open.remove(&descriptor);
        }
    }
}

/// On which side of a descriptor a thread is: the client's if it connected it, or did not accept it and began by
/// sending.
#[derive(Debug)]
struct Sides {
    by: By,
    known: HashMap<(Pid, i64), Side>,
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

    fn is(&mut self, side: Side, key: (Pid, i64), call: Option<Call>) -> bool {
        let begins = if call == Some(Call::Send) { Side::Client } else { Side::Server };
        self.by == By::Thread || *self.known.entry(key).or_insert(begins) == side
    }

    fn learn(&mut self, pid: Pid, s: &Span, call: Option<Call>) {
        match call {
            Some(Call::Connect) => drop(self.known.insert((pid, s.arg), Side::Client)),
            Some(Call::Accept) if s.ret >= 0 => drop(self.known.insert((pid, s.ret), Side::Server)),
            _ => {}
        }
    }

    fn closed(&mut self, key: (Pid, i64)) {
        self.known.remove(&key);
    }
}

/// The thread that makes a call, if it is one.
fn caller(s: &Span) -> Option<Pid> {
    s.thread().filter(|_| s.level() == Some(Level::Syscall))
}
