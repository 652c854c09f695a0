// SPDX-License-Identifier: BSD-3-Clause
//! Everything that runs for months, in turn and under load: streams in rings of files, a flight recorder that is
//! watched and of which snapshots are taken, both killed and started again.

use std::fs;

use crate::guest;
use crate::trace::Recording;

/// For how long, on which kernel, and at most.
const LONG: (u32, &[&str]) = guest::by_form((1, &[]), (1, &[]), (3600, &["--kernel", "debug", "--timeout", "7200"]));

#[test]
fn streams_triggers_and_snapshots_follow_each_other_without_a_loss_unseen() {
    let (seconds, options) = LONG;
    let run = guest::succeed(
        &[&[guest::AT_ONCE, "--cpus", "4", "--no-load"], options].concat(),
        &format!(
            r#"
        insmod $KUTRACE_MODULE tracemb=16
        mkdir /tmp/ring
        stress-ng --quiet --switch 1 --fork 1 --timer 1 --timer-freq 2000 --fault 1 & load=$!
        rounds=0
        SECONDS=0
        until [ $rounds -gt 0 -a $SECONDS -ge {seconds} ]; do
            rounds=$((rounds + 1))
            # A stream in a ring of files, the last of which its writer does not end.
            kutrace_control record --stream --no-symbols -b 32M --rotate 4M --keep 3 --force -o /tmp/ring/t.trace \
                >/tmp/streamed 2>&1 & stream=$!
            until [ -e /tmp/ring/t.000003.trace ]; do sleep 0.2; kill -0 $stream; done
            if [ $((rounds % 2)) = 0 ]; then kill -9 $stream; else kill -INT $stream; fi
            wait $stream || true
            kutrace_control gowrap
            kutrace_control watch --bare --when 'call:rt_sigtimedwait > 200ms' --when signal --keep 3 --budget 100M \
                -o /tmp/kept >/tmp/lines 2>/tmp/told & watch=$!
            until grep -q watching /tmp/told; do sleep 0.1; done
            sleep 1
            perl -e 'my ($set, $time) = ("\0" x 8, pack("qq", 0, 300e6)); syscall 128, $set, 0, $time, 8'
            kutrace_control snapshot --force /tmp/snapshot.trace
            kill -USR1 $watch
            until [ $(wc -l </tmp/lines) -ge 2 ]; do sleep 0.2; kill -0 $watch; done
            grep -q rt_sigtimedwait /tmp/lines
            kill -INT $watch
            wait $watch || true
            kutrace_control status >/tmp/status
            kutrace_control stop --force /tmp/stopped.trace
        done
        echo rounds=$rounds
        kill $load
        wait $load || true
        rmmod kutrace
        cp /tmp/snapshot.trace /tmp/stopped.trace $(ls /tmp/ring/*.trace | tail -2 | head -1) $SHARE
        cat /tmp/streamed /tmp/told"#
        ),
    );
    println!("{} rounds", run.number("rounds"));
    let traces: Vec<_> = fs::read_dir(run.share.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let traces: Vec<_> = traces.iter().filter(|path| path.extension().is_some_and(|end| end == "trace")).collect();
    assert_eq!(traces.len(), 3, "{traces:?}");
    for trace in traces {
        Recording::read(trace).check();
    }
}
