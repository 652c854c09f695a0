// SPDX-License-Identifier: BSD-3-Clause
//! State after a dump that does not end well: a full disk, a lost terminal, a kill at any point.

use std::fs;

use kutrace_format::abi::event::MARK_A;

use super::succeed;
use crate::blocks::Blocks;
use crate::guest;
use crate::trace::{self, Recording};

/// Number of commands that are killed in the middle.
const KILLED: u64 = guest::by_form(12, 20, 200);

#[test]
fn a_full_disk_keeps_the_trace_and_leaves_no_half_file() {
    let run = succeed(
        &["--no-load", "--cpus", "2"],
        r#"
        # Two calls each, of which there is no room for all.
        fill="dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none"
        insmod $KUTRACE_MODULE tracemb=8
        mkdir /tmp/small
        mount -t tmpfs -o size=1m tmpfs /tmp/small
        kutrace_control gowrap
        $fill
        fails 1 'small/s.raw: No space left on device' kutrace_control snapshot /tmp/small/s.raw
        fails 1 'the trace is still in the recorder: /tmp/small/t.raw: No space left on device' \
            kutrace_control stop /tmp/small/t.raw
        test -z "$(ls -A /tmp/small)"
        kutrace_control stop $SHARE/t.raw
        fails 1 'the trace is still in the recorder: /tmp/small/r.raw: No space left on device' \
            kutrace_control record --wrap -b 8M -o /tmp/small/r.raw -- $fill
        test -z "$(ls -A /tmp/small)"
        kutrace_control stop $SHARE/r.raw
        mount -o remount,size=64k /tmp/small
        fails 1 'small/r.html: No space left on device' kutrace_control html $SHARE/r.raw -o /tmp/small/r.html
        test -z "$(ls -A /tmp/small)"
        "#,
    );
    for name in ["t.raw", "r.raw"] {
        Recording::read_whole_alone(&run.file(name));
        assert!(fs::metadata(run.file(name)).unwrap().len() > 1 << 20, "the disk was too large");
    }
}

#[test]
fn a_lost_terminal_ends_a_recording_unless_it_was_told_otherwise() {
    let run = succeed(
        &["--cpus", "2"],
        r#"
        before=$(megabytes)
        script -qec "kutrace_control record -b 32M -o $SHARE/lost.raw" /dev/null >/dev/null & terminal=$!
        becomes tracing
        kill -9 $terminal
        becomes empty
        test "$before" = "$(megabytes)"

        script -qec "nohup kutrace_control record -o $SHARE/nohup.raw" /dev/null >/dev/null & terminal=$!
        becomes tracing
        kill -9 $terminal
        terminal_is_gone() { ! kill -0 $terminal; }
        await terminal_is_gone 2>/dev/null
        kutrace_control mark later
        pkill -INT -f nohup.raw
        becomes empty
        "#,
    );
    Recording::read_whole_alone(&run.file("lost.raw"));
    let trace = Recording::read_whole_alone(&run.file("nohup.raw"));
    assert!(trace.of(MARK_A.into()).any(|e| trace.event_name(e) == "mark_a=later"));
}

#[test]
fn a_lost_terminal_leaves_a_whole_file_or_none_and_the_trace_in_the_recorder() {
    let times = guest::by_form(1, 5, 5);
    let seed = guest::seed();
    let script = r#"
        insmod $KUTRACE_MODULE tracemb=64
        kutrace_control go
        for n in 1 2; do dd if=/dev/zero of=/dev/null bs=1 count=700000 2>/dev/null & done; wait
        kutrace_control stop $SHARE/first.raw || [ $? = 3 ]
        least=$(($(stat -c %s $SHARE/first.raw) - 1000000))
        mkdir /tmp/traces
        # Milliseconds within which the signal comes: fewer after a file that was complete, else more.
        most=200 complete=0 given_up=0
        n=0
        until [ $complete -ge $times -a $given_up -ge $times ]; do
            n=$((n + 1))
            file=/tmp/traces/$n.raw
            kutrace_control stop $file 2>/tmp/err & victim=$!
            after=$((RANDOM % most))
            sleep $(printf '%d.%03d' $((after / 1000)) $((after % 1000)))
            kill -HUP $victim 2>/dev/null || true
            status=0; wait $victim || status=$?
            case $status in
                0|3) test -e $file ;;
                130) grep -q 'interrupted' /tmp/err; test ! -e $file; given_up=$((given_up + 1)) ;;
                # Before there was anything to be ended, or after.
                129) ;;
                *) cat /tmp/err >&2; exit 96 ;;
            esac
            if [ -e $file ]; then
                test $(stat -c %s $file) -gt $least
                rm $file
                complete=$((complete + 1)) most=$((most - most / 4))
            else
                most=$((most + most / 4 + 1))
            fi
            test -z "$(ls -A /tmp/traces)"
            kutrace_control status >/tmp/status
            grep -q '^state:  stopped' /tmp/status
            grep -q '^held:   by no process' /tmp/status
        done
        # Who reads begins once progress is shown.
        reader="until grep -q '[0-9] %' /tmp/terminal; do sleep 0.1; done; cat >$SHARE/last.raw"
        script -qefc "kutrace_control stop - | { $reader; }" /tmp/terminal >/dev/null
        if grep '[0-9] %' /tmp/err; then exit 98; fi
        echo complete=$complete
        echo given_up=$given_up
        "#;
    let head = format!("times={times} RANDOM={seed}\n");
    let run = succeed(&["--no-load", "--cpus", "2", "--timeout", "1200"], &[&head, script].concat());
    println!("{} complete, {} given up", run.number("complete"), run.number("given_up"));
    let [first, last] = ["first.raw", "last.raw"].map(|name| Blocks::read(&run.file(name)));
    assert!(first.header.blocks > 256, "{} blocks are written too fast", first.header.blocks);
    assert_eq!((first.header.start, first.header.blocks), (last.header.start, last.header.blocks));
}

#[test]
fn killed_at_any_point_it_holds_nothing() {
    let seed = guest::seed();
    let script = format!("most_killed={KILLED} RANDOM={seed}");
    let run = succeed(
        &["--no-load", "--cpus", "2", "--timeout", "1800"],
        &[
            &script,
            r#"
        insmod $KUTRACE_MODULE tracemb=8
        vmalloc() { awk '/VmallocUsed/ { print $2 }' /proc/meminfo; }
        mkdir /tmp/traces; cd /tmp/traces
        # Milliseconds within which kills come: a few more after one that found its victim, else many less. So most do,
        # however fast this machine is, and some come when all is done.
        most=500
        before=$(vmalloc)
        n=0 killed=0
        while [ $killed -lt $most_killed ] || ! ls *.raw >/dev/null 2>&1; do
            n=$((n + 1))
            case $((n % 4)) in
                0) kutrace_control gowrap; kutrace_control stop $n.raw 2>/dev/null & ;;
                1) kutrace_control record -b 64M -o $n.raw -- sleep 0.05 2>/dev/null & ;;
                2) kutrace_control record --wrap -d 50ms -o $n.raw 2>/dev/null & ;;
                3) printf 'gowrap\nsnapshot s'$n'.raw\nstop '$n'.raw\n' | kutrace_control 2>/dev/null & ;;
            esac
            victim=$!
            after=$((RANDOM % most))
            sleep $(printf '%d.%03d' $((after / 1000)) $((after % 1000)))
            kill -9 $victim 2>/dev/null || true
            status=0; wait $victim 2>/dev/null || status=$?
            if [ $status = 137 ]; then
                killed=$((killed + 1)) most=$((most + most / 16 + 1))
            else
                most=$((most - most / 4))
            fi
            # A command that is about to be started has the device open for a moment longer.
            is_free() { kutrace_control status | grep -q '^held:   by no process'; }
            await is_free
            # A start outlives who gave it, unless that holds the recorder.
            kutrace_control reset --force
        done
        echo rounds=$n
        kutrace_control go
        ls / >/dev/null
        kutrace_control stop $SHARE/last.raw
        as_before() { [ $(($(vmalloc) - before)) -lt 4096 ]; }
        await as_before
        echo grown=$(( $(vmalloc) - before < 0 ? 0 : $(vmalloc) - before ))
        ls -A | grep -v '\.raw$' >&2 && exit 97
        mkdir $SHARE/traces; cp *.raw $SHARE/traces
        dmesg >$SHARE/dmesg
        ! grep -E 'WARNING|BUG|Oops|RIP:' $SHARE/dmesg >&2
        "#,
        ]
        .concat(),
    );
    // One pool of 64 MiB that stays would be 65536 kB, one of 8 MiB 8192.
    assert!(run.number("grown") < 4096, "{}", run.out);
    Recording::read_whole(&run.file("last.raw"));
    let files: Vec<_> = fs::read_dir(run.file("traces")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let rounds = run.number("rounds");
    eprintln!("control: {KILLED} of {rounds} killed, {} files were complete", files.len());
    assert!(!files.is_empty(), "no file was complete");
    trace::each(&files, |path| Recording::read_alone(path).check());
}
