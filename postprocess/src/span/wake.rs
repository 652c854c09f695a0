// SPDX-License-Identifier: BSD-3-Clause
//! Between CPUs: wakeups and the runs they lead to, interrupts and their arrival, and the waits of threads.

use std::ops::RangeInclusive;

use kutrace_format::abi::event::IDLE_POLL;
use kutrace_format::capability::Capability;
use kutrace_format::x86::softirq;

use super::build::Builder;
use super::call::Special;
use super::cpu::{Close, Ipi};
use super::idle::exit_latency;
use super::mode::KEPT;
use super::runnable::Woken;
use super::thread::{Life, Past, Side, Thread, Wakeup};
use super::wait::{of_sleeper, of_waker, why, Asleep, By, Reason, Waker};
use super::what::{Activity, What};
use super::Span;
use crate::event::number::Level;
use crate::event::point::Point;
use crate::event::what::What as Said;
use crate::event::work::Work;
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Waits and exits shorter than this many units are not drawn: 100 ns.
pub const SHORT: Time = Time(10);

/// Errors in a value of 16 bits, as in the original's traces.
const ERRORS_16: RangeInclusive<i32> = 0xff80..=0xffff;

/// Start of the names of threads that do an interrupt's work, as all do on PREEMPT_RT: the waker is the device.
const INTERRUPT_THREAD: &str = "irq/";

/// A wakeup whose reason is known only if the waker ends.
#[derive(Clone, Copy, Debug)]
pub struct PerhapsEnds {
    /// Index of the waker.
    pub waker: usize,
    /// The woken thread, the time, and the thread's state in its sleep.
    woken: Pid,
    ts: Time,
    asleep: Asleep,
}

impl PerhapsEnds {
    /// True if this span is the wait that the wakeup ended.
    pub fn made(&self, span: &Span) -> bool {
        span.pid == Some(self.woken) && span.what == What::Wait(Reason::Unknown) && span.start + span.dur == self.ts
    }
}

impl Builder {
    /// A thread is made runnable. Of two wakeups before it runs the first counts.
    pub(super) fn runnable(&mut self, c: usize, pid: Pid, t: Time) {
        let thread = self.threads.find(pid, &mut self.names);
        self.may_have_run(thread, t);
        if self.threads.list[thread].last_end.is_some() && !self.threads.list[thread].place.runs() {
            self.presume_kernel(thread);
        }
        let why = self.why_asleep(c, thread);
        let (cpu, waker) = (self.cpus[c].id, self.running(c));
        self.tally.wakeups += 1;
        let is_birth = self.is_new(thread) && self.cpus[c].top().work().is_some_and(|work| self.abi.is_birth(work));
        let woken = &mut self.threads.list[thread];
        woken.parent = woken.parent.or_else(|| is_birth.then_some(waker));
        woken.slept_for = Some(why);
        let asleep_since = woken.last_end.filter(|_| !woken.place.runs());
        if self.threads.list[thread].wakeup.is_some() && !self.had_run_on(thread, t) {
            self.tally.repeated += 1;
            return;
        }
        let woken = &mut self.threads.list[thread];
        if asleep_since.is_some() {
            woken.last_end = Some(t);
        }
        woken.wakeup = Some(Wakeup { ts: t, cpu, pid: waker });
        self.perhaps_at_its_end(c, thread, why, t);
        if let Some(start) = asleep_since {
            // The original's waits have no value.
            let by = if self.sees(Capability::Returns) { waker } else { Pid::IDLE };
            self.wait(pid, (start, t), why, by);
        }
    }

    /// A thread was woken before it had left its CPU, and is woken again: it had continued to run, and slept later.
    /// Where the scheduler is seen, its end shows that earlier.
    fn had_run_on(&mut self, thread: usize, t: Time) -> bool {
        let Thread { pid, wakeup, last_end, last_cpu, place, .. } = self.threads.list[thread];
        let end = if place.runs() { Some(t) } else { last_end };
        let (Some(first), Some(end), Some(on)) = (wakeup, end, place.cpu().or(last_cpu)) else { return false };
        if self.sees(Capability::Scheduler) || end <= first.ts {
            return false;
        }
        let (name, on) = (self.names.id("-wakeup-"), self.cpus[on].id);
        self.emit([Span::wakeup((first.cpu, first.pid), (on, pid), name, (first.ts, end))]);
        self.tally.runs += 1;
        true
    }

    /// A program on its way out of the kernel woke a thread, which does not show why the thread slept: if the program
    /// ends there, the thread waited for that.
    fn perhaps_at_its_end(&mut self, c: usize, sleeper: usize, why: Reason, ts: Time) {
        if why != Reason::Unknown || !self.sees(Capability::Returns) || self.by(c) != By::Program {
            return;
        }
        if let Some(asleep) = self.asleep(sleeper) {
            let woken = self.threads.list[sleeper].pid;
            self.perhaps_ends.push(PerhapsEnds { waker: self.cpus[c].thread, woken, ts, asleep });
        }
    }

    /// A thread ends: the threads that it woke since it last was in its program, or in a call, waited for its end.
    pub(super) fn ends(&mut self, thread: usize) {
        for woke in self.perhaps_ends.extract_if(.., |woke| woke.waker == thread).collect::<Vec<_>>() {
            let why = why(&self.abi, woke.asleep, By::End);
            let name = self.names.id(why.name());
            if let Some(wait) = self.out.iter_mut().rev().take(KEPT).find(|span| woke.made(span)) {
                let counted = self.counts.of(wait.name);
                *counted = counted.saturating_sub(1);
                *self.counts.of(name) += 1;
                (wait.what, wait.name) = (What::Wait(why), name);
            }
        }
    }

    /// Reason for which a CPU wakes a thread, in the original's traces.
    fn why(&self, c: usize) -> Reason {
        let cpu = &self.cpus[c];
        let waker = cpu.top();
        match of_waker(&self.abi, waker) {
            Reason::Unknown if waker.work().is_some_and(|work| self.abi.is_remote(work)) => {
                cpu.remote.map_or(Reason::Unknown, |r| r.0)
            }
            known => known,
        }
    }

    /// The waker on a CPU that wakes a thread.
    fn by(&self, c: usize) -> By {
        let cpu = &self.cpus[c];
        let thread = &self.threads.list[cpu.thread];
        let top = cpu.top();
        if cpu.begin.as_ref().is_some_and(|begin| begin.may_be_interrupted(cpu.stack.len())) {
            return By::Unknown;
        }
        let Some(work) = top.work() else { return self.by_own_code(c) };
        match work.level() {
            Level::Softirq => match top.arg as u32 {
                softirq::TIMER | softirq::HRTIMER => By::Timer,
                softirq::NET_TX | softirq::NET_RX => By::Net,
                softirq::BLOCK | softirq::IRQ_POLL => By::Disk,
                softirq::RCU => By::Rcu,
                _ => By::Softirq,
            },
            Level::Irq if self.abi.is_timer(work) => By::Timer,
            Level::Irq if self.abi.is_disk(work) => By::Disk,
            Level::Irq if self.abi.is_remote(work) => cpu.remote.map_or(By::Unknown, |r| r.1),
            Level::Irq => By::Device,
            Level::Sched => By::Scheduler,
            _ if thread.pid == Pid::IDLE => By::Unknown,
            _ if thread.life == Life::Ended || self.abi.is_exit(work) => By::End,
            Level::Trap => By::Fault,
            Level::Syscall if work == Work::ExitWork => By::Program,
            Level::Syscall => match self.abi.call(work).special {
                Some(Special::Open) if thread.slept_for == Some(Reason::Disk) => By::Lookup,
                _ => By::Call(work),
            },
            Level::User => By::Unknown,
        }
    }

    /// The waker on a CPU that is outside of any work.
    fn by_own_code(&self, c: usize) -> By {
        let cpu = &self.cpus[c];
        let thread = &self.threads.list[cpu.thread];
        match thread.side {
            _ if cpu.is_lost() || thread.pid == Pid::IDLE => By::Unknown,
            _ if thread.life == Life::Ended => By::End,
            Side::Program => By::Program,
            Side::Kernel if self.comm(thread).starts_with(INTERRUPT_THREAD) => By::Device,
            Side::Kernel if thread.slept_for == Some(Reason::Disk) => By::DiskWorker,
            Side::Kernel => By::Worker,
        }
    }

    /// The latest name of a thread, empty if it has none.
    fn comm(&self, thread: &Thread) -> &str {
        thread.comms.last().map_or("", |&comm| self.names.text(comm))
    }

    /// State in which a woken thread slept; `None` if its events may be missing.
    fn asleep(&self, sleeper: usize) -> Option<Asleep> {
        let sleeper = &self.threads.list[sleeper];
        if sleeper.side == Side::Kernel {
            let name = self.comm(sleeper);
            let workers = ["kworker/", "ksoftirqd/", "migration/", "cpuhp/", INTERRUPT_THREAD];
            let worker = workers.iter().any(|kind| name.starts_with(kind));
            return Some(if worker { Asleep::Worker } else { Asleep::Kernel });
        }
        let blocked = sleeper.stack.iter().skip(1).rfind(|f| f.level() != Level::Sched);
        let Some(frame) = blocked else {
            let missing = self.tally.gaps > 0 || self.recording().late && sleeper.past == Past::Unsure;
            return Some(Asleep::Out).filter(|_| !missing);
        };
        Some(match frame.work() {
            Some(Work::ExitWork) => Asleep::Out,
            Some(trap) if self.abi.is_page_fault(trap) => Asleep::Fault,
            Some(call) if call.level() == Level::Syscall => Asleep::Call(call),
            _ => Asleep::Unknown,
        })
    }

    /// True if a tracer lets a thread continue. A thread that stopped at a system call reported it, but maybe before
    /// the trace began: then it looks like one that waits in the call.
    fn is_ptrace(&self, by: By) -> bool {
        matches!(by, By::Call(call) if self.abi.call(call).special == Some(Special::Ptrace))
    }

    /// Reason of the wait of a woken thread.
    fn why_asleep(&self, c: usize, sleeper: usize) -> Reason {
        if self.sees(Capability::Returns) {
            let (by, told) = (self.by(c), self.threads.list[sleeper].waits_for);
            let why = |asleep| match asleep {
                Asleep::Call(_) if self.threads.list[sleeper].past == Past::Unsure && self.is_ptrace(by) => {
                    Reason::Trace
                }
                asleep => why(&self.abi, asleep, by),
            };
            return told.or_else(|| self.asleep(sleeper).map(why)).unwrap_or(Reason::Unknown);
        }
        let waker = match self.cpus[c].top().level() {
            Level::Irq | Level::Softirq => Waker::Device,
            Level::User if !self.cpus[c].is_lost() => Waker::Worker,
            _ => Waker::Thread,
        };
        let sleeper = &self.threads.list[sleeper];
        let blocked = sleeper.stack.iter().skip(1).rfind(|f| f.level() != Level::Sched);
        let in_doubt =
            blocked.is_none() && (self.tally.gaps > 0 || self.recording().late && sleeper.past == Past::Unsure);
        match self.why(c) {
            Reason::Unknown if in_doubt => Reason::Unknown,
            Reason::Unknown => of_sleeper(&self.abi, blocked.copied(), waker),
            known => known,
        }
    }

    /// An interrupt is sent to another CPU, or a store to memory that the CPU watches wakes it.
    pub(super) fn send(&mut self, c: usize, target: CpuId, t: Time) {
        let (from, reason) = (self.cpus[c].id, (self.why(c), self.by(c)));
        let Some(cpu) = self.cpus.get_mut(target.index()) else { return };
        let first = cpu.ipis.iter().find(|i| i.from == from && i.first >= cpu.last).map_or(t, |i| i.first);
        cpu.ipis.retain(|i| i.from != from);
        cpu.ipis.push(Ipi { ts: t, first, from, reason });
    }

    /// A CPU does something: interrupts sent to it have arrived, and the wakeup of its thread has led to a run.
    pub(super) fn arrive_arcs(&mut self, c: usize, t: Time) {
        if !self.cpus[c].ipis.is_empty() {
            self.arrive_ipis(c, t);
        }
        let thread = &mut self.threads.list[self.cpus[c].thread];
        let Some(Wakeup { ts, cpu, pid }) = thread.wakeup.take() else { return };
        let (woken, from) = (thread.pid, ts.max(thread.last_end.unwrap_or(ts)));
        let was_running = thread.place.runs();
        thread.place = thread.place.started();
        let name = self.names.id("-wakeup-");
        self.emit([Span::wakeup((cpu, pid), (self.cpus[c].id, woken), name, (ts, t.max(ts)))]);
        self.tally.runs += 1;
        if !was_running {
            self.waited_for_cpu(c, from.min(t), t, Woken::Yes);
        }
    }

    fn arrive_ipis(&mut self, c: usize, t: Time) {
        let name = self.names.id("-ipi-");
        let arrived = self.cpus[c].arrive_ipis(t, name);
        self.emit(arrived);
    }

    /// Draws a thread's wait, if it is not too short. The waker of a thread that could run is [`Pid::IDLE`].
    pub(super) fn wait(&mut self, pid: Pid, (start, end): (Time, Time), why: Reason, waker: Pid) {
        if end - start >= SHORT {
            let name = self.names.id(why.name());
            *self.counts.of(name) += 1;
            self.emit([Span::wait(pid, (why, waker), name, (start, end))]);
        }
    }

    /// A CPU in a low-power state does something: it began to leave that state a while before.
    pub(super) fn leave_low_power(&mut self, c: usize, t: Time) {
        if let Some(hint) = self.cpus[c].low_power {
            self.leave_state(c, t, hint);
        }
    }

    /// The time before `t` is the exit from the state, as long as that is known to take.
    #[inline(never)]
    fn leave_state(&mut self, c: usize, t: Time, hint: u32) {
        let cpu = &self.cpus[c];
        // If the source does not know the state, the time to leave it is unknown as well.
        let known = hint >= IDLE_POLL || self.sees(Capability::IdleStates);
        let latency = if known { exit_latency(hint).min(t - cpu.since) } else { Time::ZERO };
        if latency < SHORT {
            self.close(c, t, Close::Pause { ipc: 0 });
            self.cpus[c].low_power = None;
            return;
        }
        let start = t - latency;
        self.close(c, start, Close::Pause { ipc: 0 });
        self.arrive_ipis(c, start);
        let name = self.names.id("-c-exit-");
        let cpu = &mut self.cpus[c];
        cpu.low_power = None;
        cpu.since = t;
        let (what, cpu, pid) = (What::Run(Activity::IdleExit), Some(cpu.id), Some(Pid::IDLE));
        let exit = Span { start, dur: latency, cpu, pid, what, arg: hint.into(), name, ..Span::default() };
        self.write(c, exit);
    }

    /// Where new threads have no wakeup, as in the original's traces, a return from clone or fork stands for it.
    pub(super) fn born(&mut self, c: usize, e: &Event, call: Work) {
        let child = e.ret;
        let pid = Pid::new(child as u32).on(e.pid.machine());
        let ended = e.dur > Time::ZERO || matches!(e.what, Said::Return(_));
        let is_birth = ended && self.abi.is_birth(call) && child > 0 && !ERRORS_16.contains(&child);
        if !self.sees(Capability::Births) && is_birth && self.threads.known(pid).is_none_or(|i| self.is_new(i)) {
            let t = self.cpus[c].since;
            let name = self.names.id(&format!("runnable.{child}"));
            let line = Event { ts: t, dur: Time::UNIT, arg: pid.number(), ret: 0, ipc: 0, name, ..*e };
            self.line(c, &line, Point::Runnable);
            self.runnable(c, pid, t);
        }
    }

    fn is_new(&self, thread: usize) -> bool {
        let thread = &self.threads.list[thread];
        thread.last_end.is_none() && thread.wakeup.is_none() && !thread.place.runs()
    }
}
