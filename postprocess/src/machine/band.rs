// SPDX-License-Identifier: BSD-3-Clause
//! Band: all lines from one clock to another for which no packet arrives before it was sent.
//!
//! The offset to add to the time `t` of a clock is a line over `t`, given by its values at the first and the last
//! moment of the trace. A packet that arrived at `t` shows that the line is not below some value there, one that left
//! at `t` that it is not above one. Each bound is a half-plane in the plane of those two values, and their intersection
//! is a convex polygon: the band. Its middle is the answer, and its size bounds the error, whatever happened to the
//! packets on their way.
//!
//! Two things make the polygon empty. A packet that was taken for another contradicts all others: it is skipped. A
//! clock that steps, or whose rate changes, contradicts what was before: another line begins there.

use super::shift::{Piece, POINT};
use crate::time::Time;

/// Maximum difference in rate between two clocks.
const RATE: f64 = 1e-3;
/// Maximum distance of a line from the middle of all bounds: 100 s.
const FAR: f64 = 1e10;
/// A contradiction of a band by no more than this, 100 us, is not a mistaken packet: the rate has changed.
const NEAR: f64 = 1e4;
/// Number of packets of the same direction that decide whether one is a mistake.
const ASKED: usize = 16;
/// Pieces for fewer packets than this are mistakes.
const FEW: usize = 8;
/// Times are rounded down to units on both sides, and the counters below them to some nanoseconds.
const ROUNDED: f64 = 2.0;

/// The bound from one packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// At this time of the clock,
    pub at: Time,
    /// the offset is not
    pub side: Side,
    /// this value.
    pub value: Time,
}

/// Direction in which a packet bounds the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Less than: it arrived here.
    NotBelow,
    /// More than: it left here.
    NotAbove,
}

/// Result of the search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The lines, one after the other; none without packets.
    pub pieces: Vec<Piece>,
    /// Number of packets that contradict all others, and were skipped.
    pub mistaken: u64,
}

type Point = [f64; 2];

/// The lines still possible; never empty.
#[derive(Clone, Debug)]
struct Polygon(Vec<Point>);

/// The frame of all computations: times as fractions of the trace's, values relative to a middle one.
#[derive(Clone, Copy, Debug)]
struct Frame {
    first: Time,
    length: f64,
    middle: Time,
}

impl Frame {
    fn place(&self, at: Time) -> f64 {
        at.saturating_sub(self.first).0 as f64 / self.length
    }

    fn value(&self, value: Time) -> f64 {
        value.saturating_sub(self.middle).0 as f64
    }

    /// All possible lines.
    fn all(&self) -> Polygon {
        let tilt = RATE * self.length;
        Polygon(vec![[-FAR, -FAR - tilt], [FAR, FAR - tilt], [FAR, FAR + tilt], [-FAR, -FAR + tilt]])
    }
}

/// The value of a line at a place.
fn on(line: Point, place: f64) -> f64 {
    line[0] + (line[1] - line[0]) * place
}

impl Polygon {
    /// The lines that remain after a bound, or else the distance by which the nearest line misses it.
    fn cut(&self, frame: &Frame, said: &Said) -> Result<Polygon, f64> {
        let (place, value) = (frame.place(said.at), frame.value(said.value));
        let sign = if said.side == Side::NotBelow { 1.0 } else { -1.0 };
        let room = |line: Point| (on(line, place) - value) * sign;
        let best = self.0.iter().map(|line| room(*line)).fold(f64::MIN, f64::max);
        if best < 0.0 {
            return Err(-best);
        }
        let mut left = Vec::with_capacity(self.0.len() + 1);
        for (n, &line) in self.0.iter().enumerate() {
            let next = self.0[(n + 1) % self.0.len()];
            let (here, there) = (room(line), room(next));
            if here >= 0.0 {
                left.push(line);
            }
            if (here < 0.0) != (there < 0.0) {
                let part = here / (here - there);
                left.push([0, 1].map(|i| line[i] + (next[i] - line[i]) * part));
            }
        }
        Ok(Polygon(left))
    }

    /// True if nothing has to be cut off.
    fn is_within(&self, frame: &Frame, said: &Said) -> bool {
        let (place, value) = (frame.place(said.at), frame.value(said.value));
        self.0.iter().all(|line| match said.side {
            Side::NotBelow => on(*line, place) >= value,
            Side::NotAbove => on(*line, place) <= value,
        })
    }

    /// The line in the middle. The middle of the surrounding box may be outside of the polygon; the mean of the corners
    /// is inside.
    fn middle(&self) -> Point {
        let count = self.0.len() as f64;
        let sides = [0, 1].map(|i| {
            let ends = self.0.iter().map(|line| line[i]);
            (ends.clone().fold(f64::MAX, f64::min), ends.fold(f64::MIN, f64::max))
        });
        let middle = sides.map(|(low, high)| (low + high) / 2.0);
        let is_inside = (0..self.0.len())
            .map(|n| (self.0[n], self.0[(n + 1) % self.0.len()]))
            .all(|(a, b)| (b[0] - a[0]) * (middle[1] - a[1]) - (b[1] - a[1]) * (middle[0] - a[0]) >= 0.0);
        let mean = [0, 1].map(|i| self.0.iter().map(|line| line[i]).sum::<f64>() / count);
        if is_inside {
            middle
        } else {
            mean
        }
    }

    /// The lowest or highest possible line, for packets that go one way only.
    fn edge(&self, side: Side) -> Point {
        let sum = |line: &&Point| line[0] + line[1];
        let by = |a: &&Point, b: &&Point| sum(a).total_cmp(&sum(b));
        let edge = match side {
            Side::NotBelow => self.0.iter().min_by(by),
            Side::NotAbove => self.0.iter().max_by(by),
        };
        edge.copied().unwrap_or_default()
    }
}

/// A stretch of time with its lines.
struct Stretch {
    from: Time,
    to: Time,
    polygon: Polygon,
    packets: usize,
    end: End,
}

/// Reason why a stretch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is the last, or long enough.
    Over,
    /// The rate has changed.
    Drifted,
    /// The clock has stepped.
    Stepped,
}

/// Finds the lines for a clock whose trace lasts from `first` to `last`; `said` is ordered by time.
pub fn find(said: &[Said], (first, last): (Time, Time)) -> Found {
    if said.is_empty() {
        return Found::default();
    }
    let frame = frame(said, (first, last));
    let sides = [Side::NotBelow, Side::NotAbove];
    let both = sides.iter().all(|side| said.iter().any(|s| s.side == *side));
    let (mut longest, mut mistaken) = (i64::MAX, 0);
    let mut stretches = Vec::new();
    // A line that was followed as long as it held is not at its best near the end.
    for _ in 0..8 {
        (stretches, mistaken) = stretched(said, &frame, longest);
        let drifted = stretches.iter().filter(|s| s.end == End::Drifted).map(|s| (s.to - s.from).0).min();
        match drifted {
            Some(length) if length > 1 => longest = length / 2,
            _ => break,
        }
    }
    let ends = stretches.iter().skip(1).map(|next| next.from).chain([last.max(said[said.len() - 1].at)]);
    let starts = [first.min(said[0].at)].into_iter().chain(stretches.iter().skip(1).map(|s| s.from));
    let pieces = stretches.iter().zip(starts.zip(ends)).map(|(stretch, (from, to))| {
        let line = if both { stretch.polygon.middle() } else { stretch.polygon.edge(said[0].side) };
        piece(&frame, &stretch.polygon, line, (from, to), both)
    });
    Found { pieces: pieces.collect(), mistaken }
}

fn frame(said: &[Said], (first, last): (Time, Time)) -> Frame {
    let mut values: Vec<Time> = said.iter().map(|s| s.value).collect();
    let half = values.len() / 2;
    let middle = *values.select_nth_unstable(half).1;
    let (first, last) = (first.min(said[0].at), last.max(said[said.len() - 1].at));
    Frame { first, length: (last.saturating_sub(first).0 as f64).max(1.0), middle }
}

/// Follows each line as far as it holds, or `longest`.
fn stretched(said: &[Said], frame: &Frame, longest: i64) -> (Vec<Stretch>, u64) {
    let begin = |from| Stretch { from, to: from, polygon: frame.all(), packets: 0, end: End::Over };
    let (mut all, mut mistaken) = (Vec::new(), 0);
    let mut now = begin(said[0].at);
    for (n, one) in said.iter().enumerate() {
        if (one.at - now.from).0 > longest {
            let next = begin(one.at);
            all.push(std::mem::replace(&mut now, next));
        }
        if !now.polygon.is_within(frame, one) {
            match now.polygon.cut(frame, one) {
                Ok(left) => now.polygon = left,
                Err(miss) if miss > NEAR && is_mistake(&said[n + 1..], frame, &now.polygon, one.side) => {
                    mistaken += 1;
                    continue;
                }
                Err(miss) => {
                    now.end = if miss > NEAR { End::Stepped } else { End::Drifted };
                    let next = Stretch { polygon: frame.all().cut(frame, one).unwrap_or(frame.all()), ..begin(one.at) };
                    all.push(std::mem::replace(&mut now, next));
                }
            }
        }
        now.to = one.at;
        now.packets += 1;
    }
    all.push(now);
    // A stretch that began with a mistake, and ended with the first correct packet, is not one of the lines.
    let most = all.iter().map(|s| s.packets).max().unwrap_or_default();
    all.retain(|s| {
        let keep = s.packets >= FEW || s.packets == most || s.end == End::Drifted;
        mistaken += if keep { 0 } else { s.packets as u64 };
        keep
    });
    // The next line takes over right after the last packet that does not fit it: it is unknown where between two
    // packets a clock stepped.
    for n in 1..all.len() {
        let (before, next) = (&all[n - 1], &all[n]);
        let until = said.partition_point(|s| s.at <= before.to);
        let not_for_it = |s: &&Said| before.end != End::Stepped || !next.polygon.is_within(frame, s);
        let last = said[..until].iter().rev().take_while(|s| s.at >= before.from).find(not_for_it);
        all[n].from = last.map_or(before.from, |s| s.at) + Time::UNIT;
    }
    (all, mistaken)
}

/// True if the next packets of the same direction agree with the band that this one contradicts.
fn is_mistake(next: &[Said], frame: &Frame, polygon: &Polygon, side: Side) -> bool {
    let asked: Vec<_> = next.iter().filter(|s| s.side == side).take(ASKED).collect();
    let against = asked.iter().filter(|s| polygon.cut(frame, s).is_err()).count();
    against * 2 <= asked.len()
}

fn piece(frame: &Frame, polygon: &Polygon, line: Point, (from, to): (Time, Time), bounded: bool) -> Piece {
    let ends = [frame.place(from), frame.place(to)];
    let far = |other: &Point| ends.map(|place| (on(*other, place) - on(line, place)).abs());
    let error = polygon.0.iter().flat_map(far).fold(0.0, f64::max) + ROUNDED;
    let scale = (1u64 << POINT) as f64;
    let added = on(line, ends[0]);
    let whole = added.floor();
    Piece {
        from,
        offset: frame.middle.saturating_add(Time(whole as i64)),
        fraction: ((added - whole) * scale) as i64,
        rate: ((line[1] - line[0]) / frame.length * scale).round() as i64,
        within: bounded.then_some(Time(error.ceil() as i64)),
    }
}
