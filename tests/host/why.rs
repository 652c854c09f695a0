// SPDX-License-Identifier: BSD-3-Clause
//! Why a request took so long: its causes add up to its time whatever the trace, and the one that was planted comes
//! first.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kutrace_format::abi::event::{
    FLOW_RECEIVED, FLOW_SENT, IPI, IRQ, IRQ_RETURN, MARK_A, RUNNABLE, SOFTIRQ, SOFTIRQ_RETURN,
};
use kutrace_format::abi::packet::FlowPacket;
use kutrace_format::file::NameKind;
use kutrace_tests::{busy, TraceBuilder};
use postprocess::direct::spans_of_raw;
use postprocess::event::number::{level, Level};
use postprocess::id::Pid;
use postprocess::sink;
use postprocess::source;
use postprocess::source::events::read;
use postprocess::span::dense::Dense;
use postprocess::span::limit::SpanLimit;
use postprocess::span::{build, Spans};
use postprocess::time::Time;
use postprocess::why::cause::Causes;
use postprocess::why::check::check_requests;
use postprocess::why::compare::EXCESS_TIME_MIN;
use postprocess::why::request::{find, Ask, Request};
use postprocess::why::sweep::{sweep, sweep_together, Sum};
use postprocess::why::{explain, Question, Timeline, Why};
use serde_json::Value;

use crate::golden::assert_golden;
use crate::schema::wrong;
use crate::upstream::reference;

/// `q` and `/q` in base 40.
const MARKS: [u32; 2] = [17, 719];
/// Requests of a made trace, and every how many one is slow.
const REQUESTS: u64 = 60;
const SLOW: u64 = 10;
/// Counts from one request to the next, and of the work in one.
const STEP: u64 = 10_000;
const WORK: u64 = 100;

pub fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    files.sort();
    assert!(files.len() > 5);
    files
}

pub fn spans(bytes: &[u8]) -> Spans {
    spans_of_raw(bytes, SpanLimit::new(usize::MAX)).unwrap().0
}

pub fn sample(name: &str) -> Spans {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../samples/{name}.trace"));
    spans(&fs::read(path).unwrap())
}

/// The spans of the events in a file that shows a rule.
fn rule(path: &Path) -> Spans {
    let case = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> =
        case.lines().take_while(|line| *line != "pending").filter(|line| !line.starts_with(' ')).collect();
    build(read(&mut lines.join("\n").as_bytes()).unwrap()).0
}

fn question(ask: Ask) -> Question {
    Question { ask, page: "t.html".to_string(), ..Question::default() }
}

fn asked(bytes: &[u8], ask: &Ask) -> Why {
    explain(&Timeline::new(&spans(bytes)), &Question { slow: 0.1, ..question(ask.clone()) }).unwrap()
}

/// Checks all requests that can be asked for of a trace, and the whole time of each of its threads; returns how many.
fn checked(spans: &Spans) -> usize {
    let timeline = Timeline::new(spans);
    let name = |s: &postprocess::span::Span| spans.names[s.name].clone();
    let executed = || spans.spans.iter().filter(|s| s.is_execution());
    let called = executed().filter(|s| matches!(level(s.event() as u32), Level::Syscall | Level::Trap)).map(name);
    let programs = executed().filter(|s| s.is_own_code()).filter_map(|s| Some(name(s).rsplit_once('.')?.0.to_string()));
    let of_programs = programs
        .collect::<BTreeSet<_>>()
        .into_iter()
        .flat_map(|p| [Ask::Run(p.clone()), Ask::Client(p.clone()), Ask::Serve(p)]);
    let asks = called.collect::<BTreeSet<_>>().into_iter().map(Ask::Call).chain(of_programs);
    let found = asks.chain([Ask::Best, Ask::Rpc(None)]).filter_map(|ask| find(&timeline, &ask).ok());
    let (start, end) = timeline.extent;
    let all = timeline.threads().map(|(pid, _)| vec![Request { pid, start, end }]);
    let mut requests = 0;
    for mut some in found.map(|(_, some)| some).chain(all) {
        some.sort_unstable_by_key(|r| (r.pid.number(), r.start, r.end));
        assert_eq!(check_requests(&timeline, &some), [""; 0]);
        requests += some.len();
    }
    requests
}

#[test]
fn the_causes_of_every_request_add_up_to_its_time() {
    let shown: usize = files("golden/rules", "txt").iter().map(|path| checked(&rule(path))).sum();
    assert!(shown > 200, "{shown}");
    let recorded = files("../samples", "trace").into_iter().map(|path| fs::read(path).unwrap());
    let theirs = ["hw2019.trace", "pipes.trace"].into_iter().filter_map(reference);
    let raw = recorded.chain(theirs).chain([busy(4, 30_000, 7).bytes()]);
    let requests: usize = raw.map(|bytes| checked(&spans(&bytes))).sum();
    assert!(requests > 5_000, "{requests}");
}

#[test]
fn the_check_finds_a_request_that_is_not_divided_as_it_is_alone() {
    let spans = sample("redis");
    let timeline = Timeline::new(&spans);
    let (_, mut requests) = find(&timeline, &Ask::Best).unwrap();
    requests.sort_unstable_by_key(|r| (r.pid.number(), r.start, r.end));
    assert_eq!(check_requests(&timeline, &requests), [""; 0]);
    // One that ends before it starts cannot be divided.
    let Request { start, end, .. } = requests[0];
    requests[0] = Request { start: end, end: start, ..requests[0] };
    assert_eq!(check_requests(&timeline, &requests).len(), 1);
}

#[test]
fn each_sample_is_explained_by_the_best_that_it_offers() {
    for path in files("../samples", "trace") {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let why = explain(&Timeline::new(&sample(stem)), &question(Ask::Best)).unwrap();
        assert_eq!(why.remainder, Time::ZERO);
        assert_golden(&format!("why/{stem}.txt"), &why.text());
    }
}

#[test]
fn spans_that_were_written_and_read_have_the_same_causes() {
    for name in ["redis", "convoy"] {
        let spans = sample(name);
        let mut text = Vec::new();
        sink::json::write(&spans, &mut text).unwrap();
        let read = source::open(&text[..]).expect("memory can be read").spans(SpanLimit::new(usize::MAX)).unwrap();
        let [direct, read] = [&spans, &read].map(|s| explain(&Timeline::new(s), &question(Ask::Best)).unwrap());
        assert_eq!(direct, read, "{name}");
    }
}

#[test]
fn spans_in_little_memory_have_the_same_causes() {
    for path in files("../samples", "trace") {
        let (bytes, mut dense) = (fs::read(&path).unwrap(), Dense::default());
        let (whole, (about, _)) = (spans(&bytes), spans_of_raw(&bytes, &mut dense).unwrap());
        assert_eq!((dense.len(), about.spans.len()), (whole.spans.len(), 0));
        let [of_whole, of_dense] = [Timeline::new(&whole), Timeline::dense(&about, &dense)]
            .map(|timeline| explain(&timeline, &question(Ask::Best)).unwrap());
        assert_eq!(of_whole, of_dense, "{}", path.display());
    }
}

#[test]
fn several_threads_add_up_what_one_does() {
    let spans = sample("redis");
    let timeline = Timeline::new(&spans);
    let (begin, end) = timeline.extent;
    let of_thread = |pid: Pid| {
        let step = (end - begin) / 2_000;
        (0..2_000).map(move |n| begin + step * n).map(move |start| Request {
            pid,
            start,
            end: (start + step * 9).min(end),
        })
    };
    let mut requests: Vec<Request> = timeline.threads().flat_map(|(pid, _)| of_thread(pid)).collect();
    requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));
    assert!(requests.len() > 20_000, "{}", requests.len());
    let (mut alone, mut causes_alone) = (Vec::new(), Causes::default());
    sweep(&timeline, &mut causes_alone, &requests, |_, n, sums| alone.push((n, sums.to_vec())));
    let (mut together, mut causes) = (Vec::new(), Causes::default());
    let each = |own: &mut Vec<_>, _: &Causes, n: usize, sums: &[(u32, Sum)]| own.push((n, sums.to_vec()));
    sweep_together(&timeline, &mut causes, &requests, Vec::new, each, |own, numbers| {
        let known = |(cause, sum): (u32, Sum)| (numbers[cause as usize], sum);
        together.extend(own.into_iter().map(|(n, sums)| (n, sums.into_iter().map(known).collect::<Vec<_>>())));
    });
    assert_eq!(causes.count(), causes_alone.count());
    for cause in 0..causes.count() as u32 {
        assert_eq!(causes.text(cause, &timeline, None), causes_alone.text(cause, &timeline, None));
    }
    for list in [&mut alone, &mut together] {
        list.iter_mut().for_each(|(_, sums)| {
            sums.retain(|(_, sum)| sum.time > Time::ZERO);
            sums.sort_unstable_by_key(|(cause, _)| *cause);
        });
    }
    assert!(alone == together);
}

fn found(spans: &Spans, ask: Ask) -> Vec<Request> {
    find(&Timeline::new(spans), &ask).unwrap().1
}

#[test]
fn requests_of_clients_and_servers_are_found_in_a_recorded_trace() {
    let redis = sample("redis");
    // 250, and the one of a question of its own that comes before them.
    assert_eq!(found(&redis, Ask::Client("redis-benchmark".into())).len(), 251);
    assert_eq!(found(&redis, Ask::Serve("redis-server".into())).len(), 251);
    // A server is not a client of those that it serves.
    let none = find(&Timeline::new(&redis), &Ask::Client("redis-server".into()));
    assert!(none.is_err_and(|fact| fact.starts_with("no requests: the trace has none of: requests of redis-server")));
}

#[test]
fn processes_calls_faults_and_stretches_are_found_in_recorded_traces() {
    let pipeline = sample("pipeline");
    for program in ["seq", "sort", "tail"] {
        assert_eq!(found(&pipeline, Ask::Run(program.into())).len(), 1, "{program}");
    }
    assert_eq!(found(&sample("disk"), Ask::Call("write".into())).len(), 8);
    let faults = found(&sample("faults"), Ask::Call("page_fault".into()));
    assert!(faults.len() > 512, "{}", faults.len());
    let one = found(&pipeline, Ask::Run("seq".into()))[0];
    let part = Request { start: one.start + Time(10), end: one.start + Time(1_000), ..one };
    assert_eq!(found(&pipeline, Ask::Range(part)), [part]);
}

#[test]
fn rpcs_and_marks_are_found_by_thread_and_name() {
    let lines = "-1 1 34 7 a\n-1 1 34 8 b\n0 1 512 0  7 0  7 0 0 a.7 (200)\n0 1 512 1  8 0  8 0 0 b.8 (200)\n\
        100 1 513 0  7 0  77 0 0 get.77 (201)\n120 1 513 1  8 0  77 0 0 get.77 (201)\n\
        150 1 522 0  7 0  17 0 0 mark_a=q (20a)\n160 1 514 1  8 0  77 0 0 get.77 (202)\n\
        200 1 514 0  7 0  77 0 0 get.77 (202)\n250 1 522 0  7 0  719 0 0 mark_a=/q (20a)\n\
        300 1 513 0  7 0  78 0 0 put.78 (201)\n400 1 514 0  7 0  78 0 0 put.78 (202)\n\
        500 0 2087 0  7 0  0 0 0 getpid (827)\n";
    let spans = build(read(&mut lines.as_bytes()).unwrap()).0;
    let times = |ask| {
        let mut times: Vec<_> = found(&spans, ask).iter().map(|r| (r.pid.number(), r.start.0, r.end.0)).collect();
        times.sort_unstable();
        times
    };
    let (first, second, other) = ((7, 100, 201), (7, 300, 401), (8, 120, 161));
    assert_eq!(times(Ask::Rpc(None)), [first, second, other]);
    assert_eq!(times(Ask::Best), [first, second, other]);
    assert_eq!(times(Ask::Rpc(Some("put".into()))), [second]);
    assert_eq!(times(Ask::Mark("q".into())), [(7, 150, 250)]);
}

#[test]
fn what_a_program_records_of_itself_is_found_by_name_as_marks_are() {
    let lines = "-1 1 34 7 a\n0 1 512 0  7 0  7 0 0 a.7 (200)\n\
        100 1 561 0  7 0  1 0 0 all (231)\n110 1 561 0  7 0  2 0 0 part (231)\n\
        120 1 560 0  7 0  0 0 0 step (230)\n150 1 562 0  7 0  2 0 0 part (232)\n\
        160 1 561 0  7 0  2 0 0 part (231)\n190 1 560 0  7 0  0 0 0 /step (230)\n\
        200 1 562 0  7 0  2 0 0 part (232)\n250 1 562 0  7 0  1 0 0 all (232)\n500 0 2087 0  7 0  0 0 0 getpid (827)\n";
    let spans = build(read(&mut lines.as_bytes()).unwrap()).0;
    let times = |label: &str| {
        let found = found(&spans, Ask::Mark(label.into()));
        found.iter().map(|r| (r.pid.number(), r.start.0, r.end.0)).collect::<Vec<_>>()
    };
    assert_eq!(times("all"), [(7, 100, 250)]);
    assert_eq!(times("part"), [(7, 110, 150), (7, 160, 200)]);
    assert_eq!(times("step"), [(7, 120, 190)]);
}

fn trace_of(slow: impl FnMut(&mut TraceBuilder, u64) -> u64) -> Vec<u8> {
    made(REQUESTS, SLOW, slow)
}

/// Requests of thread 100 on CPU 0, each between two marks: `slow` makes one of this many, from its start to the counts
/// that it returns.
pub fn made(requests: u64, of: u64, mut slow: impl FnMut(&mut TraceBuilder, u64) -> u64) -> Vec<u8> {
    let mut trace = TraceBuilder::new(2, requests * STEP + STEP);
    trace.cpu(0).running(100, "worker", None);
    trace.cpu(1).running(200, "other", None);
    for n in 0..requests {
        let start = n * STEP + 10;
        trace.cpu(0).entry(start, MARK_A, &[MARKS[0]]);
        let end = match n % of {
            0 => slow(&mut trace, start),
            _ => start,
        };
        trace.cpu(0).entry(end + WORK, MARK_A, &[MARKS[1]]);
    }
    trace.bytes()
}

fn assert_first(bytes: &[u8], cause: &str, culprit: &str) {
    let why = asked(bytes, &Ask::Mark("q".into()));
    let text = why.text();
    assert!(text.lines().any(|line| line.starts_with("1. ") && line.ends_with(cause)), "{text}");
    let compared = why.compared.unwrap();
    assert_eq!((why.count as u64, compared.slow.count as u64), (REQUESTS, REQUESTS / SLOW));
    let first = &compared.causes[0];
    assert_eq!((&*first.cause, &*first.culprit), (cause, culprit), "{:#?}", compared.causes);
    assert!(first.share > 0.9 && first.in_slow as u64 == REQUESTS / SLOW && first.in_normal == 0, "{first:?}");
    assert_eq!(first.examples.len(), 3);
    assert!(first.examples.iter().all(|example| example.address.starts_with("t.html#t=")), "{first:?}");
}

#[test]
fn a_lock_is_told_with_who_had_it() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).call(at + 10, 202, 5).switch(at + 20, 0, "");
        trace.cpu(1).call(at + 4_000, 202, 1).entry(at + 4_010, RUNNABLE, &[100]).small_return(at + 4_020, 1);
        trace.cpu(0).switch(at + 4_030, 100, "worker").small_return(at + 4_060, 0);
        at + 4_060
    });
    assert_first(&bytes, "waiting for a lock of other.200, meanwhile user code", "other.200");
}

#[test]
fn who_took_the_cpu_is_told() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None).switch(at + 5_000, 100, "worker");
        at + 5_020
    });
    assert_first(&bytes, "waiting for a CPU that ran hog.300", "hog.300");
}

#[test]
fn threads_of_one_program_are_one_culprit() {
    let mut pid = 300;
    let bytes = trace_of(|trace, at| {
        pid += 1;
        trace.cpu(0).switch(at + 10, pid, "hog").task(at + 30, pid, "hog", None).switch(at + 5_000, 100, "worker");
        at + 5_020
    });
    assert_first(&bytes, "waiting for a CPU that ran hog", "hog");
    let why = asked(&bytes, &Ask::Mark("q".into()));
    let first = &why.compared.unwrap().causes[0];
    assert_eq!(first.detail[0], "6 threads: hog.301, hog.302, hog.303, ...");
}

#[test]
fn a_holder_of_a_lock_that_lost_its_cpu_is_told_with_who_had_that() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).call(at + 10, 202, 5).switch(at + 20, 0, "");
        trace.cpu(1).switch(at + 30, 300, "hog").task(at + 60, 300, "hog", None).switch(at + 4_900, 200, "other");
        trace.cpu(1).call(at + 4_930, 202, 1).entry(at + 4_940, RUNNABLE, &[100]).small_return(at + 4_950, 1);
        trace.cpu(0).switch(at + 4_960, 100, "worker").small_return(at + 4_990, 0);
        at + 4_990
    });
    assert_first(&bytes, "waiting for a lock of other, meanwhile waiting for a CPU that ran hog.300", "hog.300");
}

/// A request waits for a lock whose holder waits for the disk; returns the time at which it continues.
pub fn holder_in_fsync(trace: &mut TraceBuilder, at: u64) -> u64 {
    trace.cpu(0).call(at + 10, 202, 5).switch(at + 20, 0, "");
    trace.cpu(1).call(at + 25, 74, 4).switch(at + 30, 0, "").entry(at + 4_800, IRQ + 0x24, &[]);
    trace.cpu(1).entry(at + 4_810, RUNNABLE, &[200]).entry(at + 4_820, IRQ_RETURN + 0x24, &[]);
    trace.cpu(1).switch(at + 4_830, 200, "other").small_return(at + 4_860, 0);
    trace.cpu(1).call(at + 4_930, 202, 1).entry(at + 4_940, RUNNABLE, &[100]).small_return(at + 4_950, 1);
    trace.cpu(0).switch(at + 4_960, 100, "worker").small_return(at + 4_990, 0);
    at + 4_990
}

#[test]
fn a_holder_of_a_lock_that_waits_for_the_disk_is_told_with_the_disk() {
    let bytes = trace_of(holder_in_fsync);
    let cause = "waiting for a lock of other.200, meanwhile waiting for the disk, until irq#36";
    assert_first(&bytes, cause, "other.200");
}

/// A server is waited for that itself waits for the network; once a timeout ends its wait, and it reads a file, sends
/// something or not, and waits again.
fn waiting_again(trace: &mut TraceBuilder, at: u64, sends: bool) -> u64 {
    if at < STEP {
        let calls = [(3, "close"), (44, "sendto"), (45, "recvfrom"), (232, "epoll_wait"), (257, "openat")];
        calls.into_iter().for_each(|(number, name)| trace.name(NameKind::Syscall, number, name));
    }
    trace.cpu(0).call(at + 10, 45, 5).switch(at + 20, 0, "");
    let server = trace.cpu(1).call(at + 25, 232, 5).switch(at + 30, 0, "").entry(at + 2_500, IRQ + 0xec, &[]);
    server.entry(at + 2_505, RUNNABLE, &[200]).entry(at + 2_510, IRQ_RETURN + 0xec, &[]);
    server.switch(at + 2_520, 200, "other").small_return(at + 2_545, 0);
    server.folded(at + 2_550, 257, 7, 2, 3).folded(at + 2_555, 0, 3, 2, 40).folded(at + 2_560, 3, 3, 2, 0);
    if sends {
        server.folded(at + 2_565, 1, 8, 2, 1);
    }
    server.call(at + 2_570, 232, 5).switch(at + 2_580, 0, "").entry(at + 4_500, SOFTIRQ + 3, &[]);
    server.entry(at + 4_510, RUNNABLE, &[200]).entry(at + 4_520, SOFTIRQ_RETURN + 3, &[]);
    server.switch(at + 4_530, 200, "other").small_return(at + 4_555, 1);
    server.call(at + 4_560, 44, 6).entry(at + 4_565, RUNNABLE, &[100]).small_return(at + 4_570, 1);
    trace.cpu(0).switch(at + 4_580, 100, "worker").small_return(at + 4_610, 9);
    at + 4_610
}

#[test]
fn a_wait_that_a_timeout_ends_and_that_is_taken_up_again_is_one_wait() {
    let waits = "waiting for a pipe or socket of other.200, meanwhile waiting for ";
    let message = format!("{waits}the network; what happens beyond this machine is not known, until BH:rx");
    assert_first(&trace_of(|trace, at| waiting_again(trace, at, false)), &message, "other.200");
    // Who sends something has not only waited.
    let why = asked(&trace_of(|trace, at| waiting_again(trace, at, true)), &Ask::Mark("q".into()));
    let causes = why.compared.unwrap().causes;
    assert_eq!(causes[0].cause, format!("{waits}time to pass: a sleep or a timeout"));
    assert_eq!(causes[1].cause, message);
}

#[test]
fn an_own_wait_that_is_taken_up_again_after_the_request_is_not_that_of_the_request() {
    let bytes = trace_of(|trace, at| {
        waiting_again(trace, at, false);
        at + 4_610
    });
    let spans = spans(&bytes);
    let why = explain(&Timeline::new(&spans), &question(Ask::Call("epoll_wait".into()))).unwrap();
    let text = |n: usize| why.causes[n].cause.clone();
    assert_eq!(
        [text(0), text(1)],
        [
            "waiting for time to pass: a sleep or a timeout",
            "waiting for the network; what happens beyond this machine is not known, until BH:rx"
        ]
    );
}

#[test]
fn a_packet_that_is_sent_again_is_told_from_one_that_is_late() {
    let answer = |again: bool| {
        trace_of(move |trace, at| {
            trace.cpu(0).call(at + 10, 45, 5).switch(at + 20, 0, "");
            // Between the two the kernel looks at what else is due.
            let over = if again { at + 3_985 } else { at + 3_800 };
            let timer = trace.cpu(1).entry(over - 10, SOFTIRQ + 1, &[]).entry(over, SOFTIRQ_RETURN + 1, &[]);
            let rx = timer.entry(at + 3_990, SOFTIRQ + 3, &[]).entry(at + 4_010, RUNNABLE, &[100]);
            rx.entry(at + 4_020, SOFTIRQ_RETURN + 3, &[]);
            trace.cpu(0).switch(at + 4_030, 100, "worker").small_return(at + 4_060, 9);
            at + 4_060
        })
    };
    let again = "waiting for the network until a timer: a packet sent again, held back or delayed";
    assert_first(&answer(true), again, "BH:timer");
    let why = asked(&answer(false), &Ask::Mark("q".into()));
    let late = &why.compared.unwrap().causes[0].cause;
    assert!(late.starts_with("waiting for the network; what happens beyond this machine is not known"), "{late}");
}

/// A request to another thread and its answer, as packets: how long the thread works, how long the answer is on its
/// way, and whether it is sent again meanwhile. Returns when it has arrived.
fn ask_other(trace: &mut TraceBuilder, at: u64, (work, way): (u64, u64), again: bool) -> u64 {
    let packet = |flow| FlowPacket { flow, ports: [40112, 6379], bytes: 30, flags: 16, sequence: at as u32 }.words();
    let [request, answer] = [packet(4), packet(5)];
    trace.cpu(1).call(at + 1, 45, 5).switch(at + 5, 0, "");
    trace.cpu(0).call(at + 10, 44, 5).entry(at + 20, FLOW_SENT, &request).small_return(at + 30, 30);
    trace.cpu(0).call(at + 40, 45, 5).switch(at + 50, 0, "");
    let arrives = trace.cpu(1).entry(at + 60, SOFTIRQ + 3, &[]).entry(at + 70, FLOW_RECEIVED, &request);
    arrives.entry(at + 80, RUNNABLE, &[200]).entry(at + 90, SOFTIRQ_RETURN + 3, &[]);
    trace.cpu(1).switch(at + 100, 200, "other").small_return(at + 130, 30);
    let sent = at + 150 + work;
    trace.cpu(1).call(sent - 10, 44, 5).entry(sent, FLOW_SENT, &answer).small_return(sent + 10, 30);
    if again {
        let timer = trace.cpu(1).entry(sent + 20, SOFTIRQ + 1, &[]).entry(sent + 30, FLOW_SENT, &answer);
        timer.entry(sent + 40, SOFTIRQ_RETURN + 1, &[]);
    }
    let end = sent + 50 + way;
    let arrives = trace.cpu(0).entry(end, SOFTIRQ + 3, &[]).entry(end + 10, FLOW_RECEIVED, &answer);
    arrives.entry(end + 20, RUNNABLE, &[100]).entry(end + 30, SOFTIRQ_RETURN + 3, &[]);
    trace.cpu(0).switch(end + 40, 100, "worker").small_return(end + 70, 30);
    end + 80
}

#[test]
fn the_way_of_a_message_is_told_from_the_work_for_it() {
    let asked = |times, again| trace_of(move |trace, at| ask_other(trace, at, times, again));
    assert_first(&asked((6_000, 0), false), "waiting for a message of other.200, meanwhile user code", "other.200");
    let way = "waiting for a message of other, meanwhile it was on its way through the network";
    assert_first(&asked((0, 6_000), false), way, "network");
    assert_first(&asked((0, 6_000), true), &format!("{way}, and sent again"), "network");
}

#[test]
fn who_interrupts_is_told() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(1).entry(at + 5, IPI, &[0]);
        trace.cpu(0).entry(at + 10, IRQ + 0xfb, &[]).entry(at + 3_000, IRQ_RETURN + 0xfb, &[]);
        at + 3_000
    });
    let why = asked(&bytes, &Ask::Mark("q".into()));
    let first = &why.compared.unwrap().causes[0];
    assert!(first.cause.ends_with(" of other.200") && first.culprit == "other.200", "{first:?}");
}

#[test]
fn an_interrupt_and_a_longer_call_are_told() {
    let interrupt = trace_of(|trace, at| {
        trace.cpu(0).entry(at + 10, IRQ + 0x24, &[]).entry(at + 3_000, IRQ_RETURN + 0x24, &[]);
        at + 3_000
    });
    assert_first(&interrupt, "interrupted by irq#36", "irq#36");
    let call = trace_of(|trace, at| {
        trace.cpu(0).call(at + 10, 1, 3).small_return(at + 3_000, 0);
        at + 3_000
    });
    assert_first(&call, "running in write", "write");
}

/// Six requests of 600 that take some microseconds more are usual; if it is asked, or if there are sixty, they are not.
#[test]
fn what_is_rare_and_short_does_not_stand_out() {
    let delayed = |of: u64| {
        made(600, of, |trace, at| {
            trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None).switch(at + 800, 100, "worker");
            at + 820
        })
    };
    let causes = |of: u64, excess_min: Time| {
        let question = Question { slow: 1.0 / of as f64, excess_min, ..question(Ask::Mark("q".into())) };
        let why = explain(&Timeline::new(&spans(&delayed(of))), &question).unwrap();
        let compared = why.compared.as_ref().unwrap();
        assert_eq!((why.count as u64, compared.slow.count as u64), (600, 600 / of));
        assert_eq!(why.text().contains("\nnothing stands out: "), compared.causes.is_empty(), "{}", why.text());
        compared.causes.first().map(|cause| cause.culprit.clone())
    };
    let hog = Some("hog.300".to_string());
    assert_eq!(causes(100, EXCESS_TIME_MIN), None);
    assert_eq!(causes(100, Time::ZERO), hog);
    assert_eq!(causes(10, EXCESS_TIME_MIN), hog);
}

#[test]
fn nothing_stands_out_where_nothing_does() {
    let why = asked(&trace_of(|_, at| at), &Ask::Mark("q".into()));
    assert!(why.text().contains("\nnothing stands out\n"), "{}", why.text());
    assert_eq!(why.compared.unwrap().causes, []);
}

#[test]
fn what_is_not_there_is_said() {
    let spans = spans(&trace_of(|_, at| at));
    let timeline = Timeline::new(&spans);
    let error = explain(&timeline, &question(Ask::Call("fsync".into()))).unwrap_err();
    assert_eq!(error, "no requests: the trace has none of: fsync: each from its start to its return");
}

#[test]
fn the_json_is_as_its_schema_says() {
    let schema: Value = serde_json::from_str(include_str!("../../docs/why.schema.json")).unwrap();
    let mut kinds = BTreeSet::new();
    for path in files("../samples", "trace") {
        let spans = spans(&fs::read(path).unwrap());
        for slow in [0.01, 1.0] {
            let why = explain(&Timeline::new(&spans), &Question { slow, ..question(Ask::Best) }).unwrap();
            let value = serde_json::to_value(&why).unwrap();
            assert_eq!(wrong(&schema, &value), [""; 0]);
            kinds.extend(why.causes.iter().map(|cause| format!("{:?}", cause.kind)));
        }
    }
    assert!(kinds.len() > 5, "{kinds:?}");
    let bad = serde_json::json!({ "count": "many", "more": 1 });
    assert!(wrong(&schema, &bad).len() > 5);
}
