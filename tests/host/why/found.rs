// SPDX-License-Identifier: BSD-3-Clause
//! Requests that are found in a trace, for each kind.

use kutrace_format::abi::event::{MARK_A, RUNNABLE, WAIT, WAIT_STOPPED};
use kutrace_format::file::NameKind;
use kutrace_tests::TraceBuilder;
use postprocess::source::events::read;
use postprocess::span::{build, Spans};
use postprocess::time::Time;
use postprocess::why::request::{find, Ask, Request};
use postprocess::why::{explain, Question, Timeline};

use super::planted::{question, trace_of, MARKS};
use super::{sample, spans};

fn found(spans: &Spans, ask: Ask) -> Vec<Request> {
    find(&Timeline::new(spans), &ask).unwrap().requests
}

/// Thread, start and end of each, in order.
fn times(spans: &Spans, ask: Ask) -> Vec<(u32, i64, i64)> {
    let mut times: Vec<_> = found(spans, ask).iter().map(|r| (r.pid.number(), r.start.0, r.end.0)).collect();
    times.sort_unstable();
    times
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
fn time_after_the_end_of_a_thread_is_that() {
    let slices = sample("slices");
    let one = found(&slices, Ask::Run("slices".into()))[0];
    let later = Request { start: one.end + Time(100_000), end: one.end + Time(100_900), ..one };
    let why = explain(&Timeline::new(&slices), &Question { ask: Ask::Range(later), ..Question::default() }).unwrap();
    let ended = why.causes.iter().find(|part| part.cause == "the thread had ended").map(|part| part.time);
    assert_eq!(ended, Some(900.0), "{:?}", why.causes);
}

#[test]
fn a_process_starts_before_it_has_its_name() {
    let mut trace = TraceBuilder::new(1, 10_000);
    let cpu = trace.cpu(0).running(200, "other", None).switch(100, 300, "shell").task(130, 300, "shell", None);
    let cpu = cpu.folded(1_000, 59, 0, 500, 0).task(1_600, 300, "tool", None).call(5_000, 231, 0);
    cpu.switch(5_050, 200, "other");
    let of = |program: &str| find(&Timeline::new(&spans(&trace.bytes())), &Ask::Run(program.into()));
    let tools = of("tool").unwrap().requests;
    assert_eq!(tools.len(), 1);
    assert_eq!((tools[0].pid.number(), tools[0].start.0, tools[0].end.0 >= 5_050), (300, 120, true), "{tools:?}");
    assert!(of("shell").is_err());
    // Asked for or not, the requests are the same.
    let slices = sample("slices");
    let [best, named] = [Ask::Best, Ask::Run("slices".into())].map(|ask| found(&slices, ask));
    assert_eq!((best.len(), best), (1, named));
}

#[test]
fn the_program_that_records_is_not_what_is_looked_at() {
    let mut trace = TraceBuilder::new(1, 10_000);
    let cpu = trace.cpu(0).running(200, "kutrace_control", None);
    cpu.switch(9_000, 300, "tool").task(9_030, 300, "tool", None).switch(9_500, 200, "kutrace_control");
    let of = |spans: &Spans| found(spans, Ask::Best)[0].pid.number();
    assert_eq!(of(&spans(&trace.bytes())), 300);
    let mut alone = TraceBuilder::new(1, 10_000);
    alone.cpu(0).running(200, "kutrace_control", None).folded(5_000, 39, 0, 10, 0);
    assert_eq!(of(&spans(&alone.bytes())), 200);
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
    let times = |ask| times(&spans, ask);
    let (first, second, other) = ((7, 100, 201), (7, 300, 401), (8, 120, 161));
    assert_eq!(times(Ask::Rpc(None)), [first, second, other]);
    assert_eq!(times(Ask::Best), [first, second, other]);
    assert_eq!(times(Ask::Rpc(Some("put".into()))), [second]);
    assert_eq!(times(Ask::Mark("q".into())), [(7, 150, 250)]);
}

#[test]
fn another_thread_of_the_process_ends_what_one_alone_has_begun() {
    let lines = "-1 1 34 7 a\n-1 1 34 8 a\n-1 1 34 9 b\n0 1 512 0  7 0  7 0 0 a.7 (200)\n0 1 512 1  8 0  8 0 0 a.8 (200)\n\
        0 1 512 2  9 0  9 0 0 b.9 (200)\n100 1 513 0  7 0  77 0 0 get.77 (201)\n150 1 522 0  7 0  17 0 0 mark_a=q (20a)\n\
        160 1 514 2  9 0  77 0 0 get.77 (202)\n170 1 522 2  9 0  719 0 0 mark_a=/q (20a)\n\
        200 1 514 1  8 0  77 0 0 get.77 (202)\n250 1 522 1  8 0  719 0 0 mark_a=/q (20a)\n\
        300 1 522 0  7 0  17 0 0 mark_a=q (20a)\n310 1 522 1  8 0  17 0 0 mark_a=q (20a)\n\
        320 1 522 1  8 0  719 0 0 mark_a=/q (20a)\n330 1 522 0  7 0  719 0 0 mark_a=/q (20a)\n\
        500 0 2087 0  7 0  0 0 0 getpid (827)\n";
    let mut spans = build(read(&mut lines.as_bytes()).unwrap()).0;
    let (rpcs, marks) = (Ask::Rpc(None), Ask::Mark("q".into()));
    assert!(find(&Timeline::new(&spans), &rpcs).is_err());
    assert_eq!(times(&spans, marks.clone()), [(7, 300, 330), (8, 310, 320)]);
    spans.meta.processes.insert(8, 7);
    assert_eq!(times(&spans, rpcs), [(8, 100, 201)]);
    assert_eq!(times(&spans, marks), [(7, 300, 330), (8, 150, 250), (8, 310, 320)]);
}

#[test]
fn an_rpc_that_is_handed_on_begins_where_it_first_did() {
    // Thread 7 hands 77 on and takes 78; 8 records the start of 77, too; 8 answers 78 before 7 turns to 79; and 7 puts
    // 79 off for 80.
    let lines = "-1 1 34 7 a\n-1 1 34 8 a\n0 1 512 0  7 0  7 0 0 a.7 (200)\n0 1 512 1  8 0  8 0 0 a.8 (200)\n\
        100 1 513 0  7 0  77 0 0 get.77 (201)\n150 1 513 0  7 0  78 0 0 put.78 (201)\n\
        160 1 513 1  8 0  77 0 0 get.77 (201)\n200 1 514 1  8 0  77 0 0 get.77 (202)\n\
        210 1 513 1  8 0  78 0 0 put.78 (201)\n250 1 514 1  8 0  78 0 0 put.78 (202)\n\
        300 1 513 0  7 0  79 0 0 get.79 (201)\n310 1 513 0  7 0  80 0 0 get.80 (201)\n\
        320 1 514 0  7 0  80 0 0 get.80 (202)\n330 1 513 0  7 0  79 0 0 get.79 (201)\n\
        340 1 514 0  7 0  79 0 0 get.79 (202)\n350 1 513 0  7 0  81 0 0 get.81 (201)\n\
        360 1 513 0  7 0  0 0 0 get.0 (201)\n500 0 2087 0  7 0  0 0 0 getpid (827)\n";
    let mut spans = build(read(&mut lines.as_bytes()).unwrap()).0;
    spans.meta.processes.insert(8, 7);
    let rpcs = find(&Timeline::new(&spans), &Ask::Rpc(None)).unwrap();
    let mut times: Vec<_> = rpcs.requests.iter().map(|r| (r.pid.number(), r.start.0, r.end.0)).collect();
    times.sort_unstable();
    assert_eq!(times, [(7, 300, 341), (7, 310, 321), (8, 100, 201), (8, 150, 251)]);
    assert_eq!(rpcs.unfinished.iter().map(|r| (r.pid.number(), r.start.0)).collect::<Vec<_>>(), [(7, 350)]);
}

#[test]
fn a_process_of_several_threads_is_one_request() {
    let mut trace = TraceBuilder::new(2, 10_000);
    let first = trace.cpu(0).running(200, "other", None).switch(100, 300, "tool").task(130, 300, "tool", None);
    first.call(5_000, 231, 0).switch(5_050, 200, "other");
    let second = trace.cpu(1).running(201, "other", None).switch(200, 301, "tool").task(230, 301, "tool", None);
    second.call(3_000, 60, 0).switch(3_050, 201, "other");
    trace.name(NameKind::Syscall, 60, "exit");
    let mut spans = spans(&trace.bytes());
    let threads =
        |spans: &Spans| times(spans, Ask::Run("tool".into())).into_iter().map(|(pid, ..)| pid).collect::<Vec<_>>();
    assert_eq!(threads(&spans), [300, 301]);
    spans.meta.processes.insert(301, 300);
    assert_eq!(threads(&spans), [300]);
}

/// A server is stopped while it serves, and while it has nothing to do.
#[test]
fn what_a_server_learns_of_after_a_stop_has_waited_for_its_end() {
    let mut trace = TraceBuilder::new(2, 10_000);
    for (number, name) in [(44, "sendto"), (45, "recvfrom"), (62, "kill"), (232, "epoll_wait")] {
        trace.name(NameKind::Syscall, number, name);
    }
    trace.cpu(0).running(100, "worker", None);
    trace.cpu(1).running(200, "other", None);
    let served = |trace: &mut TraceBuilder, at: u64| {
        trace.cpu(1).folded(at, 232, 5, 10, 1).folded(at + 20, 45, 7, 5, 9).folded(at + 30, 44, 7, 5, 9);
    };
    let stopped = |trace: &mut TraceBuilder, at: u64, to: u64| {
        trace.cpu(1).entry(at, WAIT, &[WAIT_STOPPED]).switch(at + 10, 0, "");
        trace.cpu(0).call(to, 62, 200).entry(to + 10, RUNNABLE, &[200]).small_return(to + 20, 0);
        trace.cpu(1).switch(to + 30, 200, "other");
    };
    served(&mut trace, 100);
    trace.cpu(1).folded(200, 232, 5, 10, 1).folded(220, 45, 7, 5, 9);
    stopped(&mut trace, 300, 1_000);
    trace.cpu(1).folded(1_070, 44, 7, 5, 9);
    served(&mut trace, 1_100);
    trace.cpu(1).folded(1_200, 232, 5, 10, -4);
    stopped(&mut trace, 1_220, 3_000);
    served(&mut trace, 3_070);
    let times = times(&spans(&trace.bytes()), Ask::Serve("other".into()));
    let begun = times.last().unwrap().1;
    assert_eq!(times, [(200, 110, 135), (200, 210, 1_075), (200, 1_110, 1_135), (200, begun, 3_105)]);
    assert!((1_220..=1_250).contains(&begun), "{begun}");
}

/// A server, a client, and threads of one that wake each other: in each, one thread receives and another sends.
#[test]
fn what_two_threads_of_a_process_receive_and_send_is_a_request() {
    let mut trace = TraceBuilder::new(4, 10_000);
    for (number, name) in [(42, "connect"), (44, "sendto"), (45, "recvfrom")] {
        trace.name(NameKind::Syscall, number, name);
    }
    let reader = trace.cpu(0).running(100, "served", None).folded(100, 45, 7, 10, 9).folded(300, 45, 7, 10, 9);
    reader.folded(520, 0, 5, 10, 8);
    let writer = trace.cpu(1).running(101, "served", None).folded(200, 44, 7, 10, 9).folded(400, 44, 7, 10, 9);
    writer.folded(500, 1, 5, 10, 8);
    trace.cpu(2).running(200, "client", None).folded(80, 42, 3, 5, 0).folded(90, 44, 3, 5, 9).folded(290, 44, 3, 5, 9);
    trace.cpu(3).running(201, "client", None).folded(220, 45, 3, 5, 9).folded(420, 45, 3, 5, 9);
    let mut spans = spans(&trace.bytes());
    let (served, client) = (Ask::Serve("served".into()), Ask::Client("client".into()));
    let none = |spans: &Spans, ask: &Ask| find(&Timeline::new(spans), ask).is_err();
    assert!(none(&spans, &served));
    spans.meta.processes.extend([(101, 100), (201, 200)]);
    assert_eq!(times(&spans, served), [(101, 100, 210), (101, 300, 410)]);
    assert_eq!(times(&spans, client), [(201, 90, 225), (201, 290, 425)]);
    assert!(none(&spans, &Ask::Client("served".into())));
}

/// A server that polls which descriptors are ready: it sends an answer in pieces, as the client takes them and as
/// another process brings them; then, to a client that it has answered, the text of another one.
#[test]
fn an_answer_in_pieces_is_one_answer() {
    let mut trace = TraceBuilder::new(2, 10_000);
    for (number, name) in [(42, "connect"), (44, "sendto"), (45, "recvfrom"), (232, "epoll_wait")] {
        trace.name(NameKind::Syscall, number, name);
    }
    let server = trace.cpu(0).running(100, "served", None).folded(10, 42, 9, 5, 0);
    let server = server.folded(90, 232, 5, 5, 1).folded(100, 45, 7, 10, 9).folded(120, 44, 7, 10, 9);
    let server = server.folded(190, 232, 5, 5, 1).folded(200, 44, 7, 10, 9);
    let server = server.folded(290, 232, 5, 5, 1).folded(300, 45, 9, 5, 9).folded(310, 44, 7, 10, 9);
    let server = server.folded(390, 232, 5, 5, 1).folded(400, 45, 8, 5, 9).folded(410, 44, 7, 10, 9);
    server.folded(420, 44, 8, 10, 9).folded(490, 232, 5, 5, 0).folded(500, 44, 8, 10, 9);
    assert_eq!(times(&spans(&trace.bytes()), Ask::Serve("served".into())), [(100, 95, 320), (100, 395, 430)]);
}

/// A client, a server, marks and processes that the trace ends in the middle of.
#[test]
fn what_has_begun_and_not_ended_is_counted() {
    let mut trace = TraceBuilder::new(2, 10_000);
    trace.name(NameKind::Syscall, 44, "sendto");
    trace.name(NameKind::Syscall, 45, "recvfrom");
    let client = trace.cpu(0).running(100, "worker", None).folded(10, 1, 1, 5, 9);
    let client = client.folded(100, 44, 5, 10, 9).folded(200, 45, 5, 10, 9).folded(300, 44, 5, 10, 9);
    client.entry(400, MARK_A, &[MARKS[0]]).entry(500, MARK_A, &[MARKS[1]]).entry(600, MARK_A, &[MARKS[0]]);
    client.call(700, 202, 5).switch(710, 0, "");
    let server = trace.cpu(1).running(200, "other", None).folded(120, 45, 7, 10, 9).folded(150, 44, 7, 10, 9);
    server.folded(320, 45, 7, 10, 9);
    let spans = spans(&trace.bytes());
    let timeline = Timeline::new(&spans);
    for ask in [Ask::Client("worker".into()), Ask::Serve("other".into()), Ask::Mark("q".into())] {
        let why = explain(&timeline, &question(ask.clone())).unwrap();
        assert_eq!((why.count, why.unfinished), (1, 1), "{ask:?}");
        assert!(why.text().contains("\n1 had begun and not ended\n"), "{}", why.text());
    }
    for (ask, count) in [(Ask::Call("futex".into()), 1), (Ask::Run("worker".into()), 1)] {
        let error = find(&timeline, &ask).unwrap_err();
        assert!(error.starts_with("no requests: the trace has no end of: "), "{error}");
        assert!(error.ends_with(&format!("; {count} had begun and not ended")), "{error}");
    }
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

#[test]
fn what_is_not_there_is_said() {
    let spans = spans(&trace_of(|_, at| at));
    let timeline = Timeline::new(&spans);
    let error = explain(&timeline, &question(Ask::Call("fsync".into()))).unwrap_err();
    assert_eq!(error, "no requests: the trace has none of: fsync: each from its start to its return");
}
