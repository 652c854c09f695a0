// SPDX-License-Identifier: BSD-3-Clause
//! Requests as OpenTelemetry's traces: OTLP in JSON, one line for each request, in the format of its collector's file
//! receiver.
//!
//! A request is a span. The system calls of its thread are below it, and the waits, each with its reason, below these
//! or the request itself. A program can put the mark `trace:ID` or `trace:ID-PARENT` into its request, both in
//! hexadecimal as in the header `traceparent`; this gives the request its place in a trace of the program's own.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{json, Value};

use crate::event::date;
use crate::id::Pid;
use crate::span::what::What;
use crate::span::Span;
use crate::time::Time;
use crate::why::request::{calls, Request};
use crate::why::timeline::{end, Timeline};

/// Start of these marks.
const TRACE: &str = "trace:";
/// Kind of all spans: internal.
const INTERNAL: u8 = 1;

/// Amount written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Requests.
    pub requests: usize,
    /// Spans, including those of requests.
    pub spans: usize,
    /// Requests with a mark that names their trace.
    pub told: usize,
}

/// Trace of a request, and its parent span in that trace.
type Place = (String, Option<String>);

/// A piece of a thread's time that becomes a span.
#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    name: &'a str,
    start: Time,
    end: Time,
    waits: bool,
}

/// Writes requests that were requested as `asked`.
///
/// # Errors
/// Whatever error `out` returns.
pub fn write(timeline: &Timeline, asked: &str, requests: &[Request], out: &mut impl Write) -> io::Result<Written> {
    let (pieces, told) = (pieces(timeline), told(timeline));
    let meta = &timeline.spans.meta;
    let base = i128::from(date::seconds(&meta.tracebase).unwrap_or(0)) * 1_000_000_000;
    let at = |time: Time| (base + i128::from(time.0) * 10).max(0).to_string();
    let mut written = Written { requests: requests.len(), ..Written::default() };
    for request in requests {
        let place = told.get(&request.pid).and_then(|marks| within(marks, |mark| mark.0, request).first());
        written.told += usize::from(place.is_some());
        let (trace, parent) = place.map_or_else(|| (own_trace(meta.randomid, request), None), |mark| mark.1.clone());
        let mut spans: Vec<Value> = Vec::new();
        let mut id = || {
            written.spans += 1;
            format!("{:08x}{:08x}", meta.randomid, written.spans)
        };
        let mut span = |piece: Piece, parent: Option<&String>, attributes: Value| {
            let id = id();
            let mut span = json!({
                "traceId": trace, "spanId": id, "name": piece.name, "kind": INTERNAL,
                "startTimeUnixNano": at(piece.start), "endTimeUnixNano": at(piece.end), "attributes": attributes,
            });
            parent.into_iter().for_each(|parent| span["parentSpanId"] = json!(parent));
            spans.push(span);
            id
        };
        let of_request = Piece { name: asked, start: request.start, end: request.end, waits: false };
        let thread = json!([
            {"key": "thread.id", "value": {"intValue": request.pid.number().to_string()}},
            {"key": "thread.name", "value": {"stringValue": timeline.name(request.pid)}},
        ]);
        let top = span(of_request, parent.as_ref(), thread);
        let mut call: Option<(Time, String)> = None;
        let own = pieces.get(&request.pid).map_or(&[][..], |own| within(own, |piece| piece.start, request));
        for piece in own {
            let piece = Piece { end: piece.end.min(request.end), ..*piece };
            let kind =
                json!([{"key": "kutrace.kind", "value": {"stringValue": if piece.waits { "wait" } else { "call" }}}]);
            let inside = call.as_ref().filter(|(until, _)| piece.start < *until).map(|(_, id)| id);
            let id = span(piece, Some(inside.unwrap_or(&top)), kind);
            if !piece.waits {
                call = Some((piece.end, id));
            }
        }
        let machine = meta.machines.get(request.pid.machine() as usize);
        let mut resource = json!({"attributes": [
            {"key": "service.name", "value": {"stringValue": timeline.program(request.pid)}},
            {"key": "host.name", "value": {"stringValue": machine.map_or(&meta.host, |machine| &machine.name)}},
        ]});
        let told = [
            ("os.description", Some(meta.kernel.as_str()).filter(|_| machine.is_none())),
            ("kutrace.cgroup", meta.cgroup_of(request.pid)),
        ];
        for (key, value) in told.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            if let Some(attributes) = resource["attributes"].as_array_mut() {
                attributes.push(json!({"key": key, "value": {"stringValue": value}}));
            }
        }
        let scoped = json!([{"scope": {"name": "kutrace", "version": env!("CARGO_PKG_VERSION")}, "spans": spans}]);
        writeln!(out, "{}", json!({"resourceSpans": [{"resource": resource, "scopeSpans": scoped}]}))?;
    }
    Ok(written)
}

/// Returns the calls and waits of each thread, by start; if two start together, the call comes first.
fn pieces<'a>(timeline: &Timeline<'a>) -> BTreeMap<Pid, Vec<Piece<'a>>> {
    let spans = timeline.spans;
    let (called, _) = calls(timeline, |whole| whole.work.is_call());
    let called = called
        .into_iter()
        .map(|(name, r)| (r.pid, Piece { name: &spans.names[name], start: r.start, end: r.end, waits: false }));
    let waits = timeline.rows.iter().filter(|s| matches!(s.what(), What::Wait(_)));
    let waited = waits.filter_map(|s| {
        Some((s.thread()?, Piece { name: timeline.text(&s), start: s.start, end: end(&s), waits: true }))
    });
    let mut all: BTreeMap<Pid, Vec<Piece>> = BTreeMap::new();
    called.chain(waited).for_each(|(pid, piece)| all.entry(pid).or_default().push(piece));
    all.values_mut().for_each(|pieces| pieces.sort_by_key(|piece| (piece.start, piece.waits)));
    all
}

/// Returns where programs named the trace that their work belongs to, by thread and time.
fn told(timeline: &Timeline) -> BTreeMap<Pid, Vec<(Time, Place)>> {
    let mut all: BTreeMap<Pid, Vec<(Time, Place)>> = BTreeMap::new();
    for (span, place) in timeline.points().filter_map(|s: Span| Some((s, place(timeline.text(&s))?))) {
        span.thread().into_iter().for_each(|pid| all.entry(pid).or_default().push((span.start, place.clone())));
    }
    all
}

/// Returns the place that a mark names: `trace:ID-PARENT`, or the fields `trace_id` and `span_id` of
/// `kutrace::trace_id`.
fn place(text: &str) -> Option<Place> {
    let (trace, parent) = match text.strip_prefix(TRACE).map(|ids| (ids, ids.split_once('-'))) {
        Some((_, Some((trace, parent)))) => (trace, Some(parent)),
        Some((trace, None)) => (trace, None),
        None => (field(text, "trace_id")?, field(text, "span_id")),
    };
    let is_id = |id: &str, digits: usize| {
        id.len() == digits && id.bytes().all(|c| c.is_ascii_hexdigit()) && id.bytes().any(|c| c != b'0')
    };
    let fits = is_id(trace, 32) && parent.is_none_or(|parent| is_id(parent, 16));
    fits.then(|| (trace.to_ascii_lowercase(), parent.map(str::to_ascii_lowercase)))
}

/// Returns the value of a field of a mark such as `reply(status=200,path=/index)`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let fields = text.strip_suffix(')')?.split_once('(')?.1.split(',');
    fields.filter_map(|field| field.split_once('=')).find(|(its, _)| *its == name).map(|(_, value)| value)
}

/// Returns the id of a trace that contains only this request.
fn own_trace(randomid: u32, request: &Request) -> String {
    format!("{randomid:08x}{:08x}{:016x}", request.pid.number(), request.start.0)
}

/// Returns the items, from a list ordered by time, that start within a request.
fn within<'a, T>(all: &'a [T], start: impl Fn(&T) -> Time, request: &Request) -> &'a [T] {
    let first = all.partition_point(|one| start(one) < request.start);
    let last = all.partition_point(|one| start(one) < request.end);
    &all[first..last.max(first)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_a_trace_only_in_its_form() {
        let (id, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        assert_eq!(place(&format!("trace:{id}")), Some((id.to_string(), None)));
        assert_eq!(
            place(&format!("trace:{}-{parent}", id.to_uppercase())),
            Some((id.to_string(), Some(parent.to_string())))
        );
        let told = (id.to_string(), Some(parent.to_string()));
        assert_eq!(place(&format!("otel(trace_id={id},span_id={parent})")), Some(told));
        assert_eq!(place(&format!("reply(status=200,trace_id={id})")), Some((id.to_string(), None)));
        assert_eq!(place(&format!("otel(trace_id={id},span_id=12)")), None);
        for wrong in [
            "otel(trace_id=4bf9)",
            "otel(trace_id=",
            "otel()",
            "trace:",
            "4bf9",
            "trace:4bf9",
            "trace:00000000000000000000000000000000",
            "trace:é",
        ] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
        assert_eq!(place(&format!("trace:{id}-12")), None);
    }
}
