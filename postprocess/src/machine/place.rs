// SPDX-License-Identifier: BSD-3-Clause
//! Place: puts the clocks of all machines on that of the first, one after the other.
//!
//! A machine is placed by the packets between it and those already placed, so it need not have spoken with the first
//! one: the error of the machines between adds to its own. A machine whose packets went one way only is placed as early
//! or as late as they allow, and nothing bounds its error; a machine without packets is placed by its clock of the day.
//!
//! A guest and its host are placed together, as a [group](super::group): the packets of each are those of both.

use std::fmt;

use super::band::{self, Found, Said, Side};
use super::group::{groups, Group};
use super::inside::{self, Inside, Traced};
use super::packet::{Packets, Passed};
use super::shift::{Shift, POINT};
use crate::time::Time;

/// Number of times that all machines are placed again by all others, while packets still arrive before they are sent.
const ROUNDS: usize = 3;
/// Maximum error of a guest's time that follows from its host's.
const ROUNDED: Time = Time(4);

/// Facts about one machine.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Name of the machine.
    pub name: String,
    /// The minute that its times count from, in Unix seconds, by its own clock.
    pub base: i64,
    /// Start and end of its trace.
    pub traced: (Time, Time),
    /// Packets that it sent and received.
    pub packets: Packets,
    /// Its traces of guests.
    pub guests: Traced,
}

/// Evidence that a machine was placed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// None: the machine is the first, and its clock is the clock of all.
    First,
    /// Packets there and back.
    Packets,
    /// Packets one way.
    OneWay,
    /// Its clock of the day.
    Clock,
    /// Its counter, which its host sets.
    Host,
    /// The times when its CPUs had nothing to do, which its host saw.
    Halts,
}

/// A machine that is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Offset from its time to the first one's, each counted from its own minute.
    pub shift: Shift,
    /// The evidence.
    pub by: By,
    /// Number of packets that arrived at it from others, and at others from it.
    pub packets: (usize, usize),
    /// Number of packets that contradict all others, and were skipped.
    pub mistaken: u64,
    /// Number of packets to it that arrive before they are sent.
    pub early: u64,
    /// Its host, if that is among the machines.
    pub inside: Option<Inside>,
    /// True if it may be a guest, but nothing shows it.
    pub may_be_inside: bool,
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

    /// The same for groups, by the clocks of their anchors: sent as early and received as late as possible.
    fn grouped(&self, groups: &[Group]) -> Pairs {
        let within = |way: &Shift| way.within().unwrap_or_default();
        let between = |from: &Group, to: &Group| {
            let pairs = from.members.iter().flat_map(|a| to.members.iter().map(move |b| (a, b)));
            let all = pairs.flat_map(|((a, sender), (b, receiver))| {
                let passed = self.0[*a][*b].iter();
                passed.map(move |p| Passed {
                    sent: sender.at(p.sent) - within(sender),
                    received: receiver.at(p.received) + within(receiver),
                })
            });
            all.collect()
        };
        let row = |a: usize| {
            let to = |b: usize| if a == b { Vec::new() } else { between(&groups[a], &groups[b]) };
            (0..groups.len()).map(to).collect()
        };
        Pairs((0..groups.len()).map(row).collect())
    }

    fn counts(&self, from: usize, to: usize) -> (usize, usize) {
        (self.0[from][to].len(), self.0[to][from].len())
    }

    fn both_ways(&self, a: usize, b: usize) -> usize {
        let (there, back) = self.counts(a, b);
        there.min(back)
    }

    /// Bounds on a machine's clock from the packets between it and another, which is placed.
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
    let found = inside::find(&known.iter().map(|known| &known.guests).collect::<Vec<_>>());
    let groups = groups(&found);
    let pairs = Pairs::of(known);
    let anchors: Vec<Known> = groups.iter().map(|group| of_group(known, group)).collect();
    let of_groups = place_groups(&anchors, &pairs.grouped(&groups));
    let mut placed: Vec<Option<Placed>> = vec![None; known.len()];
    for (group, whole) in groups.iter().zip(of_groups) {
        for (member, way) in &group.members {
            let is_anchor = *member == group.anchor;
            let is_found = [*member, group.anchor].iter().any(|n| found[*n].as_ref().is_some_and(|fit| fit.is_found));
            let by = if is_found { By::Halts } else { By::Host };
            let rigid = || Placed { by, ..unplaced(inside::through(way, &whole.shift)) };
            let one = if is_anchor { whole.clone() } else { rigid() };
            let inside = found[*member].as_ref().map(|fit| fit.inside.clone());
            let mut others = known.iter().enumerate().filter(|(n, _)| n != member);
            let may_be = others.any(|(_, host)| known[*member].guests.may_be_of(&host.guests));
            placed[*member] = Some(Placed { may_be_inside: may_be && inside.is_none(), inside, ..one });
        }
    }
    let early: Vec<u64> = (0..known.len()).map(|m| count_early(&pairs, &placed, m)).collect();
    placed.into_iter().flatten().zip(early).map(|(placed, early)| Placed { early, ..placed }).collect()
}

/// Machines that were traced while none of the others was, by their clocks.
pub fn apart(known: &[Known], placed: &[Placed]) -> Vec<usize> {
    let when = |one: (&Known, &Placed)| (one.1.shift.at(one.0.traced.0), one.1.shift.at(one.0.traced.1));
    let times: Vec<_> = known.iter().zip(placed).map(when).collect();
    let overlaps = |a: usize, b: usize| a != b && times[a].0 <= times[b].1 && times[b].0 <= times[a].1;
    let is_apart = |one: &usize| times.len() > 1 && !(0..times.len()).any(|other| overlaps(*one, other));
    (0..times.len()).filter(is_apart).collect()
}

/// The facts about a group, as if it were its anchor.
fn of_group(known: &[Known], group: &Group) -> Known {
    let times = group.members.iter().map(|(n, way)| (way.at(known[*n].traced.0), way.at(known[*n].traced.1)));
    let traced = times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))).unwrap_or_default();
    Known { base: known[group.anchor].base, traced, ..Known::default() }
}

/// Places the anchors of all groups.
fn place_groups(known: &[Known], pairs: &Pairs) -> Vec<Placed> {
    let mut placed: Vec<Option<Placed>> = vec![None; known.len()];
    if let Some(first) = placed.first_mut() {
        *first = Some(Placed { by: By::First, ..unplaced(Shift::by(Time::ZERO, Some(Time::ZERO))) });
    }
    while let Some(machine) = next(pairs, &placed) {
        placed[machine] = Some(placed_by_others(known, pairs, &placed, machine));
    }
    for _ in 0..ROUNDS {
        let early = |placed: &[Option<Placed>], m| count_early(pairs, placed, m);
        if (0..known.len()).all(|m| early(&placed, m) == 0) {
            break;
        }
        for machine in 1..known.len() {
            let before = placed[machine].take();
            placed[machine] = Some(placed_by_others(known, pairs, &placed, machine));
            if before.as_ref().is_some_and(|p| p.by == By::Packets) {
                let within = before.and_then(|p| p.shift.within());
                bound(&mut placed[machine], within);
            }
        }
    }
    placed.into_iter().flatten().collect()
}

/// The bound that was proven for a machine's error when it was first placed remains true if doubled: both lines are in
/// the band.
fn bound(placed: &mut Option<Placed>, within: Option<Time>) {
    for piece in placed.iter_mut().flat_map(|p| &mut p.shift.0) {
        piece.within = within.map(|within| within * 2);
    }
}

fn unplaced(shift: Shift) -> Placed {
    Placed { shift, by: By::Clock, packets: (0, 0), mistaken: 0, early: 0, inside: None, may_be_inside: false }
}

/// The machine to place next: the one about which most is known.
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
    // Machines with packets one way only also narrow the band.
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
        // The lines that one neighbour leaves are no more than its width apart.
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
    Placed { shift, packets, mistaken, by, ..unplaced(Shift::default()) }
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
    /// `b = a + 1.234567 s + 12.3 ppm, within 0.8 us`: this machine's clock relative to the first one's, at the start
    /// of this machine's trace.
    pub fn text(&self, known: &Known, first: &Known) -> String {
        if self.by == By::First {
            return format!("{}: its clock is used for all", known.name);
        }
        let start = known.traced.0;
        let ahead = i128::from(known.base - first.base) * i128::from(Time::SECOND.0) + i128::from(start.0)
            - i128::from(self.shift.at(start).0);
        let seconds = ahead as f64 / Time::SECOND.0 as f64;
        let rate = self.shift.0.first().map_or(0, |piece| piece.rate);
        // The clock is fast by the amount that has to be taken away.
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
        let unknown = match self.may_be_inside {
            true => "; it is a guest, and nothing shows whether and when one of these machines ran it",
            false => "",
        };
        format!("{line}, {}{unknown}", Bound(self))
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
            (By::Host, within) => {
                f.write_str("by its host's record of its counter")?;
                match within {
                    Some(within) if within <= ROUNDED => Ok(()),
                    Some(within) => write!(f, ", within {:.1} us", within.0 as f64 / 100.0),
                    None => f.write_str("; nothing bounds its error"),
                }
            }
            (By::Halts, within) => {
                f.write_str("by the times at which its CPUs were idle")?;
                within.map_or(Ok(()), |within| write!(f, ", within {:.1} us", within.0 as f64 / 100.0))
            }
            (By::Clock, _) => f.write_str("by its time of day, as there are no packets: nothing bounds the error"),
            _ => f.write_str("by packets of one direction only: nothing bounds the error"),
        }
    }
}
