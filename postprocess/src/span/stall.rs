// SPDX-License-Identifier: BSD-3-Clause
//! CPUs that stood still: the host of a virtual CPU ran something else, firmware took over, an emulator was busy.
//!
//! A CPU takes its timer tick, and the interrupts that others send it, at once. If one was due, and then for [`STALL_MIN`]
//! or longer nothing at all is recorded on the CPU, it stood still: from when that was due, perhaps from earlier, until
//! its next event. That part of its time is `-stalled-`, whatever it was inside of, which is the span's argument.
//! In the kernel it may have kept its interrupts off instead; no trace tells the two apart.
//!
//! * Due is a **tick** one period after the last, or after the CPU left idle. The first tick after the silence,
//!   [`LATE`] after its end at most, shows that it had only been late. Periods are those that kernels are built with; a
//!   trace's is known from a few ticks. In the handler of an interrupt the CPU stood still since its last event: no
//!   handler takes until the next tick.
//! * Due is an **interrupt** when another CPU sends it, so a CPU that sleeps can be seen to stand still, too, and one
//!   that does so to the end of the trace.
//! * A CPU that is silent in the **handler** of an interrupt, mostly while another CPU of its machine stood still, did so
//!   with that one, idle or not: the whole machine did.
//!
//! Invariant: a CPU without its tick has not stood still for that. One that is idle needs none, and where it can do
//! without while it runs a thread (`nohz_full`) the trace says so; without such a record, ticks count on a CPU whose
//! last [`TRUSTED`] came when they were due.

use std::collections::VecDeque;

use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::Close;
use super::wait::Reason;
use super::what::STALLED;
use crate::event::number::Level;
use crate::event::what::What;
use crate::event::Event;
use crate::id::Pid;
use crate::readable::count;
use crate::time::Time;

/// A silence of a CPU for which something was due all the time is a stall from 1 ms on.
pub const STALL_MIN: Time = Time(100_000);
/// The late tick comes this soon after the silence: 200 us.
const LATE: Time = Time(20_000);
/// Ticks in a row that must have come when they were due before a missing one tells anything.
const TRUSTED: u32 = 3;
/// Periods of ticks: 1000, 300, 250 and 100 in a second.
const PERIODS: [Time; 4] = [Time(100_000), Time(333_333), Time(400_000), Time(1_000_000)];
/// Distances of ticks that tell the period.
const VOTES: u32 = 3;
/// A silence in a handler is remembered for so long, until another CPU is known to have stood still meanwhile: 100 ms.
const SUSPECTED: Time = Time(10_000_000);
/// Stalls of a CPU that are remembered.
const REMEMBERED: usize = 64;

/// How far apart the ticks of a trace's CPUs are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Period {
    votes: [u32; PERIODS.len()],
}

impl Period {
    /// Two ticks of a busy CPU are so far apart.
    fn learn(&mut self, apart: Time) {
        let of = PERIODS.iter().position(|&period| (apart - period).abs() <= period / 16);
        of.into_iter().for_each(|of| self.votes[of] += 1);
    }

    fn known(&self) -> Option<Time> {
        let (votes, period) = self.votes.iter().zip(PERIODS).max_by_key(|(votes, _)| **votes)?;
        Some(period).filter(|_| *votes >= VOTES)
    }
}

/// What is known of a CPU's ticks and stalls.
#[derive(Clone, Debug, Default)]
pub struct Ticks {
    /// Whether it may go without while it runs a thread.
    pub tickless: bool,
    /// When the last came; `None` if that is not known.
    last: Option<Time>,
    /// How many in a row came when they were due.
    in_time: u32,
    /// From when to when nothing happened though one was due, until the next shows whether it was late.
    silence: Option<(Time, Time)>,
    /// From when to when nothing happened in the handler of an interrupt, though nothing was due.
    suspect: Option<(Time, Time)>,
    /// The last stalls.
    stalls: VecDeque<(Time, Time)>,
}

impl Ticks {
    /// What happened to the CPU from here on is not known.
    pub fn forget(&mut self) {
        *self = Ticks { tickless: self.tickless, stalls: std::mem::take(&mut self.stalls), ..Ticks::default() };
    }

    /// Whether a span of its time, from then on, may still become a stall.
    pub fn may_be_stall(&self, start: Time) -> bool {
        self.silence.or(self.suspect).is_some_and(|(from, _)| start >= from)
    }

    /// For how long of this time the CPU stood still, as far as that is remembered.
    pub fn stalled(&self, from: Time, to: Time) -> Time {
        let within = self.stalls.iter().rev().take_while(|stall| stall.1 > from);
        within.map(|&(start, end)| (end.min(to) - start.max(from)).max(Time::ZERO)).sum()
    }

    /// Whether it stood still for most of this time, as far as that is remembered.
    fn stalled_mostly(&self, (from, to): (Time, Time)) -> bool {
        self.stalled(from, to) * 2 > to - from
    }

    fn remember(&mut self, from: Time, to: Time) {
        if self.stalls.len() == REMEMBERED {
            self.stalls.pop_front();
        }
        self.stalls.push_back((from, to));
    }
}

impl Builder {
    /// An event comes, the first on its CPU since `before`.
    pub(super) fn silent(&mut self, c: usize, before: Time, e: &Event, t: Time) {
        let cpu = &self.cpus[c];
        if !self.tells_silence() || cpu.is_lost() || cpu.is_offline() {
            return self.cpus[c].ticks.forget();
        }
        let before = before.max(cpu.since);
        if t - before >= STALL_MIN {
            let in_handler = cpu.top().level() == Level::Irq;
            let late = if in_handler { LATE } else { STALL_MIN };
            let tick = self.tick_due(c, before).filter(|&due| t - due >= late);
            let tick = tick.map(|due| if in_handler { before } else { due });
            let told = self.took_no_interrupt(c, before, t);
            if let Some(from) = tick.filter(|_| !told) {
                self.close(c, from, Close::Pause { ipc: 0 });
                self.close(c, t, Close::Pause { ipc: 0 });
                self.cpus[c].ticks.silence = Some((from, t));
            } else if in_handler && !told {
                self.silent_in_handler(c, before, t);
            }
        }
        if matches!(e.what, What::Point(point) if point.is_sample()) {
            self.tick(c, t);
        } else if self.cpus[c].ticks.silence.is_some_and(|(_, to)| t - to > LATE) {
            self.cpus[c].ticks.silence = None;
            self.cpus[c].ticks.in_time = 0;
        } else if self.cpus[c].ticks.suspect.is_some_and(|(_, to)| t - to > SUSPECTED) {
            self.cpus[c].ticks.suspect = None;
        }
    }

    /// A CPU was silent in the handler of an interrupt: it stood still if another one did meanwhile, as is known by now or
    /// soon.
    fn silent_in_handler(&mut self, c: usize, from: Time, to: Time) {
        self.close(c, from, Close::Pause { ipc: 0 });
        self.close(c, to, Close::Pause { ipc: 0 });
        match self.neighbours(c).any(|other| self.cpus[other].ticks.stalled_mostly((from, to))) {
            true => self.stalled(c, from, to),
            false => self.cpus[c].ticks.suspect = Some((from, to)),
        }
    }

    /// The other CPUs of a CPU's machine.
    fn neighbours(&self, c: usize) -> impl Iterator<Item = usize> + use<> {
        self.cpus_of_machine(c).filter(move |other| *other != c)
    }

    /// Whether an interrupt was sent to a CPU that has been silent since `before`, long enough before `t`: then it
    /// stood still.
    fn took_no_interrupt(&mut self, c: usize, before: Time, t: Time) -> bool {
        let cpu = &self.cpus[c];
        let sent = cpu.ipis.iter().filter(|ipi| ipi.from != cpu.id && ipi.ts >= before);
        let since = sent.map(|ipi| if ipi.first >= before { ipi.first } else { ipi.ts }).min();
        let Some(from) = since.filter(|&from| t - from >= STALL_MIN) else { return false };
        self.close(c, from, Close::Pause { ipc: 0 });
        self.close(c, t, Close::Pause { ipc: 0 });
        self.stalled(c, from, t);
        true
    }

    /// Whether silence of a CPU tells anything: it does where every interrupt is seen, and when the CPU needs none.
    fn tells_silence(&self) -> bool {
        self.sees(Capability::Interrupts) && self.sees(Capability::Idle)
    }

    /// The trace ends: a CPU that should have taken an interrupt by then stood still up to there.
    pub(super) fn silent_at_the_end(&mut self, c: usize, t: Time) {
        let cpu = &self.cpus[c];
        if self.tells_silence() && !cpu.is_lost() && !cpu.is_offline() {
            self.took_no_interrupt(c, cpu.last.max(cpu.since), t);
        }
    }

    /// Since when a tick was due on a CPU that has been silent since `before`, if it may be relied on.
    fn tick_due(&self, c: usize, before: Time) -> Option<Time> {
        let cpu = &self.cpus[c];
        let ticks = &cpu.ticks;
        let relied_on = self.running(c) != Pid::IDLE && !ticks.tickless && ticks.in_time >= TRUSTED;
        let due = ticks.last.filter(|_| relied_on)?.max(cpu.idle_edge) + self.period.known()?;
        (before < due + STALL_MIN).then_some(due.max(before))
    }

    fn tick(&mut self, c: usize, t: Time) {
        let busy = self.running(c) != Pid::IDLE;
        let cpu = &mut self.cpus[c];
        let ticks = &mut cpu.ticks;
        let apart = ticks.last.replace(t).filter(|last| busy && *last >= cpu.idle_edge).map(|last| t - last);
        let silence = ticks.silence.take();
        if let Some((from, to)) = silence.filter(|&(_, to)| t - to <= LATE) {
            return self.stalled(c, from, to);
        }
        if silence.is_some() {
            ticks.in_time = 0;
        } else if let Some(apart) = apart {
            self.period.learn(apart);
            let in_time = self.period.known().is_none_or(|period| apart < period + STALL_MIN);
            ticks.in_time = if in_time { ticks.in_time + 1 } else { 0 };
        }
    }

    /// A CPU stood still: what it was said to do in that time, a span of its own, it did not.
    fn stalled(&mut self, c: usize, from: Time, to: Time) {
        let name = self.names.id("-stalled-");
        if let Some(span) = self.last_written(c, |span| span.start == from && span.dur == to - from) {
            (span.arg, span.what, span.ret, span.name) = (span.event().into(), STALLED, 0, name);
            self.cpus[c].ticks.remember(from, to);
        }
        for other in self.neighbours(c) {
            let suspect = self.cpus[other].ticks.suspect.filter(|suspect| self.cpus[c].ticks.stalled_mostly(*suspect));
            if let Some((from, to)) = suspect {
                self.cpus[other].ticks.suspect = None;
                self.stalled(other, from, to);
            }
        }
    }

    /// Draws what a thread waited for that could run on this CPU; while the CPU stood still, for that.
    pub(super) fn wait_for_cpu(&mut self, c: usize, start: Time, end: Time, why: Reason) {
        let pid = self.running(c);
        let stalls: Vec<(Time, Time)> = match why {
            Reason::Cpu | Reason::Idle => self.cpus[c].ticks.stalls.iter().rev().copied().collect(),
            _ => Vec::new(),
        };
        let mut end = end;
        for (from, to) in stalls.into_iter().filter(|stall| stall.1 > start) {
            let (from, to) = (from.clamp(start, end), to.min(end));
            if to > from {
                self.wait(pid, (to, end), why, Pid::IDLE);
                self.wait(pid, (from, to), Reason::Stall, Pid::IDLE);
                end = from;
            }
        }
        self.wait(pid, (start, end), why, Pid::IDLE);
    }
}

/// What is said of CPUs that stood still, if they did.
pub fn sentence(stalls: u64, stalled: Time) -> Option<String> {
    let times = count(stalls, "time", "times");
    let ms = stalled.seconds() * 1e3;
    (stalls > 0)
        .then(|| format!("CPUs stood still {times}, {ms:.1} ms together: their host, firmware or an emulator had them"))
}
