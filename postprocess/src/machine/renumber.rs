// SPDX-License-Identifier: BSD-3-Clause
//! Renumber: gives CPUs and threads of a machine their numbers among those of all machines.
//!
//! CPUs follow those of the machine before. A thread's number has the machine's number above its own, which is below
//! 2^22, the maximum on Linux. Idle is 0 on every machine: it belongs to its CPU. The number of a control group has the
//! machine's number above its own 20 bits.

use super::shift::Shift;
use crate::event::fact::Fact;
use crate::event::point::Point;
use crate::event::what::What;
use crate::event::{number, Event, Interval};
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Bits of the number of a control group on its machine: those of [`Throttle`](kutrace_format::abi::event::Throttle).
const GROUP_BITS: u32 = 20;
/// Bits of the id of a control group that are used up only in years.
const CGROUP_BITS: u32 = 26;

/// Conversion of one machine's events to those of all.
#[derive(Clone, Debug)]
pub struct Renumber {
    /// Index among the machines.
    pub machine: u32,
    /// Number of its first CPU.
    pub first_cpu: u32,
    /// Number of its CPUs.
    pub cpus: u32,
    /// Offset from its time to that of all.
    pub shift: Shift,
}

impl Renumber {
    /// A moment; a time before the minute stands for no time, and stays.
    #[inline]
    pub fn time(&self, at: Time) -> Time {
        if at < Time::ZERO {
            at
        } else {
            self.shift.at(at).max(Time::ZERO)
        }
    }

    /// A CPU; one that the trace does not have belongs to no machine.
    pub fn cpu(&self, cpu: u32) -> CpuId {
        CpuId::new(if cpu < self.cpus { self.first_cpu + cpu } else { u32::MAX })
    }

    /// A thread.
    pub fn pid(&self, pid: Pid) -> Pid {
        pid.on(self.machine)
    }

    /// A control group, by number.
    fn group(&self, group: u32) -> u32 {
        self.machine << GROUP_BITS | group & ((1 << GROUP_BITS) - 1)
    }

    /// A control group, by its id.
    fn cgroup(&self, id: u32) -> u32 {
        self.machine << CGROUP_BITS | id & ((1 << CGROUP_BITS) - 1)
    }

    /// The time for which a CPU was traced.
    pub fn interval(&self, i: Interval) -> Interval {
        Interval { cpu: self.cpu(i.cpu.number()), from: self.time(i.from), to: self.time(i.to) }
    }

    /// An event; `None` for a fact that only the first machine gives.
    pub fn event(&self, e: Event) -> Option<Event> {
        let ts = self.time(e.ts);
        let dur = match e.dur {
            Time::ZERO | Time::UNIT => e.dur,
            dur => (self.time(e.ts.saturating_add(dur)).saturating_sub(ts)).max(Time::UNIT),
        };
        let e = Event { ts, dur, cpu: self.cpu(e.cpu.number()), pid: self.pid(e.pid), ..e };
        Some(match e.what {
            What::Fact(fact) => self.fact(fact, e)?,
            What::Switch | What::Point(Point::Runnable) => Event { arg: self.pid(Pid::new(e.arg)).number(), ..e },
            What::Point(Point::Ipi | Point::MonitorStore | Point::Offline | Point::Online) => {
                Event { arg: self.cpu(e.arg).number(), ..e }
            }
            What::Point(Point::Throttle | Point::Unthrottle) => {
                Event { arg: self.group(e.arg), ret: self.cpu(e.ret as u32).number() as i32, ..e }
            }
            _ => e,
        })
    }

    /// A fact; `None` if only the first machine gives it.
    fn fact(&self, fact: Fact, e: Event) -> Option<Event> {
        let pid = |number: u32| self.pid(Pid::new(number)).number();
        let (what, arg) = match fact {
            Fact::Name(number::KERNEL_NAME | number::MODEL_NAME | number::HOST_NAME | number::HYPERVISOR)
                if self.machine > 0 =>
            {
                return None
            }
            Fact::Name(number::PID_NAME | number::VCPU | number::CGROUP) => (fact, pid(e.arg)),
            Fact::Name(number::CGROUP_PATH) => (fact, self.cgroup(e.arg)),
            Fact::Name(_) => (fact, e.arg),
            Fact::OpenCall(_) | Fact::Kernel(_) | Fact::File(_) => (fact, pid(e.arg)),
            Fact::Process(process) => (Fact::Process(self.pid(process)), pid(e.arg)),
            Fact::Group(group) => (Fact::Group(self.group(group)), pid(e.arg)),
            Fact::Member(group) => (Fact::Member(self.cgroup(group)), pid(e.arg)),
            Fact::Offline | Fact::Tickless => (fact, self.cpu(e.arg).number()),
        };
        Some(Event { what: What::Fact(what), arg, ..e })
    }
}
