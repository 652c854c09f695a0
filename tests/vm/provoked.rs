// SPDX-License-Identifier: BSD-3-Clause
//! What no program can bring about, brought about by the modules of tests/vm/modules: counters.

use std::collections::BTreeMap;

use kutrace_format::abi::counter::{ipc_code, llc_code};
use postprocess::event::number::SWITCH;

use crate::blocks::Blocks;
use crate::guest;
use crate::trace::Trace;

/// pmu.c counts three instructions in two ticks of the TSC, and a miss every 512 ticks: of each longer time in which a
/// CPU recorded nothing, the trace must say so.
#[test]
fn counters_say_what_was_counted() {
    let run = guest::succeed(
        &["--kernel", "distribution", "--cpus", "2", "--beside", "--no-load"],
        r#"
        insmod $KUTRACE_BESIDE/pmu.ko
        insmod $KUTRACE_MODULE
        for word in goipc gollc; do
            kutrace_control $word
            perl -e 'for (1 .. 20) { select undef, undef, undef, 0.01; $n++ for 1 .. 30000 }'
            kutrace_control stop $SHARE/$word.raw
        done
        rmmod kutrace
        rmmod pmu
        "#,
    );
    for (word, flag) in [("goipc", 0x80), ("gollc", 0x20)] {
        let trace = Trace::read_whole(&run.file(&format!("{word}.raw")));
        let hz = Blocks::read(&run.file(&format!("{word}.raw"))).header.tsc_hz as u128;
        assert_eq!(trace.events.meta.flags & 0xa0, flag, "{word}");
        let (mut last, mut long, mut wrong) = (BTreeMap::new(), 0, Vec::new());
        // Names and statements of who runs are none of the CPU's entries.
        for event in trace.events.events.iter().filter(|e| e.event >= SWITCH && (e.event, e.dur) != (SWITCH, 1)) {
            let before = last.insert(event.cpu, event.ts + event.dur);
            let gap = before.map_or(0, |before| event.ts - before);
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
