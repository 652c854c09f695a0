// SPDX-License-Identifier: BSD-3-Clause
//! Why threads wait: some hundred ways, each with its reason. waits.c has them; it marks the time that is looked at.

use std::collections::BTreeMap;

use kutrace_tests::number::of_thread;
use postprocess::event::number::{SYSCALL, WAIT_A, WAIT_Z};

use crate::guest;
use crate::trace::Recording;

/// The marks: calls of sched_get_priority_max.
const MARK: u32 = SYSCALL + 146;
const BEGIN: u32 = 21_000;
const END: u32 = 21_001;

/// Reasons of a thread's waits between its marks, time by reason, most first; waiting for a CPU, which follows every
/// wait and may be idle, only if that is the subject of the way. That the host held up a CPU is never its subject.
fn waited(trace: &Recording, pid: u32, for_a_cpu: bool) -> Vec<(i64, String)> {
    let mark = |arg| trace.of(MARK).filter(move |e| e.pid.number() == pid && e.arg == arg).map(|e| e.ts.0);
    let begin = mark(BEGIN).next().expect("a mark at the start");
    let end = mark(END).find(|&ts| ts > begin).unwrap_or(i64::MAX);
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for span in trace.spans.spans.iter().filter(|s| s.pid == of_thread(pid)) {
        let within = (span.start + span.dur).0.min(end) - span.start.0.max(begin);
        let reason = trace.span_name(span).trim_start_matches("wait_");
        if (WAIT_A as i32..=WAIT_Z as i32).contains(&span.event())
            && within > 0
            && reason != "stall"
            && (for_a_cpu || !matches!(reason, "cpu" | "idle"))
        {
            *sums.entry(reason).or_default() += within;
        }
    }
    let mut sums: Vec<(i64, String)> = sums.into_iter().map(|(reason, time)| (time, reason.to_string())).collect();
    sums.sort_by_key(|(time, _)| -time);
    sums
}

#[test]
fn every_way_to_wait_has_its_reason() {
    let run = guest::succeed(
        // A CPU that goes is the third.
        &["--cpus", "4"],
        r#"
        cd /tmp
        cp $BIN/waits .
        mkdir $SHARE/disk
        kutrace_control go
        ./waits $SHARE/disk
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let (mut tried, mut quick, mut wrong) = (0, 0, Vec::new());
    for line in run.out.lines() {
        let [name, expected, thread] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { continue };
        let Ok(pid) = thread.parse() else {
            assert_eq!(expected, "-", "{line}");
            continue;
        };
        tried += 1;
        let reasons: Vec<&str> = expected.split('|').collect();
        let found = waited(&trace, pid, reasons.contains(&"cpu"));
        // The event to wait for came before the thread slept: a disk of an emulated machine may be that quick. Then a
        // read by io_uring waits only for the kernel's thread that does it.
        let reached = if name.starts_with("ring_") { "task" } else { "" };
        if reasons == ["disk"] && found.iter().all(|(_, reason)| reason == reached) {
            eprintln!("{name}: did not wait for the disk");
            quick += 1;
            continue;
        }
        if !found.first().is_some_and(|(_, reason)| reasons.contains(&&**reason)) {
            wrong.push(format!("{name}: expected {expected}, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(quick <= 4, "{quick} did not wait for the disk");
    assert!(tried >= 78, "{tried}:\n{}", run.out);
}
