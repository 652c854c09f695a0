// SPDX-License-Identifier: BSD-3-Clause
//! Programs that see little of the machine, and may ask the kernel for little: in a container, or under a filter.

use std::collections::BTreeSet;

use postprocess::event::number::{MARK_A, PROGRAM_BEGIN, PROGRAM_MARK, PROGRAM_VALUE};

use crate::guest;
use crate::marks::TAKE;
use crate::trace::Recording;

/// Of the night: only the distribution's kernel has the parts that containers consist of.
#[cfg(feature = "night")]
#[test]
fn a_program_in_a_container_marks_if_it_is_given_the_device() {
    let run = guest::succeed(
        &["--kernel", "distribution"],
        r#"
        cp $BIN/programs_static /tmp/programs
        mount -t cgroup2 none /sys/fs/cgroup
        in_container() { (mkdir -p /tmp/$1; cd /tmp/$1; python3 $VM/container.py "$2" /tmp/programs calls $3; runc run $1); }
        kutrace_control go
        echo given=$(in_container given /dev/kutrace_programs 1000)
        echo other=$(in_container other "" 10)
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    assert_eq!([run.number("given"), run.number("other")], [2000, 0]);
    let trace = Recording::read_whole(&run.file("t.raw"));
    let pids: BTreeSet<_> = trace.of(PROGRAM_MARK).map(|e| e.pid).collect();
    assert_eq!((trace.of(PROGRAM_MARK).count(), pids.len()), (2000, 1));
    assert_eq!(trace.of(MARK_A).count(), 0);
}

/// Kinds of sandboxes, each of them there twice.
const KINDS: usize = 11;

/// Those of them that can record: the strict mode of seccomp takes the TSC from a thread.
const ABLE: usize = KINDS - 1;

/// Each lives, and each mark is in the trace. Some programs began before all traces, and some in the second, and all put
/// themselves into the sandbox before their first mark, or after it. Of those that can record nothing there is a count.
#[test]
fn a_program_in_a_sandbox_lives_as_untraced_and_its_marks_are_there() {
    let both = [&["--cpus", "2"][..], &["--cpus", "2", "--kernel", "stock"]];
    for kernel in both {
        let run = guest::succeed(
            kernel,
            &format!(
                r#"{TAKE}
                take sandbox
                mkdir empty
                coproc all {{ ./sandbox; }}
                round() {{ echo >&${{all[1]}}; read answers <&${{all[0]}}; echo "$1 $answers"; }}
                round off
                for trace in 1 2; do
                    kutrace_control go
                    round on
                    [ $trace = 1 ] || echo | ./sandbox >young
                    kutrace_control stop $SHARE/$trace.raw || [ $? = 3 ]
                    round off
                done
                echo young $(<young)
                exec 5<&${{all[0]}}
                eval "exec ${{all[1]}}>&-"
                cat <&5
                "#
            ),
        );
        let lines: Vec<&str> = run.out.lines().collect();
        assert_eq!(lines.len(), 6, "{}", run.out);
        for line in lines {
            let (when, answers) = line.split_once(' ').unwrap();
            for answer in answers.split(' ') {
                let records = when != "off" && !answer.starts_with("strict");
                assert!(answer.ends_with(if records { "=4" } else { "=0" }), "{line}");
            }
            assert_eq!(answers.split(' ').count(), 2 * KINDS, "{line}");
        }
        for (name, young) in [("1.raw", 0), ("2.raw", 1)] {
            let trace = Recording::read_and_ask(&run.file(name));
            trace.check();
            let lost = format!("programs were refused memory for their marks {} times", 2 * (1 + young));
            assert!(
                trace.events.meta.quality.iter().any(|said| said.contains(&lost)),
                "{:?}",
                trace.events.meta.quality
            );
            let marks = trace.of(PROGRAM_MARK).filter(|e| trace.event_name(e) == "sandboxed");
            // Of the young, half have marked once before.
            assert_eq!(marks.count(), 2 * ABLE + young * 3 * ABLE, "{name}");
            let values = trace.of(PROGRAM_VALUE).filter(|e| e.value() == -3);
            assert_eq!(values.count(), 2 * ABLE + young * 3 * ABLE, "{name}");
            let parts = trace.spans.spans.iter().filter(|s| s.event() == PROGRAM_BEGIN as i32);
            assert_eq!(parts.count(), 2 * ABLE + young * 3 * ABLE, "{name}");
            assert_eq!(trace.of(MARK_A).count(), 0);
        }
    }
}

#[test]
fn a_service_that_sees_no_device_and_may_make_no_unknown_call_goes_on() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{TAKE}
            take programs sealed
            kutrace_control go
            # As where systemd or a container shows it other devices.
            unshare -m sh -ec 'mount --bind /dev/null /dev/kutrace_programs; ./sealed; ./programs calls 1'
            kutrace_control stop $SHARE/t.raw"
        ),
    );
    assert_eq!(run.out, "-76 1\n-38 -38\n0\n");
    let trace = Recording::read(&run.file("t.raw"));
    assert_eq!((trace.of(MARK_A).count(), trace.of(PROGRAM_MARK).count()), (0, 0));
}
