// SPDX-License-Identifier: BSD-3-Clause
//! A request waits for the network: for whom, and whether a message was on its way or its sender took so long.

use kutrace_format::abi::event::{FLOW_RECEIVED, FLOW_SENT, IPI, IRQ, IRQ_RETURN, RUNNABLE, SOFTIRQ, SOFTIRQ_RETURN};
use kutrace_format::abi::packet::FlowPacket;
use kutrace_format::file::NameKind;
use kutrace_tests::TraceBuilder;
use postprocess::why::request::Ask;
use postprocess::why::Why;

use super::planted::{asked, assert_first, made_with, trace_of, REQUESTS, SLOW, STEP};

fn asked_of(bytes: &[u8]) -> Why {
    asked(bytes, &Ask::Mark("q".into()))
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
    assert!(late.starts_with("waiting for a packet whose sender is not in the trace"), "{late}");
}

/// A request to another thread and its answer, as packets: the time of the thread's work, the time of the answer on its
/// way, and whether it is sent again in between. Returns the time of its arrival.
fn ask_other(trace: &mut TraceBuilder, at: u64, times: (u64, u64), again: bool) -> u64 {
    let packet = |flow| FlowPacket { flow, ports: [40112, 6379], bytes: 30, flags: 16, sequence: at as u32 };
    let [request, answer] = [packet(4), packet(5)];
    exchange(trace, at, times, [request, answer, answer], again)
}

/// The same with these packets: a request, its answer, and the received part of that.
fn exchange(trace: &mut TraceBuilder, at: u64, (work, way): (u64, u64), packets: [FlowPacket; 3], again: bool) -> u64 {
    let [request, answer, part] = packets.map(|packet| packet.words());
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
    let arrives = trace.cpu(0).entry(end, SOFTIRQ + 3, &[]).entry(end + 10, FLOW_RECEIVED, &part);
    arrives.entry(end + 20, RUNNABLE, &[100]).entry(end + 30, SOFTIRQ_RETURN + 3, &[]);
    trace.cpu(0).switch(end + 40, 100, "worker").small_return(end + 70, 30);
    end + 80
}

const WORK: &str = "waiting for a message of other.200, meanwhile user code";
const WAY: &str = "waiting for a message of other, meanwhile the packet was on its way";

#[test]
fn the_way_of_a_message_is_told_from_the_work_for_it() {
    let asked = |times, again| trace_of(move |trace, at| ask_other(trace, at, times, again));
    assert_first(&asked((6_000, 0), false), WORK, "other.200");
    assert_first(&asked((0, 6_000), false), WAY, "network");
    assert_first(&asked((0, 6_000), true), &format!("{WAY}, and sent again"), "network");
}

#[test]
fn equal_messages_are_told_apart_by_when_they_were_sent() {
    // Over UDP the same question, and the same answer, again and again.
    let same = |flow, sequence| FlowPacket { flow, ports: [40112, 53], bytes: 30, flags: 0, sequence };
    let [request, answer] = [same(4, 77), same(5, 99)];
    let asked = |times| trace_of(move |trace, at| exchange(trace, at, times, [request, answer, answer], false));
    assert_first(&asked((6_000, 0)), WORK, "other.200");
    assert_first(&asked((0, 6_000)), WAY, "network");
    // The next hash is another message's, and not the next byte.
    let other = trace_of(move |trace, at| exchange(trace, at, (6_000, 0), [request, answer, same(5, 100)], false));
    let first = &asked_of(&other).compared.unwrap().causes[0].cause;
    assert!(first.starts_with("waiting for a packet whose sender"), "{first}");
}

#[test]
fn a_message_may_lie_across_the_last_sequence_number() {
    let packet = |flow, bytes, sequence| FlowPacket { flow, ports: [40112, 6379], bytes, flags: 16, sequence };
    // Each on a connection of its own: the answer is sent as one, and arrives as two.
    let asked = |times| {
        trace_of(move |trace, at| {
            let flow = 8 * at as u32;
            let (answer, rest) = (packet(flow + 1, 3000, u32::MAX - 999), packet(flow + 1, 1500, 500));
            exchange(trace, at, times, [packet(flow, 30, u32::MAX - 29), answer, rest], false)
        })
    };
    assert_first(&asked((6_000, 0)), WORK, "other.200");
    assert_first(&asked((0, 6_000)), WAY, "network");
    // On one connection, far beyond all numbers: every byte has the number of some byte before it.
    let mut sent = 0u32;
    let long = trace_of(move |trace, at| {
        let answers = sent;
        for part in 0..8 {
            let before = packet(5, 1 << 16, answers.wrapping_add(part << 29));
            trace.cpu(1).entry(at + u64::from(part) / 2, FLOW_SENT, &before.words());
        }
        let (answer, rest) = (packet(5, 3000, answers.wrapping_sub(500)), packet(5, 1500, answers.wrapping_add(200)));
        sent = sent.wrapping_add(1 << 16);
        exchange(trace, at + 10, (6_000, 0), [packet(4, 30, answers), answer, rest], false)
    });
    assert_first(&long, WORK, "other.200");
}

/// Ways in which the softirq that receives a message for the worker comes to run.
#[derive(Clone, Copy, PartialEq)]
enum Received {
    /// The thread that sent the message woke `ksoftirqd` for it.
    Deferred,
    /// A device brought it, and the softirq took so long that it woke `ksoftirqd` for the rest.
    DeferredByDevice,
    /// The CPU of the sending thread left it to another, in the call or in its softirq.
    Steered { in_softirq: bool },
    /// A device brought it, and its CPU left it to another.
    SteeredByDevice,
}

/// A thread answers after some work, on this machine.
fn answered(trace: &mut TraceBuilder, at: u64, received: Received) -> u64 {
    if at < STEP {
        trace.name(NameKind::Syscall, 44, "sendto");
        trace.name(NameKind::Syscall, 45, "recvfrom");
        trace.name(NameKind::Irq, 0xfb, "call_function_single_ipi");
    }
    trace.cpu(0).call(at + 10, 45, 5).switch(at + 20, 0, "");
    let server = trace.cpu(1);
    let by_device = matches!(received, Received::DeferredByDevice | Received::SteeredByDevice);
    server.call(at + 4_000, 44, 6);
    if by_device {
        server.entry(at + 4_100, IRQ + 0x24, &[]).entry(at + 4_110, IRQ_RETURN + 0x24, &[]);
    }
    if by_device || received == (Received::Steered { in_softirq: true }) {
        server.entry(at + 4_112, SOFTIRQ + 3, &[]);
    }
    match received {
        Received::Deferred => {
            server.entry(at + 4_150, RUNNABLE, &[20]).small_return(at + 4_160, 9);
        }
        Received::DeferredByDevice => {
            server.entry(at + 4_140, SOFTIRQ_RETURN + 3, &[]).entry(at + 4_150, RUNNABLE, &[20]);
            server.small_return(at + 4_160, 9);
        }
        Received::Steered { .. } | Received::SteeredByDevice => {
            server.entry(at + 4_150, IPI, &[2]);
        }
    }
    match received {
        Received::Deferred | Received::DeferredByDevice => {
            server.switch(at + 4_200, 20, "ksoftirqd/1").task(at + 4_225, 20, "ksoftirqd/1", None);
            server.entry(at + 4_230, SOFTIRQ + 3, &[]);
            server.entry(at + 4_240, RUNNABLE, &[100]).entry(at + 4_250, SOFTIRQ_RETURN + 3, &[]);
            server.switch(at + 4_260, 200, "other");
        }
        Received::Steered { .. } | Received::SteeredByDevice => {
            let other = trace.cpu(2).entry(at + 4_160, IRQ + 0xfb, &[]).entry(at + 4_170, IRQ_RETURN + 0xfb, &[]);
            other.entry(at + 4_175, SOFTIRQ + 3, &[]).entry(at + 4_240, RUNNABLE, &[100]);
            other.entry(at + 4_250, SOFTIRQ_RETURN + 3, &[]);
            if received != (Received::Steered { in_softirq: false }) {
                trace.cpu(1).entry(at + 4_200, SOFTIRQ_RETURN + 3, &[]);
            }
            trace.cpu(1).small_return(at + 4_260, 9);
        }
    }
    trace.cpu(0).switch(at + 4_270, 100, "worker").small_return(at + 4_300, 9);
    at + 4_300
}

#[test]
fn a_message_of_this_machine_that_another_receives_is_its_sender_s() {
    let of = |received| made_with(3, REQUESTS, SLOW, move |trace, at| answered(trace, at, received));
    for received in
        [Received::Deferred, Received::Steered { in_softirq: false }, Received::Steered { in_softirq: true }]
    {
        assert_first(&of(received), "waiting for a message of other.200, meanwhile user code", "other.200");
    }
    for received in [Received::DeferredByDevice, Received::SteeredByDevice] {
        let why = asked(&of(received), &Ask::Mark("q".into()));
        let first = &why.compared.unwrap().causes[0].cause;
        assert!(first.starts_with("waiting for a packet whose sender is not"), "{first}");
    }
}
