// SPDX-License-Identifier: BSD-3-Clause
//! Kinds of spans: the event numbers of the text, JSON and frames as one type, on which all readers of spans match.
//!
//! Invariant: every number has one value, which has that number.

use super::wait::Reason;
use super::{Span, NONE};
use crate::event::names::NameId;
use crate::event::number::{self, Level, NUMBERS};
use crate::event::point::Point;
use crate::event::work::Work;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Activity of a CPU. These spans together cover its time; all others are above or below them.
    Run(Activity),
    /// A thread waits.
    Wait(Reason),
    /// An arc from one CPU to another.
    Arc(Arc),
    /// A thread holds a lock, or waits for it.
    Lock(Lock),
    /// Anything else, at a point in time.
    Point(Point),
}

/// Activity of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// User code of a program: of the thread with these low 16 bits in its id. A file that is not ours may have more
    /// bits here if the thread's id has more.
    User(u32),
    /// A kernel thread's own code; numbered like [`Activity::User`].
    Thread(u32),
    /// A system call, a fault, an interrupt, a softirq or the scheduler.
    Call(Work),
    /// Idle.
    Idle,
    /// Leaving a low-power state.
    IdleExit,
    /// Unknown: events were lost.
    Lost,
    /// Offline.
    Offline,
    /// Standing still, with work to do. The span's argument is the [`Activity::number`] of the activity that stopped.
    Stalled,
}

/// Kind of an arc, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arc {
    /// The wakeup of a thread, up to where it runs.
    Wakeup {
        /// The CPU where it runs.
        to: CpuId,
        /// The woken thread.
        woken: Pid,
    },
    /// An interrupt sent to another CPU, up to where it arrives.
    Ipi {
        /// The other CPU.
        to: CpuId,
    },
    /// A note next to a span, of the original's viewer; the argument and the value are its distance from the span.
    Callout,
}

/// Relation of a thread to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The thread holds it.
    Held,
    /// The thread waits for it.
    Waited,
}

/// Owner of a CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A program, or a guest.
    User,
    /// The kernel.
    Kernel,
    /// None: idle, or leaving idle.
    Idle,
    /// Unknown.
    Lost,
    /// None: the CPU is offline.
    Offline,
    /// None: the CPU stood still.
    Stalled,
}

/// Kind of a span in which a CPU stood still.
pub const STALLED: What = What::Run(Activity::Stalled);

/// Kinds of spans by the numbers of event lines: a table, because every span of a file is looked up.
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
    /// Kind of a span with this number, except for an arc, whose kind also depends on its end; see
    /// [`Span::set_columns`].
    #[inline]
    pub fn of(event: i32) -> What {
        match event as u32 {
            low @ ..NUMBERS => LOW[low as usize],
            number::USER => What::Run(Activity::Idle),
            _ => What::of_rare(event),
        }
    }

    /// Kind of a span with any other number.
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

    /// Kind of a span with a number of event lines.
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

    /// Event number.
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
    /// User code of a thread. No thread but idle gets idle's number.
    pub const fn user(pid: Pid) -> Activity {
        match (pid.number(), pid.number() & 0xffff) {
            (0, _) => Activity::Idle,
            (_, 0) => Activity::User(0xffff),
            (_, low) => Activity::User(low),
        }
    }

    /// Own code of a thread of the kernel.
    pub const fn thread(pid: Pid) -> Activity {
        Activity::Thread(pid.number() & 0xffff)
    }

    /// Event number.
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

    /// Nesting level.
    #[inline]
    pub const fn level(self) -> Level {
        match self {
            Activity::Call(work) => work.level(),
            _ => Level::User,
        }
    }

    /// Value of a span of this activity if it is unknown or has not been returned: only system calls have values.
    #[inline]
    pub const fn no_value(self) -> i64 {
        match self {
            Activity::Call(work) if work.is_call() => NONE,
            _ => 0,
        }
    }

    /// Owner of the time.
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

    /// True for the bottom activity of a thread, a program's user code or a kernel thread: these spans have the
    /// thread's name.
    #[inline]
    pub const fn is_own_code(self) -> bool {
        matches!(self, Activity::User(_) | Activity::Thread(_))
    }

    /// True if it interrupts a thread's activity: an interrupt or a softirq.
    #[inline]
    pub const fn interrupts(self) -> bool {
        matches!(self.level(), Level::Irq | Level::Softirq)
    }
}

impl Span {
    /// A span of a CPU's activity.
    pub fn run(cpu: CpuId, activity: Activity, name: NameId, (start, end): (Time, Time)) -> Span {
        Span { start, dur: end - start, cpu: Some(cpu), what: What::Run(activity), name, ..Span::default() }
    }

    /// A span of a thread that waits, on no CPU.
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

    /// Sets the fields that make the kind: number, argument and value. An arc that ends on no possible CPU is a point
    /// with its number.
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

    /// Event number, as in files.
    #[inline]
    pub fn event(&self) -> i32 {
        self.what.number()
    }

    /// Argument and value, as in files: for an arc, its end.
    #[inline]
    pub fn values(&self) -> (i64, i64) {
        match self.what {
            What::Arc(Arc::Wakeup { to, woken }) => (to.into(), woken.into()),
            What::Arc(Arc::Ipi { to }) => (to.into(), self.ret),
            _ => (self.arg, self.ret),
        }
    }

    /// The CPU where an arc ends.
    #[inline]
    pub fn to_cpu(&self) -> Option<CpuId> {
        match self.what {
            What::Arc(Arc::Wakeup { to, .. } | Arc::Ipi { to }) => Some(to),
            _ => None,
        }
    }

    /// The woken thread of a wakeup's arc.
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

    /// Kind of the span.
    #[inline]
    pub fn what(&self) -> What {
        self.what
    }

    /// Activity of the CPU; `None` if it is not a span of a CPU's time.
    #[inline]
    pub fn activity(&self) -> Option<Activity> {
        match self.what {
            What::Run(activity) => Some(activity),
            _ => None,
        }
    }

    /// Nesting level of the activity.
    #[inline]
    pub fn level(&self) -> Option<Level> {
        self.activity().map(Activity::level)
    }

    /// The kernel's work.
    #[inline]
    pub fn work(&self) -> Option<Work> {
        match self.what {
            What::Run(Activity::Call(work)) => Some(work),
            _ => None,
        }
    }

    /// The point event; `None` if the span is of another kind.
    #[inline]
    pub fn point(&self) -> Option<Point> {
        match self.what {
            What::Point(point) => Some(point),
            _ => None,
        }
    }

    /// True if it is part of a CPU's time.
    #[inline]
    pub fn is_execution(&self) -> bool {
        matches!(self.what, What::Run(_))
    }

    /// True if it is a thread's own code, and has its name.
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
