// SPDX-License-Identifier: BSD-3-Clause
//! Requests as traces of OpenTelemetry, read back and held against the spans.

use std::collections::{BTreeMap, BTreeSet};

use kutrace_format::file::NameKind;
use kutrace_tests::draw::sample;
use kutrace_tests::TraceBuilder;
use postprocess::direct::spans_of_raw;
use postprocess::event::date;
use postprocess::machine::file::{self, Machine};
use postprocess::machine::shift::Shift;
use postprocess::sink::otlp::{write, Written};
use postprocess::source::events::read;
use postprocess::span::limit::SpanLimit;
use postprocess::span::what::What;
use postprocess::span::{build, Spans};
use postprocess::time::Time;
use postprocess::why::request::{find, Ask, Found, Request};
use postprocess::why::Timeline;
use serde_json::Value;

/// Values written for requests, one each.
fn written(spans: &Spans, ask: &Ask) -> (Vec<Request>, Written, Vec<Value>) {
    let timeline = Timeline::new(spans);
    let Found { asked, requests, .. } = find(&timeline, ask).unwrap();
    let mut out = Vec::new();
    let written = write(&timeline, &asked, &requests, &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    (requests, written, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The spans of a request.
fn spans_of(line: &Value) -> &Vec<Value> {
    line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap()
}

/// Nanoseconds of a span, from start to end.
fn times(span: &Value) -> (i64, i64) {
    let at = |key: &str| span[key].as_str().unwrap().parse().unwrap();
    (at("startTimeUnixNano"), at("endTimeUnixNano"))
}

#[test]
fn a_request_has_its_calls_and_its_waits_within_it() {
    for name in ["redis", "disk", "pipeline"] {
        let spans = sample(name);
        let (requests, told, lines) = written(&spans, &Ask::Best);
        assert!(requests.len() > 5, "{name}: {}", requests.len());
        assert_eq!((lines.len(), told.requests, told.told), (requests.len(), requests.len(), 0));
        let base = date::seconds(&spans.meta.tracebase).unwrap() * 1_000_000_000;
        let (mut ids, mut waits) = (BTreeSet::new(), 0);
        for (request, line) in requests.iter().zip(&lines) {
            let all = spans_of(line);
            let by_id: BTreeMap<&str, &Value> = all.iter().map(|s| (s["spanId"].as_str().unwrap(), s)).collect();
            assert_eq!(times(&all[0]), (base + request.start.0 * 10, base + request.end.0 * 10), "{name}");
            assert!(all[0].get("parentSpanId").is_none());
            let mut waited = 0;
            for span in all {
                assert!(ids.insert(span["spanId"].as_str().unwrap()), "{name}: an id twice");
                assert_eq!((span["traceId"].as_str().unwrap().len(), &span["traceId"]), (32, &all[0]["traceId"]));
                let (from, to) = times(span);
                if let Some(parent) = span.get("parentSpanId") {
                    let (begin, end) = times(by_id[parent.as_str().unwrap()]);
                    assert!(begin <= from && from <= to && to <= end, "{name}: {span}");
                }
                if span["attributes"][0]["value"]["stringValue"] == "wait" {
                    waited += to - from;
                    waits += 1;
                }
            }
            // As long as the thread waited, counted by the spans.
            let own = spans.spans.iter().filter(|s| s.pid == Some(request.pid) && matches!(s.what(), What::Wait(_)));
            let within = own.filter(|s| (request.start..request.end).contains(&s.start));
            let expected: Time = within.map(|s| (s.start + s.dur).min(request.end) - s.start).sum();
            assert_eq!(waited, expected.0 * 10, "{name}");
        }
        assert_eq!(told.spans, ids.len());
        assert!(waits > 5, "{name}: {waits}");
    }
}

/// The attributes of a resource.
fn resource(line: &Value) -> BTreeMap<&str, &str> {
    let attributes = line["resourceSpans"][0]["resource"]["attributes"].as_array().unwrap().iter();
    attributes.map(|a| (a["key"].as_str().unwrap(), a["value"]["stringValue"].as_str().unwrap())).collect()
}

#[test]
fn a_request_says_on_which_of_several_machines_it_was_and_in_which_control_group() {
    let one = |path: &str| {
        let mut trace = TraceBuilder::new(1, 1_000);
        trace.name(NameKind::Cgroup, 10, path);
        trace.cpu(0).task(50, 10, "run", None).switch(100, 10, "run").call(200, 0, 3).small_return(300, 1);
        trace.bytes()
    };
    let traces = [one("/a"), one("/b")];
    let machine =
        |name: &str| Machine { name: name.to_string(), shift: Shift::by(Time::ZERO, None), ..Machine::default() };
    let mut bytes = Vec::new();
    file::write(&[(machine("left"), &traces[0][..]), (machine("right"), &traces[1][..])], &mut bytes).unwrap();
    let call = Ask::Call("read".to_string());
    let (_, told, lines) = written(&spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).unwrap().0, &call);
    assert_eq!(told.requests, 2);
    let said: BTreeSet<_> =
        lines.iter().map(resource).map(|all| (all["host.name"], all["kutrace.cgroup"], all["service.name"])).collect();
    assert_eq!(said, BTreeSet::from([("left", "/a", "run"), ("right", "/b", "run")]));
    // Each has its own kernel, which the spans do not name.
    assert!(lines.iter().all(|line| !resource(line).contains_key("os.description")));
    let (_, _, lines) = written(&spans_of_raw(&traces[0], SpanLimit::new(usize::MAX)).unwrap().0, &call);
    let alone = resource(&lines[0]);
    assert_eq!((alone["host.name"], alone["os.description"]), ("host", "6.12.117 #1 SMP"));
}

#[test]
fn a_mark_gives_a_request_its_place_in_a_trace() {
    let (id, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let text = format!(
        "# tracer: nop\n\
         a-7 [000] d..2.  1.000000: sys_enter: NR 0 (3, 0, 0, 0, 0, 0)\n\
         a-7 [000] d..2.  1.000004: tracing_mark_write: trace:{id}-{parent}\n\
         a-7 [000] d..2.  1.000010: sys_exit: NR 0 = 1\n\
         a-7 [000] d..2.  1.000020: sys_enter: NR 0 (3, 0, 0, 0, 0, 0)\n\
         a-7 [000] d..2.  1.000030: sys_exit: NR 0 = 1\n"
    );
    let (spans, _) = build(read(text.as_bytes()).unwrap());
    let (_, told, lines) = written(&spans, &Ask::Call("read".to_string()));
    assert_eq!((told.requests, told.told), (2, 1));
    let first = &spans_of(&lines[0])[0];
    assert_eq!((first["traceId"].as_str(), first["parentSpanId"].as_str()), (Some(id), Some(parent)));
    let second = &spans_of(&lines[1])[0];
    assert!(second["traceId"].as_str() != Some(id) && second.get("parentSpanId").is_none());
    assert_eq!(times(first), (1_000_000_000, 1_000_010_000));
}
