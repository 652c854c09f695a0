// SPDX-License-Identifier: BSD-3-Clause
//! Requests that programs send to each other, by descriptor: clients', and servers'.

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

/// Those of a program; where it uses one descriptor for what it sends and another for what it receives, of any.
pub fn of_program(find: impl Fn(By) -> Found, timeline: &Timeline, program: &str) -> Found {
    let one_way = !goes_both_ways(timeline, program);
    find(if one_way { By::Thread } else { By::Descriptor }).of(|pid| timeline.program(pid) == program)
}

/// Whether a program sends and receives on one descriptor: a thread of it, or of a socket several of a process.
fn goes_both_ways(timeline: &Timeline, program: &str) -> bool {
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

/// What a send and a receive must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Process and descriptor; and the side that a thread is on is known by that.
    Descriptor,
    /// The thread.
    Thread,
}

impl By {
    fn key(self, timeline: &Timeline, pid: Pid, s: &Span) -> (Pid, i64) {
        (self.owner(timeline, pid), if self == By::Descriptor { s.arg } else { 0 })
    }

    /// Whose the descriptors of a thread are.
    fn owner(self, timeline: &Timeline, pid: Pid) -> Pid {
        match self {
            By::Descriptor => timeline.spans.meta.process_of(pid),
            By::Thread => pid,
        }
    }
}

/// From a send on a descriptor to the next receive on it that returns something, of descriptors on which a thread
/// begins by sending. What another thread receives is for the one that sent, if the process connected and one alone has.
/// One that is not over counts where it is known that there are answers.
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

/// From the arrival of what a thread receives on a descriptor to the last send on it before the thread receives again
/// on it or waits; of descriptors on which a thread begins by receiving. If another thread sends, the request is that
/// one's time. What it goes on to send, of a long answer or what others answer it bit by bit, belongs to the request
/// as long as it has received nothing from clients since it last asked which descriptors are ready.
///
/// What ends the thread's wait for the network has arrived by then: the first thing that it receives afterwards arrived
/// with the softirq that woke it. The rest had arrived when the thread last asked which descriptors are ready; where it
/// does not ask, when it began to receive. What it learns of or receives first after it was stopped arrived at some
/// moment since then: such a request begins with the stop.
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
                // Of a request that is under way a stop is a part.
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
                        // A signal ended its wait, or a timeout: then nothing had arrived.
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

/// The wait that a wakeup ended: when it began, and for what it was.
fn ended(timeline: &Timeline, pid: Pid, arc: &Span) -> Option<(Time, Reason)> {
    let thread = timeline.thread(pid)?;
    let after = thread.waits.partition_point(|&n| timeline.rows.end(n) < arc.start);
    let wait = timeline.span(*thread.waits.get(after)?);
    let What::Wait(reason) = wait.what() else { return None };
    (end(&wait) == arc.start).then_some((wait.start, reason))
}

/// When what a wakeup brings had arrived: the start of the softirq that brought it.
fn arrival(timeline: &Timeline, arc: &Span) -> Time {
    let is_softirq = |b: &Span| b.level() == Some(Level::Softirq);
    let running = arc.cpu.and_then(|cpu| timeline.before(cpu, arc.start + Time::UNIT).next());
    running.filter(is_softirq).map_or(arc.start, |bringer| bringer.start)
}

/// What a thread that serves has under way.
#[derive(Debug, Default)]
struct Serving {
    /// When what it receives next arrived, if it was woken for that.
    arrival: Option<Time>,
    /// When it was stopped, since it last waited for something to receive.
    stopped: Option<Time>,
    /// When it last was told which descriptors are ready.
    polled: Option<Time>,
    /// Whether it has heard of another request since, or has something else to do.
    hears: bool,
    /// By descriptor.
    open: HashMap<i64, Open>,
}

/// A request that has arrived.
#[derive(Debug)]
struct Open {
    /// When.
    start: Time,
    /// Which thread last sent an answer, and until when.
    sent: Option<(Pid, Time)>,
    /// Whether the thread has asked since which descriptors are ready.
    asked: bool,
}

impl Serving {
    /// Whether it has received what it has not answered.
    fn is_busy(&self, owner: Pid, sides: &Sides) -> bool {
        self.open.iter().any(|(on, open)| open.sent.is_none() && sides.sure.contains(&(owner, *on)))
    }

    /// It asks which descriptors are ready: what it has responded to is over, unless more of it follows.
    fn ask(&mut self) {
        (self.polled, self.hears) = (None, false);
        self.open.values_mut().for_each(|open| open.asked = open.sent.is_some());
    }

    /// It sends, or another thread does for it; whether that answers a request.
    fn sends(&mut self, on: i64, by: (Pid, Time), found: &mut Vec<Request>) -> bool {
        if self.hears && self.open.get(&on).is_some_and(|open| open.asked) {
            self.flush_one(on, found);
        }
        let Some(open) = self.open.get_mut(&on) else { return false };
        open.sent = Some(by);
        true
    }

    /// What it has responded to is over.
    fn flush_one(&mut self, descriptor: i64, found: &mut Vec<Request>) {
        if let Some(&Open { start, sent: Some((pid, end)), .. }) = self.open.get(&descriptor) {
            found.push(Request { pid, start, end });
            self.open.remove(&descriptor);
        }
    }
}

/// On which side of a descriptor threads are: the client's if their process connected it, or did not accept it and they
/// began by sending.
#[derive(Debug)]
struct Sides {
    by: By,
    /// By thread and descriptor: how it began.
    begun: HashMap<(Pid, i64), Side>,
    /// Those that were connected or accepted.
    known: HashMap<(Pid, i64), Side>,
    /// Those, and where a request was answered: no files.
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

    /// Whether what is sent on a descriptor goes to clients for sure: on others, threads of a process may wake each other.
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

/// Whether only sockets have this call that sends or receives.
fn is_of_socket(timeline: &Timeline, s: &Span) -> bool {
    let name = timeline.text(s);
    name.starts_with("send") || name.starts_with("recv")
}

/// The thread that makes a call, if it is one.
fn caller(s: &Span) -> Option<Pid> {
    s.thread().filter(|_| s.level() == Some(Level::Syscall))
}
