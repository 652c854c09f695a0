// SPDX-License-Identifier: BSD-3-Clause
//! Contents of the records of chosen tracepoints: fields with names, as the kernel described them when the trace was
//! made.
//!
//! A description is a name record of the file:
//!
//! ```text
//! sched:sched_wakeup        the tracepoint
//! comm s 0 16               field, type, where it begins in the words of an entry, bytes
//! pid i 16 4
//! ```
//!
//! Types: `u` number, `i` signed number, `x` number to be shown in base 16, `s` text, `b` bytes; `d` and `r` a word
//! that locates a text, like the kernel's `__data_loc` and `__rel_loc`, `D` and `R` one that locates bytes. A number of
//! several items has bytes for each: `u4`.
//!
//! Invariant: no content makes the reader fail; a value that does not fit into an entry is shown as `...`.

use std::fmt::Write;

use kutrace_format::file::{Name, NameKind};

use crate::event::names::clean;

/// Bytes before the words of an entry in the kernel's record, which the places in a `__data_loc` count from.
const COMMON_BYTES: usize = 8;

/// The chosen tracepoints.
#[derive(Debug, Default)]
pub struct Tracepoints {
    known: Vec<Option<Tracepoint>>,
}

#[derive(Debug)]
struct Tracepoint {
    name: String,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    kind: u8,
    at: usize,
    bytes: usize,
    /// Size in bytes of one number.
    item: usize,
}

impl Tracepoints {
    /// The tracepoints that the names of a file describe.
    pub fn new(records: &[Name]) -> Tracepoints {
        let mut all = Tracepoints::default();
        for record in records.iter().filter(|record| record.kind == NameKind::Tracepoint as u16) {
            let number = record.number as usize;
            if number < 16 {
                all.known.resize_with(all.known.len().max(number + 1), || None);
                all.known[number] = Some(Tracepoint::read(&String::from_utf8_lossy(record.text)));
            }
        }
        all
    }

    /// Name of an entry: `sched:sched_wakeup(comm=bash,pid=7)`; its number and words, if nothing describes it.
    pub fn label(&self, number: u32, record: &[u8]) -> String {
        match self.known.get(number as usize).and_then(Option::as_ref) {
            Some(tracepoint) => tracepoint.label(record),
            None => format!("tracepoint#{number}(words={})", hex(record)),
        }
    }
}

impl Tracepoint {
    fn read(text: &str) -> Tracepoint {
        let mut lines = text.lines();
        let name = clean(lines.next().unwrap_or_default().as_bytes());
        Tracepoint { name, fields: lines.filter_map(Field::read).collect() }
    }

    fn label(&self, record: &[u8]) -> String {
        let mut text = self.name.clone();
        for (n, field) in self.fields.iter().enumerate() {
            text.push(if n == 0 { '(' } else { ',' });
            let _ = write!(text, "{}={}", field.name, field.value(record).as_deref().unwrap_or("..."));
        }
        if !self.fields.is_empty() {
            text.push(')');
        }
        text
    }
}

impl Field {
    fn read(line: &str) -> Option<Field> {
        let mut words = line.split(' ');
        let mut next = || words.next().filter(|word| !word.is_empty());
        let (name, kind, at, bytes) = (next()?, next()?, next()?.parse().ok()?, next()?.parse().ok()?);
        let (&letter, item) = kind.as_bytes().split_first()?;
        let item = std::str::from_utf8(item).ok().filter(|item| !item.is_empty());
        let item = item.map_or(Some(bytes), |item| item.parse().ok())?;
        Some(Field { name: clean(name.as_bytes()), kind: letter, at, bytes, item })
    }

    /// The field's value in an entry, if it fits.
    fn value(&self, record: &[u8]) -> Option<String> {
        let own = record.get(self.at..self.at.checked_add(self.bytes)?);
        let located = |from: usize| {
            let word = u32::from_le_bytes(*own?.first_chunk()?);
            let (at, bytes) = ((word & 0xffff) as usize, (word >> 16) as usize);
            let rest = record.get((from + at).checked_sub(COMMON_BYTES)?..)?;
            Some(match self.kind.is_ascii_lowercase() {
                true => cut(rest, bytes),
                false => hex(&rest[..bytes.min(rest.len())]),
            })
        };
        match self.kind {
            // A text that reaches beyond the entry is shown as far as it goes.
            b's' => record.get(self.at..).map(|rest| cut(rest, self.bytes)),
            b'd' | b'D' => located(0),
            b'r' | b'R' => located(COMMON_BYTES + self.at + 4),
            b'u' | b'i' | b'x' if matches!(self.item, 1 | 2 | 4 | 8) => {
                let items: Vec<String> = own?.chunks_exact(self.item).map(|item| self.number(item)).collect();
                Some(items.join("/"))
            }
            _ => own.map(hex),
        }
    }

    fn number(&self, item: &[u8]) -> String {
        let mut bytes = [0; 8];
        bytes[..item.len()].copy_from_slice(item);
        let (value, spare) = (u64::from_le_bytes(bytes), 64 - 8 * item.len() as u32);
        match self.kind {
            b'i' => ((value << spare) as i64 >> spare).to_string(),
            b'x' => format!("0x{value:x}"),
            _ => value.to_string(),
        }
    }
}

/// A text of up to `bytes` bytes, up to its terminator.
fn cut(rest: &[u8], bytes: usize) -> String {
    let whole = &rest[..bytes.min(rest.len())];
    let ended = whole.split(|&c| c == 0).next().unwrap_or_default();
    let more = if ended.len() == rest.len() && bytes > rest.len() { "..." } else { "" };
    format!("{}{more}", clean(ended))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = "0x".to_string();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Tracepoints {
        Tracepoints::new(&[Name { kind: NameKind::Tracepoint as u16, number: 3, second: 0, text: text.as_bytes() }])
    }

    #[test]
    fn fields_are_shown_by_their_types() {
        let all = known("sched:wake\ncomm s 0 8\npid i 8 4\nflags x 12 2\ncpus u2 14 4\nraw b 18 2\n");
        let record = b"bash\0\0\0\0\xff\xff\xff\xff\x10\x20\x01\x00\x02\x00\xab\xcd";
        assert_eq!(all.label(3, record), "sched:wake(comm=bash,pid=-1,flags=0x2010,cpus=1/2,raw=0xabcd)");
        assert_eq!(known("sched:tick").label(3, record), "sched:tick");
        assert_eq!(all.label(4, &record[..2]), "tracepoint#4(words=0x6261)");
    }

    #[test]
    fn texts_are_found_where_the_record_says() {
        // At byte 16 of the kernel's record, which is byte 8 of the words, 6 bytes; or right after the word.
        let mut record = (6 << 16 | 16_u32).to_le_bytes().to_vec();
        record.extend((6_u32 << 16).to_le_bytes());
        record.extend(b"a b\0\0\0\0\0");
        assert_eq!(known("x:y\nfile d 0 4\nsame r 4 4").label(3, &record), "x:y(file=a_b,same=a_b)");
    }

    #[test]
    fn what_has_no_room_is_told_so() {
        let mut record = (40 << 16 | 12_u32).to_le_bytes().to_vec();
        record.extend(b"abcd");
        assert_eq!(
            known("x:y\nfile d 0 4\nlate u 8 4\ntext s 6 9").label(3, &record),
            "x:y(file=abcd...,late=...,text=cd...)"
        );
        record[0] = 200;
        assert_eq!(known("x:y\nfile d 0 4").label(3, &record), "x:y(file=...)");
    }

    #[test]
    fn no_description_stops_the_reader() {
        let texts = [
            "",
            "a",
            "a\nb",
            "a\nb u 1",
            "a\nb u 99999999999999999999 4",
            "a\nb u3 0 4",
            "a\nb d 18446744073709551615 4",
        ];
        for text in texts {
            known(text).label(3, &[0; 8]);
        }
    }
}
