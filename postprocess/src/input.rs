// SPDX-License-Identifier: BSD-3-Clause
//! Input: bytes whose beginning is looked at before the rest is read, and that end once, as a terminal's do.
//!
//! Invariant: of a raw trace no more is read than its header says, and of a page no more than its end, so what never ends
//! does not fill the memory.

use std::fmt;
use std::io::{self, Cursor, Read};

use memchr::memmem;

use crate::html::lift;
use crate::kind::{self, Kind, LOOK};
use crate::progress;
use crate::raw::file;

/// Bytes that are read of a raw trace before its size is looked for, and at a time while it is not known; of a page, too.
const STEP: u64 = 1 << 22;
/// A page without data in so many bytes, 16 MiB, is none.
const BARE: usize = 1 << 24;
/// Bytes that are read behind the end of a raw trace: by them another that follows is recognized.
const BEHIND: usize = file::MAGIC_BYTES;

/// An input of this kind.
#[derive(Debug)]
pub struct Input<R> {
    /// What it is.
    pub kind: Kind,
    start: Cursor<Vec<u8>>,
    rest: R,
    ended: bool,
    counted: bool,
}

/// An input of another kind than is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    kind: Kind,
    wanted: Kind,
    /// A command line that does it.
    pub hint: Option<String>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wanted {
            Kind::Raw => f.write_str("byte 0: not a KUtrace trace"),
            wanted => write!(f, "byte 0: not {wanted}"),
        }?;
        match self.kind {
            Kind::Binary | Kind::Text => Ok(()),
            Kind::Empty => f.write_str(": it is empty"),
            kind => write!(f, ": it is {kind}"),
        }
    }
}

impl std::error::Error for Wrong {}

impl<R: Read> Input<R> {
    /// Looks at the beginning of what `rest` has.
    ///
    /// # Errors
    /// Whatever `rest` answers, here and below.
    pub fn new(mut rest: R) -> io::Result<Input<R>> {
        let mut start = Vec::new();
        let read = rest.by_ref().take(LOOK as u64).read_to_end(&mut start)?;
        Ok(Input { kind: kind::of(&start), start: Cursor::new(start), rest, ended: read < LOOK, counted: false })
    }

    /// Counts the bytes that are read as progress, of as many as there are.
    pub fn count(&mut self, bytes: u64) {
        self.counted = true;
        progress::begin(bytes);
    }

    /// Refuses what is known to be of another kind than `tool` wants of `file`; text of no known kind may have been cut
    /// out of what is wanted.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn expect(&self, wanted: Kind, tool: &str, file: &str) -> Result<(), Wrong> {
        let fits = match (self.kind, wanted) {
            (Kind::Raw | Kind::Original, Kind::Raw) => true,
            (Kind::Text | Kind::Empty, Kind::Events | Kind::Spans) | (Kind::Empty, Kind::Page) => true,
            (kind, wanted) => kind == wanted,
        };
        let hint = kind::way(self.kind, wanted, tool, file);
        if fits {
            Ok(())
        } else {
            Err(Wrong { kind: self.kind, wanted, hint })
        }
    }

    /// All bytes of a raw trace, and some behind it if there are any; `size` bytes are expected.
    ///
    /// # Errors
    /// As [`Input::new`].
    pub fn raw(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Where there is no room for all, it may still be less than was said.
        let reserve = |bytes: &mut Vec<u8>, all: u64| {
            let more = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(bytes.len());
            let _ = bytes.try_reserve_exact(more);
        };
        reserve(&mut bytes, size);
        loop {
            let wanted = match file::size(&bytes) {
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

    /// All bytes of a page, and some behind it if there are any.
    ///
    /// # Errors
    /// As [`Input::new`].
    pub fn page(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let has = |bytes: &[u8], mark: &str| memmem::find(bytes, mark.as_bytes()).is_some();
        let mut ended = false;
        loop {
            let known = bytes.len().saturating_sub(lift::END.len());
            let read = self.by_ref().take(STEP).read_to_end(&mut bytes)?;
            if (read as u64) < STEP || std::mem::replace(&mut ended, has(&bytes[known..], lift::END)) {
                return Ok(bytes);
            }
            if bytes.len() == BARE && !lift::DATA.iter().any(|mark| has(&bytes, mark)) {
                return Ok(bytes);
            }
        }
    }
}

impl<R: Read> Read for Input<R> {
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

    /// Answers one byte at a time, and more after its end.
    struct Terminal(Vec<u8>, u32);

    impl Read for Terminal {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop() {
                Some(byte) => buffer[0] = byte,
                None => {
                    self.1 += 1;
                    assert_eq!(self.1, 1, "read again behind the end");
                    return Ok(0);
                }
            }
            Ok(1)
        }
    }

    #[test]
    fn an_input_ends_once() {
        let mut input = Input::new(Terminal(b"olleh".to_vec(), 0)).unwrap();
        let mut text = String::new();
        input.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), input.read(&mut [0; 9]).unwrap(), input.kind), ("hello", 0, Kind::Text));
    }

    #[test]
    fn what_never_ends_is_refused_by_its_beginning() {
        let input = Input::new(repeat(0)).unwrap();
        let wrong = input.expect(Kind::Raw, "rawtoevent", "stdin").unwrap_err();
        assert_eq!((wrong.to_string().as_str(), wrong.hint), ("byte 0: not a KUtrace trace", None));
    }

    #[test]
    fn of_a_page_no_more_is_read_than_its_end() {
        let long = "x".repeat(9 << 20);
        for (start, most) in [(format!("<html>{}{long}</html>", lift::DATA[0]), 20 << 20), ("<html>".into(), BARE)] {
            let mut input = Input::new(start.as_bytes().chain(repeat(0))).unwrap();
            let read = input.page().unwrap();
            assert!(read.starts_with(start.as_bytes()) && read.len() <= most, "{}", read.len());
        }
    }
}
