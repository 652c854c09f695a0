// SPDX-License-Identifier: BSD-3-Clause
//! Recordings without the module, by the kernel's own tracepoints in tracefs, and other tools' reading of them.

use std::fs;
use std::io::BufReader;

use kutrace_format::flag;
use postprocess::event::number::{IRQ, SYSCALL, SYSCALL_RETURN};
use postprocess::event::Event;
use postprocess::source;

use crate::guest;

const GETPPID: u32 = 110;
const CALLS: usize = 20_000;

/// A Python program that makes this many calls.
fn calls(number: usize) -> String {
    format!("python3 -c 'import os\nfor n in range({number}): os.getppid()'")
}

/// The events that begin or end something, by what other tools show of them.
fn edges(events: &[Event]) -> Vec<(i64, u32, u32, u32, i32)> {
    let of = events.iter().filter(|e| e.event() >= IRQ);
    of.map(|e| (e.ts.0, e.cpu.number(), e.event(), e.arg, e.ret)).collect()
}

#[test]
fn every_call_is_recorded_without_the_module_and_read_as_trace_cmd_reads_it() {
    let (known, many) = (calls(CALLS), calls(10 * CALLS));
    let run = guest::succeed(
        &["--kernel", "stock", "--cpus", "2"],
        &format!(
            r#"
            cd /tmp
            mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
            instance=/sys/kernel/tracing/instances/kutrace
            by_tracefs() {{ kutrace_control record --source tracefs "$@"; }}
            refused() {{ local words=$1; shift; ! "$@" 2>said && grep -q -- "$words" said; }}
            by_tracefs -o $SHARE/t.dat -- {known}
            test ! -e $instance
            trace-cmd report -t -i $SHARE/t.dat >$SHARE/t.txt
            kutrace_control summary $SHARE/t.dat
            kutrace_control why $SHARE/t.dat --call getppid
            by_tracefs -b 1M --wrap -o $SHARE/w.dat -- {many}

            kutrace_control record --source tracefs -o $SHARE/killed.dat -- sleep 100 & killed=$!
            await grep -q 1 $instance/tracing_on
            refused 'another kutrace_control records by tracefs' by_tracefs -o $SHARE/no.dat -- true
            kill -9 $killed
            wait $killed || true
            test -e $instance
            by_tracefs -o $SHARE/next.dat -- true
            test ! -e $instance
            refused '--ipc: tracefs has none of it' by_tracefs --ipc -o $SHARE/no.dat -- true
            head -c 3000 $SHARE/t.dat >cut.dat
            refused 'a recording of trace-cmd that cannot be read: it is cut off' rawtoevent cut.dat
            "#
        ),
    );
    let own = source::decode(&fs::read(run.file("t.dat")).unwrap()).unwrap();
    assert_eq!((own.meta.lost, own.meta.quality.len()), (0, 0), "{:?}", own.meta.quality);
    let of = |events: &[Event], number| events.iter().filter(|e| e.event() == number).count();
    assert_eq!(of(&own.events, SYSCALL + GETPPID), CALLS);
    assert_eq!(of(&own.events, SYSCALL_RETURN + GETPPID), CALLS);
    assert!(run.out.contains("20000 requests:"), "{}", run.out);

    let text = BufReader::new(fs::File::open(run.file("t.txt")).unwrap());
    let mut batches = source::open(text).unwrap().events().unwrap();
    let mut told = Vec::new();
    while let Some(batch) = batches.batch().unwrap() {
        told.extend(batch.rows);
    }
    let (own, told) = (edges(&own.events), edges(&told));
    let first = own.iter().zip(&told).position(|(own, told)| own != told);
    assert!(first.is_none() && own.len() == told.len(), "{first:?} of {} and {}", own.len(), told.len());

    let newest = source::decode(&fs::read(run.file("w.dat")).unwrap()).unwrap();
    let kept = of(&newest.events, SYSCALL + GETPPID);
    assert!(kept > 0 && kept < 10 * CALLS && newest.meta.lost == 0, "{kept} {}", newest.meta.lost);
    assert!(newest.meta.flags & flag::WRAPPED != 0);
}
