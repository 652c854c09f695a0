// SPDX-License-Identifier: BSD-3-Clause
//! kutrace_control against the real module: every command; rights, two at once, and the state after a bad end.

mod rights;
mod symbols;
mod functions;
mod two;
mod end;

use std::collections::BTreeSet;
use std::fs;

use kutrace_format::abi::command::{IOCTL_INFO, IOCTL_START, IOCTL_STOP, VERSION};
use kutrace_format::abi::event::MARK_A;
use postprocess::event::number::MARK_D;

use crate::blocks::Blocks;
use crate::guest::{self, Run};
use crate::trace::Recording;

/// `fails STATUS TEXT COMMAND...`: the command ends with this status and this text in one line, with at most a hint
/// below it.
/// `becomes STATE`: the recorder gets into this state. `megabytes`: the size of its memory.
const WORDS: &str = r#"
    fails() {
        expected=$1 text=$2; shift 2
        status=0; "$@" >/tmp/out 2>/tmp/err || status=$?
        if [ $status != $expected ] || ! grep -qF -- "$text" /tmp/err || [ $(grep -vc ^hint: /tmp/err) != 1 ]; then
            echo "$*: status $status, not $expected with '$text':" >&2; cat /tmp/err >&2; exit 99
        fi
    }
    becomes() {
        is() { kutrace_control status | grep -q "^state:  $1"; }
        await is $1
    }
    megabytes() { kutrace_control status | sed -n 's/^used: .* of \(.*\) MB).*/\1/p'; }
"#;

fn succeed(options: &[&str], script: &str) -> Run {
    guest::succeed(options, &[WORDS, script].concat())
}

#[test]
fn every_command_does_its_work() {
    let run =
        succeed(&["--no-load", "--cpus", "2"], &format!("COMMANDS='{IOCTL_INFO} {IOCTL_START} {IOCTL_STOP}'{EVERY}"));
    let said = |name| fs::read_to_string(run.file(name)).unwrap();
    assert!(said("unready").contains("module     wrong"), "{}", said("unready"));
    assert!(!said("ready").contains("wrong"), "{}", said("ready"));
    assert!(!run.file("none.raw").exists());
    let name = said("name");
    let name: Vec<&str> = name.trim_end().splitn(4, '_').collect();
    assert_eq!((name[0], name[1].len(), name[2].len()), ("ku", 8, 6), "{name:?}");
    assert!(name[3].starts_with("kutrace-vm_") && name[3].ends_with(".trace"), "{name:?}");

    for name in ["again.raw", "snapshot.raw", "wrap.raw", "default.raw", "words.trace", "asked.raw"] {
        Recording::read_whole_alone(&run.file(name));
    }
    let trace = Recording::read_whole(&run.file("go.raw"));
    let named = |number| trace.of(number).map(|e| (trace.event_name(e), e.arg)).collect::<Vec<_>>();
    assert_eq!(named(MARK_A.into()), [("mark_a=hello", 39_187_408)]);
    assert_eq!(named(MARK_D), [("mark_d", 123_456)]);
    assert_eq!(Blocks::read(&run.file("go.raw")).header.start, Blocks::read(&run.file("again.raw")).header.start);
    // The original's words on the standard input.
    let header = Blocks::read(&run.file("words.trace")).header;
    assert!(header.stop.monotonic_ns - header.start.monotonic_ns >= 1_000_000_000, "{:?}", header.stop);
    a_32_bit_program_is_answered(&run);
}

/// By ask.c.
fn a_32_bit_program_is_answered(run: &Run) {
    assert_eq!((run.number("ret"), run.number("version")), (0, VERSION.into()));
    let said = ["nowhere", "start", "again", "stop", "unknown"].map(|name| run.number(name));
    let [efault, ebusy, enotty] = [14, 16, 25];
    assert_eq!(said, [efault, 0, ebusy, 0, enotty]);
}

const EVERY: &str = r#"
        fails 1 '/dev/kutrace: no such device; is the module loaded?' kutrace_control go
        fails 1 'no such device; is the module loaded?' kutrace_control mark hello
        status=0; kutrace_control check >$SHARE/unready || status=$?
        test $status = 1
        insmod $KUTRACE_MODULE
        kutrace_control check >$SHARE/ready
        fails 1 'nothing has been recorded' kutrace_control stop $SHARE/none.raw
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
        fails 1 'go.raw: already exists' kutrace_control stop $SHARE/go.raw
        kutrace_control stop --force $SHARE/go.raw
        kutrace_control stop - >$SHARE/again.raw
        kutrace_control reset
        fails 1 'nothing has been recorded' kutrace_control stop $SHARE/none.raw

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
        printf -- '-force\n1\nmark abc\nwait 1\nstop '$SHARE/words'\ngo\n' | kutrace_control
        kutrace_control status | grep -q '^state:  stopped'
        kutrace_control go
        kutrace_control reset --force
        kutrace_control status | grep -q '^state:  empty'

        $BIN/ask $COMMANDS
        kutrace_control stop $SHARE/asked.raw
"#;

#[test]
fn record_runs_a_command_and_leaves_nothing_behind() {
    let run = succeed(
        &["--cpus", "2"],
        r#"
        export SHARE
        before=$(megabytes)
        kutrace_control record -o $SHARE/ls.raw -- ls /usr/lib >/dev/null
        fails 7 '' kutrace_control record -o $SHARE/seven.raw -- sh -c 'exit 7'
        fails 143 '' kutrace_control record -o $SHARE/killed.raw -- sh -c 'kill $$'
        fails 1 '/no/such/program: No such file or directory' kutrace_control record -o $SHARE/none.raw -- /no/such/program
        kutrace_control record -d 300ms -o $SHARE/time.raw
        # The command outlives the recording, and its status is waited for.
        fails 9 '' kutrace_control record -d 100ms -o $SHARE/part.raw -- \
            sh -c 'until [ -e $SHARE/part.raw ]; do sleep 0.1; done; exit 9'
        kutrace_control status | grep -q '^state:  empty'
        test "$before" = "$(megabytes)"

        for signal in INT TERM HUP; do
            kutrace_control record -b 32M -o $SHARE/$signal.raw &
            becomes tracing
            test "$(megabytes)" = 32.0
            kill -$signal $!
            status=0; wait $! || status=$?
            test $status = 130
        done
        kutrace_control record -o $SHARE/both.raw -- tail -f /dev/null &
        await pgrep -x tail >/dev/null
        kill -INT $!; status=0; wait $! || status=$?
        test $status = 130
        no_tail() { ! pgrep -x tail; }
        await no_tail

        sleep 1000 7>/tmp/kept & kept=$!
        sleep 1000 7>/tmp/first & first=$!
        kutrace_control record -o $SHARE/files.raw -- \
            sh -c "kill $first; sleep 1000 7>/tmp/last >/dev/null & until [ -e /tmp/last ]; do sleep 0.1; done"
        pkill -x sleep

        kutrace_control summary $SHARE/ls.raw >$SHARE/summary
        kutrace_control html $SHARE/ls.raw
        htmltospan $SHARE/ls.html >$SHARE/one.json
        rawtoevent $SHARE/ls.raw | eventtospan | spantohtml --title ls | htmltospan >$SHARE/three.json
        fails 1 'not enough memory for a buffer of this size' kutrace_control record -b 60G -o $SHARE/none.raw -- true
        "#,
    );
    for name in ["seven", "killed", "time", "part", "INT", "TERM", "HUP", "both"] {
        Recording::read_whole_alone(&run.file(&format!("{name}.raw")));
    }
    assert!(!run.file("none.raw").exists());
    let trace = Recording::read_whole_alone(&run.file("files.raw"));
    let files = trace.spans.meta.files.values().flatten().filter(|(_, path)| path.starts_with("/tmp/"));
    assert_eq!(
        files.map(|(file, path)| (path.as_str(), file.is_at_start(), file.is_at_end())).collect::<BTreeSet<_>>(),
        BTreeSet::from([("/tmp/first", true, false), ("/tmp/kept", true, true), ("/tmp/last", false, true)])
    );
    let trace = Recording::read_whole(&run.file("ls.raw"));
    assert!(!trace.pids_of("ls").is_empty());
    let header = Blocks::read(&run.file("time.raw")).header;
    let ns = header.stop.monotonic_ns - header.start.monotonic_ns;
    assert!(ns >= 300_000_000, "{ns}");
    let summary = fs::read_to_string(run.file("summary")).unwrap();
    assert!(summary.contains("  ls\n") && summary.contains("  openat\n"), "{summary}");
    let json = |name: &str| fs::read_to_string(run.file(name)).unwrap();
    assert!(json("one.json") == json("three.json"), "one process shows what three show");
}
