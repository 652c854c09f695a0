// SPDX-License-Identifier: BSD-3-Clause
//! The traces of several machines, read as one: in time order, and for equal times the earlier machine's event first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kutrace_format::capability::Unseen;

use super::file::Machine;
use super::inside::{Inside, Traced};
use super::nest::{Nest, Tally};
use super::packet::Packets;
use super::place::Known;
use super::renumber::Renumber;
use super::shift::first_time;
use crate::event::names::Names;
use crate::event::{self, date, number, BlockLine, Event, Meta};
use crate::id::{CpuId, Pid};
use crate::raw::damage::Damage;
use crate::raw::decode::Counts;
use crate::raw::maps::Place;
use crate::raw::trace::{Decode, Head, Trace};
use crate::readable::count;
use crate::time::Time;

/// Format of the whole, whatever the formats of its parts.
const FORMAT: u32 = 5;

/// All machines of a file.
pub struct Machines<'a> {
    machines: Vec<One<'a>>,
    damage: Vec<Damage>,
    /// The minute of the first machine, in Unix seconds.
    base: i64,
}

struct One<'a> {
    name: String,
    clock: String,
    inside: Option<Inside>,
    trace: Box<dyn Trace + 'a>,
    renumber: Renumber,
}

/// The facts about a machine that are needed to place it, from its trace; named after its host, or else `name`.
pub fn known(trace: &dyn Trace, name: &str) -> Known {
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let (mut packets, mut host) = (Packets::default(), None);
    let mut guests = Traced::new(trace.counter());
    while let Some(event) = decoder.next(&mut names) {
        packets.event(&event, &names);
        guests.event(&event, &names);
        if event.event() == number::HOST_NAME {
            host = Some(names.text(event.name).to_string()).filter(|host| !host.is_empty() && !host.contains('('));
        }
    }
    let intervals = decoder.meta().intervals;
    let from = intervals.iter().map(|i| i.from).min().unwrap_or_default();
    let to = intervals.iter().map(|i| i.to).max().unwrap_or_default();
    Known { name: host.unwrap_or(name.to_string()), base: trace.head().base, traced: (from, to), packets, guests }
}

impl<'a> Machines<'a> {
    /// The machines of a file, each with its opened trace.
    pub fn new(parts: Vec<(Machine, Box<dyn Trace + 'a>)>, damage: Vec<Damage>) -> Machines<'a> {
        let first = parts.first().map_or(0, |(_, trace)| trace.head().base);
        // All times must be after the minute that they count from.
        let start = |(machine, trace): &(Machine, Box<dyn Trace + 'a>)| {
            let begin = trace.decoder(&mut Names::default()).meta().intervals.iter().map(|i| i.from).min();
            machine.shift.at(begin.unwrap_or_default())
        };
        let minute = 60 * Time::SECOND.0;
        let earliest = parts.iter().map(start).min().unwrap_or_default().0.div_euclid(minute).min(0);
        let later = Time(earliest.saturating_mul(-minute));
        let mut first_cpu = 0;
        let machines = parts.into_iter().enumerate().map(|(n, (machine, trace))| {
            let known = trace.decoder(&mut Names::default()).meta().intervals;
            let cpus = known.iter().map(|i| i.cpu.number() + 1).max().unwrap_or_default();
            let renumber = Renumber { machine: n as u32, first_cpu, cpus, shift: machine.shift.later(later) };
            first_cpu += cpus;
            One { name: machine.name, clock: machine.clock, inside: machine.inside, trace, renumber }
        });
        Machines { machines: machines.collect(), damage, base: first.saturating_add(earliest.saturating_mul(60)) }
    }

    /// The host of a machine, in the numbers of all machines.
    fn inside(&self, one: &One) -> Option<event::Inside> {
        let inside = one.inside.as_ref()?;
        let host = self.machines.get(inside.host)?;
        let thread = |thread: &u32| host.renumber.pid(Pid::new(*thread)).number();
        let threads = (0..one.renumber.cpus).map(|cpu| inside.threads.get(&cpu).map_or(0, thread));
        Some(event::Inside { host: inside.host as u32, threads: threads.collect() })
    }

    /// A decoder of all machines; names are kept in `names`.
    pub fn decoding<'t>(&'t self, names: &mut Names) -> Decoding<'t> {
        let parts = self.machines.iter().map(|one| {
            let mut decoder = one.trace.decoder(names);
            let next = following(&mut *decoder, &one.renumber, names);
            Part { one, decoder, next }
        });
        let parts: Vec<Part> = parts.collect();
        Decoding { all: self.about(), nest: self.nest(&parts), parts, follows: VecDeque::new() }
    }

    /// The guests among them.
    fn nest(&self, parts: &[Part]) -> Nest {
        let mut nest = Nest::default();
        for (n, Part { one, decoder, .. }) in parts.iter().enumerate() {
            let Some(inside) = &one.inside else { continue };
            let Some(Part { one: host, decoder: of_host, .. }) = parts.get(inside.host) else { continue };
            let told = of_host.meta().intervals.iter().map(|i| host.renumber.time(i.to)).max().unwrap_or_default();
            for traced in &decoder.meta().intervals {
                if let Some(&thread) = inside.threads.get(&traced.cpu.number()) {
                    nest.add(n, one.renumber.interval(*traced), host.renumber.pid(Pid::new(thread)), told);
                }
            }
        }
        nest
    }

    fn about(&self) -> Meta {
        let machines = self.machines.iter().map(|one| event::Machine {
            name: one.name.clone(),
            first_cpu: one.renumber.first_cpu,
            clock: one.clock.clone(),
            within: one.renumber.shift.within(),
            unseen: unseen(one).0,
            inside: self.inside(one),
        });
        Meta {
            format: FORMAT,
            base: date::utc(self.base),
            quality: self.damage.iter().map(Damage::to_string).collect(),
            machines: machines.collect(),
            ..Meta::default()
        }
    }
}

impl Trace for Machines<'_> {
    fn head(&self) -> Head {
        let mut all = Head { format: FORMAT, flags: 0, unseen: Unseen::default(), base: self.base, blocks: Vec::new() };
        for one in &self.machines {
            let head = one.trace.head();
            all.flags |= head.flags;
            all.unseen = all.unseen.and(unseen(one));
            let before = all.blocks.len();
            all.blocks.extend(head.blocks.iter().map(|b| BlockLine {
                ts: one.renumber.time(b.ts),
                cpu: one.renumber.cpu(b.cpu.number()),
                index: before + b.index,
            }));
        }
        all.blocks.sort_by_key(|block| (block.ts, block.index));
        all
    }

    fn decoder<'t>(&'t self, names: &mut Names) -> Box<dyn Decode + 't> {
        Box::new(self.decoding(names))
    }

    /// The part of the CPU's machine alone; times on another machine's clock are found by search.
    fn part<'t>(&'t self, cpu: CpuId, (from, to): (Time, Time)) -> Box<dyn Trace + 't> {
        let has =
            |one: &&One| (one.renumber.first_cpu..one.renumber.first_cpu + one.renumber.cpus).contains(&cpu.number());
        let machines = self.machines.iter().filter(has).map(|one| {
            let local = CpuId::new(cpu.number() - one.renumber.first_cpu);
            let range = (back(&one.renumber, from), back(&one.renumber, to));
            One {
                name: one.name.clone(),
                clock: one.clock.clone(),
                inside: None,
                trace: one.trace.part(local, range),
                renumber: one.renumber.clone(),
            }
        });
        Box::new(Machines { machines: machines.collect(), damage: Vec::new(), base: self.base })
    }

    fn notes(&self) -> Vec<String> {
        self.machines.iter().flat_map(|one| one.trace.notes().into_iter().map(|note| said(one, &note))).collect()
    }

    fn places(&self) -> BTreeSet<Place> {
        self.machines.iter().flat_map(|one| one.trace.places()).collect()
    }

    fn tell(&mut self, functions: &BTreeMap<Place, String>) {
        self.machines.iter_mut().for_each(|one| one.trace.tell(functions));
    }

    fn forget_functions(&mut self) {
        self.machines.iter_mut().for_each(|one| one.trace.forget_functions());
    }
}

/// The first time of a machine that is not before this time of all machines.
fn back(renumber: &Renumber, at: Time) -> Time {
    first_time(0..1 << 60, |own| renumber.time(own) >= at)
}

/// Capabilities that a machine's source lacks.
fn unseen(one: &One) -> Unseen {
    let head = one.trace.head();
    head.unseen.and(Unseen::of_format(head.format))
}

fn said(one: &One, sentence: &str) -> String {
    format!("{}: {sentence}", one.name)
}

/// Decoder of all machines.
pub struct Decoding<'t> {
    all: Meta,
    parts: Vec<Part<'t>>,
    nest: Nest,
    /// Events of guests that follow from the last event of a host.
    follows: VecDeque<Event>,
}

struct Part<'t> {
    one: &'t One<'t>,
    decoder: Box<dyn Decode + 't>,
    next: Option<Event>,
}

/// The next event of a machine, renumbered for all machines.
fn following(decoder: &mut dyn Decode, renumber: &Renumber, names: &mut Names) -> Option<Event> {
    loop {
        let event = decoder.next(names)?;
        if let Some(event) = renumber.event(event) {
            return Some(event);
        }
    }
}

impl Decoding<'_> {
    /// The next event of any machine.
    pub fn next(&mut self, names: &mut Names) -> Option<Event> {
        if let Some(event) = self.follows.pop_front() {
            return Some(event);
        }
        let waiting = self.parts.iter_mut().filter(|part| part.next.is_some());
        let part = waiting.min_by_key(|part| part.next.map(|event| event.ts))?;
        let following = following(&mut *part.decoder, &part.one.renumber, names);
        let event = std::mem::replace(&mut part.next, following)?;
        self.nest.event(&event, names, &mut self.follows);
        Some(event)
    }

    /// Placement of the events so far, for every guest whose host is among the machines.
    pub fn nested(&self) -> Vec<(&str, String)> {
        let machines = self.parts.iter().map(|part| part.one).enumerate();
        let guests = machines.filter_map(|(n, one)| Some((n, one, self.parts.get(one.inside.as_ref()?.host)?.one)));
        let told = guests.map(|(n, one, host)| {
            let Tally { inside, outside, untold } = self.nest.tally(n);
            let all = count(inside + outside, "event", "events");
            let others = count(untold, "other", "others");
            let told = format!("{inside} of {all} lie in the time in which {} ran its CPUs", host.name);
            let rest = format!("; its trace does not show this for {others}");
            (one.name.as_str(), if untold > 0 { told + &rest } else { told })
        });
        told.collect()
    }
}

impl Decode for Decoding<'_> {
    fn next(&mut self, names: &mut Names) -> Option<Event> {
        Decoding::next(self, names)
    }

    fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for counts in self.parts.iter().map(|part| part.decoder.counts()) {
            all.events += counts.events;
            all.unknown_returns += counts.unknown_returns;
            all.gaps += counts.gaps;
            all.disagreements += counts.disagreements;
            all.unplaced += counts.unplaced;
        }
        all
    }

    fn notes(&self) -> Vec<String> {
        self.parts.iter().flat_map(|part| part.decoder.notes().into_iter().map(|note| said(part.one, &note))).collect()
    }

    fn meta(&self) -> Meta {
        let mut all = self.all.clone();
        for part in &self.parts {
            let meta = part.decoder.meta();
            all.unseen |= meta.unseen().0;
            all.flags |= meta.flags;
            all.lost = all.lost.saturating_add(meta.lost);
            all.quality.extend(meta.quality.iter().map(|sentence| said(part.one, sentence)));
            all.counted.extend(meta.counted.iter().map(|sentence| said(part.one, sentence)));
            all.intervals.extend(meta.intervals.iter().map(|i| part.one.renumber.interval(*i)));
        }
        all.counted.extend(self.nested().iter().map(|(machine, sentence)| format!("{machine}: {sentence}")));
        all
    }
}
