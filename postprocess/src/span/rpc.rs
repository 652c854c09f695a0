// SPDX-License-Identifier: BSD-3-Clause
//! Remote procedure calls: the one that each thread works on, the time that a call is in a queue, and its messages on
//! the wire.
//!
//! A thread names the RPC it works on; 0 is none. The argument is an [`Rpc`].
//!
//! * **Queues.** A thread that enqueues an RPC is done with it when it turns to another or switches away; from then on
//!   the RPC is in the queue, until a thread that dequeued reports that it works on it.
//! * **Messages.** The kernel sees packets with a hash of their first bytes; the program reports the hash of a message
//!   that it received before it names the RPC, and of a message that it sends after naming it.

use std::collections::HashMap;

use kutrace_format::abi::event::Rpc;

use super::build::Builder;
use super::thread::RpcIs;
use super::what::What;
use super::Span;
use crate::event::names::Names;
use crate::event::point::Point;
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Queueing shorter than this many units is not drawn: 100 ns.
const SHORT: Time = Time(10);
/// Size code of the smallest message, a minimal packet.
const SMALLEST: u8 = 64;
/// Rate in Mb/s of the link that messages are drawn for.
pub const LINK_RATE: u32 = 1000;

/// Queues and messages that are waiting for their other end.
#[derive(Debug, Default)]
pub struct Rpcs {
    /// By RPC: the start of its time in a queue.
    queued: HashMap<u32, Time>,
    /// By hash: the time when a packet arrived.
    arrived: HashMap<u32, Time>,
    /// By thread: the time when the packet that it received had arrived.
    incoming: HashMap<usize, Time>,
    /// By thread: the RPC whose message it is about to send.
    outgoing: HashMap<usize, Event>,
    /// By hash: the thread that sends this packet.
    leaving: HashMap<u32, usize>,
}

impl Rpcs {
    /// The time in a queue of a dequeued RPC that a thread now works on.
    fn dequeue(&mut self, rpc: u32, dequeued: &Event, t: Time, names: &mut Names) -> Option<Span> {
        let start = self.queued.remove(&rpc).filter(|&start| t - start >= SHORT)?;
        let text = names.text(dequeued.name);
        let name = text.strip_prefix("deq_").unwrap_or(text).to_string();
        let name = names.id(&name);
        let (what, dur, arg) = (What::Point(Point::Enqueue), t - start, dequeued.arg.into());
        Some(Span { start, dur, rpc: rpc as i32, what, arg, name, ..Span::default() })
    }

    /// A thread names the RPC of the message that it received, or of the one that it is about to send.
    fn name_message(&mut self, thread: usize, e: &Event) -> Option<Span> {
        let arrival = self.incoming.remove(&thread);
        if arrival.is_none() {
            self.outgoing.insert(thread, *e);
        }
        Some(message(Point::RpcReceived, e, arrival?))
    }

    /// The kernel or a program sees a packet, in this thread; returns the message, if it leaves.
    pub fn packet(&mut self, thread: usize, e: &Event, point: Point, t: Time) -> Option<Span> {
        match point {
            Point::RxPacket => drop(self.arrived.insert(e.arg, t)),
            Point::RxUser => self.incoming.extend(self.arrived.remove(&e.arg).map(|at| (thread, at))),
            Point::TxUser => drop(self.leaving.insert(e.arg, thread)),
            _ => {
                let rpc = self.leaving.remove(&e.arg).and_then(|sender| self.outgoing.remove(&sender))?;
                return Some(message(Point::RpcSent, &rpc, t));
            }
        }
        None
    }
}

/// A message on the wire: up to its arrival, or from its departure.
fn message(point: Point, rpc: &Event, at: Time) -> Span {
    let said = Rpc(rpc.arg);
    let code = said.size_code().max(SMALLEST);
    let bytes = (f64::from(code) / 10.0).exp2() as i64;
    let dur = Time(bytes * 800 / i64::from(LINK_RATE));
    let start = if point == Point::RpcReceived { at - dur } else { at };
    let (id, name, what) = (said.id() as i32, rpc.name, What::Point(point));
    let (cpu, pid) = (Some(CpuId::default()), Some(Pid::IDLE));
    Span { start, dur, cpu, pid, rpc: id, what, arg: bytes, name, ..Span::default() }
}

impl Builder {
    /// A thread turns to another RPC.
    pub(super) fn turn_to(&mut self, c: usize, e: &Event, point: Point, t: Time) {
        self.leave_queued(c, t);
        let index = self.cpus[c].thread;
        let thread = &mut self.threads.list[index];
        thread.rpc = Rpc(e.arg).id();
        thread.rpc_name = e.name;
        let rpc = thread.rpc;
        let dequeued = thread.dequeued.take().filter(|_| rpc != 0);
        let queued = dequeued.and_then(|dequeued| self.rpcs.dequeue(rpc, &dequeued, t, &mut self.names));
        self.emit(queued);
        if rpc != 0 && point != Point::RpcMiddle {
            let received = self.rpcs.name_message(index, e);
            self.emit(received);
        }
    }

    /// A thread turns away from its RPC; an RPC that it has enqueued is in the queue from now on.
    pub(super) fn leave_queued(&mut self, c: usize, t: Time) {
        let thread = &mut self.threads.list[self.cpus[c].thread];
        if std::mem::take(&mut thread.rpc_is) == RpcIs::Enqueued && thread.rpc != 0 {
            self.rpcs.queued.insert(thread.rpc, t);
        }
    }

    /// A thread puts its RPC into a queue or takes one out.
    pub(super) fn queue(&mut self, c: usize, e: &Event, point: Point) {
        let thread = &mut self.threads.list[self.cpus[c].thread];
        if point == Point::Enqueue {
            thread.rpc_is = RpcIs::Enqueued;
        } else {
            thread.dequeued = Some(*e);
        }
    }

    /// A thread that works on an RPC runs again.
    pub(super) fn resume_rpc(&mut self, c: usize, t: Time) {
        let thread = &self.threads.list[self.cpus[c].thread];
        if thread.rpc != 0 {
            let (arg, name) = (thread.rpc, thread.rpc_name);
            let line = Event { ts: t, dur: Time::UNIT, arg, name, ..Event::default() };
            self.line(c, &line, Point::RpcMiddle);
        }
    }
}
