// SPDX-License-Identifier: BSD-3-Clause
//! Another time for a recorded trace: stretched here, compressed there, and stopped for a while.
//!
//! Invariant: of two moments the later stays the later or they become one, so spans that cover a CPU's time still do.

use postprocess::time::Time;

/// A change of pace, from a moment on.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The pace of everything, as a factor.
    Pace(f64),
    /// A stretch begins, which multiplies the pace.
    Stretch(f64),
    /// It ends.
    Unstretch(f64),
    /// The clock advances by itself while the trace stands still, right after the moment.
    Pause(Time),
}

/// A request to a clock.
#[derive(Clone, Debug, Default)]
pub struct Changes(Vec<(Time, Change)>);

impl Changes {
    /// From here on everything takes `pace` times as long.
    pub fn pace(&mut self, from: Time, pace: f64) {
        self.0.push((from, Change::Pace(pace)));
    }

    /// Everything in this time takes `factor` times as long, times any other stretch of it.
    pub fn stretch(&mut self, (from, to): (Time, Time), factor: f64) {
        if from < to {
            self.0.push((from, Change::Stretch(factor)));
            self.0.push((to, Change::Unstretch(factor)));
        }
    }

    /// Right after this moment there is `length` more.
    pub fn pause(&mut self, at: Time, length: Time) {
        self.0.push((at + Time::UNIT, Change::Pause(length)));
    }
}

/// From a moment on.
#[derive(Clone, Copy, Debug)]
struct Knot {
    at: Time,
    to: f64,
    pace: f64,
}

/// The time of a variation by that of the recorded trace.
#[derive(Clone, Debug)]
pub struct Clock {
    knots: Vec<Knot>,
    /// The knot that was used last: those who ask go through the trace in its order.
    last: usize,
}

/// Knots that are tried one by one.
const NEAR: usize = 16;

impl Clock {
    /// A clock that leaves the moment `from` unchanged.
    pub fn new(from: Time, Changes(mut changes): Changes) -> Clock {
        changes.sort_by_key(|(at, _)| *at);
        let mut knots = vec![Knot { at: from, to: from.0 as f64, pace: 1.0 }];
        // Both as sums of logarithms, so that a division undoes a multiplication.
        let (mut pace, mut stretched) = (0.0, 0.0_f64);
        for (at, change) in changes {
            let before = knots[knots.len() - 1];
            let mut to = before.to + (at.0 - before.at.0) as f64 * before.pace;
            match change {
                Change::Pace(now) => pace = now.ln(),
                Change::Stretch(factor) => stretched += factor.ln(),
                Change::Unstretch(factor) => stretched -= factor.ln(),
                Change::Pause(length) => to += length.0 as f64,
            }
            knots.push(Knot { at, to, pace: (pace + stretched).exp() });
        }
        Clock { knots, last: 0 }
    }

    /// The new time of this moment of the recorded trace.
    pub fn at(&mut self, moment: Time) -> Time {
        let is_after = |n: usize| self.knots.get(n).is_none_or(|knot| knot.at > moment);
        let near = (self.last..self.last + NEAR).find(|&n| !is_after(n) && is_after(n + 1));
        let n = near.unwrap_or_else(|| self.knots.partition_point(|knot| knot.at <= moment).saturating_sub(1));
        self.last = n;
        let Knot { at, to, pace } = self.knots[n];
        Time((to + (moment.0 - at.0) as f64 * pace).floor() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stretched_is_longer_and_what_comes_after_is_later() {
        let mut changes = Changes::default();
        changes.stretch((Time(100), Time(200)), 3.0);
        changes.pause(Time(250), Time(1_000));
        changes.pace(Time(300), 2.0);
        let mut clock = Clock::new(Time::ZERO, changes);
        let moments = [-5, 0, 50, 100, 150, 200, 250, 251, 300, 310];
        assert_eq!(
            moments.map(|at| clock.at(Time(at)).0),
            [-5, 0, 50, 100, 250, 400, 450, 1_451, 1_500, 1_520],
            "{clock:?}"
        );
        // In another order, and after a look far ahead, it returns the same.
        assert_eq!([310, 50, 251].map(|at| clock.at(Time(at)).0), [1_520, 50, 1_451]);
    }

    #[test]
    fn stretches_that_overlap_multiply_and_leave_nothing_behind() {
        let mut changes = Changes::default();
        changes.stretch((Time(0), Time(100)), 2.0);
        changes.stretch((Time(50), Time(150)), 3.0);
        let mut clock = Clock::new(Time::ZERO, changes);
        let ends: Vec<i64> = [50, 100, 150, 1_150].iter().map(|&at| (clock.at(Time(at)).0 + 5) / 10 * 10).collect();
        assert_eq!(ends, [100, 400, 550, 1_550]);
    }
}
