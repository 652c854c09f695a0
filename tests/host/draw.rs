// SPDX-License-Identifier: BSD-3-Clause
//! Traces for Perfetto, read back and compared with the spans.

use std::collections::{BTreeMap, BTreeSet};

use kutrace_tests::draw::{drawn, made, sample, Drawn, SAMPLES};
use kutrace_tests::TraceBuilder;
use postprocess::event::number;
use postprocess::id::{CpuId, Pid};
use postprocess::sink::perfetto::message;
use postprocess::span::wait::Reason;
use postprocess::span::what::{Activity, Arc, What};
use postprocess::span::{build, Span, Spans};
use postprocess::time::Time;
use prost::Message;

use crate::span::decode;

/// Positions of the slices of a span.
fn place(span: &Span) -> Option<(bool, u32)> {
    let nobody = matches!(span.activity(), Some(Activity::Lost | Activity::Offline));
    match span.pid.filter(|pid| *pid != Pid::IDLE && !nobody) {
        Some(pid) => Some((true, pid.number())),
        None => Some((false, span.cpu?.number())),
    }
}

/// Whenever a CPU does something, the innermost slice shows that, and the CPU has the thread.
fn agrees(spans: &Spans, told: &Drawn) {
    let (mut slices, mut threads) = (0, 0);
    for span in spans.spans.iter().filter(|span| span.is_execution() && span.dur > Time::ZERO) {
        let (activity, cpu) = (span.activity().unwrap(), span.cpu.unwrap().number());
        let at = span.start.0 * 10 + span.dur.0 * 5;
        let innermost = told.innermost(place(span).unwrap(), at);
        let own = matches!(activity, Activity::User(_) | Activity::Thread(_) | Activity::Idle);
        let expected = (!own).then(|| spans.names[span.name].as_str());
        assert_eq!(innermost, expected, "{span:?}");
        slices += usize::from(!own);
        let nobody = matches!(activity, Activity::Lost | Activity::Offline);
        let pid = if nobody { 0 } else { span.pid.map_or(0, Pid::number) };
        assert_eq!(told.runs(cpu, at), pid, "{span:?}");
        threads += 1;
    }
    assert!(slices > 100 && threads > 500, "{slices} {threads}");
}

/// Number of occurrences of each name in these spans.
fn counts(spans: &Spans, wanted: impl Fn(&Span) -> bool) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for span in spans.spans.iter().filter(|span| wanted(span)) {
        *counts.entry(spans.names[span.name].clone()).or_default() += 1;
    }
    counts
}

fn of(event: u32) -> impl Fn(&Span) -> bool {
    move |span| span.event() == event as i32
}

#[test]
fn perfetto_is_told_what_the_spans_say() {
    for name in SAMPLES {
        let spans = sample(name);
        let (bytes, left_out) = drawn(&spans);
        let told = Drawn::perfetto(&bytes);
        agrees(&spans, &told);
        assert_eq!(told.beside["waits"], counts(&spans, |s| matches!(s.what(), What::Wait(_))), "{name}");
        assert_eq!(told.wakings, counts(&spans, of(number::RUNNABLE)).values().sum::<usize>());
        let arcs = |s: &Span| matches!(s.what(), What::Arc(Arc::Wakeup { .. } | Arc::Ipi { .. }));
        assert_eq!(told.flows, counts(&spans, arcs).values().sum::<usize>());
        assert_eq!(told.idles, counts(&spans, of(number::MWAIT)).values().sum::<usize>());
        assert_eq!(told.frequencies, counts(&spans, of(number::FREQUENCY)).values().sum::<usize>());
        let points = |s: &Span| {
            let told = [number::RUNNABLE, number::MWAIT, number::FREQUENCY, number::ROW_LABEL, number::ROW_LABEL_LAST];
            let sample = (number::PC_USER..=number::PC_KERNEL).contains(&(s.event() as u32));
            let lasts = s.dur > Time::UNIT && !sample;
            matches!(s.what(), What::Point(point) if !told.contains(&(point.number() as u32))) && !lasts
        };
        assert_eq!(told.instants, counts(&spans, points), "{name}");
        let labels = |s: &Span| (number::ROW_LABEL..=number::ROW_LABEL_LAST).contains(&(s.event() as u32));
        assert_eq!(left_out.notes as usize, counts(&spans, labels).values().sum::<usize>());
    }
}

#[test]
fn what_lasts_beside_threads_is_drawn_by_its_kind() {
    let spans = made();
    let told = Drawn::perfetto(&drawn(&spans).0);
    let once = |names: &[&str]| names.iter().map(|name| (name.to_string(), 1)).collect::<BTreeMap<_, _>>();
    assert_eq!(told.beside["parts"], once(&["inner", "job(id=9)", "outer(n=1)"]));
    assert_eq!(told.beside["locks"], once(&["=mutex", "~mutex"]));
    assert_eq!(told.beside["messages"], BTreeMap::from([("get.4253".to_string(), 2), ("input".to_string(), 1)]));
    assert_eq!(told.beside["waits"], counts(&spans, |s| matches!(s.what(), What::Wait(_))));
    // Each overlaps the others.
    assert_eq!(told.lanes["parts"], 3);
    assert_eq!(told.frequencies, counts(&spans, of(number::FREQUENCY)).values().sum::<usize>());
    let depth = (7, "depth".to_string(), 2380, 5);
    assert_eq!(told.values, [depth]);
    for mark in ["mark_a=hello", "mark_d", "trace:4bf92f3577b34da6a3ce929d0e0e4736", "res_disk"] {
        assert_eq!(told.instants.get(mark), Some(&1), "{mark}");
    }
}

#[test]
fn a_call_that_sleeps_is_one_slice_with_what_it_returned() {
    let mut trace = TraceBuilder::new(1, 3_000);
    let cpu = trace.cpu(0).running(100, "a", None).call(200, 202, 5).switch(210, 0, "");
    cpu.switch(2_000, 100, "a").small_return(2_060, -4).call(2_100, 39, 0).small_return(2_110, 100);
    let spans = build(decode(&trace)).0;
    let told = Drawn::perfetto(&drawn(&spans).0);
    let thread = &told.slices[&(true, 100)];
    let calls: Vec<_> = thread.iter().map(|s| (s.name.as_str(), s.start / 10, s.end / 10, s.ret)).collect();
    let expected = [("futex", 200, 2_060, Some(-4)), ("-sched-", 210, 230, None), ("getpid", 2_100, 2_110, Some(100))];
    assert_eq!(calls, expected);
}

#[test]
fn threads_stand_in_their_process() {
    let mut trace = TraceBuilder::new(1, 3_000);
    trace.cpu(0).running(101, "b", None).call(200, 202, 5).switch(210, 0, "").switch(2_000, 101, "b");
    let mut spans = build(decode(&trace)).0;
    spans.meta.processes.insert(101, 100);
    let bytes = drawn(&spans).0;
    let packets = message::Trace::decode(&bytes[..]).unwrap().packet;
    let threads = packets.into_iter().filter_map(|packet| packet.track_descriptor?.thread);
    let threads: Vec<_> = threads.map(|thread| (thread.pid, thread.tid)).collect();
    assert_eq!(threads, [(Some(100), Some(101))]);
    assert!(Drawn::perfetto(&bytes).slices.contains_key(&(true, 101)));
}

/// The kernel's bits for these waits.
fn bits(reason: Reason) -> i64 {
    match reason {
        Reason::Disk => 2,
        Reason::Stop => 4,
        Reason::Trace => 8,
        reason if reason.could_run() => 0,
        _ => 1,
    }
}

#[test]
fn the_state_of_a_thread_that_loses_its_cpu_is_what_its_wait_says() {
    let mut said = BTreeSet::new();
    for name in SAMPLES {
        let spans = sample(name);
        let told = Drawn::perfetto(&drawn(&spans).0);
        for &(pid, at, state) in told.states.iter().filter(|(pid, ..)| *pid != 0) {
            let covers =
                |s: &&Span| s.pid == Some(Pid::new(pid)) && (s.start.0 * 10..(s.start + s.dur).0 * 10).contains(&at);
            let waits = spans.spans.iter().filter(covers).filter_map(|s| match s.what() {
                What::Wait(reason) => Some(bits(reason)),
                _ => None,
            });
            match waits.collect::<Vec<_>>()[..] {
                [] => assert!([0, 1, 16].contains(&state), "{pid} {at} {state}"),
                [wait] => assert!(state == wait || state == 16, "{pid} {at}: {state}, not {wait}"),
                _ => panic!("{pid} waits twice at {at}"),
            }
            said.insert(state);
        }
    }
    assert_eq!(said, BTreeSet::from([0, 1, 2, 16]));
}

#[test]
fn what_overlaps_beside_a_thread_is_on_tracks_of_its_own() {
    let lock = |start, dur| Span {
        start: Time(start),
        dur: Time(dur),
        pid: Some(Pid::new(7)),
        what: What::of(number::LOCK_HELD as i32),
        ..Span::default()
    };
    let spans = Spans {
        names: vec!["=a".to_string()],
        spans: vec![lock(0, 50), lock(10, 60), lock(50, 30), lock(60, 5)],
        ..Spans::default()
    };
    let told = Drawn::perfetto(&drawn(&spans).0);
    assert_eq!(told.beside["locks"], BTreeMap::from([("=a".to_string(), 4)]));
    assert_eq!(told.lanes["locks"], 3);
}

#[test]
fn spans_that_no_builder_makes_are_drawn_all_the_same() {
    let one = |event: i32, n: i64| {
        let mut span = Span {
            start: Time(n * 7 - 100),
            dur: Time(n % 50),
            cpu: (n % 3 > 0).then(|| CpuId::new(n as u32 % 5)),
            pid: (n % 4 > 0).then(|| Pid::new(u32::MAX >> (n % 31))),
            rpc: n as i32,
            ipc: n as u8,
            ..Span::default()
        };
        span.set_columns(event, i64::MAX - n, -n);
        span
    };
    let rare = [number::USER, number::IDLE_EXIT, number::LOST, number::STALLED, number::KERNEL + 5, 1 << 31, !0];
    let events = (-9..number::NUMBERS as i32).step_by(7).chain(rare.map(|event| event as i32));
    let mut spans: Vec<Span> = events.zip(0..).map(|(event, n)| one(event, n)).collect();
    let usual = [number::SYSCALL + 42, number::IRQ + 253, number::TRAP + 14, number::USER + 7];
    spans.extend((0..600).map(|n| one(usual[n as usize % 4] as i32, n + 600)));
    let spans = Spans { names: vec!["\u{0}\"\\".to_string()], spans, ..Spans::default() };
    let told = Drawn::perfetto(&drawn(&spans).0);
    assert!(told.slices.values().flatten().count() > 100);
}
