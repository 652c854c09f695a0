// SPDX-License-Identifier: BSD-3-Clause
//! Entries of the original's to events: names, the running thread, and the columns of the text.
//!
//! Names of threads are recorded under the low 16 bits of the pid; they apply to the thread that runs or is switched
//! to. A thread with a larger pid gets its name in full when it is switched to.

use std::collections::{HashMap, VecDeque};

use kutrace_format::abi::event::Rpc;

use super::stream::{Item, Stream, Timed};
use super::{named, Record};
use crate::event::fact::Fact;
use crate::event::names::{NameId, Names};
use crate::event::point::Point;
use crate::event::what::What;
use crate::event::{number, Event};
use crate::id::{CpuId, Pid};
use crate::merge::Merge;
use crate::raw::decode::Counts;
use crate::raw::name::EventNames;
use crate::raw::task::Tasks;
use crate::time::Time;

/// Turns merged entries into events, one at a time.
#[derive(Debug)]
pub struct Decoder<'a> {
    merge: Merge<Stream<'a>>,
    cpus: Vec<Cpu>,
    tasks: Tasks,
    event_names: EventNames,
    /// Names by kind and number: threads, by the low half of their pid; methods, locks, queues.
    given: HashMap<(u32, u32), NameId>,
    /// Events decoded and not yet returned.
    ready: VecDeque<Event>,
    /// Counts collected on the way.
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    id: CpuId,
    /// RPC it works on, 0 for none.
    rpc: u32,
    /// The softirq it handles.
    softirq: u32,
    /// True if the running thread must be reported at the next block.
    adrift: bool,
}

impl<'a> Decoder<'a> {
    /// A decoder of `streams`, ordered by CPU. The first events are `records`.
    pub fn new(streams: Vec<Stream<'a>>, records: &[Record], event_names: EventNames, names: &mut Names) -> Self {
        let cpus = streams.iter().map(|s| Cpu { id: s.cpu, rpc: 0, softirq: 0, adrift: true }).collect();
        let mut decoder = Decoder {
            merge: Merge::new(streams),
            cpus,
            tasks: Tasks::default(),
            event_names,
            given: HashMap::new(),
            ready: VecDeque::new(),
            counts: Counts::default(),
        };
        for &record in records {
            let (kind, number, _) = record;
            let event = named(record, names);
            decoder.ready.push_back(Event { ts: Time(-1), ..event });
            match kind {
                // The first of a thread's names is the one it began with.
                number::PID_NAME => drop(decoder.given.entry((kind, number & 0xffff)).or_insert(event.name)),
                _ => drop(decoder.given.insert((kind, number & 0xffff), event.name)),
            }
        }
        decoder
    }

    /// The next event; `None` at the end.
    pub fn next(&mut self, names: &mut Names) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.counts.events += u64::from(event.what.is_event());
                return Some(event);
            }
            let (cpu, timed) = self.merge.next()?;
            self.item(cpu, timed, names);
        }
    }

    /// The streams, for what they found damaged and how far they got.
    pub fn streams(&self) -> &[Stream<'a>] {
        self.merge.streams()
    }

    fn item(&mut self, cpu: usize, Timed { ts, pid, item }: Timed, names: &mut Names) {
        let Cpu { id, rpc, .. } = self.cpus[cpu];
        let here = Event { ts, cpu: id, pid, rpc, ..Event::default() };
        match item {
            Item::Event { event, dur, arg, ret, ipc } => {
                self.event(cpu, event, Event { dur, arg, ret, ipc, ..here }, names);
            }
            Item::Name(record) => self.name(ts, pid, record, names),
            Item::Sample(pc, mhz) => {
                self.frequency(mhz, here, names);
                let what = What::Point(if pc >> 63 == 0 { Point::PcUser } else { Point::PcKernel });
                let (arg, name) = ((pc >> 6) as u32 & 0xffff, names.id(&format!("PC={pc:012x}")));
                self.ready.push_back(Event { what, arg, name, ..here });
            }
            Item::Begin(comm, mhz) => {
                if !comm.is_empty() {
                    self.name(ts, pid, (number::PID_NAME, pid.number(), comm), names);
                }
                if std::mem::take(&mut self.cpus[cpu].adrift) {
                    let name = self.user(pid, names);
                    self.ready.push_back(Event {
                        dur: Time::UNIT,
                        what: What::Switch,
                        arg: pid.number(),
                        name,
                        ..here
                    });
                    self.frequency(mhz, here, names);
                }
            }
            Item::Lost => {
                self.ready.push_back(Event { what: What::Lost, name: names.id("-lost-"), ..here });
                self.cpus[cpu].adrift = true;
                self.counts.gaps += 1;
            }
        }
    }

    /// Adds a frequency in MHz, if it is known.
    fn frequency(&mut self, mhz: u32, here: Event, names: &mut Names) {
        if mhz > 0 {
            let (what, name) = (What::Point(Point::Frequency), names.id("-freq-"));
            self.ready.push_back(Event { dur: Time::UNIT, what, arg: mhz, name, ..here });
        }
    }

    fn name(&mut self, ts: Time, pid: Pid, (kind, number, text): Record, names: &mut Names) {
        let meant = if kind == number::PID_NAME && number == pid.number() & 0xffff { pid.number() } else { number };
        let event = named((kind, meant, text), names);
        self.given.insert((kind, number & 0xffff), event.name);
        self.ready.push_back(Event { ts, ..event });
        if kind == number::PID_NAME {
            self.call(Pid::new(meant), event.name, names);
        }
    }

    /// Gives a thread a name; false if it already has that name.
    fn call(&mut self, pid: Pid, name: NameId, names: &mut Names) -> bool {
        let task = self.tasks.find(pid, names);
        let text = names.text(name).to_string();
        self.tasks.rename(task, &text, names)
    }

    fn event(&mut self, cpu: usize, event: u32, mut e: Event, names: &mut Names) {
        e.what = What::of(event);
        e.name = match event {
            number::SWITCH => {
                self.introduce(e.ts, e.pid, names);
                self.user(e.pid, names)
            }
            number::RUNNABLE => {
                let task = self.tasks.find(Pid::new(e.arg), names);
                self.tasks.get(task).runnable
            }
            number::SOFTIRQ => {
                if e.dur == Time::ZERO {
                    self.cpus[cpu].softirq = e.arg;
                }
                self.event_names.softirq(event, e.arg, names)
            }
            number::SOFTIRQ_RETURN => {
                e.arg = self.cpus[cpu].softirq;
                self.event_names.softirq(event, e.arg, names)
            }
            number::RPC_REQUEST..=number::RPC_SENT => self.after(number::METHOD_NAME, event, &e, names),
            number::LOCK_TRY..=number::LOCK_RELEASED => self.after(number::LOCK_NAME, event, &e, names),
            number::ENQUEUE | number::DEQUEUE => self.after(number::QUEUE_NAME, event, &e, names),
            ..=number::SPECIAL_LAST => self.event_names.point(event, e.arg, names),
            _ => self.event_names.event(event, names),
        };
        if matches!(event, number::RPC_REQUEST..=number::RPC_MIDDLE) {
            let id = Rpc(e.arg).id();
            if id != 0 {
                e.rpc = id;
            }
            self.cpus[cpu].rpc = id;
        }
        self.ready.push_back(e);
    }

    /// Reports the name of a thread whose pid does not fit into its name record.
    fn introduce(&mut self, ts: Time, pid: Pid, names: &mut Names) {
        let Some(&name) = self.given.get(&(number::PID_NAME, pid.number() & 0xffff)) else { return };
        if self.call(pid, name, names) && pid.number() > 0xffff {
            self.ready.push_back(Event {
                ts,
                dur: Time::UNIT,
                what: What::Fact(Fact::Name(number::PID_NAME)),
                arg: pid.number(),
                name,
                ..Event::default()
            });
        }
    }

    /// The name of an event about something with a name of its own, if that is known.
    fn after(&mut self, kind: u32, event: u32, e: &Event, names: &mut Names) -> NameId {
        let plain = self.event_names.point(event, e.arg, names);
        let Some(&given) = self.given.get(&(kind, e.arg & 0xffff)).filter(|_| e.arg != 0) else { return plain };
        let given = names.text(given);
        let text = match event {
            number::LOCK_TRY => format!("try_{given}"),
            number::LOCK_ACQUIRED => format!("acq_{given}"),
            number::LOCK_RELEASED => format!("rel_{given}"),
            number::ENQUEUE => format!("enq_{given}"),
            number::DEQUEUE => format!("deq_{given}"),
            _ => format!("{given}.{}", Rpc(e.arg).id()),
        };
        names.id(&text)
    }

    /// Name of a thread's user code.
    fn user(&mut self, pid: Pid, names: &mut Names) -> NameId {
        let task = self.tasks.find(pid, names);
        match pid {
            Pid::IDLE => names.id("-idle-.0"),
            _ => self.tasks.get(task).user,
        }
    }
}
