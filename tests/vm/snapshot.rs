// SPDX-License-Identifier: BSD-3-Clause
//! Snapshots of a trace that goes on, and a trace as another reader sees it.

use std::fs;

use kutrace_tests::ctf;
use postprocess::raw;

use crate::guest;
use crate::trace::Trace;

#[test]
fn three_hundred_snapshots_of_a_storm_are_whole() {
    let run = guest::succeed(
        &["--no-load"],
        r#"
        insmod $KUTRACE_MODULE tracemb=2
        nice -n 10 stress-ng --quiet --switch 2 --fault 1 --timer 1 --fork 1 --timeout 500 &
        { echo gowrap
          for n in $(seq 300); do echo "snapshot $SHARE/$n.raw"; echo wait 0.1; done
          echo stop $SHARE/stop.raw
        } | kutrace_control
        kill $!; wait $! || true
        "#,
    );
    let mut wrapped = 0;
    for n in 1..=300 {
        let path = run.file(&format!("{n}.raw"));
        let meta = raw::decode(&fs::read(&path).unwrap()).unwrap().meta;
        assert!(meta.is_whole(), "{n}: {meta:?}");
        assert_eq!(meta.intervals.len(), 4, "{n}: every CPU is there");
        wrapped += u32::from(meta.flags & 0x40 != 0);
        if n % 50 == 0 {
            Trace::read_whole(&path);
        }
    }
    assert!(wrapped > 250, "{wrapped} of 300 were taken after the recorder came round\n{}", run.err);
}

#[test]
fn a_snapshot_is_refused_where_nothing_is_overwritten() {
    let run = guest::run(&[], "kutrace_control go\nkutrace_control snapshot /tmp/t.raw");
    assert_eq!(run.status, 1, "{}", run.err);
    assert!(run.err.contains("/dev/kutrace: snapshot: no trace is running in wrap mode\n"), "{}", run.err);
}

#[test]
fn babeltrace2_reads_a_wrapped_trace_as_we_do() {
    let run = guest::succeed(
        &["--no-load"],
        r#"
        insmod $KUTRACE_MODULE tracemb=1
        kutrace_control gowrap
        stress-ng --quiet --switch 2 --fork 1 --timer 1 --timeout 2
        kutrace_control stop $SHARE/t.raw
        rawtoctf $SHARE/t.raw /tmp/ctf
        babeltrace2 --clock-seconds --no-delta /tmp/ctf >$SHARE/t.txt
        "#,
    );
    let text = fs::read_to_string(run.file("t.txt")).unwrap();
    let entries = ctf::compare(&fs::read(run.file("t.raw")).unwrap(), &text);
    assert!(entries > 50_000, "{entries}");
}
