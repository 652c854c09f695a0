// SPDX-License-Identifier: BSD-3-Clause
//! What a span is: the event numbers of the text, JSON and frames as one type, on which all that read spans match.

use super::wait::Reason;
use super::Span;
use crate::event::names::NameId;
use crate::event::number::{self, class, Class, Level, NUMBERS};
use crate::id::{CpuId, Pid};
use crate::time::Time;

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

/// What spans of the numbers of event lines are: a table, as every span is asked more than once.
static LOW: [What; NUMBERS as usize] = {
    let (mut low, mut event) = ([What::Lock; NUMBERS as usize], 0);
    while event < NUMBERS {
        low[event as usize] = What::of_line(event);
        event += 1;
    }
    low
};

impl What {
    /// What a span of this number is.
    #[inline]
    pub fn of(event: i32) -> What {
        match event as u32 {
            low @ ..NUMBERS => LOW[low as usize],
            number::USER => What::Run(Activity::Idle),
            _ => What::of_rare(event),
        }
    }

    /// What a span of any other number is.
    const fn of_rare(event: i32) -> What {
        match event {
            number::WAKEUP_ARC => return What::Arc(Arc::Wakeup),
            number::IPI_ARC => return What::Arc(Arc::Ipi),
            number::CALLOUT => return What::Arc(Arc::Callout),
            ..0 => return What::Point(event),
            _ => {}
        }
        match event as u32 {
            ..number::USER => What::Point(event),
            number::IDLE_EXIT => What::Run(Activity::IdleExit),
            number::LOST => What::Run(Activity::Lost),
            number::OFFLINE_SPAN => What::Run(Activity::Offline),
            number::STALLED => What::Run(Activity::Stalled),
            number::KERNEL.. => What::Run(Activity::Thread),
            _ => What::Run(Activity::User),
        }
    }

    /// What a span of a number of event lines is.
    const fn of_line(event: u32) -> What {
        match event {
            number::LOCK_HELD | number::LOCK_WAITED => What::Lock,
            number::WAIT_A..=number::WAIT_Z => What::Wait(Reason::of(b'a' + (event - number::WAIT_A) as u8)),
            number::TRAP..=number::SCHED_RETURN => match class(event) {
                Class::Call(level) | Class::Return(level) => What::Run(Activity::Call(level)),
                _ => What::Run(Activity::Kernel),
            },
            _ => What::Point(event as i32),
        }
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
    /// A thread waits, on no CPU.
    pub fn wait(pid: Pid, reason: Reason, name: NameId, (start, end): (Time, Time)) -> Span {
        Span { start, dur: end - start, pid: Some(pid), event: reason.event(), name, ..Span::default() }
    }

    /// The arc of a wakeup, from the waker to the woken thread.
    pub fn wakeup(by: (CpuId, Pid), woken: (CpuId, Pid), name: NameId, (start, end): (Time, Time)) -> Span {
        let (cpu, pid, arg, ret) = (Some(by.0), Some(by.1), woken.0.into(), woken.1.into());
        Span { start, dur: end - start, cpu, pid, event: number::WAKEUP_ARC, arg, ret, name, ..Span::default() }
    }

    /// The arc of an interrupt from one CPU to another.
    pub fn ipi(from: CpuId, to: CpuId, name: NameId, (start, end): (Time, Time)) -> Span {
        let (cpu, arg, rpc) = (Some(from), to.into(), -1);
        Span { start, dur: end - start, cpu, rpc, event: number::IPI_ARC, arg, name, ..Span::default() }
    }

    /// Of an arc, the CPU where it ends.
    #[inline]
    pub fn to_cpu(&self) -> CpuId {
        CpuId::new(self.arg as u32)
    }

    /// Of the arc of a wakeup, the thread that is woken.
    #[inline]
    pub fn woken(&self) -> Pid {
        Pid::new(self.ret as u32)
    }

    /// Its thread, unless that is idle.
    #[inline]
    pub fn thread(&self) -> Option<Pid> {
        self.pid.filter(|pid| *pid != Pid::IDLE)
    }

    /// What it is.
    #[inline]
    pub fn what(&self) -> What {
        What::of(self.event)
    }

    /// What a CPU does in it; `None` if it is not a span of a CPU's time.
    #[inline]
    pub fn activity(&self) -> Option<Activity> {
        match self.what() {
            What::Run(activity) => Some(activity),
            _ => None,
        }
    }

    /// Whether it is a part of a CPU's time.
    #[inline]
    pub fn is_execution(&self) -> bool {
        matches!(self.what(), What::Run(_))
    }

    /// Whether it is a thread's own code, and has its name.
    pub fn is_own_code(&self) -> bool {
        self.activity().is_some_and(Activity::is_own_code)
    }
}
