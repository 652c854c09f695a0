// SPDX-License-Identifier: BSD-3-Clause
//! Two controllers at once.

use std::fs;

use kutrace_format::abi::event::MARK_A;

use super::succeed;
use crate::guest;
use crate::trace::{self, Recording};

#[test]
fn the_second_of_two_is_told_who_holds_the_recorder() {
    let run = succeed(
        &["--cpus", "2"],
        r#"
        kutrace_control record --wrap -o $SHARE/first.raw & holder=$!
        becomes tracing
        kutrace_control status | grep -q "^held:   by process $holder (kutrace_control)"
        text="in use by process $holder (kutrace_control)"
        fails 1 "$text" kutrace_control go
        fails 1 "$text" kutrace_control record -o /tmp/second.raw -- true
        fails 1 "$text" kutrace_control stop /tmp/second.raw
        fails 1 "$text" kutrace_control reset
        fails 1 "$text" kutrace_control reset --force
        fails 1 "$text" kutrace_control quit
        kutrace_control snapshot $SHARE/snapshot.raw
        kutrace_control mark meant
        kill -INT $holder; wait $holder || true
        kutrace_control status | grep -q '^held:   by no process'

        # Killed at once: nothing traces, nothing is held, and what was recorded can still be had, unless it took more
        # memory than the recorder has for itself.
        kutrace_control record -o $SHARE/never.raw & holder=$!
        becomes tracing
        kill -9 $holder; wait $holder || true
        kutrace_control status >$SHARE/status
        kutrace_control stop $SHARE/rescued.raw
        "#,
    );
    for name in ["snapshot.raw", "rescued.raw"] {
        Recording::read_whole_alone(&run.file(name));
    }
    let trace = Recording::read_whole(&run.file("first.raw"));
    assert!(trace.of(MARK_A.into()).any(|e| trace.event_name(e) == "mark_a=meant"));
    assert!(!run.file("never.raw").exists());
    let status = fs::read_to_string(run.file("status")).unwrap();
    assert!(status.contains("state:  stopped") && status.contains("held:   by no process"), "{status}");
}

#[test]
fn two_at_once_do_each_their_work_or_say_why_not() {
    // The same sequences of commands in the gate; how they meet is another matter each time.
    let seed = guest::seed();
    let script = r#"
        insmod $KUTRACE_MODULE tracemb=8
        mkdir $SHARE/traces
        both() {
            RANDOM=$((seed + $2))
            for n in $(seq 60); do
                case $((RANDOM % 5)) in
                    0) words="go" ;;
                    1) words="gowrap" ;;
                    2) words="stop $SHARE/traces/$1.$n.raw" ;;
                    3) words="snapshot $SHARE/traces/$1.$n.raw" ;;
                    4) words="record -d 20ms -o $SHARE/traces/$1.$n.raw" ;;
                esac
                status=0; kutrace_control $words 2>/tmp/$1.err || status=$?
                echo "$status $words"
                [ $status = 0 ] || cat /tmp/$1.err >>/tmp/$1.said
                case $status in 0|1|3) ;; *) exit 96 ;; esac
            done >/tmp/$1.did
        }
        both a 1 & a=$!
        both b 2 & b=$!
        wait $a; wait $b
        cat /tmp/?.did | sed 's/ [^ ]*raw//' | sort | uniq -c >&2
        cat /tmp/?.said | grep -v ^hint | sed 's/[0-9][0-9]*/N/g' | sort | uniq -c | sort -rn >$SHARE/said
        kutrace_control reset --force
        kutrace_control go
        kutrace_control stop $SHARE/last.raw
        dmesg >$SHARE/dmesg
        ! grep -E 'WARNING|BUG|Oops|RIP:' $SHARE/dmesg >&2
        "#;
    let run = succeed(&["--no-load", "--cpus", "2"], &format!("seed={seed}\n{script}"));
    let said = fs::read_to_string(run.file("said")).unwrap();
    eprintln!("{}{said}", run.err);
    let known = [
        "a trace is running",
        "in use",
        "nothing has been recorded",
        "no trace is running in wrap mode",
        "the recorder has been started again since",
        "events lost",
    ];
    for line in said.lines() {
        assert!(known.iter().any(|fact| line.contains(fact)), "{line}");
    }
    let files: Vec<_> = fs::read_dir(run.file("traces")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 3, "{} traces\n{said}", files.len());
    trace::each(&files, |path| Recording::read_alone(path).check());
    Recording::read_whole(&run.file("last.raw"));
}
