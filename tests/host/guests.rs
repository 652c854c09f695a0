// SPDX-License-Identifier: BSD-3-Clause
//! A guest inside its host: their counters differ by a number that the host records, whatever their times of day are.

use kutrace_format::abi::event::{GUEST_ENTER, GUEST_EXIT, IRQ, IRQ_RETURN, RUNNABLE, SCHED, SCHED_RETURN, SWITCH};
use kutrace_format::abi::guest::ISA_SVM;
use kutrace_format::file::NameKind;
use kutrace_format::x86::vector::LOCAL_TIMER;
use kutrace_tests::{TraceBuilder, SHIFT};
use postprocess::event::Events;
use postprocess::machine::file::{self, Machine};
use postprocess::machine::place::{place, By, Known, Placed};
use postprocess::machine::trace::known;
use postprocess::source;
use postprocess::span::what::{Activity, What};
use postprocess::span::{build, check, Span, Spans, Tally};
use postprocess::time::Time;

/// The guest's trace begins this many counts after the host's.
const LATER: u64 = 1000;
const LENGTH: u64 = 8000;
const GETPID: u16 = 39;
const IOCTL: u16 = 16;
const VCPU: u32 = 500;
const LOAD: u32 = 600;
const NPF: u32 = 1024;
const INTERRUPT: u32 = 96;
const HLT: u32 = 120;

const fn svm(reason: u32) -> u32 {
    ISA_SVM << 16 | reason
}

/// Thread 500 runs the guest, is left for a page, then for an interrupt and loses its CPU to 600; the guest halts.
fn host(ahead: i64) -> TraceBuilder {
    let mut trace = TraceBuilder::new(1, LENGTH);
    trace.name(NameKind::Vcpu, VCPU, &format!("77-12/0:{}:1:0", ahead << SHIFT));
    let cpu = trace.cpu(0);
    cpu.running(VCPU, "vcpu", Some(IOCTL));
    cpu.entry(1000, GUEST_ENTER, &[0]).entry(1300, GUEST_EXIT, &[svm(NPF)]);
    cpu.entry(1350, GUEST_ENTER, &[0]).entry(1500, GUEST_EXIT, &[svm(INTERRUPT)]);
    cpu.entry(1502, SCHED, &[]).task(1505, LOAD, "load", None);
    cpu.entry(1510, SWITCH, &[LOAD]).entry(1515, SCHED_RETURN, &[]);
    cpu.entry(1790, SCHED, &[]).entry(1800, SWITCH, &[VCPU]).entry(1805, SCHED_RETURN, &[]);
    cpu.entry(1820, GUEST_ENTER, &[0]).entry(2000, GUEST_EXIT, &[svm(HLT)]);
    cpu.entry(2005, SCHED, &[]).entry(2010, SWITCH, &[0]).entry(2015, SCHED_RETURN, &[]);
    let timer = LOCAL_TIMER as u16;
    cpu.entry(2990, IRQ + timer, &[]).entry(3000, RUNNABLE, &[VCPU]).entry(3010, IRQ_RETURN + timer, &[]);
    cpu.entry(3045, SCHED, &[]).entry(3050, SWITCH, &[VCPU]).entry(3055, SCHED_RETURN, &[]);
    cpu.entry(3060, GUEST_ENTER, &[0]).entry(6000, GUEST_EXIT, &[svm(INTERRUPT)]);
    trace
}

/// Calls of a program while the CPU runs, by the host's counts; then it is idle.
fn guest() -> TraceBuilder {
    let mut trace = TraceBuilder::new(1, LENGTH - LATER - 2500);
    trace.header.start.realtime_ns += 5_000_000_000;
    trace.name(NameKind::Hypervisor, 0, "kvm");
    let cpu = trace.cpu(0);
    cpu.running(7, "program", None);
    let runs = [(1010, 1290), (1360, 1490), (1830, 1980)];
    for at in runs.into_iter().flat_map(|(from, to)| (from..to).step_by(20)) {
        cpu.folded(at - LATER, GETPID, 0, 5, 7);
    }
    cpu.entry(1990 - LATER, SWITCH, &[0]).entry(3070 - LATER, SWITCH, &[7]);
    for at in (3080..5000).step_by(100) {
        cpu.folded(at - LATER, GETPID, 0, 5, 7);
    }
    trace
}

fn describe(traces: &[Vec<u8>]) -> Vec<Known> {
    let one = |(n, bytes): (usize, &Vec<u8>)| known(&*source::trace(bytes).unwrap(), ["a", "b"][n]);
    traces.iter().enumerate().map(one).collect()
}

/// The traces as one.
fn merged(traces: &[Vec<u8>]) -> (Events, Spans, Tally) {
    let placed = place(&describe(traces));
    let machines = placed.iter().zip(traces).map(|(placed, trace)| {
        let machine = Machine { shift: placed.shift.clone(), inside: placed.inside.clone(), ..Machine::default() };
        (machine, trace.as_slice())
    });
    let mut out = Vec::new();
    file::write(&machines.collect::<Vec<_>>(), &mut out).unwrap();
    let events = source::decode(&out).unwrap();
    let (spans, tally) = build(events.clone());
    (events, spans, tally)
}

/// The guest's counter, less the host's.
const AHEAD: i64 = -(LATER as i64);

#[test]
fn a_guest_is_found_in_its_host_and_has_its_time() {
    let placed = place(&describe(&[host(AHEAD).bytes(), guest().bytes()]));
    assert_eq!(placed[1].by, By::Host);
    assert_eq!(placed[1].inside.as_ref().map(|inside| inside.host), Some(0));
    // Both traces begin at a full minute, the guest's five seconds later by its own clock.
    let start = Time(500_000_000);
    for at in [0, 1, 4000] {
        let right = Time(at + LATER as i64);
        assert!((placed[1].shift.at(start + Time(at)) - right).abs() <= Time::UNIT, "{at}");
    }
}

#[test]
fn of_another_offset_it_is_no_guest() {
    let placed = place(&describe(&[host(AHEAD + 700).bytes(), guest().bytes()]));
    assert_eq!((placed[1].by, &placed[1].inside), (By::Clock, &None));
    let mut alone = guest();
    alone.header.start.realtime_ns -= 5_000_000_000;
    let not_told = TraceBuilder::new(1, LENGTH);
    let placed = place(&describe(&[host(AHEAD).bytes(), not_told.bytes()]));
    assert_eq!(placed[1].by, By::Clock);
}

#[test]
fn what_the_host_did_instead_is_told_of_the_guest_s_cpu() {
    let (events, spans, tally) = merged(&[host(AHEAD).bytes(), guest().bytes()]);
    let found = check(&spans, &events.meta.intervals, &tally);
    assert!(found.is_empty(), "{found:?}");
    let of_guest = |span: &&Span| span.cpu.is_some_and(|cpu| cpu.index() == 1);
    let stolen = spans.spans.iter().filter(of_guest).filter(|s| s.what == What::Run(Activity::Stalled));
    let stolen: Vec<_> = stolen.map(|s| (s.start.0, s.dur.0, spans.names[s.name].as_str())).collect();
    let expected = [
        (1300, 50, "stolen:exit_npf"),
        (1500, 10, "stolen:exit_interrupt"),
        (1510, 290, "stolen:ran_load.600"),
        (1800, 20, "stolen:exit_interrupt"),
        (3000, 60, "stolen:wakeup"),
    ];
    assert_eq!(stolen, expected);
    assert!(
        events.meta.counted.iter().any(|said| said.contains("lie in the time in which")),
        "{:?}",
        events.meta.counted
    );
    // On the host it is time in the guest, and a wait for it.
    let names = |cpu: usize, what: &str| {
        let here = |s: &&Span| s.cpu.is_some_and(|c| c.index() == cpu) && spans.names[s.name].starts_with(what);
        spans.spans.iter().filter(here).map(|s| (s.start.0, s.dur.0)).collect::<Vec<_>>()
    };
    assert_eq!(names(0, "-guest-:npf"), [(1000, 300)]);
    assert_eq!(names(0, "-guest-:hlt"), [(1820, 180)]);
    let waits = spans.spans.iter().filter(|s| spans.names[s.name] == *"wait_guest");
    assert_eq!(waits.map(|s| (s.start.0, s.dur.0)).collect::<Vec<_>>(), [(2015, 985)]);
}

#[test]
fn the_guest_may_be_the_first() {
    let placed = place(&describe(&[guest().bytes(), host(AHEAD).bytes()]));
    assert_eq!((placed[1].by, placed[0].by), (By::Host, By::First));
    assert_eq!(placed[0].inside.as_ref().map(|inside| inside.host), Some(1));
    let at = Time(500_000_000) + Time(77);
    assert!((placed[1].shift.at(Time(77 + LATER as i64)) - at).abs() <= Time(2));
}

/// Time for which a CPU of a guest works and then is idle, in counts.
type Night = (u64, u64);

/// A host without a record of its guest's counter, and the guest, whose CPU works and halts on that plan.
fn silent(nights: &[Night]) -> [TraceBuilder; 2] {
    let length = nights.iter().map(|(work, halt)| work + halt + 200).sum::<u64>() + 20_000;
    let (mut host, mut guest) = (TraceBuilder::new(1, length), TraceBuilder::new(1, length - LATER));
    guest.header.start.realtime_ns += 5_000_000_000;
    guest.name(NameKind::Hypervisor, 0, "kvm");
    let (outer, inner) = (host.cpu(0), guest.cpu(0));
    outer.running(VCPU, "vcpu", Some(IOCTL));
    inner.running(0, "", None);
    let (timer, mut at) = (LOCAL_TIMER as u16, 2_000);
    for (work, halt) in nights {
        outer.entry(at, GUEST_ENTER, &[0]);
        let own = at - LATER;
        inner.entry(own + 20, IRQ + timer, &[]).entry(own + 30, IRQ_RETURN + timer, &[]);
        inner.entry(own + 60, SWITCH, &[7]);
        for at in (own + 80..own + work - 100).step_by(200) {
            inner.folded(at, GETPID, 0, 5, 7);
        }
        inner.entry(own + work - 40, SWITCH, &[0]);
        at += work;
        outer.entry(at, GUEST_EXIT, &[svm(HLT)]).entry(at + 5, SCHED, &[]).entry(at + 10, SWITCH, &[0]);
        outer.entry(at + 15, SCHED_RETURN, &[]);
        at += halt + 200;
        outer.entry(at - 90, IRQ + timer, &[]).entry(at - 80, RUNNABLE, &[VCPU]).entry(
            at - 70,
            IRQ_RETURN + timer,
            &[],
        );
        outer.entry(at - 50, SCHED, &[]).entry(at - 40, SWITCH, &[VCPU]).entry(at - 30, SCHED_RETURN, &[]);
    }
    outer.entry(at, GUEST_ENTER, &[0]);
    [host, guest]
}

/// Any such nights.
fn nights(mut seed: u64) -> Vec<Night> {
    let mut below = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    };
    (0..400).map(|_| (1_000 + below(4_000), 8_000 + below(60_000))).collect()
}

fn placed_silent(host: &[Night], guest: &[Night]) -> Placed {
    let ([host, _], [_, guest]) = (silent(host), silent(guest));
    place(&describe(&[host.bytes(), guest.bytes()])).remove(1)
}

#[test]
fn a_guest_whose_host_says_nothing_of_its_counter_is_found_by_when_it_had_nothing_to_do() {
    let placed = placed_silent(&nights(7), &nights(7));
    assert_eq!((placed.by, placed.inside.as_ref().map(|inside| inside.host)), (By::Halts, Some(0)));
    assert!(!placed.may_be_inside);
    let within = placed.shift.within().unwrap();
    assert!(within < Time(100), "{within:?}");
    for at in [0, 1_000, 1_000_000, 10_000_000] {
        let right = Time(at + LATER as i64);
        assert!((placed.shift.at(Time(500_000_000 + at)) - right).abs() <= within, "{at} {placed:?}");
    }
}

#[test]
fn a_guest_that_fits_nowhere_or_twice_is_not_placed_and_that_is_said() {
    let regular = vec![(3_000, 20_000); 400];
    for (host, guest) in [(nights(7), nights(8)), (regular.clone(), regular)] {
        let placed = placed_silent(&host, &guest);
        assert_eq!((placed.by, &placed.inside, placed.may_be_inside), (By::Clock, &None, true));
        let known = Known { name: "b".to_string(), ..Known::default() };
        let said = placed.text(&known, &Known { name: "a".to_string(), ..Known::default() });
        assert!(
            said.ends_with("; it is a guest, and nothing shows whether and when one of these machines ran it"),
            "{said}"
        );
    }
}
