// SPDX-License-Identifier: BSD-3-Clause
//! Stack of a thread: user code at the bottom, and each call or interrupt on top of what it came from.

use super::what::Activity;
use crate::event::names::NameId;
use crate::event::number::{Level, RETURN_BIT};
use crate::event::what::What;
use crate::event::work::Work;

/// Maximum depth: a deeper activity first closes those on top; no machine nests this deep.
pub const DEPTH_MAX: usize = 16;
/// Interrupts that may arrive inside another: NMI and machine check.
pub const UNMASKABLE: [Work; 2] = [Work::Irq(2), Work::Irq(18)];

/// Calls of the page that programs called before there was a vDSO, each inside of the fault that it causes:
/// `gettimeofday`, `time` and `getcpu`. They are seen only if seccomp denies them.
const VSYSCALLS: [Work; 3] = [Work::Syscall(96), Work::Syscall(201), Work::Syscall(309)];

/// One activity on a stack. The bottom one is user code, idle, or unknown time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The activity.
    pub activity: Activity,
    /// First argument; [`super::NONE`] if unknown.
    pub arg: i64,
    /// Its name.
    pub name: NameId,
    /// True if a span of it was already written.
    pub shown: bool,
}

impl Frame {
    /// The frame of an activity.
    pub fn new(activity: Activity, arg: i64, name: NameId) -> Frame {
        Frame { activity, arg, name, shown: false }
    }

    /// The frame of a call.
    pub fn call(work: Work, arg: i64, name: NameId) -> Frame {
        Frame::new(Activity::Call(work), arg, name)
    }

    /// The kernel's work in this frame.
    pub fn work(&self) -> Option<Work> {
        match self.activity {
            Activity::Call(work) => Some(work),
            _ => None,
        }
    }

    /// The event of this frame's end.
    pub fn returned(&self) -> What {
        self.work().map_or(What::Other(self.activity.number() | RETURN_BIT), What::Return)
    }

    /// Nesting level.
    pub fn level(&self) -> Level {
        self.activity.level()
    }

    /// True if the return to `call` ends this frame.
    pub fn ends_with(&self, call: Work) -> bool {
        let unknown = call == Work::UnknownCall && self.level() == Level::Syscall;
        let sched = call.level() == Level::Sched && self.level() == Level::Sched;
        self.activity == Activity::Call(call) || unknown || sched
    }
}

/// Nesting rules of the traced machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    /// True if every call has a return ([`Capability::Returns`](kutrace_format::capability::Capability::Returns)),
    /// unless events were lost.
    pub returns: bool,
    /// True if page faults of the kernel are points
    /// ([`Capability::KernelFaults`](kutrace_format::capability::Capability::KernelFaults)): a fault of a program may
    /// contain some.
    pub points: bool,
    /// True if threads are preempted in softirqs: with PREEMPT_RT.
    pub realtime: bool,
}

impl Nesting {
    /// True if `inner` can start while `outer` is running. If false, the end of `outer` is missing.
    pub fn allows(self, outer: Frame, inner: Work) -> bool {
        if outer.activity == Activity::Lost {
            return false;
        }
        match (outer.level(), inner.level()) {
            (_, Level::User) => false,
            (Level::User, _) => true,
            (Level::Trap, Level::Syscall) => self.returns && VSYSCALLS.contains(&inner),
            (_, Level::Syscall) => false,
            (_, Level::Trap) if self.returns => outer.activity != Activity::Call(inner) || self.points,
            (outer, Level::Trap) => outer == Level::Syscall,
            (outer, Level::Softirq) => !matches!(outer, Level::Softirq | Level::Irq),
            (outer, Level::Irq) => outer != Level::Irq || UNMASKABLE.contains(&inner),
            (Level::Softirq, Level::Sched) => self.realtime,
            (outer, Level::Sched) => matches!(outer, Level::Syscall | Level::Trap),
        }
    }
}
