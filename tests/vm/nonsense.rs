// SPDX-License-Identifier: BSD-3-Clause
//! Invalid requests are refused, from any user, in any order and at any moment: the kernel stays intact, which every
//! guest's end tests, and later users get everything that the recorder promises. And all parts around the recorder's
//! core work at once.

use postprocess::event::number::{PROGRAM_MARK, RX_FLOW, TX_FLOW};

use crate::guest;
use crate::trace::Recording;

const STOCK: [&str; 2] = ["--kernel", "stock"];

/// Root, a user who may trace and one who may not, make requests at once; then a trace is recorded.
fn nonsense(options: &[&str], seconds: u32) {
    let seed = guest::seed();
    let run = guest::succeed(
        &[options, &["--cpus", "2"]].concat(),
        &format!(
            r#"
            cd /tmp
            cp $BIN/nonsense .
            chmod 755 .
            chgrp 4242 /dev/kutrace
            able='setpriv --reuid 1000 --regid 1000 --groups 4242 --inh-caps=+cap_38 --ambient-caps=+cap_38'
            ./nonsense {seconds} {seed} >root & one=$!
            $able ./nonsense {seconds} {seed}1 >able & another=$!
            setpriv --reuid 1001 --regid 1001 --clear-groups ./nonsense {seconds} {seed}2 >anybody & third=$!
            wait $one; wait $another; wait $third
            cat root able anybody
            # One of them may have started a trace last.
            kutrace_control reset --force
            kutrace_control go
            ls / >ls
            kutrace_control stop $SHARE/t.raw
            rmmod kutrace
            "#
        ),
    );
    println!("{}", run.out);
    // Of each program: how much succeeded, and how much was refused.
    let said: Vec<u64> =
        run.out.split_whitespace().map(|word| word.split_once('=').unwrap().1.parse().unwrap()).collect();
    assert!(said.len() == 6 && said.iter().all(|&count| count > 0), "{}", run.out);
    assert!(Recording::read_whole(&run.file("t.raw")).events.events.len() > 100);
}

#[test]
fn after_nonsense_the_next_trace_is_whole() {
    nonsense(&[], guest::by_form(3, 60, 600));
}

#[test]
fn after_nonsense_the_next_trace_of_a_stock_kernel_is_whole() {
    nonsense(&STOCK, guest::by_form(3, 60, 600));
}

/// Under KASAN, lockdep and PROVE_RCU.
#[cfg(feature = "soak")]
#[test]
fn an_hour_of_nonsense_in_the_debug_kernel() {
    nonsense(&["--kernel", "debug", "--timeout", "9000"], 3600);
}

/// Packets, marks of programs, CPUs that go and come, snapshots, and a stream; then the module is unloaded.
fn all_parts(options: &[&str], more: &str, rounds: usize) {
    let run = guest::succeed(
        &[options, &["--cpus", "2"]].concat(),
        &format!(
            r#"
            cd /tmp
            cp $(dirname $(command -v kutrace_control))/libkutrace.so $BIN/programs $BIN/packets .
            export LD_LIBRARY_PATH=/tmp
            work() {{
                ./packets 20
                echo marked=$(./programs calls 1000)
                ./programs fork 5 >forked
            }}
            for round in $(seq {rounds}); do
                kutrace_control gowrap --packets all {more}
                work
                echo 0 >/sys/devices/system/cpu/cpu1/online
                kutrace_control snapshot s.raw
                echo 1 >/sys/devices/system/cpu/cpu1/online
                work
                kutrace_control stop $SHARE/t.raw
                kutrace_control record --stream --no-symbols -b 4M --packets all {more} -o stream.raw -- ./programs calls 1000 >streamed
            done
            rmmod kutrace
            "#
        ),
    );
    assert_eq!(run.out.lines().filter(|line| *line == "marked=2000").count(), 2 * rounds, "{}", run.out);
    let trace = Recording::read(&run.file("t.raw"));
    for number in [TX_FLOW, RX_FLOW, PROGRAM_MARK] {
        assert!(trace.of(number).count() >= 100, "{number:x}");
    }
}

#[test]
fn all_parts_work_at_once() {
    all_parts(&[], "", guest::by_form(1, 3, 20));
}

#[test]
fn all_parts_work_at_once_on_a_stock_kernel() {
    all_parts(&STOCK, "--tracepoint sched:sched_wakeup", guest::by_form(1, 3, 20));
}

/// Under KASAN, lockdep, PROVE_RCU and DEBUG_ATOMIC_SLEEP.
#[cfg(feature = "soak")]
#[test]
fn all_parts_work_at_once_in_the_debug_kernel() {
    all_parts(&["--kernel", "debug", "--timeout", "3600"], "", 10);
}
