// SPDX-License-Identifier: BSD-3-Clause
//! Names, each kept once and referred to by number.

use std::ops::Index;

use foldhash::HashMap;

/// A name, by its index among all [`Names`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

impl NameId {
    /// The empty name.
    pub const EMPTY: NameId = NameId(0);

    /// Its index in a list of all names.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl<T> Index<NameId> for Vec<T> {
    type Output = T;

    fn index(&self, id: NameId) -> &T {
        &self[id.index()]
    }
}

/// Every distinct name of a trace; the first is the empty one.
#[derive(Clone, Debug)]
pub struct Names {
    texts: Vec<Box<str>>,
    ids: HashMap<Box<str>, NameId>,
}

impl Default for Names {
    fn default() -> Names {
        let mut names = Names { texts: Vec::new(), ids: HashMap::default() };
        names.id("");
        names
    }
}

impl Names {
    /// The id of `text`, which is added if it is new.
    pub fn id(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = NameId(self.texts.len() as u32);
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The name with this id; empty for one never given out.
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.index()).map_or("", |t| t)
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

/// Number of occurrences by name.
#[derive(Debug, Default)]
pub struct Counts(Vec<u64>);

impl Counts {
    /// The count of a name.
    #[inline]
    pub fn of(&mut self, name: NameId) -> &mut u64 {
        if name.index() >= self.0.len() {
            self.0.resize(name.index() + 1, 0);
        }
        &mut self.0[name.index()]
    }

    /// All names that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, u64)> + '_ {
        (0..).map(NameId).zip(self.0.iter().copied()).filter(|&(_, count)| count > 0)
    }
}

/// A name as the text's columns can carry it: no blank, control character, quote or backslash, valid UTF-8.
pub fn clean(text: &[u8]) -> String {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '\\';
    String::from_utf8_lossy(text).trim().chars().map(|c| if bad(c) { '_' } else { c }).collect()
}

/// A name that fills the rest of a line: like [`clean`], but blanks stay.
pub fn clean_sentence(text: &[u8]) -> String {
    let bad = |c: char| c.is_control() || c == '"' || c == '\\';
    String::from_utf8_lossy(text).trim().chars().map(|c| if bad(c) { '_' } else { c }).collect()
}

/// Name and argument of a sample in a function: the argument is a 16-bit hash of the name, which distinguishes
/// functions.
pub fn in_function(function: &str) -> (String, u16) {
    let text = format!("PC={function}");
    let hash = hash_of_sample(&text);
    (text, hash)
}

/// The argument of samples with this name, or of samples in a file with this name.
pub fn hash_of_sample(text: &str) -> u16 {
    crc32fast::hash(text.as_bytes()) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let mut names = Names::default();
        let id = names.id("read");
        assert_eq!((names.id("read"), names.text(id), names.text(NameId(99))), (id, "read", ""));
    }

    #[test]
    fn a_hostile_name_cannot_leave_its_column() {
        assert_eq!(clean(b" a b\n\"\\\xff "), "a_b___\u{fffd}");
    }
}
