// SPDX-License-Identifier: BSD-3-Clause
//! The description of a tracepoint: its number, its name, and its fields, as in
//! /sys/kernel/tracing/events/GROUP/NAME/format.

use std::collections::HashMap;

/// A tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its number in this recording.
    id: u16,
    /// Its name.
    pub name: String,
    fields: Vec<Field>,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, without the length of an array.
    pub name: String,
    offset: usize,
    size: usize,
    is_signed: bool,
    /// True if the record has place and length of the contents here.
    is_elsewhere: bool,
}

impl Format {
    /// Reads a description; `None` if it is none.
    pub fn read(text: &str) -> Option<Format> {
        let after = |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key)).map(str::trim);
        let fields = text.lines().filter_map(Field::read).collect();
        Some(Format { id: after("ID:")?.parse().ok()?, name: after("name:")?.to_string(), fields })
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A number in a record; `None` if the record lacks it.
    pub fn number(&self, record: &[u8], name: &str) -> Option<i64> {
        self.field(name)?.number(record)
    }

    /// The text in a record, up to its end mark; `None` if the record lacks it.
    pub fn text(&self, record: &[u8], name: &str) -> Option<String> {
        let bytes = self.field(name)?.bytes(record)?;
        Some(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next()?).into_owned())
    }

    /// The first field after those that every tracepoint has and the number of the call.
    pub fn first_argument(&self) -> Option<&Field> {
        self.fields.iter().find(|field| !field.name.starts_with("common_") && field.name != "__syscall_nr")
    }
}

impl Field {
    /// Reads a line, `field:TYPE NAME; offset:N; size:N; signed:N;`.
    fn read(line: &str) -> Option<Field> {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let declared = parts.next()?;
        let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
        let (offset, size, signed) = (number("offset:")?, number("size:")?, number("signed:"));
        let name = declared.rsplit(' ').next()?.split('[').next()?;
        Some(Field {
            name: name.to_string(),
            offset,
            size,
            is_signed: signed == Some(1),
            is_elsewhere: declared.starts_with("__data_loc"),
        })
    }

    /// The number in a record, of its first bytes if they are many.
    pub fn number(&self, record: &[u8]) -> Option<i64> {
        let size = self.size.min(8);
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(record.get(self.offset..self.offset.checked_add(size)?)?);
        let number = i64::from_le_bytes(bytes);
        let unused = 64 - 8 * size as u32;
        Some(match self.is_signed && size > 0 {
            true => number << unused >> unused,
            false => number,
        })
    }

    /// The contents in a record; of a field of size 0, all that follow.
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let (from, length) = match (self.is_elsewhere, self.size) {
            (true, _) => {
                let place = self.number(record)?;
                ((place & 0xffff) as usize, (place >> 16 & 0xffff) as usize)
            }
            (false, 0) => (self.offset, record.len().checked_sub(self.offset)?),
            (false, size) => (self.offset, size),
        };
        record.get(from..from.checked_add(length)?)
    }
}

/// All tracepoints of a recording.
#[derive(Clone, Debug, Default)]
pub struct Formats(HashMap<u16, Format>);

impl Formats {
    /// Adds a tracepoint by its description; false if it is none.
    pub fn add(&mut self, text: &[u8]) -> bool {
        let format = Format::read(&String::from_utf8_lossy(text));
        let is_one = format.is_some();
        self.0.extend(format.map(|format| (format.id, format)));
        is_one
    }

    /// A tracepoint by its number.
    pub fn get(&self, id: u16) -> Option<&Format> {
        self.0.get(&id)
    }
}

/// The number of the tracepoint of a record.
pub fn id(record: &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(*record.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:long prev_state;\toffset:24;\tsize:8;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n\nprint fmt: \"field:x; offset:9;\"\n";

    #[test]
    fn fields_are_read_by_their_description() {
        let mut formats = Formats::default();
        assert!(formats.add(SWITCH.as_bytes()) && !formats.add(b"x"));
        let mut record = vec![0; 40];
        record[..2].copy_from_slice(&372u16.to_le_bytes());
        record[4..8].copy_from_slice(&70_000u32.to_le_bytes());
        record[8..11].copy_from_slice(b"a b");
        record[24..32].copy_from_slice(&(-2i64).to_le_bytes());
        record[32..36].copy_from_slice(&(36u32 | 4 << 16).to_le_bytes());
        record[36..40].copy_from_slice(b"eth\0");
        let format = formats.get(id(&record).unwrap()).unwrap();
        assert_eq!(format.name, "sched_switch");
        assert_eq!(format.number(&record, "common_pid"), Some(70_000));
        assert_eq!(format.text(&record, "prev_comm").as_deref(), Some("a b"));
        assert_eq!(format.number(&record, "prev_state"), Some(-2));
        assert_eq!(format.text(&record, "name").as_deref(), Some("eth"));
        assert_eq!(format.text(&record[..38], "name"), None);
        assert_eq!(format.number(&record[..7], "common_pid"), None);
    }
}
