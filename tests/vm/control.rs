// SPDX-License-Identifier: BSD-3-Clause
//! kutrace_control against the real module: every command, rights, two at once, killed at any point, a full disk, a lost
//! terminal.

use std::fs;

use kutrace_format::abi::event::MARK_A;
use postprocess::event::number::MARK_D;

use crate::blocks::Blocks;
use crate::guest::{self, Run};
use crate::trace::Trace;

/// `fails STATUS TEXT COMMAND...`: the command ends so, and says so in one line, with at most a hint below it.
const FAILS: &str = r#"
    fails() {
        expected=$1 text=$2; shift 2
        status=0; "$@" >/tmp/out 2>/tmp/err || status=$?
        if [ $status != $expected ] || ! grep -qF -- "$text" /tmp/err || [ $(grep -vc ^hint: /tmp/err) != 1 ]; then
            echo "$*: status $status, not $expected with '$text':" >&2; cat /tmp/err >&2; exit 99
        fi
    }
    megabytes() { kutrace_control status | sed -n 's/^used: .* of \(.*\) MB).*/\1/p'; }
"#;

fn succeed(options: &[&str], script: &str) -> Run {
    guest::succeed(options, &[FAILS, script].concat())
}

#[test]
fn every_command_does_its_work() {
    let run = succeed(
        &["--no-load"],
        r#"
        fails 1 '/dev/kutrace: not there: is the module loaded?' kutrace_control go
        fails 1 'not there: is the module loaded?' kutrace_control mark hello
        status=0; kutrace_control check >$SHARE/unready || status=$?
        test $status = 1
        insmod $KUTRACE_MODULE
        kutrace_control check >$SHARE/ready
        fails 1 'nothing is recorded' kutrace_control stop $SHARE/none.raw
        fails 1 'no trace is running: the mark is lost' kutrace_control mark hello
        fails 1 'no counters of instructions' kutrace_control goipc
        fails 1 'no counters of instructions' kutrace_control record --llc -o $SHARE/none.raw -- true

        kutrace_control go
        kutrace_control mark hello
        kutrace_control mark 123456
        kutrace_control status | grep -q '^state:  tracing for'
        fails 1 'a trace is running' kutrace_control go
        fails 1 'a trace is running' kutrace_control record -o $SHARE/none.raw -- true
        fails 1 'a trace is running' kutrace_control reset
        fails 1 'no trace is running in wrap mode' kutrace_control snapshot $SHARE/none.raw
        kutrace_control stop $SHARE/go.raw
        fails 1 'go.raw: is there already' kutrace_control stop $SHARE/go.raw
        kutrace_control stop --force $SHARE/go.raw
        kutrace_control stop - >$SHARE/again.raw
        kutrace_control reset
        fails 1 'nothing is recorded' kutrace_control stop $SHARE/none.raw

        kutrace_control gowrap
        kutrace_control snapshot $SHARE/snapshot.raw
        kutrace_control quit
        kutrace_control status | grep -q '^state:  stopped'
        kutrace_control stop $SHARE/wrap.raw

        kutrace_control 1
        kutrace_control 0
        name=$(echo ku_*); mv "$name" $SHARE/default.raw; echo "$name" >$SHARE/name
        kutrace_control go
        printf 'go\nmark abc\nwait 50ms\nsnapshot no\n' | fails 1 'no trace is running in wrap mode' kutrace_control -force
        printf -- '-force\n1\nmark abc\nwait 0.05\nstop '$SHARE/words'\ngo\n' | kutrace_control
        kutrace_control status | grep -q '^state:  stopped'
        kutrace_control go
        kutrace_control reset --force
        kutrace_control status | grep -q '^state:  empty'
        "#,
    );
    let said = |name| fs::read_to_string(run.file(name)).unwrap();
    assert!(said("unready").contains("module     wrong"), "{}", said("unready"));
    assert!(!said("ready").contains("wrong"), "{}", said("ready"));
    assert!(!run.file("none.raw").exists());
    let name = said("name");
    let name: Vec<&str> = name.trim_end().splitn(4, '_').collect();
    assert_eq!((name[0], name[1].len(), name[2].len()), ("ku", 8, 6), "{name:?}");
    assert!(name[3].starts_with("kutrace-vm_") && name[3].ends_with(".trace"), "{name:?}");

    for name in ["go.raw", "again.raw", "snapshot.raw", "wrap.raw", "default.raw", "words.trace"] {
        Trace::read_whole(&run.file(name));
    }
    let trace = Trace::read_whole(&run.file("go.raw"));
    let named = |number| trace.of(number).map(|e| (trace.event_name(e), e.arg)).collect::<Vec<_>>();
    assert_eq!(named(MARK_A.into()), [("mark_a=hello", 39_187_408)]);
    assert_eq!(named(MARK_D), [("mark_d", 123_456)]);
    assert_eq!(Blocks::read(&run.file("go.raw")).header.start, Blocks::read(&run.file("again.raw")).header.start);
}

#[test]
fn record_runs_a_command_and_leaves_nothing_behind() {
    let run = succeed(
        &[],
        r#"
        before=$(megabytes)
        kutrace_control record -o $SHARE/ls.raw -- ls /usr/lib >/dev/null
        fails 7 '' kutrace_control record -o $SHARE/seven.raw -- sh -c 'exit 7'
        fails 143 '' kutrace_control record -o $SHARE/killed.raw -- sh -c 'kill $$'
        fails 1 '/no/such/program: No such file or directory' kutrace_control record -o $SHARE/none.raw -- /no/such/program
        kutrace_control record -d 300ms -o $SHARE/time.raw
        # The command outlives the recording, and its status is waited for.
        fails 9 '' kutrace_control record -d 100ms -o $SHARE/part.raw -- sh -c 'sleep 0.5; exit 9'
        kutrace_control status | grep -q '^state:  empty'
        test "$before" = "$(megabytes)"

        for signal in INT TERM HUP; do
            kutrace_control record -b 32M -o $SHARE/$signal.raw & sleep 0.5
            test "$(megabytes)" = 32.0
            kill -$signal $!
            status=0; wait $! || status=$?
            test $status = 130
        done
        kutrace_control record -o $SHARE/both.raw -- tail -f /dev/null & sleep 0.5
        kill -INT $!; status=0; wait $! || status=$?
        test $status = 130
        for n in $(seq 50); do pgrep -x tail >/dev/null || break; sleep 0.1; done
        if pgrep -x tail; then exit 98; fi

        script -qec "kutrace_control record -o $SHARE/lost.raw" /dev/null >/dev/null & sleep 1
        kill -9 $!
        for n in $(seq 50); do [ -e $SHARE/lost.raw ] && break; sleep 0.1; done
        test "$before" = "$(megabytes)"

        kutrace_control summary $SHARE/ls.raw >$SHARE/summary
        kutrace_control html $SHARE/ls.raw
        htmltospan $SHARE/ls.html >$SHARE/one.json
        rawtoevent $SHARE/ls.raw | eventtospan | spantohtml --title ls | htmltospan >$SHARE/three.json
        fails 1 'not enough memory for a buffer of this size' kutrace_control record -b 60G -o $SHARE/none.raw -- true
        "#,
    );
    for name in ["ls", "seven", "killed", "time", "part", "INT", "TERM", "HUP", "both", "lost"] {
        Trace::read_whole(&run.file(&format!("{name}.raw")));
    }
    assert!(!run.file("none.raw").exists());
    let trace = Trace::read_whole(&run.file("ls.raw"));
    assert!(!trace.pids_of("ls").is_empty());
    let header = Blocks::read(&run.file("time.raw")).header;
    let ns = header.stop.monotonic_ns - header.start.monotonic_ns;
    assert!(ns >= 300_000_000, "{ns}");
    let header = Blocks::read(&run.file("part.raw")).header;
    assert!(header.stop.monotonic_ns - header.start.monotonic_ns < 500_000_000);
    let summary = fs::read_to_string(run.file("summary")).unwrap();
    assert!(summary.contains("  ls\n") && summary.contains("  openat\n"), "{summary}");
    let json = |name: &str| fs::read_to_string(run.file(name)).unwrap();
    assert!(json("one.json") == json("three.json"), "one process shows what three show");
}

#[test]
fn the_second_of_two_is_told_who_holds_the_recorder() {
    let run = succeed(
        &[],
        r#"
        kutrace_control record --wrap -o $SHARE/first.raw & holder=$!
        sleep 1
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

        # Killed at once: nothing traces, nothing is held, and what was recorded can still be had.
        kutrace_control record -b 64M -o $SHARE/never.raw & holder=$!
        sleep 1
        kill -9 $holder; wait $holder || true
        kutrace_control status >$SHARE/status
        kutrace_control stop $SHARE/rescued.raw
        "#,
    );
    for name in ["first.raw", "snapshot.raw", "rescued.raw"] {
        Trace::read_whole(&run.file(name));
    }
    let trace = Trace::read_whole(&run.file("first.raw"));
    assert!(trace.of(MARK_A.into()).any(|e| trace.event_name(e) == "mark_a=meant"));
    assert!(!run.file("never.raw").exists());
    let status = fs::read_to_string(run.file("status")).unwrap();
    assert!(status.contains("state:  stopped") && status.contains("held:   by no process"), "{status}");
}

#[test]
fn only_who_has_the_right_controls() {
    let run = succeed(
        &[],
        r#"
        user="setpriv --reuid 1000 --regid 1000 --clear-groups"
        member="setpriv --reuid 1000 --regid 1000 --groups 4242"
        mkdir -m 777 /tmp/user
        # The checkout may be where nobody else can look.
        cp $(command -v kutrace_control) /tmp/user
        PATH=/tmp/user:$PATH
        every() {
            text=$1; shift
            for words in go gowrap stop status reset 'reset --force' quit snapshot 'record -- true' 1 0; do
                fails 1 "$text" "$@" kutrace_control $words
            done
            echo go | fails 1 "$text" "$@" kutrace_control
            status=0; "$@" kutrace_control check >/tmp/out || status=$?
            test $status = 1
        }
        every 'no permission: root, or CAP_PERFMON or CAP_SYS_ADMIN, is needed' $user
        chgrp 4242 /dev/kutrace
        every 'no permission: root, or CAP_PERFMON or CAP_SYS_ADMIN, is needed' $user
        every 'no permission: root, or CAP_PERFMON or CAP_SYS_ADMIN, is needed' $member
        chmod 666 /dev/kutrace
        every 'no permission: root, or CAP_PERFMON or CAP_SYS_ADMIN, is needed' $user
        kutrace_control status | grep -q '^state:  empty'

        chmod 660 /dev/kutrace
        cd /tmp/user
        # CAP_PERFMON, as a capability on the program's file gives it.
        able="$member --inh-caps=+cap_38 --ambient-caps=+cap_38"
        $able kutrace_control record -o user.raw -- ls /usr >/dev/null
        $able kutrace_control go
        $able kutrace_control stop go.raw
        test "$(stat -c %u user.raw)" = 1000
        cp user.raw go.raw $SHARE
        "#,
    );
    let trace = Trace::read_whole(&run.file("user.raw"));
    assert!(!trace.pids_of("ls").is_empty());
    Trace::read_whole(&run.file("go.raw"));
}

#[test]
fn a_full_disk_keeps_the_trace_and_leaves_no_half_file() {
    let run = succeed(
        &["--no-load"],
        r#"
        insmod $KUTRACE_MODULE tracemb=64
        mkdir /tmp/small
        mount -t tmpfs -o size=1m tmpfs /tmp/small
        kutrace_control gowrap
        stress-ng --quiet --switch 2 --timeout 5
        fails 1 'small/s.raw: No space left on device' kutrace_control snapshot /tmp/small/s.raw
        fails 1 'the trace stays in the recorder: /tmp/small/t.raw: No space left on device' \
            kutrace_control stop /tmp/small/t.raw
        test -z "$(ls -A /tmp/small)"
        kutrace_control stop $SHARE/t.raw
        fails 1 'the trace stays in the recorder: /tmp/small/r.raw: No space left on device' \
            kutrace_control record -b 32M -o /tmp/small/r.raw -- stress-ng --quiet --switch 2 --timeout 5
        test -z "$(ls -A /tmp/small)"
        kutrace_control stop $SHARE/r.raw
        mount -o remount,size=64k /tmp/small
        fails 1 'small/r.html: No space left on device' kutrace_control html $SHARE/r.raw -o /tmp/small/r.html
        test -z "$(ls -A /tmp/small)"
        "#,
    );
    for name in ["t.raw", "r.raw"] {
        Trace::read_whole(&run.file(name));
        assert!(fs::metadata(run.file(name)).unwrap().len() > 1 << 20, "the disk was too large");
    }
}

#[test]
fn killed_at_any_point_it_holds_nothing() {
    let run = succeed(
        &["--no-load", "--timeout", "1800"],
        r#"
        insmod $KUTRACE_MODULE tracemb=8
        vmalloc() { awk '/VmallocUsed/ { print $2 }' /proc/meminfo; }
        mkdir /tmp/traces; cd /tmp/traces
        # Milliseconds within which kills come: more after one that found its victim, else less. So half of them do,
        # however fast this machine is.
        most=500
        before=$(vmalloc)
        for n in $(seq 200); do
            case $((n % 4)) in
                0) kutrace_control gowrap; kutrace_control stop $n.raw 2>/dev/null & ;;
                1) kutrace_control record -b 64M -o $n.raw -- sleep 0.05 2>/dev/null & ;;
                2) kutrace_control record --wrap -d 50ms -o $n.raw 2>/dev/null & ;;
                3) printf 'gowrap\nsnapshot s'$n'.raw\nstop '$n'.raw\n' | kutrace_control 2>/dev/null & ;;
            esac
            victim=$!
            after=$((RANDOM % most))
            sleep $(printf '%d.%03d' $((after / 1000)) $((after % 1000)))
            if kill -9 $victim 2>/dev/null; then echo killed; most=$((most + most / 8 + 1)); else most=$((most - most / 8)); fi
            wait $victim 2>/dev/null || true
            kutrace_control status >/tmp/status
            if ! grep -q '^held:   by no process' /tmp/status; then cat /tmp/status >&2; exit 98; fi
            # A start outlives who gave it, unless that holds the recorder.
            kutrace_control reset --force
        done >/tmp/killed
        echo killed=$(wc -l </tmp/killed)
        kutrace_control go
        ls / >/dev/null
        kutrace_control stop $SHARE/last.raw
        sleep 1
        echo grown=$(( $(vmalloc) - before < 0 ? 0 : $(vmalloc) - before ))
        ls -A | grep -v '\.raw$' >&2 && exit 97
        mkdir $SHARE/traces; cp *.raw $SHARE/traces
        dmesg >$SHARE/dmesg
        ! grep -E 'WARNING|BUG|Oops|RIP:' $SHARE/dmesg >&2
        "#,
    );
    let killed = run.number("killed");
    assert!(killed > 50, "only {killed} of 200 were still there to be killed");
    // One pool of 64 MiB that stays would be 65536 kB, one of 8 MiB 8192.
    assert!(run.number("grown") < 4096, "{}", run.out);
    Trace::read_whole(&run.file("last.raw"));
    let files: Vec<_> = fs::read_dir(run.file("traces")).unwrap().map(|entry| entry.unwrap().path()).collect();
    eprintln!("control: {killed} of 200 killed, {} files were complete", files.len());
    assert!(files.len() > 20, "{} files were complete", files.len());
    files.iter().for_each(|path| Trace::read(path).check());
}

#[test]
fn two_at_once_do_each_their_work_or_say_why_not() {
    let run = succeed(
        &["--no-load"],
        r#"
        insmod $KUTRACE_MODULE tracemb=8
        mkdir $SHARE/traces
        both() {
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
        both a & a=$!
        both b & b=$!
        wait $a; wait $b
        cat /tmp/?.did | sed 's/ [^ ]*raw//' | sort | uniq -c >&2
        cat /tmp/?.said | grep -v ^hint | sed 's/[0-9][0-9]*/N/g' | sort | uniq -c | sort -rn >$SHARE/said
        kutrace_control reset --force
        kutrace_control go
        kutrace_control stop $SHARE/last.raw
        dmesg >$SHARE/dmesg
        ! grep -E 'WARNING|BUG|Oops|RIP:' $SHARE/dmesg >&2
        "#,
    );
    let said = fs::read_to_string(run.file("said")).unwrap();
    eprintln!("{}{said}", run.err);
    let known = [
        "a trace is running",
        "in use",
        "nothing is recorded",
        "no trace is running in wrap mode",
        "the recorder was started again meanwhile",
        "events lost",
    ];
    for line in said.lines() {
        assert!(known.iter().any(|fact| line.contains(fact)), "{line}");
    }
    let files: Vec<_> = fs::read_dir(run.file("traces")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 10, "{} traces\n{said}", files.len());
    files.iter().for_each(|path| Trace::read(path).check());
    Trace::read_whole(&run.file("last.raw"));
}
