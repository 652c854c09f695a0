// SPDX-License-Identifier: BSD-3-Clause
//! A trace harms neither the programs that mark, nor the machine, nor a user who tries a forbidden act.

use kutrace_format::abi::command::{IOCTL_ACQUIRE, IOCTL_FORGET};
use kutrace_format::abi::programs::{IOCTL_QUOTA, IOCTL_TAKEN};
use postprocess::event::number::{MARK_A, MARK_D, PROGRAM_MARK};

use crate::guest;
use crate::trace::Recording;

/// `held`: a program that marks, and has marked once; `let_go` lets it go on to its end.
const WORDS: &str = r#"
    cd /tmp
    cp $(dirname $(command -v kutrace_control))/libkutrace.so .
    export LD_LIBRARY_PATH=/tmp
    chmod 755 .
    cp $BIN/victim $BIN/intrude $BIN/never $BIN/filtered $BIN/api .
    held() {
        rm -f go began; mkfifo go
        ./victim $1 <go >began & victim=$!
        exec 3>go
        until grep -q began began; do sleep 0.01; done
    }
    let_go() { echo >&3; exec 3>&-; wait $victim; cat began; }
"#;

const STOCK: [&str; 2] = ["--kernel", "stock"];

/// Number of marks of each of these names.
fn marks(trace: &Recording, name: &str) -> usize {
    trace.of(PROGRAM_MARK).filter(|e| trace.event_name(e).starts_with(name)).count()
}

/// Root and an ordinary user with the capability to trace get copies of programs' memory, and nothing else. A program
/// that got nothing is reported, too.
#[test]
fn the_memory_of_a_program_is_nobody_else_s_to_change() {
    let run = guest::succeed(
        &STOCK,
        &format!(
            "{WORDS}
            chgrp 4242 /dev/kutrace
            able='setpriv --reuid 1000 --regid 1000 --groups 4242 --inh-caps=+cap_38 --ambient-caps=+cap_38'
            kutrace_control go --marks-memory 8K,8K
            held
            ./victim </dev/null >refused
            $able ./intrude
            ./intrude
            let_go
            ./victim </dev/null >refused
            kutrace_control stop $SHARE/t.raw || [ $? = 3 ]
            # The page of all programs is as it was.
            kutrace_control go
            ./victim </dev/null
            kutrace_control stop $SHARE/after.raw"
        ),
    );
    assert!(!run.out.contains("could "), "{}", run.out);
    assert_eq!(run.out.matches("programs=1\n").count(), 2, "{}", run.out);
    assert_eq!(run.out.matches("others=1\n").count(), 2, "{}", run.out);
    // Root alone may look at the memory of all processes.
    assert_eq!(run.out.matches("seen\n").count(), 1, "{}", run.out);
    assert_eq!(run.out.matches("marked=5\n").count(), 2, "{}", run.out);
    let trace = Recording::read(&run.file("t.raw"));
    assert_eq!((marks(&trace, "victim"), marks(&trace, "a_name")), (1, 4));
    assert_eq!(marks(&Recording::read_whole(&run.file("after.raw")), "a_name"), 4);
}

/// As in a sandbox. The memory requested in it does not belong to a file.
#[test]
fn a_limit_on_the_size_of_files_ends_no_program_that_marks() {
    let run = guest::succeed(
        &STOCK,
        &format!(
            "{WORDS}
            kutrace_control go
            (ulimit -f 0; ./victim 100000 </dev/null | cat)
            (ulimit -f 8; ./victim 100000 </dev/null | cat)
            kutrace_control stop $SHARE/t.raw"
        ),
    );
    assert_eq!(run.out.matches("marked=100005\n").count(), 2, "{}", run.out);
    let trace = Recording::read_whole(&run.file("t.raw"));
    assert_eq!((marks(&trace, "victim"), marks(&trace, "a_name"), marks(&trace, "more")), (2, 8, 200_000));
}

/// The kernel has no call 1023, and the recorder adds none; its device takes what else would be such a call.
#[test]
fn on_a_stock_kernel_no_call_answers_what_a_filter_denied() {
    let run = guest::succeed(
        &STOCK,
        &format!(
            "{WORDS}
            said() {{ ./filtered; ./filtered trap; perl -e 'print syscall(1023, 7, {MARK_D} << 32 | 4712), \" \", $! + 0, \"\\n\"'; }}
            said >off
            kutrace_control go
            said
            said | cmp - off
            kutrace_control mark mine
            kutrace_control stop $SHARE/t.raw"
        ),
    );
    let (eperm, enosys) = (1, 38);
    assert_eq!(run.out, format!("-1 {eperm} 0\n-1 13 1023\n-1 {enosys}\n"));
    let trace = Recording::read_whole(&run.file("t.raw"));
    assert_eq!(trace.of(MARK_D).count(), 0);
    assert_eq!(trace.of(MARK_A).map(|e| trace.event_name(e)).collect::<Vec<_>>(), ["mark_a=mine"]);
}

/// Each of these waits for memory that its user keeps from coming. Requests of others are served all the same.
#[test]
fn memory_that_never_comes_keeps_nobody_else_waiting() {
    let run = guest::succeed(
        &STOCK,
        &format!(
            "{WORDS}
            kutrace_control go
            held
            for what in write read grants; do
                ./never $what & never=$!
                until grep -q handle_userfault /proc/$never/stack; do sleep 0.01; done
                timeout 100 kutrace_control status >status
                timeout 100 ./victim </dev/null
                kill -9 $never
                wait $never || true
            done
            ./never grants & never=$!
            until grep -q handle_userfault /proc/$never/stack; do sleep 0.01; done
            timeout 100 kutrace_control stop $SHARE/t.raw
            timeout 100 kutrace_control go
            timeout 100 kutrace_control stop again.raw
            # Closing is not kept waiting either.
            kill -9 $never
            wait $never || true
            let_go"
        ),
    );
    assert_eq!(run.out.matches("marked=5\n").count(), 3, "{}", run.out);
    assert_eq!(marks(&Recording::read_whole(&run.file("t.raw")), "victim"), 4);
}

/// On CPU 1 a program waits in a page fault, whose end the kernel is requested to report. The CPU goes while the trace
/// ends, between the last probe and the end of that.
#[test]
fn a_cpu_that_goes_while_a_trace_ends_leaves_nothing_behind() {
    let run = guest::succeed(
        &["--kernel", "stock", "--cpus", "2", "--beside"],
        &format!(
            "{WORDS}
            # Any program that returns from the kernel there is notified of that.
            for task in /proc/[0-9]*; do taskset -acp 0 ${{task#/proc/}} >/dev/null 2>&1 || true; done
            insmod $KUTRACE_BESIDE/linger.ko
            cpu=/sys/devices/system/cpu/cpu1/online
            kutrace_control go
            ./never 1 & never=$!
            until grep -q handle_userfault /proc/$never/stack; do sleep 0.01; done
            probes=/sys/module/linger/parameters/probes
            echo 1 >$probes
            kutrace_control stop $SHARE/t.raw & stop=$!
            # That waits for probes of guests first.
            until grep -q guests_end /proc/$stop/stack; do sleep 0.01; done
            echo 1 >$probes
            echo 0 >$probes
            until grep -q tracepoints_disable /proc/$stop/stack; do sleep 0.01; done
            echo 0 >$cpu
            echo 0 >$probes
            wait $stop
            kill -9 $never; wait $never || true
            rmmod kutrace
            echo 1 >$cpu
            for n in 1 2 3; do taskset -c 1 ls / >/dev/null; done
            echo alive"
        ),
    );
    assert!(run.out.ends_with("alive\n"), "{}", run.out);
    Recording::read(&run.file("t.raw")).check();
}

/// Between the notice that the machine is going to sleep and the sleep itself.
#[test]
fn no_trace_begins_while_the_machine_goes_to_sleep() {
    guest::succeed(
        &["--kernel", "stock", "--beside"],
        &format!(
            "{WORDS}
            insmod $KUTRACE_BESIDE/linger.ko sleepless=1
            linger=/sys/module/linger/parameters
            kutrace_control gowrap
            (echo mem >/sys/power/state) 2>sleep & sleep=$!
            until [ $(<$linger/noticed) = Y ]; do sleep 0.01; done
            kutrace_control status >status
            grep -q '^state:  stopped' status
            ! kutrace_control gowrap
            echo 0 >$linger/sleepless
            ! wait $sleep
            kutrace_control gowrap
            kutrace_control stop $SHARE/t.raw"
        ),
    );
}

/// Memory for the holder's trace, and memory that an earlier kernel left, is not taken away by another.
#[test]
fn what_belongs_to_the_holder_is_refused_to_others() {
    let run = guest::succeed(
        &STOCK,
        &format!(
            r#"
            perl -e '
                open my $mine, "+<", "/dev/kutrace" or die;
                open my $other, "+<", "/dev/kutrace" or die;
                sub ask {{ ioctl($_[0], $_[1], pack "L32", (0) x 32) ? 0 : $! + 0 }}
                ask($mine, {IOCTL_ACQUIRE});
                my @commands = ({IOCTL_FORGET}, {IOCTL_QUOTA}, {IOCTL_TAKEN});
                print join(" ", map {{ my $device = $_; map {{ ask($device, $_) }} @commands }} $other, $mine), "\n";
            '
            "#
        ),
    );
    assert_eq!(run.out, "16 16 16 0 0 22\n");
}

/// The kernel's own page knows of hooks alone. Of the night: the distribution's kernel has both hooks and tracepoints.
#[cfg(feature = "night")]
#[test]
fn tracepoints_of_a_kernel_with_hooks_have_marks_too() {
    let run = guest::succeed(
        &["--kernel", "distribution", "--no-load"],
        &format!(
            "{WORDS}
            insmod $KUTRACE_MODULE source=tracepoints
            kutrace_control go
            ./victim </dev/null
            kutrace_control mark mine
            kutrace_control stop $SHARE/t.raw"
        ),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    assert_eq!((marks(&trace, "victim"), marks(&trace, "a_name"), trace.of(MARK_A).count()), (1, 4, 1));
}

/// A program that the recorder is mapped into is not left with a mapping of nothing.
#[test]
fn a_program_that_began_before_the_module_attaches_and_then_keeps_it() {
    for kernel in [&["--no-load"][..], &["--no-load", "--kernel", "stock"]] {
        let run = guest::succeed(
            kernel,
            &format!(
                r#"{WORDS}
                cp $BIN/later .
                coproc later {{ ./later; }}
                order() {{ echo $1 >&${{later[1]}}; read answer <&${{later[0]}}; echo $1 $answer; }}
                order memory
                insmod $KUTRACE_MODULE
                kutrace_control go
                order memory
                order attach
                order memory
                kutrace_control stop $SHARE/t.raw
                ! rmmod kutrace 2>said
                cat said
                pid=$later_PID
                eval "exec ${{later[1]}}>&-"
                wait $pid || true
                rmmod kutrace"#
            ),
        );
        assert!(run.out.starts_with("memory 0\nmemory 0\nattach 1\nmemory 1\n"), "{}", run.out);
        assert!(run.out.contains("in use") && run.out.lines().count() == 5, "{}", run.out);
        let trace = Recording::read_whole(&run.file("t.raw"));
        assert_eq!(marks(&trace, "later"), 1);
    }
}

/// The kernel may be configured so that arithmetic panics where a number is too large.
#[test]
fn nothing_in_the_module_panics() {
    let run = guest::succeed(&[], "nm -u $KUTRACE_MODULE | grep -c panicking || true");
    assert_eq!(run.out.trim(), "0");
}
