// SPDX-License-Identifier: BSD-3-Clause
//! Why a request took so long: its causes add up to its time whatever the trace, and the one that was planted comes first.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kutrace_format::abi::event::{IRQ, IRQ_RETURN, MARK_A, RUNNABLE};
use kutrace_tests::{busy, Trace};
use postprocess::direct::spans_of_raw;
use postprocess::event::number::{is_execution, is_thread, level, Level};
use postprocess::span::held::Held;
use postprocess::span::Spans;
use postprocess::why::path::path;
use postprocess::why::request::{find, Ask, Request};
use postprocess::why::{explain, Timeline, Why};

use crate::golden::assert_golden;

/// `q` and `/q` in base 40.
const MARKS: [u32; 2] = [17, 719];
/// Requests of a made trace, and every how many one is slow.
const REQUESTS: u64 = 60;
const SLOW: u64 = 10;
/// Counts from one request to the next, and of the work in one.
const STEP: u64 = 10_000;
const WORK: u64 = 100;

fn samples() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let raw: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == "raw")).collect();
    assert!(raw.len() > 5);
    raw.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn spans(bytes: &[u8]) -> Spans {
    spans_of_raw(bytes, Held::new(usize::MAX)).unwrap().0
}

fn asked(bytes: &[u8], ask: &Ask) -> Why {
    explain(&Timeline::new(&spans(bytes)), ask, 0.1).unwrap()
}

fn assert_adds_up(timeline: &Timeline, request: &Request) {
    let parts = path(timeline, request);
    assert_eq!((parts[0].start, parts[parts.len() - 1].end), (request.start, request.end), "{request:?}");
    assert!(parts.iter().all(|part| part.start < part.end), "{parts:?}");
    assert!(parts.windows(2).all(|two| two[0].end == two[1].start), "{parts:?}");
}

#[test]
fn the_causes_of_every_request_add_up_to_its_time() {
    let mut requests = 0;
    for bytes in samples().into_iter().chain([busy(4, 30_000, 7).bytes()]) {
        let spans = spans(&bytes);
        let timeline = Timeline::new(&spans);
        let name = |s: &postprocess::span::Span| spans.names[s.name as usize].clone();
        let executed = || spans.spans.iter().filter(|s| is_execution(s.event));
        let called = executed().filter(|s| matches!(level(s.event as u32), Level::Syscall | Level::Trap)).map(name);
        let programs =
            executed().filter(|s| is_thread(s.event)).filter_map(|s| Some(name(s).rsplit_once('.')?.0.to_string()));
        let of_programs = programs
            .collect::<BTreeSet<_>>()
            .into_iter()
            .flat_map(|p| [Ask::Run(p.clone()), Ask::Client(p.clone()), Ask::Serve(p)]);
        let asks = called.collect::<BTreeSet<_>>().into_iter().map(Ask::Call).chain(of_programs).chain([Ask::Best]);
        let found = asks.filter_map(|ask| find(&spans, &timeline, &ask).ok()).flat_map(|(_, requests)| requests);
        let all = timeline.threads().map(|(pid, _)| Request { pid, start: timeline.extent.0, end: timeline.extent.1 });
        for request in found.chain(all).filter(|request| request.dur() > 0) {
            assert_adds_up(&timeline, &request);
            requests += 1;
        }
    }
    assert!(requests > 5_000, "{requests}");
}

#[test]
fn a_recorded_trace_is_explained() {
    let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/disk.raw")).unwrap();
    let spans = spans(&bytes);
    let timeline = Timeline::new(&spans);
    let why = explain(&timeline, &Ask::Call("write".into()), 0.01).unwrap();
    assert_golden("why/disk.txt", &why.text(10, timeline.extent.0, |pid| timeline.name(pid)));
}

/// Requests of thread 100 on CPU 0, each between two marks: `slow` makes those that are, from their start to the counts
/// that it returns.
fn trace_of(mut slow: impl FnMut(&mut Trace, u64) -> u64) -> Vec<u8> {
    let mut trace = Trace::new(2, REQUESTS * STEP + STEP);
    trace.cpu(0).running(100, "worker", None);
    trace.cpu(1).running(200, "other", None);
    for n in 0..REQUESTS {
        let start = n * STEP + 10;
        trace.cpu(0).entry(start, MARK_A, &[MARKS[0]]);
        let end = match n % SLOW {
            0 => slow(&mut trace, start),
            _ => start,
        };
        trace.cpu(0).entry(end + WORK, MARK_A, &[MARKS[1]]);
    }
    trace.bytes()
}

fn assert_first(bytes: &[u8], cause: &str) {
    let why = asked(bytes, &Ask::Mark("q".into()));
    let compared = why.compared.unwrap();
    assert_eq!((why.count as u64, compared.slow.0 as u64), (REQUESTS, REQUESTS / SLOW));
    let first = &compared.causes[0];
    assert_eq!(first.cause, cause, "{:#?}", compared.causes);
    assert!(first.share > 0.9 && first.in_slow as u64 == REQUESTS / SLOW && first.in_normal == 0, "{first:?}");
    assert_eq!(first.examples.len(), 3);
}

#[test]
fn a_lock_is_told_with_who_had_it() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).call(at + 10, 202, 5).switch(at + 20, 0, "");
        trace.cpu(1).call(at + 4_000, 202, 1).entry(at + 4_010, RUNNABLE, &[100]).small_return(at + 4_020, 1);
        trace.cpu(0).switch(at + 4_030, 100, "worker").small_return(at + 4_060, 0);
        at + 4_060
    });
    assert_first(&bytes, "waiting for a lock of other.200, meanwhile user code");
}

#[test]
fn who_took_the_cpu_is_told() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None).switch(at + 5_000, 100, "worker");
        at + 5_020
    });
    assert_first(&bytes, "waiting for a CPU that ran hog.300");
}

#[test]
fn an_interrupt_and_a_longer_call_are_told() {
    let interrupt = trace_of(|trace, at| {
        trace.cpu(0).entry(at + 10, IRQ + 0x24, &[]).entry(at + 3_000, IRQ_RETURN + 0x24, &[]);
        at + 3_000
    });
    assert_first(&interrupt, "interrupted by irq#36");
    let call = trace_of(|trace, at| {
        trace.cpu(0).call(at + 10, 1, 3).small_return(at + 3_000, 0);
        at + 3_000
    });
    assert_first(&call, "running in write");
}

#[test]
fn nothing_stands_out_where_nothing_does() {
    let why = asked(&trace_of(|_, at| at), &Ask::Mark("q".into()));
    assert_eq!(why.compared.unwrap().causes, []);
}

#[test]
fn what_is_not_there_is_said() {
    let spans = spans(&trace_of(|_, at| at));
    let timeline = Timeline::new(&spans);
    let error = explain(&timeline, &Ask::Call("fsync".into()), 0.01).unwrap_err();
    assert_eq!(error, "no requests: the trace has none of: fsync: each from its start to its return");
}
