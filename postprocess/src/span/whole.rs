// SPDX-License-Identifier: BSD-3-Clause
//! Whole calls: spans of execution that are pieces of one system call, fault, interrupt, softirq or run of the
//! scheduler.
//!
//! A call that is interrupted, or loses its CPU, is several spans, and no file states which belong together. A system
//! call or a fault goes with its thread until it returns, or the thread does what cannot happen inside of it; the
//! others stay on their CPU until the CPU does.
//!
//! Invariant: every piece belongs to one call, and a call is over before the next of its row begins, except for
//! interrupts, which may nest.

use foldhash::HashMap;

use super::stack::UNMASKABLE;
use super::what::Activity;
use super::{Span, NONE};
use crate::event::names::NameId;
use crate::event::number::Level;
use crate::event::work::Work;
use crate::event::CPUS_MAX;
use crate::id::Pid;
use crate::time::Time;

/// Number of interrupts of a CPU that are kept apart; as many as the page knows (viewer/data/calls.js).
const INTERRUPTS_MAX: usize = 16;

/// A call, from the pieces seen so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Kind of work.
    pub work: Work,
    /// Its name.
    pub name: NameId,
    /// First argument, or [`NONE`].
    pub arg: i64,
    /// The thread of its first piece.
    pub pid: Option<Pid>,
    /// Start of its first piece.
    pub start: Time,
    /// End of its last piece.
    pub end: Time,
    /// Time for which it ran on a CPU itself.
    pub own: Time,
    /// Return value of its last piece, or [`NONE`].
    pub ret: i64,
    /// Number of interrupts that began on the CPU before it.
    number: u64,
}

/// Place of a span of execution in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// In no call: user code, idle, a CPU that stands still.
    None,
    /// The first piece.
    First,
    /// The first piece in the trace, of a call that began before.
    Unseen,
    /// A later piece: of the call of its thread or CPU that began last, 1, or of the one before, 2.
    Next(usize),
}

/// The calls in progress, as spans arrive.
#[derive(Debug, Default)]
pub struct Wholes {
    threads: Vec<OfThread>,
    numbers: HashMap<Pid, usize>,
    cpus: Vec<OfCpu>,
    /// True if calls that have not returned are marked; the original's have 0, and its bottom halves are inside of
    /// interrupts.
    is_told: bool,
}

/// Calls that go with a thread.
#[derive(Debug, Default)]
struct OfThread {
    call: Option<Whole>,
    fault: Option<Whole>,
}

/// Calls that stay on a CPU.
#[derive(Debug, Default)]
struct OfCpu {
    /// Calls of its idle loop, and of unknown threads.
    idle: OfThread,
    /// The thread that ran last, and its number.
    ran: Option<(Pid, usize)>,
    scheduler: Option<Whole>,
    softirq: Option<Whole>,
    /// Each inside the one before it.
    interrupts: Vec<Whole>,
    /// Number of interrupts that have begun.
    begun: u64,
    /// True if the innermost interrupt ran last: the same again is another.
    in_interrupt: bool,
    /// True if the CPU was seen doing something that no softirq can be inside of.
    is_seen: bool,
}

impl Whole {
    fn new(work: Work, span: &Span, number: u64) -> Whole {
        let Span { name, arg, pid, start, .. } = *span;
        Whole { work, name, arg, pid, start, end: start, own: Time::ZERO, ret: NONE, number }
    }

    fn goes_on_with(&self, work: Work, span: &Span) -> bool {
        (self.work, self.name, self.arg) == (work, span.name, span.arg)
    }

    fn take(&mut self, span: &Span) {
        self.end = span.start.saturating_add(span.dur);
        self.own += span.dur;
        self.ret = if self.work.is_call() { span.ret } else { NONE };
    }
}

/// Passes on a call that is over.
#[inline]
fn end(place: &mut Option<Whole>, over: &mut impl FnMut(&Whole)) {
    if let Some(whole) = place {
        over(whole);
        *place = None;
    }
}

/// Passes on the nested interrupts that are over, from this index on.
fn end_from(at: usize, interrupts: &mut Vec<Whole>, over: &mut impl FnMut(&Whole)) {
    interrupts[at..].iter().rev().for_each(over);
    interrupts.truncate(at);
}

impl Wholes {
    /// Takes the next span of execution, passes on each call that is over by now, the inner before the outer, and
    /// returns the span's place in its call, and whether the span itself ends that call.
    #[inline]
    pub fn add(&mut self, activity: Activity, span: &Span, mut over: impl FnMut(&Whole)) -> (Piece, bool) {
        let (Some(cpu), false) = (span.cpu, activity == Activity::Stalled) else { return (Piece::None, false) };
        // A number this large is damage.
        let number = cpu.index().min(CPUS_MAX as usize);
        if self.cpus.len() <= number {
            self.cpus.resize_with(number + 1, OfCpu::default);
        }
        let OfCpu { idle, ran, scheduler, softirq, interrupts, begun, in_interrupt, is_seen } = &mut self.cpus[number];
        let level = activity.level();
        // The CPU's activity shows that anything that can only be above it is over.
        if !interrupts.is_empty() && level != Level::Irq && (self.is_told || level != Level::Softirq) {
            end_from(0, interrupts, &mut over);
        }
        if !matches!(level, Level::Irq | Level::Softirq) {
            end(softirq, &mut over);
            *is_seen = activity != Activity::Lost;
        }
        if matches!(level, Level::User | Level::Syscall | Level::Trap) {
            end(scheduler, &mut over);
        }
        let was_in_interrupt = std::mem::replace(in_interrupt, level == Level::Irq);
        let thread = match (level, span.thread()) {
            (Level::Softirq | Level::Irq | Level::Sched, _) | (_, None) => idle,
            (_, Some(pid)) => {
                let number = match *ran {
                    Some((before, number)) if before == pid => number,
                    _ => *self.numbers.entry(pid).or_insert(self.threads.len()),
                };
                *ran = Some((pid, number));
                if number == self.threads.len() {
                    self.threads.push(OfThread::default());
                }
                &mut self.threads[number]
            }
        };
        if matches!(level, Level::User | Level::Syscall) {
            end(&mut thread.fault, &mut over);
        }
        let Activity::Call(work) = activity else {
            end(&mut thread.call, &mut over);
            return (Piece::None, false);
        };
        let place = match level {
            Level::Irq => {
                let same = interrupts.iter().rposition(|whole| whole.goes_on_with(work, span));
                let same = same.filter(|&at| !(was_in_interrupt && at + 1 == interrupts.len()));
                let nest = !self.is_told || UNMASKABLE.contains(&work);
                let kept = same.map_or(if nest { interrupts.len() } else { 0 }, |at| at + 1);
                end_from(kept, interrupts, &mut over);
                let next = same.map(|at| (*begun - interrupts[at].number) as usize);
                if next.is_none_or(|next| next > INTERRUPTS_MAX) {
                    interrupts.push(Whole::new(work, span, *begun));
                    *begun += 1;
                }
                if let Some(whole) = interrupts.last_mut() {
                    whole.take(span);
                }
                let first = if span.arg == NONE { Piece::Unseen } else { Piece::First };
                return (next.filter(|next| *next <= INTERRUPTS_MAX).map_or(first, Piece::Next), false);
            }
            Level::Softirq => softirq,
            Level::Sched => scheduler,
            Level::Trap => &mut thread.fault,
            Level::Syscall | Level::User => &mut thread.call,
        };
        if place.as_ref().is_some_and(|whole| !whole.goes_on_with(work, span)) {
            end(place, &mut over);
        }
        // An unknown argument means that the start was seen in another thread, or not at all; and a softirq that a CPU
        // does first began before.
        let is_seen = span.arg != NONE && (level != Level::Softirq || *is_seen);
        let piece = match (&place, is_seen) {
            (Some(_), _) => Piece::Next(1),
            (None, true) => Piece::First,
            (None, false) => Piece::Unseen,
        };
        place.get_or_insert_with(|| Whole::new(work, span, 0)).take(span);
        self.is_told |= work.is_call() && span.ret == NONE;
        // A fault that is a point in time has no further pieces.
        let is_point = level == Level::Trap && span.dur == Time::ZERO;
        let returned = work.is_call() && self.is_told && span.ret != NONE;
        let is_over = is_point || returned;
        if is_over {
            end(place, &mut over);
        }
        (piece, is_over)
    }

    /// A thread is gone: passes on the calls it was in.
    pub fn leave(&mut self, pid: Pid, mut over: impl FnMut(&Whole)) {
        let Some(&number) = self.numbers.get(&pid) else { return };
        let thread = &mut self.threads[number];
        end(&mut thread.fault, &mut over);
        end(&mut thread.call, &mut over);
    }

    /// At the end of the trace: passes on the calls still in progress, in no order.
    pub fn finish(&self, over: impl FnMut(&Whole)) {
        let of_cpus = self.cpus.iter().flat_map(|cpu| {
            let one = [&cpu.softirq, &cpu.scheduler, &cpu.idle.fault, &cpu.idle.call];
            cpu.interrupts.iter().chain(one.into_iter().flatten())
        });
        let of_threads = self.threads.iter().flat_map(|thread| [&thread.fault, &thread.call]).flatten();
        of_cpus.chain(of_threads).for_each(over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::CpuId;

    const READ: Work = Work::Syscall(0);
    const FUTEX: Work = Work::Syscall(202);
    const FAULT: Work = Work::Trap(14);
    const TICK: Work = Work::Irq(0xec);
    const NMI: Work = UNMASKABLE[0];

    /// The calls that are over after each of some spans of 10 counts on one CPU, one after the other; and the place of
    /// each span.
    struct Seen {
        pieces: Vec<Piece>,
        over: Vec<(usize, Work, i64, i64)>,
    }

    /// Takes spans as activity, thread, argument and value.
    fn seen(spans: &[(Activity, u32, i64, i64)]) -> Seen {
        let mut wholes = Wholes::default();
        let (mut pieces, mut over) = (Vec::new(), Vec::new());
        for (n, &(activity, pid, arg, ret)) in spans.iter().enumerate() {
            let (start, dur) = (Time(10 * n as i64), Time(10));
            let (cpu, pid, name) = (Some(CpuId::new(0)), Some(Pid::new(pid)), NameId(activity.number()));
            let span = Span { start, dur, cpu, pid, arg, ret, name, ..Span::default() };
            let add = |whole: &Whole| over.push((n, whole.work, whole.start.0, whole.own.0));
            pieces.push(wholes.add(activity, &span, add).0);
        }
        Seen { pieces, over }
    }

    const fn call(work: Work, arg: i64, ret: i64) -> (Activity, u32, i64, i64) {
        (Activity::Call(work), 7, arg, ret)
    }

    const USER: (Activity, u32, i64, i64) = (Activity::User(7), 7, 0, 0);

    #[test]
    fn a_call_goes_on_until_it_returns_or_its_thread_does_something_else() {
        let other = (Activity::User(8), 8, 0, 0);
        let Seen { pieces, over } = seen(&[
            call(READ, 3, NONE),
            other,
            call(READ, 3, NONE),
            call(TICK, 0, 0),
            call(READ, 3, 5),
            call(READ, 3, 5),
            call(FUTEX, 1, NONE),
            USER,
        ]);
        let [first, next, none] = [Piece::First, Piece::Next(1), Piece::None];
        assert_eq!(pieces, [first, none, next, first, next, first, first, none]);
        assert_eq!(over, [(4, TICK, 30, 10), (4, READ, 0, 30), (5, READ, 50, 10), (7, FUTEX, 60, 10)]);
    }

    #[test]
    fn a_fault_lies_in_a_call_and_an_interrupt_in_either() {
        let Seen { pieces, over } =
            seen(&[call(READ, 3, NONE), call(FAULT, 9, 0), call(TICK, 0, 0), call(FAULT, 9, 0), call(READ, 3, 5)]);
        assert_eq!(pieces, [Piece::First, Piece::First, Piece::First, Piece::Next(1), Piece::Next(1)]);
        assert_eq!(over, [(3, TICK, 20, 10), (4, FAULT, 10, 20), (4, READ, 0, 20)]);
    }

    #[test]
    fn what_interrupts_a_softirq_twice_is_two_interrupts() {
        let softirq = call(Work::Softirq, 9, 0);
        let told = call(READ, 3, NONE);
        let Seen { pieces, over } =
            seen(&[told, softirq, call(TICK, 0, 0), softirq, call(TICK, 0, 0), call(TICK, 0, 0), softirq, USER]);
        let [first, next] = [Piece::First, Piece::Next(1)];
        assert_eq!(pieces, [first, first, first, next, first, first, next, Piece::None]);
        let softirqs: Vec<_> = over.iter().filter(|(_, work, ..)| *work == Work::Softirq).collect();
        assert_eq!(softirqs, [&(7, Work::Softirq, 10, 30)]);
    }

    #[test]
    fn an_interrupt_goes_on_after_one_that_cannot_be_masked_and_after_no_other() {
        let told = call(READ, 3, NONE);
        let other = Work::Irq(0x21);
        let Seen { pieces, .. } =
            seen(&[told, call(TICK, 0, 0), call(NMI, 0, 0), call(TICK, 0, 0), call(other, 0, 0), call(TICK, 0, 0)]);
        let first = Piece::First;
        assert_eq!(pieces, [first, first, first, Piece::Next(2), first, first]);
    }

    #[test]
    fn what_began_before_the_trace_is_not_its_first() {
        let unseen = Piece::Unseen;
        let Seen { pieces, .. } = seen(&[call(Work::Softirq, 9, 0), call(READ, NONE, NONE), call(READ, NONE, 4)]);
        assert_eq!(pieces, [unseen, unseen, Piece::Next(1)]);
    }
}
