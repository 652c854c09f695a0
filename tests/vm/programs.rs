// SPDX-License-Identifier: BSD-3-Clause
//! What programs record into memory of their own: all of it is in the trace, where it happened, whatever became of the
//! program; and nothing else is.

use std::collections::BTreeSet;

use postprocess::event::number::{PROGRAM_BEGIN, PROGRAM_MARK, PROGRAM_VALUE, SYSCALL, SYSCALL_RETURN};
use postprocess::event::Event;

use crate::guest;
use crate::trace::Recording;

/// The number of `getppid`.
const GETPPID: u32 = 110;

/// Builds the program that records.
const BUILD: &str = "
    cd /tmp
    TOOLS=$(dirname $(command -v kutrace_control))
    cp $TOOLS/libkutrace.so .
    export LD_LIBRARY_PATH=/tmp
    gcc -O2 -Wall -Werror -pthread -I$VM/../../kutrace-control/kutrace/include $VM/programs.c -L. -lkutrace -o programs
    ";

/// The marks of this name.
fn marks<'a>(trace: &'a Recording, name: &'a str) -> impl Iterator<Item = &'a Event> {
    trace.of(PROGRAM_MARK).filter(move |e| trace.event_name(e) == name)
}

#[test]
fn what_a_program_records_lies_between_the_kernel_s_entries_around_it() {
    for options in [&[][..], &["--kernel", "stock"]] {
        let run = guest::succeed(
            options,
            &format!(
                "{BUILD}
                kutrace_control go
                echo calls=$(setpriv --reuid 65534 --regid 65534 --clear-groups ./programs calls 100000)
                kutrace_control stop $SHARE/t.raw
                ./programs calls 10
                rmmod kutrace"
            ),
        );
        assert_eq!(run.number("calls"), 200_000);
        let trace = Recording::read_whole(&run.file("t.raw"));
        let pid = marks(&trace, "before").next().unwrap().pid;
        let order: Vec<u8> = (trace.events.events.iter())
            .filter(|e| e.pid == pid)
            .filter_map(|e| match e.event() {
                PROGRAM_MARK if trace.event_name(e) == "before" => Some(b'b'),
                PROGRAM_MARK if trace.event_name(e) == "after" => Some(b'a'),
                event if event == SYSCALL + GETPPID => Some(b'c'),
                event if event == SYSCALL_RETURN + GETPPID => None,
                _ => None,
            })
            .collect();
        assert_eq!(order.len(), 300_000);
        assert!(order.chunks(3).all(|three| three == b"bca"));
        let part = |name: &str| {
            let mut found =
                trace.spans.spans.iter().filter(|s| s.event() == PROGRAM_BEGIN as i32 && trace.span_name(s) == name);
            let part = found.next().unwrap();
            assert!(found.next().is_none() && part.thread() == Some(pid));
            (part.start, part.start + part.dur)
        };
        let (all, inner) = (part("all"), part("loop"));
        assert!(all.0 <= inner.0 && inner.0 < inner.1 && inner.1 <= all.1);
        let total = trace.of(PROGRAM_VALUE).next().unwrap();
        assert_eq!((trace.event_name(total), total.arg, total.ret), ("total=-5000000000", 0xd5fa_0e00, -2));
    }
}

#[test]
fn nothing_that_was_recorded_is_lost_with_a_killed_program() {
    let run = guest::succeed(
        &[],
        &format!(
            "{BUILD}
            for n in 1 2 3 4 5 6; do
                truncate -s 4096 counts
                kutrace_control go
                ./programs kill 1<>counts &
                sleep 0.0$n
                kill -9 $!
                wait $! || true
                # In the middle of whatever it did: the trace has what it had published.
                kutrace_control stop $SHARE/$n.raw || [ $? = 3 ]
                od -An -v -t u8 -w8 counts | awk -v n=$n 'NR==1 {{ print \"main\" n \"=\" $1 }} NR==9 {{ print \"other\" n \"=\" $1 }}'
                rm counts
            done"
        ),
    );
    let mut seen = 0;
    for n in 1..=6 {
        let trace = Recording::read(&run.file(&format!("{n}.raw")));
        let threads: BTreeSet<_> = trace.of(PROGRAM_VALUE).map(|e| e.pid).collect();
        let mut counts: Vec<u64> = threads
            .iter()
            .map(|pid| {
                let values = trace.of(PROGRAM_VALUE).filter(|e| e.pid == *pid);
                let values: Vec<u64> = values.map(|e| u64::from(e.arg)).collect();
                assert!(values.iter().copied().eq(0..values.len() as u64), "{n}: values of {pid:?} are missing");
                values.len() as u64
            })
            .collect();
        counts.sort();
        let mut said = [run.number(&format!("main{n}")), run.number(&format!("other{n}"))];
        said.sort();
        let recorded = counts.iter().rev().zip(said.iter().rev());
        // At most the one whose call had not returned is more than the program counted.
        assert!(recorded.clone().all(|(found, said)| (*said..=said + 1).contains(found)), "{n}: {counts:?}, {said:?}");
        seen += said.iter().sum::<u64>();
    }
    assert!(seen > 1000, "{seen}");
}

#[test]
fn forks_threads_and_a_hostile_program_leave_the_others_whole() {
    let run = guest::succeed(
        &[],
        &format!(
            "{BUILD}
            kutrace_control go
            ./programs scribble
            echo forks=$(./programs fork 50)
            echo threads=$(./programs threads 200)
            kutrace_control stop $SHARE/t.raw
            kutrace_control gowrap
            echo wrapped=$(./programs calls 400000)
            kutrace_control snapshot $SHARE/snapshot.raw
            kutrace_control stop $SHARE/wrap.raw"
        ),
    );
    assert_eq!((run.number("forks"), run.number("threads"), run.number("wrapped")), (50, 200, 800_000));
    let trace = Recording::read(&run.file("t.raw"));
    let quality = &trace.events.meta.quality;
    assert!(quality.iter().any(|fact| fact.contains("words that no library writes")), "{quality:?}");
    assert_eq!(marks(&trace, "scribbler").count(), 1);
    let children: BTreeSet<_> = marks(&trace, "child").map(|e| e.pid).collect();
    let threads: BTreeSet<_> = marks(&trace, "thread").map(|e| e.pid).collect();
    assert_eq!((children.len(), threads.len(), marks(&trace, "parent").count()), (50, 200, 1));
    for name in ["snapshot", "wrap"] {
        let trace = Recording::read(&run.file(&format!("{name}.raw")));
        assert!(marks(&trace, "before").count() > 100_000, "{name}");
        trace.check();
    }
}
