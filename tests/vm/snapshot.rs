// SPDX-License-Identifier: BSD-3-Clause
//! Snapshots: one every 100 ms of a flight recorder under a storm, each a whole trace that ends when it was taken; and
//! a wrapped trace as another reader sees it.

use std::fs;

use kutrace_tests::ctf;
use postprocess::event::number::SYSCALL;

use crate::blocks::Blocks;
use crate::guest;
use crate::trace::{self, Recording};

/// Snapshots, at most ten for each second.
const SNAPSHOTS: usize = guest::by_form(8, 50, 300);
/// One of this many is read by others, too, who take much longer.
const SECOND_OPINION: usize = 8;
const IOCTL: u32 = SYSCALL + 16;
/// From the moment of a snapshot until the last CPU has ended its block: it takes an interrupt on each, for which the host
/// may let a CPU wait as long as it likes.
const ROUND_SECONDS: u64 = 60;

#[test]
fn every_snapshot_of_a_storm_is_whole() {
    let script = format!(
        r#"
        insmod $KUTRACE_MODULE tracemb=2
        nice -n 10 stress-ng --quiet --switch 1 --fault 1 --timer 1 --fork 1 --timeout 0 &
        load=$!
        kutrace_control gowrap
        until kutrace_control status | grep -q '(lap'; do sleep 0.5; done
        {{
            for n in $(seq {SNAPSHOTS}); do printf "snapshot $SHARE/$n.raw\nwait 0.1\n"; done
            echo stop $SHARE/stop.raw
        }} | kutrace_control
        kill $load
        "#
    );
    let run = guest::succeed(&[guest::AT_ONCE, "--no-load", "--cpus", "2"], &script);
    let start = Blocks::read(&run.file("stop.raw")).header.start;
    Recording::read_whole(&run.file("stop.raw"));
    let paths: Vec<_> = (1..=SNAPSHOTS).map(|n| run.file(&format!("{n}.raw"))).collect();
    let mut moments = trace::each(&paths, |path| {
        let n: usize = path.file_stem().and_then(|n| n.to_str()?.parse().ok()).unwrap();
        let read = if n.is_multiple_of(SECOND_OPINION) { Recording::read_whole } else { Recording::read_whole_alone };
        let trace = read(path);
        assert_eq!(trace.events.meta.flags & 0x40, 0x40, "{n}: it did not wrap");
        let control = trace.pids_of("kutrace_control");
        assert!(trace.of(IOCTL).any(|e| control.contains(&e.pid)), "{n}: its own command is missing");

        let Blocks { header, cpus, .. } = Blocks::read(path);
        assert_eq!((header.start, cpus.len()), (start, 2), "{n}");
        let moment = header.stop.tsc >> header.shift;
        let round = (ROUND_SECONDS * header.tsc_hz) >> header.shift;
        for (cpu, blocks) in cpus {
            let end = blocks[blocks.len() - 1].span.1;
            assert!((moment..moment + round).contains(&end), "{n}: cpu {cpu} ends at {end}, not at {moment}");
        }
        (n, header.stop.monotonic_ns)
    });
    moments.push((0, start.monotonic_ns));
    moments.sort_unstable();
    for pair in moments.windows(2) {
        assert!(pair[1].1 > pair[0].1 + 100_000_000, "{}: not 100 ms after the one before", pair[1].0);
    }
}

#[test]
fn a_snapshot_is_refused_where_nothing_is_overwritten() {
    let run = guest::run(&["--cpus", "2"], "kutrace_control go\nkutrace_control snapshot /tmp/t.raw");
    assert_eq!(run.status, 1, "{}", run.err);
    assert!(run.err.contains("/dev/kutrace: snapshot: no trace is running in wrap mode\n"), "{}", run.err);
}

#[test]
fn babeltrace2_reads_a_wrapped_trace_as_we_do() {
    let run = guest::succeed(
        &["--no-load", "--cpus", "2"],
        r#"
        insmod $KUTRACE_MODULE tracemb=1
        kutrace_control gowrap
        stress-ng --quiet --switch 2 --fork 1 --timer 1 --timer-freq 2000 --timeout 1
        dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none
        kutrace_control stop $SHARE/t.raw
        rawtoctf $SHARE/t.raw /tmp/ctf
        babeltrace2 --clock-seconds --no-delta /tmp/ctf >$SHARE/t.txt
        "#,
    );
    let text = fs::read_to_string(run.file("t.txt")).unwrap();
    let entries = ctf::compare(&fs::read(run.file("t.raw")).unwrap(), &text);
    assert!(entries > 50_000, "{entries}");
}
