// SPDX-License-Identifier: BSD-3-Clause
//! Made traces in which a cause is planted: requests of one thread between two marks, of which some are slow.

use kutrace_format::abi::event::{IRQ, IRQ_RETURN, MARK_A, RUNNABLE};
use kutrace_tests::TraceBuilder;
use postprocess::why::request::Ask;
use postprocess::why::{explain, Question, Timeline, Why};

use super::spans;

/// `q` and `/q` in base 40.
pub const MARKS: [u32; 2] = [17, 719];
/// Requests of a made trace, and every how many one is slow.
pub const REQUESTS: u64 = 60;
pub const SLOW: u64 = 10;
/// Counts from one request to the next, and of the work in one.
pub const STEP: u64 = 10_000;
const WORK: u64 = 100;

pub fn question(ask: Ask) -> Question {
    Question { ask, page: "t.html".to_string(), ..Question::default() }
}

pub fn asked(bytes: &[u8], ask: &Ask) -> Why {
    explain(&Timeline::new(&spans(bytes)), &Question { slow: 0.1, ..question(ask.clone()) }).unwrap()
}

/// One in [`SLOW`] of [`REQUESTS`] is slow, as [`made`] makes it.
pub fn trace_of(slow: impl FnMut(&mut TraceBuilder, u64) -> u64) -> Vec<u8> {
    made(REQUESTS, SLOW, slow)
}

/// Requests of thread 100 on CPU 0, each between two marks: `slow` makes one of this many, from its start to the counts
/// that it returns.
pub fn made(requests: u64, of: u64, slow: impl FnMut(&mut TraceBuilder, u64) -> u64) -> Vec<u8> {
    made_with(2, requests, of, slow)
}

/// The same, with this many CPUs.
pub fn made_with(cpus: u32, requests: u64, of: u64, mut slow: impl FnMut(&mut TraceBuilder, u64) -> u64) -> Vec<u8> {
    let mut trace = TraceBuilder::new(cpus, requests * STEP + STEP);
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

/// Asserts that this cause is named first, and who is to blame; and that normal requests know nothing of it.
pub fn assert_first(bytes: &[u8], cause: &str, culprit: &str) {
    assert_eq!(assert_most(bytes, cause, culprit), 0);
}

/// Asserts that this cause is named first, and who is to blame; returns in how many normal requests it is, too.
pub fn assert_most(bytes: &[u8], cause: &str, culprit: &str) -> usize {
    let why = asked(bytes, &Ask::Mark("q".into()));
    let text = why.text();
    assert!(text.lines().any(|line| line.starts_with("1. ") && line.ends_with(cause)), "{text}");
    let compared = why.compared.unwrap();
    assert_eq!((why.count as u64, compared.slow.count as u64), (REQUESTS, REQUESTS / SLOW));
    let first = &compared.causes[0];
    assert_eq!((&*first.cause, &*first.culprit), (cause, culprit), "{:#?}", compared.causes);
    assert!(first.share > 0.9 && first.in_slow as u64 == REQUESTS / SLOW, "{first:?}");
    assert_eq!(first.examples.len(), 3);
    assert!(first.examples.iter().all(|example| example.address.starts_with("t.html#request=100@")), "{first:?}");
    first.in_normal
}

/// 1,000 requests, each of which waits for one of this many threads in turn.
pub fn taking_turns(threads: u32) -> Vec<u8> {
    let mut n = 0;
    made(1_000, 1, |trace, at| {
        let pid = 300 + n % threads;
        n += 1;
        trace.cpu(0).switch(at + 10, pid, "hog").task(at + 30, pid, "hog", None).switch(at + 5_000, 100, "worker");
        at + 5_020
    })
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
