// SPDX-License-Identifier: BSD-3-Clause
//! The original's JSON, version 3: one span a line, so that `grep` and `sort` work on it.
//!
//! A span is `[start s, duration s, cpu, pid, rpc, event, arg, ret, ipc, "name"]`, times with eight decimals.
//! The list ends with an entry at 999.0 seconds, as the original's viewer expects. Written lines are ordered by time;
//! read lines may be in any order.

use std::io::{self, BufRead, Write};

use serde::Deserialize;

use super::held::Held;
use super::{Meta, Span, Spans};
use crate::event::digits;
use crate::event::names::Names;

/// Units of [`Span::start`] in a second.
const PER_SECOND: i64 = 100_000_000;
/// Bytes gathered before they are handed on.
const CHUNK: usize = 64 * 1024;
/// Start time of the entry that ends the list.
const END: &str = "[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]";

/// Writes `spans` as JSON.
///
/// # Errors
/// Whatever `out` answers.
pub fn write(spans: &Spans, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer::new(&spans.meta, &spans.names, out)?;
    spans.spans.iter().try_for_each(|span| writer.span(span))?;
    writer.finish()
}

/// Writes spans as JSON, one by one.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// As JSON has them.
    names: Vec<String>,
    lines: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// A writer to `out`, which need not be buffered.
    ///
    /// # Errors
    /// Whatever `out` answers, here and below.
    pub fn new(meta: &Meta, names: &[String], mut out: W) -> io::Result<Writer<W>> {
        write_head(meta, &mut out)?;
        let names = names.iter().map(|n| serde_json::Value::from(n.as_str()).to_string()).collect();
        Ok(Writer { out, names, lines: Vec::with_capacity(CHUNK + 1024) })
    }

    /// Writes a span; spans come in order.
    ///
    /// # Errors
    /// As [`Writer::new`].
    #[inline]
    pub fn span(&mut self, span: &Span) -> io::Result<()> {
        put_span(&mut self.lines, span, self.names.get(span.name as usize).map_or("\"\"", String::as_str));
        if self.lines.len() >= CHUNK {
            self.out.write_all(&self.lines)?;
            self.lines.clear();
        }
        Ok(())
    }

    /// Writes the end of the list.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&self.lines)?;
        writeln!(self.out, "{END}")?;
        writeln!(self.out, "]}}")
    }
}

fn write_head(meta: &Meta, out: &mut impl Write) -> io::Result<()> {
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
    writeln!(out, "\"events\" : [")
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
    let mut digits = [b'0'; 8];
    let mut left = part as u32;
    for digit in digits.iter_mut().rev() {
        *digit += (left % 10) as u8;
        left /= 10;
    }
    line.extend_from_slice(&digits);
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
    read_into(input, Held::new(usize::MAX))
}

/// As [`read`], as many spans as `held` holds.
///
/// # Errors
/// As [`read`].
pub fn read_into(input: &mut impl BufRead, mut held: Held) -> io::Result<Spans> {
    let mut meta = Meta { mbit_sec: 1000, ..Meta::default() };
    let (mut names, mut spans) = (Names::default(), Vec::new());
    let mut unread = 0u64;
    let mut ended = false;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = line.trim_ascii();
        let text = text.strip_suffix(b",").unwrap_or(text);
        if !text.starts_with(b"[") {
            unread += u64::from(!text.is_empty() && !read_key(&mut meta, &String::from_utf8_lossy(text)));
            continue;
        }
        match plain(text, &mut names).or_else(|| any(text, &mut names)) {
            Some(end) if end.start >= 999 * PER_SECOND && end.event == 0 && end.name == 0 => ended = true,
            Some(span) => spans.push(span),
            None => unread += 1,
        }
        if spans.len() > held.room() {
            held.add(std::mem::take(&mut spans));
        }
    }
    if unread > 0 {
        meta.quality.push(format!("{unread} lines of the JSON could not be read"));
    }
    if !ended {
        meta.quality.push("the JSON ends before its end mark".to_string());
    }
    order(&mut spans);
    Ok(held.finish(Spans { meta, names: names.into_texts(), spans }))
}

/// A span in the form that [`write`] gives it: times of eight decimals, whole numbers, no escape in the name. Nothing
/// for any other.
fn plain(line: &[u8], names: &mut Names) -> Option<Span> {
    let mut rest = line.strip_prefix(b"[")?;
    let (start, dur) = (time(&mut rest)?, time(&mut rest)?);
    let mut columns = [0; 7];
    for column in &mut columns {
        *column = whole(&mut rest)?;
    }
    let [cpu, pid, rpc, event, arg, ret, ipc] = columns;
    let name = rest.strip_prefix(b" \"")?.strip_suffix(b"\"]")?;
    if name.iter().any(|&c| matches!(c, b'"' | b'\\') || c < b' ') {
        return None;
    }
    let [cpu, pid, rpc, event] = [cpu, pid, rpc, event].map(|column| column as i32);
    let name = names.id(std::str::from_utf8(name).ok()?);
    Some(Span { start, dur, cpu, pid, rpc, event, arg, ret, ipc: ipc as u8, name })
}

/// Takes a time in seconds of eight decimals and the comma behind it, and answers it in units.
#[inline]
fn time(rest: &mut &[u8]) -> Option<i64> {
    let blanks = rest.iter().position(|&c| c != b' ')?;
    let text = &rest[blanks..];
    let (seconds, behind) = digits::split(text)?;
    let decimals = behind.strip_prefix(b".")?.first_chunk::<8>()?;
    let mut part = 0;
    for digit in decimals.map(|c| c.wrapping_sub(b'0')) {
        part = part * 10 + i64::from(digit);
        if digit > 9 {
            return None;
        }
    }
    *rest = behind[9..].strip_prefix(b",")?;
    let units = seconds.checked_mul(PER_SECOND)?;
    Some(if text.starts_with(b"-") { units - part } else { units + part })
}

/// Takes a blank, a whole number and the comma behind it.
#[inline]
fn whole(rest: &mut &[u8]) -> Option<i64> {
    let (number, behind) = digits::split(rest.strip_prefix(b" ")?)?;
    *rest = behind.strip_prefix(b",")?;
    Some(number)
}

/// A span in any form that JSON allows.
fn any(line: &[u8], names: &mut Names) -> Option<Span> {
    let l: Line = serde_json::from_str(&String::from_utf8_lossy(line)).ok()?;
    Some(Span {
        start: units(l.0),
        dur: units(l.1),
        cpu: l.2 as i32,
        pid: l.3 as i32,
        rpc: l.4 as i32,
        event: l.5 as i32,
        arg: l.6 as i64,
        ret: l.7 as i64,
        ipc: l.8 as u8,
        name: names.id(&l.9),
    })
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
    super::order::order(spans);
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
        let (span, long) = (Span { name: 1, ..span }, Span { name: 2, ..long });
        let spans = Spans { meta, names: vec!["".into(), "x\\'".into(), "é".into()], spans: vec![span, long] };
        let mut text = Vec::new();
        write(&spans, &mut text).unwrap();
        assert_eq!(read(&mut &text[..]).unwrap(), spans);
    }

    #[test]
    fn a_span_reads_the_same_in_any_form() {
        let mut names = Names::default();
        for (line, exact) in [
            ("[ -1.00000010, 0.00000001, -1, 4194303, 0, -3, 2, 65535, 15, \"a.b/c\"]", true),
            ("[ 12.34567890, 0.5, 1, 2, 3, 4, 5, 6, 7, \"x\"]", false),
            ("[12.34567890,0.00000001,1,2,3,4,5,6,7,\"x\"]", false),
            ("[ 12.34567890, 0.00000001, 1, 2, 3, 4, 5.0, 6, 7, \"\\u00e9\"]", false),
        ] {
            let slow = any(line.as_bytes(), &mut names).unwrap();
            let fast = plain(line.as_bytes(), &mut names);
            assert_eq!(fast.is_some(), exact, "{line}");
            assert_eq!(fast.unwrap_or(slow), slow, "{line}");
        }
    }

    #[test]
    fn a_cut_file_keeps_its_spans_and_says_so() {
        let text = b"  {\n \"title\" : \"t\",\n\"events\" : [\n[  1.00000000, 0.00000010, 0, 1, 0, 2052, 0, 0, 0, \"read\"],\n[  2.0000";
        let spans = read(&mut &text[..]).unwrap();
        assert_eq!(spans.spans.len(), 1);
        assert_eq!(spans.meta.quality.len(), 2);
    }
}
