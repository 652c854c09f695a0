// SPDX-License-Identifier: BSD-3-Clause
//! Threads held up against their will: quotas, freezers, stops, memory, the disk; and work on their way out.

use std::collections::{BTreeMap, BTreeSet};

use postprocess::event::fact::Fact;
use postprocess::event::number::{EXIT_WORK, EXIT_WORK_RETURN, OPEN_CALL, SYSCALL, THROTTLE, UNTHROTTLE, WAIT};
use postprocess::event::what::What;
use postprocess::event::work::Work;
use postprocess::event::Event;
use postprocess::id::Pid;
use postprocess::span::Span;

use crate::guest;
use crate::trace::Recording;

const WRITE: i32 = SYSCALL as i32 + 1;

/// The pids of a program's threads, and how many events of a number and name they have.
fn count(trace: &Recording, program: &str, number: u32, name: &str) -> usize {
    let pids = trace.pids_of(program);
    trace.of(number).filter(|e| pids.contains(&e.pid) && trace.event_name(e) == name).count()
}

/// The recorded groups of a program's threads.
fn groups(trace: &Recording, program: &str) -> BTreeSet<u32> {
    let pids = trace.pids_of(program);
    let group = |e: &Event| match e.what {
        What::Fact(Fact::Group(group)) if group != 0 && pids.contains(&Pid::new(e.arg)) => Some(group),
        _ => None,
    };
    trace.events.events.iter().filter_map(group).collect()
}

/// Time for which each group was throttled, in units of 10 ns, all CPUs together; and the number of times.
fn throttled(trace: &Recording) -> BTreeMap<u32, (i64, usize)> {
    let mut since = BTreeMap::new();
    let mut sums: BTreeMap<u32, (i64, usize)> = BTreeMap::new();
    for e in &trace.events.events {
        match e.event() {
            THROTTLE => assert_eq!(since.insert((e.arg, e.ret), e.ts.0), None, "throttled twice at {}", e.ts),
            UNTHROTTLE => {
                let begin = since.remove(&(e.arg, e.ret)).unwrap_or_else(|| panic!("never throttled at {}", e.ts));
                let sum = sums.entry(e.arg).or_default();
                *sum = (sum.0 + e.ts.0 - begin, sum.1 + 1);
            }
            _ => {}
        }
    }
    sums
}

#[test]
fn a_quota_is_told_for_its_group_and_those_below() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/held .
        mkdir -p /run/groups
        mount -t cgroup2 none /run/groups
        cd /run/groups
        echo +cpu >cgroup.subtree_control
        mkdir outer
        echo +cpu >outer/cgroup.subtree_control
        mkdir outer/inner
        echo "20000 100000" >outer/cpu.max
        kutrace_control go
        /tmp/held spin 2 &
        sleep 0.2
        echo $! >outer/inner/cgroup.procs
        # Some while the outer group is held up.
        for n in 1 2 3 4 5 6 7 8 9; do
            mkdir outer/late$n
            sleep 0.05
        done
        wait
        sleep 0.3
        kutrace_control stop $SHARE/t.raw
        grep throttled_usec outer/cpu.stat | sed 's/ /=/'
        grep nr_throttled outer/cpu.stat | sed 's/ /=/'
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let own = groups(&trace, "spin");
    assert_eq!(own.len(), 1, "{own:?}");
    let inner = *own.first().unwrap();
    let sums = throttled(&trace);
    eprintln!("{sums:?}, in group {inner}");
    let (time, times) = sums[&inner];
    let alike = sums.values().filter(|&&(other, n)| n == times && (other - time).abs() < time / 100).count();
    // The first of those made late may be there before the outer one is held up for the first time.
    assert!(alike >= 2, "the outer and the inner group: {sums:?}");
    assert!(sums.values().filter(|&&(_, n)| n < times).count() >= 3, "those made late: {sums:?}");
    assert!(sums.values().all(|&(other, n)| n <= times && other <= time + time / 100), "{sums:?}");
    // A thread that is moved into the group is recorded in it at once, in the call that moves it.
    let moved = trace.events.events.iter().find(|e| e.what == What::Fact(Fact::Group(inner))).unwrap();
    let in_write = |s: &Span| s.event() == WRITE && (s.start..=s.start + s.dur).contains(&moved.ts);
    assert!(trace.spans.spans.iter().any(in_write), "{moved:?}");
    let counted = run.number("throttled_usec") as i64 * 100;
    assert!((time - counted).abs() <= counted / 20, "the kernel counted {counted}, the trace {time}");
    assert!(times as u64 >= run.number("nr_throttled") && times >= 5, "{times}");
}

#[test]
fn threads_are_in_the_control_groups_that_they_were_put_into() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/held .
        mkdir -p /run/groups
        mount -t cgroup2 none /run/groups
        cd /run/groups
        mkdir -p system.slice/web.service batch short removed
        (echo $BASHPID >system.slice/web.service/cgroup.procs; exec /tmp/held spin 30) & web=$!
        kutrace_control go
        # Begins and ends while it is recorded, made by a recorded one.
        (echo $BASHPID >batch/cgroup.procs; /tmp/held spin 0.3; sleep 30) & batch=$!
        # All of it ends, and of the last the group is removed, too.
        (echo $BASHPID >short/cgroup.procs; /tmp/held spin 0.2)
        (echo $BASHPID >removed/cgroup.procs; /tmp/held spin 0.1)
        await rmdir removed
        kutrace_control stop $SHARE/t.raw
        echo web=$web
        echo batch=$batch
        kutrace_control summary --by cgroup $SHARE/t.raw >$SHARE/summary
        kill $web $batch
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let meta = &trace.spans.meta;
    let of = |pid: u64| meta.cgroup_of(Pid::new(pid as u32));
    assert_eq!(of(run.number("web")), Some("/system.slice/web.service"));
    assert_eq!(of(run.number("batch")), Some("/batch"));
    let groups = trace.pids_of("spin").into_iter().map(|pid| meta.cgroup_of(pid).unwrap().to_owned());
    let (removed, spinning): (BTreeSet<_>, BTreeSet<_>) = groups.partition(|group| group.starts_with("removed."));
    assert_eq!(spinning, BTreeSet::from(["/system.slice/web.service", "/batch", "/short"].map(String::from)));
    assert_eq!(removed.len(), 1);
    let text = std::fs::read_to_string(run.file("summary")).unwrap();
    assert!(text.lines().any(|line| line.ends_with("  web.service")), "{text}");
}

#[test]
fn frozen_and_stopped_threads_say_so() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/held .
        mkdir -p /run/groups /run/freezer
        mount -t cgroup2 none /run/groups
        mkdir /run/groups/ice
        mount -t cgroup -o freezer none /run/freezer
        mkdir /run/freezer/old
        ./held stop 0.5 & stopped=$!
        until grep -q "State:.*T" /proc/$stopped/status; do sleep 0.05; done
        kutrace_control go
        kill -CONT $stopped
        (echo $BASHPID >/run/groups/ice/cgroup.procs; exec ./held spin 1) & frozen=$!
        sleep 0.3
        echo 1 >/run/groups/ice/cgroup.freeze
        until grep -q "frozen 1" /run/groups/ice/cgroup.events; do sleep 0.02; done
        sleep 0.1
        echo 0 >/run/groups/ice/cgroup.freeze
        wait $frozen
        cp held /tmp/late
        (exec -a late ./held stop 0.1) & late=$!
        until grep -q "State:.*T" /proc/$late/status; do sleep 0.05; done
        kill -CONT $late
        wait $late $stopped
        ./held signals 1 &
        bash -c 'echo $$ >/run/freezer/old/tasks; exec ./held spin 1' & old=$!
        sleep 0.3
        echo FROZEN >/run/freezer/old/freezer.state
        until grep -q FROZEN /run/freezer/old/freezer.state; do sleep 0.02; done
        echo THAWED >/run/freezer/old/freezer.state
        wait $old
        kutrace_control stop $SHARE/t.raw
        echo stopped=$stopped
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    assert_eq!(count(&trace, "spin", WAIT, "wait_frozen"), 2, "one in each kind of freezer");
    assert_eq!(count(&trace, "stop", WAIT, "wait_stopped"), 1, "the one that was stopped while traced");

    // It had returned from kill() before the trace began.
    let stopped = run.number("stopped") as u32;
    let inside: Vec<&Event> = trace.of(OPEN_CALL).filter(|e| e.arg == stopped).collect();
    assert!(inside.is_empty(), "{inside:?}");
}

#[test]
fn memory_and_the_disk_hold_threads_up() {
    let run = guest::succeed(
        &["--cpus", "2", "--mem", "1024"],
        r#"
        cd /tmp
        cp $BIN/held .
        mkdir -p /run/groups /tmp/disk
        mount -t cgroup2 none /run/groups
        echo +memory >/run/groups/cgroup.subtree_control
        mkdir /run/groups/small
        echo 8M >/run/groups/small/memory.high
        truncate -s 200M image
        mkfs.ext4 -q image
        mount -o loop image /tmp/disk
        echo 4000000 >/proc/sys/vm/dirty_bytes
        echo 1000000 >/proc/sys/vm/dirty_background_bytes
        for disk in /sys/class/bdi/7:*; do
            echo 1 >$disk/strict_limit
            echo 1 >$disk/max_ratio
        done
        kutrace_control go
        (echo $BASHPID >/run/groups/small/cgroup.procs; exec ./held eat 12)
        ./held write 10 disk/file
        kutrace_control stop $SHARE/t.raw
        umount /tmp/disk
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    assert!(count(&trace, "eat", WAIT, "wait_memory_limit") > 0);
    assert!(count(&trace, "write", WAIT, "wait_dirty_pages") > 0);
}

#[test]
fn work_on_the_way_out_is_told_and_ends() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/held .
        kutrace_control go
        ./held signals 500
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let pids = trace.pids_of("signals");
    let of = |number, bit: u32| {
        let own = trace.of(number).filter(|e| pids.contains(&e.pid));
        own.filter(|e| e.arg & bit != 0).count()
    };
    for (bit, name) in [(1, "signals"), (2, "closed files")] {
        let (begun, ended) = (of(EXIT_WORK, bit), of(EXIT_WORK_RETURN, bit));
        assert!((500..600).contains(&begun) && begun == ended, "{name}: {begun} {ended}");
    }
}

#[test]
fn a_program_that_the_kernel_starts_is_in_no_call_before() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/held .
        # The kernel starts it in the root that it booted with, below which ours is.
        printf '#!/bin/busybox sh\nexec /bin/busybox chroot /root /tmp/held spin 0.2\n' >helper
        chmod 755 helper
        echo /root/tmp/helper >/proc/sys/kernel/modprobe
        kutrace_control go
        # Each returns when its helper has ended.
        perl -e 'for (1 .. 5) { socket(S, 9, 1, 0) }'
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let helpers = trace.pids_of("spin");
    assert!(helpers.len() >= 2, "no helper was started");
    let inside: Vec<_> = trace.of(OPEN_CALL).filter(|e| helpers.contains(&Pid::new(e.arg))).collect();
    assert!(inside.iter().all(|e| e.what != What::Fact(Fact::OpenCall(Work::Syscall(0)))), "{inside:?}");
}
