// SPDX-License-Identifier: BSD-3-Clause
//! The library for programs: records in Rust, C, Python and through the original's interface are in the trace.

use std::collections::BTreeSet;
use std::path::Path;

use postprocess::event::number::{
    DEQUEUE, ENQUEUE, LOCK_HELD, LOCK_TRY, LOCK_WAITED, MARK_A, MARK_D, RPC_MIDDLE, RPC_REQUEST, RPC_RESPONSE,
};
use postprocess::time::Time;

use crate::guest;
use crate::trace::Recording;

/// Marks of the second sort.
const MARK_B: u32 = MARK_A + 1;

/// The place of the library and the examples that xtask built; `take PROGRAM...` copies programs that use it, and the
/// library.
pub const TAKE: &str = "
    cd /tmp
    TOOLS=$(dirname $(command -v kutrace_control))
    LIBRARY=$VM/../../kutrace-control/kutrace
    export LD_LIBRARY_PATH=/tmp
    take() { cp $TOOLS/libkutrace.so . && (cd $BIN && cp $@ /tmp); }
    ";

/// Programs' records, in order, as `name argument`.
fn recorded(trace: &Recording, program: &str) -> Vec<String> {
    let pids = trace.pids_of(program);
    let inserted = trace.events.events.iter().filter(|e| pids.contains(&e.pid));
    let of_programs =
        inserted.filter(|e| matches!(e.event(), RPC_REQUEST..=RPC_MIDDLE | MARK_A..=MARK_D | LOCK_TRY..=DEQUEUE));
    of_programs.map(|e| format!("{} {}", trace.event_name(e), e.arg)).collect()
}

/// The names of the spans that are not execution, with their kinds.
fn has_span(trace: &Recording, event: u32, name: &str) -> bool {
    trace.spans.spans.iter().any(|s| s.event() == event as i32 && trace.span_name(s) == name)
}

/// The library's number of a name, as recorded in the trace.
fn number(lines: &[String], name: &str) -> u32 {
    let with_number = |line: &String| line.split_once(' ')?.0.strip_prefix(name)?.strip_prefix('.')?.parse().ok();
    lines.iter().find_map(with_number).unwrap_or_else(|| panic!("no {name} in {lines:#?}"))
}

/// The part of a program that works on an RPC, with a queue and a lock, has left the expected records in the trace.
fn has_rpc(trace: &Recording, lines: &[String], language: &str, id: u32) {
    let step = |name: &str, arg: u32| format!("{language}_{name} {arg}");
    let get = format!("get.{id}");
    let first =
        lines.iter().position(|line| *line == step(&get, 100 << 16 | id)).unwrap_or_else(|| panic!("{lines:#?}"));
    let names: Vec<&str> = lines[first..].iter().map(|line| line.split(' ').next().unwrap()).collect();
    let queue = |what: &str| format!("{what}_{language}_queue");
    let lock = |what: &str| format!("{what}_{language}_lock");
    let get = format!("{language}_{get}");
    let expected = [
        &get,
        &queue("enq"),
        "rpcreq.0",
        &queue("deq"),
        &get,
        &lock("try"),
        &lock("acq"),
        &lock("rel"),
        &get,
        "rpcreq.0",
    ];
    assert_eq!(names[..expected.len()], expected);
    assert!(lines.contains(&format!("{get} {}", 49 << 16 | id)), "{lines:#?}");
    assert!(has_span(trace, LOCK_WAITED, &format!("~{language}_lock")));
    assert!(has_span(trace, LOCK_HELD, &format!("={language}_lock")));
    let queued =
        trace.spans.spans.iter().find(|s| s.event() == ENQUEUE as i32 && s.rpc == id as i32 && s.dur > Time(1));
    assert_eq!(queued.map(|s| trace.span_name(s)), Some(format!("{language}_queue").as_str()));
}

/// A named part of a program, with another inside.
fn has_parts(trace: &Recording, lines: &[String], language: &str) {
    let (outer, inner) = (format!("{language}_outer"), format!("{language}_inner"));
    let (outer_id, inner_id) = (number(lines, &outer), number(lines, &inner));
    let (outer, inner) = (format!("{outer}.{outer_id} {outer_id}"), format!("{inner}.{inner_id} {inner_id}"));
    let first = lines.iter().position(|line| *line == outer).unwrap();
    assert_eq!(lines[first..first + 4], [&outer, &inner, &outer, "rpcreq.0 0"]);
    for id in [outer_id, inner_id] {
        let shown = trace.spans.spans.iter().filter(|s| s.is_execution() && s.rpc == id as i32 && s.dur > Time::ZERO);
        assert!(shown.count() > 0, "{id}");
    }
}

#[test]
fn what_programs_record_is_in_the_trace() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{TAKE}
            take marks original
            kutrace_control go
            $TOOLS/examples/original
            ./marks
            python3 $LIBRARY/examples/original.py
            perl -e 'syscall 1023, 7, {MARK_D} << 32 | 654'
            kutrace_control stop $SHARE/t.raw
            ./original $SHARE/original.raw
            ./original $SHARE/original.raw"
        ),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let (rust, lines) = (recorded(&trace, "original"), recorded(&trace, "marks"));
    for mark in ["mark_a=rust 1311258", "mark_b=two", "mark_c=three", "mark_d 123456", "mark_a=/rust"] {
        assert!(rust.iter().any(|line| line.starts_with(mark)), "{mark}: {rust:#?}");
    }
    for mark in ["mark_a=c 3", "mark_b=alarm ", "mark_a=/c "] {
        assert!(lines.iter().any(|line| line.starts_with(mark)), "{mark}: {lines:#?}");
    }
    has_parts(&trace, &rust, "rust");
    has_parts(&trace, &lines, "c");
    has_rpc(&trace, &rust, "rust", 77);
    has_rpc(&trace, &lines, "c", 78);

    let python = recorded(&trace, "python3");
    has_parts(&trace, &python, "python");
    for line in ["mark_a=python ", "python_get.79 ", "mark_d 123"] {
        assert!(python.iter().any(|said| said.starts_with(line)), "{line}: {python:#?}");
    }
    let perl = recorded(&trace, "perl");
    assert!(perl.iter().any(|said| said == "mark_d 654"), "{perl:#?}");
    original(&run.file("original.raw"));
}

fn original(path: &Path) {
    let trace = Recording::read_whole(path);
    let lines = recorded(&trace, "original");
    let lock = |what: &str| format!("{what}_mutex 99");
    let expected = [
        "mark_a=book 728602",
        "mark_b=two 24940",
        "mark_c=c.c 6323",
        "mark_d 7",
        "get.4253 4264093",
        "rpcreq.0 0",
        &lock("try"),
        &lock("acq"),
        &lock("rel"),
        "mark_a=/hello 1567496359",
    ];
    assert_eq!(lines, expected);
    assert!(has_span(&trace, LOCK_WAITED, "~mutex") && has_span(&trace, LOCK_HELD, "=mutex"));
    assert!(trace.of(RPC_RESPONSE).next().is_none());
}

#[test]
fn each_call_answers_as_described_with_and_without_module_and_trace_also_of_a_program_that_runs() {
    let run = guest::succeed(
        &["--cpus", "2", "--no-load"],
        &format!(
            "{TAKE}
            take api later
            ./api >$SHARE/none
            insmod $KUTRACE_MODULE
            ./api >$SHARE/off
            kutrace_control go
            ./api >$SHARE/on
            kutrace_control stop $SHARE/t.raw
            # As an ordinary user, who may not open the device.
            kutrace_control go
            setpriv --reuid 65534 --regid 65534 --clear-groups ./api >$SHARE/user
            rmmod kutrace
            # One that runs all the while notices at once that a trace starts, and keeps no module.
            coproc later {{ ./later; }}
            mark() {{ echo >&${{later[1]}}; read answer <&${{later[0]}}; echo $1 $answer; }}
            mark none
            insmod $KUTRACE_MODULE
            mark off
            for n in 1 2 3; do
                kutrace_control go
                mark on
                kutrace_control stop $SHARE/$n.raw
                mark off
            done
            kutrace_control go
            rmmod kutrace
            mark gone
            insmod $KUTRACE_MODULE
            kutrace_control go
            mark on"
        ),
    );
    assert_eq!(run.out, "none 0\noff 0\non 1\noff 0\non 1\noff 0\non 1\noff 0\ngone 0\non 1\n");
    let said = |name: &str| std::fs::read_to_string(run.file(name)).unwrap();
    assert_eq!(said("none"), answers([0, -38, -38, 0, 0, 0]).repeat(3));
    assert_eq!(said("off"), answers([0, 0, 4, 0, 0, 0]).repeat(3));
    let on = answers([1, 1, 4, 1, 2, -22]).repeat(3);
    assert_eq!(said("on"), on);
    assert_eq!(said("user"), on);

    let trace = Recording::read_whole(&run.file("t.raw"));
    let lines = recorded(&trace, "api");
    let part = "a_part_with_a_name_that_is_longer_than_what_fits_into_th";
    let id = number(&lines, part);
    assert_eq!(lines.iter().filter(|line| **line == format!("{part}.{id} {id}")).count(), 6);
}

/// The lines of api.c: `is_on test version`, an event, a name, and the refused calls.
fn answers([on, test, version, event, name, refused]: [i32; 6]) -> String {
    let events =
        "mark_a mark_b mark_c mark_d span rpc_request enqueue rpc_end dequeue rpc_resume rpc_response lock_try \
                  lock_acquired lock_released keep addevent";
    let events = events.split(' ').filter(|what| !what.is_empty()).map(|what| format!("{what} {event}\n"));
    let first = format!("is_on {on}\ntest {test}\nversion {version}\n");
    let last = format!("addname {name}\nno_name 0\na_switch {refused}\na_pids_name {refused}\n");
    first + &events.collect::<String>() + &last
}

#[test]
fn threads_and_the_signal_handlers_that_interrupt_them_record_all_they_mean_to() {
    let run = guest::succeed(
        &[guest::AT_ONCE, "--no-load"],
        &format!(
            "{TAKE}
            insmod $KUTRACE_MODULE tracemb=256
            take storm
            kutrace_control go
            ./storm
            kutrace_control stop $SHARE/t.raw"
        ),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let lines = recorded(&trace, "storm");
    let handler = number(&lines, "handler");
    let workers = [0, 1, 2, 3].map(|n| number(&lines, &format!("worker{n}")));
    let known: BTreeSet<String> = ["mark_d".into(), "mark_b=signal".into(), "rpcreq.0".into()]
        .into_iter()
        .chain([format!("handler.{handler}")])
        .chain((0..).zip(workers).map(|(n, id)| format!("worker{n}.{id}")))
        .collect();
    let names: BTreeSet<String> = lines.iter().map(|line| line.split(' ').next().unwrap().into()).collect();
    assert_eq!(names, known);

    let mut threads = BTreeSet::new();
    for pid in trace.pids_of("storm") {
        // The work of the thread, where the handler interrupted it too; its marks, and its handler's.
        let (mut id, mut marks, mut signals) = (0, Vec::new(), 0);
        for e in trace.events.events.iter().filter(|e| e.pid == pid) {
            match e.event() {
                RPC_REQUEST..=RPC_MIDDLE => id = e.arg & 0xffff,
                MARK_D => marks.push((e.arg, id)),
                MARK_B => {
                    assert_eq!(id, handler, "{e:?}");
                    signals += 1;
                }
                _ => (),
            }
        }
        assert_eq!(id, 0, "{pid} works on something still");
        let Some(thread) = marks.first().map(|(first, _)| first >> 24) else { continue };
        let of_worker = |(mark, n): (&(u32, u32), u32)| *mark == (thread << 24 | n, workers[thread as usize]);
        assert!(marks.iter().zip(0..).all(of_worker), "{thread}");
        assert_eq!(marks.len() as u64, run.number(&format!("marks{thread}")));
        assert_eq!(signals, run.number(&format!("signals{thread}")));
        assert!(signals >= 500 && marks.len() > 100, "{signals} signals, {} marks", marks.len());
        threads.insert(thread);
    }
    assert_eq!(threads.len(), 4);
    eprintln!("marks: {}", run.out.replace('\n', " "));
}
