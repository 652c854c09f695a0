// SPDX-License-Identifier: BSD-3-Clause
//! Rights to control the recorder.

use kutrace_format::abi::command::{
    IOCTL_ACQUIRE, IOCTL_FLUSH, IOCTL_FREE, IOCTL_FULL, IOCTL_PORTS, IOCTL_RESET, IOCTL_START, IOCTL_TRACEPOINTS,
    PORTS_MAX, RECORDS_MAX, STREAM, WRAP,
};

use super::succeed;
use crate::trace::Recording;

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
        # The checkout may be in a place that other users cannot read.
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

        # CAP_PERFMON, as from the service manager.
        able="$member --inh-caps=+cap_38 --ambient-caps=+cap_38"
        # Rights that perf gives to all users, or to none, are checked with perf alone.
        for paranoid in -1 0 1 3; do
            echo $paranoid >/proc/sys/kernel/perf_event_paranoid
            fails 1 "$lacking" $user kutrace_control go
            fails 1 "$lacking" $user kutrace_control stop
            $able kutrace_control status | grep -q '^state:  empty'
        done
        chmod 660 /dev/kutrace
        cd /tmp/user
        $able kutrace_control record -o user.raw -- ls /usr >/dev/null
        $able kutrace_control go
        $able kutrace_control stop go.raw
        test "$(stat -c %u user.raw)" = 1000
        cp user.raw go.raw $SHARE
        "#;
    let run = succeed(&["--cpus", "2"], &[PEOPLE, script].concat());
    let trace = Recording::read_whole(&run.file("user.raw"));
    assert!(!trace.pids_of("ls").is_empty());
    Recording::read_whole_alone(&run.file("go.raw"));
}

#[test]
fn a_member_of_the_group_needs_no_root_where_the_program_has_the_capability() {
    let script = r#"
        mkdir -m 755 /tmp/bin
        cp $(command -v kutrace_control) /tmp/bin
        PATH=/tmp/bin:$PATH
        setcap cap_perfmon+ep $(command -v kutrace_control)
        # As 60-kutrace.rules does.
        chgrp 4242 /dev/kutrace
        mkdir /tmp/user
        chown 1000:1000 /tmp/user
        cd /tmp/user
        fails 1 "$closed" $user kutrace_control go

        $member kutrace_control check | grep -q '^permission ok'
        $member kutrace_control record -b 32M -o record.raw -- grep CapEff /proc/self/status >capabilities
        grep -q '^CapEff:[[:space:]]*0*$' capabilities
        $member kutrace_control gowrap
        $member kutrace_control mark mine
        $member kutrace_control status | grep -q '^state:  tracing'
        $member kutrace_control snapshot snapshot.raw
        $member kutrace_control stop stop.raw
        fails 1 'bin/stop.raw: Permission denied' $member kutrace_control stop /tmp/bin/stop.raw
        $member kutrace_control reset
        printf 'go\nwait 50ms\nstop words\n' | $member kutrace_control
        test "$(stat -c %u *.raw words.trace | uniq)" = 1000
        cp record.raw snapshot.raw stop.raw words.trace $SHARE
        "#;
    let run = succeed(&["--cpus", "2"], &[PEOPLE, script].concat());
    for name in ["record.raw", "snapshot.raw", "stop.raw", "words.trace"] {
        Recording::read_whole_alone(&run.file(name));
    }
    assert!(!Recording::read_alone(&run.file("record.raw")).pids_of("grep").is_empty());
}

#[test]
fn memory_has_a_limit_and_goes_back_with_whoever_asked() {
    succeed(
        &["--no-load", "--cpus", "2"],
        r#"
        insmod $KUTRACE_MODULE tracemb=4 maxmb=16
        chmod 666 /dev/kutrace
        as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +perfmon --ambient-caps +perfmon "$@"; }
        mkdir -m 777 /tmp/user; cd /tmp/user
        pool() { awk '/^VmallocUsed/ { print int($2 / 1024) }' /proc/meminfo; }
        small=$(pool)
        fails 1 'more memory than you are allowed' as_user kutrace_control record -b 17M -o no.raw -- true
        as_user kutrace_control record -b 16M -o yes.raw -- true
        test "$(megabytes)" = 4.0
        as_user kutrace_control record -b 16M -o killed.raw -- sleep 1000 & becomes tracing
        test "$(megabytes)" = 16.0
        test $(($(pool) - small)) -ge 11
        pkill -KILL -x kutrace_control
        becomes empty
        test "$(megabytes)" = 4.0
        gone() { test $(($(pool) - small)) -le 1; }
        await gone
        kutrace_control record -b 17M -o root.raw -- true
        test "$(megabytes)" = 4.0

        # Killed while it writes.
        kutrace_control record -b 16M -o - -- true | sleep 1000 & becomes stopped
        test "$(megabytes)" = 16.0
        pkill -KILL -x kutrace_control
        becomes empty
        test "$(megabytes)" = 4.0

        # What cannot be written stays, for another to write.
        mkdir full; mount -t tmpfs -o size=16k full full
        fails 1 'the trace is still in the recorder' kutrace_control record -b 16M -o full/t.raw -- true
        becomes stopped
        test "$(megabytes)" = 16.0
        kutrace_control stop late.raw
        checktrace late.raw
        kutrace_control reset
        test "$(megabytes)" = 4.0
        "#,
    );
}

/// Requests that kutrace_control never makes.
#[test]
fn the_device_refuses_what_is_not_the_caller_s_or_makes_no_sense() {
    let run = succeed(
        &["--cpus", "2"],
        &format!(
            r#"
            perl -e '
                open my $mine, "+<", "/dev/kutrace" or die;
                open my $other, "+<", "/dev/kutrace" or die;
                sub ask {{
                    my ($device, $what, @words) = @_;
                    return ioctl($device, $what, pack "L32", @words, (0) x 32) ? 0 : $! + 0;
                }}
                my $wrong = ask($mine, {IOCTL_RESET}, {WRAP} | {STREAM}, 0);
                my $ports = ask($mine, {IOCTL_PORTS}, {PORTS_MAX} + 1);
                my $tracepoints = ask($mine, {IOCTL_TRACEPOINTS}, {RECORDS_MAX} + 1);
                my @begun = (ask($mine, {IOCTL_ACQUIRE}), ask($mine, {IOCTL_RESET}, {STREAM}), ask($mine, {IOCTL_START}));
                my $note = defined syswrite($other, "note") ? 0 : $! + 0;
                my @others = map {{ ask($other, $_) }} {IOCTL_FULL}, {IOCTL_FREE}, {IOCTL_FLUSH};
                my $early = ask($mine, {IOCTL_FREE}, 1, 0);
                my $flush = ask($mine, {IOCTL_FLUSH}, 0xffffffff, 0xffffffff);
                my $full = pack "L32";
                ioctl $mine, {IOCTL_FULL}, $full or die;
                my ($count, @blocks) = unpack "L32", $full;
                my @freed = map {{ ask($mine, {IOCTL_FREE}, 1, $blocks[0]) }} 1, 2;
                my $nowhere = ask($mine, {IOCTL_FREE}, 1, 0xffffffff);
                print "said=$wrong $ports $tracepoints, @begun, $note @others, $early $flush @freed $nowhere\n";
                print "handed=$count\n";
            '
            "#
        ),
    );
    let said = run.out.lines().find_map(|line| line.strip_prefix("said="));
    assert_eq!(said, Some("22 22 22, 0 0 0, 16 16 16 16, 22 0 0 22 22"), "{}", run.err);
    assert!(run.number("handed") > 0);
}

#[test]
fn a_kernel_that_is_locked_down_shows_no_addresses() {
    succeed(
        &["--cpus", "2"],
        r#"
        grep -q securityfs /proc/mounts || mount -t securityfs none /sys/kernel/security
        echo integrity >/sys/kernel/security/lockdown
        kutrace_control record -o $SHARE/t.raw -- true
        kutrace_control gowrap
        echo confidentiality >/sys/kernel/security/lockdown
        fails 1 'this kernel is locked down' kutrace_control snapshot $SHARE/no.raw
        fails 1 'this kernel is locked down' kutrace_control stop $SHARE/no.raw
        fails 1 'this kernel is locked down' kutrace_control record -o $SHARE/no.raw -- true
        test ! -e $SHARE/no.raw
        "#,
    );
}
