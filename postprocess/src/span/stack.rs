// SPDX-License-Identifier: BSD-3-Clause
//! What a thread is inside of: user code, then what interrupted or was called by what.

use super::NONE;
use crate::event::names::NameId;
use crate::event::number::{self, Level};

/// Activities deeper than this close those above them; no machine nests so deep.
pub const DEPTH_MAX: usize = 16;
/// Interrupts that may arrive inside another: NMI and machine check.
const UNMASKABLE: [u32; 2] = [number::IRQ + 2, number::IRQ + 18];

/// One activity on a stack. The one at the bottom is user code, idle, or time of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Event number of its call.
    pub event: u32,
    /// First argument; [`super::NONE`] if it is not known.
    pub arg: i64,
    /// Its name.
    pub name: NameId,
    /// Whether a span of it was written already.
    pub shown: bool,
}

impl Frame {
    /// The frame of a call.
    pub fn call(event: u32, arg: i64, name: NameId) -> Frame {
        Frame { event, arg, name, shown: false }
    }

    /// How deep it nests.
    pub fn level(&self) -> Level {
        number::level(self.event)
    }

    /// Whether this is what the return to `call` ends.
    pub fn ends_with(&self, call: u32) -> bool {
        let unknown = call == number::UNKNOWN_CALL && self.level() == Level::Syscall;
        let sched = number::level(call) == Level::Sched && self.level() == Level::Sched;
        self.event == call || unknown || sched
    }
}

/// What a span of this activity has where a value is not known, or has not been returned: only system calls have
/// values.
pub fn no_value(event: u32) -> i64 {
    if number::level(event) == Level::Syscall && event != number::WAY_OUT {
        NONE
    } else {
        0
    }
}

/// How far what nests is known of the traced machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    /// Whether every call has a return ([`Capability::Returns`](kutrace_format::capability::Capability::Returns)),
    /// unless events were lost.
    pub returns: bool,
    /// Whether page faults of the kernel are points
    /// ([`Capability::KernelFaults`](kutrace_format::capability::Capability::KernelFaults)): there may be some in one of
    /// a program.
    pub points: bool,
    /// Whether threads are preempted in softirqs: with PREEMPT_RT.
    pub realtime: bool,
}

impl Nesting {
    /// Whether `inner` can start while `outer` is running. If not, the end of `outer` is missing.
    pub fn allows(self, outer: Frame, inner: u32) -> bool {
        if outer.event == number::LOST {
            return false;
        }
        match (outer.level(), number::level(inner)) {
            (_, Level::User) => false,
            (Level::User, _) => true,
            (_, Level::Syscall) => false,
            (_, Level::Trap) if self.returns => outer.event != inner || self.points,
            (outer, Level::Trap) => outer == Level::Syscall,
            (outer, Level::Softirq) => !matches!(outer, Level::Softirq | Level::Irq),
            (outer, Level::Irq) => outer != Level::Irq || UNMASKABLE.contains(&inner),
            (Level::Softirq, Level::Sched) => self.realtime,
            (outer, Level::Sched) => matches!(outer, Level::Syscall | Level::Trap),
        }
    }
}
