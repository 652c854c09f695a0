// SPDX-License-Identifier: BSD-3-Clause
//! Names, each kept once and spoken of by number.

use foldhash::HashMap;

/// Every distinct name of a trace. Number 0 is the empty name.
#[derive(Clone, Debug)]
pub struct Names {
    texts: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
}

impl Default for Names {
    fn default() -> Names {
        let mut names = Names { texts: Vec::new(), ids: HashMap::default() };
        names.id("");
        names
    }
}

impl Names {
    /// The number of `text`, which is kept if it is new.
    pub fn id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The name with this number; empty for a number never given out.
    pub fn text(&self, id: u32) -> &str {
        self.texts.get(id as usize).map_or("", |t| t)
    }

    /// The names from this number on.
    pub fn since(&self, first: usize) -> &[Box<str>] {
        self.texts.get(first..).unwrap_or_default()
    }

    /// All names, by number.
    pub fn into_texts(self) -> Vec<String> {
        self.texts.into_iter().map(String::from).collect()
    }
}

/// A name as the text's columns can carry it: no blank, control character, quote or backslash, valid UTF-8.
pub fn clean(text: &[u8]) -> String {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '\\';
    String::from_utf8_lossy(text).trim().chars().map(|c| if bad(c) { '_' } else { c }).collect()
}

/// A name that fills the rest of a line: as [`clean`], but blanks stay.
pub fn clean_sentence(text: &[u8]) -> String {
    let bad = |c: char| c.is_control() || c == '"' || c == '\\';
    String::from_utf8_lossy(text).trim().chars().map(|c| if bad(c) { '_' } else { c }).collect()
}

/// What a sample in a function is called, and its argument: a hash of that, 16 bits, which tells functions apart.
pub fn in_function(function: &str) -> (String, u16) {
    let text = format!("PC={function}");
    let hash = crc32fast::hash(text.as_bytes()) as u16;
    (text, hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let mut names = Names::default();
        let id = names.id("read");
        assert_eq!((names.id("read"), names.text(id), names.text(99)), (id, "read", ""));
    }

    #[test]
    fn a_hostile_name_cannot_leave_its_column() {
        assert_eq!(clean(b" a b\n\"\\\xff "), "a_b___\u{fffd}");
    }
}
