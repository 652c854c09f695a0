// SPDX-License-Identifier: BSD-3-Clause
//! The flight recorder: after many laps round its memory it holds the newest of every CPU, and every name.

use std::collections::{HashMap, HashSet};

use postprocess::event::number::{MARK_D, PID_NAME, RUNNABLE, SYSCALL};

use crate::blocks::Blocks;
use crate::guest;
use crate::trace::Recording;

/// Blocks of 64 KiB in the pool of 2 MiB.
const BLOCKS: u64 = 32;
const LAPS: u64 = guest::by_form(2, 20, 100);
const GETPRIORITY: u32 = SYSCALL + 140;
/// The first argument of a getpriority that no other program uses.
const MAGIC: u32 = 0x5afe;

#[test]
fn after_many_laps_the_newest_is_there_and_every_name() {
    let script = format!(
        r#"
        insmod $KUTRACE_MODULE tracemb=2
        kutrace_control gowrap
        nice -n 10 stress-ng --quiet --fork 2 --switch 1 --fault 1 --timeout 0 &
        load=$!
        lap() {{ kutrace_control status | sed -n 's/.*(lap \([0-9]*\))/\1/p'; }}
        until [ 0$(lap) -gt $(({LAPS} + 1)) ]; do sleep 0.5; done
        perl -e 'syscall 140, {MAGIC}, 0; exec @ARGV' kutrace_control stop $SHARE/t.raw
        kill $load
        "#
    );
    let run = guest::succeed(&[guest::AT_ONCE, "--no-load", "--cpus", "2"], &script);
    let blocks = Blocks::read(&run.file("t.raw"));
    let taken: u64 = blocks.cpus.values().filter_map(|blocks| blocks.last()).map(|last| last.sequence + 1).sum();
    eprintln!("wrap: {taken} blocks taken, {} laps", taken / BLOCKS);
    assert!(taken >= LAPS * BLOCKS, "only {taken} blocks were taken");
    // A CPU may have left one block and not begun the next; everything else of the memory is used.
    assert!(blocks.header.blocks >= BLOCKS - 4, "{} blocks of {BLOCKS} are in the trace", blocks.header.blocks);

    // Whole: no CPU misses a block between its first and its last, and no event was lost.
    let trace = Recording::read_whole(&run.file("t.raw"));
    assert_eq!(trace.events.meta.flags & 0x40, 0x40);
    every_pid_has_a_name(&trace);
    ends_at_the_stop(&trace);
}

/// Every thread that is switched to, runs or is woken has its name and pid.
fn every_pid_has_a_name(trace: &Recording) {
    let named = |name: &str, pid: u32| {
        let suffix = format!(".{pid}");
        assert!(name.ends_with(&suffix) && name.len() > suffix.len(), "pid {pid} is named {name:?}");
    };
    trace.switches().filter(|e| e.arg != 0).for_each(|e| named(trace.event_name(e), e.arg));
    trace.of(RUNNABLE).for_each(|e| named(trace.event_name(e), e.arg));
    let users = trace.spans.spans.iter().filter(|s| s.is_own_code() && s.thread().is_some());
    users.filter_map(|s| Some((s, s.pid?))).for_each(|(s, pid)| named(trace.span_name(s), pid.number()));
}

/// The last that the program did which stopped the trace is in it, and the command to stop is its last call.
fn ends_at_the_stop(trace: &Recording) {
    let stopper = trace.of(GETPRIORITY).find(|e| e.arg == MAGIC).expect("the call right before the stop").pid;
    let calls = |number: u32| (SYSCALL..SYSCALL + 512).contains(&number);
    let last = trace.events.events.iter().rfind(|e| e.pid == stopper && calls(e.event())).unwrap();
    assert_eq!(trace.event_name(last), "ioctl", "{last:?}");
}

/// A block that names the thread of a pid does not speak for the next one with that pid, though the entry that named
/// that is overwritten.
#[test]
fn a_pid_that_comes_again_has_the_name_of_its_thread() {
    let run = guest::succeed(
        // No interrupt of a device comes to CPU 3: those of the share alone would fill its block.
        &["--no-load", "--append", "irqaffinity=0-2"],
        r#"
        cp $BIN/namesakes /tmp
        insmod $KUTRACE_MODULE tracemb=1
        echo 400 >/proc/sys/kernel/pid_max
        taskset -pc 0-2 $$
        kutrace_control gowrap
        # So few that CPU 3 still has its first block, which those of 900 would not fill either; and then so much that the
        # others have nothing of their time.
        /tmp/namesakes 700
        for cpu in 0 1 2; do taskset -c $cpu dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null & done
        wait
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let (mut names, mut seen) = (HashMap::new(), HashSet::new());
    let (mut marks, mut again) = (0, 0);
    // The time from which all CPUs have events: threads that ran before it are named only by the CPU that begins last.
    let begins =
        (0..3).filter_map(|cpu| trace.events.events.iter().find(|e| e.cpu.number() == cpu).map(|e| e.ts)).max();
    for e in &trace.events.events {
        match e.event() {
            PID_NAME => {
                names.insert(e.arg, trace.event_name(e));
            }
            MARK_D => {
                assert_eq!(
                    names.get(&e.pid.number()).copied(),
                    Some(&*format!("n{}", e.arg)),
                    "pid {} on CPU {}",
                    e.pid,
                    e.cpu
                );
                marks += 1;
                again += usize::from(!seen.insert(e.pid) && Some(e.ts) < begins);
            }
            _ => {}
        }
    }
    eprintln!("wrap: {marks} marks, {again} by pids that came again and whose forks are overwritten");
    assert!(again >= 20, "{marks} marks, {again} by pids that came again and whose forks are overwritten");
}
