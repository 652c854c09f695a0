// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Reads the events that a program recorded into its area: from a copy, since the program may still write. Nothing is
//! trusted.
//!
//! A section [`crate::file::PROGRAM`] holds one process:
//!
//! ```text
//! 0 serial u32   4 tgid u32   8 grants u32   12 layout u32   16 refused u64   24 bytes that follow u64   32 comm [16]
//! 48 grants of 32 bytes, then by layout: 0 the area   1 the bytes of each grant, one after the other
//! ```

use crate::abi::programs::{
    kind, name, payload, ASYNC_BEGIN, ASYNC_END, BEGIN, BOOL, CONSTANT, END, FLOAT, FULL_TIME, HEX, MARK, NAME_OPEN,
    OPEN, SIGNED, TEXT, TEXT_CUT, TEXT_MAX, UNSIGNED, VALUE,
};

/// Bytes of the head of the section.
pub const HEAD_BYTES: usize = 48;
/// Bytes of a grant.
pub const GRANT_BYTES: usize = 32;
/// A layout: the grants are followed by the area from its start on.
pub const WHOLE_AREA: u32 = 0;
/// A layout: the grants are followed by their bytes, in their order.
pub const GRANTS_ALONE: u32 = 1;

/// Returns how many bytes of a copy have whole words, if a thread wrote while it was made, and `before` is an earlier
/// copy of the same: up to the first entry that was not begun in `before`. A copy may have some bytes of a word from
/// before it was written and some from after, but not if the earlier copy has any of the word.
pub fn whole(before: &[u8], copy: &[u8]) -> usize {
    let mut rest = copy;
    while let Some(word) = rest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) {
        let at = copy.len() - rest.len();
        if word != 0 && before.get(at..at + 8).is_none_or(|bytes| number(bytes) == 0) {
            return at;
        }
        let words = if word == 0 { 1 } else { 1 + payload(word) };
        rest = rest.get(8 * words..).unwrap_or_default();
    }
    copy.len()
}

/// An entry of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its time, whole TSC.
    pub tsc: u64,
    /// [`MARK`], [`BEGIN`], [`END`], [`VALUE`], [`ASYNC_BEGIN`] or [`ASYNC_END`].
    pub kind: u32,
    /// The number of its name.
    pub name: u32,
    /// The value of a [`VALUE`], and the number of an async part; else 0.
    pub value: u64,
    /// The words of its fields.
    pub fields: &'a [u8],
}

/// The entries of a grant, in the order in which they were recorded. Time never goes back among them.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
    /// Time of the last entry.
    last: u64,
    /// Entries that were being written when the program ended or the copy was made.
    pub unfinished: u32,
    /// Words that no library wrote.
    pub strange: u32,
}

impl<'a> Entries<'a> {
    /// The entries of a grant that has these bytes and was granted at `tsc`.
    pub fn new(words: &'a [u8], tsc: u64) -> Entries<'a> {
        Entries { rest: words, last: tsc, unfinished: 0, strange: 0 }
    }

    /// Returns how many bytes of a grant that is being filled are final, and the time of the last entry there: up to
    /// the first entry that is not complete, or not begun.
    pub fn settled(words: &'a [u8], tsc: u64) -> (usize, u64) {
        let mut entries = Entries::new(words, tsc);
        loop {
            let left = entries.rest;
            let word = left.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if word == 0 || word & OPEN != 0 || left.len() / 8 <= payload(word) {
                return (words.len() - left.len(), entries.last);
            }
            entries.step();
        }
    }

    /// Returns how many bytes of a grant, granted at `tsc`, come before the first entry from the TSC `from` on, and the
    /// time of the last entry in these.
    pub fn before(words: &'a [u8], tsc: u64, from: u64) -> (usize, u64) {
        let mut entries = Entries::new(words, tsc);
        loop {
            let Entries { rest, last, .. } = entries;
            let is_from_then = entries.step().is_some_and(|entry| entry.tsc >= from);
            if is_from_then || rest.is_empty() {
                return (words.len() - rest.len(), last);
            }
        }
    }

    /// Reads a word with its payload, which may be no entry.
    fn step(&mut self) -> Option<Entry<'a>> {
        let Some(word) = self.take(1).map(number) else {
            self.rest = &[];
            return None;
        };
        if word == 0 {
            return None;
        }
        let Some(values) = self.take(payload(word)) else {
            self.strange += 1;
            self.rest = &[];
            return None;
        };
        if word & OPEN != 0 {
            self.unfinished += 1;
            return None;
        }
        let step = (word as u32).wrapping_sub(self.last as u32) as i32;
        let tsc = self.last.saturating_add(step.max(0) as u64);
        match (kind(word), values.len() / 8) {
            // The kernel records when the grant was made, so nothing in it is earlier.
            (FULL_TIME, 1) if number(values) >= self.last => self.last = number(values),
            (MARK | BEGIN, _) | (END, 0) | (VALUE | ASYNC_END, 1) | (ASYNC_BEGIN, 1..) => {
                self.last = tsc;
                let (value, fields) = match kind(word) {
                    MARK | BEGIN | END => (0, values),
                    _ => (number(values), values.get(8..).unwrap_or_default()),
                };
                return Some(Entry { tsc, kind: kind(word), name: name(word), value, fields });
            }
            _ => self.strange += 1,
        }
        None
    }

    /// The next `words` words.
    fn take(&mut self, words: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(8 * words)?;
        self.rest = rest;
        Some(head)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        while !self.rest.is_empty() {
            let entry = self.step();
            if entry.is_some() {
                return entry;
            }
        }
        None
    }
}

/// The value that an entry has for a field of its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number.
    Unsigned(u64),
    /// A number with its sign.
    Signed(i64),
    /// A double.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// A number for base 16.
    Hex(u64),
    /// A text, and whether it was cut.
    Text(&'a [u8], bool),
    /// A value that is in the name itself.
    Constant(&'a [u8]),
    /// The entry has none, or one that is not of the field's type.
    Missing,
}

/// The fields of an entry: names and values, by the text of its name and its words.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    schema: &'a [u8],
    words: &'a [u8],
}

/// Splits the text of a name: the name itself, and its fields with these words.
pub fn fields<'a>(text: &'a [u8], words: &'a [u8]) -> (&'a [u8], Fields<'a>) {
    let (name, schema) = cut(text);
    (name, Fields { schema, words })
}

/// Splits at the first zero, which is dropped.
fn cut(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&c| c == 0).unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

impl<'a> Fields<'a> {
    /// Words of payload that no field has.
    pub fn left(&self) -> usize {
        self.words.len() / 8
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.words.split_at_checked(bytes.next_multiple_of(8))?;
        self.words = rest;
        Some(&taken[..bytes])
    }

    fn value(&mut self, kind: u8) -> Option<Value<'a>> {
        if kind == TEXT {
            let head = *self.words.first()?;
            let text = self.take(1 + usize::from(head & !TEXT_CUT))?;
            return Some(Value::Text(&text[1..], head & TEXT_CUT != 0));
        }
        let word = number(self.take(8)?);
        match (kind, word) {
            (UNSIGNED, _) => Some(Value::Unsigned(word)),
            (SIGNED, _) => Some(Value::Signed(word as i64)),
            (FLOAT, _) => Some(Value::Float(f64::from_bits(word))),
            (BOOL, 0 | 1) => Some(Value::Bool(word == 1)),
            (HEX, _) => Some(Value::Hex(word)),
            _ => None,
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let (field, rest) = cut(self.schema);
        let (&kind, name) = field.split_first()?;
        self.schema = rest;
        if kind == CONSTANT {
            let (name, value) = name.split_at(name.iter().position(|&c| c == b'=').unwrap_or(name.len()));
            return Some((name, Value::Constant(value.get(1..).unwrap_or_default())));
        }
        Some((name, self.value(kind).unwrap_or(Value::Missing)))
    }
}

/// The text of the name of this number in an area; `None` if there is none, or it was being written.
pub fn name_at(area: &[u8], number: u32) -> Option<&[u8]> {
    let at = usize::try_from(number).ok()?.checked_mul(8)?;
    let head = area.get(at..at.checked_add(2)?)?;
    let len = u16::from_le_bytes([head[0], head[1]]);
    if len & NAME_OPEN != 0 || len == 0 || usize::from(len) > TEXT_MAX {
        return None;
    }
    area.get(at + 2..at + 2 + usize::from(len))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
