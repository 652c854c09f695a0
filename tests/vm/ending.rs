// SPDX-License-Identifier: BSD-3-Clause
//! Whatever becomes of a thread while it is renamed, the recorder reads nothing that is gone.

use postprocess::event::number::{OPEN_CALL, PID_NAME, SYSCALL, SYSCALL_LAST};
use postprocess::event::Event;

use crate::guest;
use crate::trace::Recording;

/// Rounds of ending.c, as nobody. Each round renames a thread until it is gone, and a zombie three times; every fourth
/// ends in an exec.
#[test]
fn threads_that_end_can_be_renamed_by_anybody() {
    let debug = &["--kernel", "debug", "--timeout", "7200"][..];
    let (kernel, rounds) = guest::by_form((&[][..], 200), (&[][..], 1_000), (debug, 10_000));
    let run = guest::succeed(
        &[&[guest::AT_ONCE, "--cpus", "2"], kernel].concat(),
        &format!(
            r#"
            cd /tmp
            cp $BIN/ending .
            chmod 755 ending
            kutrace_control gowrap
            setpriv --reuid 65534 --regid 65534 --clear-groups ./ending {rounds}
            kutrace_control stop $SHARE/t.raw
            "#
        ),
    );
    assert_eq!((run.number("rounds"), run.number("uid")), (rounds, 65534));
    let trace = Recording::read_and_ask(&run.file("t.raw"));
    trace.check();
    let named = |name: &str| trace.of(PID_NAME).filter(|e| trace.event_name(e) == name).count();
    assert!(
        named("zombie") > 10 && named("ending") > 10 && named("brief") > 10 && named("fresh") > 2,
        "the end of the trace has no rounds"
    );
}

/// A thread's work between its return from a call and its program is not in the call. Of the night: in the gate `held`
/// tests the same with a thread that stops itself.
#[cfg(feature = "night")]
#[test]
fn a_thread_that_was_stopped_has_returned_from_its_call() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        perl -e 'kill STOP => $$; 1 for 1 .. 300000' & stopped=$!
        until grep -q "State:.*T" /proc/$stopped/status; do sleep 0.05; done
        kutrace_control go
        kill -CONT $stopped
        wait $stopped
        kutrace_control stop $SHARE/t.raw
        echo stopped=$stopped
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let stopped = run.number("stopped") as u32;
    assert!(trace.switches().any(|e| e.arg == stopped), "it did not run");
    // At the end it may be in one of the calls that it made since, and be recorded on another CPU.
    let is_call = |e: &&Event| (SYSCALL..=SYSCALL_LAST).contains(&e.event());
    let first = trace.events.events.iter().filter(is_call).find(|e| e.pid.number() == stopped).expect("its end").ts;
    let inside = trace.of(OPEN_CALL).filter(|e| e.arg == stopped && e.ts < first);
    let inside: Vec<_> = inside.map(|e| trace.event_name(e)).collect();
    assert!(inside.is_empty(), "{inside:?}");
}
