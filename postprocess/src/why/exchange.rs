// SPDX-License-Identifier: BSD-3-Clause
//! Requests that programs send each other, identified by descriptor, on the client's and on the server's side.

use foldhash::{HashMap, HashSet};

use super::calls::{Call, Calls};
use super::request::{Found, Request};
use super::timeline::{end, Timeline};
use crate::event::number::Level;
use crate::id::Pid;
use crate::span::wait::Reason;
use crate::span::what::What;
use crate::span::{Span, NONE};
use crate::time::Time;

/// Finds the requests of a program. If it sends on one descriptor and receives on another, descriptors are ignored.
pub fn of_program(find: impl Fn(By) -> Found, timeline: &Timeline, program: &str) -> Found {
    let one_way = !is_bidirectional(timeline, program);
    find(if one_way { By::Thread } else { By::Descriptor }).of(|pid| timeline.program(pid) == program)
}

/// True if a program sends and receives on one descriptor, in one thread or, on a socket, in several of a process.
fn is_bidirectional(timeline: &Timeline, program: &str) -> bool {
    let calls = Calls::new(timeline.spans);
    let mut ways: HashMap<(Pid, i64), Call> = HashMap::default();
    let its = |s: &Span| caller(s).is_some_and(|pid| timeline.program(pid) == program);
    timeline.calls().filter(its).any(|s| match calls.of(&s).filter(|call| matches!(call, Call::Send | Call::Receive)) {
        Some(call) => {
            let by = if is_of_socket(timeline, &s) { By::Descriptor } else { By::Thread };
            let key = (by.owner(timeline, s.pid.unwrap_or_default()), s.arg);
            *ways.entry(key).or_insert(call) != call
        }
        None => false,
    })
}

/// Property that a send and a receive must share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Process and descriptor, which also determine the side that a thread is on.
    Descriptor,
    /// The thread.
    Thread,
}

impl By {
    fn key(self, timeline: &Timeline, pid: Pid, s: &Span) -> (Pid, i64) {
        (self.owner(timeline, pid), if self == By::Descriptor { s.arg } else { 0 })
    }

    /// Returns the owner of a thread's descriptors.
    fn owner(self, timeline: &Timeline, pid: Pid) -> Pid {
        match self {
            By::Descriptor => timeline.spans.meta.process_of(pid),
            By::Thread => pid,
        }
    }
}

/// Finds requests of clients: from a send on a descriptor to the next receive on it that returns data, on descriptors
/// on which a thread begins by sending. Data received by another thread is for the sender if the process connected the
/// descriptor and only one thread has sent. An unfinished request counts if the descriptor is known to get responses.
pub fn clients(timeline: &Timeline, by: By) -> Found {
    let mut open: HashMap<(Pid, i64), Vec<(Pid, Time)>> = HashMap::default();
    let mut found = Vec::new();
    let calls = Calls::new(timeline.spans);
    let mut sides = Sides::new(by);
    for s in timeline.calls().filter(|s| s.arg != NONE) {
        let Some(pid) = caller(&s) else { continue };
        let (key, call) = (by.key(timeline, pid, &s), calls.of(&s));
        match call {
            Some(Call::Send) if sides.is(Side::Client, pid, key, call) => {
                let sent = open.entry(key).or_default();
                if !sent.iter().any(|(by, _)| *by == pid) {
                    sent.push((pid, s.start));
                }
            }
            Some(Call::Receive) if s.ret > 0 && sides.is(Side::Client, pid, key, call) => {
                let of_all = sides.known.contains_key(&key);
                let answered = open.get_mut(&key).and_then(|sent| {
                    let own = sent.iter().position(|(by, _)| *by == pid);
                    let only = (of_all && sent.len() == 1).then_some(0);
                    own.or(only).map(|which| sent.swap_remove(which).1)
                });
                let answered = answered.map(|start| Request { pid, start, end: end(&s) });
                sides.sure.extend(answered.map(|_| key));
                found.extend(answered);
            }
            Some(Call::Close) => sides.closed(pid, key),
            _ => {}
        }
        sides.learn(key.0, &s, call);
        if call == Some(Call::Close) {
            open.remove(&key);
        }
    }
    let open = open.into_iter().filter(|(key, _)| sides.sure.contains(key)).flat_map(|(_, sent)| sent);
    let unfinished = open.map(|(pid, start)| Request { pid, start, end: timeline.extent.1 });
    Found { requests: found, unfinished: unfinished.collect(), ..Found::default() }
}

/// Finds requests to servers: from the arrival of what a thread receives on a descriptor to the last send on it before
/// the thread receives on it again or waits, on descriptors on which a thread begins by receiving. If another thread
/// sends, the request is that thread's time. Further sends, of a long response or one that depends on others, belong to
/// the request as long as the server has received nothing from clients since it last polled its descriptors.
///
/// The data that ends the thread's wait for the network has already arrived: what the thread receives first afterwards
/// arrived with the softirq that woke it. The rest had arrived when the thread last polled, or if it does not poll,
/// when it began to receive. Data that the thread learns of or receives first after a stop arrived at some moment since
/// then, so the request begins with the stop.
pub fn served(timeline: &Timeline, by: By) -> Found {
    let mut threads: HashMap<Pid, Serving> = HashMap::default();
    let mut receivers: HashMap<(Pid, i64), Pid> = HashMap::default();
    let mut found = Vec::new();
    let calls = Calls::new(timeline.spans);
    let mut sides = Sides::new(by);
    for s in timeline.calls() {
        if let Some(pid) = s.woken() {
            let Some((wait, reason)) = ended(timeline, pid, &s) else { continue };
            let serving = threads.entry(pid).or_default();
            match reason {
                Reason::Net | Reason::Pipe => {
                    serving.ask();
                    (serving.arrival, serving.stopped) = (Some(arrival(timeline, &s)), None);
                }
                // A stop during a request is part of it.
                Reason::Stop | Reason::Trace | Reason::Frozen if !serving.is_busy(by.owner(timeline, pid), &sides) => {
                    serving.stopped.get_or_insert(wait);
                }
                _ => {}
            }
        } else if let Some(pid) = caller(&s) {
            let (key, call) = (by.key(timeline, pid, &s), calls.of(&s));
            let serving = threads.entry(pid).or_default();
            match call {
                Some(Call::Poll) => {
                    serving.ask();
                    match s.ret {
                        NONE => serving.arrival = None,
                        1.. => serving.polled = Some(serving.stopped.take().unwrap_or(end(&s))),
                        // A signal or a timeout ended the wait: nothing had arrived.
                        ret => {
                            serving.hears = true;
                            (serving.arrival, serving.polled) = (None, Some(end(&s)));
                            serving.stopped = serving.stopped.filter(|_| ret != 0);
                        }
                    }
                }
                Some(Call::Receive) if s.ret > 0 && sides.is(Side::Server, pid, key, call) => {
                    serving.flush_one(key.1, &mut found);
                    let learned = serving.stopped.take().or(serving.polled);
                    let start = serving.arrival.take().or(learned).unwrap_or(s.start);
                    serving.open.entry(key.1).or_insert(Open { start, sent: None, asked: false });
                    serving.hears = true;
                    receivers.insert(key, pid);
                }
                Some(Call::Send) if s.ret != NONE => {
                    let is_own = sides.is(Side::Server, pid, key, call) && serving.open.contains_key(&key.1);
                    let another = || receivers.get(&key).copied().filter(|_| sides.are_clients(timeline, key, &s));
                    let Some(receiver) = is_own.then_some(pid).or_else(another) else { continue };
                    if threads.get_mut(&receiver).is_some_and(|its| its.sends(key.1, (pid, end(&s)), &mut found)) {
                        sides.sure.insert(key);
                    }
                }
                Some(Call::Accept) => (serving.arrival, serving.hears) = (None, true),
                Some(Call::Close) => {
                    let receiver = receivers.remove(&key).unwrap_or(pid);
                    if let Some(its) = threads.get_mut(&receiver) {
                        its.flush_one(key.1, &mut found);
                        its.open.remove(&key.1);
                    }
                    sides.closed(pid, key);
                }
                _ => {}
            }
            sides.learn(key.0, &s, call);
        }
    }
    for serving in threads.values_mut() {
        let answered: Vec<i64> = serving.open.keys().copied().collect();
        answered.into_iter().for_each(|on| serving.flush_one(on, &mut found));
    }
    found.sort_by_key(|request| (request.start, request.end, request.pid));
    let open = threads.iter().flat_map(|(pid, serving)| serving.open.iter().map(|(&on, open)| (*pid, on, open.start)));
    let open = open.filter(|(pid, on, _)| sides.sure.contains(&(by.owner(timeline, *pid), *on)));
    let unfinished = open.map(|(pid, _, start)| Request { pid, start, end: timeline.extent.1 }).collect();
    Found { requests: found, unfinished, ..Found::default() }
}

/// Returns the wait that a wakeup ended: its start and its reason.
fn ended(timeline: &Timeline, pid: Pid, arc: &Span) -> Option<(Time, Reason)> {
    let thread = timeline.thread(pid)?;
    let after = thread.waits.partition_point(|&n| timeline.rows.end(n) < arc.start);
    let wait = timeline.span(*thread.waits.get(after)?);
    let What::Wait(reason) = wait.what() else { return None };
    (end(&wait) == arc.start).then_some((wait.start, reason))
}

/// Returns when the data that a wakeup announces had arrived: the start of the softirq that brought it.
fn arrival(timeline: &Timeline, arc: &Span) -> Time {
    let is_softirq = |b: &Span| b.level() == Some(Level::Softirq);
    let running = arc.cpu.and_then(|cpu| timeline.before(cpu, arc.start + Time::UNIT).next());
    running.filter(is_softirq).map_or(arc.start, |bringer| bringer.start)
}

/// State of a thread that serves requests.
#[derive(Debug, Default)]
struct Serving {
    /// Arrival of the data that it receives next, if it was woken for that.
    arrival: Option<Time>,
    /// Start of a stop since it last waited for something to receive.
    stopped: Option<Time>,
    /// Time at which it last learned which descriptors are ready.
    polled: Option<Time>,
    /// True if it has heard of another request since, or has something else to do.
    hears: bool,
    /// Open requests by descriptor.
    open: HashMap<i64, Open>,
}

/// A request that has arrived.
#[derive(Debug)]
struct Open {
    /// Time of arrival.
    start: Time,
    /// Thread that sent the last part of the response, and the end of that send.
    sent: Option<(Pid, Time)>,
    /// True if the thread has polled its descriptors since.
    asked: bool,
}

impl Serving {
    /// True if it has received a request that it has not responded to.
    fn is_busy(&self, owner: Pid, sides: &Sides) -> bool {
        self.open.iter().any(|(on, open)| open.sent.is_none() && sides.sure.contains(&(owner, *on)))
    }

    /// The thread polls its descriptors: requests with a response are over, unless more of the response follows.
    fn ask(&mut self) {
        (self.polled, self.hears) = (None, false);
        self.open.values_mut().for_each(|open| open.asked = open.sent.is_some());
    }

    /// The thread sends, or another one for it. Returns whether that responds to a request.
    fn sends(&mut self, on: i64, by: (Pid, Time), found: &mut Vec<Request>) -> bool {
        if self.hears && self.open.get(&on).is_some_and(|open| open.asked) {
            self.flush_one(on, found);
        }
        let Some(open) = self.open.get_mut(&on) else { return false };
        open.sent = Some(by);
        true
    }

    /// Ends the request on a descriptor if it has a response.
    fn flush_one(&mut self, descriptor: i64, found: &mut Vec<Request>) {
        if let Some(&Open { start, sent: Some((pid, end)), .. }) = self.open.get(&descriptor) {
            found.push(Request { pid, start, end });
            self.open.remove(&descriptor);
        }
    }
}

/// Sides of descriptors that threads are on: the client's if their process connected the descriptor, or did not accept
/// it and they began by sending.
#[derive(Debug)]
struct Sides {
    by: By,
    /// Direction in which a thread began on a descriptor.
    begun: HashMap<(Pid, i64), Side>,
    /// Descriptors that were connected or accepted.
    known: HashMap<(Pid, i64), Side>,
    /// Those, and descriptors on which a request got a response: none of them is a file.
    sure: HashSet<(Pid, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl Sides {
    fn new(by: By) -> Sides {
        Sides { by, begun: HashMap::default(), known: HashMap::default(), sure: HashSet::default() }
    }

    fn is(&mut self, side: Side, pid: Pid, key: (Pid, i64), call: Option<Call>) -> bool {
        let begins = if call == Some(Call::Send) { Side::Client } else { Side::Server };
        let begun = *self.begun.entry((pid, key.1)).or_insert(begins);
        self.by == By::Thread || *self.known.get(&key).unwrap_or(&begun) == side
    }

    /// True if sends on a descriptor surely go to clients; on others, threads of a process may wake each other.
    fn are_clients(&self, timeline: &Timeline, key: (Pid, i64), sent: &Span) -> bool {
        let known = self.known.get(&key).map(|side| *side == Side::Server);
        known.unwrap_or_else(|| is_of_socket(timeline, sent))
    }

    fn learn(&mut self, owner: Pid, s: &Span, call: Option<Call>) {
        let (on, side) = match call {
            Some(Call::Connect) => (s.arg, Side::Client),
            Some(Call::Accept) if s.ret >= 0 => (s.ret, Side::Server),
            _ => return,
        };
        self.known.insert((owner, on), side);
        self.sure.insert((owner, on));
    }

    fn closed(&mut self, pid: Pid, key: (Pid, i64)) {
        self.begun.remove(&(pid, key.1));
        self.known.remove(&key);
        self.sure.remove(&key);
    }
}

/// True if a call that sends or receives exists for sockets only.
fn is_of_socket(timeline: &Timeline, s: &Span) -> bool {
    let name = timeline.text(s);
    name.starts_with("send") || name.starts_with("recv")
}

/// Returns the thread that makes a call, if the span is a call.
fn caller(s: &Span) -> Option<Pid> {
    s.thread().filter(|_| s.level() == Some(Level::Syscall))
}
