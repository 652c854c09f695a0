// SPDX-License-Identifier: BSD-3-Clause
//! Inside: which machine is a guest of which other, and how its time follows from that one's.
//!
//! A host's trace has, of each virtual CPU, the thread that runs it, when it entered its guest and left it, and how the
//! guest's counter follows from the host's. So if a trace is that of a guest, its times become the host's without any
//! guess, and by these its events lie in the time in which the thread of their CPU was in the guest. Of another machine
//! that is not so, and nothing else is asked.

use std::collections::{BTreeMap, BTreeSet};

use kutrace_format::vcpu::{Scale, Vcpu};
use serde::{Deserialize, Serialize};

use super::shift::{Piece, Shift, POINT};
use crate::event::names::Names;
use crate::event::point::Point;
use crate::event::what::What;
use crate::event::{number, Event};
use crate::raw::trace::Counter;
use crate::time::Time;

/// Of a guest's events no more than this are asked where they lie.
const ASKED: usize = 1 << 16;
/// A machine is a guest if at least this many of a hundred lie in it. A wrong counter puts them anywhere.
const MOST: u64 = 90;
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
    /// Events that lie in the guest's time by that, and all that were asked.
    pub hits: (u64, u64),
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
            What::Name(number::VCPU) => drop(self.vcpus.insert(e.arg, names.text(e.name).to_string())),
            What::Name(number::HYPERVISOR) => self.is_guest = true,
            What::Name(_) => {}
            What::Point(Point::GuestEnter) => drop(self.entered.insert(thread, e.ts)),
            What::Point(Point::GuestExit) => {
                if let Some(from) = self.entered.remove(&thread) {
                    self.runs.entry(thread).or_default().push((from, e.ts));
                }
            }
            _ => self.moment(e),
        }
    }

    /// Keeps some of all moments, evenly.
    fn moment(&mut self, e: &Event) {
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

    /// The guests that the machine runs: the name of each, the thread of each of its CPUs, and its counter's way.
    fn guests(&self) -> BTreeMap<&str, (BTreeMap<u32, u32>, Scale)> {
        let mut guests: BTreeMap<&str, (BTreeMap<u32, u32>, Scale)> = BTreeMap::new();
        for (thread, vcpu) in self.vcpus.iter().filter_map(|(thread, text)| Some((*thread, Vcpu::read(text)?))) {
            let guest = guests.entry(vcpu.guest).or_insert_with(|| (BTreeMap::new(), vcpu.scale));
            guest.0.insert(vcpu.number, thread);
        }
        guests
    }

    /// Of the events that happened while the host traced the thread of their CPU, how many lie in the guest's time.
    fn hits(&self, host: &Traced, threads: &BTreeMap<u32, u32>, shift: &Shift) -> (u64, u64) {
        let mut hits = (0, 0);
        for (cpu, at) in &self.moments {
            let Some(runs) = threads.get(cpu).and_then(|thread| host.runs.get(thread)) else { continue };
            let at = shift.at(*at);
            let Some((first, last)) = runs.first().zip(runs.last()) else { continue };
            if at < first.0 || at > last.1 {
                continue;
            }
            let next = runs.partition_point(|run| run.0 <= at);
            hits.0 += u64::from(next > 0 && at <= runs[next - 1].1);
            hits.1 += 1;
        }
        hits
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
    let own = guest.counter.filter(|_| guest.is_guest)?;
    let others = machines.iter().enumerate().filter(|(host, _)| *host != n);
    let fits = others.flat_map(|(at, host)| {
        let counter = host.counter.into_iter();
        counter.flat_map(move |counter| host.guests().into_iter().map(move |guest| (at, *host, counter, guest)))
    });
    let fits = fits.filter_map(|(host, traced, counter, (name, (threads, scale)))| {
        let shift = line(own, counter, scale);
        let hits = guest.hits(traced, &threads, &shift);
        let inside = Inside { host, guest: name.to_string(), threads };
        (hits.1 >= FEW && hits.0 * 100 >= hits.1 * MOST).then_some(Fit { inside, shift, hits })
    });
    fits.max_by_key(|fit| fit.hits.0)
}

/// The line from a guest's time to its host's.
fn line(guest: Counter, host: Counter, scale: Scale) -> Shift {
    let from = guest.clock.units_of(guest.from);
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
        let far = piece.from.saturating_add(Time(1 << 36));
        let [first, last] = [piece.from, far].map(|at| piece.at(at));
        let length = i128::from((last - first).0);
        let gained = i128::from((far - piece.from).0) - length;
        Piece {
            from: first,
            offset: piece.from.saturating_sub(first),
            fraction: 0,
            rate: ((gained << POINT) / length) as i64,
            within: piece.within.map(|within| within + Time::UNIT),
        }
    });
    Shift(pieces.collect())
}

/// The same line, from a guest's time to that of all, given the host's.
pub fn through(shift: &Shift, host: &Shift) -> Shift {
    let pieces = shift.0.iter().map(|piece| {
        let far = piece.from.saturating_add(Time(1 << 36));
        let [first, last] = [piece.from, far].map(|at| host.at(piece.at(at)));
        let length = i128::from((far - piece.from).0);
        let gained = i128::from((last - first).0) - length;
        Piece {
            offset: first.saturating_sub(piece.from),
            fraction: 0,
            rate: ((gained << POINT) / length) as i64,
            within: piece.within.zip(host.within()).map(|(own, host)| own + host),
            ..*piece
        }
    });
    match host.0[..] {
        [one] if one.at(Time::ZERO) == Time::ZERO && one.rate == 0 => shift.clone(),
        _ => Shift(pieces.collect()),
    }
}
