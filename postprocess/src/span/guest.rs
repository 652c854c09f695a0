// SPDX-License-Identifier: BSD-3-Clause
//! Guests: on the host, the time in which a thread runs a virtual CPU; on the guest, the time in which the host did not
//! run that CPU.
//!
//! On the host, `-guest-` is kernel work inside the call with which a thread asks for it. Its name states why it ended.
//! On the guest, [`Point::Stolen`](crate::event::point::Point::Stolen), which only a merged trace has, is on top of
//! whatever the CPU is doing: the CPU stood still, and the name states what the host did instead.
//!
//! Invariant: nothing is inside of stolen time, because the CPU did nothing: any later event ends it.

use kutrace_format::abi::guest::GuestExit;

use super::build::Builder;
use super::cpu::Close;
use super::stack::Frame;
use super::wait::Reason;
use super::what::Activity;
use super::NONE;
use crate::event::point::Point;
use crate::event::stolen::EVEN_IDLE;
use crate::event::what::What as Said;
use crate::event::work::Work;
use crate::event::Event;
use crate::id::Pid;
use crate::time::Time;

impl Builder {
    /// A virtual CPU enters its guest.
    pub(super) fn guest_entered(&mut self, e: &Event) -> Event {
        Event { what: Said::Call(Work::Guest), dur: Time::ZERO, name: self.names.id("-guest-"), ..*e }
    }

    /// A virtual CPU leaves its guest, for the reason in the argument.
    pub(super) fn guest_left(&mut self, e: &Event) -> Event {
        let exit = GuestExit(e.arg);
        let name = match exit.name() {
            Some(reason) => self.names.id(&format!("-guest-:{reason}")),
            None => self.names.id(&format!("-guest-:{:#x}", exit.reason())),
        };
        Event { what: Said::Return(Work::Guest), dur: Time::ZERO, arg: 0, ret: e.arg as i32, name, ..*e }
    }

    /// Names the time in the guest that ends now after its end.
    pub(super) fn name_guest(&mut self, c: usize, e: &Event) {
        if let Some(top) = self.cpus[c].stack.last_mut() {
            top.name = e.name;
        }
    }

    /// A thread whose guest has nothing to do sleeps for that reason until it enters its guest again or returns.
    pub(super) fn guest_halts(&mut self, c: usize, e: &Event) {
        let thread = self.cpus[c].thread;
        if GuestExit(e.ret as u32).is_halt() {
            self.threads.list[thread].waits_for = Some(Reason::Guest);
        }
    }

    /// The host reports about a guest's CPU. Idle loses nothing by not being run, unless it was to wake up.
    pub(super) fn host_says(&mut self, e: &Event, point: Point) {
        let c = e.cpu.index();
        if !self.cpus.get(c).is_some_and(|cpu| cpu.has_begun() && !cpu.is_lost()) {
            return;
        }
        let t = self.arrive(c, e.ts);
        self.given_back(c, t);
        self.cpus[c].look.host_tells = true;
        let idle = self.running(c) == Pid::IDLE && self.cpus[c].stack.len() == 1;
        if point == Point::StolenReturn || idle && e.arg != EVEN_IDLE {
            return;
        }
        self.leave_low_power(c, t);
        let at = self.cpus[c].top().activity.number();
        self.close(c, t, Close::Pause { ipc: 0 });
        self.cpus[c].stack.push(Frame::new(Activity::Stalled, at.into(), e.name));
    }

    /// A CPU that its host did not run runs again: it does something, or the host reports it.
    pub(super) fn given_back(&mut self, c: usize, t: Time) {
        if self.cpus[c].top().activity == Activity::Stalled {
            self.close(c, t, Close::End { ret: NONE, ipc: 0 });
            self.cpus[c].stack.pop();
        }
    }
}
