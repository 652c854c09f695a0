// SPDX-License-Identifier: BSD-3-Clause
//! What a span is: the event numbers of the text, JSON and frames as one type, on which all that read spans match.
//!
//! Invariant: every number is one value, and gives itself back.

use super::wait::Reason;
use super::{Span, NONE};
use crate::event::names::NameId;
use crate::event::number::{self, Level, NUMBERS};
use crate::event::point::Point;
use crate::event::work::Work;
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
    Lock(Lock),
    /// Anything else, at a point in time.
    Point(Point),
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// The user code of a program: of the thread whose id's low half this is, or what else a file has there, which is
    /// more than that if the thread's id has more than 16 bits and the file is not ours.
    User(u32),
    /// The own code of a thread of the kernel; the same.
    Thread(u32),
    /// A system call, a fault, an interrupt, a softirq or the scheduler.
    Call(Work),
    /// Nothing.
    Idle,
    /// It leaves a low-power state.
    IdleExit,
    /// Not known: events were lost.
    Lost,
    /// Nothing: it is offline.
    Offline,
    /// Nothing, though it should: it stood still. The span's argument is the [`Activity::number`] of what it was at.
    Stalled,
}

/// What an arc shows, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arc {
    /// A thread is woken, up to where it runs.
    Wakeup {
        /// The CPU where it runs.
        to: CpuId,
        /// The thread.
        woken: Pid,
    },
    /// An interrupt is sent to another CPU, up to where it arrives.
    Ipi {
        /// That CPU.
        to: CpuId,
    },
    /// A note next to a span, of the original's viewer; the argument and the value are its distance from the span.
    Callout,
}

/// What a thread does about a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// It holds it.
    Held,
    /// It waits for it.
    Waited,
}

/// Whose time a CPU's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A program's, or a guest's.
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

/// A CPU stood still.
pub const STALLED: What = What::Run(Activity::Stalled);

/// What spans of the numbers of event lines are: a table, as every span of a file is asked.
static LOW: [What; NUMBERS as usize] = {
    let (mut low, mut event) = ([What::Lock(Lock::Held); NUMBERS as usize], 0);
    while event < NUMBERS {
        low[event as usize] = What::of_low(event);
        event += 1;
    }
    low
};

impl Default for What {
    fn default() -> What {
        What::Point(Point::Other(0))
    }
}

impl What {
    /// What a span of this number is, but for an arc, which is one by where it ends, too; see [`Span::set_columns`].
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
            number::CALLOUT => return What::Arc(Arc::Callout),
            ..0 => return What::Point(Point::Other(event)),
            _ => {}
        }
        match event as u32 {
            ..number::USER => What::Point(Point::Other(event)),
            number::IDLE_EXIT => What::Run(Activity::IdleExit),
            number::LOST => What::Run(Activity::Lost),
            number::OFFLINE_SPAN => What::Run(Activity::Offline),
            number::STALLED => What::Run(Activity::Stalled),
            thread @ number::KERNEL.. => What::Run(Activity::Thread(thread - number::KERNEL)),
            user => What::Run(Activity::User(user - number::USER)),
        }
    }

    /// What a span of a number of event lines is.
    const fn of_low(event: u32) -> What {
        match event {
            number::LOCK_HELD => What::Lock(Lock::Held),
            number::LOCK_WAITED => What::Lock(Lock::Waited),
            number::WAIT_A..=number::WAIT_Z => What::Wait(Reason::of(b'a' + (event - number::WAIT_A) as u8)),
            _ => match Work::of(event) {
                Some(work) => What::Run(Activity::Call(work)),
                None => What::Point(Point::of(event as i32)),
            },
        }
    }

    /// Its number.
    #[inline]
    pub fn number(self) -> i32 {
        match self {
            What::Run(activity) => activity.number() as i32,
            What::Point(point) => point.number(),
            What::Wait(reason) => reason.event(),
            What::Arc(Arc::Wakeup { .. }) => number::WAKEUP_ARC,
            What::Arc(Arc::Ipi { .. }) => number::IPI_ARC,
            What::Arc(Arc::Callout) => number::CALLOUT,
            What::Lock(Lock::Held) => number::LOCK_HELD as i32,
            What::Lock(Lock::Waited) => number::LOCK_WAITED as i32,
        }
    }
}

impl Activity {
    /// The user code of a thread. No thread but idle gets idle's number.
    pub const fn user(pid: Pid) -> Activity {
        match (pid.number(), pid.number() & 0xffff) {
            (0, _) => Activity::Idle,
            (_, 0) => Activity::User(0xffff),
            (_, low) => Activity::User(low),
        }
    }

    /// The own code of a thread of the kernel.
    pub const fn thread(pid: Pid) -> Activity {
        Activity::Thread(pid.number() & 0xffff)
    }

    /// Its number.
    #[inline]
    pub const fn number(self) -> u32 {
        match self {
            Activity::User(n) => number::USER.wrapping_add(n),
            Activity::Thread(n) => number::KERNEL.wrapping_add(n),
            Activity::Call(work) => work.number(),
            Activity::Idle => number::USER,
            Activity::IdleExit => number::IDLE_EXIT,
            Activity::Lost => number::LOST,
            Activity::Offline => number::OFFLINE_SPAN,
            Activity::Stalled => number::STALLED,
        }
    }

    /// How deep it nests.
    #[inline]
    pub const fn level(self) -> Level {
        match self {
            Activity::Call(work) => work.level(),
            _ => Level::User,
        }
    }

    /// What a span of it has where a value is not known, or has not been returned: only system calls have values.
    #[inline]
    pub const fn no_value(self) -> i64 {
        match self {
            Activity::Call(work) if work.is_call() => NONE,
            _ => 0,
        }
    }

    /// Whose time it is.
    #[inline]
    pub const fn share(self) -> Share {
        match self {
            Activity::User(_) | Activity::Call(Work::Guest) => Share::User,
            Activity::Thread(_) | Activity::Call(_) => Share::Kernel,
            Activity::Idle | Activity::IdleExit => Share::Idle,
            Activity::Lost => Share::Lost,
            Activity::Offline => Share::Offline,
            Activity::Stalled => Share::Stalled,
        }
    }

    /// Whether it is what a thread is at the bottom, a program's user code or a thread of the kernel: such spans have
    /// the thread's name.
    #[inline]
    pub const fn is_own_code(self) -> bool {
        matches!(self, Activity::User(_) | Activity::Thread(_))
    }

    /// Whether it interrupts what a thread does: an interrupt or a softirq.
    #[inline]
    pub const fn interrupts(self) -> bool {
        matches!(self.level(), Level::Irq | Level::Softirq)
    }
}

impl Span {
    /// What a CPU does in a time.
    pub fn run(cpu: CpuId, activity: Activity, name: NameId, (start, end): (Time, Time)) -> Span {
        Span { start, dur: end - start, cpu: Some(cpu), what: What::Run(activity), name, ..Span::default() }
    }

    /// A thread waits, on no CPU.
    pub fn wait(pid: Pid, (reason, waker): (Reason, Pid), name: NameId, (start, end): (Time, Time)) -> Span {
        let (what, ret) = (What::Wait(reason), if waker.number() == 0 { 0 } else { waker.into() });
        Span { start, dur: end - start, pid: Some(pid), what, ret, name, ..Span::default() }
    }

    /// The arc of a wakeup, from the waker to the woken thread.
    pub fn wakeup(by: (CpuId, Pid), woken: (CpuId, Pid), name: NameId, (start, end): (Time, Time)) -> Span {
        let (cpu, pid, what) = (Some(by.0), Some(by.1), What::Arc(Arc::Wakeup { to: woken.0, woken: woken.1 }));
        Span { start, dur: end - start, cpu, pid, what, name, ..Span::default() }
    }

    /// The arc of an interrupt from one CPU to another.
    pub fn ipi(from: CpuId, to: CpuId, name: NameId, (start, end): (Time, Time)) -> Span {
        let (cpu, what, rpc) = (Some(from), What::Arc(Arc::Ipi { to }), -1);
        Span { start, dur: end - start, cpu, rpc, what, name, ..Span::default() }
    }

    /// Takes what the columns say that together make what it is: number, argument and value. An arc that ends on no
    /// possible CPU is a point of its number.
    #[inline]
    pub fn set_columns(&mut self, event: i32, arg: i64, ret: i64) {
        (self.what, self.arg, self.ret) = (What::of(event), arg, ret);
        if event < 0 {
            self.set_arc(event);
        }
    }

    #[inline(never)]
    fn set_arc(&mut self, event: i32) {
        let (to, woken) = (CpuId::of_column(self.arg).flatten(), Pid::of_column(self.ret).flatten());
        match (event, to, woken) {
            (number::WAKEUP_ARC, Some(to), Some(woken)) => {
                (self.what, self.arg, self.ret) = (What::Arc(Arc::Wakeup { to, woken }), 0, 0);
            }
            (number::IPI_ARC, Some(to), _) => (self.what, self.arg) = (What::Arc(Arc::Ipi { to }), 0),
            _ => {}
        }
    }

    /// Its number, as files have it.
    #[inline]
    pub fn event(&self) -> i32 {
        self.what.number()
    }

    /// Argument and value as files have them: of an arc, where it ends.
    #[inline]
    pub fn values(&self) -> (i64, i64) {
        match self.what {
            What::Arc(Arc::Wakeup { to, woken }) => (to.into(), woken.into()),
            What::Arc(Arc::Ipi { to }) => (to.into(), self.ret),
            _ => (self.arg, self.ret),
        }
    }

    /// Of an arc, the CPU where it ends.
    #[inline]
    pub fn to_cpu(&self) -> Option<CpuId> {
        match self.what {
            What::Arc(Arc::Wakeup { to, .. } | Arc::Ipi { to }) => Some(to),
            _ => None,
        }
    }

    /// Of the arc of a wakeup, the thread that is woken.
    #[inline]
    pub fn woken(&self) -> Option<Pid> {
        match self.what {
            What::Arc(Arc::Wakeup { woken, .. }) => Some(woken),
            _ => None,
        }
    }

    /// Its thread, unless that is idle.
    #[inline]
    pub fn thread(&self) -> Option<Pid> {
        self.pid.filter(|pid| *pid != Pid::IDLE)
    }

    /// What it is.
    #[inline]
    pub fn what(&self) -> What {
        self.what
    }

    /// What a CPU does in it; `None` if it is not a span of a CPU's time.
    #[inline]
    pub fn activity(&self) -> Option<Activity> {
        match self.what {
            What::Run(activity) => Some(activity),
            _ => None,
        }
    }

    /// How deep that nests.
    #[inline]
    pub fn level(&self) -> Option<Level> {
        self.activity().map(Activity::level)
    }

    /// What the kernel does in it.
    #[inline]
    pub fn work(&self) -> Option<Work> {
        match self.what {
            What::Run(Activity::Call(work)) => Some(work),
            _ => None,
        }
    }

    /// What happens at its point in time; `None` if it is none.
    #[inline]
    pub fn point(&self) -> Option<Point> {
        match self.what {
            What::Point(point) => Some(point),
            _ => None,
        }
    }

    /// Whether it is a part of a CPU's time.
    #[inline]
    pub fn is_execution(&self) -> bool {
        matches!(self.what, What::Run(_))
    }

    /// Whether it is a thread's own code, and has its name.
    pub fn is_own_code(&self) -> bool {
        self.activity().is_some_and(Activity::is_own_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_gives_itself_back() {
        let high = [NUMBERS, number::USER, number::IDLE_EXIT, number::LOST, number::OFFLINE_SPAN, number::STALLED];
        let high = high.into_iter().flat_map(|n| n as i32 - 1..n as i32 + 2);
        let odd = [i32::MIN, i32::MAX, number::USER as i32 + 70_000, number::KERNEL as i32 + 70_000];
        for event in (-10..NUMBERS as i32).chain(high).chain(odd) {
            for (arg, ret) in [(0, 0), (3, 7), (NONE, -1), (1 << 31, 1 << 31), (5, 0)] {
                let mut span = Span::default();
                span.set_columns(event, arg, ret);
                assert_eq!((span.event(), span.values()), (event, (arg, ret)), "{:?}", span.what);
            }
        }
    }
}
