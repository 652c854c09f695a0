// SPDX-License-Identifier: BSD-3-Clause
//! Tracks: spans, which lie side by side, as Perfetto draws them: slices inside of slices, threads that get and lose
//! CPUs, flows from one track to another, counters.
//!
//! A call that is interrupted, or whose thread sleeps in it, is several spans and one slice, open until the next of its
//! thread shows that it is over ([`crate::span::whole`]).
//!
//! Invariants: spans come ordered; what starts on a track ends there, the inner before the outer, and the times of both
//! never go back. Memory is that of the threads, and of what is open.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

use crate::event::names::NameId;
use crate::event::number::Level;
use crate::event::point::Point;
use crate::event::work::Work;
use crate::id::{CpuId, Pid};
use crate::span::ipc::sixteenths;
use crate::span::wait::Reason;
use crate::span::what::{Activity, Arc, What};
use crate::span::whole::{Piece, Wholes};
use crate::span::{Span, NONE};
use crate::time::Time;

/// Where something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Track {
    /// What an idle CPU does, and what stands on no thread.
    Cpu(CpuId),
    /// What a thread does.
    Thread(Pid),
    /// What lasts and is beside that; a thread has as many of a kind as overlap, from 0.
    Beside(Beside, Option<Pid>, u32),
}

/// What lasts beside what a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Beside {
    /// It waits.
    Waits,
    /// It holds locks, or waits for them.
    Locks,
    /// Messages and queues of RPCs.
    Messages,
    /// Parts of programs.
    Parts,
    /// Requests that `why` finds.
    Requests,
}

/// Why a thread lost its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can run.
    Runnable,
    /// It waits for this.
    Waits(Reason),
    /// It has ended.
    Ended,
    /// It was not seen again.
    Unknown,
}

/// What a CPU has, by moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// MHz.
    Frequency,
    /// The low-power state, as [`number::MWAIT`] has it; [`AWAKE`] for none.
    Idle,
    /// Instructions per cycle, in sixteenths.
    Ipc,
}

/// A CPU is in no low-power state.
pub const AWAKE: i64 = 0xffff_ffff;

/// One thing to draw: where, and `at` which moment.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A slice begins, with its first argument or [`NONE`]; what the kernel does there, with the argument of its span.
    Begin { track: Track, at: Time, name: NameId, arg: i64, does: Option<(Work, i64)> },
    /// The last slice that began on the track ends, with what it returned or [`NONE`].
    End { track: Track, at: Time, ret: i64 },
    /// It has not ended at the end of the trace.
    StaysOpen { track: Track, at: Time },
    /// Something at a point in time.
    Instant { track: Track, at: Time, name: NameId, arg: i64 },
    /// A CPU runs another thread, once it is known why the one before does not run any more; so these are not in order.
    Switch { cpu: CpuId, at: Time, from: Pid, state: State, to: Pid },
    /// A thread is made runnable.
    Waking { cpu: CpuId, at: Time, by: Pid, woken: Pid },
    /// From here to there.
    Flow { from: Track, at: Time, to: Track, until: Time, name: NameId },
    /// A CPU has this value from now on.
    Count { cpu: CpuId, counter: Counter, at: Time, value: i64 },
    /// What a thread's program counts by this name is this much from now on.
    Value { pid: Pid, name: NameId, at: Time, value: i64 },
}

/// What no item says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Callouts and labels of rows.
    pub notes: u64,
    /// RPC numbers of spans.
    pub rpcs: u64,
    /// Slices that had not ended at the end of the trace, and end there.
    pub open: u64,
}

/// A slice that is open.
#[derive(Clone, Copy, Debug)]
struct Slice {
    rank: u8,
    name: NameId,
}

/// A CPU.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    runs: Pid,
    asleep: bool,
    ipc: Option<u8>,
}

/// A thread that has lost its CPU.
#[derive(Clone, Copy, Debug)]
struct Left {
    cpu: CpuId,
    at: Time,
    to: Pid,
}

/// Makes items of spans.
#[derive(Debug, Default)]
pub struct Tracks {
    counts_ipc: bool,
    open: BTreeMap<Track, Vec<Slice>>,
    cpus: BTreeMap<CpuId, Cpu>,
    left: BTreeMap<Pid, Left>,
    /// What each thread began to wait for last, and until when: before it had lost its CPU, or right then.
    waits: HashMap<Pid, (Time, State)>,
    ended: HashSet<Pid>,
    /// When the last of each track beside ends.
    beside: HashMap<(Beside, Option<Pid>), Vec<Time>>,
    calls: Wholes,
    last: Time,
    left_out: LeftOut,
}

impl Tracks {
    /// Nothing yet, of a trace with these [`crate::span::Meta::flags`].
    pub fn new(flags: u32) -> Tracks {
        Tracks { counts_ipc: flags & 0x80 != 0, ..Tracks::default() }
    }

    /// Takes the next span, and hands on what it says.
    ///
    /// # Errors
    /// Whatever error `each` returns, here and below.
    pub fn span<E>(&mut self, span: &Span, each: &mut impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        let end = span.start.saturating_add(span.dur);
        let (at, name) = (span.start, span.name);
        match span.what() {
            What::Run(activity) => {
                let Some(cpu) = span.cpu else { return Ok(()) };
                self.last = self.last.max(end);
                self.left_out.rpcs += u64::from(span.rpc > 0);
                self.runs(cpu, activity, span, each)?;
                self.slice(cpu, activity, span, each)
            }
            What::Wait(reason) => {
                let Some(pid) = span.pid else { return Ok(()) };
                let state = if reason.could_run() { State::Runnable } else { State::Waits(reason) };
                self.waits.insert(pid, (end, state));
                self.resolve(pid, state, each)?;
                self.lasts(Beside::Waits, span, each)
            }
            What::Lock(_) => self.lasts(Beside::Locks, span, each),
            What::Arc(Arc::Wakeup { woken, .. }) => {
                let from = track(span.cpu, span.pid);
                each(Item::Flow { from, at, to: Track::Thread(woken), until: end, name })
            }
            What::Arc(Arc::Ipi { to }) => {
                let from = track(span.cpu, None);
                each(Item::Flow { from, at, to: Track::Cpu(to), until: end, name })
            }
            What::Arc(Arc::Callout) => {
                self.left_out.notes += 1;
                Ok(())
            }
            What::Point(point) => self.point(point, span, each),
        }
    }

    /// A request that `why` found, with a name of the trace's; these come by start, at any time.
    ///
    /// # Errors
    /// As [`Tracks::span`].
    pub fn request<E>(
        &mut self,
        (pid, start, end): (Pid, Time, Time),
        name: NameId,
        each: &mut impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let span = Span { start, dur: end - start, pid: Some(pid), name, arg: NONE, ..Span::default() };
        self.lasts(Beside::Requests, &span, each)
    }

    /// Ends what is open.
    ///
    /// # Errors
    /// As [`Tracks::span`].
    pub fn finish<E>(mut self, each: &mut impl FnMut(Item) -> Result<(), E>) -> Result<LeftOut, E> {
        let at = self.last;
        for (track, slices) in std::mem::take(&mut self.open) {
            self.left_out.open += slices.len() as u64;
            slices.iter().try_for_each(|_| each(Item::StaysOpen { track, at }))?;
        }
        for pid in self.left.keys().copied().collect::<Vec<_>>() {
            self.resolve(pid, State::Unknown, each)?;
        }
        Ok(self.left_out)
    }

    /// Notes which thread a CPU runs, and in which state the CPU is.
    fn runs<E>(
        &mut self,
        cpu: CpuId,
        activity: Activity,
        span: &Span,
        each: &mut impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let at = span.start;
        let pid = match activity {
            Activity::Lost | Activity::Offline => Pid::IDLE,
            _ => span.pid.unwrap_or(Pid::IDLE),
        };
        let known = self.cpus.get(&cpu).copied();
        let before = known.unwrap_or(Cpu { runs: Pid::IDLE, asleep: false, ipc: None });
        if known.is_none_or(|before| before.runs != pid) {
            self.resolve(pid, State::Runnable, each)?;
            if known.is_some() {
                self.leaves(cpu, before.runs, pid, at, each)?;
            } else if pid != Pid::IDLE {
                each(Item::Switch { cpu, at, from: Pid::IDLE, state: State::Runnable, to: pid })?;
            }
        }
        let asleep = before.asleep && activity == Activity::Idle;
        if before.asleep && !asleep {
            each(Item::Count { cpu, counter: Counter::Idle, at, value: AWAKE })?;
        }
        let ipc = Some(span.ipc & 15).filter(|_| self.counts_ipc);
        if let Some(code) = ipc.filter(|_| ipc != before.ipc) {
            each(Item::Count { cpu, counter: Counter::Ipc, at, value: sixteenths(code) })?;
        }
        self.cpus.insert(cpu, Cpu { runs: pid, asleep, ipc });
        Ok(())
    }

    /// A thread loses its CPU to another; of what it was in only calls and faults go on.
    fn leaves<E>(
        &mut self,
        cpu: CpuId,
        from: Pid,
        to: Pid,
        at: Time,
        each: &mut impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let ended = self.ended.remove(&from);
        self.end_from(track(Some(cpu), Some(from)), if ended { CALL } else { SCHED }, at, each)?;
        self.left.insert(from, Left { cpu, at, to });
        let waits = self.waits.get(&from).filter(|(end, _)| *end > at);
        let known = match (from, ended, waits) {
            (Pid::IDLE, ..) => Some(State::Runnable),
            (_, true, _) => Some(State::Ended),
            (.., waits) => waits.map(|(_, state)| *state),
        };
        known.map_or(Ok(()), |state| self.resolve(from, state, each))
    }

    /// Says that a thread has lost its CPU, now that it is known why.
    fn resolve<E>(&mut self, pid: Pid, state: State, each: &mut impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        match self.left.remove(&pid) {
            Some(Left { cpu, at, to }) => each(Item::Switch { cpu, at, from: pid, state, to }),
            None => Ok(()),
        }
    }

    /// Begins, continues and ends slices of what a CPU does.
    fn slice<E>(
        &mut self,
        cpu: CpuId,
        activity: Activity,
        span: &Span,
        each: &mut impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let nobody = matches!(activity, Activity::Lost | Activity::Offline);
        let track = track(Some(cpu), span.pid.filter(|_| !nobody));
        let (at, name) = (span.start, span.name);
        let (piece, is_over) = self.calls.add(activity, span, |_| {});
        let Some(rank) = rank(activity) else { return self.end_from(track, CALL, at, each) };
        let slices = self.open.entry(track).or_default();
        // What is open of the same goes on, and what was above it has ended.
        let begins = matches!(piece, Piece::First | Piece::Unseen);
        let same = slices.iter().rposition(|slice| slice.rank == rank && slice.name == name && !begins);
        let kept = same.map_or_else(|| slices.partition_point(|slice| slice.rank < rank), |n| n + 1);
        for _ in kept..slices.len() {
            each(Item::End { track, at, ret: NONE })?;
        }
        slices.truncate(kept);
        if same.is_none() {
            slices.push(Slice { rank, name });
            let arg = if rank == CALL { span.arg } else { NONE };
            let does = if let Activity::Call(work) = activity { Some((work, span.arg)) } else { None };
            each(Item::Begin { track, at, name, arg, does })?;
        }
        if is_over {
            slices.pop();
            let ret = if rank == CALL { span.ret } else { NONE };
            each(Item::End { track, at: at.saturating_add(span.dur), ret })?;
        }
        Ok(())
    }

    /// Ends the slices of a track from this rank on.
    fn end_from<E>(
        &mut self,
        track: Track,
        rank: u8,
        at: Time,
        each: &mut impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(slices) = self.open.get_mut(&track) else { return Ok(()) };
        let kept = slices.partition_point(|slice| slice.rank < rank);
        let ended = slices.len() - kept;
        slices.truncate(kept);
        (0..ended).try_for_each(|_| each(Item::End { track, at, ret: NONE }))
    }

    /// Something that lasts, beside what its thread does: on the first track where nothing else does.
    fn lasts<E>(&mut self, beside: Beside, span: &Span, each: &mut impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        let (at, end) = (span.start, span.start.saturating_add(span.dur));
        let ends = self.beside.entry((beside, span.pid)).or_default();
        let free = ends.iter().position(|&before| before <= at).unwrap_or(ends.len());
        match ends.get_mut(free) {
            Some(before) => *before = end,
            None => ends.push(end),
        }
        let track = Track::Beside(beside, span.pid, free as u32);
        each(Item::Begin { track, at, name: span.name, arg: span.arg, does: None })?;
        each(Item::End { track, at: end, ret: NONE })
    }

    fn point<E>(&mut self, point: Point, span: &Span, each: &mut impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        let (at, name, arg) = (span.start, span.name, span.arg);
        let track = track(span.cpu, span.pid);
        match (point, span.cpu) {
            (Point::RowLabel | Point::RowLabelLast, _) => {
                self.left_out.notes += 1;
                Ok(())
            }
            (Point::Frequency, Some(cpu)) => each(Item::Count { cpu, counter: Counter::Frequency, at, value: arg }),
            (Point::Mwait, Some(cpu)) => {
                if let Some(known) = self.cpus.get_mut(&cpu) {
                    known.asleep = true;
                }
                each(Item::Count { cpu, counter: Counter::Idle, at, value: arg })
            }
            (Point::Runnable, Some(cpu)) => {
                let woken = Pid::new(arg as u32);
                each(Item::Waking { cpu, at, by: span.pid.unwrap_or(Pid::IDLE), woken })
            }
            // A sample was taken at its end.
            (Point::PcUser | Point::PcKernel, _) => {
                each(Item::Instant { track, at: at.saturating_add(span.dur), name, arg })
            }
            (Point::ProgramValue, _) => each(Item::Value { pid: span.pid.unwrap_or(Pid::IDLE), name, at, value: arg }),
            (Point::ProgramBegin | Point::ProgramAsyncBegin, _) => self.lasts(Beside::Parts, span, each),
            _ if span.dur > Time::UNIT => self.lasts(Beside::Messages, span, each),
            _ => {
                if let (Point::Exit, Some(pid)) = (point, span.thread()) {
                    self.ended.insert(pid);
                }
                each(Item::Instant { track, at, name, arg })
            }
        }
    }
}

/// The rank of a call: what is outermost of a thread.
const CALL: u8 = 1;
/// The rank of a fault.
const FAULT: u8 = 2;
/// The rank of the scheduler: what ends where a thread loses its CPU.
const SCHED: u8 = 3;

/// What can be inside of what: only a higher rank inside of a lower one. Nothing where a thread does its own, or nothing.
fn rank(activity: Activity) -> Option<u8> {
    Some(match activity {
        Activity::User(_) | Activity::Thread(_) | Activity::Idle => return None,
        Activity::Lost | Activity::Offline | Activity::IdleExit => CALL,
        Activity::Call(work) => match work.level() {
            Level::User => return None,
            Level::Syscall => CALL,
            Level::Trap => FAULT,
            Level::Sched => SCHED,
            Level::Softirq => 4,
            Level::Irq => 5,
        },
        Activity::Stalled => 6,
    })
}

/// That of a thread, or if that is idle of its CPU.
fn track(cpu: Option<CpuId>, pid: Option<Pid>) -> Track {
    match (pid.filter(|pid| *pid != Pid::IDLE), cpu) {
        (Some(pid), _) => Track::Thread(pid),
        (None, cpu) => Track::Cpu(cpu.unwrap_or_default()),
    }
}
