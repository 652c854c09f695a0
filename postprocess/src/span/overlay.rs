// SPDX-License-Identifier: BSD-3-Clause
//! Spans in addition to CPU time: between two samples, in a lock, in a part of a program. Each begins with one event
//! and is made when the event of its other end arrives, so these rules return spans, and keep those that have no end
//! yet.

use std::collections::HashMap;

use super::what::{Lock, What};
use super::Span;
use crate::event::names::Names;
use crate::event::point::Point;
use crate::event::Event;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Locks held or waited for less than this many units are not drawn: 250 ns.
const SHORT_LOCK: Time = Time(25);

/// Overlays that are waiting for their other end.
#[derive(Debug, Default)]
pub struct Overlays {
    /// By CPU and kind of sample: the last sample, with its time and value.
    samples: HashMap<(CpuId, Point), Event>,
    /// By lock and thread: the last step taken.
    locks: HashMap<(u32, Pid), (Point, Time)>,
    /// By thread: the parts of its program that it is in, the outermost first.
    parts: HashMap<Pid, Vec<Event>>,
    /// By number: the parts of programs that any thread may end.
    async_parts: HashMap<u32, (Pid, Event)>,
}

impl Overlays {
    /// A frequency or program counter sample, at the time of the event. A sample stands for the time since the previous
    /// one, but not before `edge`; a new frequency stands for the time up to the next.
    pub fn sample(&mut self, e: &Event, point: Point, edge: Time, names: &mut Names) -> Option<Span> {
        let kind = if point == Point::PcKernel { Point::PcUser } else { point };
        let before = self.samples.insert((e.cpu, kind), *e)?;
        let shown = if kind == Point::FrequencySet { &before } else { e };
        Some(sampled(shown, point, (before.ts.max(edge), e.ts), names))
    }

    /// The frequency spans from the last sample of a CPU to the end.
    pub fn end_samples(&mut self, cpu: CpuId, to: Time, names: &mut Names) -> Vec<Span> {
        let last = [Point::Frequency, Point::FrequencySet].map(|kind| self.samples.remove(&(cpu, kind)));
        last.iter().flatten().map(|last| sampled(last, Point::Frequency, (last.ts, to), names)).collect()
    }

    /// A thread enters a part of its program.
    pub fn begin_part(&mut self, pid: Pid, e: Event) {
        self.parts.entry(pid).or_default().push(e);
    }

    /// A thread leaves the innermost part of its program that has this number, and the parts inside it.
    pub fn end_part(&mut self, pid: Pid, number: u32, t: Time) -> Vec<Span> {
        let parts = self.parts.get(&pid);
        let inner = parts.and_then(|parts| parts.iter().rposition(|begin| begin.arg == number));
        inner.map_or(Vec::new(), |inner| self.end_parts(pid, inner, t))
    }

    /// Ends the parts that a thread is in, from the one at `outermost` on.
    pub fn end_parts(&mut self, pid: Pid, outermost: usize, t: Time) -> Vec<Span> {
        let parts = self.parts.get_mut(&pid);
        let ended = parts.map(|parts| parts.split_off(outermost.min(parts.len()))).unwrap_or_default();
        ended.iter().rev().map(|begin| part(pid, begin, Point::ProgramBegin, t)).collect()
    }

    /// A thread begins a part that any thread may end.
    pub fn begin_async_part(&mut self, pid: Pid, e: Event) {
        self.async_parts.insert(e.arg, (pid, e));
    }

    /// Some thread ends the part that has this number.
    pub fn end_async_part(&mut self, number: u32, t: Time) -> Option<Span> {
        let (pid, begin) = self.async_parts.remove(&number)?;
        Some(part(pid, &begin, Point::ProgramAsyncBegin, t))
    }

    /// Ends the parts that threads are still in, with the trace.
    pub fn end_all_parts(&mut self, to: Time) -> Vec<Span> {
        let mut pids: Vec<Pid> = self.parts.keys().copied().collect();
        pids.sort();
        let mut spans: Vec<Span> = pids.into_iter().flat_map(|pid| self.end_parts(pid, 0, to)).collect();
        let mut open: Vec<_> = std::mem::take(&mut self.async_parts).into_iter().collect();
        open.sort_by_key(|(number, _)| *number);
        spans.extend(open.iter().map(|(_, (pid, begin))| part(*pid, begin, Point::ProgramAsyncBegin, to)));
        spans
    }

    /// A lock is tried, acquired after a try, or given up.
    pub fn lock(&mut self, pid: Pid, e: &Event, step: Point, t: Time, names: &mut Names) -> Option<Span> {
        let before = self.locks.insert((e.arg, pid), (step, t));
        let (before, start) = before.filter(|&(_, start)| t - start >= SHORT_LOCK)?;
        let (lock, sign) = match (before, step) {
            (Point::LockTry, Point::LockAcquired) => (Lock::Waited, '~'),
            (Point::LockAcquired, Point::LockReleased) => (Lock::Held, '='),
            _ => return None,
        };
        let text = names.text(e.name);
        let name = format!("{sign}{}", text.get(4..).unwrap_or(text));
        let name = names.id(&name);
        let (dur, what, arg) = (t - start, What::Lock(lock), e.arg.into());
        Some(Span { start, dur, pid: Some(pid), rpc: -1, what, arg, name, ..Span::default() })
    }
}

/// The span that a sample stands for.
fn sampled(e: &Event, point: Point, (start, end): (Time, Time), names: &mut Names) -> Span {
    let (point, pid, name) = match point {
        Point::Frequency | Point::FrequencySet => (Point::Frequency, Pid::IDLE, names.id("-freq-")),
        counter => (counter, e.pid, e.name),
    };
    let (what, arg) = (What::Point(point), e.arg.into());
    Span { start, dur: end - start, cpu: Some(e.cpu), pid: Some(pid), what, arg, name, ..Span::default() }
}

/// A part of a program, which a thread began.
fn part(pid: Pid, begin: &Event, point: Point, t: Time) -> Span {
    let (start, dur) = (begin.ts, (t - begin.ts).max(Time::UNIT));
    let (what, arg, name) = (What::Point(point), begin.arg.into(), begin.name);
    Span { start, dur, pid: Some(pid), rpc: -1, what, arg, name, ..Span::default() }
}
