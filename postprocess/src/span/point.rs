// SPDX-License-Identifier: BSD-3-Clause
//! Point events: lines of their own, and what they say about the time around them.

use std::collections::HashMap;

use kutrace_format::abi::event::IDLE_POLL;
use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::{Close, Phase};
use super::thread::Life;
use super::wait::Reason;
use super::Span;
use crate::event::number;
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Locks held or waited for less than this many units are not drawn: 250 ns.
const SHORT_LOCK: Time = Time(25);

/// Overlays that are waiting for their other end.
#[derive(Debug, Default)]
pub struct Overlays {
    /// By CPU and kind of sample: when the last was taken, and its value.
    samples: HashMap<(usize, u32), Event>,
    /// By lock and thread: the last step taken.
    locks: HashMap<(u32, Pid), Event>,
    /// By thread: the parts of its program that it is in, the outermost first.
    parts: HashMap<Pid, Vec<Event>>,
}

impl Builder {
    /// A point event.
    pub(super) fn point(&mut self, c: usize, e: &Event, t: Time) {
        let ipc = e.ipc & 15;
        match e.event {
            number::FREQUENCY | number::FREQUENCY_SET | number::PC_USER..=number::PC_KERNEL => {
                return self.sample(c, e, t)
            }
            number::MWAIT if self.running(c) == Pid::IDLE => self.unwind_idle(c, t, ipc),
            _ => {}
        }
        if !matches!(e.event, number::PROGRAM_BEGIN | number::PROGRAM_END) {
            self.line(c, e);
        }
        match e.event {
            number::PROGRAM_BEGIN => {
                self.overlays.parts.entry(self.running(c)).or_default().push(Event { ts: t, ..*e })
            }
            number::PROGRAM_END => self.end_part(self.running(c), e.arg, t),
            number::MWAIT if self.running(c) == Pid::IDLE => {
                self.close(c, t, Close::Pause { ipc });
                self.cpus[c].low_power = Some(e.arg).filter(|&hint| hint != IDLE_POLL);
            }
            number::EXIT => {
                let thread = self.cpus[c].thread;
                self.threads.list[thread].life = Life::Ended;
                self.end_parts(self.running(c), 0, t);
                self.ends(thread);
            }
            number::MARK_A..=number::MARK_D | number::MONITOR_EXIT => self.close(c, t, Close::Pause { ipc }),
            number::RPC_REQUEST..=number::RPC_MIDDLE => {
                self.close(c, t, Close::Pause { ipc });
                self.turn_to(c, e, t);
            }
            number::RUNNABLE => self.runnable(c, Pid::new(e.arg), t),
            number::IPI | number::MONITOR_STORE => self.send(c, CpuId::new(e.arg), t),
            number::OFFLINE => {
                self.close(c, t, Close::Pause { ipc });
                self.cpus[c].phase = Phase::Offline;
            }
            number::ONLINE => {
                self.close(c, t, Close::Pause { ipc });
                self.was_offline(c);
            }
            number::THROTTLE | number::UNTHROTTLE => self.throttle(e, t),
            number::WAIT => {
                let thread = self.cpus[c].thread;
                self.threads.list[thread].waits_for = Reason::told(e.arg);
            }
            number::LOCK_TRY..=number::LOCK_RELEASED => self.lock(c, e, t),
            number::ENQUEUE | number::DEQUEUE => self.queue(c, e),
            number::RX_PACKET..=number::TX_USER => self.packet(c, e, t),
            _ => {}
        }
    }

    /// Writes an event as a line of its own.
    pub(super) fn line(&mut self, c: usize, e: &Event) {
        let cpu = &self.cpus[c];
        let thread = &self.threads.list[cpu.thread];
        self.out.push(Span {
            start: e.ts,
            dur: e.dur,
            cpu: Some(cpu.id),
            pid: Some(thread.pid),
            rpc: thread.rpc as i32,
            event: e.event as i32,
            arg: e.arg.into(),
            ret: e.ret.into(),
            ipc: e.ipc,
            name: e.name,
        });
    }

    /// A frequency or program counter sample. A sample stands for the time since the one before it, a new frequency
    /// for the time up to the next. No sample of a program counter is taken while a CPU sleeps: what idle and other
    /// threads were at is said by their own.
    fn sample(&mut self, c: usize, e: &Event, t: Time) {
        match e.event {
            number::PC_USER => self.sampled_in_program(c, t),
            number::PC_KERNEL => self.sampled_in_kernel(c, t),
            _ => {}
        }
        let kind = if e.event > number::PC_USER { number::PC_USER } else { e.event };
        let before = self.overlays.samples.insert((c, kind), Event { ts: t, ..*e });
        let Some(before) = before else { return };
        let shown = if kind == number::FREQUENCY_SET { before } else { *e };
        let counter = kind == number::PC_USER && self.sees(Capability::Interrupts);
        let start = if counter { before.ts.max(self.cpus[c].idle_edge) } else { before.ts };
        self.overlay(c, &shown, start, t);
    }

    /// Draws the last known frequency of a CPU to the end.
    pub(super) fn end_overlays(&mut self, c: usize, to: Time) {
        for kind in [number::FREQUENCY, number::FREQUENCY_SET] {
            if let Some(last) = self.overlays.samples.remove(&(c, kind)) {
                self.overlay(c, &last, last.ts, to);
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
        for begin in ended.into_iter().rev() {
            let (start, dur) = (begin.ts, (t - begin.ts).max(Time::UNIT));
            let (event, arg, name) = (begin.event as i32, begin.arg.into(), begin.name);
            self.out.push(Span { start, dur, pid: Some(pid), rpc: -1, event, arg, name, ..Span::default() });
        }
    }

    /// Draws to the end what threads are still in.
    pub(super) fn end_all_parts(&mut self, to: Time) {
        let mut pids: Vec<Pid> = self.overlays.parts.keys().copied().collect();
        pids.sort();
        for pid in pids {
            self.end_parts(pid, 0, to);
        }
    }

    fn overlay(&mut self, c: usize, e: &Event, start: Time, end: Time) {
        let (event, name) = match e.event {
            number::FREQUENCY | number::FREQUENCY_SET => (number::FREQUENCY, self.names.id("-freq-")),
            pc => (pc, e.name),
        };
        let (cpu, arg) = (Some(self.cpus[c].id), e.arg.into());
        let pid = Some(if event == number::FREQUENCY { Pid::IDLE } else { e.pid });
        self.out.push(Span { start, dur: end - start, cpu, pid, event: event as i32, arg, name, ..Span::default() });
    }

    /// A lock is tried, acquired after a try, or given up.
    fn lock(&mut self, c: usize, e: &Event, t: Time) {
        let pid = self.running(c);
        let before = self.overlays.locks.insert((e.arg, pid), Event { ts: t, ..*e });
        let Some(before) = before.filter(|b| t - b.ts >= SHORT_LOCK) else { return };
        let (event, sign) = match (before.event, e.event) {
            (number::LOCK_TRY, number::LOCK_ACQUIRED) => (number::LOCK_WAITED, '~'),
            (number::LOCK_ACQUIRED, number::LOCK_RELEASED) => (number::LOCK_HELD, '='),
            _ => return,
        };
        let text = self.names.text(e.name);
        let name = format!("{sign}{}", text.get(4..).unwrap_or(text));
        let name = self.names.id(&name);
        let (start, dur, event, arg) = (before.ts, t - before.ts, event as i32, e.arg.into());
        self.out.push(Span { start, dur, pid: Some(pid), rpc: -1, event, arg, name, ..Span::default() });
    }
}
