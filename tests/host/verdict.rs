// SPDX-License-Identifier: BSD-3-Clause
//! Faults of a raw trace are found and graded.

use kutrace_format::abi::block;
use kutrace_format::abi::event::{IRQ, IRQ_RETURN, MARK_A, TRAP_RETURN};
use kutrace_format::file::{FLAG_MUTE, FLAG_SLEEP, FLAG_UNSTABLE};
use kutrace_tests::{busy, sign, TraceBuilder, START};
use postprocess::inspect::verdict::{judge, verdict, Verdict};

/// The verdict on a trace, and its findings as printed.
fn judged(bytes: &[u8]) -> (Verdict, String) {
    let found = judge(bytes).unwrap();
    let text = found.iter().map(|f| format!("{f}\n")).collect();
    (verdict(&found), text)
}

#[test]
fn a_whole_trace_passes_and_says_what_is_in_it() {
    let mut trace = TraceBuilder::new(2, 100_000);
    let cpu = trace.cpu(0).running(7, "prog", None).folded(100, 39, 0, 5, 7).call(200, 0, 3).switch(300, 0, "");
    cpu.entry(500, MARK_A, &[39_187_408]);
    trace.cpu(1);
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Pass, "{text}");
    let facts: Vec<&str> = text.lines().collect();
    assert!(facts[0].starts_with("info  format 5, 2 CPUs, 0.001000 s, "), "{text}");
    assert_eq!(facts[1], "info  2 system calls, 0 faults, 0 interrupts, 3 switches, 1 point");
    assert_eq!(facts[2], "info  0.1% user, 0.1% kernel, 99.8% idle, 0.0% lost; 0 wakeups");
    assert_eq!(facts.len(), 3);
}

#[test]
fn a_busy_trace_passes_and_any_flipped_bit_fails() {
    let bytes = busy(2, 20_000, 1).bytes();
    assert_eq!(judged(&bytes).0, Verdict::Pass);
    for at in [300, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let (verdict, text) = judged(&damaged);
        assert_eq!(verdict, Verdict::Fail, "byte {at}: {text}");
        assert!(text.contains("FAIL  ") && text.contains("byte "), "{text}");
    }
}

#[test]
fn counted_losses_leave_a_trace_incomplete() {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.cpu(0).call(10, 0, 0).lose(3);
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Incomplete, "{text}");
    assert!(text.contains("warn  3 events were lost while recording\n"), "{text}");
}

#[test]
fn what_the_recorder_notes_leaves_a_trace_incomplete() {
    for (flag, said) in [(FLAG_SLEEP, "about to sleep"), (FLAG_UNSTABLE, "not stable"), (FLAG_MUTE, "no interrupt")] {
        let mut trace = TraceBuilder::new(1, 1_000);
        trace.header.flags |= flag;
        trace.cpu(0).call(10, 0, 0);
        let (verdict, text) = judged(&trace.bytes());
        assert_eq!(verdict, Verdict::Incomplete, "{text}");
        assert!(text.contains(said), "{text}");
    }
    let mut trace = TraceBuilder::new(1, 1_000);
    (trace.header.refused_names, trace.header.refused_marks) = (3, 4);
    trace.cpu(0).call(10, 0, 0);
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Incomplete, "{text}");
    assert!(text.contains("warn  3 names of programs were refused") && text.contains("warn  4 marks"), "{text}");
}

#[test]
fn a_return_without_its_call_leaves_a_trace_incomplete() {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.cpu(0).running(7, "prog", None).folded(20, 39, 0, 5, 7).entry(80, IRQ_RETURN + 0xec, &[]);
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Incomplete, "{text}");
    let missing = "warn  1 call, return or switch was missing and supplied; the first: CPU 0, ";
    let found = text.lines().find_map(|line| line.strip_prefix(missing));
    assert!(found.is_some_and(|place| place.ends_with(" s: local_timer (5ec)")), "{text}");
}

#[test]
fn what_began_before_the_recording_is_not_missing() {
    let mut trace = TraceBuilder::new(2, 1_000);
    trace.cpu(0).entry(80, IRQ_RETURN + 0xec, &[]);
    trace.cpu(1).running(7, "prog", Some(0)).entry(90, TRAP_RETURN + 14, &[]).small_return(95, 1);
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Pass, "{text}");
}

#[test]
fn a_missing_block_fails() {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.cpu(0).entry(10, IRQ + 0xec, &[]).skip(1, 100).entry(300, IRQ + 0xec, &[]);
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Fail);
    assert!(text.contains("FAIL  1 gap in which"), "{text}");
}

#[test]
fn time_that_goes_back_fails_though_all_checksums_are_right() {
    let mut trace = TraceBuilder::new(1, 10_000_000);
    trace.cpu(0).entry(10, IRQ + 0xec, &[]).entry(5_000_000, IRQ + 0xec, &[]).entry(5_000_010, IRQ + 0xec, &[]);
    let mut bytes = trace.bytes();
    let at = bytes.len() - block::BYTES;
    let words = &mut bytes[at..];
    // The full time after the first entry, one word of entry and one of FULL_TIME before it.
    let low = block::HEADER_WORDS * 4 + 8;
    words[low..low + 8].copy_from_slice(&(START - 10_000_000).to_le_bytes());
    sign(words);
    let (verdict, text) = judged(&bytes);
    assert_eq!(verdict, Verdict::Fail, "{text}");
    assert!(text.contains("time goes back"), "{text}");
}
