// SPDX-License-Identifier: BSD-3-Clause
//! Threads that are on no CPU: their open activities, what they wait for, and how long they wait to run.
//!
//! The reason of a wait is determined as in the span builder, by the same tables: from the thread's activity, and from
//! its wakeup.

use kutrace_format::abi::event::{TaskState, SCHED, SYSCALL, SYSCALL32};
use postprocess::event::number::Level;
use postprocess::event::work::Work;
use postprocess::span::call::Special;
use postprocess::span::wait::{why, Asleep, By, Reason};

use super::ledger::{Frame, Ledger};
use super::window::Waited;
use crate::skim::Skim;

/// Maximum number of threads; then those on no CPU are forgotten.
const THREADS: usize = 1 << 17;
/// Shorter waits do not count: 100 ns of a counter of 160 MHz.
const SHORT: u64 = 16;

/// State of a thread.
#[derive(Debug, Default)]
pub struct Thread {
    /// Open activities while the thread is on no CPU.
    stack: Vec<Frame>,
    kernel: bool,
    /// The CPU that the thread is on, or is about to leave or take.
    on: Option<usize>,
    /// True if the thread runs there, false if it only begins to.
    runs: bool,
    /// Time since it does not run, and time since it could run.
    since: Option<u64>,
    woken: Option<u64>,
    told: Option<Reason>,
    slept_for: Option<Reason>,
}

impl Thread {
    /// A thread without earlier events.
    fn met(pid: u32, known: &Skim) -> Thread {
        let state = known.known(pid).map(|thread| thread.state);
        let call = state.and_then(TaskState::open_call);
        let frame = |call: u16| match call.checked_sub(TaskState::COMPAT) {
            Some(nr) => Frame::new(Work::Syscall32(nr), SYSCALL32 + nr, u64::MAX),
            None => Frame::new(Work::Syscall(call), SYSCALL + call, u64::MAX),
        };
        Thread {
            stack: call.map(frame).into_iter().collect(),
            kernel: state.is_some_and(TaskState::is_kernel),
            ..Thread::default()
        }
    }
}

impl Ledger {
    fn thread(&mut self, pid: u32, known: &Skim) -> &mut Thread {
        if self.threads.len() >= THREADS {
            self.threads.retain(|_, thread| thread.on.is_some());
        }
        self.threads.entry(pid).or_insert_with(|| Thread::met(pid, known))
    }

    /// Switches a CPU to another thread; the scheduler's frame is not on its stack.
    pub(super) fn exchange(&mut self, c: usize, t: u64, to: u32, known: &Skim) {
        let cpu = &mut self.cpus[c];
        let from = std::mem::replace(&mut cpu.pid, to);
        let (stack, told, ended) = (std::mem::take(&mut cpu.stack), cpu.told.take(), std::mem::take(&mut cpu.ended));
        (cpu.switched, cpu.pending, cpu.last_switch) = (Some(from), true, t);
        if to == 0 {
            cpu.idle = (t, u64::MAX);
        } else if from == 0 {
            cpu.idle.1 = t;
        }
        if from != 0 {
            if ended {
                self.threads.remove(&from);
            } else {
                let thread = self.thread(from, known);
                (thread.stack, thread.told) = (stack, told);
            }
        }
        if to == 0 {
            return;
        }
        let thread = self.thread(to, known);
        (thread.on, thread.runs) = (Some(c), false);
        let (stack, kernel) = (std::mem::take(&mut thread.stack), thread.kernel);
        let cpu = &mut self.cpus[c];
        (cpu.stack, cpu.kernel) = (stack, kernel);
    }

    /// Handles the end of the scheduler: the old thread no longer runs, the new one does.
    pub(super) fn scheduled(&mut self, c: usize, t: u64) {
        let Some(from) = self.cpus[c].switched.take() else { return };
        if let Some(old) = self.threads.get_mut(&from).filter(|old| old.on == Some(c)) {
            (old.on, old.runs, old.since) = (None, false, Some(t));
        }
        self.arrive(c, t);
        let pid = self.cpus[c].pid;
        let Some(new) = self.threads.get_mut(&pid) else { return };
        new.runs = true;
        // It was not woken: it had lost its CPU.
        if let Some(since) = new.since.take() {
            self.waited_for_cpu(c, since, t, false);
        }
    }

    /// Handles activity of a CPU: the wakeup of its thread has led to a run.
    pub(super) fn arrive(&mut self, c: usize, t: u64) {
        if !std::mem::take(&mut self.cpus[c].pending) {
            return;
        }
        let pid = self.cpus[c].pid;
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let Some(woken) = thread.woken.take() else { return };
        let since = thread.since.take();
        if std::mem::replace(&mut thread.runs, true) {
            self.window.running += 1;
        } else {
            self.waited_for_cpu(c, since.map_or(woken, |since| since.max(woken)), t, true);
        }
    }

    /// The thread of a CPU runs, and could have run since `since`.
    fn waited_for_cpu(&mut self, c: usize, since: u64, t: u64, woken: bool) {
        let cpu = &self.cpus[c];
        let wait = Waited { dur: t.saturating_sub(since), at: since, pid: cpu.pid, cpu: c as u32 };
        let idle = self.beside_idle(c, since, t, woken).min(wait.dur);
        for (reason, dur) in [(Reason::Idle, idle), (Reason::Cpu, wait.dur - idle)] {
            if dur >= SHORT {
                self.window.wait(reason, Waited { dur, ..wait });
            }
        }
        match woken {
            true => self.window.woken.add(wait),
            false if wait.dur >= SHORT => self.window.preempted.add(wait),
            false => {}
        }
    }

    /// The part of the wait in which the thread had no competitors: its CPU was idle, and needed time to wake.
    fn beside_idle(&self, c: usize, since: u64, t: u64, woken: bool) -> u64 {
        let cpu = &self.cpus[c];
        let (from, to) = cpu.idle;
        let straight = to == cpu.last_switch;
        let beside = since.max(from);
        let within = cpu.interrupts.iter().take_while(|(_, end)| *end > beside);
        let interrupted: u64 = within.map(|(start, end)| end.min(&t).saturating_sub(*start.max(&beside))).sum();
        match () {
            () if !woken && !cpu.kernel && to > since && from < t => {
                (if straight { t } else { to.min(t) }).saturating_sub(beside)
            }
            () if interrupted * 2 > t.saturating_sub(beside) => 0,
            () if from <= since && to >= since => (if straight { t } else { to.min(t) }).saturating_sub(since),
            () if from > since && straight => t.saturating_sub(from),
            () => 0,
        }
    }

    /// Handles a wakeup on this CPU. If a thread is woken twice before it runs, the first wakeup counts.
    pub(super) fn runnable(&mut self, c: usize, t: u64, pid: u32, known: &Skim) {
        let by = self.by(c, known);
        let abi = &self.abi;
        let Some(thread) = self.threads.get(&pid) else {
            self.thread(pid, known).woken = Some(t);
            return;
        };
        let asleep = asleep(thread, known.thread(pid).unwrap_or_default());
        let reason = thread.told.unwrap_or_else(|| why(abi, asleep, by));
        let thread = self.thread(pid, known);
        thread.slept_for = Some(reason);
        if thread.woken.is_some() {
            return;
        }
        thread.woken = Some(t);
        let slept = thread.since.filter(|_| !thread.runs);
        if let Some(on) = thread.on {
            self.cpus[on].pending = true;
        }
        if let Some(at) = slept {
            self.thread(pid, known).since = Some(t);
            let dur = t.saturating_sub(at);
            if dur >= SHORT {
                self.window.wait(reason, Waited { dur, at, pid, cpu: c as u32 });
            }
        }
    }

    /// The activity on a CPU that wakes a thread.
    pub(super) fn by(&self, c: usize, known: &Skim) -> By {
        let cpu = &self.cpus[c];
        let abi = &self.abi;
        let slept_for = || self.threads.get(&cpu.pid).and_then(|thread| thread.slept_for);
        let Some(top) = cpu.stack.last() else {
            let comm = known.thread(cpu.pid).unwrap_or_default();
            return match cpu.kernel {
                _ if cpu.pid == 0 => By::Unknown,
                _ if cpu.ended => By::End,
                false => By::Program,
                true if comm.starts_with(b"irq/") => By::Device,
                true if slept_for() == Some(Reason::Disk) => By::DiskWorker,
                true => By::Worker,
            };
        };
        match top.work.level() {
            Level::Softirq => match top.event & 15 {
                1 | 8 => By::Timer,
                2 | 3 => By::Net,
                4 | 5 => By::Disk,
                9 => By::Rcu,
                _ => By::Softirq,
            },
            Level::Irq if abi.is_timer(top.work) => By::Timer,
            Level::Irq if abi.is_disk(top.work) => By::Disk,
            Level::Irq if abi.is_remote(top.work) => cpu.remote,
            Level::Irq => By::Device,
            Level::Sched => By::Scheduler,
            _ if cpu.pid == 0 => By::Unknown,
            _ if cpu.ended || abi.is_exit(top.work) => By::End,
            Level::Trap => By::Fault,
            _ if top.work == Work::ExitWork => By::Program,
            _ => match abi.call(top.work).special {
                Some(Special::Open) if slept_for() == Some(Reason::Disk) => By::Lookup,
                _ => By::Call(top.work),
            },
        }
    }

    /// Handles missing events: threads may have run in between, so the start of their waits is unknown.
    pub(super) fn forget(&mut self) {
        self.threads.retain(|_, thread| thread.on.is_some());
    }
}

/// Activity of a thread at the time that it is woken.
fn asleep(thread: &Thread, comm: [u8; 16]) -> Asleep {
    if thread.kernel {
        let workers: [&[u8]; 5] = [b"kworker/", b"ksoftirqd/", b"migration/", b"cpuhp/", b"irq/"];
        return match workers.iter().any(|kind| comm.starts_with(kind)) {
            true => Asleep::Worker,
            false => Asleep::Kernel,
        };
    }
    match thread.stack.iter().rfind(|frame| frame.event != SCHED).map(|frame| frame.work) {
        None | Some(Work::ExitWork) => Asleep::Out,
        Some(Work::Trap(14)) => Asleep::Fault,
        Some(call) if call.level() == Level::Syscall => Asleep::Call(call),
        Some(_) => Asleep::Unknown,
    }
}
