// SPDX-License-Identifier: BSD-3-Clause
//! A kernel of Debian's, unmodified: the records of its tracepoints match the kernel's counters, and the module comes
//! and goes under load.

use std::env;

use kutrace_format::abi::event::{MONITOR_STORE, OFFLINE, ONLINE, PC_KERNEL, PC_USER};
use kutrace_format::capability::Capability;
use kutrace_format::x86::{trap, vector};
use postprocess::event::number::{EXIT, IPI, IRQ, IRQ_LAST, MONITOR_EXIT, MWAIT, RETURN_BIT, SCHED, TRAP};

use crate::audit::certifies;
use crate::blocks::Blocks;
use crate::guest;
use crate::lifetime::loads_and_unloads;
use crate::proof::{calls_by_number, own_counts, softirqs, totals, vectors, CALLS, SYSTEM};
use crate::trace::Recording;

/// The kernel: `KUTRACE_VM_KERNEL=stock=6.1`, or the usual one. Its CPUs take turns, so everything takes longer.
fn options(kernel: &str) -> [&str; 6] {
    ["--kernel", kernel, "--cpus", "2", "--timeout", "900"]
}

fn kernel() -> String {
    env::var(guest::KERNEL).ok().filter(|kernel| kernel.starts_with("stock")).unwrap_or("stock".to_owned())
}

const PAGE_FAULT: u32 = TRAP + trap::PAGE_FAULT;

/// Capabilities of a kernel of this version, where versions differ.
fn tells(version: (u64, u64), capability: Capability) -> bool {
    match capability {
        Capability::Senders => version >= (6, 4),
        Capability::Scheduler => version >= (7, 0),
        _ => panic!("{capability:?}"),
    }
}

#[test]
fn the_trace_has_what_a_stock_kernel_counted() {
    let run = guest::succeed(
        &options(&kernel()),
        r#"
        uname -r | tr .- '  ' | while read major minor _; do echo major=$major; echo minor=$minor; done
        cd /tmp
        export SHARE
        cp $BIN/proof .
        cat >load <<'LOAD'
        for n in $(seq 30); do echo l >/proc/sysrq-trigger; sleep 0.03; done &
        for n in $(seq 10); do cat /usr/bin/perl >/mnt/share/copy; done &
        stress-ng --quiet --switch 1 --fault 1 --fork 1 --timer 1 --timer-freq 2000 --sock 1 --membarrier 1 --timeout 1
        wait
LOAD
        dmesg --console-level 1
        kutrace_control check | grep 'ok .*stock: recorded by tracepoints'
        perl -e 'print "off=", syscall(1023, 10, 0), "\n"'
        kutrace_control go
        ./proof $SHARE bash load
        perl -e 'print "on=", syscall(1023, 10, 0), "\n"'
        kutrace_control stop $SHARE/t.raw
        rm $SHARE/copy
        "#,
    );
    let trace = Recording::read(&run.file("t.raw"));
    assert!(trace.events.meta.is_whole(), "{:?}", trace.events.meta);
    vectors(&run, &trace, &SYSTEM);
    softirqs(&run, &trace);
    totals(&run, &trace);
    own_counts(&run, &trace);
    every_interrupt_ends(&trace, 2);
    certifies(&run.file("t.raw"), &["timer interrupts", "softirqs RCU", "context switches", "new threads"]);
    let said = Blocks::read(&run.file("t.raw")).header.unseen;
    for seen in [Capability::Wakeups, Capability::IdleStates, Capability::Returns] {
        assert!(!said.has(seen), "{seen:?}");
    }
    for unseen in [Capability::Packets, Capability::KernelFaults] {
        assert!(said.has(unseen), "{unseen:?}");
    }
    let version = (run.number("major"), run.number("minor"));
    for (differs, number) in [(Capability::Senders, IPI), (Capability::Scheduler, SCHED)] {
        assert_eq!(!said.has(differs), tells(version, differs), "{version:?}: {differs:?}");
        assert_eq!(trace.of(number).next().is_some(), tells(version, differs), "{version:?}: {differs:?}");
    }
    assert!(run.out.contains("off=-1\n") && run.out.contains("on=-1\n"), "{}", run.out);
}

/// On each CPU, but for one that an end of the trace cuts.
fn every_interrupt_ends(trace: &Recording, cpus: usize) {
    for interrupt in IRQ..=IRQ_LAST {
        let [begins, ends] = [interrupt, interrupt | RETURN_BIT].map(|number| trace.of(number).count());
        assert!(begins.abs_diff(ends) <= cpus, "{interrupt:#x}: {begins} begin, {ends} end");
    }
}

#[test]
fn every_call_of_a_stock_kernel_is_there_by_its_number() {
    let run = guest::succeed(&options(&kernel()), CALLS);
    calls_by_number(&run, &Recording::read(&run.file("t.raw")));
}

#[test]
fn the_module_comes_and_goes_in_a_stock_kernel_under_load() {
    loads_and_unloads(guest::by_form(4, 10, 10), &options(&kernel()));
}

#[test]
fn what_a_stock_kernel_seldom_does_is_told() {
    const ROUNDS: usize = 100;
    let kernel = kernel();
    // Two CPUs that are woken at once are sent an interrupt by a mask.
    let options = ["--kernel", &kernel, "--cpus", "3", "--append", "idle=poll", "--timeout", "900"];
    let script = format!(
        r#"
        cd /tmp
        uname -r | tr .- '  ' | while read major minor _; do echo major=$major; echo minor=$minor; done
        cp $BIN/faults .
        dmesg --console-level 1
        kutrace_control go
        ./faults {ROUNDS}
        bash -c 'exit 37' || true
        perl -e '$0 = "renamed"; select undef, undef, undef, 0.1; 1 for 1 .. 1e5'
        for n in $(seq 10); do echo l >/proc/sysrq-trigger; sleep 0.03; done
        dd if=/dev/zero of=/dev/null bs=1M count=1
        stress-ng --quiet --membarrier 1 --timeout 1
        # Code that changes: every CPU is called, whichever programs run.
        for on in 1 0; do echo $on >/proc/sys/kernel/sched_schedstats; done
        echo 0 >/sys/devices/system/cpu/cpu1/online
        sleep 0.1
        echo 1 >/sys/devices/system/cpu/cpu1/online
        sleep 0.1
        kutrace_control stop $SHARE/t.raw
        "#
    );
    let run = guest::succeed(&options, &script);
    let trace = Recording::read(&run.file("t.raw"));
    let count = |number: u32| trace.of(number).count();
    let of_program = |program, number| {
        let pids = trace.pids_of(program);
        trace.of(number).filter(|e| pids.contains(&e.pid)).count()
    };
    for vector in [0, 1, 3, 6, 13, 16] {
        assert_eq!(of_program("faults", TRAP + vector), ROUNDS, "vector {vector}");
    }
    let [faults, ends] = [PAGE_FAULT, PAGE_FAULT | RETURN_BIT].map(|number| of_program("faults", number));
    assert!(faults >= ends && ends >= ROUNDS, "{faults} page faults, {ends} ends");
    // The kernel clears a buffer of 256 pages that the program has never touched.
    assert!(of_program("dd", PAGE_FAULT) > 256, "faults of the kernel's own");
    assert!(trace.of(EXIT).any(|e| e.arg == 37 << 8), "the end of a program, and its status");
    assert!(!trace.pids_of("renamed").is_empty(), "a new name");
    assert!(count(TRAP + trap::NMI) >= 10, "NMIs");
    assert_eq!((count(OFFLINE.into()), count(ONLINE.into())), (1, 1), "a CPU that goes and comes");
    assert!(trace.of(MWAIT).filter(|e| e.arg == 253).count() > 100, "idle that polls");
    assert!(count(MONITOR_EXIT) > 100, "its end");
    assert!(count(MONITOR_STORE.into()) > 100, "what wakes it");
    assert_eq!(count(PC_USER.into()) + count(PC_KERNEL.into()), count(IRQ + vector::LOCAL_TIMER), "samples of ticks");
    every_interrupt_ends(&trace, 3);
    assert!(count(IRQ + vector::CALL_FUNCTION) > 0, "a call of functions on several CPUs");
    if tells((run.number("major"), run.number("minor")), Capability::Senders) {
        for vector in [0xfb, 0xfc] {
            assert!(trace.of(IPI).any(|e| e.ret == vector), "a sender of vector {vector:#x}");
        }
    }
}
