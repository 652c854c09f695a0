// SPDX-License-Identifier: BSD-3-Clause
//! Latency: how long threads that could run waited for a CPU, woken and preempted ones separately, and who had it
//! meanwhile.
//!
//! A thread that could run may wait for several reasons in succession: that is one wait here.
//!
//! A wait for a CPU that ends together with the arc of a wakeup began with that wakeup; any other began when the thread
//! lost its CPU. An arc without a matching wait belongs to a thread that waited too briefly for a span of its own, or
//! that had not left its CPU yet.

use std::cmp::Reverse;

use foldhash::HashMap;

use super::{end, Threads};
use crate::id::{CpuId, Pid};
use crate::span::wake::SHORT;
use crate::span::what::{Activity, Arc, What};
use crate::span::Span;
use crate::time::Time;

/// Waits for a CPU of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Number of waits.
    pub count: u64,
    /// Waits that this many of a thousand waits do not exceed, by [`PERMILLE`]; the last is the longest.
    pub percentiles: [Time; PERMILLE.len()],
    /// Longest waits, with what ran in that time.
    pub worst: Vec<Worst>,
}

/// Ranks of [`Latency::percentiles`].
pub const PERMILLE: [u64; 5] = [500, 900, 990, 999, 1000];

/// A long wait for a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worst {
    /// Start.
    pub at: Time,
    /// Duration.
    pub dur: Time,
    /// Thread that waited.
    pub thread: String,
    /// CPU that it got in the end, if that is in the trace.
    pub cpu: Option<CpuId>,
    /// Activity of that CPU during the wait, most time first: threads, interrupts, `-idle-`.
    pub meanwhile: Vec<(String, Time)>,
}

/// Waits for a CPU, of woken threads and of preempted ones.
#[derive(Debug)]
pub struct Waiting {
    /// Waits from a wakeup, or from the time at which the woken thread had left its CPU.
    pub woken: Distribution,
    /// Waits from the loss of a CPU.
    pub preempted: Distribution,
    /// Number of wakeups of threads that had not left their CPU.
    pub running: u64,
    /// Wait of each thread for a CPU before its next run.
    coming: HashMap<Pid, Coming>,
}

/// Observations of a wait up to the start of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Coming {
    at: Time,
    arc: Option<Time>,
    wait: Option<Time>,
}

impl Coming {
    /// Adds a part of the wait, if it is one.
    fn join(&mut self, part: &Span) -> bool {
        let to = end(part);
        let before = self.wait.is_some_and(|wait| to == self.at - wait);
        let under_arc = self.arc.is_some_and(|arc| part.start >= self.at - arc && to <= self.at);
        let behind = self.wait.is_some() && part.start == self.at;
        if before || under_arc || behind {
            self.wait = Some(self.wait.unwrap_or_default() + part.dur);
            self.at = self.at.max(to);
        }
        before || under_arc || behind
    }
}

impl Waiting {
    /// Makes an empty set that will report the `worst` waits of each kind in full.
    pub fn new(worst: usize) -> Waiting {
        let none = || Distribution { counts: HashMap::default(), worst: Vec::new(), max: worst };
        Waiting { woken: none(), preempted: none(), running: 0, coming: HashMap::default() }
    }

    /// Adds a span that is not execution: a wait for a CPU, or the arc of a wakeup.
    pub fn add(&mut self, span: &Span) {
        let what = span.what();
        let pid = match what {
            What::Wait(reason) if reason.could_run() => span.pid,
            What::Arc(Arc::Wakeup { woken, .. }) => Some(woken),
            _ => None,
        };
        let Some(pid) = pid else { return };
        let is_arc = matches!(what, What::Arc(_));
        let begins = Coming { at: end(span), ..Coming::default() };
        let coming = self.coming.entry(pid).or_insert(begins);
        if !is_arc && coming.join(span) {
            return;
        }
        if coming.at != begins.at {
            let before = std::mem::replace(coming, begins);
            self.arrived(pid, before, None);
        }
        if let Some(coming) = self.coming.get_mut(&pid) {
            let kind = if is_arc { &mut coming.arc } else { &mut coming.wait };
            *kind = Some(span.dur);
        }
    }

    /// A thread executes.
    pub fn runs(&mut self, span: &Span) {
        let Some(pid) = span.pid else { return };
        if self.coming.get(&pid).is_some_and(|coming| coming.at < end(span)) {
            let coming = self.coming.remove(&pid).unwrap_or_default();
            self.arrived(pid, coming, span.cpu);
        }
    }

    /// Ends the waits after all spans have been added.
    pub fn finish(&mut self) {
        for (pid, coming) in std::mem::take(&mut self.coming) {
            self.arrived(pid, coming, None);
        }
    }

    fn arrived(&mut self, pid: Pid, Coming { at, arc, wait }: Coming, cpu: Option<CpuId>) {
        let (to, dur) = match (arc, wait) {
            (Some(_), Some(wait)) => (&mut self.woken, wait),
            (Some(arc), None) if arc < SHORT => (&mut self.woken, arc),
            (Some(_), None) => return self.running += 1,
            (None, Some(wait)) => (&mut self.preempted, wait),
            (None, None) => return,
        };
        to.add(Candidate { at: at - dur, dur, pid, cpu });
    }
}

/// A wait that may be among the longest.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    at: Time,
    dur: Time,
    pid: Pid,
    cpu: Option<CpuId>,
}

/// Number of waits by duration.
#[derive(Debug)]
pub struct Distribution {
    counts: HashMap<Time, u64>,
    /// Longest waits, longest first.
    worst: Vec<Candidate>,
    max: usize,
}

impl Distribution {
    fn add(&mut self, wait: Candidate) {
        *self.counts.entry(wait.dur).or_default() += 1;
        let key = |w: &Candidate| (Reverse(w.dur), w.at, w.pid);
        let place = self.worst.partition_point(|w| key(w) < key(&wait));
        if place < self.max {
            self.worst.insert(place, wait);
            self.worst.truncate(self.max);
        }
    }

    /// Returns the latencies. `look` calls its last argument with each span of execution of a CPU during a wait, and
    /// the span's name.
    pub fn finish(self, threads: &Threads, look: &mut super::Look) -> Latency {
        let mut durations: Vec<(Time, u64)> = self.counts.into_iter().collect();
        durations.sort_unstable();
        let count: u64 = durations.iter().map(|(_, n)| n).sum();
        let at_rank = |rank: u64| {
            let mut below = 0;
            let found = durations.iter().find(|(_, n)| {
                below += n;
                below >= rank
            });
            found.map_or(Time::ZERO, |&(dur, _)| dur)
        };
        Latency {
            count,
            percentiles: PERMILLE.map(|permille| at_rank((count * permille).div_ceil(1000).max(1))),
            worst: self.worst.iter().map(|wait| wait.told(threads, look)).collect(),
        }
    }
}

impl Candidate {
    fn told(self, threads: &Threads, look: &mut super::Look) -> Worst {
        let Candidate { at, dur, pid, cpu } = self;
        let mut sums: HashMap<String, Time> = HashMap::default();
        if let Some(cpu) = cpu {
            look(cpu, (at, at + dur), &mut |span, name| {
                let part = end(span).min(at + dur) - span.start.max(at);
                if part > Time::ZERO {
                    *sums.entry(doer(span, name, threads)).or_default() += part;
                }
            });
        }
        let mut meanwhile: Vec<(String, Time)> = sums.into_iter().collect();
        meanwhile.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
        Worst { at, dur, thread: threads.name(pid), cpu, meanwhile }
    }
}

/// Returns what a CPU's time is attributed to: an interrupt, idle, or a thread, whatever the thread does.
fn doer(span: &Span, name: &str, threads: &Threads) -> String {
    match span.activity() {
        Some(Activity::Idle | Activity::IdleExit) => "-idle-".to_string(),
        Some(Activity::Lost) => "-lost-".to_string(),
        Some(Activity::Offline) => "-offline-".to_string(),
        Some(Activity::Stalled) => "-stalled-".to_string(),
        Some(activity) if activity.interrupts() => name.to_string(),
        _ => span.thread().map_or_else(|| "-idle-".to_string(), |pid| threads.name(pid)),
    }
}
