// SPDX-License-Identifier: BSD-3-Clause
//! A recording that starts with the module.

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
