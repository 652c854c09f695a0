// SPDX-License-Identifier: BSD-3-Clause
//! Facts about threads from TASK records and block headers: name, process, control group, and the system call that each
//! is in, which the thread's own entries know better.

use kutrace_format::abi::event::{self, TaskState};
use kutrace_format::capability::Capability;

use super::{until_nul, Call, Decoder, Entry, Item, ThreadWords, EXECS, EXITS};
use crate::event::fact::Fact;
use crate::event::names::{clean, NameId, Names};
use crate::event::number;
use crate::event::work::Work;
use crate::id::Pid;
use crate::time::Time;

impl Decoder<'_> {
    pub(super) fn task(&mut self, cpu: usize, ts: Time, (pid, tgid, state, comm): ThreadWords, names: &mut Names) {
        let pid = Pid::new(pid);
        let task = self.tasks.find(pid, names);
        self.rename(task, ts, comm, names);
        self.process(task, ts, Pid::new(tgid));
        let is_exec = |call: Option<u16>| call.is_some_and(|nr| EXECS.contains(&nr));
        // A thread that is not the first of its program loads another: it is then the first, under that one's number.
        let becomes = task != self.cpus[cpu].task && !self.runs_next(cpu, pid);
        if becomes && is_exec(self.open_call(cpu)) && is_exec(state.open_call()) {
            self.tasks.set_call(self.cpus[cpu].task, Call::Unknown, self.seen(cpu));
            self.tasks.set_call(task, Call::Unknown, self.seen(cpu));
            self.switch(cpu, ts, pid, Time::UNIT, names);
        }
        self.group(task, ts, state);
        self.inside(cpu, task, ts, state, names);
    }

    /// True if a record is of the thread that runs next: in the scheduler, or, where that is not seen, right before its
    /// switch.
    fn runs_next(&self, cpu: usize, pid: Pid) -> bool {
        if !self.unseen.has(Capability::Scheduler) {
            return self.cpus[cpu].scheduling;
        }
        let following = self.merge.following(cpu).map(|timed| timed.item);
        matches!(following, Some(Item::Entry(event::SWITCH, words, _)) if words == pid.number().to_le_bytes())
    }

    /// Takes the name of a thread that has none yet from the TASK right after the switch to it: such a switch went into a
    /// block that had no name of the thread.
    pub(super) fn name_right_after(&mut self, cpu: usize, ts: Time, pid: u32, names: &mut Names) {
        let following = self.merge.following(cpu).map(|timed| timed.item);
        let Some(Item::Entry(event::TASK, words, _)) = following else { return };
        let Some(Entry::Task { pid: named, comm, .. }) = Entry::read(event::TASK, words) else { return };
        let task = self.tasks.find(Pid::new(pid), names);
        if named == pid && self.tasks.get(task).comm == NameId::EMPTY {
            self.rename(task, ts, comm, names);
        }
    }

    /// Passes on that a thread is one of the kernel's, or that the next with its number is not.
    fn of_kernel(&mut self, task: usize, ts: Time, state: TaskState) {
        if self.tasks.set_kernel(task, state.is_kernel()) {
            self.tell_of(task, ts, Fact::Kernel(state.is_kernel()), NameId::EMPTY);
        }
    }

    /// Records the control group of a thread.
    fn group(&mut self, task: usize, ts: Time, state: TaskState) {
        if self.tasks.set_group(task, state.group()) {
            self.tell_of(task, ts, Fact::Group(state.group().into()), NameId::EMPTY);
        }
    }

    /// Records the process of a thread.
    fn process(&mut self, task: usize, ts: Time, process: Pid) {
        if self.tasks.set_process(task, process) {
            self.tell_of(task, ts, Fact::Process(process), NameId::EMPTY);
        }
    }

    fn rename(&mut self, task: usize, ts: Time, comm: &[u8], names: &mut Names) {
        if self.tasks.rename(task, &clean(until_nul(comm)), names) {
            self.tell_of(task, ts, Fact::Name(number::PID_NAME), self.tasks.get(task).comm);
        }
    }

    /// Takes the system call that a record gives for a thread, and passes it on unless the thread's own entries showed
    /// it.
    ///
    /// The record is the last system call that the thread entered the kernel for. That call may have returned, so the
    /// thread's own entries know better. But if they left the thread in another call, it has made calls on a CPU that
    /// recorded none of them; and for a thread that was exiting, the record is of another with the same pid.
    fn inside(&mut self, cpu: usize, task: usize, ts: Time, state: TaskState, names: &mut Names) {
        self.of_kernel(task, ts, state);
        let known = match self.known_call(task) {
            Call::In(nr) if EXITS.contains(&nr) => Call::Unknown,
            Call::In(nr) if state.open_call().is_some_and(|told| told != nr) => Call::Unknown,
            known => known,
        };
        self.tasks.set_call(task, known, self.seen(cpu));
        let (Call::Unknown, Some(nr)) = (known, state.open_call()) else { return };
        self.tasks.set_call(task, Call::In(nr), self.seen(cpu));
        self.tell_call(task, ts, nr, names);
    }

    fn tell_call(&mut self, task: usize, ts: Time, nr: u16, names: &mut Names) {
        let event = number::SYSCALL + u32::from(nr);
        let Some(call) = Work::of(event) else { return };
        let name = self.event_names.event(event, names);
        self.tell_of(task, ts, Fact::OpenCall(call), name);
    }

    fn tell_of(&mut self, task: usize, ts: Time, fact: Fact, name: NameId) {
        let arg = self.tasks.get(task).pid.number();
        self.tell(ts, fact, arg, name);
    }

    pub(super) fn open_call(&self, cpu: usize) -> Option<u16> {
        match self.known_call(self.cpus[cpu].task) {
            Call::In(nr) => Some(nr),
            Call::Out | Call::Unknown => None,
        }
    }

    pub(super) fn known_call(&self, task: usize) -> Call {
        self.tasks.call(task, |cpu| self.cpus[cpu].gaps)
    }

    pub(super) fn begin(&mut self, cpu: usize, at: u64, (pid, tgid, state, comm): ThreadWords, names: &mut Names) {
        let (ts, pid) = (self.clock.units(at), Pid::new(pid));
        let task = self.tasks.find(pid, names);
        self.rename(task, ts, comm, names);
        self.process(task, ts, Pid::new(tgid));
        self.group(task, ts, state);
        let adrift = std::mem::take(&mut self.cpus[cpu].adrift);
        self.cpus[cpu].begun = true;
        // An NMI before the switch is done finds the thread that is about to be left.
        if !adrift && (pid == self.cpus[cpu].pid || self.cpus[cpu].left == Some(pid)) {
            return;
        }
        self.counts.disagreements += u64::from(!adrift);
        self.switch(cpu, ts, pid, Time::UNIT, names);
        let known = self.known_call(task);
        self.inside(cpu, task, ts, state, names);
        // A known call is reported again: readers of lines forget at a gap what the thread was in.
        if let (Call::In(nr), true) = (known, state.open_call().is_some_and(|told| known == Call::In(told))) {
            self.tell_call(task, ts, nr, names);
        }
    }
}
