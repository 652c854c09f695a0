// SPDX-License-Identifier: BSD-3-Clause
//! Requests in a page: its program adds up values computed here, and gets the same numbers as the terminal.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use kutrace_tests::skip::skip;
use postprocess::id::Pid;
use postprocess::sink::page;
use postprocess::span::what::STALLED;
use postprocess::span::Spans;
use postprocess::why::carry::carried;
use postprocess::why::cause::Kind;
use postprocess::why::compare::{Apart, Compared, Excess};
use postprocess::why::event::Event;
use postprocess::why::{explain, Question, Timeline, Why};
use regex::Regex;
use serde_json::{json, Value};

use crate::why::{at_frequency, counted, made, sample, spans, taking_turns};

/// The page of `spans`, with its requests if there are any.
fn page_of(spans: &Spans) -> Vec<u8> {
    let mut page = Vec::new();
    page::render_with(spans, carried(spans).as_ref(), &mut page).unwrap();
    page
}

/// The page's own report of the requests of `spans`; `None` without node.
fn said_by_page(spans: &Spans) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("t.html");
    fs::write(&page, page_of(spans)).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("viewer/support/compared.mjs");
    let out = match Command::new("node").arg(program).arg(&page).output() {
        // `cargo xtask test` has installed it.
        Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("KUTRACE_XTASK").is_none() => {
            skip("the requests of pages", "there is no node: apt-get install nodejs");
            return None;
        }
        out => out.expect("node runs: apt-get install nodejs"),
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

/// Returns whether only the terminal has this note on a cause, since it needs spans.
fn is_of_spans(note: &str) -> bool {
    ["there ran ", "asleep in ", "while another CPU was idle ", "lock 0x"].iter().any(|own| note.starts_with(own))
        || [" samples: ", " locks"].iter().any(|own| note.contains(own))
}

/// A sentence without its first duration, which the page gives with more digits.
fn without_time(verdict: &str) -> String {
    let time = Regex::new("[0-9.]+ (ns|us|µs|ms|s) more").unwrap();
    time.replace(verdict, "more").into_owned()
}

/// The same, in the terminal's report.
fn said_by_terminal(why: &Why) -> Value {
    let notes = |detail: &[String]| -> Vec<String> {
        let kept = detail.iter().filter(|note| !is_of_spans(note));
        kept.map(|note| note.replace("per slow request", "per request").replace("per normal one", "per other one"))
            .collect()
    };
    let excess = |cause: &Excess| {
        let Excess { cause, time, share, in_slow, in_normal, detail, .. } = cause;
        json!([cause, time, share, in_slow, in_normal, notes(detail)])
    };
    let compared = why.compared.as_ref();
    let still = compared.and_then(|compared| compared.apart.as_ref()).map(|Apart { slow, excess, cause }| {
        json!({
            "excess": excess, "time": cause.time, "inSlow": cause.in_slow, "inNormal": cause.in_normal, "slow": slow,
        })
    });
    let event = |e: &Event| json!([e.start, e.dur, e.thread, e.requests, e.cause, e.time]);
    let events: Vec<Value> = compared.into_iter().flat_map(|compared| &compared.events).map(event).collect();
    let parts: Vec<Value> = why.causes.iter().map(|p| json!([p.cause, p.time, p.share, p.requests])).collect();
    json!({
        "asked": why.asked, "verdict": without_time(&why.verdict), "count": why.count, "unfinished": why.unfinished, "total": why.total, "amiss": 0, "leftOut": why.left_out, "parts": parts,
        "still": still, "events": events, "eventCount": compared.map_or(0, |compared| compared.event_count),
        "compared": compared.map(|compared| json!({
            "slow": compared.slow, "normal": compared.normal, "excess": compared.excess, "leftOut": compared.left_out,
            "causes": compared.causes.iter().map(excess).collect::<Vec<_>>(),
        })),
    })
}

/// The page's answer in the terminal's form.
fn in_form(page: &Value) -> Value {
    let list = |causes: &Value, fields: &[&str]| -> Vec<Value> {
        let of = |cause: &Value| fields.iter().map(|field| cause[field].clone()).collect();
        causes.as_array().unwrap().iter().map(of).collect()
    };
    let compared = &page["compared"];
    // The terminal has as many as causes.
    let shown = page["events"].as_array().unwrap().iter().take(Question::default().top).cloned().collect();
    let excess = ["words", "time", "share", "inSome", "inOthers", "notes"];
    json!({
        "asked": page["asked"], "verdict": without_time(page["verdict"].as_str().unwrap()), "count": page["count"], "unfinished": page["unfinished"], "total": page["total"], "amiss": page["amiss"],
        "leftOut": page["parts"]["leftOut"],
        "parts": list(&page["parts"]["causes"], &["words", "time", "share", "inSome"]),
        "still": page["still"],
        "events": list(&shown, &["start", "dur", "thread", "count", "cause", "time"]),
        "eventCount": page["events"].as_array().unwrap().len(),
        "compared": compared.is_object().then(|| json!({
            "slow": page["slow"], "normal": page["normal"], "excess": compared["excess"], "leftOut": compared["leftOut"],
            "causes": list(&compared["causes"], &excess),
        })),
    })
}

/// JSON as it reads back: the last digit of a number may differ from the written one; whole numbers are written as the
/// others.
fn as_read(value: &Value) -> Value {
    as_floats(serde_json::from_str(&value.to_string()).unwrap())
}

fn as_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(list) => list.into_iter().map(as_floats).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, as_floats(value))).collect(),
        other => other,
    }
}

fn assert_same(name: &str, spans: &Spans) -> Option<Why> {
    let why = explain(&Timeline::new(spans), &Question::default()).unwrap();
    let page = said_by_page(spans)?;
    assert_eq!(as_floats(in_form(&page)), as_read(&said_by_terminal(&why)), "{name}");
    Some(why)
}

#[test]
fn page_and_terminal_come_to_the_same_numbers() {
    let mut compared = 0;
    for name in ["redis", "convoy", "hello", "disk", "pipeline", "slices", "faults", "web"] {
        let Some(why) = assert_same(name, &sample(name)) else { return };
        compared += usize::from(why.compared.is_some_and(|compared| compared.causes.len() > 1));
    }
    assert!(compared >= 2, "{compared} with something that stands out");
}

#[test]
fn page_and_terminal_agree_on_who_is_to_blame_in_many_requests() {
    for threads in [1, 2] {
        assert_same("in turn", &spans(&taking_turns(threads)));
    }
}

/// Counts are carried along, and a cause that ran at another pace is explained from more of it.
#[test]
fn page_and_terminal_agree_on_what_ran_slower() {
    let counted = [counted(0x80, 8, 2), counted(0xa0, 8, 7), counted(0x20, 0, 11), spans(&at_frequency(1_000))];
    for (spans, unit) in
        counted.iter().zip(["instructions per cycle", "instructions per", "cache misses per us", "GHz"])
    {
        let Some(why) = assert_same(unit, spans) else { return };
        let causes = why.compared.unwrap().causes;
        assert!(causes.iter().any(|cause| cause.cause.contains(unit)), "{causes:?}");
    }
}

/// Requests of which some wait while `hog` runs, and half of those for longer, as the CPU stood still.
fn standing_still(hog_for: u64) -> Spans {
    let mut still = false;
    let bytes = made(60, 5, |trace, at| {
        still = !still;
        let (pid, time) = if still { (301, 6_000) } else { (300, hog_for) };
        trace.cpu(0).switch(at + 10, pid, "hog").task(at + 30, pid, "hog", None).switch(at + time, 100, "worker");
        at + time + 20
    });
    let mut spans = spans(&bytes);
    let its = spans.spans.iter_mut().filter(|span| span.is_own_code() && span.thread() == Some(Pid::new(301)));
    its.for_each(|span| (span.what, span.pid) = (STALLED, None));
    spans
}

#[test]
fn cpus_that_stood_still_do_not_hide_what_made_others_slow() {
    let mean = |compared: &Compared| (compared.slow.mean / 1e3).round();
    let compared = assert_same("hog", &standing_still(3_000)).and_then(|why| why.compared);
    let Some(compared) = compared else { return };
    assert_eq!((mean(&compared), &*compared.causes[0].culprit), (3.0, "hog.300"), "{compared:?}");
    assert!(compared.causes.iter().all(|cause| cause.kind != Kind::Stalled));
    let apart = compared.apart.unwrap();
    assert_eq!((apart.slow, apart.cause.rank, apart.cause.in_slow, apart.cause.in_normal), (5, 0, 5, 0));
    assert!(apart.cause.kind == Kind::Stalled && apart.cause.share > 0.9, "{apart:?}");
    // Where nothing else stands out, it is a cause like the others.
    let compared = assert_same("still", &standing_still(60)).and_then(|why| why.compared).unwrap();
    assert_eq!((mean(&compared), compared.causes[0].kind, compared.apart), (6.0, Kind::Stalled, None));
}

#[test]
fn a_page_without_requests_is_as_it_was() {
    let mut spans = sample("redis");
    let without = |spans: &Spans| {
        let mut page = Vec::new();
        page::render(spans, &mut page).unwrap();
        page
    };
    assert!(page_of(&spans).len() > without(&spans).len());
    // One thread and nothing that begins and ends: the terminal then divides its time, which is not a request.
    spans.spans.retain(|span| span.is_own_code());
    assert_eq!(page_of(&spans), without(&spans));
    assert_eq!(page_of(&Spans::default()), without(&Spans::default()));
}

#[test]
fn coarse_spans_have_no_requests() {
    use postprocess::span::limit::{Keep, SpanLimit};
    let all = sample("redis");
    assert!(carried(&all).is_some());
    let max = all.spans.len() / 2;
    let coarse = SpanLimit::new(max).finish(all);
    assert!(coarse.spans.len() <= max && carried(&coarse).is_none());
}

#[test]
fn requests_do_not_change_what_is_lifted_out_of_a_page() {
    let spans = sample("convoy");
    let page = String::from_utf8(page_of(&spans)).unwrap();
    assert!(page.contains("\"requests\":{\"asked\":\"futex: "));
    let lifted = page::lift(&page).unwrap();
    assert_eq!((lifted.names, lifted.spans), (spans.names, spans.spans));
}
