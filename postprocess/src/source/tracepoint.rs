// SPDX-License-Identifier: BSD-3-Clause
//! Events from other tools' text of the kernel's tracepoints: /sys/kernel/tracing/trace, `trace-cmd report`, `perf
//! script`.
//!
//! [`line`] reads a line, [`convert`] makes events of it, with the table's numbers. A recording's capabilities depend
//! on the events that were switched on, which the text does not list: whatever is in none of its lines counts as
//! unseen. Rules that need this while events arrive know the first [`AHEAD`] lines.
//!
//! Times are those of the recording's clock, as if it had begun in 1970, so they are the file's own, unless perf's head
//! has the time of day. Invariant: no content is an error; invalid lines are counted.

pub mod line;
pub mod convert;

use std::io::{self, BufRead};

use crate::event::batch::Batch;
use crate::event::names::Names;
use crate::event::{Event, Meta};
use crate::line::{Lines, Unread};
use convert::Converter;

/// Number of lines read before the first event is passed on.
const AHEAD: u64 = 1 << 16;
/// Number of events in a batch.
const BATCH: usize = 1 << 12;

/// True if a text with this start is one of these.
pub fn is_text(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    // A long head may come before perf's events.
    ["# tracer: ", "# ========\n"].iter().any(|first| text.starts_with(first))
        || text.lines().take(80).any(|one| line::read(one).is_some())
}

/// Reads the events of a text of tracepoints.
#[derive(Debug)]
pub struct Text<R> {
    lines: Lines<R>,
    convert: Converter,
    names: Names,
    /// Number of names passed on.
    sent: usize,
    unread: Unread,
    /// Facts known when the first events were passed on.
    meta: Meta,
}

impl<R: BufRead> Text<R> {
    /// A reader of `input`, which has read the first lines.
    ///
    /// # Errors
    /// Any error of `input`, here and below.
    pub fn new(input: R) -> io::Result<Text<R>> {
        let mut names = Names::default();
        let convert = Converter::new(&mut names);
        let (lines, unread) = (Lines::new(input), Unread::default());
        let mut text = Text { lines, convert, names, sent: 0, unread, meta: Meta::default() };
        while text.lines.number() < AHEAD && text.next_line()? {}
        text.meta = text.convert.meta();
        Ok(text)
    }

    /// Facts about the whole trace so far.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The next events; `None` at the end.
    ///
    /// # Errors
    /// As [`Text::new`].
    pub fn batch(&mut self) -> io::Result<Option<Batch<Event>>> {
        while self.convert.events.len() < BATCH && self.next_line()? {}
        let names = self.names.since(self.sent).to_vec();
        self.sent += names.len();
        let rows = std::mem::take(&mut self.convert.events);
        Ok(Some(Batch { names, rows }).filter(|batch| !batch.rows.is_empty()))
    }

    /// Facts about the whole trace at the end.
    pub fn finish(self) -> Meta {
        let mut meta = self.convert.meta();
        meta.quality.extend(self.unread.sentence("text"));
        meta
    }

    /// Reads a line; false if there is none.
    fn next_line(&mut self) -> io::Result<bool> {
        let Some(text) = self.lines.read()? else { return Ok(false) };
        let text = String::from_utf8_lossy(text);
        let taken = match line::read(&text) {
            Some(line) => self.convert.line(&line, &mut self.names),
            None => self.convert.other(&text, &mut self.names),
        };
        if taken.is_none() {
            self.unread.add(self.lines.number());
            if self.convert.is_new() {
                self.unread.hope("a recording of tracepoints")?;
            }
        }
        Ok(true)
    }
}
