// SPDX-License-Identifier: BSD-3-Clause
//! The original's JSON, version 3: one span a line, so that `grep` and `sort` work on it.
//!
//! A span is `[start s, duration s, cpu, pid, rpc, event, arg, ret, ipc, "name"]`, times with eight decimals.
//! The list ends with an entry at 999.0 seconds, as the original's viewer expects. Behind it stand the callouts and
//! views of the original's viewer, if there are any: `"extra"`, spans as well, and `"savedview"`.
//! Written lines are ordered by time; read lines may be in any order, and several things in one line.

use std::io::{self, BufRead, Write};

use serde::Deserialize;
use serde_json::Value;

use super::held::Held;
use super::{Meta, Span, Spans};
use crate::event::digits::{self, Line};
use crate::event::names::Names;
use crate::event::number::CALLOUT;
use crate::line::Lines;

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
pub struct Writer<'a, W> {
    out: W,
    meta: &'a Meta,
    /// As JSON has them.
    names: Vec<String>,
    lines: Vec<u8>,
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
        Ok(Writer { out, meta, names, lines: Vec::with_capacity(CHUNK + 1024), callouts: Vec::new() })
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
        writeln!(self.lines, "{END}")?;
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
            line.put(b", ");
            line.signed(field);
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
    for (name, text) in [("cpuModelName", &meta.cpu_model), ("hostName", &meta.host), ("kernelVersion", &meta.kernel)] {
        if !text.is_empty() {
            key(name, text.as_str().into())?;
        }
    }
    key("flags", meta.flags.into())?;
    key("lost", meta.lost.into())?;
    key("mbit_sec", meta.mbit_sec.into())?;
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
struct Entry(f64, f64, i64, i64, i64, i64, f64, f64, i64, String);

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
    ended: bool,
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

/// As [`read`], as many spans as `held` holds.
///
/// # Errors
/// As [`read`].
pub fn read_into(input: &mut impl BufRead, mut held: Held) -> io::Result<Spans> {
    let mut reader = Reader::new();
    let mut unread = 0u64;
    let mut lines = Lines::new(input);
    while let Some(line) = lines.read()? {
        let taken = reader.plain(line).or_else(|| reader.line(&String::from_utf8_lossy(line)));
        unread += u64::from(taken.is_none());
        if reader.spans.len() > held.room() {
            held.add(std::mem::take(&mut reader.spans));
        }
    }
    let Reader { mut meta, names, mut spans, ended, .. } = reader;
    if unread > 0 {
        meta.quality.push(format!("{unread} lines of the JSON could not be read"));
    }
    if !ended {
        meta.quality.push("the JSON ends before its end mark".to_string());
    }
    order(&mut spans);
    Ok(held.finish(Spans { meta, names: names.into_texts(), spans }))
}

impl Reader {
    fn new() -> Reader {
        let meta = Meta { mbit_sec: 1000, ..Meta::default() };
        let (names, spans, recent) = (Names::default(), Vec::new(), vec![0; 0x1000]);
        Reader { meta, names, spans, recent, list: List::Spans, ended: false }
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
        let recent = &mut self.recent[(event & 0xfff) as usize];
        if self.names.text(*recent).as_bytes() != name {
            let plain = name.iter().all(|&c| !matches!(c, b'"' | b'\\') && c >= b' ');
            *recent = self.names.id(std::str::from_utf8(name).ok().filter(|_| plain)?);
        }
        let [cpu, pid, rpc, event] = [cpu, pid, rpc, event].map(|column| column as i32);
        self.spans.push(Span { start, dur, cpu, pid, rpc, event, arg, ret, ipc: ipc as u8, name: *recent });
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
            self.ended = true;
        } else {
            let span = self.span(line);
            self.spans.push(span);
        }
        Some(rest)
    }

    fn span(&mut self, l: Entry) -> Span {
        Span {
            start: units(l.0),
            dur: units(l.1),
            cpu: l.2 as i32,
            pid: l.3 as i32,
            rpc: l.4 as i32,
            event: l.5 as i32,
            arg: l.6 as i64,
            ret: l.7 as i64,
            ipc: l.8 as u8,
            name: self.names.id(&l.9),
        }
    }

    /// Takes a key with its value, or the begin of a list; answers what stands behind it.
    fn key<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let (name, rest) = first::<String>(text)?;
        let rest = rest.trim_start().strip_prefix(':')?.trim_start();
        if matches!(name.as_str(), "events" | "extra" | "savedview") {
            self.list = if name == "savedview" { List::Views } else { List::Spans };
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
    match key {
        "added" => meta.added = value.clone(),
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
            added: serde_json::json!({ "notes": [{ "text": "it's </script>\n" }] }),
            ..Meta::default()
        };
        let (span, long) = (Span { name: 1, ..span }, Span { name: 2, ..long });
        let spans = Spans { meta, names: vec!["".into(), "x\\'".into(), "é".into()], spans: vec![span, long] };
        let mut text = Vec::new();
        write(&spans, &mut text).unwrap();
        assert_eq!(read(&mut &text[..]).unwrap(), spans);
    }

    /// What the original's viewer exports: all that stands before the events in one line, views behind them.
    const EXPORTED: &str = concat!(
        "  {  \"Comment\" : \"V2 with IPC field\",  \"flags\" : 131,  \"mbit_sec\" : 100,  \"title\" : \"t, {x}\",  \"version\" : 3, ",
        "\"events\" : [ [ 49.41830734, 0.00000001, 0, 8292, 0, 526, 0, 0, 0, \"bash.8292\"],\n",
        "[ 49.41895135, 0.00000545, 0, 8287, 0, 73823, 0, 0, 5, \"a]b,.8287\"],\n[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]\n],\n",
        "\"extra\" : [\n[ 49.41895135, 0.00000545, 0, 8287, 0, -4, 60, -2, 0, \"look here\"]\n],\n",
        "\"savedview\" : [\n  [\"&#x21d0;\", {\"rangeX\":1396,\"xleft_ts\":49.4,\"grouplength\":[4,54,0,0],\"search_text\":\"\"}],\n",
        "  [\"&#x2780;\", {\"xleft_ts\":50.08196468481376,\"rowToHilite\":[0]}]\n]}\n\n",
    );

    #[test]
    fn callouts_and_views_of_the_original_are_read_and_written_again() {
        let spans = read(&mut EXPORTED.as_bytes()).unwrap();
        let meta = &spans.meta;
        assert_eq!((meta.flags, meta.mbit_sec, meta.title.as_str()), (131, 100, "t, {x}"));
        assert_eq!(meta.quality, Vec::<String>::new());
        assert_eq!(spans.spans.iter().map(|s| s.event).collect::<Vec<_>>(), [526, 73823, CALLOUT]);
        assert_eq!((spans.spans[2].arg, spans.spans[2].ret), (60, -2));
        assert_eq!(meta.saved_views.iter().map(|v| v.0.as_str()).collect::<Vec<_>>(), ["&#x21d0;", "&#x2780;"]);
        assert_eq!(meta.saved_views[1].1["xleft_ts"], 50.08196468481376);
        let mut text = Vec::new();
        write(&spans, &mut text).unwrap();
        assert_eq!(read(&mut &text[..]).unwrap(), spans);
        serde_json::from_slice::<Value>(&text).unwrap();
        let one_line = String::from_utf8(text).unwrap().replace('\n', " ");
        assert_eq!(read(&mut one_line.as_bytes()).unwrap(), spans);
    }

    #[test]
    fn no_apostrophe_ends_the_script_that_the_original_puts_the_json_into() {
        let meta = Meta { title: "it's".into(), ..Meta::default() };
        let spans = Spans {
            meta,
            names: vec!["".into(), "x';alert(1)//".into()],
            spans: vec![Span { name: 1, ..Span::default() }],
        };
        let mut text = Vec::new();
        write(&spans, &mut text).unwrap();
        assert!(!text.contains(&b'\''));
        let again = read(&mut &text[..]).unwrap();
        assert_eq!((again.names, again.meta.title), (spans.names, spans.meta.title));
    }

    #[test]
    fn a_span_reads_the_same_in_any_form() {
        for (line, exact) in [
            ("[-1.00000010, 0.00000001, -1, 4194303, 0, -3, 2, 65535, 15, \"a.b/c\"]", true),
            ("[12.34567890, 0.5, 1, 2, 3, 4, 5, 6, 7, \"x\"]", false),
            ("[12.34567890,0.00000001,1,2,3,4,5,6,7,\"x\"]", false),
            ("[ 12.34567890, 0.00000001, 1, 2, 3, 4, 5.0, 6, 7, \"\\u00e9\"]", false),
        ] {
            let plain = |line: &str| {
                let mut reader = Reader::new();
                reader.plain(line.as_bytes()).map(|()| reader.spans[0])
            };
            let fast = plain(line);
            assert_eq!(fast.is_some(), exact, "{line}");
            let spaced = line.replace(", ", ",  ");
            let slow = read(&mut spaced.as_bytes()).unwrap();
            assert!(plain(&spaced).is_none() && slow.spans.len() == 1);
            assert_eq!(fast.unwrap_or(slow.spans[0]), slow.spans[0], "{line}");
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
