// SPDX-License-Identifier: BSD-3-Clause
//! Reads the original's JSON, version 3, which [`crate::sink::json`] describes and writes: lines in any order, several
//! things in one line.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use serde::Deserialize;
use serde_json::Value;

use super::Backward;
use crate::event::digits;
use crate::event::fact::OpenFile;
use crate::event::names::{NameId, Names};
use crate::event::number::NUMBERS;
use crate::id::{CpuId, Pid};
use crate::line::{Lines, Unread};
use crate::span::limit::{Keep, SpanLimit};
use crate::span::order::order;
use crate::span::{Meta, Span, Spans, NONE};
use crate::time::Time;

/// Maximum seconds of a time, and the limit up to which a JSON number is exact.
const LONGEST: u64 = 10_000_000_000;
const VALUE: f64 = 9_007_199_254_740_992.0;

#[derive(Deserialize)]
struct Entry(f64, f64, i64, i64, i64, i64, Option<f64>, Option<f64>, i64, String);

/// The list that the next entries belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    /// `events` or `extra`.
    Spans,
    /// `savedview`.
    Views,
}

/// Contents read so far.
struct Reader {
    meta: Meta,
    names: Names,
    spans: Vec<Span>,
    /// The last name seen with each event number: most lines repeat it, which saves the lookup.
    recent: Vec<NameId>,
    list: List,
    /// True once a list of spans has begun, and once the head of another trace came after it.
    begun: bool,
    another: bool,
    /// Number of spans up to the list's end, and the number that the end states; `None` before it.
    count: u64,
    ended: Option<u64>,
    /// True if the last line ends with a bracket, as the last line of all does.
    closed: bool,
}

/// Reads JSON from [`write`](crate::sink::json::write) or from the original's `eventtospan3`, sorted or not.
///
/// Lines that are neither metadata nor a span are counted in [`Meta::quality`].
///
/// # Errors
/// Any error of `input`.
pub fn read(input: &mut impl BufRead) -> io::Result<Spans> {
    read_into(input, SpanLimit::new(usize::MAX))
}

/// Like [`read`], but passes the spans to `keep`.
///
/// # Errors
/// As [`read`].
pub fn read_into(input: &mut impl BufRead, mut keep: impl Keep) -> io::Result<Spans> {
    let mut reader = Reader::new();
    let (mut unread, mut backward) = (Unread::default(), Backward::default());
    let mut lines = Lines::new(input);
    while let Some(line) = lines.read()? {
        let line = line.trim_ascii();
        if let Some(last) = line.last() {
            reader.closed = *last == b'}';
        }
        let taken = reader.plain(line).or_else(|| reader.line(&String::from_utf8_lossy(line)));
        if reader.another {
            let line = lines.number();
            reader.meta.quality.push(format!("line {line}: another trace begins; skipped: one trace at a time"));
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
        let (names, spans, recent) = (Names::default(), Vec::new(), vec![NameId::EMPTY; NUMBERS as usize]);
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

    /// Takes a line that is a span in the form of [`write`](crate::sink::json::write): times of eight decimals, whole
    /// numbers, no escape in the name. `None` for any other line.
    fn plain(&mut self, line: &[u8]) -> Option<()> {
        let mut rest = line.strip_suffix(b",").unwrap_or(line).strip_prefix(b"[")?;
        let (start, dur) = (time(&mut rest)?, time(&mut rest)?);
        let mut columns = [0; 7];
        for column in &mut columns {
            *column = whole(&mut rest)?;
        }
        let [cpu, pid, rpc, event, arg, ret, ipc] = columns;
        let name = rest.strip_prefix(b" \"")?.strip_suffix(b"\"]")?;
        // The list's end has no name.
        if self.list != List::Spans || name.is_empty() {
            return None;
        }
        let recent = &mut self.recent[event as usize % NUMBERS as usize];
        if self.names.text(*recent).as_bytes() != name {
            let plain = name.iter().all(|&c| !matches!(c, b'"' | b'\\') && c >= b' ');
            *recent = self.names.id(std::str::from_utf8(name).ok().filter(|_| plain)?);
        }
        // A `null` is too small for all of these.
        let number = |column: i64| i32::try_from(column).ok();
        let (cpu, pid) = (CpuId::of_column(cpu)?, Pid::of_column(pid)?);
        let (rpc, event) = (number(rpc)?, number(event)?);
        let ipc = u8::try_from(ipc).ok()?;
        let mut span = Span { start, dur, cpu, pid, rpc, ipc, name: *recent, ..Span::default() };
        span.set_columns(event, arg, ret);
        self.spans.push(span);
        self.count += u64::from(self.ended.is_none());
        Some(())
    }

    /// Takes everything in a line: keys with their values, entries of lists, brackets. `None` if there is something
    /// else; everything before it has been taken.
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

    /// Takes an entry of a list; returns the text after it.
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

    /// The span of an entry; `None` if a number in it is impossible.
    fn span(&mut self, l: Entry) -> Option<Span> {
        let time = |seconds: f64| (seconds.abs() < LONGEST as f64).then(|| Time::of_seconds(seconds));
        let number = |column: i64| i32::try_from(column).ok();
        let value = |column: Option<f64>| match column {
            None => Some(NONE),
            Some(value) => (value.abs() < VALUE).then_some(value as i64),
        };
        let mut span = Span {
            start: time(l.0)?,
            dur: time(l.1)?,
            cpu: CpuId::of_column(l.2)?,
            pid: Pid::of_column(l.3)?,
            rpc: number(l.4)?,
            ipc: u8::try_from(l.8).ok()?,
            ..Span::default()
        };
        span.set_columns(number(l.5)?, value(l.6)?, value(l.7)?);
        span.name = self.names.id(&l.9);
        Some(span)
    }

    /// Takes a key with its value, or the start of a list; returns the text after it.
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

/// Takes a time in seconds of eight decimals and the comma after it, and returns it in units.
#[inline]
fn time(rest: &mut &[u8]) -> Option<Time> {
    let blanks = rest.iter().position(|&c| c != b' ')?;
    let text = &rest[blanks..];
    let (seconds, behind) = digits::split(text)?;
    let part = digits::eight_digits(behind.strip_prefix(b".")?.first_chunk::<8>()?)?;
    *rest = behind[9..].strip_prefix(b",")?;
    let units = (seconds.unsigned_abs() < LONGEST).then(|| seconds * Time::SECOND.0)?;
    Some(Time(if text.starts_with(b"-") { units - part } else { units + part }))
}

/// Takes a blank, a whole number or `null`, and the comma after it.
#[inline]
fn whole(rest: &mut &[u8]) -> Option<i64> {
    // Most numbers have one digit.
    if let [b' ', digit @ b'0'..=b'9', b',', behind @ ..] = *rest {
        *rest = behind;
        return Some((digit - b'0').into());
    }
    let text = rest.strip_prefix(b" ")?;
    let none = || Some((NONE, text.strip_prefix(b"null")?));
    let (number, behind) = digits::split(text).or_else(none)?;
    *rest = behind.strip_prefix(b",")?;
    Some(number)
}

/// The JSON value at the start of a text, and the rest.
fn first<T: serde::de::DeserializeOwned>(text: &str) -> Option<(T, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// The process, the descriptor and the path, or a part of it, of an entry `PID:DESCRIPTOR:WHEN:PATH`.
fn open_file(entry: &str) -> Option<(u32, OpenFile, &str)> {
    let (pid, file) = entry.split_once(':')?;
    let (file, path) = OpenFile::split(file)?;
    Some((pid.parse().ok()?, file, path))
}

/// Takes the value of a key; unknown keys are skipped.
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
        "processes" => meta.processes.extend(BTreeMap::<u32, u32>::deserialize(value).unwrap_or_default()),
        "cgroups" => {
            for (pid, piece) in BTreeMap::<u32, String>::deserialize(value).unwrap_or_default() {
                meta.cgroups.entry(pid).or_default().push_str(&piece);
            }
        }
        "files" => {
            for (key, piece) in BTreeMap::<String, String>::deserialize(value).unwrap_or_default() {
                let entry = format!("{key}:{piece}");
                if let Some((pid, file, piece)) = open_file(&entry) {
                    meta.files.entry(pid).or_default().entry(file).or_default().push_str(piece);
                }
            }
        }
        "counts" => meta.counts.extend(BTreeMap::deserialize(value).unwrap_or_default()),
        "flags" => meta.flags = number() as u32,
        "mbit_sec" => meta.mbit_sec = number() as u32,
        "randomid" => meta.randomid = number() as u32,
        "lost" => meta.lost = number(),
        "valueBits" => meta.value_bits = number() as u8,
        "quality" => meta.quality.extend(strings()),
        "counted" => meta.counted.extend(strings()),
        "bootId" => meta.boot_id = string(),
        "monotonic" => meta.monotonic = value.as_i64(),
        "recorder" => meta.recorder = string(),
        "machines" => meta.machines = Vec::deserialize(value).unwrap_or_default(),
        "unseen" => meta.unseen.extend(strings()),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
