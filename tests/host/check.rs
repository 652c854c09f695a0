// SPDX-License-Identifier: BSD-3-Clause
//! The spans match the events: the samples pass the independent checker, and it sees each kind of fault.

use std::fs;
use std::path::Path;

use kutrace_tests::check::Texts;
use kutrace_tests::cut::beginning;

/// Entries of a sample that has one of each kind that a fault is planted in.
const ENOUGH: usize = 3_000;

fn sample(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name)).unwrap()
}

fn check(texts: &Texts) -> Result<(), String> {
    texts.check(tempfile::tempdir().unwrap().path())
}

#[test]
fn the_samples_say_what_happened() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".trace") {
            check(&Texts::of(&sample(&name))).unwrap_or_else(|said| panic!("{name}: {said}"));
        }
    }
}

/// The first line of `text` that contains all of `parts`.
fn line<'a>(text: &'a str, parts: &[&str]) -> &'a str {
    text.lines().find(|line| parts.iter().all(|part| line.contains(part))).unwrap_or_else(|| panic!("no {parts:?}"))
}

/// `text` with the column of this place in a line of spans set to `value`.
fn with(text: &str, line: &str, column: usize, value: &str) -> String {
    let mut columns: Vec<&str> = line.trim_start_matches('[').split(',').collect();
    columns[column] = value;
    text.replacen(line, &format!("[{}", columns.join(",")), 1)
}

/// The checker reports this fault under the name of its question.
fn is_seen(question: &str, texts: &Texts) {
    let said = check(texts).expect_err(question);
    assert!(said.contains(&format!("{question}: ")), "{question}: {said}");
}

#[test]
fn every_kind_of_fault_is_seen() {
    let [right, program] = ["hello.trace", "faults.trace"].map(|name| Texts::of(&beginning(&sample(name), ENOUGH)));
    [&right, &program].into_iter().for_each(|texts| check(texts).unwrap());
    let spans = |spans: String| {
        assert_ne!(spans, right.spans);
        Texts { spans, ..right.clone() }
    };
    let openat = line(&right.spans, &[", 2305, ", ", 3, 0, \"openat\""]);
    is_seen("cover", &spans(right.spans.replacen(&format!("{openat}\n"), "", 1)));
    is_seen("cover", &spans(with(&right.spans, openat, 5, " 2049")));
    is_seen("value", &spans(with(&right.spans, openat, 7, " 4")));
    is_seen("value", &spans(with(&right.spans, openat, 6, " 4")));
    let elsewhere = with(&right.spans, openat, 2, " 3");
    is_seen("twice", &spans(elsewhere.replacen("\"events\" : [\n", &format!("\"events\" : [\n{openat}\n"), 1)));
    let arc = line(&right.spans, &[", -3, "]);
    is_seen("arc", &spans(right.spans.replacen(&format!("{arc}\n"), "", 1)));
    is_seen("arc", &spans(with(&right.spans, arc, 3, " 9")));
    is_seen("arc", &spans(with(&right.spans, arc, 6, " 7")));
    let sleep = line(&right.spans, &[", -1, ", "wait_disk"]);
    is_seen("wait", &spans(right.spans.replacen(&format!("{sleep}\n"), "", 1)));
    is_seen("wait", &spans(right.spans.replacen(sleep, &sleep.replace("wait_disk", "wait_pipe"), 1)));
    let idle = line(&right.spans, &[" 65536, 0, ", "-idle-"]);
    is_seen("stall", &spans(right.spans.replacen(idle, &idle.replace(" 65536, 0, ", " 196610, 65536, "), 1)));
    let tick = line(&program.events, &[" 640 ", " PC="]);
    let kernel = program.events.replacen(tick, &tick.replace(" 640 ", " 641 "), 1);
    let tick = line(&program.events, &[" 641 ", " PC="]);
    let user = program.events.replacen(tick, &tick.replace(" 641 ", " 640 "), 1);
    assert_ne!(kernel, user);
    is_seen("sample", &Texts { events: user, ..program.clone() });
    let faults = line(&right.summary, &["page_fault"]);
    let count = faults.split_whitespace().nth(4).unwrap();
    let summary = right.summary.replacen(faults, &faults.replacen(count, "99999", 1), 1);
    is_seen("count", &Texts { summary, ..right.clone() });
}
