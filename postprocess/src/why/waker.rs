// SPDX-License-Identifier: BSD-3-Clause
//! The originator of a wakeup: a thread, also if a softirq hands on what the thread sent, or a device.

use kutrace_format::x86::softirq;

use super::cause::NAMELESS;
use super::message::Message;
use super::timeline::{end, Timeline};
use crate::event::names::NameId;
use crate::event::number::Level;
use crate::id::{CpuId, Pid};
use crate::span::what::Activity;
use crate::span::Span;
use crate::time::Time;

/// Longest time between two softirqs of a burst, in which the kernel may look for other pending work.
const BETWEEN: Time = Time(100);
/// Softirqs as arguments of spans.
const TIMER: i64 = softirq::TIMER as i64;
const NET_TX: i64 = softirq::NET_TX as i64;
const NET_RX: i64 = softirq::NET_RX as i64;

/// Originator of the wakeup that ended a wait.
#[derive(Clone, Copy, Debug)]
pub enum Waker {
    /// A thread.
    Thread(Pid),
    /// A thread that works on behalf of a device: before that, the device or a timer of this name was at work.
    Servant(Pid, NameId),
    /// A message from a thread of this machine, received on its behalf by another CPU or thread.
    Message(Message),
    /// An interrupt or softirq of this name, or an unknown originator.
    Device(NameId),
}

/// Source of a wakeup, from what its CPU executed: the span that caused it, and the number of later spans of the CPU
/// that are not points in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Unknown.
    Unknown,
    /// A thread: in a call, in a softirq that hands on what the thread sent, or in its own code.
    Thread(Span, usize),
    /// A thread that executes softirqs, and the softirq.
    Servant(Span, usize, Span),
    /// An interrupt, or a softirq that follows it.
    Interrupt(Span, usize),
    /// A softirq, and the interrupt before it if that is of a general kind: a timer or an interprocessor interrupt.
    Softirq(Span, usize, Option<Span>),
}

impl Origin {
    /// Finds the source of the wakeup `arc` from what its CPU executed `before`, newest first, including what ran at
    /// that moment. Spans that only interrupted the source are skipped.
    pub fn of(names: &[String], arc: &Span, before: impl Iterator<Item = Span>) -> Origin {
        let text = |span: &Span| names.get(span.name.index()).map_or("", String::as_str);
        let mut before = before.skip_while(|s| s.start > arc.start).filter(|s| s.dur > Time::ZERO).zip(0..).peekable();
        let Some((first, _)) = before.next() else { return Origin::Unknown };
        match first.level() {
            Some(Level::Irq) => return Origin::Interrupt(first, 0),
            Some(Level::Softirq) => {}
            _ if first.pid != arc.pid => return Origin::Unknown,
            Some(Level::Sched) => {
                let caller = before.find(|(s, _)| s.level() != Some(Level::Sched) && !interrupts(s));
                let (caller, back) = caller.filter(|(s, _)| s.pid == arc.pid).unwrap_or((first, 0));
                return Origin::Thread(caller, back);
            }
            _ => return Origin::Thread(first, 0),
        }
        let (mut burst, mut by) = (first, (first, 0));
        while let Some((s, back)) = before.next() {
            let since = burst.start - end(&s);
            let is_call = s.level() == Some(Level::Syscall);
            let parted = |b: &Span| b.level() == Some(Level::Softirq) || (interrupts(b) && !is_call);
            if s.dur <= BETWEEN && !interrupts(&s) && before.peek().is_some_and(|(b, _)| parted(b)) {
                continue;
            }
            let (follows, by_timer) = (since <= BETWEEN, by.0.name != first.name);
            burst = s;
            match (s.level(), s.activity()) {
                (_, Some(Activity::Stalled)) => {}
                // A timer that sends a packet is the reason for its arrival.
                (Some(Level::Softirq), _) if follows && is_net(&first) && s.arg == TIMER => by = (s, back),
                (Some(Level::Softirq), _) => {}
                // The interrupt came while the softirq ran.
                (Some(Level::Irq), _)
                    if before.peek().is_some_and(|(b, _)| b.what == first.what && b.arg == first.arg) => {}
                (Some(Level::Irq), _) if follows => {
                    let device = text(&s);
                    let general = device.contains("timer") || device.contains("ipi") || device.contains("call_func");
                    return match general || by_timer {
                        true => Origin::Softirq(by.0, by.1, (!by_timer).then_some(s)),
                        false => Origin::Interrupt(s, back),
                    };
                }
                // A softirq that follows a call of the thread was raised by that call: a message to this machine.
                (Some(Level::Syscall), _) if s.pid == arc.pid && is_net(&first) && !by_timer => {
                    return Origin::Thread(s, back);
                }
                (_, Some(Activity::Thread(_))) if s.pid == arc.pid && text(&s).starts_with("ksoftirqd") => {
                    return Origin::Servant(s, back, first);
                }
                _ => break,
            }
        }
        Origin::Softirq(by.0, by.1, None)
    }

    /// Returns the span that caused the wakeup, and the number of spans of the CPU that have begun since.
    pub fn place(&self) -> Option<(Span, usize)> {
        match *self {
            Origin::Unknown => None,
            Origin::Thread(span, back)
            | Origin::Servant(span, back, _)
            | Origin::Interrupt(span, back)
            | Origin::Softirq(span, back, _) => Some((span, back)),
        }
    }
}

/// Returns the originator of a wakeup.
pub fn waker(timeline: &Timeline, arc: &Span) -> Waker {
    let Some(cpu) = arc.cpu else { return Waker::Device(NAMELESS) };
    let before = timeline.before(cpu, arc.start + Time::UNIT);
    match (Origin::of(&timeline.spans.names, arc, before), arc.thread()) {
        (Origin::Interrupt(by, _), _) => Waker::Device(timeline.device(&by).unwrap_or(by.name)),
        (Origin::Thread(..), Some(by)) => Waker::Thread(by),
        (Origin::Servant(_, _, softirq), Some(by)) => {
            let by_timer = raised_by_timer(timeline, by, arc.start).filter(|_| is_net(&softirq));
            let message = || raised_by_message(timeline, by, arc.start).filter(|_| is_net(&softirq));
            match (by_timer, message()) {
                (None, Some(message)) => Waker::Message(message),
                (timer, _) => Waker::Servant(by, timer.unwrap_or(NAMELESS)),
            }
        }
        (Origin::Softirq(by, _, Some(interrupt)), _) if is_net(&by) => {
            let sent = timeline.sent(&interrupt).and_then(|sent| handed_on(timeline, sent.cpu?, sent.start));
            sent.map_or(Waker::Device(by.name), Waker::Message)
        }
        (Origin::Softirq(by, _, after), _) => {
            let device = after.and_then(|interrupt| timeline.device(&interrupt));
            Waker::Device(device.unwrap_or(by.name))
        }
        (Origin::Unknown | Origin::Thread(..) | Origin::Servant(..), _) => Waker::Device(NAMELESS),
    }
}

/// True if it is a softirq of the network.
fn is_net(softirq: &Span) -> bool {
    matches!(softirq.arg, NET_TX | NET_RX)
}

/// Returns the message for which a servant was woken before `at`, if a thread sent one then.
fn raised_by_message(timeline: &Timeline, servant: Pid, at: Time) -> Option<Message> {
    let woken = timeline.woken_before(timeline.thread(servant)?, at)?;
    handed_on(timeline, woken.cpu?, woken.start)
}

/// Returns the message that a CPU hands on at this moment: in a call that sends, or in softirqs that follow one.
/// Softirqs that follow an interrupt bring what a device has received.
fn handed_on(timeline: &Timeline, cpu: CpuId, at: Time) -> Option<Message> {
    let mut before = timeline.before(cpu, at + Time::UNIT).skip_while(|s| s.start > at).peekable();
    let mut burst = at;
    while let Some(s) = before.next().filter(|s| burst - end(s) <= BETWEEN) {
        match s.level() {
            Some(Level::Softirq) => {}
            // A short piece of the call may separate an interrupt, its softirqs and the work that they defer.
            Some(Level::Syscall) if burst - s.start <= BETWEEN && before.peek().is_some_and(interrupts) => {}
            Some(Level::Syscall) if timeline.is_send(&s) => {
                return s.thread().map(|by| Message { sent: at, by: Some(by), again: false });
            }
            _ => return None,
        }
        burst = s.start;
    }
    None
}

/// Returns the softirq of timers if it raised what a servant was woken for before `at`: packets from a device would
/// have been handled in the same burst.
fn raised_by_timer(timeline: &Timeline, servant: Pid, at: Time) -> Option<NameId> {
    let thread = timeline.thread(servant)?;
    let woken = timeline.woken_before(thread, at)?;
    let burst = timeline.before(woken.cpu?, woken.start + Time::UNIT).skip_while(|s| s.start > woken.start);
    let is_softirq = |s: &Span| s.level() == Some(Level::Softirq);
    let burst: Vec<Span> = burst
        .skip_while(|s| !is_softirq(s) && s.dur <= BETWEEN * 4)
        .take_while(|s| is_softirq(s) || s.dur <= BETWEEN)
        .filter(is_softirq)
        .collect();
    let timer = burst.iter().find(|s| s.arg == TIMER)?;
    burst.iter().all(|s| s.arg != NET_RX).then_some(timer.name)
}

/// True for an interrupt, or work that one left for later.
fn interrupts(span: &Span) -> bool {
    matches!(span.level(), Some(Level::Softirq | Level::Irq))
}
