// SPDX-License-Identifier: BSD-3-Clause
//! Messages: packets of flows of which both ends are in the trace, on one machine or on two, and whom they woke.
//!
//! A thread that waits for the network is woken by the softirq that received a packet. The packet was sent at a moment
//! that the trace has, by a thread that it has: until then the waiting thread waited for that one, and from then on for
//! the network.

use std::collections::{BTreeMap, HashMap, HashSet};

use kutrace_format::abi::packet::FLOW_DIRECTION;

use super::timeline::{end, Timeline};
use crate::event::flow::named;
use crate::event::number::Level;
use crate::event::point::Point;
use crate::id::{CpuId, Pid};
use crate::span::Span;
use crate::time::Time;

/// Between two parts of one burst of interrupts this may lie.
const BETWEEN: Time = Time(100);

/// All packets of flows with data.
#[derive(Debug, Default)]
pub struct Messages {
    /// By flow and sequence number: when such a packet was sent.
    sent: BTreeMap<(u32, u32), Sent>,
    /// By CPU: what it received, by time.
    received: HashMap<CpuId, Vec<Received>>,
    /// Which thread has sent on which flow.
    talks: HashSet<(Pid, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    bytes: u32,
    /// The thread that sent it, or the last one that did on its flow.
    by: Option<Pid>,
    /// When it was first sent again.
    again: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Received {
    at: Time,
    flow: u32,
    sequence: u32,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it was sent.
    pub sent: Time,
    /// By whom, if that is known.
    pub by: Option<Pid>,
    /// Whether it was sent again before it arrived.
    pub again: bool,
}

impl Messages {
    /// Those of a trace.
    pub fn of(timeline: &Timeline) -> Messages {
        let mut all = Messages::default();
        let mut last: HashMap<u32, Pid> = HashMap::new();
        let points = timeline.points().filter(|s| s.ret > 0);
        for s in points {
            let (Some(way @ (Point::RxFlow | Point::TxFlow)), Some(cpu)) = (s.point(), s.cpu) else { continue };
            let text = timeline.text(&s);
            let Some(flow) = named(text).map(|named| named.flow) else { continue };
            let (at, sequence, bytes) = (s.start, s.arg as u32, s.ret as u32);
            if way == Point::RxFlow {
                all.received.entry(cpu).or_default().push(Received { at, flow, sequence });
                continue;
            }
            let interrupted = timeline.before(cpu, at + Time::UNIT).next().is_some_and(|s| is_interrupt(&s));
            if let Some(pid) = s.thread().filter(|_| !interrupted) {
                all.talks.insert((pid, flow));
                last.insert(flow, pid);
            }
            let by = last.get(&flow).copied();
            match all.sent.get_mut(&(flow, sequence)).filter(|_| text.starts_with("re")) {
                Some(first) => {
                    first.bytes = first.bytes.max(bytes);
                    first.again = first.again.or(Some(at));
                }
                None => drop(all.sent.insert((flow, sequence), Sent { at, bytes, by, again: None })),
            }
        }
        all.received.values_mut().for_each(|list| list.sort_by_key(|one| one.at));
        all
    }

    /// The message by which a thread was woken: the last one of the same burst of softirqs on a flow of the thread, or
    /// if it has sent on none yet, the last one.
    pub fn woke(&self, timeline: &Timeline, pid: Pid, arc: &Span) -> Option<Message> {
        let list = self.received.get(&arc.cpu?)?;
        let before = || list[..list.partition_point(|one| one.at <= arc.start)].iter().rev();
        before().next()?;
        let since = burst(timeline, arc)?;
        let recent = || before().take_while(move |one| one.at >= since);
        let own = recent().find(|one| self.talks.contains(&(pid, one.flow ^ FLOW_DIRECTION)));
        let one = own.or_else(|| recent().next())?;
        let ((flow, first), sent) = self.sent.range(..=(one.flow, one.sequence)).next_back()?;
        let is_it = *flow == one.flow && one.sequence - first < sent.bytes && sent.at <= one.at;
        let again = sent.again.is_some_and(|again| again <= one.at);
        is_it.then_some(Message { sent: sent.at, by: sent.by, again })
    }
}

fn is_interrupt(span: &Span) -> bool {
    matches!(span.level(), Some(Level::Softirq | Level::Irq))
}

/// When the softirqs began in which a thread was woken; `None` if it was not woken in one.
fn burst(timeline: &Timeline, arc: &Span) -> Option<Time> {
    let mut before = timeline.before(arc.cpu?, arc.start + Time::UNIT).skip_while(|s| s.start > arc.start);
    let mut since = before.next().filter(is_interrupt)?.start;
    for s in before.take_while(is_interrupt) {
        if since - end(&s) > BETWEEN {
            break;
        }
        since = s.start;
    }
    Some(since)
}
