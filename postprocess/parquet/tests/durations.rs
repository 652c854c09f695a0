// SPDX-License-Identifier: BSD-3-Clause
//! The table of durations, compared with counts from the spans by other means.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};

use kutrace_parquet::write::write;
use kutrace_tests::draw::{sample, SAMPLES};
use kutrace_tools::spans::Ordering;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use postprocess::id::Pid;
use postprocess::span::limit::Keep;
use postprocess::span::wait::Reason;
use postprocess::span::what::{Activity, Arc, What};
use postprocess::span::{Span, Spans, NONE};

/// Kind, name, sharing and ns of a duration; its count.
type Durations = BTreeMap<(String, String, Option<i32>, i64), i64>;

/// Returns the file of a table in a folder with one trace.
fn file(folder: &Path, table: &str) -> PathBuf {
    let mut path = folder.join(table);
    while path.is_dir() {
        path = path.read_dir().unwrap().next().unwrap().unwrap().path();
    }
    path
}

/// Returns the table of a trace.
fn table(spans: Spans) -> Durations {
    let folder = tempfile::tempdir().unwrap();
    let mut ordering = Ordering::default();
    let last = Keep::finish(&mut ordering, spans);
    write(ordering.finish(last).unwrap(), folder.path(), None).unwrap();
    let reader = SerializedFileReader::new(File::open(file(folder.path(), "durations")).unwrap()).unwrap();
    let mut all = Durations::new();
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let text = |n| row.get_string(n).unwrap().clone();
        let key = (text(1), text(2), row.get_int(3).ok(), row.get_long(4).unwrap());
        assert_eq!(all.insert(key, row.get_long(5).unwrap()), None, "one row for each");
    }
    all
}

/// Returns the system calls of each thread, from their first piece to the one that returns.
fn calls(spans: &Spans) -> Durations {
    let waits: Vec<&Span> = spans.spans.iter().filter(|span| span.what() == What::Wait(Reason::Cpu)).collect();
    let mut open: HashMap<Option<Pid>, &Span> = HashMap::new();
    let mut all = Durations::new();
    for span in &spans.spans {
        let What::Run(Activity::Call(work)) = span.what() else { continue };
        if !work.is_call() {
            continue;
        }
        let first = *open.entry(span.pid).or_insert(span);
        if span.ret == NONE {
            continue;
        }
        open.remove(&span.pid);
        if first.arg == NONE {
            continue;
        }
        let (from, to) = (first.start, span.start + span.dur);
        let is_in = |wait: &&&Span| wait.pid == span.pid && wait.start < to && wait.start + wait.dur > from;
        let shared = waits.iter().any(|wait| is_in(&wait));
        let key = ("syscall".to_string(), spans.names[span.name].clone(), Some(shared.into()), (to - from).0 * 10);
        *all.entry(key).or_default() += 1;
    }
    all
}

#[test]
fn every_system_call_is_counted_once_with_all_that_interrupted_it() {
    for name in SAMPLES {
        let spans = sample(name);
        let expected = calls(&spans);
        // Work on the way out of a call has no return, so only the next span shows its end.
        let is_call = |(kind, name, ..): &(String, String, _, _)| kind == "syscall" && name != "exit_work";
        let found: Durations = table(spans).into_iter().filter(|(key, _)| is_call(key)).collect();
        let differ: Vec<_> = found.iter().zip(&expected).filter(|(a, b)| a != b).take(3).collect();
        assert_eq!((found.values().sum::<i64>(), differ), (expected.values().sum::<i64>(), vec![]), "{name}");
        assert!(expected.values().sum::<i64>() > 200, "{name}: {}", expected.len());
    }
}

#[test]
fn some_calls_shared_their_cpu_and_wakeups_are_those_of_the_arcs() {
    let mut shared = 0;
    for name in SAMPLES {
        let spans = sample(name);
        let mut expected: BTreeMap<i64, i64> = BTreeMap::new();
        for span in spans.spans.iter().filter(|span| matches!(span.what(), What::Arc(Arc::Wakeup { .. }))) {
            *expected.entry(span.dur.0 * 10).or_default() += 1;
        }
        let mut found: BTreeMap<i64, i64> = BTreeMap::new();
        for ((kind, program, was_shared, ns), times) in table(spans) {
            shared += times * i64::from(was_shared.unwrap_or(0));
            if kind == "wakeup" {
                assert!(was_shared.is_none() && !program.is_empty(), "{name}: {program}");
                *found.entry(ns).or_default() += times;
            }
        }
        assert_eq!(found, expected, "{name}");
    }
    assert!(shared > 10, "{shared}");
}
