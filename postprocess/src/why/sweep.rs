// SPDX-License-Identifier: BSD-3-Clause
//! Sums over many requests at once: follows each thread's path once and moves a window along it from request to
//! request.
//!
//! Invariant: the cost of overlapping requests grows with what changes between them, not with their length, and no more
//! of the path is held than a request and its neighbours need.

use std::num::NonZero;
use std::ops::{AddAssign, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::cause::Causes;
use super::path::{path, Part, Stretch};
use super::request::Request;
use super::timeline::Timeline;
use crate::id::Pid;
use crate::time::Time;

/// Sum of parts that have the same cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Total time.
    pub time: Time,
    /// Number of separate stretches of time.
    pub parts: i64,
    /// Amount counted by [`super::meter`]; 0 if nothing was counted.
    pub work: i64,
}

/// Threads to blame for a cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blame {
    /// None but the request's own.
    #[default]
    Nobody,
    /// This thread alone.
    One(Pid),
    /// Several.
    Several,
}

impl Blame {
    fn and(self, other: Blame) -> Blame {
        match (self, other) {
            (Blame::Nobody, its) | (its, Blame::Nobody) => its,
            (one, other) if one == other => one,
            _ => Blame::Several,
        }
    }
}

/// Threads to blame for each cause over some requests, indexed by the cause's number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blamed(Vec<Blame>);

impl Blamed {
    /// Returns the thread that alone is to blame for a cause.
    pub fn alone(&self, cause: u32) -> Option<Pid> {
        match self.0.get(cause as usize)? {
            Blame::One(pid) => Some(*pid),
            Blame::Nobody | Blame::Several => None,
        }
    }

    /// Adds `others`; `numbers` holds the number that each of their causes has here.
    fn add_all(&mut self, others: &Blamed, numbers: &[u32]) {
        others.0.iter().zip(numbers).for_each(|(blame, cause)| self.add(*cause, *blame));
    }

    fn add(&mut self, cause: u32, blame: Blame) {
        let cause = cause as usize;
        if self.0.len() <= cause {
            self.0.resize(cause + 1, Blame::Nobody);
        }
        self.0[cause] = self.0[cause].and(blame);
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        self.time += other.time;
        self.parts += other.parts;
        self.work += other.work;
    }
}

impl Sum {
    fn add(&mut self, part: &Part, sign: i64) {
        self.time += (part.end - part.start) * sign;
        self.parts += sign;
        self.work += sign * part.work;
    }
}

/// Approximate number of shares of the requests per thread, and the least number of requests in a share.
const SHARES: usize = 8;
const SHARE_MIN: usize = 1 << 10;
/// Parts of a path that are no longer needed are dropped once there are this many.
const DROPPED: usize = 1 << 12;

/// Calls `each` for every request with the causes so far, the request's number and its sums by number of cause.
/// `requests` are ordered by thread and start. Returns the threads to blame for each cause in any request.
pub fn sweep(
    timeline: &Timeline,
    causes: &mut Causes,
    requests: &[Request],
    mut each: impl FnMut(&Causes, usize, &[(u32, Sum)]),
) -> Blamed {
    let mut window = Window::default();
    for (numbers, whole) in Overlapping::of(requests) {
        let mut stretch = Stretch::new(timeline, &whole);
        window.begin();
        for n in numbers {
            stretch.divide(timeline, causes, requests[n].end);
            window.resize(causes.count());
            each(causes, n, window.at(&stretch.parts, &requests[n]));
            if window.first >= DROPPED {
                stretch.parts.drain(..window.first);
                window.dropped();
            }
        }
    }
    window.blamed
}

/// Like [`sweep`], on as many threads as there are CPUs. Each thread collects the sums of consecutive requests in a
/// value made by `new`. `done` receives the values in the order of their requests, with the number that each of their
/// causes has among `causes`. The result is the same as that of a single thread.
pub fn sweep_together<T: Send>(
    timeline: &Timeline,
    causes: &mut Causes,
    requests: &[Request],
    new: impl Fn() -> T + Sync,
    each: impl Fn(&mut T, &Causes, usize, &[(u32, Sum)]) + Sync,
    mut done: impl FnMut(T, &[u32]),
) -> Blamed {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let size = requests.len().div_ceil(SHARES * threads).max(SHARE_MIN);
    let shares: Vec<&[Request]> = requests.chunks(size).collect();
    let next = AtomicUsize::new(0);
    let gather = || {
        let mut gathered = Vec::new();
        loop {
            let share = next.fetch_add(1, Ordering::Relaxed);
            let Some(some) = shares.get(share) else { return gathered };
            let (mut its, mut value) = (Causes::default(), new());
            let blamed =
                sweep(timeline, &mut its, some, |causes, n, sums| each(&mut value, causes, share * size + n, sums));
            gathered.push((share, its, value, blamed));
        }
    };
    let mut gathered = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(shares.len())).map(|_| scope.spawn(gather)).collect();
        let mut all = gather();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    gathered.sort_unstable_by_key(|(share, ..)| *share);
    let mut all = Blamed::default();
    for (_, its, value, blamed) in gathered {
        let numbers = causes.adopt(&its);
        all.add_all(&blamed, &numbers);
        done(value, &numbers);
    }
    all
}

/// Calls `each` for every group of overlapping requests of a thread, with the causes so far, the numbers of the
/// requests and the thread's path from the start of the first to the end of the last. `requests` are ordered by thread
/// and start.
pub fn stretches(
    timeline: &Timeline,
    causes: &mut Causes,
    requests: &[Request],
    mut each: impl FnMut(&Causes, Range<usize>, &[Part]),
) {
    for (numbers, whole) in Overlapping::of(requests) {
        let parts = path(timeline, causes, &whole);
        each(causes, numbers, &parts);
    }
}

/// Groups of overlapping requests of one thread: their numbers, and the time from the start of the first to the end of
/// the last.
struct Overlapping<'a> {
    requests: &'a [Request],
    first: usize,
}

impl Overlapping<'_> {
    fn of(requests: &[Request]) -> Overlapping<'_> {
        Overlapping { requests, first: 0 }
    }
}

impl Iterator for Overlapping<'_> {
    type Item = (Range<usize>, Request);

    fn next(&mut self) -> Option<(Range<usize>, Request)> {
        let (first, mut whole) = (self.first, *self.requests.get(self.first)?);
        self.first += 1;
        while let Some(next) = self.requests.get(self.first).filter(|r| r.pid == whole.pid && r.start < whole.end) {
            self.first += 1;
            whole.end = whole.end.max(next.end);
        }
        Some((first..self.first, whole))
    }
}

/// Sums of consecutive parts.
#[derive(Debug, Default)]
struct Window {
    /// Range of the parts.
    first: usize,
    after: usize,
    /// Sums by cause.
    sums: Vec<Sum>,
    /// Causes of those parts, and the place of each cause in that list.
    present: Vec<u32>,
    places: Vec<u32>,
    /// Sums returned last.
    answer: Vec<(u32, Sum)>,
    /// Threads to blame for all parts that have been in a window; each of these parts belongs to a request.
    blamed: Blamed,
}

impl Window {
    /// Empties the window.
    fn begin(&mut self) {
        self.present.drain(..).for_each(|cause| self.sums[cause as usize] = Sum::default());
        (self.first, self.after) = (0, 0);
    }

    /// Makes room for this many causes.
    fn resize(&mut self, causes: usize) {
        self.sums.resize(causes, Sum::default());
        self.places.resize(causes, 0);
    }

    /// Adjusts the range after the parts before the window were removed from the list.
    fn dropped(&mut self) {
        (self.first, self.after) = (0, self.after - self.first);
    }

    /// Returns the sums of a request that lies within the time of `parts`.
    fn at(&mut self, parts: &[Part], request: &Request) -> &[(u32, Sum)] {
        let first = parts.partition_point(|part| part.end <= request.start);
        let after = parts.partition_point(|part| part.start < request.end).max(first);
        if first >= self.after || after <= self.first {
            self.begin();
            (self.first, self.after) = (first, first);
        }
        while self.after < after {
            self.change(&parts[self.after], 1);
            self.after += 1;
        }
        while self.first > first {
            self.first -= 1;
            self.change(&parts[self.first], 1);
        }
        while self.after > after {
            self.after -= 1;
            self.change(&parts[self.after], -1);
        }
        while self.first < first {
            self.change(&parts[self.first], -1);
            self.first += 1;
        }
        self.answer.clear();
        self.answer.extend(self.present.iter().map(|&cause| (cause, self.sums[cause as usize])));
        // The first and the last part may extend beyond the request.
        let edges = [parts.get(first).map(|p| (p, p.start, request.start)), {
            let last = after.checked_sub(1).filter(|last| *last >= first);
            last.map(|last| (&parts[last], request.end, parts[last].end))
        }];
        for (part, from, to) in edges.into_iter().flatten().filter(|(_, from, to)| to > from && after > first) {
            let place = self.places[part.cause as usize] as usize;
            let sum = &mut self.answer[place].1;
            sum.time -= to - from;
            sum.work -= part.work_of(to - from);
        }
        &self.answer
    }

    fn change(&mut self, part: &Part, sign: i64) {
        let cause = part.cause as usize;
        let before = self.sums[cause].parts;
        self.sums[cause].add(part, sign);
        if let Some(pid) = part.culprit {
            self.blamed.add(part.cause, Blame::One(pid));
        }
        match (before, self.sums[cause].parts) {
            (0, _) => {
                self.places[cause] = self.present.len() as u32;
                self.present.push(part.cause);
            }
            (_, 0) => {
                let place = self.places[cause];
                self.present.swap_remove(place as usize);
                if let Some(&moved) = self.present.get(place as usize) {
                    self.places[moved as usize] = place;
                }
            }
            _ => {}
        }
    }
}
