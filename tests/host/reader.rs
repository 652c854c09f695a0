// SPDX-License-Identifier: BSD-3-Clause
//! docs/format.md is enough: a reader written from it alone agrees with ours.

use std::fs;
use std::path::Path;

use kutrace_format::abi::event::{self, TaskState};
use kutrace_format::file::{FLAG_IPC, FLAG_LLC, FLAG_WRAP, FLAG_WRAPPED};
use kutrace_tests::cut::beginning;
use kutrace_tests::{busy, reader, TraceBuilder};

use crate::damage::slipped;

/// Compares the two readers.
fn agree(bytes: &[u8]) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.trace");
    fs::write(&file, bytes).unwrap();
    reader::compare(&file, &reader::lines(bytes))
}

#[test]
fn the_samples_are_read_alike() {
    for sample in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples")).unwrap() {
        let path = sample.unwrap().path();
        if path.extension().is_some_and(|e| e == "trace") {
            let lines = reader::lines(&fs::read(&path).unwrap());
            reader::compare(&path, &lines).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
}

#[test]
fn a_busy_machine_is_read_alike() {
    agree(&busy(4, 50_000, 5).bytes()).unwrap();
}

#[test]
fn losses_and_gaps_are_read_alike() {
    let mut trace = TraceBuilder::new(2, 3_000_000);
    trace.cpu(0).running(70, "web", Some(0)).small_return(10, 5).call(20, 0, 3).lose(4).next_block();
    trace.cpu(0).running(70, "web", Some(0)).small_return(90, 7).call(100, 202, 1).switch(110, 0, "swapper");
    trace.cpu(1).call(40, 1, 2).skip(2, 50).running(71, "db", Some(1)).entry(2_000_000, event::OPEN_RETURN, &[77]);
    trace.cpu(1).switch(2_000_100, 70, "web").small_return(2_000_200, -11).small_return(2_000_300, 0);
    agree(&trace.bytes()).unwrap();
}

/// A switch that the block before had no room for comes before the name of its thread.
#[test]
fn a_switch_right_before_its_name_has_it() {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.cpu(0).running(70, "web", None).entry(10, event::SCHED, &[]).entry(20, event::SWITCH, &[71]);
    trace.cpu(0).task(5_000_000, 71, "late", None).entry(5_000_001, event::SCHED_RETURN, &[]);
    agree(&trace.bytes()).unwrap();
    let lines = String::from_utf8(reader::lines(&trace.bytes())).unwrap();
    assert!(lines.contains(" late.71 (200)"), "{lines}");
}

/// A thread that loads a program right after it begins had its other name at the switch.
#[test]
fn a_switch_right_before_another_name_keeps_its_own() {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.cpu(0).running(70, "web", None).task(5, 71, "shell", None).entry(10, event::SCHED, &[]);
    trace.cpu(0).entry(20, event::SWITCH, &[71]).task(5_000_000, 71, "late", None).entry(
        5_000_001,
        event::SCHED_RETURN,
        &[],
    );
    agree(&trace.bytes()).unwrap();
    let lines = String::from_utf8(reader::lines(&trace.bytes())).unwrap();
    assert!(lines.contains(" shell.71 (200)"), "{lines}");
}

#[test]
fn a_clock_that_steps_back_is_read_alike() {
    let mut trace = TraceBuilder::new(2, 2_000_000);
    trace.cpu(0).running(70, "web", None).call(300_000, 0, 3).step_back(200_000).small_return(100_160, 5);
    trace
        .cpu(0)
        .call(100_480, 1, 3)
        .entry(1_500_000, event::OPEN_RETURN, &[4096])
        .step_back(1_000_000)
        .folded(600_000, 39, 0, 5, 0);
    trace.cpu(1).folded(400_000, 39, 0, 5, 0).folded(1_900_000, 39, 0, 5, 0);
    agree(&trace.bytes()).unwrap();
    agree(&slipped().bytes()).unwrap();
}

#[test]
fn a_wrapped_trace_is_read_alike() {
    let mut trace = TraceBuilder::new(2, 3_000_000);
    trace.header.flags = FLAG_WRAP | FLAG_WRAPPED;
    trace.cpu(0).call(5, 0, 3).overwritten().running(70, "web", Some(0)).small_return(10, 5);
    trace.cpu(1).task(20, 71, "db", Some(TaskState::COMPAT + 3)).switch(30, 71, "db").entry(
        60,
        event::OPEN_RETURN,
        &[1 << 20],
    );
    agree(&trace.bytes()).unwrap();
}

#[test]
fn counters_are_read_alike() {
    for flags in [FLAG_IPC, FLAG_LLC, FLAG_IPC | FLAG_LLC] {
        let mut trace = TraceBuilder::new(1, 1_000_000);
        trace.header.flags = flags;
        trace.cpu(0).folded(10, 39, 0, 5, 0).counted(1, &[0x7a, 0xc5]).call(30, 0, 3).counted(1, &[0x1f]);
        trace.cpu(0).entry(50, event::SYSCALL_RETURN, &[4096]).counted(1, &[0xf3]);
        agree(&trace.bytes()).unwrap();
    }
}

#[test]
fn a_difference_is_seen() {
    let sample = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/hello.trace")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (bytes, trace) = (beginning(&sample, 3_000), folder.path().join("t.trace"));
    fs::write(&trace, &bytes).unwrap();
    let lines = String::from_utf8(reader::lines(&bytes)).unwrap();
    reader::compare(&trace, lines.as_bytes()).unwrap();
    let of_openat = lines.lines().filter(|l| l.ends_with(" openat (901)")).nth(7).unwrap();
    for column in [0, 1, 3, 4, 6, 7, 9] {
        let mut columns: Vec<String> = of_openat.split_whitespace().map(str::to_string).collect();
        columns[column] = match columns[column].parse::<i64>() {
            Ok(number) => (number + 2).to_string(),
            Err(_) => "open".to_string(),
        };
        let changed = lines.replacen(of_openat, &columns.join(" "), 1);
        assert!(reader::compare(&trace, changed.as_bytes()).is_err(), "column {column} of {of_openat}");
    }
    let missing = lines.replacen(&format!("{of_openat}\n"), "", 1);
    assert!(reader::compare(&trace, missing.as_bytes()).is_err());
}
