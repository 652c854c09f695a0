// SPDX-License-Identifier: BSD-3-Clause
//! The sums of many requests at once: a thread's path is followed once, and a window moves along it from request to
//! request.
//!
//! Invariant: requests that overlap cost what changes between them, not what they are long, and of the path no more is
//! held than a request and its neighbours need.

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

/// What went into one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Time.
    pub time: Time,
    /// Stretches of time, one after the other.
    pub parts: i64,
    /// What [`super::meter`] counted; 0 for nothing.
    pub work: i64,
}

/// Whose threads are to blame for a cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blame {
    /// Nobody's but the request's own.
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

/// Who is to blame for each cause, by its number, over some requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blamed(Vec<Blame>);

impl Blamed {
    /// The thread that alone is to blame for a cause.
    pub fn alone(&self, cause: u32) -> Option<Pid> {
        match self.0.get(cause as usize)? {
            Blame::One(pid) => Some(*pid),
            Blame::Nobody | Blame::Several => None,
        }
    }

    /// Adds others; each of their causes has another number here.
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

/// Shares of the requests for each thread, about, and the requests that a share has at least.
const SHARES: usize = 8;
const SHARE_MIN: usize = 1 << 10;
/// Parts of a path that are no longer needed are dropped this many at a time.
const DROPPED: usize = 1 << 12;

/// Calls `each` with the causes so far, the number of each request and its sums by number of cause; of requests ordered
/// by thread and start. Returns who is to blame for what in any of them.
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

/// As [`sweep`], by as many threads as there are CPUs. Each puts the sums of some consecutive requests into a value that
/// `new` makes; `done` gets these in the order of their requests, with the number that each of their causes has among
/// `causes`: the same as one thread alone would give it.
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

/// Calls `each` with the causes so far, the numbers of requests of one thread that overlap, and the path of that thread
/// from the start of the first to the end of the last; of requests ordered by thread and start.
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

/// Requests of one thread that overlap: their numbers, and the time from the start of the first to the end of the last.
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
    /// Which parts.
    first: usize,
    after: usize,
    /// By cause.
    sums: Vec<Sum>,
    /// Causes that are among those parts, and where each stands in this list.
    present: Vec<u32>,
    places: Vec<u32>,
    /// The last answer.
    answer: Vec<(u32, Sum)>,
    /// Of all parts that have been in a window: each of these is in a request.
    blamed: Blamed,
}

impl Window {
    /// Empty.
    fn begin(&mut self) {
        self.present.drain(..).for_each(|cause| self.sums[cause as usize] = Sum::default());
        (self.first, self.after) = (0, 0);
    }

    /// For parts of as many causes.
    fn resize(&mut self, causes: usize) {
        self.sums.resize(causes, Sum::default());
        self.places.resize(causes, 0);
    }

    /// The parts before the first of the window are not in the list any more.
    fn dropped(&mut self) {
        (self.first, self.after) = (0, self.after - self.first);
    }

    /// The sums of a request that lies within the time of `parts`.
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
        // Of the first part and the last some may lie outside.
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
