// SPDX-License-Identifier: BSD-3-Clause
//! Halt: proposes how a guest's time follows from its host's if no trace has it, from the times when its CPUs had
//! nothing to do.
//!
//! A guest's CPU that has nothing to do halts: its last record comes before its host sees it leave for that reason, and
//! its host lets it in again before its next record. Each halt therefore bounds the clocks of two machines like a
//! packet there and a packet back, and [`band`] finds all lines that none contradicts. The pattern of lengths shows
//! which pause of the guest is which halt of the host: each of the longest pauses is laid over each halt of the same
//! length, and where most of its neighbours also match, the line is followed from there on.
//!
//! Invariant: the answer is only a proposal; [`super::inside`] tests whether the guest's events then lie in its host's
//! time.

use super::band::{self, Said, Side};
use super::shift::Shift;
use crate::time::Time;

/// Start and end of a time in which a CPU recorded nothing, on the guest; or was out of its guest, on the host.
pub type Stretch = (Time, Time);

/// Maximum number of pauses kept for each machine: the longest.
const KEPT: usize = 1 << 15;
/// Minimum length of a pause: 50 us.
const SHORT: Time = Time(5_000);
/// Number of pauses that are laid over all halts.
const SEEDS: usize = 24;
/// Number of pauses around one that are tested for a matching halt.
const NEIGHBOURS: usize = 48;
/// Number of those that must match.
const MOST: usize = NEIGHBOURS * 8 / 10;
/// Minimum number of halts on a line, and the number of bounds from each.
const FEW: usize = 20;
const SAYS: usize = 2;
/// Number of proposals that are followed.
const FOLLOWED: usize = 16;
/// Maximum difference by which a halt is shorter than its pause: 2 ms, and an eighth of the pause.
const SLACK: Time = Time(200_000);
/// Clocks differ in their rates by less than one part in this.
const RATE: i64 = 2_000;

/// Pauses as they arrive: the longest, if there are too many.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    list: Vec<Stretch>,
    least: Time,
}

impl Pauses {
    /// Adds a pause.
    pub fn add(&mut self, from: Time, to: Time) {
        if to.saturating_sub(from) < self.least.max(SHORT) {
            return;
        }
        self.list.push((from, to));
        if self.list.len() == KEPT {
            let middle = *self.list.clone().select_nth_unstable_by_key(KEPT / 2, length).1;
            self.least = length(&middle) + Time::UNIT;
            self.list.retain(|one| length(one) >= self.least);
        }
    }
}

fn length(&(from, to): &Stretch) -> Time {
    to.saturating_sub(from)
}

/// The possible shifts of a guest with these pauses, traced for this time, in a host with these halts: lines from its
/// time to the host's, the likeliest first.
pub fn proposals(pauses: &Pauses, halts: &Pauses, traced: (Time, Time)) -> Vec<Shift> {
    let (mut pauses, mut halts) = (pauses.list.clone(), halts.list.clone());
    pauses.sort_unstable();
    halts.sort_unstable();
    let mut seeds: Vec<usize> = (0..pauses.len()).collect();
    seeds.sort_by_key(|&n| std::cmp::Reverse(length(&pauses[n])));
    seeds.truncate(SEEDS);
    let mut found: Vec<(usize, Time, Time)> = Vec::new();
    for seed in seeds {
        let around = &pauses[seed.saturating_sub(NEIGHBOURS / 2)..(seed + NEIGHBOURS / 2).min(pauses.len())];
        for halt in halts.iter().filter(|halt| fits(&pauses[seed], halt)) {
            let (offset, slack) = between(&pauses[seed], halt);
            let at = pauses[seed].0;
            let hits = around.iter().filter(|one| match_of(one, &halts, offset, slack + apart(one.0, at)).is_some());
            let hits = hits.count();
            if hits >= MOST.min(around.len()) {
                found.push((hits, at, offset));
            }
        }
    }
    found.sort_by_key(|(hits, at, offset)| (std::cmp::Reverse(*hits), *at, *offset));
    let mut lines: Vec<Shift> = Vec::new();
    for (_, at, offset) in found {
        let is_known = |line: &Shift| (line.at(at) - at - offset).abs() <= SLACK;
        if lines.len() < FOLLOWED && !lines.iter().any(is_known) {
            lines.extend(follow(&pauses, &halts, (at, offset), traced));
        }
    }
    lines
}

/// True if a halt is about as long as a pause, and not longer.
fn fits(pause: &Stretch, halt: &Stretch) -> bool {
    let (pause, halt) = (length(pause), length(halt));
    halt <= pause + Time(2) && halt >= pause - SLACK - pause / 8
}

/// The offset between a pause and a halt in it, and its possible error.
fn between(pause: &Stretch, halt: &Stretch) -> (Time, Time) {
    let (most, least) = (halt.0 - pause.0, halt.1 - pause.1);
    ((most + least) / 2, (most - least).abs() / 2 + Time(2))
}

/// Maximum drift of two clocks between two moments.
fn apart(one: Time, other: Time) -> Time {
    (one - other).abs() / RATE
}

/// The halt of a pause whose time follows by this offset, give or take `slack`; `None` if two fit.
fn match_of(pause: &Stretch, halts: &[Stretch], offset: Time, slack: Time) -> Option<Stretch> {
    let (from, to) = (pause.0 + offset - slack, pause.1 + offset + slack);
    let first = halts.partition_point(|halt| halt.0 < from);
    let mut fitting = halts[first..].iter().take_while(|halt| halt.0 <= to).filter(|h| h.1 <= to && fits(pause, h));
    let halt = fitting.next()?;
    fitting.next().is_none().then_some(*halt)
}

/// The line through a moment with this offset, followed to both ends: near matches show where to look farther out.
fn follow(pauses: &[Stretch], halts: &[Stretch], (at, offset): (Time, Time), traced: (Time, Time)) -> Option<Shift> {
    let whole = (traced.1 - traced.0).max(Time::UNIT);
    let mut reach = Time::SECOND / 2;
    let mut line = Shift::by(offset, None);
    let mut slack = SLACK * 2;
    loop {
        let near = pauses.iter().filter(|pause| (pause.0 - at).abs() <= reach);
        let mut said: Vec<Said> = Vec::new();
        for pause in near {
            let Some(halt) = match_of(pause, halts, line.at(pause.0) - pause.0, slack) else { continue };
            said.push(Said { at: pause.0, side: Side::NotAbove, value: halt.0 - pause.0 });
            said.push(Said { at: pause.1, side: Side::NotBelow, value: halt.1 - pause.1 });
        }
        said.sort_by_key(|said| said.at);
        let found = band::find(&said, traced);
        if said.len() < SAYS * FEW || found.pieces.len() != 1 || found.mistaken as usize * 20 > said.len() {
            return None;
        }
        line = Shift(found.pieces);
        if reach >= whole {
            return Some(line);
        }
        slack = Time((reach.0 / 10_000).max(SLACK.0 / 10));
        reach = Time(reach.0.saturating_mul(2));
    }
}
