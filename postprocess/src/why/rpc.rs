// SPDX-License-Identifier: BSD-3-Clause
//! RPCs as requests: from a request to the response of the same RPC, in one process.
//!
//! A thread that turns to another RPC, or to none, before it has responded has handed its own on, or put it off: the
//! RPC began there, whichever thread later reports its start.

use foldhash::HashMap;
use kutrace_format::abi::event::Rpc;

use super::request::{Begun, Found, Request};
use super::timeline::{end, Timeline};
use crate::event::point::Point;
use crate::id::Pid;
use crate::span::Span;
use crate::time::Time;

/// A process, and the number of an RPC.
type Key = (Pid, u32);

/// RPCs under way.
struct UnderWay<'t> {
    timeline: &'t Timeline<'t>,
    begun: Begun<u32>,
    /// RPC of each thread.
    at: HashMap<Pid, u32>,
    /// Thread that began each RPC that was handed on, and when.
    handed: HashMap<Key, (Pid, Time)>,
    /// RPCs with a response, and for each number the last of them.
    found: Vec<Request>,
    answered: HashMap<Key, usize>,
}

impl UnderWay<'_> {
    /// A thread turns to an RPC, or with 0 to none, and hands on the previous one. The thread that got that one may
    /// have responded already.
    fn turn(&mut self, pid: Pid, id: u32) {
        let Some(before) = self.at.insert(pid, id).filter(|&before| before != id) else { return };
        let Some(start) = self.begun.leave(self.timeline, pid, before) else { return };
        let key = (self.timeline.spans.meta.process_of(pid), before);
        let answered = self.answered.get(&key).map(|&n| &mut self.found[n]);
        match answered.filter(|request| request.pid != pid && request.start > start) {
            Some(request) => request.start = start,
            None => drop(self.handed.entry(key).or_insert((pid, start))),
        }
    }

    /// A thread responds.
    fn answer(&mut self, pid: Pid, id: u32, end: Time) {
        self.at.remove(&pid);
        let key = (self.timeline.spans.meta.process_of(pid), id);
        let handed = self.handed.remove(&key).map(|(_, start)| start);
        let begun = self.begun.end(self.timeline, pid, id);
        if let Some(start) = handed.into_iter().chain(begun).min() {
            self.answered.insert(key, self.found.len());
            self.found.push(Request { pid, start, end });
        }
    }
}

/// Finds all RPCs, or those of a method, as time of the thread that responds. In a trace without responses, an RPC ends
/// when the thread of the request turns to no RPC.
pub fn rpcs(timeline: &Timeline, method: Option<&str>) -> Found {
    let (begun, at, handed) = (Begun::default(), HashMap::default(), HashMap::default());
    let mut under_way = UnderWay { timeline, begun, at, handed, found: Vec::new(), answered: HashMap::default() };
    let mut turned: HashMap<Pid, Time> = HashMap::default();
    let mut left = Vec::new();
    let is_of = |s: &Span| method.is_none_or(|method| timeline.text(s).split(['.', ':']).any(|part| part == method));
    for s in timeline.points() {
        let Some(pid) = s.pid else { continue };
        let id = Rpc(s.arg as u32).id();
        match s.point() {
            Some(Point::RpcRequest) => {
                under_way.turn(pid, id);
                if id == 0 {
                    left.extend(turned.remove(&pid).map(|start| Request { pid, start, end: end(&s) }));
                } else if is_of(&s) {
                    under_way.begun.begin(timeline, pid, id, s.start);
                    turned.insert(pid, s.start);
                }
            }
            Some(Point::RpcResponse) => under_way.answer(pid, id, end(&s)),
            _ => {}
        }
    }
    let unfinished = |(pid, start)| Request { pid, start, end: timeline.extent.1 };
    let UnderWay { begun, handed, found, .. } = under_way;
    if found.is_empty() {
        return Found::new(left, turned.into_iter().map(unfinished).collect());
    }
    let open = begun.left(timeline).map(|(_, request)| request);
    Found::new(found, open.chain(handed.into_values().map(unfinished)).collect())
}
