// SPDX-License-Identifier: BSD-3-Clause
//! System call 1023: what programs built against the original's library insert, and that it is all they can do.

use postprocess::event::number::{
    DEQUEUE, LOCK_NAME, LOCK_TRY, MARK_A, MARK_D, METHOD_NAME, QUEUE_NAME, RESOURCE_NAME, RPC_REQUEST, RPC_SENT,
};
use postprocess::time::Time;

use crate::guest;
use crate::trace::Recording;

/// For use where the origin of the program does not matter.
const COPY: &str = "cd /tmp\ncp $BIN/user .\n";

/// The answers of user.c, one a line, up to the command that is none.
fn answers(texts: [&str; 4]) -> String {
    let [test, version, event, names] = texts;
    let mut lines = vec![format!("test {test}"), format!("version {version}")];
    lines.extend(["mark_a", "mark_b", "mark_c", "mark_d", "forced"].map(|what| format!("{what} {event}")));
    let names = names.split(' ').zip(["method", "lock", "queue", "resource"]);
    lines.extend(names.map(|(words, what)| format!("{what} {words} errno 0")));
    lines.extend(["off", "reset"].map(|what| format!("{what} -1 errno 1")));
    lines.extend(["switch", "pidname"].map(|what| format!("{what} -1 errno 22")));
    lines.push("kernel -1 errno 14".to_string());
    lines.push("command -1 errno 22\n".to_string());
    lines.join("\n")
}

#[test]
fn a_program_of_the_original_is_answered_with_and_without_tracing() {
    let run = guest::succeed(
        &["--cpus", "2", "--no-load"],
        &format!(
            "{COPY}
            ./user >$SHARE/none
            insmod $KUTRACE_MODULE
            ./user >$SHARE/off
            kutrace_control go
            ./user >$SHARE/on
            kutrace_control stop $SHARE/t.raw
            rmmod kutrace
            ./user >$SHARE/gone"
        ),
    );
    let said = |name| std::fs::read_to_string(run.file(name)).unwrap();
    for name in ["none", "gone"] {
        assert!(said(name).lines().all(|line| line.ends_with(" -1 errno 38")), "{}", said(name));
    }
    assert_eq!(said("off"), answers(["0 errno 0", "4 errno 0", "0 errno 0", "0 0 0 0"]));
    assert_eq!(said("on"), answers(["1 errno 0", "4 errno 0", "1 errno 0", "2 8 2 2"]));

    let trace = Recording::read_whole(&run.file("t.raw"));
    let program = trace.pids_of("user");
    let inserted = trace.events.events.iter().filter(|e| program.contains(&e.pid));
    let of_programs =
        inserted.filter(|e| matches!(e.event(), RPC_REQUEST..=RPC_SENT | MARK_A..=MARK_D | LOCK_TRY..=DEQUEUE));
    let texts: Vec<String> = of_programs.map(|e| format!("{} {}", trace.event_name(e), e.arg)).collect();
    let lock = "try_a_name_of_fifty-five_bytes,_as_long_as_the_library_can 99";
    let expected = [
        "mark_a=hello 39187408",
        "mark_b=there 13960340",
        "mark_c=folks 49363806",
        "mark_d 123456",
        "mark_d 654321",
        "get.4253 4264093",
        "rpcreq.0 0",
        lock,
        "enq_in 3",
        "res_pump 5",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn nonsense_leaves_kernel_and_trace_whole_and_the_module_goes_while_programs_ask() {
    let run = guest::succeed(
        &[guest::AT_ONCE, "--cpus", "2", "--no-load"],
        &format!(
            "{COPY}
            insmod $KUTRACE_MODULE namerate=0 markrate=0
            dmesg --clear
            kutrace_control go
            ./user 100000
            kutrace_control stop $SHARE/t.raw
            dmesg >$SHARE/dmesg
            rmmod kutrace
            for n in 1 2; do nice -n 19 ./user 1000000000 & done
            for n in $(seq 10); do
                insmod $KUTRACE_MODULE tracemb=8
                kutrace_control go
                sleep 0.02
                rmmod kutrace
            done
            dmesg --notime >$SHARE/later
            ! grep -E 'WARNING|BUG|Oops|RIP:' $SHARE/later >&2
            kill %1 %2"
        ),
    );
    assert_eq!(std::fs::read_to_string(run.file("dmesg")).unwrap(), "");
    let trace = Recording::read_whole(&run.file("t.raw"));
    let program = trace.pids_of("user");
    let marks = trace.of(MARK_A).filter(|e| program.contains(&e.pid));
    assert_eq!(marks.last().map(|e| trace.event_name(e)), Some("mark_a=end"));

    let given = |kind| trace.of(kind).filter(|e| e.ts >= Time::ZERO).map(|e| trace.event_name(e));
    let names: Vec<&str> = [METHOD_NAME, LOCK_NAME, QUEUE_NAME, RESOURCE_NAME].into_iter().flat_map(given).collect();
    assert!(names.len() > 1000, "{}", names.len());
    assert!(names.iter().all(|name| name.bytes().all(|c| c == b'k')), "{names:?}");
}
