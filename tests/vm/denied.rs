// SPDX-License-Identifier: BSD-3-Clause
//! System calls that seccomp, a tracer or user dispatch deny or divert are there, with number and value.

use std::collections::BTreeMap;

use postprocess::event::number::{EXIT, RETURN_BIT, SYSCALL, SYSCALL32, UNKNOWN_CALL, WAIT};
use postprocess::event::Event;
use postprocess::id::Pid;
use postprocess::time::Time;

use crate::guest;
use crate::trace::Recording;

const GETPPID: u32 = SYSCALL + 110;
const TIME: u32 = SYSCALL + 201;
const GETPPID32: u32 = SYSCALL32 + 64;
/// As in denied.c.
const CALLS: usize = 100;
const MADE_UP: i32 = 4711;
const SLOW: i64 = 2_000_000;
/// Trace of a supervisor's consent: the call is made again.
const ANEW: i32 = -513;

/// Start and duration of a call, and its value, if it returned.
type Made = (i64, i64, Option<i32>);

/// The calls of a number that threads of a name made.
fn made(trace: &Recording, program: &str, number: u32) -> Vec<Made> {
    let pids = trace.pids_of(program);
    let mut calls = Vec::new();
    let mut open: BTreeMap<Pid, usize> = BTreeMap::new();
    let of_program = |e: &&Event| pids.contains(&e.pid);
    for e in trace.events.events.iter().filter(of_program) {
        if e.event() == number {
            let folded = (e.dur > Time::ZERO).then_some(e.ret);
            assert!(!open.contains_key(&e.pid), "{program}: a call in a call at {}", e.ts);
            if folded.is_none() {
                open.insert(e.pid, calls.len());
            }
            calls.push((e.ts.0, e.dur.0, folded));
        } else if e.event() == number | RETURN_BIT {
            let call = open.remove(&e.pid).unwrap_or_else(|| panic!("{program}: a return of nothing at {}", e.ts));
            calls[call].1 = e.ts.0 - calls[call].0;
            calls[call].2 = Some(e.ret);
        }
    }
    calls
}

fn values(trace: &Recording, program: &str, number: u32) -> Vec<Option<i32>> {
    made(trace, program, number).into_iter().map(|(_, _, value)| value).collect()
}

fn waits(trace: &Recording, program: &str, reason: &str) -> usize {
    let pids = trace.pids_of(program);
    let name = format!("wait_{reason}");
    trace.of(WAIT).filter(|e| pids.contains(&e.pid) && trace.event_name(e) == name).count()
}

#[test]
fn calls_that_are_not_made_are_recorded_with_number_and_value() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/denied $BIN/stackless .
        dmesg --console-level 1
        kutrace_control go
        ./denied
        ./stackless
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let all = |value: i32| vec![Some(value); CALLS];
    assert_eq!(values(&trace, "deny", GETPPID), all(-13));
    assert_eq!(values(&trace, "unknown", UNKNOWN_CALL), all(-1));
    assert_eq!(values(&trace, "old", TIME), all(-13));
    assert_eq!(values(&trace, "trap", GETPPID), all(-38));
    assert_eq!(values(&trace, "divert", GETPPID), all(-38));
    assert_eq!(values(&trace, "skip", GETPPID), all(MADE_UP));
    assert_eq!(values(&trace, "emulate", GETPPID), all(MADE_UP));
    assert_eq!(values(&trace, "untraced", GETPPID), all(-38));
    assert_eq!(values(&trace, "refuse", GETPPID), all(MADE_UP));
    assert!(waits(&trace, "skip", "traced") >= CALLS && waits(&trace, "emulate", "traced") >= CALLS);

    // Who dies of it does not return, but where all of the process dies.
    assert_eq!(values(&trace, "kill_thread", GETPPID), [None]);
    assert_eq!(values(&trace, "kill_process", GETPPID), [Some(-38)]);
    assert_eq!(values(&trace, "strict", GETPPID), [None]);
    assert_eq!(values(&trace, "kill_asking", GETPPID), [Some(-38)]);
    for (program, signal) in [("kill_thread", 31), ("kill_process", 31), ("strict", 9), ("kill_asking", 9)] {
        let pids = trace.pids_of(program);
        let died = |e: &&Event| pids.contains(&e.pid) && e.arg & 0x7f == signal;
        assert_eq!(trace.of(EXIT).filter(died).count(), 1, "{program}");
    }

    // A supervisor takes its time inside the call.
    let asked = made(&trace, "ask", GETPPID);
    let got: Vec<_> = asked.iter().map(|call| call.2).collect();
    assert_eq!(got[..3], [Some(MADE_UP), Some(-1), Some(ANEW)], "{asked:?}");
    assert!(got.len() == 4 && got[3].is_some_and(|parent| parent > 1), "{asked:?}");
    assert!(asked[..3].iter().all(|call| call.1 >= SLOW), "{asked:?}");
    assert_eq!(waits(&trace, "ask", "supervisor"), 3);

    // A processor has one of the two instructions, an emulated one perhaps both.
    let stackless = values(&trace, "stackless", GETPPID32);
    assert!((1..=2).contains(&stackless.len()) && stackless.iter().all(|value| *value == Some(-14)), "{stackless:?}");
}
