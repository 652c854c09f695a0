// SPDX-License-Identifier: BSD-3-Clause
//! Kind of a file, by its first bytes; and the tools that convert it.

use std::fmt;

use crate::event::batch::Row;
use crate::event::Event;
use crate::machine::file::is_machines;
use crate::raw::original;
use crate::span::Span;

use super::{ftrace, perfetto, tracepoint, Stage};

/// Number of bytes from the start that are enough to recognize a kind.
pub const LOOK: usize = 4096;

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An empty file.
    Empty,
    /// A raw trace, ours.
    Raw,
    /// Raw traces of several machines.
    Machines,
    /// A raw trace of the original's.
    Original,
    /// Events, as lines or frames.
    Events,
    /// The kernel's tracepoints, as text from other tools.
    Tracepoints,
    /// The same in Perfetto's format.
    Perfetto,
    /// The same in perf's format.
    Perf,
    /// The same in trace-cmd's format.
    TraceCmd,
    /// Spans, as JSON or frames.
    Spans,
    /// A page.
    Page,
    /// Bytes that are not text, of an unknown kind.
    Binary,
    /// Text of an unknown kind; it may have been cut out of a known one.
    Text,
}

impl Kind {
    /// The stage of files of this kind on their way to a page; `None` if KUtrace does not write them.
    pub fn stage(self) -> Option<Stage> {
        match self {
            Kind::Raw | Kind::Machines | Kind::Original | Kind::TraceCmd => Some(Stage::Raw),
            Kind::Events | Kind::Tracepoints | Kind::Perfetto => Some(Stage::Events),
            Kind::Spans => Some(Stage::Spans),
            Kind::Page => Some(Stage::Page),
            Kind::Perf | Kind::Empty | Kind::Binary | Kind::Text => None,
        }
    }
}

/// Kind of a file with this start.
pub fn of(start: &[u8]) -> Kind {
    let text = start.trim_ascii_start();
    match text.first() {
        _ if start.is_empty() => Kind::Empty,
        _ if start.starts_with(&kutrace_format::file::MAGIC) => Kind::Raw,
        _ if is_machines(start) => Kind::Machines,
        _ if start.starts_with(&Event::MAGIC[..7]) => Kind::Events,
        _ if start.starts_with(&Span::MAGIC[..7]) => Kind::Spans,
        _ if start.starts_with(b"PERFILE2") => Kind::Perf,
        _ if start.starts_with(ftrace::MAGIC) => Kind::TraceCmd,
        _ if original::is_original(start) => Kind::Original,
        _ if perfetto::is_trace(start) => Kind::Perfetto,
        _ if start[..start.len().min(LOOK)].contains(&0) => Kind::Binary,
        _ if tracepoint::is_text(start) => Kind::Tracepoints,
        Some(b'{' | b'[') => Kind::Spans,
        Some(b'<') => Kind::Page,
        Some(b'#') if text.starts_with(b"# ## ") || text.starts_with(b"# [1] ") => Kind::Events,
        Some(b'-' | b'0'..=b'9') if is_event(text) => Kind::Events,
        _ => Kind::Text,
    }
}

/// True if a text begins with three numbers, like event lines.
fn is_event(text: &[u8]) -> bool {
    let line = text.split(|&c| c == b'\n').next().unwrap_or_default();
    let fields: Vec<&[u8]> = line.split(|&c| c == b' ').filter(|f| !f.is_empty()).take(4).collect();
    let number = |f: &&[u8]| std::str::from_utf8(f).is_ok_and(|f| f.parse::<i64>().is_ok());
    fields.len() == 4 && fields[..3].iter().all(number)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Empty => "nothing",
            Kind::Raw => "a raw trace",
            Kind::Machines => "the raw traces of several machines",
            Kind::Original => "a raw trace of the original KUtrace",
            Kind::Events => "events",
            Kind::Tracepoints => "a recording of tracepoints",
            Kind::Perfetto => "a Perfetto trace",
            Kind::Perf => "a recording of perf",
            Kind::TraceCmd => "a recording of trace-cmd",
            Kind::Spans => "spans",
            Kind::Page => "a page",
            Kind::Binary | Kind::Text => "not a file that KUtrace writes",
        })
    }
}

/// The command line that makes the stage `wanted`, which `tool` reads, from `file`, which is of another kind.
pub fn way(kind: Kind, wanted: Stage, tool: &str, file: &str) -> Option<String> {
    let to_spans = match kind {
        Kind::Raw | Kind::Machines | Kind::Original | Kind::TraceCmd => format!("rawtoevent {file} | eventtospan"),
        Kind::Events => format!("eventtospan {file}"),
        Kind::Tracepoints => format!("ftracetospan {file}"),
        Kind::Perfetto => format!("perfettotospan {file}"),
        Kind::Perf => format!("perf script --header --ns --show-lost-events -i {file} | perftospan"),
        Kind::Page => format!("htmltospan {file}"),
        _ => String::new(),
    };
    let spans_are_made = !to_spans.is_empty();
    match (kind, wanted) {
        (Kind::Spans, Stage::Events | Stage::Page) => Some(format!("spantohtml {file} > page.html")),
        (Kind::Events | Kind::Spans | Kind::Page, Stage::Raw) => {
            Some(format!("{tool} needs the raw trace that this was made from"))
        }
        (Kind::Raw | Kind::Machines | Kind::Original | Kind::TraceCmd, Stage::Raw) | (Kind::Page, Stage::Page) => None,
        (_, Stage::Spans) if spans_are_made => Some(format!("{to_spans} | {tool}")),
        (_, Stage::Events) if spans_are_made => Some(to_spans),
        (_, Stage::Raw | Stage::Page) if spans_are_made => Some(format!("{to_spans} | spantohtml > page.html")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_recognized_by_how_it_begins() {
        for (start, kind) in [
            (&b""[..], Kind::Empty),
            (b"KUtrace5", Kind::Raw),
            (b"KUtraceM", Kind::Machines),
            (b"KUevent1", Kind::Events),
            (b"KUspans9", Kind::Spans),
            (b"# ## FORMAT: 5\n", Kind::Events),
            (b"\n100 0 2049 2  7 0  0 0 0 sys#1 (801)\n", Kind::Events),
            (b"# tracer: nop\n", Kind::Tracepoints),
            (b"# ========\n#\n  <idle>-0 [000] d..2. 55.1: x: y\n", Kind::Tracepoints),
            (b"<idle>-0 [000] d..2. 55.1: x: y", Kind::Tracepoints),
            (b"\x0a\x08\x08\x01\x12\x04\0\0\0\0\x0a", Kind::Perfetto),
            (b"\x0a\x08\x0f\x01\x12\x04\0\0\0\0", Kind::Binary),
            (b"PERFILE2", Kind::Perf),
            (b"\x17\x08\x44tracing", Kind::TraceCmd),
            (b"  {\n \"Comment\" : ", Kind::Spans),
            (b"<!doctype html>", Kind::Page),
            (b"\0\0\0\0", Kind::Binary),
            (b"\x7fELF\x02\x01\x01\0", Kind::Binary),
            (b"10 2049", Kind::Text),
            (b"something else", Kind::Text),
        ] {
            assert_eq!(of(start), kind, "{:?}", String::from_utf8_lossy(start));
        }
    }

    #[test]
    fn a_wrong_file_is_answered_with_the_right_command_line() {
        let way = |kind, wanted, tool| way(kind, wanted, tool, "t").unwrap_or_default();
        assert_eq!(way(Kind::Raw, Stage::Spans, "spantohtml"), "rawtoevent t | eventtospan | spantohtml");
        assert_eq!(way(Kind::Raw, Stage::Events, "eventtospan"), "rawtoevent t | eventtospan");
        assert_eq!(way(Kind::Page, Stage::Spans, "spantoprof"), "htmltospan t | spantoprof");
        assert_eq!(way(Kind::Spans, Stage::Page, "htmltospan"), "spantohtml t > page.html");
        assert_eq!(
            way(Kind::Perf, Stage::Spans, "spantohtml"),
            "perf script --header --ns --show-lost-events -i t | perftospan | spantohtml"
        );
        assert!(way(Kind::Page, Stage::Raw, "rawtoevent").contains("needs the raw trace"));
        assert_eq!(way(Kind::Text, Stage::Raw, "rawtoevent"), "");
    }
}
