// SPDX-License-Identifier: BSD-3-Clause
//! Requirements on the demo's trace: pipelines, a compiler, redis under load.

use std::path::PathBuf;

use kutrace_format::x86::vector;
use kutrace_tests::number::of_thread;
use postprocess::event::number::{IRQ, RUNNABLE, STALLED, SYSCALL, USER_FIRST, USER_LAST};
use postprocess::id::Pid;
use postprocess::span::Span;

use crate::trace::Recording;

/// read, recvfrom: the server uses the one, the client's library the other.
const RECEIVE: [u32; 2] = [SYSCALL, SYSCALL + 45];
/// write, sendto, writev.
const SEND: [u32; 3] = [SYSCALL + 1, SYSCALL + 44, SYSCALL + 20];
const LOCAL_TIMER: u32 = IRQ + vector::LOCAL_TIMER;

#[test]
fn the_demo_s_trace_is_whole_names_every_thread_and_has_ticks_and_requests() {
    let folder = std::env::var_os("KUTRACE_DEMO").expect("KUTRACE_DEMO: run this tier by `cargo xtask test`");
    let trace = Recording::read_whole(&PathBuf::from(folder).join("t.trace"));
    every_cpu_is_covered_and_every_thread_named(&trace);
    every_cpu_ticks_while_a_thread_runs_on_it(&trace);
    requests_can_be_followed_from_client_to_server_and_back(&trace);
    every_wakeup_names_a_thread_that_is_known(&trace);
}

fn every_cpu_is_covered_and_every_thread_named(trace: &Recording) {
    assert_eq!(trace.events.meta.intervals.len(), 4);
    assert_eq!(trace.events.meta.lost, 0);
    for (span, pid) in trace.spans.spans.iter().filter(|s| s.is_execution()).filter_map(|s| Some((s, s.pid?))) {
        let name = trace.span_name(span);
        let suffix = format!(".{pid}");
        let user = (USER_FIRST..=USER_LAST).contains(&(span.event() as u32));
        assert!(!user || name.len() > suffix.len() && name.ends_with(&suffix), "pid {pid} is named {name:?}");
    }
    for program in ["sort", "gcc", "cc1", "redis-server", "redis-benchmark"] {
        assert!(!trace.pids_of(program).is_empty(), "{program} is not on the timeline");
    }
}

fn every_cpu_ticks_while_a_thread_runs_on_it(trace: &Recording) {
    for interval in &trace.events.meta.intervals {
        let ticks = trace.of(LOCAL_TIMER).filter(|e| e.cpu == interval.cpu).count() as i64;
        let on_cpu = trace.spans.spans.iter().filter(|s| s.cpu == Some(interval.cpu) && s.is_execution());
        // A CPU that gets no time from the host misses ticks: it stands still, possibly for less than the trace
        // reports.
        let is_busy = |s: &&Span| s.pid != of_thread(0) && s.event() as u32 != STALLED;
        let busy: i64 = on_cpu.filter(is_busy).map(|s| s.dur.0).sum();
        // CONFIG_HZ=250.
        assert!(ticks > busy / 400_000 / 4, "cpu {}: {ticks} in {busy} x 10 ns", interval.cpu);
        let max = (interval.to - interval.from).0 / 400_000 * 5 / 4;
        assert!(ticks < max, "cpu {}: {ticks}, at most {max} expected", interval.cpu);
    }
}

/// From where the client sends through the wakeup to where the server receives, and back.
fn requests_can_be_followed_from_client_to_server_and_back(trace: &Recording) {
    let (server, client) = (trace.pids_of("redis-server"), trace.pids_of("redis-benchmark"));
    let there = followed(trace, |from, to| client.contains(&from) && server.contains(&to));
    let back = followed(trace, |from, to| server.contains(&from) && client.contains(&to));
    eprintln!("requests: {there} wakeups of the server led to a receive, {back} of the client");
    assert!(there > 20 && back > 20, "{there} wakeups of the server led to a receive, {back} of the client");
}

/// Counts wakeups by a thread that is sending, after which the woken one receives within 10 ms.
fn followed(trace: &Recording, pair: impl Fn(Pid, Pid) -> bool) -> usize {
    let spans = &trace.spans.spans;
    let arcs = spans.iter().filter(|s| s.pid.zip(s.woken()).is_some_and(|(by, woken)| pair(by, woken)));
    let writes = |arc: &&Span| {
        let before = spans[..spans.partition_point(|s| s.start <= arc.start)].iter().rev();
        before.take(200).any(|s| s.pid == arc.pid && SEND.contains(&(s.event() as u32)))
    };
    let reads = |arc: &Span| {
        let mut after = spans[spans.partition_point(|s| s.start < arc.start + arc.dur)..].iter();
        let next = after.find(|s| s.pid == arc.woken() && RECEIVE.contains(&(s.event() as u32)));
        next.is_some_and(|read| read.start.0 - (arc.start.0 + arc.dur.0) < 1_000_000)
    };
    arcs.filter(writes).filter(|arc| reads(arc)).count()
}

fn every_wakeup_names_a_thread_that_is_known(trace: &Recording) {
    for e in trace.of(RUNNABLE) {
        assert!(trace.event_name(e).starts_with("runnable."), "{:?}", trace.event_name(e));
        assert!(e.arg > 0);
    }
    assert!(trace.tally.runs > 1000, "{:?}", trace.tally);
}
