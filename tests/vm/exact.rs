// SPDX-License-Identifier: BSD-3-Clause
//! Counts in a trace against the counts of the workload and the kernel.

use postprocess::event::number::SYSCALL;
use postprocess::time::Time;

use crate::guest;
use crate::trace::Recording;

const GETPPID: u32 = SYSCALL + 110;
const GET_PRIORITY_MAX: u32 = SYSCALL + 146;

#[test]
fn as_many_getppid_as_were_called_and_the_switches_the_kernel_counted() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/edges .
        cp edges getppids
        kutrace_control go
        ./getppids 20000
        ./edges stress-ng --quiet --switch 4 --switch-ops 2000
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    assert!(run.err.contains(" 0 events lost"), "{}", run.err);
    let trace = Recording::read_whole(&run.file("t.raw"));

    let program = trace.pids_of("getppids");
    assert_eq!(program.len(), 1, "{program:?}");
    let calls: Vec<_> = trace.of(GETPPID).filter(|e| program.contains(&e.pid)).collect();
    assert_eq!(calls.len(), 20_000);
    // A span that an interrupt cut continues after it: pieces of one call are recognized by the spans between them.
    let spans = trace
        .spans
        .spans
        .iter()
        .filter(|s| s.pid.is_some_and(|pid| program.contains(&pid)) && s.event() as u32 == GETPPID);
    let resumed = calls.iter().filter(|call| call.dur == Time::ZERO).count();
    let pieces = spans.count();
    assert!((20_000..=20_000 + 8 * resumed).contains(&pieces), "{pieces} spans, {resumed} calls cut by interrupts");

    let marks: Vec<_> = trace.of(GET_PRIORITY_MAX).map(|e| e.ts).collect();
    assert!(marks.len() >= 2, "{marks:?}");
    let between = marks[0]..marks[marks.len() - 1];
    let switches = trace.switches().filter(|e| between.contains(&e.ts)).count() as u64;
    let counted = run.number("ctxt");
    // The kernel's sum walks over the CPUs one after the other while they go on switching.
    let edge = counted.abs_diff(switches);
    eprintln!("context switches: the kernel counted {counted}, the trace {switches}");
    assert!(counted > 1000 && edge <= 40, "the kernel counted {counted}, the trace {switches}");
}

#[test]
fn a_call_blocked_since_before_the_trace_has_its_name() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        coproc reader { exec perl -e 'sysread STDIN, my $byte, 1'; }
        # It sleeps in read(0).
        await grep -q '^0 0x0 ' /proc/$reader_PID/syscall
        kutrace_control go
        echo >&${reader[1]}
        wait $reader_PID
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let reader = trace.pids_of("perl");
    let named = |e: &&postprocess::event::Event| reader.contains(&e.pid) && trace.event_name(e) == "/read";
    assert!(trace.events.events.iter().any(|e| named(&e)), "{reader:?}");
}
