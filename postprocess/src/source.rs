// SPDX-License-Identifier: BSD-3-Clause
//! Sources: everything that can be read, recognized by its first bytes and opened in one place.
//!
//! | what | opened by | gives |
//! |---|---|---|
//! | raw trace, ours, the original's or trace-cmd's, or those of several machines | [`Source::raw`], then [`trace`] of its bytes | a [`Trace`], which is decoded |
//! | events, as text or frames; [`tracepoint`]s as text, or as [`perfetto`] keeps them | [`Source::events`] | [`Batches`] |
//! | spans, as JSON or frames | [`Source::spans`] | [`Spans`] |
//! | page | [`Source::page`] | its bytes, for [`page::lift`](crate::sink::page::lift()) |
//!
//! No other module asks for the kind of a file: a caller names the [`Stage`] it needs, and a file of another stage is
//! refused with the command that converts it.
//!
//! Invariant: no more of a raw trace is read than its header states, and no more of a page than its end, so endless
//! input does not fill the memory. An input ends once, like a terminal's.

mod kind;
pub mod page;
pub mod tracepoint;
pub mod perfetto;
pub mod ftrace;
pub mod events;
mod spans;
pub mod json;

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};

use kutrace_format::file::{Header, FLAG_STREAM};
use memchr::memmem;

use crate::event::names::Names;
use crate::event::{Events, Meta};
use crate::machine;
use crate::machine::file::is_machines;
use crate::machine::trace::Machines;
use crate::progress;
use crate::raw::damage::{Damage, NotATrace};
use crate::raw::{self, file, original};
use crate::span::limit::Keep;
use crate::span::Spans;
use kind::{Kind, LOOK};

pub use crate::raw::trace::{Decode, Head, Trace};
pub use events::Batches;
pub use spans::Backward;

/// Number of bytes of a raw trace that are read before its size is looked for, and at a time while it is unknown; also
/// for a page.
const STEP: u64 = 1 << 22;
/// A file without a page's data in its first 16 MiB is not a page.
const BARE: usize = 1 << 24;
/// Number of bytes that are read after the end of a raw trace: enough to recognize another one there.
const BEHIND: usize = file::MAGIC_BYTES;

/// The form that a trace has between two tools, which a caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A raw trace of any format.
    Raw,
    /// Events.
    Events,
    /// Spans.
    Spans,
    /// A page.
    Page,
}

/// An open input, recognized by its first bytes.
#[derive(Debug)]
pub struct Source<R> {
    kind: Kind,
    start: Cursor<Vec<u8>>,
    rest: R,
    ended: bool,
    counted: bool,
}

/// An input of another stage than needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    kind: Kind,
    wanted: Stage,
    /// A command line that makes the needed stage.
    pub hint: Option<String>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wanted {
            Stage::Raw => f.write_str("byte 0: not a KUtrace trace"),
            Stage::Events => f.write_str("byte 0: not events"),
            Stage::Spans => f.write_str("byte 0: not spans"),
            Stage::Page => f.write_str("byte 0: not a page"),
        }?;
        match self.kind {
            Kind::Binary | Kind::Text => Ok(()),
            Kind::Empty => f.write_str(": it is empty"),
            kind => write!(f, ": it is {kind}"),
        }
    }
}

impl std::error::Error for Wrong {}

/// Opens an input, and looks at its first bytes.
///
/// # Errors
/// Any error of `input`.
pub fn open<R: Read>(mut input: R) -> io::Result<Source<R>> {
    let mut start = Vec::new();
    let read = input.by_ref().take(LOOK as u64).read_to_end(&mut start)?;
    Ok(Source { kind: kind::of(&start), start: Cursor::new(start), rest: input, ended: read < LOOK, counted: false })
}

/// Opens the bytes of a raw trace of any format.
///
/// # Errors
/// If this is not a raw trace.
pub fn trace(bytes: &[u8]) -> Result<Box<dyn Trace + '_>, NotATrace> {
    if !is_machines(bytes) {
        return one(bytes);
    }
    let machine::file::Layout { machines, mut damage } = machine::file::split(bytes)?;
    let (mut parts, count) = (Vec::new(), machines.len());
    for (machine, bytes) in machines {
        match one(bytes) {
            Ok(trace) => parts.push((machine, trace)),
            Err(error) => damage.push(Damage::at(0, format!("machine {} is skipped: {error}", machine.name))),
        }
    }
    // Hosts are identified by their index.
    if parts.len() < count {
        parts.iter_mut().for_each(|(machine, _)| machine.inside = None);
    }
    Ok(Box::new(Machines::new(parts, damage)))
}

/// The trace of one machine.
fn one(bytes: &[u8]) -> Result<Box<dyn Trace + '_>, NotATrace> {
    match kind::of(bytes) {
        Kind::Original => Ok(Box::new(original::parse(bytes)?)),
        Kind::TraceCmd => Ok(Box::new(ftrace::parse(bytes)?)),
        _ => Ok(Box::new(raw::parse(bytes)?)),
    }
}

/// True if the bytes of a raw trace are the original's.
pub fn is_original(bytes: &[u8]) -> bool {
    kind::of(bytes) == Kind::Original
}

/// Facts about a raw trace of any format that are known before its events are decoded.
///
/// # Errors
/// If this is not a raw trace.
pub fn meta(bytes: &[u8]) -> Result<Meta, NotATrace> {
    Ok(trace(bytes)?.decoder(&mut Names::default()).meta())
}

/// Decodes a whole raw trace of any format at once.
///
/// # Errors
/// If this is not a raw trace.
pub fn decode(bytes: &[u8]) -> Result<Events, NotATrace> {
    let (trace, mut names) = (trace(bytes)?, Names::default());
    let mut decoder = trace.decoder(&mut names);
    let events = decoder.batch(&mut names, usize::MAX);
    Ok(Events { meta: decoder.meta(), names, events })
}

impl<R: Read> Source<R> {
    /// Counts the bytes that are read as progress, out of `bytes`.
    pub fn count(&mut self, bytes: u64) {
        self.counted = true;
        progress::begin(bytes);
    }

    /// Refuses an input that is known to be of another stage than `tool` needs from `file`; text of an unknown kind may
    /// have been cut out of the needed one.
    ///
    /// # Errors
    /// If the input is of another stage.
    pub fn expect(&self, wanted: Stage, tool: &str, file: &str) -> Result<(), Wrong> {
        let unknown = matches!((self.kind, wanted), (Kind::Text, Stage::Events | Stage::Spans));
        let empty = self.kind == Kind::Empty && wanted != Stage::Raw;
        match unknown || empty || self.kind.stage() == Some(wanted) {
            true => Ok(()),
            false => Err(Wrong { kind: self.kind, wanted, hint: kind::way(self.kind, wanted, tool, file) }),
        }
    }

    /// The command that makes a page of `file`, if that is not a raw trace.
    pub fn way_to_page(&self, file: &str) -> Option<String> {
        match self.kind.stage()? {
            Stage::Raw => None,
            Stage::Page => Some("open it in a browser".to_string()),
            Stage::Events | Stage::Spans => kind::way(self.kind, Stage::Page, "", file),
        }
    }

    /// The events of text or frames.
    ///
    /// # Errors
    /// Any error of the input, or that the frames are of an unknown version.
    pub fn events(self) -> io::Result<Batches<BufReader<Source<R>>>> {
        Batches::open(self.kind, self.buffered())
    }

    /// All spans of JSON or frames, passed to `keep`.
    ///
    /// # Errors
    /// As [`Source::events`].
    pub fn spans(self, keep: impl Keep) -> io::Result<Spans> {
        spans::read(self.buffered(), keep)
    }

    fn buffered(self) -> BufReader<Source<R>> {
        BufReader::with_capacity(1 << 16, self)
    }

    /// All bytes of a raw trace, and some after it if there are any; `size` bytes are expected.
    ///
    /// # Errors
    /// As [`open`].
    pub fn raw(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // If there is no room for all bytes, the trace may still be smaller than stated.
        let reserve = |bytes: &mut Vec<u8>, all: u64| {
            let more = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(bytes.len());
            let _ = bytes.try_reserve_exact(more);
        };
        reserve(&mut bytes, size);
        loop {
            let wanted = match machine::file::size(&bytes).or_else(|| file::size(&bytes)) {
                Some(size) => {
                    reserve(&mut bytes, (size + BEHIND) as u64);
                    (size + BEHIND).saturating_sub(bytes.len()) as u64
                }
                None => STEP,
            };
            let read = self.by_ref().take(wanted).read_to_end(&mut bytes)?;
            if (read as u64) < wanted || wanted == 0 {
                return Ok(bytes);
            }
        }
    }

    /// All bytes of a page, and some after it if there are any.
    ///
    /// # Errors
    /// As [`open`].
    pub fn page(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let has = |bytes: &[u8], mark: &str| memmem::find(bytes, mark.as_bytes()).is_some();
        let mut ended = false;
        loop {
            let known = bytes.len().saturating_sub(page::END.len());
            let read = self.by_ref().take(STEP).read_to_end(&mut bytes)?;
            if (read as u64) < STEP || std::mem::replace(&mut ended, has(&bytes[known..], page::END)) {
                return Ok(bytes);
            }
            if bytes.len() == BARE && !page::DATA.iter().any(|mark| has(&bytes, mark)) {
                return Ok(bytes);
            }
        }
    }
}

impl<R> Source<R> {
    /// True if it is a raw trace that is written while it is recorded, so that its end may be far away.
    pub fn is_stream(&self) -> bool {
        let head = self.start.get_ref().first_chunk().filter(|_| self.kind == Kind::Raw).and_then(Header::from_bytes);
        head.is_some_and(|header| header.flags & FLAG_STREAM != 0)
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.start.read(buffer)?;
        if self.counted {
            progress::advance(read as u64);
        }
        if read > 0 || self.ended || buffer.is_empty() {
            return Ok(read);
        }
        let read = self.rest.read(buffer)?;
        self.ended = read == 0;
        if self.counted {
            progress::advance(read as u64);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::repeat;

    /// Returns one byte at a time, and refuses to be read again after its end.
    struct Terminal(Vec<u8>, u32);

    impl Read for Terminal {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop() {
                Some(byte) => buffer[0] = byte,
                None => {
                    self.1 += 1;
                    assert_eq!(self.1, 1, "read again after the end");
                    return Ok(0);
                }
            }
            Ok(1)
        }
    }

    #[test]
    fn an_input_ends_once() {
        let mut input = open(Terminal(b"olleh".to_vec(), 0)).unwrap();
        let mut text = String::new();
        input.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), input.read(&mut [0; 9]).unwrap(), input.kind), ("hello", 0, Kind::Text));
    }

    #[test]
    fn what_never_ends_is_refused_by_its_beginning() {
        let input = open(repeat(0)).unwrap();
        let wrong = input.expect(Stage::Raw, "rawtoevent", "stdin").unwrap_err();
        assert_eq!((wrong.to_string().as_str(), wrong.hint), ("byte 0: not a KUtrace trace", None));
    }

    #[test]
    fn of_a_page_no_more_is_read_than_its_end() {
        let long = "x".repeat(9 << 20);
        for (start, max) in [(format!("<html>{}{long}</html>", page::DATA[0]), 20 << 20), ("<html>".into(), BARE)] {
            let mut input = open(start.as_bytes().chain(repeat(0))).unwrap();
            let read = input.page().unwrap();
            assert!(read.starts_with(start.as_bytes()) && read.len() <= max, "{}", read.len());
        }
    }
}
