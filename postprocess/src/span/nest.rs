// SPDX-License-Identifier: BSD-3-Clause
//! Calls and returns: their nesting, and the repair of missing ones.

use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::{Close, Cpu};
use super::stack::{Frame, DEPTH_MAX};
use super::what::{Activity, What};
use super::{Repair, Span, NONE};
use crate::event::names::NameId;
use crate::event::number::Level;
use crate::event::point::Point;
use crate::event::what::What as Said;
use crate::event::work::Work;
use crate::event::Event;
use crate::time::Time;

impl Builder {
    /// A call; with a duration, a call and its return.
    pub(super) fn call(&mut self, c: usize, e: &Event, t: Time, work: Work) {
        let level = work.level();
        self.imply_sched_return(c, level);
        let ipc = e.ipc & 15;
        self.unwind(c, t, work, ipc);
        self.close(c, t, Close::Pause { ipc });
        self.arrive_arcs(c, t);
        let depth = self.cpus[c].stack.len();
        if let Some(begin) = &mut self.cpus[c].begin {
            begin.runs(work, depth);
        }
        self.enter(c, level, t);
        self.recording_mut().exit_work_told |= work == Work::ExitWork;
        if e.dur == Time::ZERO {
            self.cpus[c].stack.push(Frame::call(work, e.arg.into(), e.name));
            return;
        }
        let ((pid, rpc), cpu) = (self.owner(c), Some(self.cpus[c].id));
        let (what, arg, ret) = (What::Run(Activity::Call(work)), e.arg.into(), e.ret.into());
        let (start, dur, ipc, name) = (t, e.dur, e.ipc >> 4, e.name);
        let call = self.write(c, Span { start, dur, cpu, pid, rpc, what, arg, ret, ipc, name });
        self.cpus[c].since = t.saturating_add(e.dur);
        self.cpus[c].entered = self.cpus[c].since;
        self.cpus[c].folded = Some(call);
        self.born(c, e, work);
    }

    /// A return.
    pub(super) fn ret(&mut self, c: usize, e: &Event, t: Time, call: Work) {
        let level = call.level();
        let ipc = e.ipc & 15;
        match self.ended_by(c, t, call) {
            Some(at) => {
                while self.cpus[c].stack.len() > at + 1 {
                    self.end_top(c, t, ipc);
                }
            }
            None => self.imply_call(c, t, call, e),
        }
        if call == Work::Guest {
            self.name_guest(c, e);
        }
        self.close(c, t, Close::End { ret: e.ret.into(), ipc });
        self.cpus[c].stack.pop();
        self.enter(c, level, t);
        match level {
            Level::Sched => self.sched_left(c, t),
            Level::Syscall => self.settle(c),
            _ => {}
        }
        if call == Work::Guest {
            self.guest_halts(c, e);
        }
        self.arrive_arcs(c, t);
        self.born(c, e, call);
    }

    /// Index of the frame of a CPU that a return to `call` ends: the innermost match. Where faults of the kernel are
    /// points, a fault that has a length is the program's, and nothing above it is left.
    fn ended_by(&self, c: usize, t: Time, call: Work) -> Option<usize> {
        let cpu = &self.cpus[c];
        let mut frames = cpu.stack.iter();
        let innermost = frames.clone().rposition(|f| f.ends_with(call));
        match self.nesting.points && call.level() == Level::Trap && cpu.since < t {
            true => frames.position(|f| f.ends_with(call)),
            false => innermost,
        }
    }

    /// Ends every frame that cannot be running when `inner` starts: its return is missing.
    pub(super) fn unwind(&mut self, c: usize, t: Time, inner: Work, ipc: u8) {
        while self.cpus[c].stack.len() > 1 {
            let fits = self.nesting.allows(self.cpus[c].top(), inner);
            if fits && self.cpus[c].stack.len() < DEPTH_MAX {
                break;
            }
            self.end_top(c, t, ipc);
        }
    }

    /// Ends the top frame of the stack, whose return was not seen.
    pub(super) fn end_top(&mut self, c: usize, t: Time, ipc: u8) {
        let gone = self.cpus[c].top();
        self.repair(c, gone.returned(), gone.name);
        let scheduler = gone.level() == Level::Sched;
        self.close(c, t, Close::End { ret: NONE, ipc });
        self.cpus[c].stack.pop();
        if scheduler {
            self.sched_left(c, t);
        }
    }

    /// Counts a missing event, now that the CPU's last event has shown it.
    pub(super) fn repair(&mut self, c: usize, what: Said, name: NameId) {
        let Cpu { id: cpu, last: ts, .. } = self.cpus[c];
        self.tally.repairs += 1;
        self.recording_mut().repaired_calls +=
            u64::from(what.work().is_some_and(|work| matches!(work.level(), Level::Syscall | Level::Trap)));
        self.tally.first.get_or_insert(Repair { ts, cpu, what, name });
    }

    /// Turns the open piece into a call of which only the return was seen.
    #[cold]
    fn imply_call(&mut self, c: usize, t: Time, call: Work, e: &Event) {
        let name = self.names.text(e.name).trim_start_matches('/').to_string();
        // Its argument is unknown, which marks it as begun unseen; that of a softirq is its number.
        let arg = if call == Work::Softirq { e.arg.into() } else { NONE };
        let frame = Frame::call(call, arg, self.names.id(&name));
        if self.began_before(c, t, frame, e.ipc & 15) {
            return;
        }
        // A denied call has nothing but a return, if the source sees nothing else of it.
        if frame.level() == Level::Syscall && self.cpus[c].stack.len() == 1 && !self.sees(Capability::Denied) {
            *self.counts.of(frame.name) += 1;
            self.close(c, t, Close::Pause { ipc: e.ipc & 15 });
            self.cpus[c].stack.push(frame);
            return;
        }
        self.repair(c, Said::Call(call), frame.name);
        let since = self.cpus[c].since;
        while self.cpus[c].stack.len() > 1 && !self.nesting.allows(self.cpus[c].top(), call) {
            let gone = self.cpus[c].stack.pop();
            if gone.is_some_and(|f| f.level() == Level::Sched) {
                self.sched_left(c, since);
            }
        }
        self.cpus[c].stack.push(frame);
    }

    /// The thread that switches is inside the scheduler.
    pub(super) fn imply_sched_call(&mut self, c: usize, t: Time, ipc: u8) {
        let frame = Frame::call(Work::Sched, NONE, self.names.id("-sched-"));
        if self.sees(Capability::Returns) && self.began_before(c, t, frame, ipc) {
            return;
        }
        self.repair(c, Said::Call(Work::Sched), frame.name);
        self.unwind(c, t, Work::Sched, ipc);
        self.close(c, t, Close::Pause { ipc });
        self.cpus[c].stack.push(Frame { shown: true, ..frame });
    }

    /// After a switch the scheduler must return before a system call or the scheduler can be called; if that return was
    /// not seen, it was at the switch. Where not all returns are seen, the first run of a thread has none, and any
    /// event proves it.
    fn imply_sched_return(&mut self, c: usize, level: Level) {
        let cpu = &self.cpus[c];
        let Some((at, _)) = cpu.switched else { return };
        let first_run = !self.sees(Capability::Returns) && cpu.stack.len() == 2;
        if cpu.top().level() == Level::Sched && (first_run || matches!(level, Level::Syscall | Level::Sched)) {
            let at = at.max(cpu.since);
            self.end_top(c, at, 0);
        }
    }

    /// Idle enters a low-power state only from its own loop.
    pub(super) fn unwind_idle(&mut self, c: usize, t: Time, ipc: u8) {
        self.imply_sched_return(c, Level::Syscall);
        while self.cpus[c].stack.len() > 1 {
            self.end_top(c, t, ipc);
        }
    }

    /// Decides what a thread is inside of, if this event shows it and it is unknown, or the thread came back to what it
    /// blocked in.
    pub(super) fn decide(&mut self, c: usize, said: Said) {
        let user_only = match said {
            Said::Call(work) => work.level() == Level::Syscall,
            Said::Point(point) => matches!(point, Point::Mwait | Point::MonitorExit) || point.is_mark(),
            _ => false,
        };
        if user_only {
            self.in_no_call(c);
        }
        let cpu = &mut self.cpus[c];
        let Some(at) = cpu.ambiguous.filter(|at| at + 1 >= cpu.stack.len()) else { return };
        let kernel_only = match said {
            Said::Return(_) | Said::Switch => true,
            Said::Call(work) => work.level() == Level::Sched,
            Said::Point(Point::Runnable | Point::Ipi | Point::Frequency | Point::FrequencySet) => true,
            Said::Point(point) => point.is_sample(),
            _ => false,
        };
        if user_only && at + 1 == cpu.stack.len() {
            let left = cpu.top();
            cpu.stack.truncate(1);
            self.repair(c, left.returned(), left.name);
        }
        if user_only || kernel_only {
            self.cpus[c].ambiguous = None;
        }
    }
}
