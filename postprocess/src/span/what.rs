// SPDX-License-Identifier: BSD-3-Clause
//! What a span is: the event numbers of the text, JSON and frames as one type, on which all that read spans match.

use super::wait::Reason;
use super::Span;
use crate::event::number::{self, class, Class, Level};

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// What a CPU does. These spans together cover its time; everything else lies above or below them.
    Run(Activity),
    /// A thread waits.
    Wait(Reason),
    /// From one CPU to another.
    Arc(Arc),
    /// A thread holds a lock, or waits for it.
    Lock,
    /// Anything else, at a point in time; by its number.
    Point(i32),
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The user code of a program.
    User,
    /// The own code of a thread of the kernel.
    Thread,
    /// A system call, a fault, an interrupt, a softirq or the scheduler.
    Call(Level),
    /// Other work of the kernel, of a number that is not known.
    Kernel,
    /// Nothing.
    Idle,
    /// It leaves a low-power state.
    IdleExit,
    /// Not known: events were lost.
    Lost,
    /// Nothing: it is offline.
    Offline,
    /// Nothing, though it should: it stood still.
    Stalled,
}

/// What an arc shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arc {
    /// A thread is woken, up to where it runs.
    Wakeup,
    /// An interrupt is sent to another CPU, up to where it arrives.
    Ipi,
    /// A note next to a span, of the original's viewer.
    Callout,
}

/// Whose time a CPU's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A program's.
    User,
    /// The kernel's.
    Kernel,
    /// Nobody's: idle, or leaving idle.
    Idle,
    /// Not known.
    Lost,
    /// None: the CPU is offline.
    Offline,
    /// Nobody's: the CPU stood still.
    Stalled,
}

impl What {
    /// What a span of this number is.
    #[inline]
    pub const fn of(event: i32) -> What {
        match event {
            number::WAKEUP_ARC => return What::Arc(Arc::Wakeup),
            number::IPI_ARC => return What::Arc(Arc::Ipi),
            number::CALLOUT => return What::Arc(Arc::Callout),
            ..0 => return What::Point(event),
            _ => {}
        }
        What::Run(match event as u32 {
            number::LOCK_HELD | number::LOCK_WAITED => return What::Lock,
            number::WAIT_A..=number::WAIT_Z => {
                return What::Wait(Reason::of(b'a' + (event as u32 - number::WAIT_A) as u8))
            }
            number::TRAP..=number::SCHED_RETURN => match class(event as u32) {
                Class::Call(level) | Class::Return(level) => Activity::Call(level),
                _ => Activity::Kernel,
            },
            ..number::USER => return What::Point(event),
            number::USER => Activity::Idle,
            number::IDLE_EXIT => Activity::IdleExit,
            number::LOST => Activity::Lost,
            number::OFFLINE_SPAN => Activity::Offline,
            number::STALLED => Activity::Stalled,
            number::KERNEL.. => Activity::Thread,
            _ => Activity::User,
        })
    }
}

impl Activity {
    /// Whose time it is.
    pub const fn share(self) -> Share {
        match self {
            Activity::User => Share::User,
            Activity::Thread | Activity::Call(_) | Activity::Kernel => Share::Kernel,
            Activity::Idle | Activity::IdleExit => Share::Idle,
            Activity::Lost => Share::Lost,
            Activity::Offline => Share::Offline,
            Activity::Stalled => Share::Stalled,
        }
    }

    /// Whether it is what a thread is at the bottom, a program's user code or a thread of the kernel: such spans have
    /// the thread's name.
    pub const fn is_own_code(self) -> bool {
        matches!(self, Activity::User | Activity::Thread)
    }

    /// Whether it interrupts what a thread does: an interrupt or a softirq.
    pub const fn interrupts(self) -> bool {
        matches!(self, Activity::Call(Level::Irq | Level::Softirq))
    }
}

impl Span {
    /// What it is.
    #[inline]
    pub const fn what(&self) -> What {
        What::of(self.event)
    }

    /// What a CPU does in it; `None` if it is not a span of a CPU's time.
    #[inline]
    pub const fn activity(&self) -> Option<Activity> {
        match self.what() {
            What::Run(activity) => Some(activity),
            _ => None,
        }
    }

    /// Whether it is a part of a CPU's time.
    #[inline]
    pub const fn is_execution(&self) -> bool {
        matches!(self.what(), What::Run(_))
    }

    /// Whether it is a thread's own code, and has its name.
    pub fn is_own_code(&self) -> bool {
        self.activity().is_some_and(Activity::is_own_code)
    }
}
