// SPDX-License-Identifier: BSD-3-Clause
//! Hosts, their guests and other machines, placed together: in any order, with packets between the others and the host,
//! the guest, or both.

use std::collections::BTreeMap;

use kutrace_format::abi::event::{FLOW_RECEIVED, FLOW_SENT, GUEST_ENTER, GUEST_EXIT};
use kutrace_format::abi::guest::ISA_SVM;
use kutrace_format::abi::packet::FlowPacket;
use kutrace_format::file::NameKind;
use kutrace_tests::{TraceBuilder, SHIFT, START_NS};
use postprocess::machine::file::{self, Machine};
use postprocess::machine::inside::{back, through};
use postprocess::machine::place::{place, By, Known, Placed};
use postprocess::machine::shift::{Piece, Shift, POINT};
use postprocess::machine::trace::known;
use postprocess::source;
use postprocess::time::Time;

/// Counts of a round: the host runs each of the guest's CPUs for most of it.
const ROUND: u64 = 10_000;
const ROUNDS: u64 = 200;
/// The guest's trace begins this many counts after the host's, the client's this many before.
const LATER: u64 = 1000;
const BEFORE: u64 = 5000;
const IO: u32 = ISA_SVM << 16 | 123;
const GETPID: u16 = 39;
/// By virtual CPU, when in a round the host runs it.
const RUNS: [(u64, u64); 2] = [(1000, 7000), (4000, 9500)];

/// The host's threads, each on a CPU of its own, in these rounds.
fn host(threads: &[(u32, u32)], rounds: std::ops::Range<u64>) -> TraceBuilder {
    let mut trace = TraceBuilder::new(threads.len() as u32, rounds.end * ROUND);
    for (cpu, (thread, vcpu)) in threads.iter().enumerate() {
        let offset = -((LATER << SHIFT) as i64);
        trace.name(NameKind::Vcpu, *thread, &format!("77-12/{vcpu}:{offset}:1:0"));
        let (from, to) = RUNS[cpu];
        let recorder = trace.cpu(cpu as u32).running(*thread, "vcpu", Some(16));
        for at in rounds.clone().map(|round| round * ROUND) {
            recorder.entry(at + from, GUEST_ENTER, &[0]).entry(at + to, GUEST_EXIT, &[IO]);
        }
    }
    trace
}

/// The guest, whose CPUs are run by the host's CPUs of these numbers.
fn guest(on: &[usize]) -> TraceBuilder {
    let mut trace = TraceBuilder::new(on.len() as u32, ROUNDS * ROUND - LATER);
    trace.name(NameKind::Hypervisor, 0, "kvm");
    for (cpu, on) in on.iter().enumerate() {
        let (from, to) = RUNS[*on];
        let recorder = trace.cpu(cpu as u32).running(7, "program", None);
        for at in (0..ROUNDS).map(|round| round * ROUND + from - LATER) {
            for call in (at + 20..at + to - from - 20).step_by(500) {
                recorder.folded(call, GETPID, 0, 5, 7);
            }
        }
    }
    trace
}

fn packet(flow: u32, round: u64) -> [u32; 4] {
    FlowPacket { flow, ports: [40112, 6379], bytes: 30, flags: 16, sequence: round as u32 * 30 }.words()
}

/// A guest and a client that speak with each other, and the host, whose clock of the day is wrong by 5 ms.
fn three() -> [TraceBuilder; 3] {
    let mut host = host(&[(500, 0)], 0..ROUNDS);
    let mut guest = TraceBuilder::new(1, ROUNDS * ROUND - LATER);
    let mut client = TraceBuilder::new(1, ROUNDS * ROUND + BEFORE);
    guest.name(NameKind::Hypervisor, 0, "kvm");
    guest.cpu(0).running(7, "server", None);
    client.cpu(0).running(8, "client", None);
    for round in 1..ROUNDS {
        let (at, late) = (round * ROUND, round * 7 % 40);
        let (request, answer) = (packet(4, round), packet(5, round));
        client.cpu(0).entry(at + 1900 + BEFORE, FLOW_SENT, &request);
        guest.cpu(0).entry(at + 2000 + late - LATER, FLOW_RECEIVED, &request);
        guest.cpu(0).folded(at + 2100 - LATER, GETPID, 0, 5, 7).entry(at + 3000 - LATER, FLOW_SENT, &answer);
        client.cpu(0).entry(at + 3100 + late + BEFORE, FLOW_RECEIVED, &answer);
    }
    host.header.start.realtime_ns += 5_000_000;
    client.header.start.realtime_ns += 120_000_000;
    [host, guest, client]
}

fn describe(traces: &[&TraceBuilder]) -> Vec<Known> {
    let name = |n: usize| ["a", "b", "c"][n];
    traces.iter().enumerate().map(|(n, trace)| known(&*source::trace(&trace.bytes()).unwrap(), name(n))).collect()
}

/// Reading of a machine's clock at a moment of the host's counter.
fn shows(trace: &TraceBuilder, ahead: i64, at: i64) -> Time {
    Time(((trace.header.start.realtime_ns - START_NS) / 10) as i64 + at + ahead)
}

const HOST: usize = 0;
const GUEST: usize = 1;
const AHEAD: [i64; 3] = [0, -(LATER as i64), BEFORE as i64];
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// The largest error of a machine against the first, in units.
fn error(traces: &[&TraceBuilder], order: [usize; 3], placed: &[Placed], n: usize) -> i64 {
    let at = |n: usize, moment| shows(traces[n], AHEAD[order[n]], moment);
    let moments = (0..=20).map(|part| part * (ROUNDS * ROUND / 20) as i64);
    moments.map(|moment| (placed[n].shift.at(at(n, moment)) - at(0, moment)).0.abs()).max().unwrap_or_default()
}

#[test]
fn a_guest_keeps_to_its_host_and_both_to_whom_one_of_them_spoke_with() {
    let all = three();
    for order in ORDERS {
        let traces = order.map(|n| &all[n]);
        let known = describe(&traces);
        let placed = place(&known);
        assert_eq!(placed.iter().map(|one| one.early).sum::<u64>(), 0, "{order:?}: {placed:#?}");
        let at = |machine: usize| order.iter().position(|n| *n == machine).unwrap();
        assert_eq!(placed[at(GUEST)].inside.as_ref().map(|inside| inside.host), Some(at(HOST)), "{order:?}");
        for n in 1..3 {
            let within = placed[n].shift.within().expect("a bound").0;
            let error = error(&traces, order, &placed, n);
            assert!(error <= within && within < 200, "{order:?}, {n}: {error} {within}");
            let by = match order[n] {
                GUEST => By::Host,
                HOST if order[0] == GUEST => By::Host,
                _ => By::Packets,
            };
            assert_eq!(placed[n].by, by, "{order:?}, {n}");
            let text = placed[n].text(&known[n], &known[0]);
            assert_eq!(text.contains("within"), within > 4, "{text}");
        }
        // The guest and its host are apart by no more than rounding.
        let moment = |machine: usize| shows(&all[machine], AHEAD[machine], 1_000_000);
        let there = [HOST, GUEST].map(|machine| placed[at(machine)].shift.at(moment(machine)));
        assert!((there[0] - there[1]).abs() <= Time(4), "{order:?}: {there:?}");
    }
}

#[test]
fn a_guest_goes_with_its_host_by_the_clock_of_the_day() {
    let [host, guest, _] = three();
    let mut alone = TraceBuilder::new(1, ROUNDS * ROUND);
    alone.cpu(0).running(9, "alone", None).folded(20, GETPID, 0, 5, 7);
    alone.header.start.realtime_ns -= 60_000_000_000;
    let known = describe(&[&alone, &guest, &host]);
    let placed = place(&known);
    assert_eq!([placed[1].by, placed[2].by], [By::Host, By::Clock]);
    let text = placed[1].text(&known[1], &known[0]);
    assert!(text.ends_with("by its host's record of its counter; nothing bounds its error"), "{text}");
}

#[test]
fn a_guest_s_line_has_the_parts_of_its_host_s() {
    let rate = |ppm: f64| (ppm * 1e-6 * (1u64 << POINT) as f64) as i64;
    let piece = |from, offset, ppm| Piece {
        from: Time(from),
        offset: Time(offset),
        rate: rate(ppm),
        fraction: 1 << 55,
        within: Some(Time(3)),
    };
    let guest = Shift(vec![piece(1_000, -700_000, 31.0)]);
    let host = Shift(vec![piece(0, 5_000, -12.0), piece(40_000_000, 9_000, 7.5), piece(90_000_000, 2_000_000, 7.5)]);
    let whole = through(&guest, &host);
    assert_eq!(whole.0.len(), 3, "{whole:?}");
    for at in (0..2_000).map(|n| Time(n * 61_003)) {
        let (one, both) = (whole.at(at), host.at(guest.at(at)));
        assert!((one - both).abs() <= Time::UNIT, "{at:?}: {one:?} {both:?}");
        assert!((back(&guest).at(guest.at(at)) - at).abs() <= Time(2), "{at:?}");
    }
    assert_eq!(whole.within(), Some(Time(6)));
}

/// The host's thread that runs each CPU of the guest.
fn threads(host: &TraceBuilder, guest: &TraceBuilder) -> BTreeMap<u32, u32> {
    let placed = place(&describe(&[host, guest]));
    placed[1].inside.as_ref().map(|inside| inside.threads.clone()).unwrap_or_default()
}

#[test]
fn virtual_cpus_have_numbers_of_their_own() {
    // Those of a processor of three cores skip every fourth.
    let host = host(&[(500, 0), (501, 2)], 0..ROUNDS);
    assert_eq!(threads(&host, &guest(&[0, 1])), BTreeMap::from([(0, 500), (1, 501)]));
    assert_eq!(threads(&host, &guest(&[1, 0])), BTreeMap::from([(0, 501), (1, 500)]));
}

#[test]
fn events_of_which_it_is_not_known_where_they_lie_are_counted_too() {
    let sentences = |rounds: std::ops::Range<u64>| {
        let traces = [host(&[(500, 0)], rounds).bytes(), guest(&[0]).bytes()];
        let names = ["host", "guest"].map(str::to_string);
        let known = [0, 1].map(|n| {
            let name = names[n].clone();
            Known { name, ..known(&*source::trace(&traces[n]).unwrap(), "") }
        });
        let placed = place(&known);
        let machines = placed.iter().zip(names).zip(&traces).map(|((placed, name), trace)| {
            let (shift, inside) = (placed.shift.clone(), placed.inside.clone());
            (Machine { name, shift, inside, ..Machine::default() }, trace.as_slice())
        });
        let mut out = Vec::new();
        file::write(&machines.collect::<Vec<_>>(), &mut out).unwrap();
        let counted = source::decode(&out).unwrap().meta.counted;
        let said = counted.into_iter().find(|said| said.contains("lie in the time")).expect("it is inside");
        [placed[1].text(&known[1], &known[0]), said]
    };
    let calls = (20..6000 - 20).step_by(500).count() as u64;
    // The first is that the CPU has its thread.
    let all = ROUNDS * calls + 1;
    assert_eq!(
        sentences(0..ROUNDS)[1],
        format!("guest: {all} of {all} events lie in the time in which host ran its CPUs")
    );
    // Before the first entry of the host, and after its trace.
    let (told, others) = (140 * calls, 60 * calls + 1);
    let [line, said] = sentences(10..150);
    assert_eq!(
        said,
        format!(
            "guest: {told} of {told} events lie in the time in which host ran its CPUs; \
             its trace does not show this for {others} others"
        )
    );
    let page = include_str!("../../docs/machines.md");
    for shown in [line, said] {
        assert!(page.contains(&format!("kutrace_control: both.trace: {shown}\n")), "{shown}");
    }
}
