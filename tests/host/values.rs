// SPDX-License-Identifier: BSD-3-Clause
//! Arguments and return values: the spans have exactly the recorded ones.

use std::fs;
use std::path::{Path, PathBuf};

use kutrace_format::abi::event::SYSCALL_RETURN;
use kutrace_tests::calls::{calls, contradictions, is_call, Call, Said};
use kutrace_tests::{busy, TraceBuilder};
use postprocess::event::write::Writer;
use postprocess::sink;
use postprocess::source;
use postprocess::span::build;
use serde_json::Value;

/// The event text of a raw trace, and the JSON of its spans.
fn stages(bytes: &[u8]) -> (String, String) {
    let events = source::decode(bytes).unwrap();
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text);
    events.events.iter().for_each(|e| writer.event(e, &events.names).unwrap());
    writer.finish(&events.meta).unwrap();
    let mut spans = Vec::new();
    sink::json::write(&build(events).0, &mut spans).unwrap();
    (String::from_utf8(text).unwrap(), String::from_utf8(spans).unwrap())
}

/// Arguments and return values of system calls in the JSON.
fn said(spans: &str) -> Vec<Said> {
    let parsed: Value = serde_json::from_str(spans).unwrap();
    let units = |seconds: &Value| (seconds.as_f64().unwrap() * 1e8).round() as i64;
    let one = |s: &Value| {
        let event = u32::try_from(s[5].as_i64().unwrap()).ok().filter(|&event| is_call(event))?;
        let (start, end) = (units(&s[0]), units(&s[0]) + units(&s[1]));
        Some(Said { start, end, pid: s[3].as_i64().unwrap(), event, text: format!("{} {}", s[6], s[7]) })
    };
    parsed["events"].as_array().unwrap().iter().filter_map(one).collect()
}

fn text_of(call: &Call, returned: bool) -> String {
    let shown = |value: Option<i64>| value.map_or("null".to_string(), |value| value.to_string());
    format!("{} {}", shown(call.arg), shown(call.ret.filter(|_| returned)))
}

/// Samples, and the trace of the demo if that has run.
fn traces() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let samples = fs::read_dir(here.join("../samples")).unwrap().map(|entry| entry.unwrap().path());
    let demo = std::env::var_os("KUTRACE_DEMO").map_or(here.join("../target/demo"), PathBuf::from).join("t.trace");
    let raw =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "trace" || ending == "raw") && path.exists();
    samples.chain([demo]).filter(raw).collect()
}

#[test]
fn every_call_has_the_values_that_were_recorded_and_no_piece_of_one_has_others() {
    let traces = traces();
    assert!(traces.len() >= 7);
    for path in traces {
        let (text, spans) = stages(&fs::read(&path).unwrap());
        let said = said(&spans);
        assert!(!said.is_empty());
        let found = contradictions(&text, &said, text_of);
        assert!(
            found.is_empty(),
            "{}: {}, such as\n{}",
            path.display(),
            found.len(),
            found[..found.len().min(9)].join("\n")
        );
    }
}

#[test]
fn busy_cpus_keep_the_values_of_every_call() {
    for seed in 0..8 {
        let (text, spans) = stages(&busy(3, 3_000, seed).bytes());
        let found = contradictions(&text, &said(&spans), text_of);
        assert!(found.is_empty(), "{}, such as\n{}", found.len(), found[..found.len().min(9)].join("\n"));
    }
}

#[test]
fn what_contradicts_the_events_is_found() {
    let (text, spans) = stages(&fs::read(&traces()[0]).unwrap());
    let said = said(&spans);
    let last = said.iter().rposition(|s| !s.text.ends_with("null")).unwrap();
    let piece = said.iter().position(|s| !s.text.starts_with("null") && s.text.ends_with("null")).unwrap();
    for (at, text_then) in [(last, "9999 null"), (last, "3 77777"), (piece, "0 0"), (piece, "null null")] {
        let mut changed = said.clone();
        changed[at].text = text_then.to_string();
        assert!(!contradictions(&text, &changed, text_of).is_empty(), "{text_then}");
    }
    assert!(!contradictions(&text, &said[..last], text_of).is_empty(), "a return that is nowhere");
}

/// Values at the edges of 8, 16 and 32 bits, and those that the kernel returns for a call that a signal interrupted.
#[test]
fn thirty_two_bits_with_their_sign_come_through() {
    let values = [
        0,
        1,
        127,
        128,
        255,
        65_408,
        65_500,
        65_534,
        65_535,
        65_536,
        131_070,
        262_081,
        0x7fff_f000,
        -1,
        -4,
        -11,
        -127,
        -128,
        -129,
        -512,
        -516,
        -4095,
        i32::MIN,
        i32::MAX,
    ];
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(7, "a", None);
    for (n, &value) in (0u64..).zip(&values) {
        cpu.call(100 + 40 * n, 0, 3).entry(110 + 40 * n, SYSCALL_RETURN, &[value as u32]);
    }
    let (text, spans) = stages(&trace.bytes());
    let returned: Vec<i64> = calls(&text)[&7].iter().filter_map(|call| call.ret).collect();
    assert_eq!(returned, values.map(i64::from));
    let said: Vec<String> = said(&spans).into_iter().map(|s| s.text).collect();
    assert_eq!(said, values.map(|value| format!("3 {value}")));
}
