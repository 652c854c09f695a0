// SPDX-License-Identifier: BSD-3-Clause
//! Threads come and go: context switches, records of the running thread, and unknown time.

use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::{Close, Cpu};
use super::runnable::Woken;
use super::stack::Frame;
use super::thread::{Life, Past, Place, Side, Thread};
use super::what::Activity;
use super::NONE;
use crate::event::number::Level;
use crate::event::what::What;
use crate::event::work::Work;
use crate::event::Event;
use crate::id::Pid;
use crate::time::Time;

impl Builder {
    /// The CPU switches to another thread, inside the scheduler; with a duration, it already runs the thread. A
    /// scheduler that is not seen has no time: the time before the switch is the old thread's, the time after it the
    /// new one's.
    pub(super) fn switch(&mut self, c: usize, e: &Event, t: Time) {
        if e.dur > Time::ZERO && e.pid == Pid::IDLE {
            self.exited(c);
        }
        if e.dur > Time::ZERO || self.cpus[c].is_lost() {
            if self.cpus[c].is_lost() || e.pid != self.running(c) {
                self.place(c, e.pid, t);
            }
            return;
        }
        let thread = self.threads.find(Pid::new(e.arg), &mut self.names);
        if thread == self.cpus[c].thread {
            return;
        }
        let scheduler = self.leave_for_another(c, t, e.ipc & 15);
        self.leave_queued(c, t);
        let old = self.cpus[c].thread;
        self.cpus[c].last_switch = t;
        if self.running(c) == Pid::IDLE {
            self.cpus[c].idle.1 = t;
            self.cpus[c].idle_edge = t;
        } else if e.arg == 0 {
            self.cpus[c].idle = (t, Time::MAX);
            self.cpus[c].idle_edge = t;
        }
        self.may_have_run(thread, t);
        self.put_away(c);
        self.runs_elsewhere(thread, c, t);
        self.take_on(c, thread, scheduler);
        self.cpus[c].switched = Some((t, Some(old)));
        if scheduler.is_none() {
            self.close(c, t, Close::Pause { ipc: 0 });
            self.sched_left(c, t);
        }
    }

    /// A CPU that went offline is back in idle, or never came back: on a stock kernel, the thread that reported it last
    /// had left the CPU then.
    #[cold]
    pub(super) fn exited(&mut self, c: usize) {
        if self.cpus[c].is_offline() && self.running(c) != Pid::IDLE {
            self.place(c, Pid::IDLE, self.cpus[c].since);
        }
    }

    /// Ends the frames that a CPU cannot be inside of when it switches, and returns the frame of the scheduler; `None`
    /// where the scheduler is not seen.
    #[inline(never)]
    fn leave_for_another(&mut self, c: usize, t: Time, ipc: u8) -> Option<Frame> {
        let inside = self.cpus[c].stack.iter().any(|f| f.level() == Level::Sched);
        if !inside && !self.sees(Capability::Scheduler) {
            self.unwind(c, t, Work::Sched, ipc);
            self.close(c, t, Close::Pause { ipc });
            return None;
        }
        if !inside {
            self.imply_sched_call(c, t, ipc);
        }
        while self.cpus[c].top().level() != Level::Sched {
            self.end_top(c, t, ipc);
        }
        self.sched_left(c, t);
        Some(self.cpus[c].top())
    }

    /// A thread is on no CPU, or was not. If events of a CPU are missing since then, it may have run there: it is then
    /// unknown since when it has not run, what it sleeps in, and whether an earlier wakeup has led to a run.
    pub(super) fn may_have_run(&mut self, thread: usize, t: Time) {
        let is_lost = |cpu: &Cpu| cpu.has_begun() && cpu.is_lost();
        let losses = self.sees(Capability::Losses);
        let blind = if self.tally.gaps > 0 && self.cpus.iter().any(is_lost) { t } else { self.recording().blind };
        let thread = &mut self.threads.list[thread];
        if thread.pid == Pid::IDLE || thread.place.runs() || !losses {
            return;
        }
        if thread.last_end.is_some_and(|since| since >= blind) {
            return;
        }
        if thread.last_end.take().is_some() {
            thread.past = Past::Unsure;
            let call = thread.stack.iter().position(|f| f.level() == Level::Syscall);
            thread.stack.truncate(call.map_or(1, |call| call + 1));
            thread.ambiguous = call;
            self.doubts.remove(&thread.pid);
            self.machines[self.machine].late = true;
        }
        self.tally.pending += u64::from(thread.wakeup.take_if(|wakeup| wakeup.ts < blind).is_some());
    }

    /// A thread is on another CPU: the scheduler that switched from it on its old CPU, and has not returned, no longer
    /// belongs to it.
    fn runs_elsewhere(&mut self, thread: usize, c: usize, t: Time) {
        let Thread { pid, last_cpu, .. } = self.threads.list[thread];
        let Some(before) = last_cpu.filter(|&before| before != c && pid != Pid::IDLE && self.sees(Capability::Returns))
        else {
            return;
        };
        let switched = &mut self.cpus[before].switched;
        if let Some((_, old)) = switched.as_mut().filter(|(_, old)| *old == Some(thread)) {
            *old = None;
            let t = t.max(self.cpus[before].since);
            self.left(thread, t);
            self.close(before, t, Close::Pause { ipc: 0 });
        }
    }

    /// Keeps the stack of a CPU's thread for its next run; idle has none.
    fn put_away(&mut self, c: usize) {
        let unsure = self.cpus[c].begin.is_some();
        self.settle_later(c);
        let cpu = &mut self.cpus[c];
        let thread = &mut self.threads.list[cpu.thread];
        let stack = std::mem::take(&mut cpu.stack);
        cpu.ambiguous = None;
        if thread.place.cpu() == Some(c) {
            thread.place = thread.place.switched_from();
            let ended = thread.life == Life::Ended;
            thread.past = if unsure || ended { Past::Unsure } else { Past::Known };
            thread.last_cpu = Some(c);
            if thread.pid != Pid::IDLE && !ended {
                thread.ambiguous = stack.iter().rposition(|f| f.level() != Level::Sched).filter(|&at| at > 0);
                thread.stack = stack;
            }
        }
    }

    /// Puts a thread on a CPU as it left: inside the scheduler, if that is seen; in user code on its first run.
    fn take_on(&mut self, c: usize, thread: usize, scheduler: Option<Frame>) {
        if self.threads.list[thread].wakeup.is_some() {
            self.presume_kernel(thread);
        }
        let bottom = self.bottom(thread);
        let cpu = &mut self.cpus[c];
        let new = &mut self.threads.list[thread];
        cpu.thread = thread;
        cpu.stack = std::mem::take(&mut new.stack);
        cpu.ambiguous = new.ambiguous.take();
        new.place = new.place.switched_to(c);
        new.life = Life::Lives;
        cpu.entered = cpu.last;
        match cpu.stack.first_mut() {
            Some(first) => *first = bottom,
            None => cpu.stack.push(bottom),
        }
        cpu.stack.pop_if(|f| f.level() == Level::Sched);
        cpu.stack.extend(scheduler);
        if new.past == Past::Unsure && new.pid != Pid::IDLE {
            self.doubt(c, vec![Work::Sched]);
        }
    }

    /// The scheduler has returned: the thread it switched from no longer runs, the one it switched to does. A thread
    /// that was not woken did not sleep: it waited for a CPU. One not met before has not run since it was woken. One
    /// that switches away inside a call that never returns does not wait for anything.
    pub(super) fn sched_left(&mut self, c: usize, t: Time) {
        let Some((_, old)) = self.cpus[c].switched.take() else { return };
        old.into_iter().for_each(|old| self.left(old, t));
        let told = self.sees(Capability::Wakeups);
        let new = &mut self.threads.list[self.cpus[c].thread];
        let preempted =
            new.last_end.filter(|_| !new.place.runs() && new.wakeup.is_none() && new.pid != Pid::IDLE && told);
        // A preempted thread has not slept since it reported what it is about to wait for.
        new.waits_for.take_if(|_| preempted.is_none());
        new.last_end.get_or_insert(new.wakeup.map_or(t, |w| w.ts));
        if let Some(start) = preempted {
            self.waited_for_cpu(c, start, t, Woken::No);
        }
        self.arrive_arcs(c, t);
        let new = &mut self.threads.list[self.cpus[c].thread];
        new.place = new.place.started();
        self.resume_rpc(c, t);
    }

    /// A thread no longer runs.
    fn left(&mut self, thread: usize, t: Time) {
        let exits = self.sees(Capability::Exits);
        let old = &mut self.threads.list[thread];
        old.place = old.place.stopped();
        let ended = old.life == Life::Ended
            || !exits && old.stack.iter().any(|f| f.work().is_some_and(|call| self.abi.is_exit(call)));
        old.last_end = Some(t).filter(|_| !ended);
    }

    /// A CPU is known to run this thread, whatever it ran before; it is unknown what the thread is inside of.
    pub(super) fn place(&mut self, c: usize, pid: Pid, t: Time) {
        if self.cpus[c].is_lost() {
            let recording = self.recording_mut();
            recording.blind = recording.blind.max(t);
        }
        self.forget(c, t);
        let thread = self.threads.find(pid, &mut self.names);
        self.runs_elsewhere(thread, c, t);
        let (bottom, losses) = (self.bottom(thread), self.sees(Capability::Losses));
        let new = &mut self.threads.list[thread];
        // The run that the wakeup led to was not seen.
        if losses && new.wakeup.take().is_some() {
            self.tally.pending += 1;
        }
        new.stack.clear();
        new.life = Life::Lives;
        new.ambiguous = None;
        new.place = Place::Running(c);
        new.last_end.get_or_insert(t);
        let cpu = &mut self.cpus[c];
        cpu.thread = thread;
        cpu.idle = if pid == Pid::IDLE { (t, Time::MAX) } else { (cpu.idle.0, cpu.idle.1.min(t)) };
        cpu.entered = t;
        cpu.owner = Some(thread);
        cpu.stack = vec![bottom];
        // The thread's earlier activity was not seen.
        self.doubts.remove(&pid);
        self.doubt(c, Vec::new());
    }

    /// The events name another running thread than the switches did: one was missed.
    pub(super) fn resync(&mut self, c: usize, pid: Pid, t: Time) {
        let missed = !self.cpus[c].is_lost();
        self.place(c, pid, t);
        if missed {
            let name = self.cpus[c].top().name;
            self.repair(c, What::Switch, name);
            self.settle(c);
        }
    }

    /// A CPU's activity is unknown from here on.
    pub(super) fn lose(&mut self, c: usize, e: &Event, t: Time) {
        self.tally.gaps += 1;
        self.forget(c, t);
        self.cpus[c].owner = None;
        self.cpus[c].ticks.forget();
        self.cpus[c].idle = (Time::MAX, Time::MIN);
        self.cpus[c].thread = self.threads.find(Pid::IDLE, &mut self.names);
        self.cpus[c].stack = vec![Frame::new(Activity::Lost, e.arg.into(), e.name)];
    }

    /// Ends all that a CPU was doing. It is then unknown since when its thread has not run.
    fn forget(&mut self, c: usize, t: Time) {
        self.sched_left(c, t);
        self.close(c, t, Close::Pause { ipc: 0 });
        self.settle(c);
        let cpu = &mut self.cpus[c];
        cpu.ambiguous = None;
        cpu.low_power = None;
        if let Some(old) = self.threads.list.get_mut(cpu.thread).filter(|old| old.place.cpu() == Some(c)) {
            old.place = Place::Away;
            old.stack.clear();
            old.past = Past::Unsure;
            old.last_end = None;
        }
    }

    /// A thread is inside of a system call whose start was not seen.
    pub(super) fn open_call(&mut self, e: &Event, call: Work) {
        let frame = Frame::call(call, NONE, e.name);
        let thread = self.threads.find(Pid::new(e.arg), &mut self.names);
        self.set_side(thread, Side::Program);
        let bottom = self.bottom(thread);
        let Some(c) = self.threads.list[thread].place.cpu() else {
            let thread = &mut self.threads.list[thread];
            if thread.stack.is_empty() {
                thread.stack.push(bottom);
            }
            // It is a new thread with an old pid if it is in a call other than the one that ends the old thread.
            if thread.stack.iter().filter_map(Frame::work).any(|ending| self.abi.is_exit(ending) && ending != call) {
                thread.last_end = None;
            }
            if insert_call(&mut thread.stack, frame) {
                thread.ambiguous = Some(1);
            }
            return;
        };
        if self.cpus[c].stack.len() == 1 && e.ts >= self.cpus[c].since {
            self.close(c, e.ts, Close::Pause { ipc: 0 });
        }
        let cpu = &mut self.cpus[c];
        let depth = cpu.stack.len();
        if insert_call(&mut cpu.stack, frame) {
            cpu.ambiguous = Some(1);
            if let Some(begin) = &mut cpu.begin {
                begin.known += cpu.stack.len() - depth;
            }
        }
    }
}

/// Puts a system call above the user code. If another call is there, the thread is a new one with an old pid, and the
/// call is replaced. Returns false if the call is already there. The thread may have left it since.
fn insert_call(stack: &mut Vec<Frame>, call: Frame) -> bool {
    if stack.first().is_none_or(|f| f.activity == Activity::Lost) {
        return false;
    }
    match stack.iter_mut().find(|f| f.level() == Level::Syscall) {
        Some(there) if there.activity == call.activity => return false,
        Some(there) => *there = call,
        None => stack.insert(1, call),
    }
    true
}
