// SPDX-License-Identifier: BSD-3-Clause
//! Between CPUs: wakeups and the runs they lead to, interrupts and their arrival, and what a thread waited for.

use super::build::Builder;
use super::cpu::{Close, Ipi};
use super::idle::exit_latency;
use super::stack::Hooks;
use super::thread::Wakeup;
use super::wait::{of_sleeper, of_waker, Reason, Waker};
use super::Span;
use crate::event::number::{self, Level};
use crate::event::Event;

/// Waits and exits shorter than this many units are not drawn: 100 ns.
const SHORT: i64 = 10;

impl Builder {
    /// A thread is made runnable. Of two wakeups before it runs the first counts.
    pub(super) fn runnable(&mut self, c: usize, pid: u32, t: i64) {
        let thread = self.threads.find(pid, &mut self.names);
        let why = self.why_asleep(c, thread);
        let (cpu, waker) = (self.cpus[c].id, self.running(c) as i32);
        self.tally.wakeups += 1;
        let woken = &mut self.threads.list[thread];
        let asleep_since = woken.last_end.filter(|_| !woken.running);
        if woken.last_end.is_some() && !woken.running {
            woken.last_end = Some(t);
        }
        if woken.wakeup.is_some() {
            self.tally.repeated += 1;
            return;
        }
        woken.wakeup = Some(Wakeup { ts: t, cpu, pid: waker });
        if let Some(start) = asleep_since {
            self.wait(pid, start, t, why);
        }
    }

    /// What a CPU that wakes a thread is doing it for.
    fn why(&self, c: usize) -> Reason {
        let cpu = &self.cpus[c];
        let waker = cpu.top();
        match of_waker(&self.machine, waker) {
            Reason::Unknown if self.machine.is_remote(waker.event) => cpu.remote.unwrap_or(Reason::Unknown),
            known => known,
        }
    }

    /// What a thread that is woken was waiting for.
    fn why_asleep(&self, c: usize, sleeper: usize) -> Reason {
        let waker = match self.cpus[c].top().level() {
            Level::Irq | Level::Softirq => Waker::Device,
            Level::User if !self.cpus[c].is_lost() => Waker::Worker,
            _ => Waker::Thread,
        };
        let sleeper = &self.threads.list[sleeper];
        let blocked = sleeper.stack.iter().skip(1).rfind(|f| f.level() != Level::Sched);
        // Records tell of every call that began before: who was never in user code and sleeps in none is a thread of
        // the kernel, or inside a fault since then. Neither waits for a lock of programs, or for their bytes. But the
        // call may be among what is missing.
        let for_work = self.hooks == Hooks::Complete && sleeper.unsure && blocked.is_none();
        let in_doubt = blocked.is_none() && (self.tally.gaps > 0 || self.late && sleeper.unsure);
        match self.why(c) {
            Reason::Lock | Reason::Pipe if for_work && in_doubt => Reason::Unknown,
            Reason::Lock | Reason::Pipe if for_work => Reason::Task,
            Reason::Unknown if in_doubt => Reason::Unknown,
            Reason::Unknown => of_sleeper(&self.machine, blocked.copied(), waker),
            known => known,
        }
    }

    /// An interrupt is sent to another CPU, or it is woken by a store to memory that it watches.
    pub(super) fn send(&mut self, c: usize, target: u32, t: i64) {
        let ipi = Ipi { ts: t, from: self.cpus[c].id, reason: self.why(c) };
        let Some(cpu) = self.cpus.get_mut(target as usize) else { return };
        cpu.ipis.retain(|i| i.from != ipi.from);
        cpu.ipis.push(ipi);
    }

    /// A CPU does something: interrupts sent to it have arrived, and the wakeup of its thread has led to a run.
    pub(super) fn arrive_arcs(&mut self, c: usize, t: i64) {
        if !self.cpus[c].ipis.is_empty() {
            self.arrive_ipis(c, t);
        }
        let thread = &mut self.threads.list[self.cpus[c].thread];
        let Some(Wakeup { ts, cpu, pid }) = thread.wakeup.take() else { return };
        let (woken, from) = (thread.pid, ts.max(thread.last_end.unwrap_or(ts)));
        let was_running = std::mem::replace(&mut thread.running, true);
        let name = self.names.id("-wakeup-");
        let (start, dur, arg, ret) = (ts, (t - ts).max(0), self.cpus[c].id.into(), woken.into());
        self.out.push(Span { start, dur, cpu, pid, event: number::WAKEUP_ARC, arg, ret, name, ..Span::default() });
        self.tally.runs += 1;
        if !was_running {
            self.wait(woken, from.min(t), t, Reason::Cpu);
        }
    }

    fn arrive_ipis(&mut self, c: usize, t: i64) {
        let name = self.names.id("-ipi-");
        let cpu = &mut self.cpus[c];
        for ipi in cpu.ipis.extract_if(.., |i| i.ts <= t) {
            let (start, dur, arg) = (ipi.ts, t - ipi.ts, cpu.id.into());
            let (event, pid, rpc) = (number::IPI_ARC, -1, -1);
            self.out.push(Span { start, dur, cpu: ipi.from, pid, rpc, event, arg, name, ..Span::default() });
            cpu.remote = Some(ipi.reason);
        }
    }

    /// Draws what a thread waited for, if it is not too short.
    pub(super) fn wait(&mut self, pid: u32, start: i64, end: i64, why: Reason) {
        if end - start >= SHORT {
            let name = self.names.id(why.name());
            let (dur, pid) = (end - start, pid as i32);
            self.out.push(Span { start, dur, cpu: -1, pid, event: why.event(), name, ..Span::default() });
        }
    }

    /// A CPU in a low-power state does something: it began to leave that state a while before.
    pub(super) fn leave_low_power(&mut self, c: usize, t: i64) {
        let cpu = &mut self.cpus[c];
        let Some(hint) = cpu.mwait.take() else { return };
        let latency = exit_latency(hint).min(t - cpu.since);
        if latency < SHORT {
            self.close(c, t, Close::Pause { ipc: 0 });
            self.cpus[c].low = false;
            return;
        }
        let start = t - latency;
        self.close(c, start, Close::Pause { ipc: 0 });
        self.arrive_ipis(c, start);
        let name = self.names.id("-c-exit-");
        let cpu = &mut self.cpus[c];
        cpu.low = false;
        cpu.since = t;
        let event = number::IDLE_EXIT as i32;
        let exit = Span { start, dur: latency, cpu: cpu.id, event, arg: hint.into(), name, ..Span::default() };
        self.write(c, exit);
    }

    /// A return from clone or fork in the original's traces stands for the wakeup of the new thread.
    pub(super) fn born(&mut self, c: usize, e: &Event) {
        let child = e.ret;
        let ended = e.dur > 0 || e.event & number::RETURN_BIT != 0;
        let is_birth = ended && self.machine.is_birth(e.event & !number::RETURN_BIT) && child != 0 && child < 0xff80;
        if self.hooks == Hooks::Original && is_birth && self.threads.known(child).is_none_or(|i| self.is_new(i)) {
            let t = self.cpus[c].since;
            let name = self.names.id(&format!("runnable.{child}"));
            let event = number::RUNNABLE;
            self.line(c, &Event { ts: t, dur: 1, event, arg: child, ret: 0, ipc: 0, name, ..*e });
            self.runnable(c, child, t);
        }
    }

    fn is_new(&self, thread: usize) -> bool {
        let thread = &self.threads.list[thread];
        thread.last_end.is_none() && thread.wakeup.is_none() && !thread.running
    }
}
