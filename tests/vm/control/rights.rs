// SPDX-License-Identifier: BSD-3-Clause
//! Who may control the recorder.

use super::succeed;
use crate::trace::Trace;

/// An ordinary user, and one of the group that the device is given to.
const PEOPLE: &str = r#"
    user="setpriv --reuid 1000 --regid 1000 --clear-groups"
    member="setpriv --reuid 1000 --regid 1000 --groups 4242"
    closed="no permission: root, or membership in the device's group, is needed"
    lacking='no permission: root, or CAP_PERFMON or CAP_SYS_ADMIN, is needed'
"#;

#[test]
fn only_who_has_the_right_controls() {
    let script = r#"
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
        every "$closed" $user
        chgrp 4242 /dev/kutrace
        every "$closed" $user
        every "$lacking" $member
        chmod 666 /dev/kutrace
        every "$lacking" $user
        kutrace_control status | grep -q '^state:  empty'

        chmod 660 /dev/kutrace
        cd /tmp/user
        # CAP_PERFMON, as from the service manager.
        able="$member --inh-caps=+cap_38 --ambient-caps=+cap_38"
        $able kutrace_control record -o user.raw -- ls /usr >/dev/null
        $able kutrace_control go
        $able kutrace_control stop go.raw
        test "$(stat -c %u user.raw)" = 1000
        cp user.raw go.raw $SHARE
        "#;
    let run = succeed(&[], &[PEOPLE, script].concat());
    let trace = Trace::read_whole(&run.file("user.raw"));
    assert!(!trace.pids_of("ls").is_empty());
    Trace::read_whole(&run.file("go.raw"));
}
