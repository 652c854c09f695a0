// SPDX-License-Identifier: BSD-3-Clause
//! The report of `top` on each second equals a snapshot of that time; and its screen obeys keys.

use std::collections::BTreeMap;
use std::fs;

use postprocess::event::number::Level;
use postprocess::event::what::What;
use postprocess::span::what::Share;
use postprocess::time::Time;
use serde_json::Value;

use crate::guest;
use crate::trace::Recording;

/// By how much its clock and that of the file may differ, since each has measured the counter's rate: 20 us.
const SLACK: Time = Time(2_000);

/// A time in JSON.
fn time(value: &Value) -> Time {
    Time(value.as_i64().unwrap_or_else(|| panic!("no time: {value}")))
}

/// The part of a span within a range.
fn within((start, dur): (Time, Time), (from, to): (Time, Time)) -> Time {
    ((start + dur).min(to) - start.max(from)).max(Time::ZERO)
}

/// Number of starts of each call in a time.
fn calls(trace: &Recording, (from, to): (Time, Time)) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for e in trace.events.events.iter().filter(|e| from <= e.ts && e.ts < to) {
        if matches!(e.what, What::Call(work) if matches!(work.level(), Level::Syscall | Level::Sched)) {
            *counts.entry(trace.event_name(e).to_string()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn each_second_is_what_a_snapshot_has_of_it() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        kutrace_control top --count 1 2>$SHARE/refused && exit 1
        kutrace_control gowrap
        (while :; do dd if=/dev/zero of=/dev/null bs=1 count=300 2>/dev/null; sleep 0.01; done) & load=$!
        export LD_LIBRARY_PATH=$(dirname $(command -v kutrace_control))
        (while :; do $BIN/programs calls 10 >/dev/null; sleep 0.01; done) & marks=$!
        sleep 1
        kutrace_control top --json --count 3 --top 100000 >$SHARE/lines
        kutrace_control snapshot $SHARE/t.raw
        kutrace_control top --count 1 --top 3 >$SHARE/text
        kill $load $marks
        "#,
    );
    let refused = fs::read_to_string(run.file("refused")).unwrap();
    assert!(refused.contains("no trace is running") && refused.contains("hint:"), "{refused}");
    let text = fs::read_to_string(run.file("text")).unwrap();
    assert!(text.contains("PROGRAM") && text.contains("dd") && text.contains("SPAN"), "{text}");
    let trace = Recording::read(&run.file("t.raw"));
    let lines = fs::read_to_string(run.file("lines")).unwrap();
    assert_eq!(lines.lines().count(), 3);
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let second = &line["second"];
        assert_eq!((line["missed_blocks"].as_u64(), second["lost"].as_u64()), (Some(0), Some(0)));
        assert_eq!(second["base"], trace.spans.meta.tracebase.as_str());
        let (from, to) = (time(&second["start"]), time(&second["end"]));
        let least = calls(&trace, (from + SLACK, to - SLACK));
        let most = calls(&trace, (from - SLACK, to + SLACK));
        let first = second["calls"]["first"].as_array().unwrap();
        let told =
            first.iter().map(|call| (call["name"].as_str().unwrap().to_string(), call["count"].as_u64().unwrap()));
        let told: BTreeMap<String, u64> = told.collect();
        assert!(told["read"] > 100, "{told:?}");
        for name in most.keys().chain(told.keys()) {
            let of = |counts: &BTreeMap<String, u64>| counts.get(name).copied().unwrap_or_default();
            assert!((of(&least)..=of(&most)).contains(&of(&told)), "{name}: {} of {least:?}", of(&told));
        }
        // Spans of programs, by name: each of those programs is in two, one in the other.
        let spans = second["spans"]["first"].as_array().unwrap();
        for name in ["all", "loop"] {
            let span = spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{spans:?}"));
            assert!(span["count"].as_u64().unwrap() > 0 && time(&span["longest"]) > Time::ZERO, "{span}");
            assert!(span["thread"].as_str().unwrap().starts_with("programs."), "{span}");
        }
        for cpu in second["cpus"].as_array().unwrap() {
            let number = cpu["cpu"].as_u64().unwrap() as u32;
            let mut sums: BTreeMap<&str, Time> = BTreeMap::new();
            for span in trace.spans.spans.iter().filter(|s| s.cpu.is_some_and(|cpu| cpu.number() == number)) {
                let Some(activity) = span.activity() else { continue };
                let what = match activity.share() {
                    Share::User => "user",
                    Share::Kernel => "kernel",
                    Share::Idle => "idle",
                    Share::Stalled => "stalled",
                    Share::Lost | Share::Offline => "lost",
                };
                *sums.entry(what).or_default() += within((span.start, span.dur), (from, to));
            }
            let of = |what: &str| sums.get(what).copied().unwrap_or_default();
            // Only the file has the times at which a CPU stood still.
            let slack = SLACK + SLACK + of("stalled") + (to - from) / 200;
            for what in ["user", "kernel", "idle"] {
                let told = time(&cpu[what]);
                assert!((told - of(what)).abs() < slack, "CPU {number}, {what}: {told} and {:?}", of(what));
            }
        }
    }
}

#[test]
fn the_screen_obeys_keys_and_leaves_the_terminal_as_it_was() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        kutrace_control gowrap
        export TERM=xterm
        shown() { await grep -q "$1" /tmp/screen; }
        keys() {
            shown PROGRAM; printf 2
            sleep 1; printf m
            shown 'SYSTEM CALL'; printf ' '
            shown HELD; printf q
            shown status=
        }
        at='stty rows 30 cols 100; kutrace_control top; echo status=$?; stty -a'
        keys | script -qefc "$at" /dev/null >/tmp/screen
        cp /tmp/screen $SHARE
        "#,
    );
    let screen = fs::read_to_string(run.file("screen")).unwrap();
    let (during, after) = screen.split_once("\u{1b}[?1049l").unwrap_or_else(|| panic!("{screen}"));
    assert!(during.contains("\u{1b}[?1049h"), "{during}");
    for text in ["events/s", "PROGRAM", "SYSTEM CALL", "q quit", "HELD"] {
        assert!(during.contains(text), "no {text}: {during}");
    }
    assert!(after.contains("status=0") && after.contains(" icanon") && after.contains(" echo "), "{after}");
}
