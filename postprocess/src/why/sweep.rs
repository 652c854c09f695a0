// SPDX-License-Identifier: BSD-3-Clause
//! The sums of many requests at once: a thread's path is followed once, and a window moves along it from request to
//! request.
//!
//! Invariant: requests that overlap cost what changes between them, not what they are long.

use std::ops::{AddAssign, Range};

use super::cause::Causes;
use super::path::{path, Part};
use super::request::Request;
use super::timeline::Timeline;
use crate::time::Time;

/// What went into one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Time.
    pub time: Time,
    /// Stretches of time, one after the other.
    pub parts: i64,
    /// Instructions per cycle in sixteenths, times the time; 0 where they were not counted.
    pub work: i64,
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

/// Calls `each` with the causes so far, the number of each request and its sums by number of cause; of requests ordered
/// by thread and start.
pub fn sweep(
    timeline: &Timeline,
    causes: &mut Causes,
    requests: &[Request],
    mut each: impl FnMut(&Causes, usize, &[(u32, Sum)]),
) {
    let mut window = Window::default();
    stretches(timeline, causes, requests, |causes, numbers, parts| {
        window.begin(causes.count());
        for n in numbers {
            each(causes, n, window.at(parts, &requests[n]));
        }
    });
}

/// Calls `each` with the causes so far, the numbers of requests of one thread that overlap, and the path of that thread
/// from the start of the first to the end of the last; of requests ordered by thread and start.
pub fn stretches(
    timeline: &Timeline,
    causes: &mut Causes,
    requests: &[Request],
    mut each: impl FnMut(&Causes, Range<usize>, &[Part]),
) {
    let mut first = 0;
    while let Some(begin) = requests.get(first) {
        let (mut after, mut to) = (first + 1, begin.end);
        while let Some(next) = requests.get(after).filter(|next| next.pid == begin.pid && next.start < to) {
            after += 1;
            to = to.max(next.end);
        }
        let parts = path(timeline, causes, &Request { end: to, ..*begin });
        each(causes, first..after, &parts);
        first = after;
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
}

impl Window {
    /// Empty, for parts of as many causes.
    fn begin(&mut self, causes: usize) {
        self.present.drain(..).for_each(|cause| self.sums[cause as usize] = Sum::default());
        self.sums.resize(causes, Sum::default());
        self.places.resize(causes, 0);
        (self.first, self.after) = (0, 0);
    }

    /// The sums of a request that lies within the time of `parts`.
    fn at(&mut self, parts: &[Part], request: &Request) -> &[(u32, Sum)] {
        let first = parts.partition_point(|part| part.end <= request.start);
        let after = parts.partition_point(|part| part.start < request.end).max(first);
        if first >= self.after || after <= self.first {
            self.begin(self.sums.len());
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
