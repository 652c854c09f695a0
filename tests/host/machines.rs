// SPDX-License-Identifier: BSD-3-Clause
//! Several machines on one clock: for any clocks and network, as far as the test but not the reader knows, no packet
//! arrives before it was sent, and the truth lies within the reported bound.

use std::path::Path;

use kutrace_format::capability::{Capability, Unseen};
use kutrace_tests::busy;
use postprocess::event::{Event, Events};
use postprocess::id::Pid;
use postprocess::machine::file::{self, Machine};
use postprocess::machine::packet::{Key, Packets};
use postprocess::machine::place::{place, By, Known, Placed};
use postprocess::machine::shift::Shift;
use postprocess::raw::damage::NotATrace;
use postprocess::sink::json;
use postprocess::source;
use postprocess::span::limit::SpanLimit;
use postprocess::span::what::What;
use postprocess::span::{build, check, Span, Spans, Tally};
use postprocess::time::Time;

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// From 0 to 1.
    fn part(&mut self) -> f64 {
        self.below(1 << 40) as f64 / (1u64 << 40) as f64
    }
}

/// A machine's clock: its reading at a true moment, in units.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    offset: f64,
    rate: f64,
    /// From this moment on, it has stepped by this much.
    step: (f64, f64),
    /// Drift of its rate, in units over the time of the trace.
    wander: f64,
}

impl Clock {
    fn shows(&self, at: f64) -> Time {
        let step = if at >= self.step.0 && self.step.1 != 0.0 { self.step.1 } else { 0.0 };
        let wander = self.wander * (at / LENGTH * 6.0).sin();
        Time((at * (1.0 + self.rate) + self.offset + step + wander).floor() as i64)
    }
}

/// Ten seconds.
const LENGTH: f64 = 1e9;

/// A network: the least time of a packet, from the first machine of a pair and to it, and the mean of the additional
/// time; in units.
#[derive(Clone, Copy, Debug)]
struct Network {
    least: (f64, f64),
    jitter: f64,
    lost: f64,
    /// Number of packets with the hash of another.
    same: f64,
}

const LAN: Network = Network { least: (500.0, 500.0), jitter: 1500.0, lost: 0.0, same: 0.0 };

struct World {
    clocks: Vec<Clock>,
    packets: Vec<Packets>,
    dice: Dice,
    key: u64,
}

impl World {
    fn new(clocks: &[Clock], seed: u64) -> World {
        let packets = vec![Packets::default(); clocks.len()];
        World { clocks: clocks.to_vec(), packets, dice: Dice(0x9e37_79b9_7f4a_7c15 ^ (seed + 1) << 17), key: 0 }
    }

    /// One machine sends a packet to another.
    fn send(&mut self, from: usize, to: usize, at: f64, network: Network) {
        let least = if from < to { network.least.0 } else { network.least.1 };
        // Most take little more than the least time, a few much more.
        let taken = least + network.jitter * -(1.0 - self.dice.part()).ln() * (1.0 + 9.0 * self.dice.part().powi(8));
        self.key += 1;
        let key = if self.dice.part() < network.same { self.dice.below(self.key) } else { self.key };
        let key = Key::Hash(key as u32);
        self.packets[from].sent(key, self.clocks[from].shows(at));
        if self.dice.part() >= network.lost {
            self.packets[to].received(key, self.clocks[to].shows(at + taken));
        }
    }

    /// Packets between two machines, this many each way.
    fn talk(&mut self, a: usize, b: usize, (there, back): (usize, usize), network: Network) {
        for (from, to, count) in [(a, b, there), (b, a, back)] {
            for _ in 0..count {
                let at = self.dice.part() * LENGTH;
                self.send(from, to, at, network);
            }
        }
    }

    fn known(&self) -> Vec<Known> {
        let one = |n: usize| Known {
            name: ["a", "b", "c"][n].to_string(),
            base: 0,
            traced: (self.clocks[n].shows(0.0), self.clocks[n].shows(LENGTH)),
            packets: self.packets[n].clone(),
            ..Known::default()
        };
        (0..self.clocks.len()).map(one).collect()
    }

    fn place(&self) -> Vec<Placed> {
        place(&self.known())
    }

    /// The largest error of a machine, in units, from some moment to another.
    fn error(&self, placed: &Placed, machine: usize, (from, to): (f64, f64)) -> i64 {
        let moments = (0..=1000).map(|n| from + (to - from) * f64::from(n) / 1000.0);
        let error = |at| (placed.shift.at(self.clocks[machine].shows(at)) - self.clocks[0].shows(at)).0.abs();
        moments.map(error).max().unwrap_or_default()
    }
}

fn clock(dice: &mut Dice) -> Clock {
    let signed = |dice: &mut Dice| dice.part() * 2.0 - 1.0;
    Clock { offset: signed(dice) * 1e12, rate: signed(dice) * 200e-6, ..Clock::default() }
}

/// Error that a machine reports for itself.
fn within(placed: &Placed) -> i64 {
    assert_eq!(placed.by, By::Packets, "{placed:?}");
    placed.shift.within().expect("a bound").0
}

#[test]
fn the_truth_lies_within_the_bound_whatever_clocks_and_network_do() {
    for seed in 0..60 {
        let mut dice = Dice(seed * 7919 + 13);
        let mut world = World::new(&[Clock::default(), clock(&mut dice)], seed);
        let least = (10.0 + dice.part() * 5000.0, 10.0 + dice.part() * 5000.0);
        let network = Network { least, jitter: 10.0 + dice.part() * 5000.0, lost: dice.part() * 0.3, same: 0.0 };
        let counts = (2 + dice.below(3000) as usize, 2 + dice.below(3000) as usize);
        world.talk(0, 1, counts, network);
        let placed = world.place();
        let (error, within) = (world.error(&placed[1], 1, (0.0, LENGTH)), within(&placed[1]));
        assert!(error <= within, "seed {seed}: {error} units of error, reported as within {within}");
        assert_eq!((placed[1].early, placed[0].early, placed[1].mistaken), (0, 0, 0), "seed {seed}");
    }
}

#[test]
fn a_thousand_packets_a_second_on_a_quiet_network_give_a_microsecond() {
    for seed in 0..10 {
        let mut dice = Dice(seed * 104_729 + 1);
        let mut world = World::new(&[Clock::default(), clock(&mut dice)], seed);
        // 1 us there and back, and as much again on average.
        let network = Network { least: (100.0, 100.0), jitter: 100.0, lost: 0.0, same: 0.0 };
        world.talk(0, 1, (5000, 5000), network);
        let placed = world.place();
        assert!(within(&placed[1]) <= 200, "{placed:?}");
    }
}

#[test]
fn an_asymmetric_network_is_told_by_the_bound() {
    let mut world = World::new(&[Clock::default(), Clock { offset: 12345.0, rate: 1e-5, ..Clock::default() }], 3);
    world.talk(0, 1, (2000, 2000), Network { least: (100.0, 30_000.0), jitter: 100.0, ..LAN });
    let placed = world.place();
    let (error, within) = (world.error(&placed[1], 1, (0.0, LENGTH)), within(&placed[1]));
    assert!(error <= within && error > 10_000 && within < 20_000, "{error} {within}");
    assert_eq!(placed[1].early, 0);
}

#[test]
fn packets_that_are_taken_for_others_are_left_out() {
    for seed in 0..20 {
        let mut dice = Dice(seed * 31 + 5);
        let mut world = World::new(&[Clock::default(), clock(&mut dice)], seed);
        world.talk(0, 1, (2000, 2000), Network { lost: 0.05, same: 0.02, ..LAN });
        let placed = world.place();
        let (error, within) = (world.error(&placed[1], 1, (0.0, LENGTH)), within(&placed[1]));
        assert!(error <= within && within < 2000, "seed {seed}: {error} {within}");
        // Nothing else arrives too early.
        let early = placed[0].early + placed[1].early;
        assert!(early <= placed[1].mistaken && early < 60, "seed {seed}: {early} {}", placed[1].mistaken);
    }
}

#[test]
fn machines_are_placed_through_others() {
    for seed in 0..20 {
        let mut dice = Dice(seed * 77 + 9);
        let clocks = [Clock::default(), clock(&mut dice), clock(&mut dice)];
        for direct in [false, true] {
            let mut world = World::new(&clocks, seed);
            world.talk(0, 1, (500, 500), LAN);
            world.talk(1, 2, (500, 500), LAN);
            if direct {
                world.talk(0, 2, (20, 20), Network { jitter: 30_000.0, ..LAN });
            }
            let placed = world.place();
            for (machine, place) in placed.iter().enumerate().skip(1) {
                let error = world.error(place, machine, (0.0, LENGTH));
                let within = within(place);
                assert!(error <= within, "seed {seed}, machine {machine}: {error} {within}");
            }
            assert!(placed.iter().all(|p| p.early == 0), "seed {seed}: {placed:?}");
        }
    }
}

#[test]
fn a_clock_that_steps_is_followed_in_parts() {
    // A trace's own times never go back: a step back is held there, so only steps forward are left to see here.
    for (seed, step) in [1e5, 1e6, 5e7, 3e9].into_iter().enumerate() {
        let stepping = Clock { offset: 5e9, rate: 3e-5, step: (LENGTH / 2.0, step), ..Clock::default() };
        let mut world = World::new(&[Clock::default(), stepping], seed as u64);
        world.talk(0, 1, (3000, 3000), LAN);
        let placed = world.place();
        assert_eq!((placed[0].early, placed[1].early), (0, 0), "{:?}", placed[1]);
        assert_eq!(placed[1].shift.0.len(), 2, "{:?}", placed[1]);
        let within = within(&placed[1]);
        // The step is anywhere between two packets.
        for range in [(0.0, LENGTH * 0.495), (LENGTH * 0.505, LENGTH)] {
            let error = world.error(&placed[1], 1, range);
            assert!(error <= within, "step {step}: {error} {within}");
        }
    }
}

#[test]
fn a_rate_that_wanders_is_followed() {
    for (seed, wander) in [3000.0, 20_000.0].into_iter().enumerate() {
        let wandering = Clock { offset: -7e8, rate: -1e-5, wander, ..Clock::default() };
        let mut world = World::new(&[Clock::default(), wandering], seed as u64);
        world.talk(0, 1, (20_000, 20_000), Network { least: (100.0, 100.0), jitter: 200.0, lost: 0.0, same: 0.0 });
        let placed = world.place();
        let (error, within) = (world.error(&placed[1], 1, (0.0, LENGTH)), within(&placed[1]));
        assert!(placed[1].shift.0.len() > 1 && within < 1000, "{placed:?}");
        assert!(error <= within + 100, "wander {wander}: {error} {within}");
        assert!(placed[1].early + placed[0].early < 10, "{} {}", placed[0].early, placed[1].early);
    }
}

#[test]
fn packets_one_way_bound_nothing_and_none_leave_the_clock_of_the_day() {
    for (counts, by) in [((200, 0), By::OneWay), ((0, 200), By::OneWay), ((0, 0), By::Clock)] {
        let mut world = World::new(&[Clock::default(), Clock { offset: 4e9, rate: 1e-5, ..Clock::default() }], 1);
        world.talk(0, 1, counts, LAN);
        let mut known = world.known();
        known[1].base = 60;
        let placed = place(&known);
        assert_eq!((placed[1].by, placed[1].shift.within(), placed[1].early), (by, None, 0));
        let text = placed[1].text(&known[1], &known[0]);
        assert!(text.starts_with("b = a + ") && text.contains("nothing bounds the error"), "{text}");
    }
}

#[test]
fn the_line_says_how_the_clocks_differ() {
    let mut world =
        World::new(&[Clock::default(), Clock { offset: 123_456_789.0, rate: 12.3e-6, ..Clock::default() }], 1);
    world.talk(0, 1, (3000, 3000), Network { least: (10.0, 10.0), jitter: 100.0, ..LAN });
    let (known, placed) = (world.known(), world.place());
    let text = placed[1].text(&known[1], &known[0]);
    assert!(text.starts_with("b = a + 1.23456") && text.contains(" s + 12.3 ppm, within 0."), "{text}");
    assert_eq!(placed[0].text(&known[0], &known[0]), "a: its clock is used for all");
}

#[test]
fn no_times_stop_the_reader() {
    for seed in 0..200 {
        let mut dice = Dice(seed * 13 + 7);
        let mut known: Vec<Known> = (0..3).map(|_| Known::default()).collect();
        for one in &mut known {
            let limit = [10, 1 << 20, 1 << 61, 1 << 62][dice.below(4) as usize];
            for _ in 0..dice.below(60) {
                let key = Key::Hash(dice.below(30) as u32);
                let at = Time(dice.below(limit) as i64);
                if dice.below(2) == 0 {
                    one.packets.sent(key, at)
                } else {
                    one.packets.received(key, at)
                }
            }
            one.base = dice.next() as i64 >> dice.below(64);
            one.traced = (Time(dice.below(limit) as i64), Time(dice.below(limit) as i64));
        }
        let placed = place(&known);
        assert_eq!(placed.len(), 3);
        for (one, known_one) in placed.iter().zip(&known) {
            let mut times: Vec<Time> = (0..50).map(|_| Time(dice.below(1 << 62) as i64)).collect();
            times.sort();
            assert!(times.iter().map(|t| one.shift.at(*t)).is_sorted(), "seed {seed}: {one:?}");
            one.text(known_one, &known[0]);
        }
    }
}

/// A file of two traces, the second later by `shift`, and the content of each by itself.
fn both(shift: i64) -> (Vec<u8>, [Events; 2]) {
    let traces = [busy(2, 2_000, 5).bytes(), busy(3, 1_500, 9).bytes()];
    let within = Some(Time(50));
    let machine = |name: &str, shift| Machine {
        name: name.to_string(),
        clock: format!("{name}..."),
        shift,
        ..Machine::default()
    };
    let machines = [machine("a", Shift::by(Time::ZERO, within)), machine("b", Shift::by(Time(shift), within))];
    let mut file = Vec::new();
    let parts: Vec<(Machine, &[u8])> = machines.into_iter().zip(traces.iter().map(Vec::as_slice)).collect();
    file::write(&parts, &mut file).unwrap();
    (file, [0, 1].map(|n| source::decode(&traces[n]).unwrap()))
}

#[test]
fn the_events_of_all_machines_are_those_of_each() {
    for shift in [0, 1234, 40_000] {
        let (file, [a, b]) = both(shift);
        assert_eq!(source::open(&file[..]).unwrap().raw(0).unwrap(), file);
        let all = source::decode(&file).unwrap();
        assert!(all.meta.quality.is_empty(), "{:?}", all.meta);
        assert!(all.events.is_sorted_by_key(|e| e.ts));
        let names: Vec<(&str, u32)> = all.meta.machines.iter().map(|m| (m.name.as_str(), m.first_cpu)).collect();
        assert_eq!(names, [("a", 0), ("b", 2)]);
        let of = |events: &Events, e: &Event, first: u32| {
            (e.ts, e.dur, e.event(), e.cpu.number() - first, e.pid.local(), events.names.text(e.name).to_string())
        };
        let happened = |e: &&Event| e.what.is_event();
        for (machine, (one, first, later)) in [(&a, 0, 0), (&b, 2, shift)].into_iter().enumerate() {
            let mine = |e: &&Event| happened(e) && (e.cpu.number() >= 2) == (machine == 1);
            let told: Vec<_> = all.events.iter().filter(mine).map(|e| of(&all, e, first)).collect();
            let own = one.events.iter().filter(happened).map(|e| Event { ts: e.ts + Time(later), ..*e });
            let own: Vec<_> = own.map(|e| of(one, &e, 0)).collect();
            assert_eq!(told, own);
            let threads = all.events.iter().filter(mine).filter(|e| e.pid != Pid::IDLE);
            assert!(threads.map(|e| e.pid.machine()).all(|m| m == machine as u32));
        }
    }
}

#[test]
fn the_spans_of_all_machines_add_up_to_those_of_each() {
    let (file, [a, b]) = both(777);
    let events = source::decode(&file).unwrap();
    let (all, tally) = build(events.clone());
    assert_eq!(check(&all, &events.meta.intervals, &tally), [""; 0]);
    let sums = [a, b].map(|events| build(events).1);
    for of in [|t: &Tally| t.user, |t: &Tally| t.system, |t: &Tally| t.idle, |t: &Tally| t.lost] {
        assert_eq!(of(&tally), of(&sums[0]) + of(&sums[1]));
    }
    // Text and JSON agree.
    let mut json = Vec::new();
    json::write(&all, &mut json).unwrap();
    let again = source::open(&json[..]).unwrap().spans(SpanLimit::new(usize::MAX)).unwrap();
    assert_eq!(again.meta.machines, all.meta.machines);
    let told = |spans: &Spans| {
        let name = |s: &Span| spans.names[s.name.index()].clone();
        let mut told: Vec<_> = spans.spans.iter().map(|s| (s.start, s.dur, s.cpu, s.pid, s.arg, name(s))).collect();
        told.sort();
        told
    };
    assert!(told(&again) == told(&all));
}

#[test]
fn what_began_later_on_another_machine_takes_nothing_from_the_first() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let traces = ["redis.trace", "convoy.trace"].map(|name| std::fs::read(samples.join(name)).unwrap());
    for later in [0, 3_000_000, 1 << 40] {
        let machine = |shift| Machine { shift: Shift::by(Time(shift), None), ..Machine::default() };
        let parts = [(machine(0), traces[0].as_slice()), (machine(later), traces[1].as_slice())];
        let mut file = Vec::new();
        file::write(&parts, &mut file).unwrap();
        let events = source::decode(&file).unwrap();
        let first_of_second = events.meta.machines[1].first_cpu;
        let (all, tally) = build(events);
        let mut sums = (0, 0, 0);
        for (n, trace) in traces.iter().enumerate() {
            let (alone, own) = build(source::decode(trace).unwrap());
            sums = (sums.0 + own.repairs, sums.1 + own.runs, sums.2 + own.pending);
            let told = |spans: &Spans, from: u32, shift: i64| {
                let on = spans.spans.iter().filter(|s| match (s.cpu, s.pid) {
                    (Some(cpu), _) => from > 0 || cpu.number() < first_of_second || spans.meta.machines.is_empty(),
                    (None, pid) => spans.meta.machines.is_empty() || pid.is_some_and(|pid| pid.machine() as usize == n),
                });
                let on = on.filter(|s| s.cpu.is_none_or(|cpu| cpu.number() >= from));
                let on = on.filter(|s| !matches!(s.what(), What::Point(_)));
                let name = |s: &Span| spans.names[s.name.index()].split('.').next().unwrap_or_default().to_string();
                let key = |s: &Span| (s.start.0 - shift, s.dur.0, s.cpu.map(|cpu| cpu.number() - from), name(s));
                let mut told: Vec<_> = on.map(|s| (key(s), s.pid.map(Pid::local))).collect();
                told.sort();
                told
            };
            let (from, shift) = if n == 0 { (0, 0) } else { (first_of_second, later) };
            let (merged, alone) = (told(&all, from, shift), told(&alone, 0, 0));
            let other = alone.iter().zip(&merged).find(|(one, two)| one != two);
            assert!(merged.len() == alone.len() && other.is_none(), "{later}, {n}: {other:?}");
        }
        assert_eq!((tally.repairs, tally.runs, tally.pending), sums);
    }
}

#[test]
fn what_one_machine_cannot_tell_another_may() {
    let mut first = busy(2, 2_000, 5);
    first.header.unseen = Unseen::of(&[Capability::Returns]);
    let traces = [first.bytes(), busy(3, 1_500, 9).bytes()];
    let machine = || Machine { shift: Shift::by(Time::ZERO, None), ..Machine::default() };
    let parts: Vec<(Machine, &[u8])> = traces.iter().map(|trace| (machine(), trace.as_slice())).collect();
    let mut file = Vec::new();
    file::write(&parts, &mut file).unwrap();
    let spans = |bytes: &[u8], first: u32| {
        let (spans, _) = build(source::decode(bytes).unwrap());
        let on = spans.spans.iter().filter_map(|s| Some((s, s.cpu?.number().checked_sub(first)?)));
        // Threads are called by their numbers, which are others here.
        let name = |s: &Span| spans.names[s.name.index()].split('.').next().unwrap_or_default().to_string();
        let mut told: Vec<_> = on.map(|(s, cpu)| (s.start, s.dur, cpu, name(s))).collect();
        told.sort();
        told
    };
    assert!(spans(&file, 2) == spans(&traces[1], 0));
}

#[test]
fn damage_of_the_file_is_told_and_the_rest_is_used() {
    let (file, _) = both(0);
    for len in (0..2000).chain((2000..file.len()).step_by(4001)) {
        match source::decode(&file[..len]) {
            Ok(events) => assert!(!events.meta.quality.is_empty(), "{len}"),
            Err(error) => assert!(len < 2000, "{len}: {error}"),
        }
    }
    let mut damaged = file.clone();
    damaged[60] ^= 1;
    assert_eq!(source::decode(&damaged).unwrap_err(), NotATrace::NoMachines);
    let more = [&file[..], b"more"].concat();
    let quality = source::decode(&more).unwrap().meta.quality;
    assert_eq!(quality, [format!("byte {}: something follows the last trace; skipped", file.len())]);
    // Inside the second trace.
    let mut damaged = file.clone();
    let at = file.len() - 1000;
    damaged[at] ^= 1;
    let quality = source::decode(&damaged).unwrap().meta.quality;
    assert!(quality.iter().any(|said| said.starts_with("b: ")), "{quality:?}");
}
