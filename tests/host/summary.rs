// SPDX-License-Identifier: BSD-3-Clause
//! What a summary says of a trace: that it is the spans' own time and the events' own counts, and who ran meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kutrace_format::abi::event::{IRQ, IRQ_RETURN, RUNNABLE, TRAP, TRAP_RETURN};
use kutrace_tests::{busy, Trace};
use postprocess::event::number::{class, Class, Level};
use postprocess::event::Events;
use postprocess::raw;
use postprocess::span::build;
use postprocess::summary::{summarize, work::Sum, Summary};

use crate::golden::assert_golden;
use crate::span::decode;

fn summary(trace: &Trace) -> Summary {
    summarize(&build(decode(trace)).0, 3)
}

fn sample() -> Events {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/pipeline.raw");
    raw::decode(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_tables_of_a_recorded_trace() {
    let (spans, _) = build(sample());
    assert_golden("summary/pipeline.txt", &summarize(&spans, 5).text(10));
}

/// Thread 100 waits in futex, is woken by 200 on CPU 1, and gets CPU 0 when 300 leaves it.
#[test]
fn a_wait_for_a_cpu_tells_who_had_it() {
    let mut trace = Trace::new(2, 10_000);
    let cpu0 =
        trace.cpu(0).running(100, "waiter", None).call(200, 202, 5).switch(300, 300, "hog").task(330, 300, "hog", None);
    cpu0.entry(5_000, IRQ + 0xec, &[]).entry(5_400, IRQ_RETURN + 0xec, &[]);
    cpu0.switch(7_000, 100, "waiter").small_return(7_100, 0);
    let cpu1 = trace.cpu(1).running(200, "waker", None).call(3_900, 202, 1);
    cpu1.entry(4_000, RUNNABLE, &[100]).small_return(4_100, 1);
    assert_golden("summary/waiter.txt", &summary(&trace).text(10));
    let latency = summary(&trace).latency;
    assert_eq!((latency.count, latency.percentiles), (1, [3_020; 5]));
    let [worst] = &latency.worst[..] else { panic!("{:?}", latency.worst) };
    assert_eq!((&*worst.thread, worst.cpu, worst.dur), ("waiter.100", 0, 3_020));
    let did: Vec<(&str, i64)> = worst.meanwhile.iter().map(|(name, dur)| (&**name, *dur)).collect();
    assert_eq!(did, [("hog.300", 2_620), ("local_timer", 400)]);
}

#[test]
fn a_call_in_pieces_is_one_call() {
    let mut trace = Trace::new(1, 10_000);
    let cpu = trace.cpu(0).running(7, "a", None).call(100, 0, 3);
    cpu.entry(200, TRAP + 14, &[]).entry(230, TRAP_RETURN + 14, &[]);
    cpu.entry(300, IRQ + 0xec, &[]).entry(350, IRQ_RETURN + 0xec, &[]);
    cpu.switch(400, 8, "b").task(430, 8, "b", None).switch(900, 7, "a").small_return(1_000, 0);
    cpu.call(1_010, 0, 3).small_return(1_020, 0);
    let summary = summary(&trace);
    let read = summary.calls.iter().find(|sum| sum.name == "read").unwrap();
    // 300 units from call to switch less 80 of the fault and the tick, then 80; the second took 10.
    let expected = Sum { name: "read".to_string(), count: 2, total: 310, longest: 300, slowest: 900 };
    assert_eq!(*read, expected);
    assert_eq!(summary.faults.iter().map(|sum| (sum.count, sum.total)).collect::<Vec<_>>(), [(1, 30)]);
    let runs: Vec<_> = summary.programs.iter().map(|p| (&*p.name, p.runs, p.longest)).collect();
    assert_eq!(runs, [("a", 2, 9_080), ("b", 1, 500)]);
}

/// Calls that begin in `events`, by name.
fn begun(events: &Events, wanted: fn(Level) -> bool) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    let calls = events.events.iter().filter(|e| matches!(class(e.event), Class::Call(level) if wanted(level)));
    calls.for_each(|e| *counts.entry(events.names.text(e.name)).or_default() += 1);
    counts
}

#[test]
fn counts_are_those_of_the_events_and_times_those_of_the_spans() {
    for events in [sample(), decode(&busy(4, 30_000, 5))] {
        let (spans, tally) = build(events.clone());
        let summary = summarize(&spans, 5);
        for (sums, wanted) in [
            (&summary.calls, (|level| level == Level::Syscall) as fn(Level) -> bool),
            (&summary.interrupts, |level| matches!(level, Level::Irq | Level::Softirq)),
            (&summary.faults, |level| level == Level::Trap),
        ] {
            for (name, count) in begun(&events, wanted) {
                let found = sums.iter().find(|sum| sum.name == name).map_or(0, |sum| sum.count);
                // A child begins by returning from its parent's call; and a call may be under way at the start.
                let most = count + if name.contains("clone") { count } else { 0 } + events.meta.intervals.len() as u64;
                assert!((count..=most).contains(&found), "{name}: {found} of {count}");
            }
        }
        let all = summary.cpus.iter().fold((0, 0, 0, 0), |sum, (_, share)| {
            (sum.0 + share.user, sum.1 + share.kernel, sum.2 + share.idle, sum.3 + share.lost)
        });
        assert_eq!(all, (tally.user, tally.system, tally.idle, tally.lost));
        let kernel =
            [&summary.calls, &summary.interrupts, &summary.faults].map(|s| s.iter().map(|s| s.total).sum::<i64>());
        assert_eq!(kernel.iter().sum::<i64>(), tally.system);
        assert_eq!(summary.programs.iter().map(|p| p.user).sum::<i64>(), tally.user);
    }
}

#[test]
fn an_empty_trace_has_a_summary() {
    let text = summarize(&Default::default(), 5).text(10);
    assert!(text.contains("0 ns on 0 CPUs") && text.contains("no event lost"), "{text}");
}
