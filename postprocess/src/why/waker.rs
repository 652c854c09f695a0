// SPDX-License-Identifier: BSD-3-Clause
//! Whose doing a wakeup is: a thread's, also where a softirq hands on what that sent, or a device's.

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

/// Between two softirqs of one burst the kernel may look at what else is due for so long.
const BETWEEN: Time = Time(100);
/// As arguments of spans.
const TIMER: i64 = softirq::TIMER as i64;
const NET_RX: i64 = softirq::NET_RX as i64;

/// Who ended a wait.
#[derive(Clone, Copy, Debug)]
pub enum Waker {
    /// A thread.
    Thread(Pid),
    /// A thread that works when a device tells it to: until then it was the device, or a timer of this name.
    Servant(Pid, NameId),
    /// A message of a thread of this machine, which another CPU or thread received for it.
    Message(Message),
    /// An interrupt or softirq of this name, or nobody knows who.
    Device(NameId),
}

/// Whose doing a wakeup is.
pub fn waker(timeline: &Timeline, arc: &Span) -> Waker {
    let (Some(cpu), by) = (arc.cpu, arc.thread()) else { return Waker::Device(NAMELESS) };
    let mut before = timeline.before(cpu, arc.start + Time::UNIT).skip_while(|s| s.start > arc.start);
    let Some(first) = before.next() else { return Waker::Device(NAMELESS) };
    match first.level() {
        Some(Level::Irq) => return Waker::Device(timeline.device(&first).unwrap_or(first.name)),
        Some(Level::Softirq) => {}
        _ => return by.filter(|_| first.pid == by).map_or(Waker::Device(NAMELESS), Waker::Thread),
    }
    let (mut burst, mut name) = (first, first.name);
    let is_net = |s: &Span| matches!(s.arg, 2 | 3);
    let mut before = before.peekable();
    while let Some(s) = before.next() {
        let since = burst.start - end(&s);
        let is_call = s.level() == Some(Level::Syscall);
        let parted = |b: &Span| b.level() == Some(Level::Softirq) || (interrupts(b) && !is_call);
        if s.dur <= BETWEEN && !interrupts(&s) && before.peek().is_some_and(parted) {
            continue;
        }
        let follows = since <= BETWEEN;
        burst = s;
        match (s.level(), s.activity()) {
            (_, Some(Activity::Stalled)) => {}
            // A timer that sends a packet is why that arrives.
            (Some(Level::Softirq), _) if follows && is_net(&first) && s.arg == TIMER => name = s.name,
            (Some(Level::Softirq), _) => {}
            // It came while the softirq ran.
            (Some(Level::Irq), _) if before.peek().is_some_and(|b| b.what == first.what && b.arg == first.arg) => {}
            (Some(Level::Irq), _) if follows => {
                let device = timeline.text(&s);
                let general = device.contains("timer") || device.contains("ipi") || device.contains("call_func");
                let is_told = name != first.name;
                let sent = timeline.sent(&s).filter(|_| general && !is_told && is_net(&first));
                if let Some(message) = sent.and_then(|arc| handed_on(timeline, arc.cpu?, arc.start)) {
                    return Waker::Message(message);
                }
                let left = timeline.device(&s).filter(|_| general && !is_told && !is_net(&first));
                return Waker::Device(left.unwrap_or(if general || is_told { name } else { s.name }));
            }
            // A softirq that follows a call of the thread is that call's doing: a message to this machine.
            (Some(Level::Syscall), _) if s.pid == by && is_net(&first) && name == first.name => {
                return by.map_or(Waker::Device(name), Waker::Thread);
            }
            (_, Some(Activity::Thread(_))) if s.pid == by => {
                let servant = by.filter(|by| timeline.program(*by).starts_with("ksoftirqd"));
                let Some(by) = servant else { return Waker::Device(name) };
                let by_timer = raised_by_timer(timeline, by, arc.start).filter(|_| is_net(&first));
                let message = || raised_by_message(timeline, by, arc.start).filter(|_| is_net(&first));
                return match (by_timer, message()) {
                    (None, Some(message)) => Waker::Message(message),
                    (timer, _) => Waker::Servant(by, timer.unwrap_or(NAMELESS)),
                };
            }
            _ => return Waker::Device(name),
        }
    }
    Waker::Device(name)
}

/// The message for which a servant was woken before `at`, if a thread sent one then.
fn raised_by_message(timeline: &Timeline, servant: Pid, at: Time) -> Option<Message> {
    let woken = timeline.woken_before(timeline.thread(servant)?, at)?;
    handed_on(timeline, woken.cpu?, woken.start)
}

/// The message that a CPU hands on at this moment: inside of a call that sends, or of softirqs that follow such a
/// call. Those that follow an interrupt bring what a device has received.
fn handed_on(timeline: &Timeline, cpu: CpuId, at: Time) -> Option<Message> {
    let mut before = timeline.before(cpu, at + Time::UNIT).skip_while(|s| s.start > at).peekable();
    let mut burst = at;
    while let Some(s) = before.next().filter(|s| burst - end(s) <= BETWEEN) {
        match s.level() {
            Some(Level::Softirq) => {}
            // A short piece lies between an interrupt, its softirqs and what they leave for later.
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

/// The softirq of timers, if that raised what a servant was woken for before `at`: packets that a device brings
/// would have had their turn in the same burst.
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

/// Whether it is an interrupt, or what one left for later.
fn interrupts(span: &Span) -> bool {
    matches!(span.level(), Some(Level::Softirq | Level::Irq))
}
