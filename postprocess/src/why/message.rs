// SPDX-License-Identifier: BSD-3-Clause
//! Messages: packets of flows with both ends in the trace, on one machine or on two, and the threads they woke.
//!
//! A thread that waits for the network is woken by the softirq that received a packet. The trace has the moment the
//! packet was sent and the thread that sent it: until then the waiting thread waited for the sender, from then on for
//! the network.

use std::collections::{BTreeMap, HashMap, HashSet};

use kutrace_format::abi::packet::FLOW_DIRECTION;

use super::timeline::{end, Timeline};
use crate::event::flow::{named, Named};
use crate::event::number::Level;
use crate::event::point::Point;
use crate::id::{CpuId, Pid};
use crate::span::Span;
use crate::time::Time;

/// Longest gap between two parts of one burst of interrupts.
const BETWEEN: Time = Time(100);

/// All packets of flows with data that were received.
#[derive(Debug, Default)]
pub struct Messages {
    /// Received packets of each CPU, by time.
    received: HashMap<CpuId, Vec<Received>>,
    /// Threads with the flows that they have sent on.
    talks: HashSet<(Pid, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Received {
    at: Time,
    flow: u32,
    message: Option<Message>,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Time at which it was sent.
    pub sent: Time,
    /// Sender, if known.
    pub by: Option<Pid>,
    /// True if it was sent again before it arrived.
    pub again: bool,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Time,
    cpu: CpuId,
    flow: u32,
    tcp: bool,
    /// For TCP the place of its first byte in the flow, else the hash of its data.
    place: i64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    cpu: CpuId,
    bytes: u32,
    /// Thread that sent it, or the last one that sent on its flow.
    by: Option<Pid>,
    /// Time at which it was first sent again.
    again: Option<Time>,
    /// True if it has been received.
    arrived: bool,
}

/// Packets sent at each place of a flow, by time.
type All = BTreeMap<(u32, i64), Vec<Sent>>;

/// Place of the last packet of each TCP flow. Sequence numbers wrap after 2^32 bytes, places do not.
#[derive(Debug, Default)]
struct Places(HashMap<u32, i64>);

impl Places {
    fn of(&mut self, flow: u32, sequence: u32) -> i64 {
        let last = self.0.entry(flow).or_insert(sequence.into());
        *last += i64::from(sequence.wrapping_sub(*last as u32) as i32);
        *last
    }
}

impl Messages {
    /// Finds the messages of a trace.
    pub fn of(timeline: &Timeline) -> Messages {
        let mut all = Messages::default();
        let (mut sent, mut received) = (All::new(), Vec::new());
        let (mut places, mut last): (_, HashMap<u32, Pid>) = (Places::default(), HashMap::new());
        for s in timeline.points().filter(|s| s.ret > 0) {
            let (Some(way @ (Point::RxFlow | Point::TxFlow)), Some(cpu)) = (s.point(), s.cpu) else { continue };
            let text = timeline.text(&s);
            let Some(Named { flow, tcp, .. }) = named(text) else { continue };
            let (at, sequence) = (s.start, s.arg as u32);
            let place = if tcp { places.of(flow, sequence) } else { sequence.into() };
            let packet = Packet { at, cpu, flow, tcp, place };
            if way == Point::RxFlow {
                received.push(packet);
                continue;
            }
            let interrupted = timeline.before(cpu, at + Time::UNIT).next().is_some_and(|s| is_interrupt(&s));
            if let Some(pid) = s.thread().filter(|_| !interrupted) {
                all.talks.insert((pid, flow));
                last.insert(flow, pid);
            }
            let by = last.get(&flow).copied();
            send(&mut sent, &packet, s.ret as u32, by, text.starts_with("re"));
        }
        sent.values_mut().for_each(|list| list.sort_by_key(|one| one.at));
        received.sort_by_key(|packet| packet.at);
        for packet in received {
            let message = arrive(&mut sent, &packet, |other| apart(timeline, packet.cpu, other));
            let Packet { at, flow, .. } = packet;
            all.received.entry(packet.cpu).or_default().push(Received { at, flow, message });
        }
        all
    }

    /// Returns the message that woke a thread: the last one in the same burst of softirqs on a flow of the thread or,
    /// if the thread has not sent on any of them yet, the last one of all.
    pub fn woke(&self, timeline: &Timeline, pid: Pid, arc: &Span) -> Option<Message> {
        let list = self.received.get(&arc.cpu?)?;
        let before = || list[..list.partition_point(|one| one.at <= arc.start)].iter().rev();
        before().next()?;
        let since = burst(timeline, arc)?;
        let recent = || before().take_while(move |one| one.at >= since);
        let own = recent().find(|one| self.talks.contains(&(pid, one.flow ^ FLOW_DIRECTION)));
        own.or_else(|| recent().next())?.message
    }
}

/// Records a packet that is sent, perhaps again.
fn send(all: &mut All, packet: &Packet, bytes: u32, by: Option<Pid>, again: bool) {
    let Packet { at, cpu, .. } = *packet;
    let list = all.entry((packet.flow, packet.place)).or_default();
    match list.last_mut().filter(|_| again) {
        Some(first) => {
            first.bytes = first.bytes.max(bytes);
            first.again = first.again.or(Some(at));
        }
        None => list.push(Sent { at, cpu, bytes, by, again: None, arrived: false }),
    }
}

/// Returns the message that arrives with a packet: the last matching one sent by then. If that one has already arrived,
/// it may be the next one, if the clocks of the two CPUs can differ by that much.
fn arrive(all: &mut All, packet: &Packet, apart: impl Fn(CpuId) -> Time) -> Option<Message> {
    let key = (packet.flow, packet.place);
    let ((flow, first), list) = all.range_mut(..=key).next_back()?;
    let (flow, offset) = (*flow, packet.place - *first);
    if flow != packet.flow || (!packet.tcp && offset > 0) {
        return None;
    }
    let after = list.partition_point(|one| one.at <= packet.at);
    let next = list.get(after).filter(|next| next.at - packet.at <= apart(next.cpu)).map(|_| after);
    let last = after.checked_sub(1).filter(|&last| next.is_none() || !list[last].arrived);
    let one = &mut list[last.or(next)?];
    if offset >= i64::from(one.bytes) {
        return None;
    }
    one.arrived = true;
    let again = one.again.is_some_and(|again| again <= packet.at);
    Some(Message { sent: one.at.min(packet.at), by: one.by, again })
}

/// Returns by how much the clocks of two CPUs may differ, if known; those of one machine do not.
fn apart(timeline: &Timeline, one: CpuId, other: CpuId) -> Time {
    let machines = &timeline.spans.meta.machines;
    let of = |cpu: CpuId| machines.partition_point(|machine| machine.first_cpu <= cpu.number()).checked_sub(1);
    let within = |n: usize| machines[n].within;
    match (of(one), of(other)) {
        (Some(one), Some(other)) if one != other => {
            within(one).zip(within(other)).map_or(Time::ZERO, |(one, other)| one.saturating_add(other))
        }
        _ => Time::ZERO,
    }
}

fn is_interrupt(span: &Span) -> bool {
    matches!(span.level(), Some(Level::Softirq | Level::Irq))
}

/// Returns the start of the softirqs in which a thread was woken; `None` if it was not woken in one.
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
