// SPDX-License-Identifier: BSD-3-Clause
//! A request of one machine to another, whose clock is another one: which way, or what there, took so long.

use kutrace_format::abi::event::{FLOW_RECEIVED, FLOW_SENT, MARK_A, RUNNABLE, SOFTIRQ, SOFTIRQ_RETURN};
use kutrace_format::abi::packet::FlowPacket;
use kutrace_format::file::NameKind;
use kutrace_tests::TraceBuilder;
use postprocess::id::Pid;
use postprocess::machine::file::{self, Machine};
use postprocess::machine::place::{place, By, Known};
use postprocess::machine::trace::known;
use postprocess::source;
use postprocess::time::Time;
use postprocess::why::request::Ask;

use super::planted::{asked, assert_most, MARKS, REQUESTS, SLOW};

/// Counts from one request to the next, 20 ms.
const STEP: u64 = 2_000_000;
/// Counts that are planted, 6 ms.
const MORE: u64 = 600_000;
/// Counts of each way and of the server's work, as they are usual.
const WAY: u64 = 2000;
const WORK: u64 = 500;
/// The server's trace begins this many counts after the client's.
const LATER: u64 = 3000;
/// By how much the server's clock of the day showed more than the client's at the start of each.
const AHEAD_NS: u64 = 1_234_597_000;
const SEND: u16 = 44;
const RECEIVE: u16 = 45;

/// Planted delays.
#[derive(Clone, Copy, Debug, Default)]
struct Planted {
    there: u64,
    queue: u64,
    work: u64,
    back: u64,
}

/// The traces of a client and of its server, whose slow requests have something planted.
fn traces(planted: Planted) -> [TraceBuilder; 2] {
    let length = REQUESTS * STEP + STEP;
    let mut traces = [TraceBuilder::new(1, length), TraceBuilder::new(1, length - LATER)];
    traces[1].header.start.realtime_ns += AHEAD_NS;
    for trace in &mut traces {
        trace.name(NameKind::Syscall, SEND.into(), "sendto");
        trace.name(NameKind::Syscall, RECEIVE.into(), "recvfrom");
    }
    let [client, server] = &mut traces;
    client.cpu(0).running(100, "worker", None);
    server.cpu(0).running(200, "nginx", None).call(10, RECEIVE, 5).switch(20, 0, "");
    for n in 0..REQUESTS {
        let slow = if n % SLOW == 0 { planted } else { Planted::default() };
        request(client, server, (n as u32, 10_000 + n * STEP), slow);
    }
    traces
}

/// The request of this number, at a moment of the client's.
fn request(client: &mut TraceBuilder, server: &mut TraceBuilder, (n, at): (u32, u64), slow: Planted) {
    let packet = |flow| FlowPacket { flow, ports: [40112, 6379], bytes: 30, flags: 16, sequence: n * 30 }.words();
    let [question, answer] = [packet(4), packet(5)];
    let (client, server) = (client.cpu(0), server.cpu(0));
    client.entry(at, MARK_A, &[MARKS[0]]).call(at + 100, SEND, 5);
    client.entry(at + 110, FLOW_SENT, &question).small_return(at + 120, 30);
    client.call(at + 140, RECEIVE, 5).switch(at + 150, 0, "");
    if slow.queue > 0 {
        server.switch(at - LATER, 300, "batch").task(at + 30 - LATER, 300, "batch", None);
    }
    let arrives = at + 110 + WAY + slow.there - LATER;
    server.entry(arrives - 10, SOFTIRQ + 3, &[]).entry(arrives, FLOW_RECEIVED, &question);
    server.entry(arrives + 10, RUNNABLE, &[200]).entry(arrives + 20, SOFTIRQ_RETURN + 3, &[]);
    let runs = arrives + 100 + slow.queue;
    server.switch(runs, 200, "nginx").small_return(runs + 30, 30);
    let sent = runs + 50 + WORK + slow.work;
    server.call(sent - 10, SEND, 5).entry(sent, FLOW_SENT, &answer).small_return(sent + 10, 30);
    server.call(sent + 30, RECEIVE, 5).switch(sent + 40, 0, "");
    let back = sent + LATER + WAY + slow.back;
    client.entry(back - 10, SOFTIRQ + 3, &[]).entry(back, FLOW_RECEIVED, &answer);
    client.entry(back + 10, RUNNABLE, &[100]).entry(back + 20, SOFTIRQ_RETURN + 3, &[]);
    client.switch(back + 30, 100, "worker").small_return(back + 60, 30).entry(back + 100, MARK_A, &[MARKS[1]]);
}

/// Both as one, the server's time later by this much than its packets show, and within the reported bound.
fn merged(planted: Planted, wrong: i64, within: Option<Time>) -> Vec<u8> {
    let traces = traces(planted).map(|trace| trace.bytes());
    let known: Vec<_> = traces.iter().map(|bytes| known(&*source::trace(bytes).unwrap(), "x")).collect();
    let placed = place(&known);
    assert_eq!((placed[1].by, placed[0].early + placed[1].early), (By::Packets, 0));
    let machines =
        placed.iter().zip(["client", "server"]).zip(&traces).enumerate().map(|(n, ((placed, name), trace))| {
            let mut shift = placed.shift.clone().later(Time(wrong * n as i64));
            shift.0.iter_mut().for_each(|piece| piece.within = within.filter(|_| n == 1).or(piece.within));
            (Machine { name: name.to_string(), shift, ..Machine::default() }, trace.as_slice())
        });
    let mut out = Vec::new();
    file::write(&machines.collect::<Vec<_>>(), &mut out).unwrap();
    out
}

/// Name of a thread of the second machine.
fn of_second(program: &str, thread: u32) -> String {
    format!("{program}.{} on server", Pid::new(thread).on(1))
}

fn planted(planted: Planted) -> Vec<u8> {
    merged(planted, 0, None)
}

#[test]
fn the_way_there_is_told() {
    let cause = "waiting for a message of nginx on server, meanwhile the request was on its way to it";
    assert_most(&planted(Planted { there: MORE, ..Planted::default() }), cause, "network");
}

#[test]
fn the_peer_s_queue_is_told() {
    let batch = of_second("batch", 300);
    let cause = format!("waiting for a message of nginx on server, meanwhile waiting for a CPU that ran {batch}");
    assert_most(&planted(Planted { queue: MORE, ..Planted::default() }), &cause, &batch);
}

#[test]
fn the_peer_s_work_is_told() {
    let nginx = of_second("nginx", 200);
    let cause = format!("waiting for a message of {nginx}, meanwhile user code");
    assert_most(&planted(Planted { work: MORE, ..Planted::default() }), &cause, &nginx);
}

#[test]
fn the_way_back_is_told() {
    let cause = "waiting for a message of nginx on server, meanwhile the packet was on its way";
    assert_most(&planted(Planted { back: MORE, ..Planted::default() }), cause, "network");
}

#[test]
fn a_message_that_seems_to_arrive_before_it_was_sent_is_known_within_the_clocks_error() {
    // The server's clock is wrong by more than a packet takes.
    let wrong = WAY as i64 + 1000;
    let work = Planted { work: MORE, ..Planted::default() };
    let nginx = of_second("nginx", 200);
    let cause = format!("waiting for a message of {nginx}, meanwhile user code");
    assert_most(&merged(work, wrong, Some(Time(wrong))), &cause, &nginx);
}

#[test]
fn the_documentation_shows_what_is_said_of_these_traces() {
    let planted = Planted { there: MORE, ..Planted::default() };
    let traces = traces(planted).map(|trace| trace.bytes());
    let known = [0, 1].map(|n| {
        let name = ["client", "server"][n].to_string();
        Known { name, ..known(&*source::trace(&traces[n]).unwrap(), "") }
    });
    let (to, from) = place(&known)[1].packets;
    let said = format!("{} ({to} there, {from} back)", place(&known)[1].text(&known[1], &known[0]));
    let page = include_str!("../../../docs/machines.md");
    assert!(page.contains(&format!("kutrace_control: both.trace: {said}\n")), "{said}");
    let why = asked(&merged(planted, 0, None), &Ask::Mark("q".into())).text();
    let shown = why.lines().find(|line| line.starts_with("1. ")).unwrap();
    assert!(page.contains(shown), "{shown}");
}
