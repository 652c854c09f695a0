// SPDX-License-Identifier: BSD-3-Clause
//! Point events: lines of their own, and their effect on the time around them.

use kutrace_format::abi::event::IDLE_POLL;
use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::{Close, Phase};
use super::thread::Life;
use super::wait::Reason;
use super::what::What;
use super::{Span, NONE};
use crate::event::point::Point;
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::time::Time;

impl Builder {
    /// A point event.
    pub(super) fn point(&mut self, c: usize, e: &Event, point: Point, t: Time) {
        let ipc = e.ipc & 15;
        if point == Point::TxFlow {
            let again = self.reclassified(e);
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
            Point::ProgramBegin | Point::ProgramEnd | Point::ProgramAsyncBegin | Point::ProgramAsyncEnd | Point::Steal
        );
        if !has_other_end {
            self.line(c, e, point);
        }
        match point {
            Point::ProgramBegin => self.overlays.begin_part(self.running(c), Event { ts: t, ..*e }),
            Point::ProgramEnd => {
                let spans = self.overlays.end_part(self.running(c), e.arg, t);
                self.emit(spans);
            }
            Point::ProgramAsyncBegin => self.overlays.begin_async_part(self.running(c), Event { ts: t, ..*e }),
            Point::ProgramAsyncEnd => {
                let span = self.overlays.end_async_part(e.arg, t);
                self.emit(span);
            }
            Point::Mwait if self.running(c) == Pid::IDLE => {
                self.close(c, t, Close::Pause { ipc });
                self.cpus[c].low_power = Some(e.arg).filter(|&hint| hint != IDLE_POLL);
            }
            Point::Exit => {
                let thread = self.cpus[c].thread;
                self.threads.list[thread].life = Life::Ended;
                let spans = self.overlays.end_parts(self.running(c), 0, t);
                self.emit(spans);
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
            Point::LockTry | Point::LockAcquired | Point::LockReleased => {
                let span = self.overlays.lock(self.running(c), e, point, t, &mut self.names);
                self.emit(span);
            }
            Point::Enqueue | Point::Dequeue => self.queue(c, e, point),
            Point::RxPacket | Point::TxPacket | Point::RxUser | Point::TxUser => {
                let span = self.rpcs.packet(self.cpus[c].thread, e, point, t);
                self.emit(span);
            }
            _ => {}
        }
    }

    /// Writes an event as a line of its own.
    pub(super) fn line(&mut self, c: usize, e: &Event, point: Point) {
        let cpu = &self.cpus[c];
        let thread = &self.threads.list[cpu.thread];
        // A span has room for a whole value, and for an unknown one, which no event has.
        let (arg, ret) = match point {
            Point::ProgramValue => (e.value().max(NONE + 1), 0),
            _ => (e.arg.into(), e.ret.into()),
        };
        let line = Span {
            start: e.ts,
            dur: e.dur,
            cpu: Some(cpu.id),
            pid: Some(thread.pid),
            rpc: thread.rpc as i32,
            what: What::Point(point),
            arg,
            ret,
            ipc: e.ipc,
            name: e.name,
        };
        self.emit([line]);
    }

    /// A frequency or program counter sample. A CPU that sleeps takes no samples of a program counter: idle and other
    /// threads have samples of their own.
    fn sample(&mut self, c: usize, e: &Event, point: Point, t: Time) {
        let edge = match point {
            Point::PcUser | Point::PcKernel if self.sees(Capability::Interrupts) => self.cpus[c].idle_edge,
            _ => Time::MIN,
        };
        match point {
            Point::PcUser => self.sampled_in_program(c, t),
            Point::PcKernel => self.sampled_in_kernel(c, t),
            _ => {}
        }
        let span = self.overlays.sample(&Event { ts: t, ..*e }, point, edge, &mut self.names);
        self.emit(span);
    }
}
