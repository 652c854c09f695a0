// SPDX-License-Identifier: BSD-3-Clause
//! Inside: finds which machine is a guest of which other, and how its time follows from its host's.
//!
//! A host's trace has, for each virtual CPU, the thread that runs it, the times when it entered and left its guest, and
//! the scale from the host's counter to the guest's. If a trace is that of a guest, its times therefore convert to the
//! host's without a guess, and its events then lie in the times when the thread of their CPU was in the guest. For
//! another machine this is not so, and no other evidence is needed.
//!
//! If the host's trace does not have the scale of the counter, [`super::halt`] proposes it from the times when the
//! guest's CPUs had nothing to do. The proposal for which nearly all events lie inside is taken, if there is only one.

use std::collections::{BTreeMap, BTreeSet};

use kutrace_format::abi::guest::GuestExit;
use kutrace_format::vcpu::{Scale, Vcpu};
use serde::{Deserialize, Serialize};

use super::halt::{self, Pauses};
use super::shift::{first_time, Piece, Shift, POINT};
use crate::event::fact::Fact;
use crate::event::names::Names;
use crate::event::point::Point;
use crate::event::what::What;
use crate::event::{number, Event};
use crate::id::Pid;
use crate::raw::trace::Counter;
use crate::time::Time;

/// Maximum number of a guest's events whose place is tested.
const ASKED: usize = 1 << 16;
/// A machine is a guest if at least this many of a million events lie in it. A wrong counter puts them anywhere.
const MOST: u64 = 900_000;
/// A thread certainly runs a CPU if at least this many do.
const SURE: u64 = 999_000;
/// A proposal is taken if at least this many do.
const PROVEN: u64 = 999_900;
/// Fewer events than this are not conclusive.
const FEW: u64 = 20;
/// Picoseconds per unit of time.
const UNIT: i128 = 10_000;

/// The host of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Index of the host among the machines.
    pub host: usize,
    /// The guest's name on the host.
    pub guest: String,
    /// By CPU of the guest: the thread of the host that runs it.
    pub threads: BTreeMap<u32, u32>,
}

/// Information on guests in a trace: on those that its machine runs, or on the machine as a guest.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// The counter that its times are made from, if that is known.
    counter: Option<Counter>,
    /// True if the machine reports that it is a guest.
    is_guest: bool,
    /// The virtual CPUs that the machine runs: thread, and text.
    vcpus: BTreeMap<u32, String>,
    /// Times when their threads were in their guests.
    runs: BTreeMap<u32, Vec<(Time, Time)>>,
    entered: BTreeMap<u32, Time>,
    /// Times when idle virtual CPUs were out of their guests, and the start of the present ones.
    halts: Pauses,
    halted: BTreeMap<u32, Time>,
    /// Times when idle CPUs recorded nothing; and for each CPU the end of its last event, and whether that was in idle.
    pauses: Pauses,
    last: BTreeMap<u32, (Time, bool)>,
    /// Times of events on a CPU: one of `every` events.
    moments: Vec<(u32, Time)>,
    every: usize,
    seen: usize,
}

/// A machine that is a guest, and the shift to its host's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The host.
    pub inside: Inside,
    /// Shift from its time to the host's.
    pub shift: Shift,
    /// True if no trace has the scale, and it was found from the times when the guest had nothing to do.
    pub is_found: bool,
    /// Tested events that lie in the guest's time with this shift.
    pub hits: Hits,
}

impl Traced {
    /// An empty collection for a trace with this counter.
    pub fn new(counter: Option<Counter>) -> Traced {
        Traced { counter, every: 1, ..Traced::default() }
    }

    /// Takes an event.
    pub fn event(&mut self, e: &Event, names: &Names) {
        let thread = e.pid.number();
        match e.what {
            What::Fact(Fact::Name(number::VCPU)) => drop(self.vcpus.insert(e.arg, names.text(e.name).to_string())),
            What::Fact(Fact::Name(number::HYPERVISOR)) => self.is_guest = true,
            What::Fact(_) => {}
            What::Point(Point::GuestEnter) => {
                self.entered.insert(thread, e.ts);
                if let Some(since) = self.halted.remove(&thread) {
                    self.halts.add(since, e.ts);
                }
            }
            What::Point(Point::GuestExit) => {
                if GuestExit(e.arg).is_halt() {
                    self.halted.insert(thread, e.ts);
                }
                if let Some(from) = self.entered.remove(&thread) {
                    self.runs.entry(thread).or_default().push((from, e.ts));
                }
            }
            _ => self.moment(e),
        }
    }

    /// True if the machine is a guest, and may be a guest of another that has run some.
    pub fn may_be_of(&self, host: &Traced) -> bool {
        self.is_guest && !host.runs.is_empty()
    }

    /// Keeps some of all moments, evenly.
    fn moment(&mut self, e: &Event) {
        let is_idle = if e.what == What::Switch { e.arg == 0 } else { e.pid == Pid::IDLE };
        let last = (e.ts.saturating_add(e.dur), is_idle);
        if let Some((since, true)) = self.last.insert(e.cpu.number(), last) {
            self.pauses.add(since, e.ts);
        }
        self.seen += 1;
        if !self.seen.is_multiple_of(self.every) {
            return;
        }
        self.moments.push((e.cpu.number(), e.ts));
        if self.moments.len() == ASKED {
            let mut n = 0;
            self.moments.retain(|_| {
                n += 1;
                n % 2 == 0
            });
            self.every *= 2;
        }
    }

    /// The guests that the machine runs: the name of each, with its threads by CPU number and its counter's scale.
    fn guests(&self) -> BTreeMap<&str, (BTreeMap<u32, u32>, Scale)> {
        let mut guests: BTreeMap<&str, (BTreeMap<u32, u32>, Scale)> = BTreeMap::new();
        for (thread, vcpu) in self.vcpus.iter().filter_map(|(thread, text)| Some((*thread, Vcpu::read(text)?))) {
            let guest = guests.entry(vcpu.guest).or_insert_with(|| (BTreeMap::new(), vcpu.scale));
            guest.0.insert(vcpu.number, thread);
        }
        guests
    }

    /// Number of moments in the guest's time, out of those in the time for which the host traced a thread.
    fn hits(&self, thread: u32, moments: &[Time]) -> Hits {
        let mut hits = Hits::default();
        let runs = self.runs.get(&thread).map_or(&[][..], |runs| runs);
        let Some((first, last)) = runs.first().zip(runs.last()) else { return hits };
        for &at in moments.iter().filter(|at| (first.0..=last.1).contains(at)) {
            let next = runs.partition_point(|run| run.0 <= at);
            hits.inside += u64::from(next > 0 && at <= runs[next - 1].1);
            hits.all += 1;
        }
        hits
    }

    /// The thread that runs each CPU of a guest. KVM numbers virtual CPUs by the processors' interrupt controllers,
    /// with possible holes, and a guest counts its CPUs in their order. Where that does not fit, it is the thread in
    /// whose time most of the CPU's events lie.
    fn threads(&self, numbered: &BTreeMap<u32, u32>, moments: &BTreeMap<u32, Vec<Time>>) -> BTreeMap<u32, u32> {
        let in_order: BTreeMap<u32, u32> = (0..).zip(numbered.values().copied()).collect();
        let fits = |(cpu, thread): &(&u32, &u32)| {
            moments.get(cpu).is_some_and(|moments| self.hits(**thread, moments).is_most(SURE))
        };
        let mut threads: BTreeMap<u32, u32> =
            in_order.iter().filter(fits).map(|(cpu, thread)| (*cpu, *thread)).collect();
        let is_left = |threads: &BTreeMap<u32, u32>, thread: &u32| threads.values().all(|taken| taken != thread);
        for (cpu, moments) in moments {
            let left = in_order.values().filter(|thread| is_left(&threads, thread));
            let best =
                left.max_by_key(|thread| (self.hits(**thread, moments).share(), in_order.get(cpu) == Some(thread)));
            if let Some(thread) = best.filter(|_| !threads.contains_key(cpu)) {
                threads.insert(*cpu, *thread);
            }
        }
        for (cpu, thread) in in_order {
            if !threads.contains_key(&cpu) && is_left(&threads, &thread) {
                threads.insert(cpu, thread);
            }
        }
        threads
    }
}

/// Moments that were tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Number in the guest's time.
    pub inside: u64,
    /// Number of all.
    pub all: u64,
}

impl Hits {
    /// Share of a million.
    fn share(self) -> u64 {
        self.inside * 1_000_000 / self.all.max(1)
    }

    /// True if it is at least this share of a million, and of enough moments to be conclusive.
    fn is_most(self, share: u64) -> bool {
        self.all >= FEW && self.share() >= share
    }
}

/// The host of each machine, if it is a guest.
pub fn find(machines: &[&Traced]) -> Vec<Option<Fit>> {
    let mut found: Vec<Option<Fit>> =
        machines.iter().enumerate().map(|(n, guest)| host_of(machines, n, guest)).collect();
    // No machine is inside of itself, however far around.
    for n in 0..found.len() {
        let mut above = BTreeSet::from([n]);
        let mut at = n;
        while let Some(fit) = &found[at] {
            at = fit.inside.host;
            if !above.insert(at) {
                found[n] = None;
                break;
            }
        }
    }
    found
}

fn host_of(machines: &[&Traced], n: usize, guest: &Traced) -> Option<Fit> {
    if !guest.is_guest {
        return None;
    }
    told(machines, n, guest).or_else(|| {
        let silent = machines.iter().enumerate().filter(|(host, traced)| *host != n && traced.vcpus.is_empty());
        let mut fits = silent.flat_map(|(at, host)| proposed(at, host, guest));
        // If two fit, neither is known.
        fits.next().filter(|_| fits.next().is_none())
    })
}

/// The possible shifts of a guest in a host without the scale of the counter, for which nearly all events of the guest
/// fit.
fn proposed(at: usize, host: &Traced, guest: &Traced) -> Vec<Fit> {
    let (Some(first), Some(last)) = (guest.moments.first(), guest.moments.last()) else { return Vec::new() };
    let proposals = halt::proposals(&guest.pauses, &host.halts, (first.1, last.1));
    let numbered: BTreeMap<u32, u32> = (0..).zip(host.runs.keys().copied()).collect();
    let fits = proposals.into_iter().map(|shift| fit(at, host, guest, ("", &numbered, shift)));
    let is_proven = |fit: &Fit| fit.hits.is_most(PROVEN) && fit.hits.all * 2 >= guest.moments.len() as u64;
    fits.filter(is_proven).map(|fit| Fit { is_found: true, ..fit }).collect()
}

/// The fit of a guest in a host with this shift from its time, and the threads that run its CPUs.
fn fit(at: usize, host: &Traced, guest: &Traced, (name, numbered, shift): (&str, &BTreeMap<u32, u32>, Shift)) -> Fit {
    let mut moments: BTreeMap<u32, Vec<Time>> = BTreeMap::new();
    guest.moments.iter().for_each(|(cpu, at)| moments.entry(*cpu).or_default().push(shift.at(*at)));
    let threads = host.threads(numbered, &moments);
    let hits = threads.iter().filter_map(|(cpu, thread)| Some(host.hits(*thread, moments.get(cpu)?)));
    let hits = hits.fold(Hits::default(), |sum, one| Hits { inside: sum.inside + one.inside, all: sum.all + one.all });
    Fit { inside: Inside { host: at, guest: name.to_string(), threads }, shift, is_found: false, hits }
}

/// The host of a guest, from the scales that hosts report for the counters of their guests.
fn told(machines: &[&Traced], n: usize, guest: &Traced) -> Option<Fit> {
    let own = guest.counter?;
    let others = machines.iter().enumerate().filter(|(host, _)| *host != n);
    let fits = others.flat_map(|(at, host)| {
        let counter = host.counter.into_iter();
        counter.flat_map(move |counter| host.guests().into_iter().map(move |guest| (at, *host, counter, guest)))
    });
    let fits = fits.filter_map(|(host, traced, counter, (name, (numbered, scale)))| {
        let fit = fit(host, traced, guest, (name, &numbered, line(own, counter, scale)));
        fit.hits.is_most(MOST).then_some(fit)
    });
    fits.max_by_key(|fit| fit.hits.inside)
}

/// The line from a guest's time to its host's.
fn line(guest: Counter, host: Counter, scale: Scale) -> Shift {
    let from = guest.clock.tsc_units(guest.from.into());
    let far = from.saturating_add(Time(1 << 36));
    let on_host = |at: Time| host.clock.picoseconds(scale.host(guest.clock.counter_at(at)));
    let (first, length) = (on_host(from), i128::from((far - from).0) * UNIT);
    let ahead = first - i128::from(from.0) * UNIT;
    let gained = on_host(far) - first - length;
    let piece = Piece {
        from,
        offset: Time(ahead.div_euclid(UNIT) as i64),
        fraction: ((ahead.rem_euclid(UNIT) << POINT) / UNIT) as i64,
        rate: ((gained << POINT) / length) as i64,
        // Both sides' times are rounded down to units.
        within: Some(Time(2)),
    };
    Shift(vec![piece])
}

/// The shift from a host's time to its guest's, given the opposite one.
pub fn back(shift: &Shift) -> Shift {
    let pieces = shift.0.iter().map(|piece| {
        let whole = 1i128 << POINT;
        let slope = (whole + i128::from(piece.rate)).max(1);
        let first = piece.from.saturating_add(piece.offset);
        Piece {
            from: first,
            offset: piece.from.saturating_sub(first),
            fraction: (-(i128::from(piece.fraction) << POINT) / slope) as i64,
            rate: (-(i128::from(piece.rate) << POINT) / slope) as i64,
            within: piece.within.map(|within| within + Time::UNIT),
        }
    });
    Shift(pieces.collect())
}

/// One shift after the other: from a guest's time to its host's, and from there to that of all. Where either of them
/// continues with another line, so does the whole.
pub fn through(shift: &Shift, host: &Shift) -> Shift {
    let mut pieces = Vec::new();
    for (n, own) in shift.0.iter().enumerate() {
        let until = shift.0.get(n + 1).map_or(Time::MAX, |next| next.from);
        for (m, of_host) in host.0.iter().enumerate() {
            let from = if m == 0 { own.from } else { reaches(own, of_host.from).max(own.from) };
            let is_left_at_once = host.0.get(m + 1).is_some_and(|next| reaches(own, next.from) <= from);
            if from < until && !is_left_at_once {
                pieces.push(after(own, of_host, from));
            }
        }
    }
    Shift(pieces)
}

/// The first time at which a line is not below a value.
fn reaches(line: &Piece, value: Time) -> Time {
    first_time(-(1 << 61)..1 << 61, |at| line.at(at) >= value)
}

/// Two lines, one after the other, as one that begins at `from`.
fn after(own: &Piece, host: &Piece, from: Time) -> Piece {
    let part = (1i128 << POINT) - 1;
    // The offset is a number of units, and a fraction of one.
    let own_added = added(own, i128::from((from.saturating_sub(own.from)).0), 0);
    let on_host = i128::from(from.0) + (own_added >> POINT);
    let host_added = added(host, on_host - i128::from(host.from.0), own_added & part);
    let all = own_added + host_added;
    let product = (i128::from(own.rate) * i128::from(host.rate)) >> POINT;
    Piece {
        from,
        offset: Time((all >> POINT) as i64),
        fraction: (all & part) as i64,
        rate: (i128::from(own.rate) + i128::from(host.rate) + product) as i64,
        within: own.within.zip(host.within).map(|(own, host)| own + host),
    }
}

/// The offset of a line this many units and fractions of one after its start, in fractions.
fn added(line: &Piece, units: i128, parts: i128) -> i128 {
    let rate = i128::from(line.rate);
    (i128::from(line.offset.0) << POINT) + i128::from(line.fraction) + units * rate + ((parts * rate) >> POINT)
}
