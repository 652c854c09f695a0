// SPDX-License-Identifier: BSD-3-Clause
//! Nest: the host's activity while it did not run a guest's CPU, as events of that CPU.
//!
//! The state of a virtual CPU follows from the thread that runs it:
//!
//! * **in its guest**, from its entry to its exit: the CPU runs;
//! * **left**, after an exit: the host handles the exit, or another thread has the thread's CPU, or none;
//! * **halted**, after an exit because the guest has nothing to do: nothing is stolen;
//! * **woken**, from the wakeup of the thread of a halted one: the guest's CPU is to wake up, but has not yet.
//!
//! Each state but the second last is reported to the guest's CPU when it begins.
//!
//! Invariant: a report has the time of the host's event from which it follows, and comes after it. Nothing is reported
//! for a time in which the guest's CPU is not traced.

use std::collections::{BTreeMap, VecDeque};

use kutrace_format::abi::guest::GuestExit;

use crate::event::names::Names;
use crate::event::point::Point;
use crate::event::stolen::{Instead, EVEN_IDLE};
use crate::event::what::What;
use crate::event::{Event, Interval};
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// All guests whose hosts are also traced.
#[derive(Debug, Default)]
pub struct Nest {
    /// Virtual CPUs, by the host's thread that runs each.
    vcpus: BTreeMap<Pid, Vcpu>,
    /// The threads that run virtual CPUs, by the guest's CPU.
    threads: BTreeMap<CpuId, Pid>,
}

/// A virtual CPU.
#[derive(Debug)]
struct Vcpu {
    /// The guest's CPU.
    cpu: CpuId,
    /// Index of the guest among the machines.
    machine: usize,
    /// Start and end of the guest CPU's trace.
    traced: (Time, Time),
    /// End of its host's trace.
    told: Time,
    state: State,
    /// The host's CPU that last ran its thread.
    on: Option<CpuId>,
    /// Reason of its last exit from the guest.
    exit: GuestExit,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No event of it was seen yet.
    Unknown,
    Inside,
    Left,
    Halted,
    Woken,
}

/// Placement of a guest's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events in the time in which the host ran their CPU.
    pub inside: u64,
    /// Events in other time that the host traced.
    pub outside: u64,
    /// Events before the host's trace shows what the thread of their CPU does, and after that trace.
    pub untold: u64,
}

impl Nest {
    /// Adds a CPU of a guest, traced for this interval, that this thread of its host runs; the host is traced until
    /// `told`.
    pub fn add(&mut self, machine: usize, traced: Interval, thread: Pid, told: Time) {
        let (exit, tally) = (GuestExit(GuestExit::UNKNOWN), Tally::default());
        let Interval { cpu, from, to } = traced;
        let vcpu = Vcpu { cpu, machine, traced: (from, to), told, state: State::Unknown, on: None, exit, tally };
        self.vcpus.insert(thread, vcpu);
        self.threads.insert(cpu, thread);
    }

    /// Takes an event of any machine, and adds the events that follow from it for the CPUs of guests.
    #[inline]
    pub fn event(&mut self, e: &Event, names: &mut Names, follows: &mut VecDeque<Event>) {
        if self.vcpus.is_empty() || e.ts < Time::ZERO {
            return;
        }
        let before = follows.len();
        self.happens(e, names, follows);
        if follows.len() > before {
            follows.retain(|told| {
                let vcpu = self.threads.get(&told.cpu).and_then(|thread| self.vcpus.get(thread));
                vcpu.is_some_and(|vcpu| vcpu.traced.0 <= told.ts && told.ts < vcpu.traced.1)
            });
        }
    }

    fn happens(&mut self, e: &Event, names: &mut Names, follows: &mut VecDeque<Event>) {
        if let Some(vcpu) = self.threads.get(&e.cpu).and_then(|thread| self.vcpus.get_mut(thread)) {
            vcpu.count(e);
        }
        match e.what {
            What::Point(Point::GuestEnter | Point::GuestExit) => {
                if let Some(vcpu) = self.vcpus.get_mut(&e.pid) {
                    follows.push_back(vcpu.passes(e, names));
                }
            }
            What::Point(Point::Runnable) => {
                let woken = self.vcpus.get_mut(&Pid::new(e.arg)).filter(|vcpu| vcpu.state == State::Halted);
                if let Some(vcpu) = woken {
                    vcpu.state = State::Woken;
                    follows.push_back(vcpu.told(e.ts, Instead::Wakes, names));
                }
            }
            What::Switch if e.dur == Time::ZERO => self.switched(e, names, follows),
            _ => {}
        }
    }

    /// A CPU of a host runs another thread.
    fn switched(&mut self, e: &Event, names: &mut Names, follows: &mut VecDeque<Event>) {
        if let Some(vcpu) = self.vcpus.get_mut(&Pid::new(e.arg)) {
            vcpu.on = Some(e.cpu);
            if vcpu.state == State::Left {
                let reason = reason(vcpu.exit);
                follows.push_back(vcpu.told(e.ts, Instead::Handles(&reason), names));
            }
        }
        for (thread, vcpu) in &mut self.vcpus {
            if vcpu.on == Some(e.cpu) && vcpu.state == State::Left && thread.number() != e.arg {
                let next = names.text(e.name).to_string();
                let instead = if e.arg == 0 { Instead::Idles } else { Instead::Runs(&next) };
                follows.push_back(vcpu.told(e.ts, instead, names));
            }
        }
    }

    /// Placement of a guest's events.
    pub fn tally(&self, machine: usize) -> Tally {
        let mut all = Tally::default();
        for vcpu in self.vcpus.values().filter(|vcpu| vcpu.machine == machine) {
            all.inside += vcpu.tally.inside;
            all.outside += vcpu.tally.outside;
            all.untold += vcpu.tally.untold;
        }
        all
    }
}

impl Vcpu {
    /// Counts an event of the guest's CPU.
    fn count(&mut self, e: &Event) {
        match self.state {
            _ if !e.what.is_event() => {}
            _ if e.ts > self.told => self.tally.untold += 1,
            State::Unknown => self.tally.untold += 1,
            State::Inside => self.tally.inside += 1,
            State::Left | State::Halted | State::Woken => self.tally.outside += 1,
        }
    }

    /// The virtual CPU enters its guest or leaves it.
    fn passes(&mut self, e: &Event, names: &mut Names) -> Event {
        self.on = Some(e.cpu);
        if e.what == What::Point(Point::GuestEnter) {
            self.state = State::Inside;
            return self.says(e.ts, Point::StolenReturn, 0, "/stolen", names);
        }
        self.exit = GuestExit(e.arg);
        if self.exit.is_halt() {
            self.state = State::Halted;
            return self.says(e.ts, Point::StolenReturn, 0, "/stolen", names);
        }
        self.state = State::Left;
        let reason = reason(self.exit);
        self.told(e.ts, Instead::Handles(&reason), names)
    }

    fn told(&self, ts: Time, instead: Instead, names: &mut Names) -> Event {
        let arg = if instead == Instead::Wakes { EVEN_IDLE } else { 0 };
        self.says(ts, Point::Stolen, arg, &instead.name(), names)
    }

    fn says(&self, ts: Time, point: Point, arg: u32, name: &str, names: &mut Names) -> Event {
        Event {
            ts,
            dur: Time::UNIT,
            what: What::Point(point),
            cpu: self.cpu,
            arg,
            name: names.id(name),
            ..Event::default()
        }
    }
}

/// Name of an exit.
fn reason(exit: GuestExit) -> String {
    exit.name().map_or_else(|| format!("{:#x}", exit.reason()), str::to_string)
}
