// SPDX-License-Identifier: BSD-3-Clause
//! The original's JSON, version 3: one span a line, so that `grep` and `sort` work on it.
//!
//! A span is `[start s, duration s, cpu, pid, rpc, event, arg, ret, ipc, "name"]`, times with eight decimals; `arg` and
//! `ret` are `null` if they have no value. `cgroups`, `counts`, `errno`, `files` and `processes` continue in `errno002` and so
//! on, and a path of `cgroups` or `files` in the next: tools of the original read lines of 255 bytes. Its `makeself` wants lines
//! ordered by their bytes, including keys. The list ends with an entry at 999.0 seconds, as the original's viewer
//! expects; the `arg` of this entry, 0 in the original, is the number of spans before it. Callouts and views of the
//! original's viewer follow, if there are any: `"extra"`, which are spans too, and `"savedview"`. Lines are ordered by
//! time; [`crate::source::json`] reads them in any order.

use std::io::{self, Write};

use serde_json::Value;

use crate::event::digits::Line;
use crate::id::{CpuId, Pid};
use crate::span::what::{Arc, What};
use crate::span::{Meta, Span, Spans, NONE};
use crate::time::Time;

/// Number of bytes gathered before they are written.
const CHUNK: usize = 64 * 1024;

/// Writes `spans` as JSON.
///
/// # Errors
/// Whatever error `out` returns.
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
    /// Names in JSON form.
    names: Vec<String>,
    lines: Vec<u8>,
    /// Numbers of a line; reused, because a new one would be zeroed.
    line: Line,
    /// Number of spans written.
    count: u64,
    /// Callouts, which are written last.
    callouts: Vec<Span>,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Makes a writer to `out`, which need not be buffered.
    ///
    /// # Errors
    /// Whatever error `out` returns, here and below.
    pub fn new(meta: &'a Meta, names: &[String], mut out: W) -> io::Result<Writer<'a, W>> {
        write_head(meta, &mut out)?;
        let names = names.iter().map(|n| quoted(&n.as_str().into())).collect();
        let (lines, line) = (Vec::with_capacity(CHUNK + 1024), Line::empty());
        Ok(Writer { out, meta, names, lines, line, count: 0, callouts: Vec::new() })
    }

    /// Writes a span; spans must come in order.
    ///
    /// # Errors
    /// As [`Writer::new`].
    #[inline]
    pub fn span(&mut self, span: &Span) -> io::Result<()> {
        if span.what == What::Arc(Arc::Callout) {
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

    /// Appends one line of the list, formatted by hand because there are millions.
    #[inline]
    fn put(&mut self, s: &Span, end: &[u8]) {
        let line = &mut self.line;
        line.clear();
        line.put(b"[");
        put_seconds(line, s.start, 3);
        line.put(b", ");
        put_seconds(line, s.dur, 1);
        for field in [CpuId::column(s.cpu), Pid::column(s.pid), s.rpc.into(), s.event().into()] {
            line.put(b", ");
            line.signed(field);
        }
        let (arg, ret) = s.values();
        for value in [arg, ret] {
            match value {
                NONE => line.put(b", null"),
                _ => {
                    line.put(b", ");
                    line.signed(value);
                }
            }
        }
        line.put(b", ");
        line.unsigned(s.ipc.into());
        line.put(b", ");
        self.lines.extend_from_slice(line.text());
        let name = self.names.get(s.name.index()).map_or("\"\"", String::as_str);
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
    if !meta.boot_id.is_empty() {
        key("bootId", meta.boot_id.as_str().into())?;
    }
    for (n, some) in parts(meta.cgroups.iter().flat_map(|(pid, path)| pieces(pid.to_string(), path))) {
        key(&numbered("cgroups", n), some)?;
    }
    for (n, some) in chunks(&meta.counted).enumerate() {
        key(&numbered("counted", n), some.into())?;
    }
    for (n, some) in parts(meta.counts.iter().map(|(name, count)| (name.clone(), (*count).into()))) {
        key(&numbered("counts", n), some)?;
    }
    if !meta.cpu_model.is_empty() {
        key("cpuModelName", meta.cpu_model.as_str().into())?;
    }
    for (n, some) in parts(meta.errors.iter().map(|(number, name)| (number.to_string(), name.as_str().into()))) {
        key(&numbered("errno", n), some)?;
    }
    let files = meta.files.iter().flat_map(|(pid, files)| files.iter().map(move |(file, path)| (pid, file, path)));
    for (n, some) in parts(files.flat_map(|(pid, file, path)| pieces(format!("{pid}:{file}"), path))) {
        key(&numbered("files", n), some)?;
    }
    key("flags", meta.flags.into())?;
    for (name, text) in [("hostName", &meta.host), ("kernelVersion", &meta.kernel)] {
        if !text.is_empty() {
            key(name, text.as_str().into())?;
        }
    }
    key("lost", meta.lost.into())?;
    if !meta.machines.is_empty() {
        key("machines", serde_json::to_value(&meta.machines)?)?;
    }
    key("mbit_sec", meta.mbit_sec.into())?;
    if let Some(ns) = meta.monotonic {
        key("monotonic", ns.into())?;
    }
    for (n, some) in parts(meta.processes.iter().map(|(pid, process)| (pid.to_string(), (*process).into()))) {
        key(&numbered("processes", n), some)?;
    }
    for (n, some) in chunks(&meta.quality).enumerate() {
        key(&numbered("quality", n), some.into())?;
    }
    if meta.quality.is_empty() {
        key("quality", Value::Array(Vec::new()))?;
    }
    key("randomid", meta.randomid.into())?;
    if !meta.recorder.is_empty() {
        key("recorder", meta.recorder.as_str().into())?;
    }
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

/// Longest line in bytes that the tools of the original read; they take the rest for another line.
pub(crate) const LINE: usize = 255;

/// Returns sentences as one list if that is short enough for a line, else each in a list of its own.
fn chunks(sentences: &[String]) -> std::slice::Chunks<'_, String> {
    let length = sentences.iter().map(|sentence| sentence.len() + 3).sum::<usize>();
    sentences.chunks(if length < LINE - 32 { usize::MAX } else { 1 })
}

/// Returns a path as entries with the same key, each short enough for a line.
fn pieces(key: String, path: &str) -> impl Iterator<Item = (String, Value)> + '_ {
    let mut rest = path;
    std::iter::from_fn(move || {
        // A character takes at most six bytes.
        let end = rest.char_indices().map(|(at, _)| at).nth((LINE - 64) / 6).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then(|| (key.clone(), piece.into()))
    })
}

/// Splits the entries of a map into several maps, each short enough for a line, with their numbers.
fn parts(entries: impl Iterator<Item = (String, Value)>) -> impl Iterator<Item = (usize, Value)> {
    let mut parts: Vec<serde_json::Map<String, Value>> = Vec::new();
    let mut room = 0usize;
    for (key, value) in entries {
        let needed = quoted(&key.as_str().into()).len() + quoted(&value).len() + 2;
        if needed > room || parts.last().is_none_or(|part| part.contains_key(&key)) {
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

/// Returns the key of one of these parts: the first has the name alone.
fn numbered(name: &str, n: usize) -> String {
    if n == 0 {
        name.to_string()
    } else {
        format!("{name}{:03}", n + 1)
    }
}

/// Returns a value as JSON. The original puts it between apostrophes in a script, so it must not contain any.
fn quoted(value: &Value) -> String {
    value.to_string().replace('\'', "\\u0027")
}

/// Appends a time in seconds with eight decimals, its whole part right-aligned to `width`, which is 3 at most.
#[inline]
fn put_seconds(line: &mut Line, time: Time, width: u32) {
    let (units, second) = (time.0, Time::SECOND.0 as u64);
    let (whole, part) = (units.unsigned_abs() / second, units.unsigned_abs() % second);
    let length = 1 + u32::from(whole >= 10) + u32::from(whole >= 100) + u32::from(units < 0);
    (length..width).for_each(|_| line.put(b" "));
    if units < 0 {
        line.put(b"-");
    }
    line.unsigned(whole);
    line.put(b".");
    line.eight(part);
}
