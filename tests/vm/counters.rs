// SPDX-License-Identifier: BSD-3-Clause
//! Counters: one sentence and nothing else on a machine without them; codes in every trace on a machine with them; and
//! if a module of the tests makes them up, the codes of its counts.

use std::collections::BTreeMap;

use kutrace_format::abi::counter::{ipc_code, llc_code};
use kutrace_format::abi::event::PC_USER;
use postprocess::event::names::NameId;
use postprocess::event::number::SWITCH;
use postprocess::event::Event;

use crate::blocks::Blocks;
use crate::guest;
use crate::trace::Recording;

const WORDS: [&str; 6] = ["goipc", "gollc", "goipcllc", "goipcwrap", "gollcwrap", "goipcllcwrap"];

#[test]
fn a_start_with_counters_counts_or_says_that_it_cannot() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            r#"
            cd $SHARE
            kutrace_control go; ls /usr/bin >/dev/null; kutrace_control stop first.raw
            echo said=$(dmesg | grep -ciE 'kutrace|msr|perf')
            for word in {}; do
                status=0
                kutrace_control $word 2>>refused || status=$?
                echo $word=$status
                if [ $status = 0 ]; then ls /usr/bin >/dev/null; kutrace_control stop $word.raw; fi
            done
            echo again=$(dmesg | grep -ciE 'kutrace|msr|perf')
            kutrace_control stop again.raw
            kutrace_control go; ls /usr/bin >/dev/null; kutrace_control stop last.raw
            if [ -e /sys/bus/event_source/devices/cpu ]; then echo pmu=1; else echo pmu=0; fi
            "#,
            WORDS.join(" ")
        ),
    );
    let last = Recording::read_whole(&run.file("last.raw"));
    assert_eq!(last.events.meta.flags & 0xa0, 0);
    assert_eq!(run.number("said"), run.number("again"), "the kernel's log grew");
    match run.number("pmu") {
        0 => refused(&run),
        _ => counted(&run),
    }
}

/// Each start is refused in one line and a hint, and the trace in the recorder stays.
fn refused(run: &guest::Run) {
    assert_eq!(WORDS.map(|word| run.number(word)), [1; 6]);
    let lines = std::fs::read_to_string(run.file("refused")).unwrap();
    let facts: Vec<_> = lines.lines().filter(|line| !line.starts_with("hint: ")).collect();
    let fact = "kutrace_control: /dev/kutrace: reset: this machine has no counters of instructions or cache misses";
    assert_eq!(facts, [fact; 6]);
    // Names are gathered at each stop, also those of programs' files, from which a sample's argument is made.
    let events = |name| {
        let mut events = Recording::read_whole(&run.file(name)).events.events;
        events.retain(|e| e.event() >= SWITCH);
        let arg = |e: &Event| if e.event() == u32::from(PC_USER) { 0 } else { e.arg };
        events.into_iter().map(|e| Event { name: NameId::EMPTY, arg: arg(&e), ..e }).collect::<Vec<_>>()
    };
    assert!(events("first.raw") == events("again.raw"));
}

/// Every trace has codes, of the requested counters.
fn counted(run: &guest::Run) {
    for word in WORDS {
        assert_eq!(run.number(word), 0, "{}", run.err);
        let trace = Recording::read_whole(&run.file(&format!("{word}.raw")));
        let flags = [("ipc", 0x80), ("llc", 0x20)].map(|(part, flag)| if word.contains(part) { flag } else { 0 });
        assert_eq!(trace.events.meta.flags & 0xa0, flags[0] | flags[1], "{word}");
        let coded = trace.spans.spans.iter().filter(|s| s.cpu.is_some() && s.thread().is_some() && s.ipc > 0).count();
        assert!(coded > 100, "{word}: {coded} spans have a code");
    }
}

/// pmu.c counts three instructions in two ticks of the TSC, and a miss every 512 ticks: for each longer time in which a
/// CPU recorded nothing, the trace must have these codes.
#[test]
fn counters_say_what_was_counted() {
    let run = guest::succeed(
        &["--cpus", "2", "--beside", "--no-load"],
        r#"
        insmod $KUTRACE_BESIDE/pmu.ko
        insmod $KUTRACE_MODULE
        for word in goipc gollc; do
            kutrace_control $word
            perl -e 'for (1 .. 30) { select undef, undef, undef, 0.01; $n++ for 1 .. 10000 }'
            # More than one block of calls, each of which leaves room for its counters.
            dd if=/dev/zero of=/dev/null bs=1 count=20000 status=none
            kutrace_control stop $SHARE/$word.raw
        done
        rmmod kutrace
        rmmod pmu
        "#,
    );
    for (word, flag) in [("goipc", 0x80), ("gollc", 0x20)] {
        let trace = Recording::read_whole(&run.file(&format!("{word}.raw")));
        let hz = Blocks::read(&run.file(&format!("{word}.raw"))).header.tsc_hz as u128;
        assert_eq!(trace.events.meta.flags & 0xa0, flag, "{word}");
        let (mut last, mut long, mut wrong) = (BTreeMap::new(), 0, Vec::new());
        // Names and statements of who runs are none of the CPU's entries.
        for event in trace.events.events.iter().filter(|e| e.event() >= SWITCH && (e.event(), e.dur.0) != (SWITCH, 1)) {
            let before = last.insert(event.cpu, (event.ts + event.dur).0);
            let gap = before.map_or(0, |before| event.ts.0 - before);
            if gap < 50_000 {
                continue;
            }
            long += 1;
            let ticks = (gap as u128 * hz / 100_000_000) as u64;
            // Reading counters takes time, and not always the same.
            let codes = match word {
                "goipc" => ipc_code(14, 10)..=ipc_code(16, 10),
                _ => llc_code(ticks / 512 * 9 / 10)..=llc_code(ticks / 512 * 11 / 10),
            };
            if !codes.contains(&event.ipc) {
                wrong.push((gap, codes, event));
            }
        }
        eprintln!("{word}: {long} times of at least 0.5 ms, {} with another code", wrong.len());
        assert!(long > 20 && wrong.len() * 8 <= long, "{wrong:?}");
    }
}
