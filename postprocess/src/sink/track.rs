// SPDX-License-Identifier: BSD-3-Clause
//! Tracks: converts spans, which are stored side by side, to the form that Perfetto draws: nested slices, threads that
//! get and lose CPUs, flows between tracks, counters.
//!
//! A call that is interrupted, or whose thread sleeps in it, is several spans but one slice, which stays open until the
//! next span of its thread shows that the call is over ([`crate::span::whole`]).
//!
//! Invariants: spans come in order. A slice ends on the track on which it starts, inner slices before outer ones, and
//! the times of starts and ends never go back. Memory is that of the threads and the open slices.

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

/// Place of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Track {
    /// Activity of an idle CPU, and activity that belongs to no thread.
    Cpu(CpuId),
    /// Activity of a thread.
    Thread(Pid),
    /// Lasting state next to the activity; a thread has as many lanes of a kind as overlap, from 0.
    Beside(Beside, Option<Pid>, u32),
}

/// Kind of lasting state next to a thread's activity.
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

/// Reason why a thread lost its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can run.
    Runnable,
    /// It waits for this.
    Waits(Reason),
    /// It has ended.
    Ended,
    /// It did not appear again.
    Unknown,
}

/// Numeric state of a CPU at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// MHz.
    Frequency,
    /// The low-power state, as in [`Point::Mwait`]; [`AWAKE`] for none.
    Idle,
    /// Instructions per cycle, in sixteenths.
    Ipc,
}

/// Value for a CPU in no low-power state.
pub const AWAKE: i64 = 0xffff_ffff;

/// One thing to draw, with its place and time.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A slice begins, with its first argument or [`NONE`]; for kernel work also what it does, with the argument of its
    /// span.
    Begin { track: Track, at: Time, name: NameId, arg: i64, does: Option<(Work, i64)> },
    /// The last slice that began on the track ends, with its return value or [`NONE`].
    End { track: Track, at: Time, ret: i64 },
    /// A slice has not ended at the end of the trace.
    StaysOpen { track: Track, at: Time },
    /// Something at a point in time.
    Instant { track: Track, at: Time, name: NameId, arg: i64 },
    /// A CPU runs another thread. Emitted once it is known why the previous one does not run any more, so not in order.
    Switch { cpu: CpuId, at: Time, from: Pid, state: State, to: Pid },
    /// A thread is made runnable.
    Waking { cpu: CpuId, at: Time, by: Pid, woken: Pid },
    /// A flow from one track to another.
    Flow { from: Track, at: Time, to: Track, until: Time, name: NameId },
    /// A CPU has this value from this time on.
    Count { cpu: CpuId, counter: Counter, at: Time, value: i64 },
    /// The value that a thread's program counts by this name is this much from this time on.
    Value { pid: Pid, name: NameId, at: Time, value: i64 },
}

/// Numbers of things that no item represents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Callouts and labels of rows.
    pub notes: u64,
    /// RPC numbers of spans.
    pub rpcs: u64,
    /// Slices that had not ended at the end of the trace, and are ended there.
    pub open: u64,
}

/// A slice that is open.
#[derive(Clone, Copy, Debug)]
struct Slice {
    rank: u8,
    name: NameId,
}

/// State of a CPU.
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

/// Converts spans to items.
#[derive(Debug, Default)]
pub struct Tracks {
    counts_ipc: bool,
    open: BTreeMap<Track, Vec<Slice>>,
    cpus: BTreeMap<CpuId, Cpu>,
    left: BTreeMap<Pid, Left>,
    /// Last wait that each thread began, and its end: before it lost its CPU, or at that moment.
    waits: HashMap<Pid, (Time, State)>,
    ended: HashSet<Pid>,
    /// End of the last item on each lane next to a track.
    beside: HashMap<(Beside, Option<Pid>), Vec<Time>>,
    calls: Wholes,
    last: Time,
    left_out: LeftOut,
}

impl Tracks {
    /// Makes an empty converter for a trace with these [`crate::span::Meta::flags`].
    pub fn new(flags: u32) -> Tracks {
        Tracks { counts_ipc: flags & 0x80 != 0, ..Tracks::default() }
    }

    /// Takes the next span and passes its items on.
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

    /// Takes a request that `why` found, with one of the trace's names. Requests come by start, at any time.
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

    /// Ends everything that is open.
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

    /// Records which thread a CPU runs, and the state of the CPU.
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

    /// A thread loses its CPU to another. Of its open slices, only calls and faults continue.
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

    /// Reports that a thread has lost its CPU, now that the reason is known.
    fn resolve<E>(&mut self, pid: Pid, state: State, each: &mut impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        match self.left.remove(&pid) {
            Some(Left { cpu, at, to }) => each(Item::Switch { cpu, at, from: pid, state, to }),
            None => Ok(()),
        }
    }

    /// Begins, continues and ends slices of a CPU's activity.
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
        // An open slice of the same kind continues, and those above it have ended.
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

    /// Ends the slices of a track from this rank up.
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

    /// Draws lasting state next to a thread's activity, on the first lane that is free.
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
            // A sample was taken at the end of its span.
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

/// Rank of a call: the outermost slice of a thread.
const CALL: u8 = 1;
/// Rank of a fault.
const FAULT: u8 = 2;
/// Rank of the scheduler: its slices end when a thread loses its CPU.
const SCHED: u8 = 3;

/// Returns the nesting rank: only a higher rank can be inside a lower one. `None` if a thread runs its own code, or is
/// idle.
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

/// Returns the track of a thread or, if the thread is idle, of its CPU.
fn track(cpu: Option<CpuId>, pid: Option<Pid>) -> Track {
    match (pid.filter(|pid| *pid != Pid::IDLE), cpu) {
        (Some(pid), _) => Track::Thread(pid),
        (None, cpu) => Track::Cpu(cpu.unwrap_or_default()),
    }
}
