// SPDX-License-Identifier: BSD-3-Clause
//! Summaries of a trace: they match the spans' own times and the events' own counts, and the threads that ran in
//! between.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kutrace_format::abi::event::{IRQ, IRQ_RETURN, RUNNABLE, TRAP, TRAP_RETURN};
use kutrace_format::abi::programs::{word, ASYNC_BEGIN, ASYNC_END, BEGIN, END};
use kutrace_tests::number::on_cpu;
use kutrace_tests::program::{at, kernel, tsc, with, Program};
use kutrace_tests::repeat::Recorded;
use kutrace_tests::{busy, TraceBuilder};
use postprocess::direct::{spans_of_raw, summary_of_raw};
use postprocess::event::number::{Level, WAIT_A, WAIT_Z};
use postprocess::event::what::What;
use postprocess::event::Events;
use postprocess::sink::profile::{profile, Rows};
use postprocess::sink::summary::{share::Share, work::Sum, Adder, By, Summary};
use postprocess::source;
use postprocess::span::build;
use postprocess::span::limit::SpanLimit;
use postprocess::span::what::Activity;
use postprocess::time::Time;

use crate::golden::assert_golden;
use crate::schema::wrong;

fn summary(trace: &TraceBuilder) -> Summary {
    summary_of_raw(&trace.bytes(), 3).unwrap()
}

fn sample() -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/pipeline.trace")).unwrap()
}

#[test]
fn the_tables_of_a_recorded_trace() {
    assert_golden("summary/pipeline.txt", &summary_of_raw(&sample(), 5).unwrap().text(10, By::Program));
}

#[test]
fn its_json_is_as_its_schema_says_and_counts_what_is_cut() {
    let schema: serde_json::Value = serde_json::from_str(include_str!("../../docs/summary.schema.json")).unwrap();
    for name in ["convoy", "disk", "faults", "hello", "pipeline", "redis", "slices"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../samples/{name}.trace"));
        let summary = summary_of_raw(&fs::read(path).unwrap(), 5).unwrap();
        let value: serde_json::Value = serde_json::from_str(&summary.json(3).unwrap()).unwrap();
        assert_eq!(wrong(&schema, &value), [""; 0], "{name}");
        let calls = &value["calls"];
        assert_eq!(calls["first"].as_array().unwrap().len(), 3);
        assert_eq!(calls["left_out"], summary.calls.len() - 3);
        assert_eq!(calls["first"][0]["total"], summary.calls[0].total.0);
    }
    assert!(wrong(&schema, &serde_json::json!({ "events": "many", "more": 1 })).len() > 5);
}

#[test]
fn spans_of_programs_are_added_up_by_name_without_fields() {
    let (mut program, numbers) = Program::new(8, &["find\0spath", "find", "upload\0usize"]);
    let [with_path, find, upload] = numbers[..] else { panic!("{numbers:?}") };
    let text = |letter: u8| u64::from_le_bytes([1, letter, 0, 0, 0, 0, 0, 0]);
    program.grant(
        8,
        tsc(20),
        &[
            word(BEGIN, 1, with_path) | at(30),
            text(b'a'),
            word(END, 0, find) | at(50),
            word(BEGIN, 1, with_path) | at(60),
            text(b'b'),
            word(END, 0, find) | at(100),
            word(ASYNC_BEGIN, 2, upload) | at(110),
            7,
            4096,
            word(ASYNC_END, 1, upload) | at(140),
            7,
        ],
    );
    let summary = summary_of_raw(&with(&kernel(), &[program]), 3).unwrap();
    let spans: Vec<_> = summary.spans.iter().map(|s| (&*s.name, s.count, s.total.0, s.longest.0)).collect();
    assert_eq!(spans, [("find", 2, 60, 40), ("upload", 1, 30, 30)]);
    let text = summary.text(1, By::Program);
    assert!(text.contains("SPAN, and whose was longest\n") && text.contains("1 more\n"), "{text}");
    let schema: serde_json::Value = serde_json::from_str(include_str!("../../docs/summary.schema.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&summary.json(1).unwrap()).unwrap();
    assert_eq!(wrong(&schema, &value), [""; 0]);
    assert_eq!((&value["spans"]["first"][0]["name"], &value["spans"]["left_out"]), (&"find".into(), &1.into()));
}

/// Thread 100 waits in futex, is woken by 200 on CPU 1, and gets CPU 0 when 300 leaves it.
#[test]
fn a_wait_for_a_cpu_tells_who_had_it() {
    let mut trace = TraceBuilder::new(2, 10_000);
    let cpu0 =
        trace.cpu(0).running(100, "waiter", None).call(200, 202, 5).switch(300, 300, "hog").task(330, 300, "hog", None);
    cpu0.entry(5_000, IRQ + 0xec, &[]).entry(5_400, IRQ_RETURN + 0xec, &[]);
    cpu0.switch(7_000, 100, "waiter").small_return(7_100, 0);
    let cpu1 = trace.cpu(1).running(200, "waker", None).call(3_900, 202, 1);
    cpu1.entry(4_000, RUNNABLE, &[100]).small_return(4_100, 1);
    assert_golden("summary/waiter.txt", &summary(&trace).text(10, By::Program));
    let latency = summary(&trace).woken;
    assert_eq!((latency.count, latency.percentiles), (1, [Time(3_020); 5]));
    let [worst] = &latency.worst[..] else { panic!("{:?}", latency.worst) };
    assert_eq!((&*worst.thread, worst.cpu, worst.dur.0), ("waiter.100", on_cpu(0), 3_020));
    let did: Vec<(&str, i64)> = worst.meanwhile.iter().map(|(name, dur)| (&**name, dur.0)).collect();
    assert_eq!(did, [("hog.300", 2_620), ("local_timer", 400)]);
}

#[test]
fn a_call_in_pieces_is_one_call() {
    let mut trace = TraceBuilder::new(1, 10_000);
    let cpu = trace.cpu(0).running(7, "a", None).call(100, 0, 3);
    cpu.entry(200, TRAP + 14, &[]).entry(230, TRAP_RETURN + 14, &[]);
    cpu.entry(300, IRQ + 0xec, &[]).entry(350, IRQ_RETURN + 0xec, &[]);
    cpu.switch(400, 8, "b").task(430, 8, "b", None).switch(900, 7, "a").small_return(1_000, 0);
    cpu.call(1_010, 0, 3).small_return(1_020, 0);
    let summary = summary(&trace);
    let read = summary.calls.iter().find(|sum| sum.name == "read").unwrap();
    // 300 units from call to switch less 80 of the fault and the tick, then 80; the second took 10.
    let [total, longest, slowest] = [310, 300, 900].map(Time);
    let expected = Sum { name: "read".to_string(), count: 2, points: 0, total, longest, slowest };
    assert_eq!(*read, expected);
    assert_eq!(summary.faults.iter().map(|sum| (sum.count, sum.total.0)).collect::<Vec<_>>(), [(1, 30)]);
    let runs: Vec<_> = summary.programs.iter().map(|p| (&*p.name, p.runs, p.longest.0)).collect();
    assert_eq!(runs, [("a", 2, 9_080), ("b", 1, 500)]);
}

/// Calls that begin in `events`, by name.
fn begun(events: &Events, wanted: fn(Level) -> bool) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    let calls = events.events.iter().filter(|e| matches!(e.what, What::Call(work) if wanted(work.level())));
    calls.for_each(|e| *counts.entry(events.names.text(e.name)).or_default() += 1);
    counts
}

/// Counts by name, without those of 0: a call that only ended here.
fn counted(sums: &[Sum]) -> BTreeMap<&str, u64> {
    sums.iter().map(|sum| (&*sum.name, sum.count)).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn counts_are_those_of_the_events_and_times_those_of_the_spans() {
    for bytes in [sample(), busy(4, 30_000, 5).bytes()] {
        let events = source::decode(&bytes).unwrap();
        let summary = summary_of_raw(&bytes, 5).unwrap();
        let (spans, tally) = build(events.clone());
        for (sums, wanted) in [
            (&summary.calls, (|level| matches!(level, Level::Syscall | Level::Sched)) as fn(Level) -> bool),
            (&summary.interrupts, |level| matches!(level, Level::Irq | Level::Softirq)),
            (&summary.faults, |level| level == Level::Trap),
        ] {
            assert_eq!(counted(sums), begun(&events, wanted));
        }
        assert_eq!(summary.events, events.events.iter().filter(|e| e.what.is_event()).count() as u64);
        let waits = spans.spans.iter().filter(|s| (WAIT_A as i32..=WAIT_Z as i32).contains(&s.event()));
        assert_eq!(summary.waits.iter().map(|wait| wait.count).sum::<u64>(), waits.count() as u64);
        assert_eq!(summary.woken.count + summary.running, tally.runs);
        let all = summary.cpus.iter().fold((Time::ZERO, Time::ZERO, Time::ZERO, Time::ZERO), |sum, (_, share)| {
            (sum.0 + share.user, sum.1 + share.kernel, sum.2 + share.idle, sum.3 + share.lost)
        });
        assert_eq!(all, (tally.user, tally.system, tally.idle, tally.lost));
        let kernel =
            [&summary.calls, &summary.interrupts, &summary.faults].map(|s| s.iter().map(|s| s.total.0).sum::<i64>());
        let threads = spans.spans.iter().filter(|s| matches!(s.activity(), Some(Activity::Thread(_))));
        assert_eq!(kernel.iter().sum::<i64>() + threads.map(|s| s.dur.0).sum::<i64>(), tally.system.0);
        assert_eq!(summary.programs.iter().map(|p| p.user.0).sum::<i64>(), tally.user.0);
    }
}

/// Every tool counts the same: the events, what pages carry, and profiles by the spans alone.
#[test]
fn calls_are_counted_alike_by_all_tools() {
    let samples = ["convoy", "disk", "faults", "hello", "pipeline", "redis", "slices"];
    for name in samples {
        let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../samples/{name}.trace"))).unwrap();
        let summary = summary_of_raw(&bytes, 0).unwrap();
        let (mut spans, tally) = spans_of_raw(&bytes, SpanLimit::new(1000)).unwrap();
        let tables = [&summary.calls, &summary.interrupts, &summary.faults];
        let mut all: BTreeMap<&str, u64> = tables.into_iter().flat_map(|table| counted(table)).collect();
        let calls = counted(&summary.calls).into_iter().filter(|(name, _)| !matches!(*name, "-sched-" | "exit_work"));
        let calls: BTreeMap<String, u64> = calls.map(|(name, count)| (name.to_string(), count)).collect();
        all.extend(summary.waits.iter().map(|wait| (&*wait.name, wait.count)));
        all.insert("-wakeup-", tally.runs);
        assert_eq!(spans.meta.counts, all.into_iter().map(|(name, count)| (name.to_string(), count)).collect());
        spans = spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).unwrap().0;
        profile(&mut spans, Rows::Each);
        let mut profiled: BTreeMap<String, u64> = BTreeMap::new();
        for span in spans.spans.iter().filter(|s| s.cpu.is_some() && s.level() == Some(Level::Syscall)) {
            *profiled.entry(spans.names[span.name].clone()).or_default() += span.arg as u64;
        }
        profiled.retain(|name, count| *count > 0 && name != "exit_work");
        assert_eq!(profiled, calls, "{name}");
    }
}

/// Thread 8 is woken twice; between that it loses its CPU to 7, which needs no waker.
#[test]
fn a_thread_that_lost_its_cpu_was_not_woken() {
    let mut trace = TraceBuilder::new(1, 10_000);
    let cpu = trace.cpu(0).running(7, "a", None).entry(1_000, RUNNABLE, &[8]);
    cpu.switch(1_500, 8, "b").task(1_530, 8, "b", None).switch(4_000, 7, "a").switch(8_000, 8, "b");
    let summary = summary(&trace);
    assert_eq!((summary.woken.count, summary.woken.percentiles[4]), (1, Time(520)));
    assert_eq!((summary.preempted.count, summary.preempted.percentiles[4]), (2, Time(4_000)));
    let worst: Vec<_> = summary.preempted.worst.iter().map(|w| (&*w.thread, w.dur.0, w.meanwhile.len())).collect();
    assert_eq!(worst, [("b.8", 4_000, 1), ("a.7", 2_500, 1)]);
}

/// A recorded trace repeated: every round has the content of one, and spans that a page would coarsen are not coarse
/// here.
#[test]
fn what_is_counted_does_not_depend_on_how_many_spans_a_page_can_hold() {
    const ROUNDS: u64 = 12;
    let once = sample();
    let recorded = Recorded::new(&once).unwrap();
    let mut long = Vec::new();
    let entries = recorded.repeat(ROUNDS * recorded.entries(), &mut long).unwrap();
    assert_eq!(entries, ROUNDS * recorded.entries());
    let limit = 20_000;
    let (page, tally) = spans_of_raw(&long, SpanLimit::new(limit)).unwrap();
    assert!(page.spans.len() <= limit && page.meta.quality.iter().any(|s| s.contains("added up in steps of")));

    let (one, all) = (summary_of_raw(&once, 3).unwrap(), summary_of_raw(&long, 3).unwrap());
    let times = |sums: &[Sum]| -> BTreeMap<String, u64> {
        counted(sums).into_iter().map(|(name, count)| (name.to_string(), count * ROUNDS)).collect()
    };
    let counts = |sums: &[Sum]| -> BTreeMap<String, u64> {
        counted(sums).into_iter().map(|(name, count)| (name.to_string(), count)).collect()
    };
    // Rounds are joined by switches, which are the scheduler's.
    let without = |mut counts: BTreeMap<String, u64>| counts.remove("-sched-").map(|_| counts).unwrap();
    assert_eq!(without(counts(&all.calls)), without(times(&one.calls)));
    assert_eq!(counts(&all.interrupts), times(&one.interrupts));
    assert_eq!(counts(&all.faults), times(&one.faults));
    assert_eq!(all.meta.quality, Vec::<String>::new());

    // Waits and wakeups: of all spans, without omissions.
    let (full, same) = spans_of_raw(&long, SpanLimit::new(usize::MAX)).unwrap();
    assert_eq!((same, tally.runs), (tally, all.woken.count + all.running));
    for wait in &all.waits {
        let of_it = || full.spans.iter().filter(|s| full.names[s.name] == wait.name);
        let total: i64 = of_it().map(|s| s.dur.0).sum();
        assert_eq!((wait.count, wait.total.0), (of_it().count() as u64, total), "{}", wait.name);
    }
    let mut sum = Share::default();
    all.cpus.iter().for_each(|(_, share)| sum += *share);
    assert_eq!([sum.user, sum.kernel, sum.idle, sum.lost], [tally.user, tally.system, tally.idle, tally.lost]);
}

#[test]
fn an_empty_trace_has_a_summary() {
    let text = Adder::new(5).finish(Default::default(), &[], &mut |_, _, _| {}).text(10, By::Program);
    assert!(text.contains("0 ns on 0 CPUs") && text.contains("0 events, none lost"), "{text}");
}
