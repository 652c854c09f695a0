// SPDX-License-Identifier: BSD-3-Clause
//! Lines of text, one by one; none is copied that the input's buffer holds whole.

use std::io::{self, BufRead, ErrorKind};

/// The lines of an input.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    /// Bytes of the input's buffer that have been answered.
    used: usize,
    /// A line that the buffer did not hold whole.
    cut: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Lines<R> {
        Lines { input, used: 0, cut: Vec::new() }
    }

    /// The next line, without its end; `None` at the end of the input.
    ///
    /// # Errors
    /// Whatever the input answers.
    #[inline]
    pub fn read(&mut self) -> io::Result<Option<&[u8]>> {
        self.input.consume(std::mem::take(&mut self.used));
        let end = match self.input.fill_buf() {
            Err(e) if e.kind() == ErrorKind::Interrupted => None,
            buffer => memchr::memchr(b'\n', buffer?),
        };
        if let Some(end) = end {
            self.used = end + 1;
            return Ok(Some(&self.input.fill_buf()?[..end]));
        }
        self.cut.clear();
        let read = self.input.read_until(b'\n', &mut self.cut)?;
        let line = self.cut.strip_suffix(b"\n").unwrap_or(&self.cut);
        Ok(Some(line).filter(|_| read > 0))
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
