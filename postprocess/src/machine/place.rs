// SPDX-License-Identifier: BSD-3-Clause
//! Place: the clocks of all machines on that of the first, one after the other.
//!
//! A machine is placed by the packets between it and those that are placed already, so a machine need not have spoken
//! with the first one: the error of those between adds to its own. One whose packets went one way only is placed as
//! early or as late as they allow, and nothing bounds its error; one without packets, by its clock of the day.

use std::fmt;

use super::band::{self, Found, Said, Side};
use super::inside::{self, Inside, Traced};
use super::packet::{Packets, Passed};
use super::shift::{Shift, POINT};
use crate::time::Time;

/// How often all machines are placed anew by all others, while packets still arrive before they are sent.
const ROUNDS: usize = 3;

/// What is known of one machine.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// What it is called.
    pub name: String,
    /// The minute that its times count from, in Unix seconds, by its own clock.
    pub base: i64,
    /// From when to when it was traced.
    pub traced: (Time, Time),
    /// What it sent and received.
    pub packets: Packets,
    /// What it has of guests.
    pub guests: Traced,
}

/// By what a machine was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// It is the first: its clock is that of all.
    First,
    /// Packets there and back.
    Packets,
    /// Packets one way.
    OneWay,
    /// Its clock of the day.
    Clock,
    /// Its counter, which its host sets.
    Host,
}

/// A machine that is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// From its time to the first one's, each counted from its own minute.
    pub shift: Shift,
    /// By what.
    pub by: By,
    /// Packets that arrived at it from others, and at others from it.
    pub packets: (usize, usize),
    /// Those that contradict all others, and were left out.
    pub mistaken: u64,
    /// Packets to it that arrive before they are sent.
    pub early: u64,
    /// Whose guest it is, if that one is among the machines.
    pub inside: Option<Inside>,
}

/// All pairs' packets: from the first index to the second.
struct Pairs(Vec<Vec<Vec<Passed>>>);

impl Pairs {
    fn of(known: &[Known]) -> Pairs {
        let row = |a: usize| {
            let to = |b: usize| if a == b { Vec::new() } else { known[a].packets.passed(&known[b].packets) };
            (0..known.len()).map(to).collect()
        };
        Pairs((0..known.len()).map(row).collect())
    }

    fn counts(&self, from: usize, to: usize) -> (usize, usize) {
        (self.0[from][to].len(), self.0[to][from].len())
    }

    fn both_ways(&self, a: usize, b: usize) -> usize {
        let (there, back) = self.counts(a, b);
        there.min(back)
    }

    /// What the packets between a machine and another, which is placed, say of its clock.
    fn said(&self, machine: usize, other: usize, shift: &Shift) -> impl Iterator<Item = Said> + '_ {
        let placed = shift.clone();
        let arrived = self.0[other][machine].iter().map(move |p| Said {
            at: p.received,
            side: Side::NotBelow,
            value: placed.at(p.sent).saturating_sub(p.received),
        });
        let placed = shift.clone();
        let left = self.0[machine][other].iter().map(move |p| Said {
            at: p.sent,
            side: Side::NotAbove,
            value: placed.at(p.received).saturating_sub(p.sent),
        });
        arrived.chain(left)
    }
}

/// Places all machines on the clock of the first.
pub fn place(known: &[Known]) -> Vec<Placed> {
    let pairs = Pairs::of(known);
    let mut placed: Vec<Option<Placed>> = vec![None; known.len()];
    if let Some(first) = placed.first_mut() {
        *first = Some(Placed { by: By::First, ..unplaced(Shift::by(Time::ZERO, Some(Time::ZERO))) });
    }
    while let Some(machine) = next(&pairs, &placed) {
        placed[machine] = Some(placed_by_others(known, &pairs, &placed, machine));
    }
    for _ in 0..ROUNDS {
        let early = |placed: &[Option<Placed>], m| count_early(&pairs, placed, m);
        if (0..known.len()).all(|m| early(&placed, m) == 0) {
            break;
        }
        for machine in 1..known.len() {
            let before = placed[machine].take();
            placed[machine] = Some(placed_by_others(known, &pairs, &placed, machine));
            if before.as_ref().is_some_and(|p| p.by == By::Packets) {
                let within = before.and_then(|p| p.shift.within());
                bound(&mut placed[machine], within);
            }
        }
    }
    put_inside(known, &mut placed);
    let early: Vec<u64> = (0..known.len()).map(|m| count_early(&pairs, &placed, m)).collect();
    placed.into_iter().flatten().zip(early).map(|(placed, early)| Placed { early, ..placed }).collect()
}

/// Places guests by their counters, whatever packets say: the hosts of the first machine, which is what times count by,
/// then all others.
fn put_inside(known: &[Known], placed: &mut [Option<Placed>]) {
    let found = inside::find(&known.iter().map(|known| &known.guests).collect::<Vec<_>>());
    let mut is_done: Vec<bool> = (0..known.len()).map(|n| n == 0).collect();
    let put = |n: usize, shift: Shift, placed: &mut [Option<Placed>]| {
        let inside = found[n].as_ref().map(|fit| fit.inside.clone());
        let before = placed[n].take().unwrap_or_else(|| unplaced(Shift::default()));
        placed[n] = Some(Placed { shift, by: By::Host, inside, ..before });
    };
    let shift_of =
        |placed: &[Option<Placed>], n: usize| placed[n].as_ref().map(|p| p.shift.clone()).unwrap_or_default();
    let mut at = 0;
    while let Some(fit) = found.get(at).and_then(Option::as_ref) {
        if let Some(placed) = placed[at].as_mut() {
            placed.inside = Some(fit.inside.clone());
        }
        let host = fit.inside.host;
        put(host, inside::through(&inside::back(&fit.shift), &shift_of(placed, at)), placed);
        is_done[host] = true;
        at = host;
    }
    // A host may be a guest itself, of one that comes later.
    for _ in 0..known.len() {
        for (n, fit) in found.iter().enumerate().filter_map(|(n, fit)| Some((n, fit.as_ref()?))) {
            let host = fit.inside.host;
            if !is_done[n] && (is_done[host] || found[host].is_none()) {
                put(n, inside::through(&fit.shift, &shift_of(placed, host)), placed);
                is_done[n] = true;
            }
        }
    }
}

/// What was proven of a machine's error when it was first placed stays true at most doubled: both lines are in the band.
fn bound(placed: &mut Option<Placed>, within: Option<Time>) {
    for piece in placed.iter_mut().flat_map(|p| &mut p.shift.0) {
        piece.within = within.map(|within| within * 2);
    }
}

fn unplaced(shift: Shift) -> Placed {
    Placed { shift, by: By::Clock, packets: (0, 0), mistaken: 0, early: 0, inside: None }
}

/// The machine to place next: the one of which most is known.
fn next(pairs: &Pairs, placed: &[Option<Placed>]) -> Option<usize> {
    let those = |is_placed: bool| (0..placed.len()).filter(move |&m| placed[m].is_some() == is_placed);
    let known = |&machine: &usize| {
        let both = those(true).map(|other| pairs.both_ways(machine, other)).max().unwrap_or_default();
        let any = those(true).map(|other| pairs.counts(machine, other)).map(|(a, b)| a + b).max().unwrap_or_default();
        (both, any, usize::MAX - machine)
    };
    those(false).max_by_key(known)
}

/// Places a machine by all that are placed.
fn placed_by_others(known: &[Known], pairs: &Pairs, placed: &[Option<Placed>], machine: usize) -> Placed {
    let others = |least: usize| {
        placed.iter().enumerate().filter_map(move |(n, other)| {
            let (there, back) = pairs.counts(machine, n);
            let is_enough = there.min(back) >= least && there + back > 0 && n != machine;
            Some((n, other.as_ref()?)).filter(|_| is_enough)
        })
    };
    // Those with packets one way only narrow the band, too.
    let mut said: Vec<Said> = others(0).flat_map(|(n, other)| pairs.said(machine, n, &other.shift)).collect();
    said.sort_by_key(|s| s.at);
    let Found { pieces, mistaken } = band::find(&said, known[machine].traced);
    if pieces.is_empty() {
        let seconds = known[machine].base.saturating_sub(known[0].base);
        return unplaced(Shift::by(Time(seconds.saturating_mul(Time::SECOND.0)), None));
    }
    let mut shift = Shift(pieces);
    let by = if shift.within().is_some() { By::Packets } else { By::OneWay };
    let mut neighbours = others(1);
    let within = match (neighbours.next(), neighbours.next()) {
        (Some((_, one)), None) if others(0).count() == 1 => {
            let add = one.shift.within();
            shift.0.iter_mut().for_each(|p| p.within = p.within.and_then(|w| Some(w + add?)));
            shift.within()
        }
        // The lines that are left by one neighbour have no more than its width between them.
        _ => {
            let through = |(n, other): (usize, &Placed)| {
                let mut said: Vec<Said> = pairs.said(machine, n, &other.shift).collect();
                said.sort_by_key(|s| s.at);
                let own = Shift(band::find(&said, known[machine].traced).pieces).within()?;
                Some(own * 2 + other.shift.within()?)
            };
            let within = others(1).filter_map(through).min();
            shift.0.iter_mut().for_each(|p| p.within = within);
            within
        }
    };
    let by = if within.is_none() && by == By::Packets { By::OneWay } else { by };
    let packets = others(0).map(|(n, _)| pairs.counts(n, machine)).fold((0, 0), |sum, c| (sum.0 + c.0, sum.1 + c.1));
    Placed { shift, by, packets, mistaken, early: 0, inside: None }
}

/// Packets to a machine that arrive before they are sent.
fn count_early(pairs: &Pairs, placed: &[Option<Placed>], machine: usize) -> u64 {
    let Some(here) = &placed[machine] else { return 0 };
    let from = |(n, there): (usize, &Option<Placed>)| {
        let Some(there) = there else { return 0 };
        let early = |p: &&Passed| here.shift.at(p.received) < there.shift.at(p.sent);
        pairs.0[n][machine].iter().filter(early).count() as u64
    };
    placed.iter().enumerate().map(from).sum()
}

impl Placed {
    /// `b = a + 1.234567 s + 12.3 ppm, within 0.8 us`: what the clock of this machine showed when that of the first
    /// showed something, at the start of this machine's trace.
    pub fn text(&self, known: &Known, first: &Known) -> String {
        if self.by == By::First {
            return format!("{}: the clock of all", known.name);
        }
        let start = known.traced.0;
        let ahead = i128::from(known.base - first.base) * i128::from(Time::SECOND.0) + i128::from(start.0)
            - i128::from(self.shift.at(start).0);
        let seconds = ahead as f64 / Time::SECOND.0 as f64;
        let rate = self.shift.0.first().map_or(0, |piece| piece.rate);
        // It is fast by as much as has to be taken away.
        let ppm = -(rate as f64) / (1u64 << POINT) as f64 * 1e6;
        let sign = |number: f64| if number < 0.0 { '-' } else { '+' };
        let line = format!(
            "{} = {} {} {:.6} s {} {:.1} ppm",
            known.name,
            first.name,
            sign(seconds),
            seconds.abs(),
            sign(ppm),
            ppm.abs()
        );
        format!("{line}, {}", Bound(self))
    }
}

struct Bound<'a>(&'a Placed);

impl fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.by, self.0.shift.within()) {
            (By::Packets, Some(within)) => {
                write!(f, "within {:.1} us", within.0 as f64 / 100.0)?;
                match self.0.shift.0.len() {
                    0 | 1 => Ok(()),
                    parts => write!(f, ", in {parts} parts"),
                }
            }
            (By::Host, _) => f.write_str("as its host says of its counter"),
            (By::Clock, _) => f.write_str("by its clock of the day: no packets; nothing bounds the error"),
            _ => f.write_str("as its packets went one way only: nothing bounds the error"),
        }
    }
}
