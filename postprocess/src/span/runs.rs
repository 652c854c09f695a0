// SPDX-License-Identifier: BSD-3-Clause
//! More spans than memory holds, in order: sorted runs of them are stored in files, and merged at the end.

use std::io::{self, BufReader, Read, Seek, Write};

use super::order::{key, order, Key};
use super::Span;
use crate::frame::{begins, Reader, Writer};
use crate::merge::{Merge, When};

/// Bytes read from a run at a time.
const BUFFER: usize = 64 * 1024;

/// Runs of spans, each in a file of its own; their name numbers are the builder's.
#[derive(Debug)]
pub struct Runs<F> {
    files: Vec<F>,
    spans: usize,
}

impl<F> Default for Runs<F> {
    fn default() -> Self {
        Runs { files: Vec::new(), spans: 0 }
    }
}

impl<F: Read + Write + Seek> Runs<F> {
    /// Number of spans in all runs.
    pub fn spans(&self) -> usize {
        self.spans
    }

    /// Writes spans to an empty file. They must come after those of the runs before.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn add(&mut self, mut spans: Vec<Span>, mut file: F) -> io::Result<()> {
        order(&mut spans);
        let mut frames = Writer::new(&mut file)?;
        spans.iter().try_for_each(|span| frames.row(span, &[""; 0]))?;
        frames.finish(&super::Meta::default(), &[""; 0])?;
        file.rewind()?;
        self.spans += spans.len();
        self.files.push(file);
        Ok(())
    }

    /// Passes the spans of all runs and `last`, which are ordered, to `each` in one order.
    ///
    /// # Errors
    /// Any error of a file or of `each`.
    pub fn merge(self, last: &[Span], mut each: impl FnMut(&Span) -> io::Result<()>) -> io::Result<()> {
        if self.files.is_empty() {
            return last.iter().try_for_each(each);
        }
        let mut streams = Vec::new();
        for file in self.files {
            streams.push(Stream::Run(Box::new(Run::new(file)?)));
        }
        streams.push(Stream::Last(last.iter()));
        let mut merge = Merge::new(streams);
        merge.by_ref().try_for_each(|(_, span)| each(&span))?;
        merge.into_streams().into_iter().try_for_each(Stream::end)
    }
}

/// A run that is being read, or the spans that are in no file.
enum Stream<'a, F> {
    Run(Box<Run<F>>),
    Last(std::slice::Iter<'a, Span>),
}

impl<F: Read> Iterator for Stream<'_, F> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        match self {
            Stream::Run(run) => run.next(),
            Stream::Last(spans) => spans.next().copied(),
        }
    }
}

impl<F> Stream<'_, F> {
    fn end(self) -> io::Result<()> {
        match self {
            Stream::Run(run) => run.fault.map_or(Ok(()), Err),
            Stream::Last(_) => Ok(()),
        }
    }
}

struct Run<F> {
    frames: Reader<BufReader<F>, Span>,
    rows: std::vec::IntoIter<Span>,
    fault: Option<io::Error>,
}

impl<F: Read> Run<F> {
    fn new(file: F) -> io::Result<Run<F>> {
        let mut file = BufReader::with_capacity(BUFFER, file);
        begins::<Span>(&mut file)?;
        Ok(Run { frames: Reader::new(file)?, rows: Vec::new().into_iter(), fault: None })
    }

    fn next(&mut self) -> Option<Span> {
        if let Some(span) = self.rows.next() {
            return Some(span);
        }
        match self.frames.batch() {
            Ok(batch) => self.rows = batch?.rows.into_iter(),
            Err(fault) => self.fault = Some(fault),
        }
        self.rows.next()
    }
}

impl When for Span {
    type Time = Key;

    #[inline]
    fn when(&self) -> Key {
        key(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::names::NameId;
    use crate::time::Time;
    use std::io::Cursor;

    #[test]
    fn runs_are_merged_in_the_order_of_all() {
        let spans: Vec<Span> = (0..10_000)
            .map(|n| Span { start: Time(i64::from(n) / 3 - i64::from(n % 7) * 50), name: NameId(n), ..Span::default() })
            .collect();
        let mut runs = Runs::default();
        for run in spans[..9_000].chunks(1_000) {
            runs.add(run.to_vec(), Cursor::new(Vec::new())).unwrap();
        }
        let mut last = spans[9_000..].to_vec();
        order(&mut last);
        let mut merged = Vec::new();
        assert_eq!(runs.spans(), 9_000);
        let keep = |span: &Span| {
            merged.push(*span);
            Ok(())
        };
        runs.merge(&last, keep).unwrap();
        let mut expected = spans;
        order(&mut expected);
        assert!(merged == expected);
    }
}
