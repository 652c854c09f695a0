// SPDX-License-Identifier: BSD-3-Clause
//! The original's JSON, version 3: one span a line, so that `grep` and `sort` work on it.
//!
//! A span is `[start s, duration s, cpu, pid, rpc, event, arg, ret, ipc, "name"]`, times with eight decimals.
//! The list ends with an entry at 999.0 seconds, as the original's viewer expects. Written lines are ordered by time;
//! read lines may be in any order.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use serde::Deserialize;

use super::{Meta, Span, Spans};
use crate::event::digits;

/// Units of [`Span::start`] in a second.
const PER_SECOND: i64 = 100_000_000;
/// Start time of the entry that ends the list.
const END: &str = "[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]";

/// Writes `spans` as JSON.
///
/// # Errors
/// Whatever `out` answers.
pub fn write(spans: &Spans, out: &mut impl Write) -> io::Result<()> {
    let meta = &spans.meta;
    writeln!(out, "  {{")?;
    let mut key = |name: &str, value: serde_json::Value| writeln!(out, " \"{name}\" : {value},");
    key("Comment", "V2 with IPC field".into())?;
    key("axisLabelX", "Time (sec)".into())?;
    key("axisLabelY", "CPU Number".into())?;
    for (name, text) in [("cpuModelName", &meta.cpu_model), ("hostName", &meta.host), ("kernelVersion", &meta.kernel)] {
        if !text.is_empty() {
            key(name, text.as_str().into())?;
        }
    }
    key("flags", meta.flags.into())?;
    key("lost", meta.lost.into())?;
    key("mbit_sec", meta.mbit_sec.into())?;
    key("presorted", 1.into())?;
    key("quality", meta.quality.clone().into())?;
    key("randomid", meta.randomid.into())?;
    key("shortMulX", 1.into())?;
    key("shortUnitsX", "s".into())?;
    key("thousandsX", 1000.into())?;
    key("title", meta.title.as_str().into())?;
    key("tracebase", meta.tracebase.as_str().into())?;
    key("version", 3.into())?;
    writeln!(out, "\"events\" : [")?;
    let names: Vec<String> = spans.names.iter().map(|n| serde_json::Value::from(n.as_str()).to_string()).collect();
    let mut line = Vec::with_capacity(256);
    for span in &spans.spans {
        line.clear();
        put_span(&mut line, span, names.get(span.name as usize).map_or("\"\"", String::as_str));
        out.write_all(&line)?;
    }
    writeln!(out, "{END}")?;
    writeln!(out, "]}}")
}

/// One line of the list, formatted by hand: there are millions.
fn put_span(line: &mut Vec<u8>, s: &Span, name: &str) {
    line.push(b'[');
    put_seconds(line, s.start, 3);
    line.extend_from_slice(b", ");
    put_seconds(line, s.dur, 1);
    for field in [s.cpu.into(), s.pid.into(), s.rpc.into(), s.event.into(), s.arg, s.ret, s.ipc.into()] {
        line.extend_from_slice(b", ");
        digits::put(line, field);
    }
    line.extend_from_slice(b", ");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"],\n");
}

/// A time in seconds with eight decimals, its whole part right-aligned to `width`.
fn put_seconds(line: &mut Vec<u8>, units: i64, width: usize) {
    let start = line.len();
    if units < 0 {
        line.push(b'-');
    }
    let (whole, part) = (units.unsigned_abs() / PER_SECOND as u64, units.unsigned_abs() % PER_SECOND as u64);
    digits::put_unsigned(line, whole);
    let len = line.len() - start;
    if len < width {
        line.resize(start + width, b' ');
        line[start..].rotate_right(width - len);
    }
    line.push(b'.');
    let point = line.len();
    digits::put_unsigned(line, part + PER_SECOND as u64);
    line.remove(point);
}

#[derive(Deserialize)]
struct Line(f64, f64, i64, i64, i64, i64, f64, f64, i64, String);

/// Reads JSON from [`write`] or from the original's `eventtospan3`, sorted or not.
///
/// Lines that are neither metadata nor a span are counted in [`Meta::quality`].
///
/// # Errors
/// Whatever `input` answers.
pub fn read(input: &mut impl BufRead) -> io::Result<Spans> {
    let mut spans = Spans { meta: Meta { mbit_sec: 1000, ..Meta::default() }, ..Spans::default() };
    let mut ids: HashMap<String, u32> = HashMap::new();
    let mut unread = 0u64;
    let mut ended = false;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim().trim_end_matches(',');
        if text.starts_with('[') {
            match serde_json::from_str::<Line>(text) {
                Ok(end) if end.0 >= 999.0 && end.5 == 0 && end.9.is_empty() => ended = true,
                Ok(l) => push(&mut spans, &mut ids, l),
                Err(_) => unread += 1,
            }
        } else if !text.is_empty() && !read_key(&mut spans.meta, text) {
            unread += 1;
        }
    }
    if unread > 0 {
        spans.meta.quality.push(format!("{unread} lines of the JSON could not be read"));
    }
    if !ended {
        spans.meta.quality.push("the JSON ends before its end mark".to_string());
    }
    order(&mut spans.spans);
    Ok(spans)
}

/// Seconds as units of 10 ns.
pub fn units(seconds: f64) -> i64 {
    (seconds * PER_SECOND as f64).round() as i64
}

/// Units of 10 ns as seconds.
pub fn seconds(units: i64) -> f64 {
    units as f64 / PER_SECOND as f64
}

/// Puts spans in the order of [`Spans::spans`]; equal keys keep their order.
pub fn order(spans: &mut [Span]) {
    spans.sort_by_key(|s| (s.start, Reverse(s.dur), s.cpu));
}

fn push(spans: &mut Spans, ids: &mut HashMap<String, u32>, l: Line) {
    let name = *ids.entry(l.9).or_insert_with_key(|text| {
        spans.names.push(text.clone());
        spans.names.len() as u32 - 1
    });
    spans.spans.push(Span {
        start: units(l.0),
        dur: units(l.1),
        cpu: l.2 as i32,
        pid: l.3 as i32,
        rpc: l.4 as i32,
        event: l.5 as i32,
        arg: l.6 as i64,
        ret: l.7 as i64,
        ipc: l.8 as u8,
        name,
    });
}

/// Takes one `"key" : value` line or one of the brackets around the list; false if it is neither.
fn read_key(meta: &mut Meta, text: &str) -> bool {
    if matches!(text, "{" | "]}" | "]" | "}" | "\"events\" : [") {
        return true;
    }
    let Ok(serde_json::Value::Object(keys)) = serde_json::from_str(&format!("{{{text}}}")) else {
        return false;
    };
    for (key, value) in keys {
        let string = || value.as_str().unwrap_or_default().to_string();
        let number = || value.as_u64().unwrap_or_default();
        match key.as_str() {
            "title" => meta.title = string(),
            "tracebase" => meta.tracebase = string(),
            "cpuModelName" => meta.cpu_model = string(),
            "hostName" => meta.host = string(),
            "kernelVersion" => meta.kernel = string(),
            "flags" => meta.flags = number() as u32,
            "mbit_sec" => meta.mbit_sec = number() as u32,
            "randomid" => meta.randomid = number() as u32,
            "lost" => meta.lost = number(),
            "quality" => {
                let list = value.as_array().into_iter().flatten();
                meta.quality.extend(list.filter_map(|v| v.as_str().map(str::to_string)));
            }
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_the_same() {
        let span = Span { start: -1, dur: 123, cpu: 3, pid: 4_194_303, event: 0x804, arg: 65_535, ..Span::default() };
        let long = Span { start: 1_000 * PER_SECOND + 7, dur: 90_000_000_000, name: 1, ret: 65_500, ..span };
        let meta = Meta {
            title: "a \"b\" </script>".into(),
            mbit_sec: 1000,
            lost: 9,
            quality: vec!["cut".into()],
            ..Meta::default()
        };
        let spans = Spans { meta, names: vec!["x\\'".into(), "é".into()], spans: vec![span, long] };
        let mut text = Vec::new();
        write(&spans, &mut text).unwrap();
        assert_eq!(read(&mut &text[..]).unwrap(), spans);
    }

    #[test]
    fn a_cut_file_keeps_its_spans_and_says_so() {
        let text = b"  {\n \"title\" : \"t\",\n\"events\" : [\n[  1.00000000, 0.00000010, 0, 1, 0, 2052, 0, 0, 0, \"read\"],\n[  2.0000";
        let spans = read(&mut &text[..]).unwrap();
        assert_eq!(spans.spans.len(), 1);
        assert_eq!(spans.meta.quality.len(), 2);
    }
}
