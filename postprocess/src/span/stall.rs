// SPDX-License-Identifier: BSD-3-Clause
//! CPUs that stood still: the host of a virtual CPU ran something else, firmware took over, an emulator was busy.
//!
//! A CPU takes its timer tick, and the interrupts that others send it, at once. If one was due, and the CPU then
//! recorded nothing at all for [`STALL_MIN`] or longer, it stood still: from the time when that was due, perhaps from
//! earlier, until its next event. That part of its time is `-stalled-`, with the activity that it was in as the
//! argument. A CPU in the kernel may have kept its interrupts off instead; no trace distinguishes the two.
//!
//! * A **tick** is due one period after the last, or after the CPU left idle. The first tick after the silence,
//!   [`LATE`] after its end at most, shows that it had only been late. Periods are those that kernels are built with; a
//!   few ticks show a trace's. In the handler of an interrupt the CPU stood still from its last event on: no handler
//!   runs until the next tick.
//! * An **interrupt** is due when another CPU sends it, so a CPU that sleeps can be seen to stand still, too, and so
//!   can one that stands still to the end of the trace.
//! * A CPU that is silent in the **handler** of an interrupt, mostly while another CPU of its machine stood still, stood
//!   still with that one, idle or not.
//! * If no CPU of a **machine** records anything, and two of them miss a tick meanwhile, all that are not idle stood still
//!   together: from the last event of any CPU to the next of any. Their ticks may come late by any time then.
//!
//! Invariant: the lack of a tick alone is not a stall. An idle CPU needs no tick, and if a CPU can run a thread without
//! one (`nohz_full`), the trace reports it; without that record, ticks count on a CPU whose last [`TRUSTED`] ticks came
//! when they were due.

use std::collections::VecDeque;

use kutrace_format::capability::Capability;

use super::build::Builder;
use super::cpu::{Close, Cpu};
use super::wait::Reason;
use super::what::STALLED;
use crate::event::number::Level;
use crate::event::what::What;
use crate::event::Event;
use crate::id::Pid;
use crate::readable::count;
use crate::time::Time;

/// Shortest silence of a CPU that is a stall, if something was due all the time: 1 ms.
pub const STALL_MIN: Time = Time(100_000);
/// Longest time from the end of the silence to the late tick: 200 us.
const LATE: Time = Time(20_000);
/// Number of ticks in a row that must have come when they were due before a missing one counts.
const TRUSTED: u32 = 3;
/// Periods of ticks: 1000, 300, 250 and 100 per second.
const PERIODS: [Time; 4] = [Time(100_000), Time(333_333), Time(400_000), Time(1_000_000)];
/// Number of tick distances that establish the period.
const VOTES: u32 = 3;
/// Time for which a silence in a handler is remembered, until another CPU proves to have stood still with it: 100 ms.
const SUSPECTED: Time = Time(10_000_000);
/// Number of stalls of a CPU that are remembered.
const REMEMBERED: usize = 64;

/// Time between the ticks of a trace's CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Period {
    /// Number of tick distances close to each period, and of those that are almost exactly one.
    close: [u32; PERIODS.len()],
    exact: [u32; PERIODS.len()],
}

impl Period {
    /// Learns from the distance of two ticks of a busy CPU.
    fn learn(&mut self, apart: Time) {
        for (votes, part) in [(&mut self.close, 16), (&mut self.exact, 64)] {
            let of = PERIODS.iter().position(|&period| (apart - period).abs() <= period / part);
            of.into_iter().for_each(|of| votes[of] += 1);
        }
    }

    /// The period, as far as it matters to 1 ms.
    fn known(&self) -> Option<Time> {
        most(&self.close)
    }

    /// The period, even where ticks come late by any time: these are rarely one period apart.
    fn certain(&self) -> Option<Time> {
        most(&self.exact)
    }
}

fn most(votes: &[u32]) -> Option<Time> {
    let (votes, period) = votes.iter().zip(PERIODS).max_by_key(|(votes, _)| **votes)?;
    Some(period).filter(|_| *votes >= VOTES)
}

/// State of a CPU's ticks and stalls.
#[derive(Clone, Debug, Default)]
pub struct Ticks {
    /// True if it may run a thread without a tick.
    pub tickless: bool,
    /// Time of the last tick; `None` if unknown.
    last: Option<Time>,
    /// End of the last stall of the whole machine.
    resumed: Time,
    /// Number of ticks in a row that came when they were due.
    in_time: u32,
    /// Start and end of a silence in which a tick was due, until the next tick shows whether it was late.
    silence: Option<(Time, Time)>,
    /// Start and end of a silence in the handler of an interrupt, in which nothing was due.
    suspect: Option<(Time, Time)>,
    /// The last stalls.
    stalls: VecDeque<(Time, Time)>,
}

impl Ticks {
    /// Forgets the ticks: the CPU's time from here on is unknown.
    pub fn forget(&mut self) {
        *self = Ticks { tickless: self.tickless, stalls: std::mem::take(&mut self.stalls), ..Ticks::default() };
    }

    /// A stall of the whole machine ends: the next tick may come at any time.
    fn resume(&mut self, t: Time) {
        (self.resumed, self.silence, self.suspect) = (t, None, None);
    }

    /// True if a span of the CPU's time up to `end` may still become a stall, or a part of it may.
    pub fn may_be_stall(&self, end: Time) -> bool {
        [self.silence, self.suspect].into_iter().flatten().any(|(from, _)| end > from)
    }

    /// Time for which the CPU stood still within a range, as far as it is remembered.
    pub fn stalled(&self, from: Time, to: Time) -> Time {
        let within = self.stalls.iter().rev().take_while(|stall| stall.1 > from);
        within.map(|&(start, end)| (end.min(to) - start.max(from)).max(Time::ZERO)).sum()
    }

    /// True if the CPU stood still for most of a range, as far as it is remembered.
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
    /// An event arrives, the first on its CPU since `before`.
    pub(super) fn silent(&mut self, c: usize, before: Time, e: &Event, t: Time) {
        let cpu = &self.cpus[c];
        if !self.tells_silence() || cpu.is_lost() || cpu.is_offline() {
            return self.cpus[c].ticks.forget();
        }
        if t - before.max(cpu.since) >= STALL_MIN {
            self.machine_silent(c, before, t);
        }
        let cpu = &self.cpus[c];
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

    /// Marks the silence of a whole machine, which an event of one of its CPUs ends, as a stall of all its CPUs that are
    /// not idle, if two of them should have taken a tick in it.
    fn machine_silent(&mut self, c: usize, before: Time, t: Time) {
        let cpus = self.cpus_of_machine(c);
        let last = |of: &Cpu| if of.id.index() == c { before } else { of.last }.max(of.since);
        let silent = |of: &Cpu| !of.has_begun() || !of.is_lost() && t - last(of) >= STALL_MIN;
        if !self.cpus[cpus.clone()].iter().all(silent) {
            return;
        }
        let begun = cpus.filter(|&of| self.cpus[of].has_begun() && !self.cpus[of].is_offline());
        let Some(from) = begun.clone().map(|of| last(&self.cpus[of])).max() else { return };
        let busy: Vec<usize> = begun.filter(|&of| self.running(of) != Pid::IDLE).collect();
        let Some(period) = self.period.certain() else { return };
        let missed = |of: usize| self.next_tick(of, from, period).is_some_and(|due| t - due >= LATE);
        if busy.iter().filter(|&&of| missed(of)).count() < 2 {
            return;
        }
        for of in busy {
            if of != c {
                self.paused(of, self.cpus[of].last, t);
            }
            self.close(of, from, Close::Pause { ipc: 0 });
            self.close(of, t, Close::Pause { ipc: 0 });
            self.stalled(of, from, t);
            self.cpus[of].ticks.resume(t);
        }
    }

    /// Marks the silence of a CPU in the handler of an interrupt as a stall if another CPU stood still during it, or keeps
    /// it as a suspect until one proves to have done so.
    fn silent_in_handler(&mut self, c: usize, from: Time, to: Time) {
        self.cpus[c].ticks.suspect = Some((from, to));
        if self.neighbours(c).any(|other| self.cpus[other].ticks.stalled_mostly((from, to))) {
            self.convict(c, from, to);
        }
    }

    /// The suspect silence of a CPU is a stall: cuts it out of the span that it is in, or of the open piece.
    fn convict(&mut self, c: usize, from: Time, to: Time) {
        self.cpus[c].ticks.suspect = None;
        if self.cpus[c].since <= from {
            self.close(c, from, Close::Pause { ipc: 0 });
            self.close(c, to, Close::Pause { ipc: 0 });
        } else {
            self.cut(c, from, to);
        }
        self.stalled(c, from, to);
    }

    /// The other CPUs of a CPU's machine.
    fn neighbours(&self, c: usize) -> impl Iterator<Item = usize> + use<> {
        self.cpus_of_machine(c).filter(move |other| *other != c)
    }

    /// A CPU that was sent an interrupt during its silence since `before`, long enough before `t`, stood still; returns
    /// whether this is so.
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

    /// True if silence of a CPU is conclusive: every interrupt is seen, and so are the times when the CPU needs none.
    fn tells_silence(&self) -> bool {
        self.sees(Capability::Interrupts) && self.sees(Capability::Idle)
    }

    /// At the end of the trace: a CPU that should have taken an interrupt by then stood still up to the end.
    pub(super) fn silent_at_the_end(&mut self, c: usize, t: Time) {
        let cpu = &self.cpus[c];
        if self.tells_silence() && !cpu.is_lost() && !cpu.is_offline() {
            self.took_no_interrupt(c, cpu.last.max(cpu.since), t);
        }
    }

    /// Time since when a tick was due on a CPU that has been silent since `before`, if its ticks are reliable.
    fn tick_due(&self, c: usize, before: Time) -> Option<Time> {
        self.next_tick(c, before, self.period.known()?).filter(|_| self.cpus[c].ticks.in_time >= TRUSTED)
    }

    /// Time since when a tick is due on a CPU that has been silent since `before`, with ticks of this period.
    fn next_tick(&self, c: usize, before: Time, period: Time) -> Option<Time> {
        let cpu = &self.cpus[c];
        let ticks = &cpu.ticks;
        let relied_on = self.running(c) != Pid::IDLE && !ticks.tickless;
        let due = ticks.last.filter(|_| relied_on)?.max(cpu.idle_edge).max(ticks.resumed) + period;
        (before < due + STALL_MIN).then_some(due.max(before))
    }

    fn tick(&mut self, c: usize, t: Time) {
        let busy = self.running(c) != Pid::IDLE;
        let cpu = &mut self.cpus[c];
        let ticks = &mut cpu.ticks;
        let apart =
            ticks.last.replace(t).filter(|last| busy && *last >= cpu.idle_edge.max(ticks.resumed)).map(|last| t - last);
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

    /// A CPU stood still: the span of its own that was written for that time becomes a stall.
    fn stalled(&mut self, c: usize, from: Time, to: Time) {
        let name = self.names.id("-stalled-");
        if let Some(span) = self.last_written(c, |span| span.start == from && span.dur == to - from) {
            (span.arg, span.what, span.ret, span.name) = (span.event().into(), STALLED, 0, name);
            self.cpus[c].ticks.remember(from, to);
        }
        for other in self.neighbours(c) {
            let suspect = self.cpus[other].ticks.suspect.filter(|suspect| self.cpus[c].ticks.stalled_mostly(*suspect));
            if let Some((from, to)) = suspect {
                self.convict(other, from, to);
            }
        }
    }

    /// Draws the wait of a thread that could run on this CPU; while the CPU stood still, the wait is for that.
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

/// Sentence about CPUs that stood still, if any did.
pub fn sentence(stalls: u64, stalled: Time) -> Option<String> {
    let times = count(stalls, "time", "times");
    let ms = stalled.seconds() * 1e3;
    (stalls > 0)
        .then(|| format!("CPUs stood still {times}, {ms:.1} ms together: their host, firmware or an emulator had them"))
}
