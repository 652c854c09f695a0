// SPDX-License-Identifier: BSD-3-Clause
//! Causes: what a part of a request's time went into, and who is to blame.

use super::timeline::Timeline;
use crate::event::number::{level, share, Level, Share};
use crate::span::Span;

/// What a part of a request's time went into. Numbers of names are those of the trace's spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cause {
    /// What.
    pub kind: Kind,
    /// The thread that did it; 0 for the request's own.
    pub by: i32,
    /// The name of its call, of an interrupt, of a wait; [`NAMELESS`] for none.
    pub name: u32,
    /// The name of the wait for that thread; [`NAMELESS`] for none.
    pub wait: u32,
}

/// Whose doing something is: of the request's own thread, or of one that it waits for.
#[derive(Clone, Copy, Debug)]
pub struct Of {
    /// The thread; 0 for the request's own.
    pub by: i32,
    /// The name of the wait for it; [`NAMELESS`] for none.
    pub wait: u32,
}

impl Of {
    /// The request's own thread.
    pub const OWN: Of = Of { by: 0, wait: NAMELESS };
}

/// No name.
pub const NAMELESS: u32 = u32::MAX;

/// The kinds of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// User code runs.
    User,
    /// The kernel runs for the thread: a system call, a fault, the scheduler, work of the kernel's own.
    Kernel,
    /// An interrupt, or what it left for later, took the CPU.
    Interrupt,
    /// The thread could run and another had its CPU.
    Queue,
    /// The thread could run, and its CPU was idle or on its way out of that.
    Idle,
    /// The thread could run, and its control group had used up its quota.
    Quota,
    /// The thread waited, and no thread is known that kept it waiting.
    Wait,
    /// The CPU stood still.
    Stalled,
    /// The CPU was offline.
    Offline,
    /// Nothing is known.
    Unknown,
}

impl Cause {
    /// A cause that nobody else is to blame for.
    pub const fn own(kind: Kind, name: u32) -> Cause {
        Cause { kind, by: 0, name, wait: NAMELESS }
    }

    /// What a CPU does for a thread.
    pub fn executing(span: &Span, of: Of) -> Cause {
        let (name, Of { by, wait }) = (span.name, of);
        match (share(span.event), level(span.event as u32)) {
            (Share::User, _) => Cause { kind: Kind::User, by, name: NAMELESS, wait },
            (Share::Lost, _) => Cause::UNKNOWN,
            (Share::Stalled, _) => Cause::own(Kind::Stalled, NAMELESS),
            (Share::Offline, _) => Cause::own(Kind::Offline, NAMELESS),
            (_, Level::Irq | Level::Softirq) => Cause::own(Kind::Interrupt, name),
            (_, Level::User) => Cause { kind: Kind::Kernel, by, name: NAMELESS, wait },
            _ => Cause { kind: Kind::Kernel, by, name, wait },
        }
    }

    /// Nothing is known.
    pub const UNKNOWN: Cause = Cause::own(Kind::Unknown, NAMELESS);

    /// As a line of a table says it.
    pub fn text(&self, timeline: &Timeline) -> String {
        let text = |name: u32| timeline.spans.names.get(name as usize).map_or("", String::as_str);
        let name = text(self.name);
        let did = match self.kind {
            Kind::User => "user code".to_string(),
            Kind::Kernel if name.is_empty() => "kernel code".to_string(),
            Kind::Kernel => format!("running in {name}"),
            Kind::Interrupt => format!("interrupted by {name}"),
            Kind::Queue if self.by == 0 => "waiting for a CPU".to_string(),
            Kind::Queue => return format!("waiting for a CPU that ran {}", timeline.name(self.by)),
            Kind::Idle => "waiting for an idle CPU to wake up".to_string(),
            Kind::Quota => "waiting for the CPU quota of the control group".to_string(),
            Kind::Wait => wait(name).to_string(),
            Kind::Stalled => "the CPU stood still (steal, SMI or emulation)".to_string(),
            Kind::Offline => "the CPU was offline".to_string(),
            Kind::Unknown => "not known".to_string(),
        };
        match self.by {
            0 => did,
            by => format!("{} {}, meanwhile {did}", awaited(text(self.wait)), timeline.name(by)),
        }
    }
}

/// What a thread waits for, of another.
fn awaited(name: &str) -> &str {
    match name {
        "wait_lock" => "waiting for a lock of",
        "wait_pipe" => "waiting for a pipe or socket of",
        "wait_net" => "waiting for a message of",
        "wait_disk" => "waiting for disk work of",
        "wait_mem" => "waiting for memory work of",
        _ => "waiting for",
    }
}

/// What the name of a wait means.
fn wait(name: &str) -> &str {
    match name {
        "wait_disk" => "waiting for the disk",
        "wait_net" => "waiting for the network; what happens beyond this machine is not known",
        "wait_time" => "waiting for time to pass: a sleep or a timeout",
        "wait_lock" => "waiting for a lock",
        "wait_pipe" => "waiting for a pipe or socket of another thread",
        "wait_task" => "waiting for another task",
        "wait_mem" => "waiting for memory",
        "wait_frozen" => "frozen",
        "wait_stopped" => "stopped by a signal",
        "wait_traced" => "stopped by its tracer",
        "wait_rcu" => "waiting for an RCU grace period",
        "wait_sche" => "waiting for the scheduler's balancing",
        _ => "waiting, for what is not known",
    }
}
