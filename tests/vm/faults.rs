// SPDX-License-Identifier: BSD-3-Clause
//! Exceptions and 32-bit system calls of programs, against the programs' counts.

use std::collections::BTreeMap;

use postprocess::event::number::{RETURN_BIT, SYSCALL32, TRAP};

use crate::guest;
use crate::trace::Recording;

const ROUNDS: usize = 100;
/// Exceptions that faults.c raises: vector and name.
const FAULTS: [(u32, &str); 7] =
    [(0, "divide"), (1, "debug"), (3, "breakpoint"), (6, "opcode"), (13, "protection"), (14, "page"), (16, "x87")];
/// Calls that compat.c makes: number, name, how often.
const CALLS: [(u32, &str, usize); 5] =
    [(2, "fork", 1), (7, "waitpid", 1), (20, "getpid", 1001), (41, "dup", 1000), (45, "brk", 1000)];

/// Number of events of each number that the threads of a program have.
fn counts(trace: &Recording, program: &str) -> BTreeMap<u32, usize> {
    let pids = trace.pids_of(program);
    let mut counts = BTreeMap::new();
    for event in trace.events.events.iter().filter(|e| pids.contains(&e.pid)) {
        *counts.entry(event.event()).or_default() += 1;
    }
    counts
}

#[test]
fn every_exception_and_32_bit_call_of_a_program_is_recorded_and_returns() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            r#"
            cd /tmp
            cp $BIN/faults $BIN/compat .
            dmesg --console-level 1
            kutrace_control go
            ./faults {ROUNDS}
            ./compat
            kutrace_control stop $SHARE/t.raw
            "#
        ),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let faults = counts(&trace, "faults");
    for (vector, name) in FAULTS {
        assert_eq!(run.number(name), ROUNDS as u64, "{name}");
        let [called, returned] = [TRAP + vector, (TRAP + vector) | RETURN_BIT].map(|n| faults.get(&n).copied());
        assert_eq!(called, returned, "{name}");
        // A program takes other page faults too.
        let called = called.unwrap_or(0);
        assert!(called == ROUNDS || (vector == 14 && called > ROUNDS), "{name}: {called}");
    }
    let compat = counts(&trace, "compat");
    for vector in [4, 5] {
        assert_eq!(compat.get(&(TRAP + vector)), Some(&10), "vector {vector}");
    }
    for (number, name, times) in CALLS {
        assert_eq!(compat.get(&(SYSCALL32 + number)), Some(&times), "{name}");
        let named = trace.of(SYSCALL32 + number).next().map(|e| trace.event_name(e));
        assert_eq!(named, Some(name));
    }
}
