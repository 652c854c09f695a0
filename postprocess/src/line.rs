// SPDX-License-Identifier: BSD-3-Clause
//! Lines of text, one by one; a line that the input's buffer holds whole is not copied.

use std::io::{self, BufRead, ErrorKind, Read};

/// The lines of an input.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    /// Number of bytes of the input's buffer that have been returned.
    used: usize,
    /// A line that the buffer did not hold whole.
    cut: Vec<u8>,
    /// Number of lines read.
    number: u64,
}

/// Maximum bytes of a line: a whole trace may be one, but not endless input.
const LONGEST: u64 = 1 << 28;

impl<R: BufRead> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Lines<R> {
        Lines { input, used: 0, cut: Vec::new(), number: 0 }
    }

    /// The next line, without its end; `None` at the end of the input.
    ///
    /// # Errors
    /// Any error of the input, or that the line is too long.
    #[inline]
    pub fn read(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(self.read_to_end()?.map(|(line, _)| line))
    }

    /// Like [`Lines::read`], and true if the line has an end: a last line without one may be cut off.
    ///
    /// # Errors
    /// As [`Lines::read`].
    #[inline]
    pub fn read_to_end(&mut self) -> io::Result<Option<(&[u8], bool)>> {
        self.input.consume(std::mem::take(&mut self.used));
        self.number += 1;
        let end = match self.input.fill_buf() {
            Err(e) if e.kind() == ErrorKind::Interrupted => None,
            buffer => memchr::memchr(b'\n', buffer?),
        };
        if let Some(end) = end {
            self.used = end + 1;
            return Ok(Some((&self.input.fill_buf()?[..end], true)));
        }
        self.cut.clear();
        let read = self.input.by_ref().take(LONGEST).read_until(b'\n', &mut self.cut)?;
        if read as u64 == LONGEST && !self.cut.ends_with(b"\n") {
            let fact = format!("line {}: longer than {} MiB", self.number, LONGEST >> 20);
            return Err(io::Error::new(ErrorKind::InvalidData, fact));
        }
        let line = self.cut.strip_suffix(b"\n").unwrap_or(&self.cut);
        Ok(Some((line, line.len() < read)).filter(|_| read > 0))
    }

    /// The number of the line last read, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// Lines that made no sense: their number, and the first of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unread {
    count: u64,
    first: u64,
}

/// Number of lines after which a text is given up if none of them made sense.
const HOPELESS: u64 = 1 << 16;

impl Unread {
    /// Gives up a text in which every line so far made no sense, once there are too many of them.
    ///
    /// # Errors
    /// If there are too many.
    pub fn hope(self, what: &str) -> io::Result<()> {
        let fact = || io::Error::new(ErrorKind::InvalidData, format!("{HOPELESS} lines, and none is of {what}"));
        (self.count < HOPELESS).then_some(()).ok_or_else(fact)
    }

    /// Counts the line with this number.
    pub fn add(&mut self, line: u64) {
        self.first = if self.count == 0 { line } else { self.first };
        self.count += 1;
    }

    /// A sentence about the lines of `what`, if there are any.
    pub fn sentence(self, what: &str) -> Option<String> {
        let Unread { count: number, first } = self;
        match number {
            0 => None,
            1 => Some(format!("line {first} of the {what} could not be read")),
            _ => Some(format!("{number} lines of the {what} could not be read; the first is line {first}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn lines_come_whole_whatever_the_buffer_holds() {
        for text in ["", "\n", "a", "a\n", "\n\nabc\r\nde\n\nf", "abcdefgh\nabcdefgh\n"] {
            for size in 1..20 {
                let mut lines = Lines::new(BufReader::with_capacity(size, text.as_bytes()));
                let mut found = Vec::new();
                while let Some(line) = lines.read().unwrap() {
                    found.push(line.to_vec());
                }
                let expected: Vec<_> = text.split_terminator('\n').map(|line| line.as_bytes().to_vec()).collect();
                assert_eq!(found, expected, "{text:?} by {size}");
            }
        }
    }
}
