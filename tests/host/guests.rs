// SPDX-License-Identifier: BSD-3-Clause
//! A guest inside of its host: whose counters differ by a number that the host tells, whatever their clocks of the day
//! say.

use kutrace_format::abi::event::{GUEST_ENTER, GUEST_EXIT, IRQ, IRQ_RETURN, RUNNABLE, SWITCH};
use kutrace_format::abi::guest::ISA_SVM;
use kutrace_format::file::NameKind;
use kutrace_format::x86::vector::LOCAL_TIMER;
use kutrace_tests::{TraceBuilder, SHIFT};
use postprocess::event::Events;
use postprocess::machine::file::{self, Machine};
use postprocess::machine::place::{place, By, Known};
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

const fn svm(reason: u32) -> u32 {
    ISA_SVM << 16 | reason
}

/// Thread 500 runs the guest, is left for a page, then for an interrupt and loses its CPU to 600; the guest halts.
fn host(ahead: i64) -> TraceBuilder {
    let mut trace = TraceBuilder::new(1, LENGTH);
    trace.name(NameKind::Vcpu, VCPU, &format!("77-12/0:{}:1:0", ahead << SHIFT));
    let cpu = trace.cpu(0);
    cpu.running(VCPU, "vcpu", Some(IOCTL));
    cpu.entry(1000, GUEST_ENTER, &[0]).entry(1300, GUEST_EXIT, &[svm(0x400)]);
    cpu.entry(1350, GUEST_ENTER, &[0]).entry(1500, GUEST_EXIT, &[svm(0x60)]);
    cpu.switch(1510, LOAD, "load").entry(1800, SWITCH, &[VCPU]);
    cpu.entry(1820, GUEST_ENTER, &[0]).entry(2000, GUEST_EXIT, &[svm(0x78)]);
    cpu.entry(2010, SWITCH, &[0]);
    let timer = LOCAL_TIMER as u16;
    cpu.entry(2990, IRQ + timer, &[]).entry(3000, RUNNABLE, &[VCPU]).entry(3010, IRQ_RETURN + timer, &[]);
    cpu.entry(3050, SWITCH, &[VCPU]).entry(3060, GUEST_ENTER, &[0]).entry(6000, GUEST_EXIT, &[svm(0x60)]);
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
    assert_eq!(waits.map(|s| (s.start.0, s.dur.0)).collect::<Vec<_>>(), [(2010, 990)]);
}

#[test]
fn the_guest_may_be_the_first() {
    let placed = place(&describe(&[guest().bytes(), host(AHEAD).bytes()]));
    assert_eq!((placed[1].by, placed[0].by), (By::Host, By::First));
    assert_eq!(placed[0].inside.as_ref().map(|inside| inside.host), Some(1));
    let at = Time(500_000_000) + Time(77);
    assert!((placed[1].shift.at(Time(77 + LATER as i64)) - at).abs() <= Time(2));
}
