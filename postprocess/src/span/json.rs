// SPDX-License-Identifier: BSD-3-Clause
//! The original's JSON, version 3: one span a line, so that `grep` and `sort` work on it.
//!
//! A span is `[start s, duration s, cpu, pid, rpc, event, arg, ret, ipc, "name"]`, times with eight decimals; `arg` and
//! `ret` are `null` where there is no value. `errno` and `counts` go on in `errno002` and so
//! on: tools of the original read lines of 255 bytes. Its `makeself` wants lines ordered by their bytes, keys too.
//! The list ends with an entry at 999.0 seconds, as the original's viewer expects; its `arg`, which the original has as
//! 0, is the number of spans before it. Behind it stand the callouts and
//! views of the original's viewer, if there are any: `"extra"`, spans as well, and `"savedview"`.
//! Written lines are ordered by time; read lines may be in any order, and several things in one line.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use serde::Deserialize;
use serde_json::Value;

use super::held::{Held, Keep};
use super::{Meta, Span, Spans, NONE};
use crate::event::digits::{self, Line};
use crate::event::names::Names;
use crate::event::number::{CALLOUT, NUMBERS};
use crate::line::{Lines, Unread};
use crate::source::Backward;

/// Units of [`Span::start`] in a second.
const PER_SECOND: i64 = 100_000_000;
/// Bytes gathered before they are handed on.
const CHUNK: usize = 64 * 1024;
/// Seconds that a time may have, and what a number of JSON is exact up to.
const LONGEST: f64 = 1e10;
const VALUE: f64 = 9_007_199_254_740_992.0;

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
pub struct Writer<'a, W> {
    out: W,
    meta: &'a Meta,
    /// As JSON has them.
    names: Vec<String>,
    lines: Vec<u8>,
    /// Spans written.
    count: u64,
    /// They come behind all else.
    callouts: Vec<Span>,
}

impl<'a, W: Write> Writer<'a, W> {
    /// A writer to `out`, which need not be buffered.
    ///
    /// # Errors
    /// Whatever `out` answers, here and below.
    pub fn new(meta: &'a Meta, names: &[String], mut out: W) -> io::Result<Writer<'a, W>> {
        write_head(meta, &mut out)?;
        let names = names.iter().map(|n| quoted(&n.as_str().into())).collect();
        Ok(Writer { out, meta, names, lines: Vec::with_capacity(CHUNK + 1024), count: 0, callouts: Vec::new() })
    }

    /// Writes a span; spans come in order.
    ///
    /// # Errors
    /// As [`Writer::new`].
    #[inline]
    pub fn span(&mut self, span: &Span) -> io::Result<()> {
        if span.event == CALLOUT {
            self.callouts.push(*span);
            return Ok(());
        }
        self.put(span, b"],\n");
        self.count += 1;
        if self.lines.len() >= CHUNK {
            self.out.write_all(&self.lines)?;
            self.lines.clear();
        }
        Ok(())
    }

    /// Writes the end of the list, and the callouts and views.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn finish(mut self) -> io::Result<()> {
        writeln!(self.lines, "[999.0, 0.0, 0, 0, 0, 0, {}, 0, 0, \"\"]", self.count)?;
        let callouts = std::mem::take(&mut self.callouts);
        if !callouts.is_empty() || !self.meta.saved_views.is_empty() {
            writeln!(self.lines, "],\n\"extra\" : [")?;
            for (n, span) in callouts.iter().enumerate() {
                let last = n + 1 == callouts.len();
                self.put(span, if last { b"]\n" } else { b"],\n" });
            }
            write!(self.lines, "],\n\"savedview\" : [")?;
            for (n, view) in self.meta.saved_views.iter().enumerate() {
                let comma = if n == 0 { "" } else { "," };
                write!(self.lines, "{comma}\n  {}", quoted(&serde_json::to_value(view)?))?;
            }
            writeln!(self.lines)?;
        }
        writeln!(self.lines, "]}}")?;
        self.out.write_all(&self.lines)
    }

    /// Puts one line of the list, formatted by hand: there are millions.
    #[inline]
    fn put(&mut self, s: &Span, end: &[u8]) {
        let mut line = Line::empty();
        line.put(b"[");
        put_seconds(&mut line, s.start, 3);
        line.put(b", ");
        put_seconds(&mut line, s.dur, 1);
        for field in [s.cpu.into(), s.pid.into(), s.rpc.into(), s.event.into(), s.arg, s.ret, s.ipc.into()] {
            match field {
                NONE => line.put(b", null"),
                _ => {
                    line.put(b", ");
                    line.signed(field);
                }
            }
        }
        line.put(b", ");
        self.lines.extend_from_slice(line.text());
        let name = self.names.get(s.name as usize).map_or("\"\"", String::as_str);
        self.lines.extend_from_slice(name.as_bytes());
        self.lines.extend_from_slice(end);
    }
}

fn write_head(meta: &Meta, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "  {{")?;
    let mut key = |name: &str, value: Value| writeln!(out, " \"{name}\" : {},", quoted(&value));
    key("Comment", "V2 with IPC field".into())?;
    if !meta.added.is_null() {
        key("added", meta.added.clone())?;
    }
    key("axisLabelX", "Time (sec)".into())?;
    key("axisLabelY", "CPU Number".into())?;
    for (n, some) in parts(meta.counts.iter().map(|(name, count)| (name.clone(), (*count).into()))) {
        key(&numbered("counts", n), some)?;
    }
    if !meta.cpu_model.is_empty() {
        key("cpuModelName", meta.cpu_model.as_str().into())?;
    }
    for (n, some) in parts(meta.errors.iter().map(|(number, name)| (number.to_string(), name.as_str().into()))) {
        key(&numbered("errno", n), some)?;
    }
    key("flags", meta.flags.into())?;
    for (name, text) in [("hostName", &meta.host), ("kernelVersion", &meta.kernel)] {
        if !text.is_empty() {
            key(name, text.as_str().into())?;
        }
    }
    key("lost", meta.lost.into())?;
    key("mbit_sec", meta.mbit_sec.into())?;
    for (n, some) in chunks(&meta.quality).enumerate() {
        key(&numbered("quality", n), some.into())?;
    }
    if meta.quality.is_empty() {
        key("quality", Value::Array(Vec::new()))?;
    }
    key("randomid", meta.randomid.into())?;
    key("shortMulX", 1.into())?;
    key("shortUnitsX", "s".into())?;
    key("thousandsX", 1000.into())?;
    key("title", meta.title.as_str().into())?;
    key("tracebase", meta.tracebase.as_str().into())?;
    for (n, some) in chunks(&meta.unseen).enumerate() {
        key(&numbered("unseen", n), some.into())?;
    }
    if meta.value_bits == 32 {
        key("valueBits", 32.into())?;
    }
    key("version", 3.into())?;
    writeln!(out, "\"events\" : [")
}

/// Bytes of a line that the tools of the original read, at most: they take the rest for another line.
const LINE: usize = 255;

/// Sentences as one list if that is short enough for a line, else each in one of its own.
fn chunks(sentences: &[String]) -> std::slice::Chunks<'_, String> {
    let length = sentences.iter().map(|sentence| sentence.len() + 3).sum::<usize>();
    sentences.chunks(if length < LINE - 32 { usize::MAX } else { 1 })
}

/// The entries of a map as several, each short enough for a line, with their numbers.
fn parts(entries: impl Iterator<Item = (String, Value)>) -> impl Iterator<Item = (usize, Value)> {
    let mut parts: Vec<serde_json::Map<String, Value>> = Vec::new();
    let mut room = 0usize;
    for (key, value) in entries {
        let needed = quoted(&key.as_str().into()).len() + quoted(&value).len() + 2;
        if needed > room || parts.is_empty() {
            parts.push(serde_json::Map::new());
            room = LINE - 32;
        }
        room = room.saturating_sub(needed);
        if let Some(part) = parts.last_mut() {
            part.insert(key, value);
        }
    }
    parts.into_iter().map(Value::Object).enumerate()
}

/// The key of such a part: that of the first is the name alone.
fn numbered(name: &str, n: usize) -> String {
    if n == 0 {
        name.to_string()
    } else {
        format!("{name}{:03}", n + 1)
    }
}

/// A value as JSON. The original puts it between apostrophes in a script, so there must be none in it.
fn quoted(value: &Value) -> String {
    value.to_string().replace('\'', "\\u0027")
}

/// A time in seconds with eight decimals, its whole part right-aligned to `width`.
#[inline]
fn put_seconds(line: &mut Line, units: i64, width: u32) {
    let (whole, part) = (units.unsigned_abs() / PER_SECOND as u64, units.unsigned_abs() % PER_SECOND as u64);
    let length = whole.checked_ilog10().unwrap_or(0) + 1 + u32::from(units < 0);
    (length..width).for_each(|_| line.put(b" "));
    if units < 0 {
        line.put(b"-");
    }
    line.unsigned(whole);
    line.put(b".");
    line.decimals(part as u32, PER_SECOND as u32);
}

#[derive(Deserialize)]
struct Entry(f64, f64, i64, i64, i64, i64, Option<f64>, Option<f64>, i64, String);

/// Which list the entries that come next belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    /// `events` or `extra`.
    Spans,
    /// `savedview`.
    Views,
}

/// What was read so far.
struct Reader {
    meta: Meta,
    names: Names,
    spans: Vec<Span>,
    /// The last name seen with each event number: most lines repeat it, which saves the lookup.
    recent: Vec<u32>,
    list: List,
    /// Whether a list of spans has begun, and whether the head of another trace came after it.
    begun: bool,
    another: bool,
    /// Spans up to the list's end, and how many that says; `None` before it.
    count: u64,
    ended: Option<u64>,
    /// Whether the last line ends with a bracket, as the last of all does.
    closed: bool,
}

/// Reads JSON from [`write`] or from the original's `eventtospan3`, sorted or not.
///
/// Lines that are neither metadata nor a span are counted in [`Meta::quality`].
///
/// # Errors
/// Whatever `input` answers.
pub fn read(input: &mut impl BufRead) -> io::Result<Spans> {
    read_into(input, Held::new(usize::MAX))
}

/// As [`read`], handing the spans to `keep`.
///
/// # Errors
/// As [`read`].
pub fn read_into(input: &mut impl BufRead, mut keep: impl Keep) -> io::Result<Spans> {
    let mut reader = Reader::new();
    let (mut unread, mut backward) = (Unread::default(), Backward::default());
    let mut lines = Lines::new(input);
    while let Some(line) = lines.read()? {
        if let Some(last) = line.trim_ascii().last() {
            reader.closed = *last == b'}';
        }
        let taken = reader.plain(line).or_else(|| reader.line(&String::from_utf8_lossy(line)));
        if reader.another {
            let line = lines.number();
            reader.meta.quality.push(format!("line {line}: another trace begins; left out: one trace at a time"));
            break;
        }
        if taken.is_none() {
            unread.add(lines.number());
            if !reader.begun && reader.spans.is_empty() {
                unread.hope("JSON")?;
            }
        }
        if reader.spans.len() > keep.room() {
            backward.end(&mut reader.spans);
            keep.add(std::mem::take(&mut reader.spans));
        }
    }
    let Reader { mut meta, names, mut spans, count, ended, closed, another, .. } = reader;
    backward.end(&mut spans);
    meta.quality.extend(backward.sentence());
    meta.quality.extend(unread.sentence("JSON"));
    match ended {
        Some(all @ 1..) if all != count => meta.quality.push(format!("the JSON has {count} of {all} spans")),
        Some(_) if closed || another => {}
        _ => meta.quality.push("the JSON ends before its end mark".to_string()),
    }
    order(&mut spans);
    Ok(keep.finish(Spans { meta, names: names.into_texts(), spans }))
}

impl Reader {
    fn new() -> Reader {
        let meta = Meta { mbit_sec: 1000, ..Meta::default() };
        let (names, spans, recent) = (Names::default(), Vec::new(), vec![0; NUMBERS as usize]);
        Reader {
            meta,
            names,
            spans,
            recent,
            list: List::Spans,
            begun: false,
            another: false,
            count: 0,
            ended: None,
            closed: false,
        }
    }

    /// Takes a line that is a span in the form that [`write`] gives it: times of eight decimals, whole numbers, no escape
    /// in the name. Nothing for any other.
    fn plain(&mut self, line: &[u8]) -> Option<()> {
        let line = line.trim_ascii();
        let mut rest = line.strip_suffix(b",").unwrap_or(line).strip_prefix(b"[")?;
        let (start, dur) = (time(&mut rest)?, time(&mut rest)?);
        let mut columns = [0; 7];
        for column in &mut columns {
            *column = whole(&mut rest)?;
        }
        let [cpu, pid, rpc, event, arg, ret, ipc] = columns;
        let name = rest.strip_prefix(b" \"")?.strip_suffix(b"\"]")?;
        // The list's end has none.
        if self.list != List::Spans || name.is_empty() {
            return None;
        }
        let recent = &mut self.recent[event as usize % NUMBERS as usize];
        if self.names.text(*recent).as_bytes() != name {
            let plain = name.iter().all(|&c| !matches!(c, b'"' | b'\\') && c >= b' ');
            *recent = self.names.id(std::str::from_utf8(name).ok().filter(|_| plain)?);
        }
        if [cpu, pid, rpc, event, ipc].contains(&NONE) {
            return None;
        }
        let number = |column: i64| i32::try_from(column).ok();
        let (cpu, pid, rpc, event) = (number(cpu)?, number(pid)?, number(rpc)?, number(event)?);
        let ipc = u8::try_from(ipc).ok()?;
        self.spans.push(Span { start, dur, cpu, pid, rpc, event, arg, ret, ipc, name: *recent });
        self.count += u64::from(self.ended.is_none());
        Some(())
    }

    /// Takes all that stands in a line: keys with their values, entries of lists, brackets. Nothing if there is
    /// something else; what stood before it has been taken.
    fn line(&mut self, line: &str) -> Option<()> {
        let mut rest = line;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | ']' | '}'));
            rest = match rest.chars().next() {
                None => return Some(()),
                Some('[') => self.entry(rest)?,
                _ => self.key(rest)?,
            };
        }
    }

    /// Takes an entry of a list; answers what stands behind it.
    fn entry<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if self.list == List::Views {
            let (view, rest) = first(text)?;
            self.meta.saved_views.push(view);
            return Some(rest);
        }
        let (line, rest) = first::<Entry>(text)?;
        if line.0 >= 999.0 && line.5 == 0 && line.9.is_empty() {
            self.ended = Some(line.6.map_or(0, |count| count as u64));
        } else {
            let span = self.span(line)?;
            self.spans.push(span);
            self.count += u64::from(self.ended.is_none());
        }
        Some(rest)
    }

    /// The span of an entry; nothing if a number in it cannot be.
    fn span(&mut self, l: Entry) -> Option<Span> {
        let time = |seconds: f64| (seconds.abs() < LONGEST).then(|| units(seconds));
        let number = |column: i64| i32::try_from(column).ok();
        let value = |column: Option<f64>| match column {
            None => Some(NONE),
            Some(value) => (value.abs() < VALUE).then_some(value as i64),
        };
        Some(Span {
            start: time(l.0)?,
            dur: time(l.1)?,
            cpu: number(l.2)?,
            pid: number(l.3)?,
            rpc: number(l.4)?,
            event: number(l.5)?,
            arg: value(l.6)?,
            ret: value(l.7)?,
            ipc: u8::try_from(l.8).ok()?,
            name: self.names.id(&l.9),
        })
    }

    /// Takes a key with its value, or the begin of a list; answers what stands behind it.
    fn key<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let (name, rest) = first::<String>(text)?;
        let rest = rest.trim_start().strip_prefix(':')?.trim_start();
        self.another |= self.begun && matches!(name.as_str(), "Comment" | "tracebase" | "events");
        if self.another {
            return None;
        }
        if matches!(name.as_str(), "events" | "extra" | "savedview") {
            self.list = if name == "savedview" { List::Views } else { List::Spans };
            self.begun |= name == "events";
            return rest.strip_prefix('[');
        }
        let (value, rest) = first(rest)?;
        set(&mut self.meta, &name, &value);
        Some(rest)
    }
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
    let units = seconds.checked_mul(PER_SECOND).filter(|_| (seconds.unsigned_abs() as f64) < LONGEST)?;
    Some(if text.starts_with(b"-") { units - part } else { units + part })
}

/// Takes a blank, a whole number or `null`, and the comma behind it.
#[inline]
fn whole(rest: &mut &[u8]) -> Option<i64> {
    let text = rest.strip_prefix(b" ")?;
    let none = || Some((NONE, text.strip_prefix(b"null")?));
    let (number, behind) = digits::split(text).or_else(none)?;
    *rest = behind.strip_prefix(b",")?;
    Some(number)
}

/// The JSON value that a text begins with, and what stands behind it.
fn first<T: serde::de::DeserializeOwned>(text: &str) -> Option<(T, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
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

/// Takes the value of a key; keys that are not known are passed over.
fn set(meta: &mut Meta, key: &str, value: &Value) {
    let string = || value.as_str().unwrap_or_default().to_string();
    let number = || value.as_u64().unwrap_or_default();
    let strings = || value.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_string));
    match key.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "added" => meta.added = value.clone(),
        "title" => meta.title = string(),
        "tracebase" => meta.tracebase = string(),
        "cpuModelName" => meta.cpu_model = string(),
        "hostName" => meta.host = string(),
        "kernelVersion" => meta.kernel = string(),
        "errno" => meta.errors.extend(BTreeMap::deserialize(value).unwrap_or_default()),
        "counts" => meta.counts.extend(BTreeMap::deserialize(value).unwrap_or_default()),
        "flags" => meta.flags = number() as u32,
        "mbit_sec" => meta.mbit_sec = number() as u32,
        "randomid" => meta.randomid = number() as u32,
        "lost" => meta.lost = number(),
        "valueBits" => meta.value_bits = number() as u8,
        "quality" => meta.quality.extend(strings()),
        "unseen" => meta.unseen.extend(strings()),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
