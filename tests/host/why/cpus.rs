// SPDX-License-Identifier: BSD-3-Clause
//! A request loses its CPU, or its CPU does something else: the thread that ran is named.

use kutrace_format::abi::event::{IPI, IRQ, IRQ_RETURN, PC_USER, STEAL};
use postprocess::event::point::Point;
use postprocess::span::sample;
use postprocess::why::request::Ask;
use postprocess::why::{explain, Question, Timeline};

use super::planted::{asked, assert_first, question, taking_turns, trace_of, REQUESTS, SLOW};
use super::spans;

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

/// Every other one of these requests has one thread alone.
#[test]
fn of_many_requests_all_tell_who_is_to_blame() {
    for threads in [1, 2] {
        let spans = spans(&taking_turns(threads));
        let why = explain(&Timeline::new(&spans), &question(Ask::Mark("q".into()))).unwrap();
        let first = &why.causes[0];
        let hog = if threads == 1 { "hog.300" } else { "hog" };
        assert_eq!((&*first.cause, &*first.culprit), (&*format!("waiting for a CPU that ran {hog}"), hog));
        assert_eq!(first.requests, 1_000);
    }
}

/// The worker loses its CPU, and gets another one when the thread that has that sleeps.
#[test]
fn who_took_the_cpu_is_told_though_another_cpu_is_free_first() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None);
        trace.cpu(1).switch(at + 5_000, 100, "worker");
        trace.cpu(1).switch(at + 5_030, 200, "other");
        trace.cpu(0).switch(at + 5_060, 100, "worker");
        at + 5_100
    });
    assert_first(&bytes, "waiting for a CPU that ran hog.300", "hog.300");
    // From the time its own is idle, it waits in the other's queue.
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None).switch(at + 100, 0, "");
        trace.cpu(1).switch(at + 5_000, 100, "worker");
        trace.cpu(1).switch(at + 5_030, 200, "other");
        trace.cpu(0).switch(at + 5_060, 100, "worker");
        at + 5_100
    });
    assert_first(&bytes, "waiting for a CPU that ran other.200", "other.200");
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

/// A tick records the program's position in its interrupt. The first sample of a CPU has no duration, so it is none.
#[test]
fn the_functions_are_told_in_which_samples_were_taken() {
    let bytes = trace_of(|trace, at| {
        for (tick, pc) in [(1_000, 0x40_1000), (2_000, 0x40_1000), (3_000, 0x40_2000)] {
            let cpu = trace.cpu(0).entry(at + tick, IRQ + 0xec, &[]).entry(at + tick + 2, PC_USER, &[pc, 0]);
            cpu.entry(at + tick + 5, IRQ_RETURN + 0xec, &[]);
        }
        at + 4_000
    });
    let mut spans = spans(&bytes);
    sample::name(&mut spans, Point::PcUser, |_, pc| Some(if pc == 0x40_1000 { "hash" } else { "copy" }.to_string()));
    let question = Question { slow: 0.1, ..question(Ask::Mark("q".into())) };
    let first = explain(&Timeline::new(&spans), &question).unwrap().compared.unwrap().causes.remove(0);
    assert_eq!(first.cause, "user code");
    assert!(first.detail.contains(&"17 samples: hash 65 %, copy 35 %".to_string()), "{first:?}");
}

/// It is listed apart, as a CPU that stood still.
fn assert_stolen(bytes: &[u8]) {
    let apart = asked(bytes, &Ask::Mark("q".into())).compared.unwrap().apart.unwrap().cause;
    assert_eq!(apart.cause, "stolen: the host ran something else instead of the CPU");
    assert_eq!((apart.in_slow as u64, apart.in_normal), (REQUESTS / SLOW, 0), "{apart:?}");
    assert!(apart.share > 0.9, "{apart:?}");
}

#[test]
fn what_the_host_of_a_guest_took_is_told() {
    assert_stolen(&trace_of(|trace, at| {
        let cpu = trace.cpu(0).entry(at + 5_000, STEAL, &[49_000]);
        cpu.entry(at + 5_002, IRQ + 0xec, &[]).entry(at + 5_010, IRQ_RETURN + 0xec, &[]);
        at + 5_010
    }));
    // Of a thread that waits for that CPU, too.
    assert_stolen(&trace_of(|trace, at| {
        trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None);
        trace.cpu(0).entry(at + 5_000, STEAL, &[49_000]).switch(at + 5_002, 100, "worker");
        at + 5_030
    }));
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
