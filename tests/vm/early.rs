// SPDX-License-Identifier: BSD-3-Clause
//! A recording that starts with the module; the boot from there on.

use kutrace_format::abi::event::MARK_A;

use crate::guest;
use crate::trace::Recording;

#[test]
fn recording_starts_with_the_module_if_asked_for() {
    let run = guest::succeed(
        &["--no-load", "--cpus", "2"],
        r#"
        ! insmod $KUTRACE_MODULE go=stop 2>/dev/null
        dmesg | grep 'kutrace: go=stop: wrap or nothing is meant'
        insmod $KUTRACE_MODULE tracemb=8 go=wrap
        kutrace_control status | grep 'tracing'
        kutrace_control mark early
        ls -R /etc >/dev/null
        kutrace_control snapshot $SHARE/s.raw
        kutrace_control stop $SHARE/t.raw
        rmmod kutrace
        # Unloaded while it records.
        insmod $KUTRACE_MODULE go=wrap
        rmmod kutrace
        insmod $KUTRACE_MODULE
        kutrace_control status | grep 'empty'
        "#,
    );
    for name in ["s.raw", "t.raw"] {
        let trace = Recording::read_whole_alone(&run.file(name));
        assert!(trace.of(MARK_A.into()).any(|e| trace.event_name(e) == "mark_a=early"), "{name}");
        assert!(trace.switches().count() > 10, "{name}");
    }
}

/// The module in the initramfs, loaded by the first process before all else: the trace has the boot from there to the
/// login, here to the job, and makes a page.
#[test]
fn the_boot_from_the_initramfs_on_is_a_page() {
    let run = guest::succeed(
        &["--early", "tracemb=16 go=wrap", "--cpus", "2"],
        r#"
        kutrace_control status | grep tracing
        kutrace_control mark login
        kutrace_control snapshot $SHARE/boot.trace
        cd $SHARE
        kutrace_control html boot.trace
        "#,
    );
    let trace = Recording::read_whole_alone(&run.file("boot.trace"));
    assert!(trace.of(MARK_A.into()).any(|e| trace.event_name(e) == "mark_a=login"), "the mark");
    // Acts of the first process after it has loaded the module: it mounts the root, each time with a program of its
    // own.
    for program in ["mount", "chroot"] {
        assert!(!trace.pids_of(program).is_empty(), "{program}");
    }
    let page = std::fs::read_to_string(run.file("boot.html")).unwrap();
    assert!(page.contains("</html>"));
}
