// SPDX-License-Identifier: BSD-3-Clause
//! Converts the format file of a tracepoint to its description in a trace (docs/format.md).

use anyhow::{ensure, Context, Result};

/// Bytes at the start of all records, which are not recorded.
const COMMON_BYTES: usize = 8;

/// Content of a format file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The kernel's number of the tracepoint.
    pub id: u32,
    /// A line for each field: name, type, offset, bytes.
    pub fields: String,
}

/// Parses a format file.
///
/// # Errors
/// The missing or invalid part.
pub fn read(text: &str) -> Result<Format> {
    let id = text.lines().find_map(|line| line.strip_prefix("ID: ")).and_then(|id| id.trim().parse().ok());
    let mut fields = String::new();
    for line in text.lines().filter(|line| line.trim_start().starts_with("field:")) {
        let field = Field::read(line).with_context(|| format!("cannot be read: {line}"))?;
        // Fields that all records have, and the address of a program's probe.
        if field.name.starts_with("common_") || field.name.starts_with("__probe_") {
            continue;
        }
        ensure!(field.offset >= COMMON_BYTES, "has a field in the head of the record: {line}");
        let (kind, at) = (field.kind(), field.offset - COMMON_BYTES);
        fields += &format!("{} {kind} {at} {}\n", field.name, field.size);
    }
    Ok(Format { id: id.context("has no ID")?, fields })
}

/// A line `field:char comm[16]; offset:8; size:16; signed:0;`.
struct Field<'a> {
    type_name: &'a str,
    name: &'a str,
    /// The text between the brackets of an array.
    items: Option<&'a str>,
    offset: usize,
    size: usize,
    signed: bool,
}

impl<'a> Field<'a> {
    fn read(line: &'a str) -> Option<Field<'a>> {
        let mut parts = line.trim().split(';').map(str::trim);
        let mut next = |key: &str| parts.next()?.strip_prefix(key)?.strip_prefix(':');
        let (declared, offset, size) = (next("field")?, next("offset")?, next("size")?);
        let signed = next("signed") == Some("1");
        let (declared, items) = match declared.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            Some((declared, items)) => (declared, Some(items)),
            None => (declared, None),
        };
        let (type_name, name) = declared.trim().rsplit_once([' ', '*'])?;
        let type_name = &declared[..type_name.len() + usize::from(declared[type_name.len()..].starts_with('*'))];
        Some(Field { type_name, name, items, offset: offset.parse().ok()?, size: size.parse().ok()?, signed })
    }

    /// The letter of its type, and for an array the size of an item in bytes.
    fn kind(&self) -> String {
        let number = if self.signed { 'i' } else { 'u' };
        let is_text = self.type_name.contains("char") && !self.type_name.contains("unsigned");
        let located = |text: char| if is_text { text } else { text.to_ascii_uppercase() };
        match (self.items, self.size) {
            _ if self.type_name.starts_with("__data_loc") => located('d').to_string(),
            _ if self.type_name.starts_with("__rel_loc") => located('r').to_string(),
            (Some(_), _) if is_text => "s".to_string(),
            (Some(items), size) => match items.parse().ok().and_then(|items: usize| size.checked_div(items)) {
                Some(item @ (2 | 4 | 8)) => format!("{number}{item}"),
                _ => "b".to_string(),
            },
            (None, 1 | 2 | 4 | 8) if self.type_name.contains('*') => "x".to_string(),
            (None, 1 | 2 | 4 | 8) => number.to_string(),
            _ => "b".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name: some\nID: 314\nformat:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

";

    #[test]
    fn each_type_of_a_field_has_its_letter() {
        let text = "\
\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:const void * ptr;\toffset:32;\tsize:8;\tsigned:0;
\tfield:const char *text;\toffset:40;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] file;\toffset:48;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] other;\toffset:52;\tsize:4;\tsigned:0;
\tfield:__data_loc u8[] raw;\toffset:56;\tsize:4;\tsigned:0;
\tfield:__u8 saddr[4];\toffset:60;\tsize:4;\tsigned:0;
\tfield:unsigned long args[6];\toffset:64;\tsize:48;\tsigned:0;
\tfield:char rwbs[RWBS_LEN];\toffset:112;\tsize:8;\tsigned:0;
\tfield:struct timespec64 at;\toffset:120;\tsize:16;\tsigned:0;
\tfield:bool ok;\toffset:136;\tsize:1;\tsigned:0;

print fmt: \"comm=%s\", REC->comm\n";
        let fields = "comm s 0 16\npid i 16 4\nptr x 24 8\ntext x 32 8\nfile d 40 4\nother r 44 4\nraw D 48 4\n\
            saddr b 52 4\nargs u8 56 48\nrwbs s 104 8\nat b 112 16\nok u 128 1\n";
        assert_eq!(read(&[HEAD, text].concat()).unwrap(), Format { id: 314, fields: fields.into() });
    }

    #[test]
    fn what_is_no_format_is_refused() {
        for (text, fact) in [
            ("name: x\n", "has no ID"),
            ("ID: 3\n\tfield:int;\n", "cannot be read"),
            ("ID: 3\n\tfield:int x;\toffset:4;\tsize:4;\tsigned:0;\n", "head of the record"),
        ] {
            assert!(format!("{:#}", read(text).unwrap_err()).contains(fact), "{text}");
        }
    }
}
