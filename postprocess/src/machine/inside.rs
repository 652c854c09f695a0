// SPDX-License-Identifier: BSD-3-Clause
//! Inside: which machine is a guest of which other, and how its time follows from that one's.
//!
//! A host's trace has, of each virtual CPU, the thread that runs it, when it entered its guest and left it, and how the
//! guest's counter follows from the host's. So if a trace is that of a guest, its times become the host's without any
//! guess, and by these its events lie in the time in which the thread of their CPU was in the guest. Of another machine
//! that is not so, and nothing else is asked.
//!
//! Where the host's trace does not say how the counter follows, [`super::halt`] proposes it from when the guest's CPUs had
//! nothing to do. The one by which nearly all events lie inside is taken, if there is no other.

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

/// Of a guest's events no more than this are asked where they lie.
const ASKED: usize = 1 << 16;
/// A machine is a guest if at least this many of a million lie in it. A wrong counter puts them anywhere.
const MOST: u64 = 900_000;
/// A thread runs a CPU for sure if at least this many do.
const SURE: u64 = 999_000;
/// A proposal is taken if at least this many do.
const PROVEN: u64 = 999_900;
/// Fewer events than this say nothing.
const FEW: u64 = 20;
/// Picoseconds of a unit of time.
const UNIT: i128 = 10_000;

/// Whose guest a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// The place of its host among the machines.
    pub host: usize,
    /// The guest's name there.
    pub guest: String,
    /// By CPU of the guest: the thread of the host that runs it.
    pub threads: BTreeMap<u32, u32>,
}

/// What a trace has of guests: of those that its machine runs, or of the machine as one.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// The counter that its times are made of, where that is known.
    counter: Option<Counter>,
    /// Whether the machine says that it is a guest.
    is_guest: bool,
    /// The virtual CPUs that the machine runs: thread, and text.
    vcpus: BTreeMap<u32, String>,
    /// When their threads were in their guests.
    runs: BTreeMap<u32, Vec<(Time, Time)>>,
    entered: BTreeMap<u32, Time>,
    /// When virtual CPUs that had nothing to do were out of their guests, and since when.
    halts: Pauses,
    halted: BTreeMap<u32, Time>,
    /// When CPUs that had nothing to do recorded nothing, and what was last on each: its end, and whether it was idle.
    pauses: Pauses,
    last: BTreeMap<u32, (Time, bool)>,
    /// When something happened on a CPU: one of `every` events.
    moments: Vec<(u32, Time)>,
    every: usize,
    seen: usize,
}

/// A machine that is a guest, and its way to its host's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Whose.
    pub inside: Inside,
    /// From its time to the host's.
    pub shift: Shift,
    /// Whether nobody tells, and it was found by when the guest had nothing to do.
    pub is_found: bool,
    /// Events that lie in the guest's time by that, of those that were asked.
    pub hits: Hits,
}

impl Traced {
    /// What is to be found in a trace with this counter.
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

    /// Whether the machine is a guest, and may be one of another's that has run some.
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

    /// The guests that the machine runs: the name of each, by number of its CPUs their threads, and its counter's way.
    fn guests(&self) -> BTreeMap<&str, (BTreeMap<u32, u32>, Scale)> {
        let mut guests: BTreeMap<&str, (BTreeMap<u32, u32>, Scale)> = BTreeMap::new();
        for (thread, vcpu) in self.vcpus.iter().filter_map(|(thread, text)| Some((*thread, Vcpu::read(text)?))) {
            let guest = guests.entry(vcpu.guest).or_insert_with(|| (BTreeMap::new(), vcpu.scale));
            guest.0.insert(vcpu.number, thread);
        }
        guests
    }

    /// Of moments that the host traced a thread at, how many lie in the guest's time.
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

    /// By CPU of a guest, the thread that runs it: KVM's numbers of virtual CPUs are those of the processors' interrupt
    /// controllers, of which some may be left out, and a guest counts its CPUs on in their order. Where that does not
    /// fit, it is the one in whose time most of the CPU's events lie.
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

/// Moments that were asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Those in the guest's time.
    pub inside: u64,
    /// All.
    pub all: u64,
}

impl Hits {
    /// Of a million.
    fn share(self) -> u64 {
        self.inside * 1_000_000 / self.all.max(1)
    }

    /// Whether it is at least this part of a million, and of enough to say anything.
    fn is_most(self, share: u64) -> bool {
        self.all >= FEW && self.share() >= share
    }
}

/// For each machine, whose guest it is, if it is one's.
pub fn find(machines: &[&Traced]) -> Vec<Option<Fit>> {
    let mut found: Vec<Option<Fit>> =
        machines.iter().enumerate().map(|(n, guest)| host_of(machines, n, guest)).collect();
    // Nobody is inside of himself, however far around.
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
        // Of two that fit none is known.
        fits.next().filter(|_| fits.next().is_none())
    })
}

/// How a guest may lie in a host that does not say how its counter follows, as far as nearly all of its events fit.
fn proposed(at: usize, host: &Traced, guest: &Traced) -> Vec<Fit> {
    let (Some(first), Some(last)) = (guest.moments.first(), guest.moments.last()) else { return Vec::new() };
    let proposals = halt::proposals(&guest.pauses, &host.halts, (first.1, last.1));
    let numbered: BTreeMap<u32, u32> = (0..).zip(host.runs.keys().copied()).collect();
    let fits = proposals.into_iter().map(|shift| fit(at, host, guest, ("", &numbered, shift)));
    let is_proven = |fit: &Fit| fit.hits.is_most(PROVEN) && fit.hits.all * 2 >= guest.moments.len() as u64;
    fits.filter(is_proven).map(|fit| Fit { is_found: true, ..fit }).collect()
}

/// How a guest lies in a host by this way from its time, and which threads run its CPUs.
fn fit(at: usize, host: &Traced, guest: &Traced, (name, numbered, shift): (&str, &BTreeMap<u32, u32>, Shift)) -> Fit {
    let mut moments: BTreeMap<u32, Vec<Time>> = BTreeMap::new();
    guest.moments.iter().for_each(|(cpu, at)| moments.entry(*cpu).or_default().push(shift.at(*at)));
    let threads = host.threads(numbered, &moments);
    let hits = threads.iter().filter_map(|(cpu, thread)| Some(host.hits(*thread, moments.get(cpu)?)));
    let hits = hits.fold(Hits::default(), |sum, one| Hits { inside: sum.inside + one.inside, all: sum.all + one.all });
    Fit { inside: Inside { host: at, guest: name.to_string(), threads }, shift, is_found: false, hits }
}

/// Whose guest it is, by what hosts say of the counters of their guests.
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

/// From a host's time to its guest's, given the way there.
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

/// One way after the other: from a guest's time to its host's, and from there to that of all. Where one of them goes on
/// by another line, so does the whole.
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
    // What is added is a number of units, and a part of one.
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

/// What a line adds at some units and parts of one after it begins, in parts.
fn added(line: &Piece, units: i128, parts: i128) -> i128 {
    let rate = i128::from(line.rate);
    (i128::from(line.offset.0) << POINT) + i128::from(line.fraction) + units * rate + ((parts * rate) >> POINT)
}
