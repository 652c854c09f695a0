// SPDX-License-Identifier: BSD-3-Clause
//! Point events: lines of their own, and what they say about the time around them.

use std::collections::HashMap;

use kutrace_format::abi::event::IDLE_POLL;
use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::{Close, Phase};
use super::thread::Life;
use super::wait::Reason;
use super::what::{Lock, What};
use super::Span;
use crate::event::point::Point;
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Locks held or waited for less than this many units are not drawn: 250 ns.
const SHORT_LOCK: Time = Time(25);

/// Overlays that are waiting for their other end.
#[derive(Debug, Default)]
pub struct Overlays {
    /// By CPU and kind of sample: when the last was taken, and its value.
    samples: HashMap<(usize, Point), Event>,
    /// By lock and thread: the last step taken.
    locks: HashMap<(u32, Pid), (Point, Time)>,
    /// By thread: the parts of its program that it is in, the outermost first.
    parts: HashMap<Pid, Vec<Event>>,
    /// By number: the parts of programs that any thread may end.
    async_parts: HashMap<u32, (Pid, Event)>,
}

impl Builder {
    /// A point event.
    pub(super) fn point(&mut self, c: usize, e: &Event, point: Point, t: Time) {
        let ipc = e.ipc & 15;
        if point == Point::TxFlow {
            let again = self.told_again(e);
            return self.line(c, &again, point);
        }
        match point {
            Point::Frequency | Point::FrequencySet | Point::PcUser | Point::PcKernel => {
                return self.sample(c, e, point, t)
            }
            Point::Mwait if self.running(c) == Pid::IDLE => self.unwind_idle(c, t, ipc),
            _ => {}
        }
        let has_other_end = matches!(
            point,
            Point::ProgramBegin | Point::ProgramEnd | Point::ProgramAsyncBegin | Point::ProgramAsyncEnd
        );
        if !has_other_end {
            self.line(c, e, point);
        }
        match point {
            Point::ProgramBegin => self.overlays.parts.entry(self.running(c)).or_default().push(Event { ts: t, ..*e }),
            Point::ProgramEnd => self.end_part(self.running(c), e.arg, t),
            Point::ProgramAsyncBegin => {
                self.overlays.async_parts.insert(e.arg, (self.running(c), Event { ts: t, ..*e }));
            }
            Point::ProgramAsyncEnd => {
                if let Some((pid, begin)) = self.overlays.async_parts.remove(&e.arg) {
                    self.part(pid, &begin, Point::ProgramAsyncBegin, t);
                }
            }
            Point::Mwait if self.running(c) == Pid::IDLE => {
                self.close(c, t, Close::Pause { ipc });
                self.cpus[c].low_power = Some(e.arg).filter(|&hint| hint != IDLE_POLL);
            }
            Point::Exit => {
                let thread = self.cpus[c].thread;
                self.threads.list[thread].life = Life::Ended;
                self.end_parts(self.running(c), 0, t);
                self.ends(thread);
            }
            Point::MonitorExit => self.close(c, t, Close::Pause { ipc }),
            _ if point.is_mark() => self.close(c, t, Close::Pause { ipc }),
            Point::RpcRequest | Point::RpcResponse | Point::RpcMiddle => {
                self.close(c, t, Close::Pause { ipc });
                self.turn_to(c, e, point, t);
            }
            Point::Runnable => self.runnable(c, Pid::new(e.arg), t),
            Point::Ipi | Point::MonitorStore => self.send(c, CpuId::new(e.arg), t),
            Point::Offline => {
                self.close(c, t, Close::Pause { ipc });
                self.cpus[c].phase = Phase::Offline;
            }
            Point::Online => {
                self.close(c, t, Close::Pause { ipc });
                self.was_offline(c);
            }
            Point::Throttle | Point::Unthrottle => self.throttle(e, t),
            Point::Wait => {
                let thread = self.cpus[c].thread;
                self.threads.list[thread].waits_for = Reason::told(e.arg);
            }
            Point::LockTry | Point::LockAcquired | Point::LockReleased => self.lock(c, e, point, t),
            Point::Enqueue | Point::Dequeue => self.queue(c, e, point),
            Point::RxPacket | Point::TxPacket | Point::RxUser | Point::TxUser => self.packet(c, e, point, t),
            _ => {}
        }
    }

    /// Writes an event as a line of its own.
    pub(super) fn line(&mut self, c: usize, e: &Event, point: Point) {
        let cpu = &self.cpus[c];
        let thread = &self.threads.list[cpu.thread];
        self.out.push(Span {
            start: e.ts,
            dur: e.dur,
            cpu: Some(cpu.id),
            pid: Some(thread.pid),
            rpc: thread.rpc as i32,
            what: What::Point(point),
            arg: e.arg.into(),
            ret: e.ret.into(),
            ipc: e.ipc,
            name: e.name,
        });
    }

    /// A frequency or program counter sample. A sample stands for the time since the one before it, a new frequency
    /// for the time up to the next. No sample of a program counter is taken while a CPU sleeps: what idle and other
    /// threads were at is said by their own.
    fn sample(&mut self, c: usize, e: &Event, point: Point, t: Time) {
        match point {
            Point::PcUser => self.sampled_in_program(c, t),
            Point::PcKernel => self.sampled_in_kernel(c, t),
            _ => {}
        }
        let kind = if point == Point::PcKernel { Point::PcUser } else { point };
        let before = self.overlays.samples.insert((c, kind), Event { ts: t, ..*e });
        let Some(before) = before else { return };
        let (shown, point) = if kind == Point::FrequencySet { (before, kind) } else { (*e, point) };
        let counter = kind == Point::PcUser && self.sees(Capability::Interrupts);
        let start = if counter { before.ts.max(self.cpus[c].idle_edge) } else { before.ts };
        self.overlay(c, &shown, point, (start, t));
    }

    /// Draws the last known frequency of a CPU to the end.
    pub(super) fn end_overlays(&mut self, c: usize, to: Time) {
        for kind in [Point::Frequency, Point::FrequencySet] {
            if let Some(last) = self.overlays.samples.remove(&(c, kind)) {
                self.overlay(c, &last, kind, (last.ts, to));
            }
        }
    }

    /// A thread leaves the innermost part of its program that has this number, and those in it.
    fn end_part(&mut self, pid: Pid, number: u32, t: Time) {
        let parts = self.overlays.parts.get(&pid);
        let inner = parts.and_then(|parts| parts.iter().rposition(|begin| begin.arg == number));
        if let Some(inner) = inner {
            self.end_parts(pid, inner, t);
        }
    }

    /// Draws the parts that a thread is in, from the one at `outermost` on, to `t`, and forgets them.
    fn end_parts(&mut self, pid: Pid, outermost: usize, t: Time) {
        let parts = self.overlays.parts.get_mut(&pid);
        let ended = parts.map(|parts| parts.split_off(outermost.min(parts.len()))).unwrap_or_default();
        for begin in ended.iter().rev() {
            self.part(pid, begin, Point::ProgramBegin, t);
        }
    }

    /// A part of a program, which a thread began.
    fn part(&mut self, pid: Pid, begin: &Event, point: Point, t: Time) {
        let (start, dur) = (begin.ts, (t - begin.ts).max(Time::UNIT));
        let (what, arg, name) = (What::Point(point), begin.arg.into(), begin.name);
        self.out.push(Span { start, dur, pid: Some(pid), rpc: -1, what, arg, name, ..Span::default() });
    }

    /// Draws to the end what threads are still in.
    pub(super) fn end_all_parts(&mut self, to: Time) {
        let mut pids: Vec<Pid> = self.overlays.parts.keys().copied().collect();
        pids.sort();
        for pid in pids {
            self.end_parts(pid, 0, to);
        }
        let mut open: Vec<_> = std::mem::take(&mut self.overlays.async_parts).into_iter().collect();
        open.sort_by_key(|(number, _)| *number);
        for (_, (pid, begin)) in open {
            self.part(pid, &begin, Point::ProgramAsyncBegin, to);
        }
    }

    fn overlay(&mut self, c: usize, e: &Event, point: Point, (start, end): (Time, Time)) {
        let (point, name) = match point {
            Point::Frequency | Point::FrequencySet => (Point::Frequency, self.names.id("-freq-")),
            pc => (pc, e.name),
        };
        let what = What::Point(point);
        let (cpu, arg) = (Some(self.cpus[c].id), e.arg.into());
        let pid = Some(if point == Point::Frequency { Pid::IDLE } else { e.pid });
        self.out.push(Span { start, dur: end - start, cpu, pid, what, arg, name, ..Span::default() });
    }

    /// A lock is tried, acquired after a try, or given up.
    fn lock(&mut self, c: usize, e: &Event, step: Point, t: Time) {
        let pid = self.running(c);
        let before = self.overlays.locks.insert((e.arg, pid), (step, t));
        let Some((before, start)) = before.filter(|&(_, start)| t - start >= SHORT_LOCK) else { return };
        let (lock, sign) = match (before, step) {
            (Point::LockTry, Point::LockAcquired) => (Lock::Waited, '~'),
            (Point::LockAcquired, Point::LockReleased) => (Lock::Held, '='),
            _ => return,
        };
        let text = self.names.text(e.name);
        let name = format!("{sign}{}", text.get(4..).unwrap_or(text));
        let name = self.names.id(&name);
        let (dur, what, arg) = (t - start, What::Lock(lock), e.arg.into());
        self.out.push(Span { start, dur, pid: Some(pid), rpc: -1, what, arg, name, ..Span::default() });
    }
}
