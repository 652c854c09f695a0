// SPDX-License-Identifier: BSD-3-Clause
//! Waits of threads that could run: for a CPU that others had, for one that was idle and took its time, or for the
//! quota of their control group.
//!
//! A CPU is never idle while a thread waits in its queue, unless the thread's group is throttled, or the CPU has not
//! looked at its queue yet.

use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::Throttled;
use super::thread::Side;
use super::wait::Reason;
use crate::event::point::Point;
use crate::event::what::What;
use crate::event::Event;
use crate::time::Time;

/// Number of throttles of a CPU that are remembered.
const REMEMBERED: usize = 1024;
/// Where the trace does not show throttling, a CPU that idles for 1 ms or more, the shortest period of a quota, may be
/// one that the thread may not use. During a shorter time the thread is on its way to another CPU.
const QUOTA_MIN: Time = Time(100_000);

/// Reason why a thread can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// It was woken.
    Yes,
    /// It lost its CPU.
    No,
}

impl Builder {
    /// A CPU has used up its share of a group's quota, or may run the group again. Another CPU may report this. A
    /// group's number has 20 bits on its machine, but only 16 of them are known for a thread.
    pub(super) fn throttle(&mut self, e: &Event, t: Time) {
        let (cpu, group) = (e.ret as usize, e.arg & !0xf_0000);
        let Some(cpu) = self.cpus.get_mut(cpu) else { return };
        if e.what == What::Point(Point::Throttle) {
            if cpu.throttled.len() == REMEMBERED {
                cpu.throttled.remove(0);
            }
            cpu.throttled.push(Throttled { group, from: t, to: Time::MAX });
        } else if let Some(last) = cpu.throttled.iter_mut().rfind(|th| th.group == group && th.to == Time::MAX) {
            last.to = t;
        }
    }

    /// A CPU's thread runs, and could have run from `start` to `end`.
    pub(super) fn waited_for_cpu(&mut self, c: usize, start: Time, end: Time, woken: Woken) {
        if let Some((from, to)) = self.throttled(c, start, end) {
            // A thread that may run again is like one that was woken.
            self.waited_in_queue(c, to, end, Woken::Yes);
            self.wait_for_cpu(c, from, to, Reason::Quota);
            self.wait_for_cpu(c, start, from, Reason::Cpu);
        } else {
            self.waited_in_queue(c, start, end, woken);
        }
    }

    /// Like [`Builder::waited_for_cpu`], for a time in which the group had quota.
    fn waited_in_queue(&mut self, c: usize, start: Time, end: Time, woken: Woken) {
        let (from, to, why) = self.no_competition(c, start, end, woken).unwrap_or((end, end, Reason::Cpu));
        self.wait_for_cpu(c, to, end, Reason::Cpu);
        self.wait_for_cpu(c, from, to, why);
        self.wait_for_cpu(c, start, from, Reason::Cpu);
    }

    /// The part of that wait in which the thread did not compete with others, and the reason.
    fn no_competition(&self, c: usize, start: Time, end: Time, woken: Woken) -> Option<(Time, Time, Reason)> {
        if !self.sees(Capability::Returns) || !self.sees(Capability::Idle) {
            return None;
        }
        let (from, to, why) = self.beside_idle(c, start, end, woken)?;
        // Where quotas are not seen, a CPU that is idle this long may be one that the thread may not use.
        let idle = to - from - self.cpus[c].ticks.stalled(from, to);
        (self.sees(Capability::Quotas) || idle < QUOTA_MIN).then_some((from, to, why))
    }

    /// The part of that wait that the thread spent next to an idle CPU, and the reason.
    fn beside_idle(&self, c: usize, start: Time, end: Time, woken: Woken) -> Option<(Time, Time, Reason)> {
        let cpu = &self.cpus[c];
        let thread = &self.threads.list[cpu.thread];
        let (idle_from, idle_to) = cpu.idle;
        let straight_from_idle = if idle_to == cpu.last_switch { end } else { idle_to };
        let beside = start.max(idle_from);
        match woken {
            Woken::No if thread.side == Side::Program && thread.last_cpu == Some(c) && idle_to > start => {
                Some((idle_from.max(start), straight_from_idle.min(end), Reason::Idle))
            }
            _ if cpu.interrupted(beside, end) * 2 > end.saturating_sub(beside) => None,
            _ if idle_from <= start && idle_to >= start => Some((start, straight_from_idle, Reason::Idle)),
            // The thread was in the queue of another CPU, or this one was busy at first.
            _ if idle_from > start && idle_to == cpu.last_switch => Some((idle_from, end, Reason::Idle)),
            _ => None,
        }
    }

    /// Start and end of the time, within a range, when the group of a CPU's thread had used up its share of the CPU
    /// where the thread runs now, or ran last.
    fn throttled(&self, c: usize, start: Time, end: Time) -> Option<(Time, Time)> {
        let thread = &self.threads.list[self.cpus[c].thread];
        let cpus = thread.last_cpu.into_iter().chain([c]);
        let of_its_group = cpus.flat_map(|cpu| &self.cpus[cpu].throttled).filter(|th| th.group == thread.group);
        let parts = of_its_group.filter(|th| th.from < end && th.to > start);
        parts.map(|th| (th.from.max(start), th.to.min(end))).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}
