// SPDX-License-Identifier: BSD-3-Clause
//! Programs that see little of the machine, and may ask the kernel for little: in a container, or under a filter.

use std::collections::BTreeSet;

use postprocess::event::number::{MARK_A, PROGRAM_MARK};

use crate::guest;
use crate::marks::TAKE;
use crate::trace::Recording;

/// Of the night: what containers are made of is in the distribution's kernel alone.
#[cfg(feature = "night")]
/// Of the night: what containers are made of is in the distribution's kernel alone.
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

#[test]
fn a_service_that_a_filter_would_kill_for_system_call_1023_goes_on() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{TAKE}
            take programs sealed
            kutrace_control go
            # As where systemd or a container shows it other devices.
            unshare -m sh -ec 'mount --bind /dev/null /dev/kutrace_programs; ./sealed; ./programs calls 1'
            kutrace_control stop $SHARE/t.raw || [ $? = 3 ]"
        ),
    );
    assert!(run.out.contains("-76 1\n-38 -38\n"), "{}", run.out);
    let trace = Recording::read(&run.file("t.raw"));
    let names: BTreeSet<_> = trace.of(MARK_A).map(|e| trace.event_name(e)).collect();
    // The other program has no filter, and falls back to the system call.
    assert!(names.contains("mark_a=before") && !names.contains("mark_a=mark"), "{names:?}");
}
