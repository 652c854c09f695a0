// SPDX-License-Identifier: BSD-3-Clause
//! What `spantolttng` writes, held against the names that LTTng has published: facts of lttng-modules 2.9.15, from
//! `instrumentation/events/lttng-module`, as they are for kernels from 4.4 on, and from its lists of system calls.

use std::collections::BTreeMap;
use std::io::{self, Cursor};

use kutrace_tests::draw::{made, sample, SAMPLES};
use postprocess::sink::ctf2::Edition;
use postprocess::sink::lttng::Writer;
use postprocess::sink::track::Drawing;
use postprocess::span::Spans;

/// Events, each with its fields in order. `pid_t` and `int` have 32 bits and a sign, `long` has 64, `TASK_COMM_LEN` is 16.
const PUBLISHED: [(&str, &str); 23] = [
    // sched.h
    (
        "sched_switch",
        "text prev_comm[16]; i32 prev_tid; i32 prev_prio; i64 prev_state; \
         text next_comm[16]; i32 next_tid; i32 next_prio; ",
    ),
    ("sched_waking", "text comm[16]; i32 tid; i32 prio; i32 target_cpu; "),
    // irq.h
    ("irq_handler_entry", "i32 irq; string name; "),
    ("irq_handler_exit", "i32 irq; i32 ret; "),
    ("irq_softirq_entry", "u32 vec; "),
    ("irq_softirq_exit", "u32 vec; "),
    // arch/x86/irq_vectors.h
    ("x86_irq_vectors_local_timer_entry", VECTOR),
    ("x86_irq_vectors_local_timer_exit", VECTOR),
    ("x86_irq_vectors_reschedule_entry", VECTOR),
    ("x86_irq_vectors_reschedule_exit", VECTOR),
    ("x86_irq_vectors_irq_work_entry", VECTOR),
    ("x86_irq_vectors_irq_work_exit", VECTOR),
    ("x86_irq_vectors_call_function_entry", VECTOR),
    ("x86_irq_vectors_call_function_exit", VECTOR),
    ("x86_irq_vectors_call_function_single_entry", VECTOR),
    ("x86_irq_vectors_call_function_single_exit", VECTOR),
    // power.h
    ("power_cpu_idle", "u32 state; u32 cpu_id; "),
    ("power_cpu_frequency", "u32 state; u32 cpu_id; "),
    // lttng-statedump.h
    ("lttng_statedump_start", ""),
    (
        "lttng_statedump_process_state",
        "i32 tid; i32 vtid; i32 pid; i32 vpid; i32 ppid; i32 vppid; text name[16]; i32 type; i32 mode; i32 submode; \
         i32 status; i32 ns_level; u32 ns_inum; ",
    ),
    ("lttng_statedump_end", ""),
    // lttng-syscalls.c: names follow these.
    ("syscall_entry_", ""),
    ("syscall_exit_", "i64 ret; "),
];
const VECTOR: &str = "i32 vector; ";
/// Fields that are left out: which name space a process is in.
const UNTOLD: &str = "i32 ns_level; u32 ns_inum; ";

/// System calls of x86-64 whose events have another name than the call, in `instrumentation/syscalls`.
const RENAMED: [(&str, &str); 7] = [
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("uname", "newuname"),
    ("sendfile", "sendfile64"),
    ("umount2", "umount"),
    ("_sysctl", "sysctl"),
];

/// The events that the metadata declares, each with its fields.
fn declared(spans: &Spans) -> BTreeMap<String, String> {
    let own = spans.spans.iter().filter(|span| span.is_own_code());
    let threads = own.filter_map(|span| Some((span.thread()?, span.name))).collect();
    let open = |_| Ok::<_, io::Error>(Cursor::new(Vec::new()));
    let writer = Writer::new((&spans.meta, &spans.names, &threads), Edition::One, open);
    let mut drawing = Drawing::new(spans.meta.flags, writer);
    spans.spans.iter().for_each(|span| drawing.span(span).unwrap());
    let ((metadata, _), _) = drawing.finish().unwrap();
    let events = metadata.lines().filter(|line| line.starts_with("event {"));
    let event = |line: &str| {
        let name = line.split('"').nth(1).unwrap().to_string();
        let fields = line.split_once("fields := struct { ").unwrap().1.strip_suffix("}; };").unwrap();
        (name, fields.to_string())
    };
    events.map(event).collect()
}

#[test]
fn events_have_the_names_and_fields_that_lttng_has_published() {
    let published = BTreeMap::from(PUBLISHED);
    let mut seen = BTreeMap::new();
    for spans in SAMPLES.map(sample).into_iter().chain([made()]) {
        for (name, fields) in declared(&spans) {
            let call = ["syscall_entry_", "syscall_exit_"]
                .into_iter()
                .find_map(|start| Some((start, name.strip_prefix(start)?)));
            if let Some((_, call)) = call {
                assert!(RENAMED.iter().all(|(ours, _)| *ours != call), "{name}");
            }
            let of = call.map_or(name.as_str(), |(start, _)| start).to_string();
            let expected = published.get(of.as_str()).unwrap_or_else(|| panic!("{name}: no such event"));
            let told = if of == "lttng_statedump_process_state" { fields + UNTOLD } else { fields };
            assert_eq!((&*told, &*name), (*expected, &*name));
            *seen.entry(of).or_insert(0) += 1;
        }
    }
    let missing: Vec<_> = published.keys().filter(|name| !seen.contains_key(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn system_calls_have_the_names_that_lttng_gives_them() {
    let mut spans = made();
    let call = spans.names.iter().position(|name| name == "fstat").unwrap();
    for (ours, theirs) in RENAMED.into_iter().chain([("newfstatat", "newfstatat")]) {
        spans.names[call] = ours.to_string();
        let declared = declared(&spans);
        for edge in ["entry", "exit"] {
            assert!(declared.contains_key(&format!("syscall_{edge}_{theirs}")), "{ours}: {:?}", declared.keys());
        }
    }
}
